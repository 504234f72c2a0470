"""Both math judges side by side, wherever judging happens: ours counts, each difference is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from klearbench.judging.both import count_differences
from klearbench.suites.references import JudgeOptions, open_judges
from klearbench.types import Answer, FinishReason, Sample, Status

REFERENCES = {"a": Answer("a", "0.5"), "b": Answer("b", "1011_2")}
TEXTS = [("a", "\\boxed{1/2}"), ("b", "\\boxed{1011_3}"), ("a", "\\boxed{2}"), ("b", "\\boxed{11}")]


def samples() -> list[Sample]:
    return [Sample("s", key, i, 0, text, 1, 1, FinishReason.stop) for i, (key, text) in enumerate(TEXTS)]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_ours_counts_and_differences_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "differences.jsonl"
    items = [(sample, REFERENCES[sample.problem_id]) for sample in samples()]
    with open_judges(REFERENCES.values(), JudgeOptions(math="both", differences=path)) as judges:
        verdicts = judges.judge(items)
        assert judges.math["mode"] == "both"
        again = judges.judge(items)
    with open_judges(REFERENCES.values(), JudgeOptions()) as judges:
        assert [v.status for v in judges.judge(items)] == [v.status for v in verdicts] == [v.status for v in again]
    rows = read(path)
    keys = [(row["problem_id"], row["sample_index"]) for row in rows]
    assert ("b", 1) in keys and ("a", 0) not in keys
    row = rows[keys.index(("b", 1))]
    assert row["gold"] == "1011_2" and row["suite"] == "s"
    assert row["strict"]["status"] == Status.wrong_answer and row["math-verify"]["status"] == Status.correct
    assert row["strict"]["extracted"] == "1011_3" and row["math-verify"]["extracted"]
    assert len(rows) == 2 * len(set(keys))
    assert count_differences(path) == len(set(keys))


def test_without_a_file_there_is_no_count(tmp_path: Path) -> None:
    assert count_differences(tmp_path / "none.jsonl") is None


def test_an_evaluation_lists_them_in_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from klearbench.cli import cli

    suite, replay, out = tmp_path / "s.jsonl", tmp_path / "r.jsonl", tmp_path / "run"
    suite.write_text(json.dumps({"id": "b", "problem": "?", "answer": "1011_2"}) + "\n")
    row = {"problem_id": "b", "sample_index": 0, "completion": "\\boxed{1011_3}"}
    replay.write_text(json.dumps(row) + "\n")
    command = ["eval", "--suite", str(suite), "--engine", "replay", "--model", str(replay), "-o", str(out)]
    cli([*command, "--math-judge", "both"], standalone_mode=False)
    assert "the two math judges differ in 1 samples" in capsys.readouterr().out
    assert [r["gold"] for r in read(out / "math_differences.jsonl")] == ["1011_2"]
