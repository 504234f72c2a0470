"""docs/code-judging.md: its example runs and prints what it says, and its tables leave nothing out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools import ROOT, environment, jsonl, ok

from klearbench.judging.checkers import CHECKERS, WITH_TOLERANCE
from klearbench.types import Status

PAGE = (ROOT / "docs" / "code-judging.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_python_example_prints_what_the_page_says(tmp_path: Path) -> None:
    (program,), (printed,) = blocks("python"), blocks("text")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == (printed, 0), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_two_files_are_judged_by_the_pages_command(tmp_path: Path) -> None:
    problems, completions = blocks("json")
    (tmp_path / "problems.jsonl").write_text(problems)
    (tmp_path / "completions.jsonl").write_text(completions)
    (command,) = re.findall(r"^    klearbench (judge .*)$", PAGE, re.M)
    ok("klearbench", *command.split(), cwd=tmp_path)
    found = [(row["problem_id"], row["status"], row["score"]) for row in jsonl(tmp_path / "verdicts.jsonl")]
    assert found == [("double", "correct", 1.0), ("double", "wrong_answer", 0.5), ("add", "correct", 1.0)]


def test_every_status_and_every_checker_stands_on_the_page() -> None:
    assert {str(status) for status in Status} <= set(re.findall(r"`(\w+)`", PAGE))
    assert {name + ("[:1e-6]" if name in WITH_TOLERANCE else "") for name in CHECKERS} <= set(
        re.findall(r"`([\w:.\[\]-]+)`", PAGE)
    )


@pytest.mark.shared
def test_every_convention_of_the_corpora_has_its_row(shared: Path) -> None:
    table = PAGE.partition("## Decisions")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`([^`]+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    rows = [
        json.loads(line)
        for name in ("judging_dev.jsonl", "attacks_dev.jsonl")
        for line in (shared / "cases" / "code" / name).read_text().splitlines()
    ]
    assert listed == {row["convention"] for row in rows if row.get("convention")}
