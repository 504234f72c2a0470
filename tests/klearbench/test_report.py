"""The HTML report as a file (a browser opens it in another test), and the text table."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path

import pytest

from klearbench.errors import DataError, UsageError
from klearbench.reports.html import write_report
from klearbench.reports.text import score_lines, score_table
from klearbench.scoring.metrics import SuiteScore, score_suite
from klearbench.store import JsonlWriter
from klearbench.types import FinishReason, Sample, Status, Verdict, to_row

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> $data ${css} & \ud800 \x00"


class Page(HTMLParser):
    """The elements, attributes and texts of a page, and what stands in its scripts."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(path.read_text(encoding="utf-8"))
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data

    def having(self, tag: str, name: str = "") -> list[dict[str, str | None]]:
        return [attrs for found, attrs in self.elements if found == tag and (not name or attrs.get("class") == name)]


def records(rows, suite: str = "puzzles") -> tuple[list[Sample], list[Verdict]]:
    """(problem, index, status, completion, extracted) as records; a truncated one ran into the limit."""
    samples, verdicts = [], []
    for problem, index, status, completion, extracted in rows:
        finish = FinishReason.length if status == "truncated" else FinishReason.stop
        score = None if status == "judge_error" else float(status == "correct")
        samples.append(Sample(suite, problem, index, 0, completion, 3, len(completion.split()), finish))
        verdicts.append(Verdict(suite, problem, index, Status(status), score, extracted, detail=f"why {status}"))
    return samples, verdicts


def write_eval(path: Path, rows, k: int = 2, name: str = "puzzles") -> Path:
    path.mkdir(parents=True)
    config = {
        "command": "eval", "suites": [name], "samples": k, "limit": None, "seed": 3, "sampling": {"temperature": 0.6},
        "prompt": "ours", "engine": {"name": "hf"}, "judge": {"name": "math", "mode": "strict"},
    }  # fmt: skip
    about = {"model": f"{path.name}-model"}
    (path / "manifest.json").write_text(json.dumps({"format": 1, "config": config, "inputs": {}, "about": about}))
    samples, verdicts = records(rows, name)
    for file, found in (("samples", samples), ("verdicts", verdicts)):
        with JsonlWriter(path / f"{file}.jsonl") as log:
            log.append(*map(to_row, found))
    ids = list(dict.fromkeys(row[0] for row in rows))
    scores = {name: asdict(score_suite(name, samples, verdicts, ids, k))}
    (path / "scores.json").write_text(json.dumps(scores))
    return path


ROWS = [
    ("a", 0, "correct", "so 7", "7"),
    ("a", 1, "truncated", "and then and then", None),
    ("b", 0, "wrong_answer", "so 8", "8"),
    ("b", 1, "no_answer", "hm", None),
]


@pytest.fixture
def page(tmp_path) -> Page:
    write_report([write_eval(tmp_path / "base", ROWS)], tmp_path / "report.html")
    return Page(tmp_path / "report.html")


def test_the_table_shows_the_score_and_truncated_apart_from_wrong(page):
    assert "25.0" in page.text
    assert "base-model" in page.text
    split = [attrs["class"] for attrs in page.having("i") if "width:25.000%" in (attrs.get("style") or "")]
    assert split == ["correct", "wrong_answer", "no_answer", "truncated"]
    assert "truncated 1 (25.0 %)" in page.text


def test_one_heat_cell_a_problem_with_its_share(page):
    cells = [attrs for attrs in page.having("button") if "data-problem" in attrs]
    assert [(c["data-problem"], c["style"]) for c in cells] == [("a", "--share:50"), ("b", "--share:0")]
    assert cells[0]["title"] == "a: 1 of 2 right, 1 truncated"


def test_the_length_histogram_counts_every_sample(page):
    bars = {kind: page.having("rect", kind) for kind in ("right", "cut", "wrong")}
    assert [len(found) for found in bars.values()] == [1, 1, 2]
    assert page.having("svg")[0]["aria-label"].startswith("4 completions of 0 to 4 tokens")


def test_the_viewer_holds_every_sample(page):
    rows = page.data["rows"]
    assert [(row[2], row[3], page.data["statuses"][row[4]]) for row in rows] == [row[:3] for row in ROWS]
    assert rows[0][5:] == [2, 0, "7", "why correct", "so 7", 4]
    assert rows[1][6] == 1, "ran into the limit"
    assert (page.data["runs"], page.data["suites"]) == (["base"], ["puzzles"])


def test_nothing_is_fetched_and_only_the_hashed_script_may_run(page):
    policy = page.having("meta")[-1]["content"]
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy
    assert not [attrs for _, attrs in page.elements if "src" in attrs]
    assert [attrs["href"] for _, attrs in page.elements if "href" in attrs] == ["data:,"]
    assert "innerHTML" not in page.scripts[1]


def test_text_of_models_is_inert_and_comes_back_whole(tmp_path):
    run = write_eval(tmp_path / "<b>run", [(EVIL, 0, "wrong_answer", EVIL, EVIL)], k=1)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["about"]["model"] = EVIL
    (run / "manifest.json").write_text(json.dumps(manifest))
    write_report([run], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert len(page.scripts) == 2
    assert not page.having("img") and not page.having("b")
    row = page.data["rows"][0]
    assert row[2] == row[7] == row[9] == EVIL, "lone surrogates, NUL and markup survive in the viewer's data"
    assert "<script>alert(1)" not in (tmp_path / "r.html").read_text()


def test_several_runs_are_compared_side_by_side(tmp_path):
    runs = [write_eval(tmp_path / "x" / "eval", ROWS), write_eval(tmp_path / "y" / "eval", ROWS[:2])]
    write_report(runs, tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert page.data["runs"] == ["x/eval", "y/eval"]
    assert [row[0] for row in page.data["rows"]] == [0, 0, 0, 0, 1, 1]
    assert len(page.having("svg")) == 2
    write_report([runs[0], runs[0]], tmp_path / "same.html")
    assert Page(tmp_path / "same.html").data["runs"] == ["x/eval (1)", "x/eval (2)"]


def test_a_run_without_a_score_says_so(tmp_path):
    run = write_eval(tmp_path / "r", [("a", 0, "judge_error", "x", None)], k=2)
    write_report([run], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert "no score (incomplete)" in page.text
    assert "missing 1 (50.0 %)" in page.text


def test_an_empty_run_renders(tmp_path):
    write_report([write_eval(tmp_path / "r", [])], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert page.data["rows"] == []
    assert "no score (incomplete)" in page.text and "No token counts." in page.text


def test_a_sample_without_verdict_is_shown_as_not_judged(tmp_path):
    run = write_eval(tmp_path / "r", ROWS)
    (run / "verdicts.jsonl").write_text("")
    write_report([run], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert {page.data["statuses"][row[4]] for row in page.data["rows"]} == {"not_judged"}


def test_beyond_the_budget_the_longest_completions_are_left_out_and_counted(tmp_path):
    rows = [("a", i, "correct", "x" * (100_000 if i in (1, 3) else 50), "7") for i in range(6)]
    run = write_eval(tmp_path / "r", rows, k=6)
    write_report([run], tmp_path / "r.html", max_bytes=60_000)
    page = Page(tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size <= 60_000
    assert [row[9] is None for row in page.data["rows"]] == [False, True, False, True, False, False]
    assert page.data["rows"][1][10] == 100_000
    assert "2 completions, the longest ones, are left out here" in page.text


def test_beyond_the_budget_whole_samples_go_last(tmp_path):
    rows = [("a", i, "correct", "x" * 50, "7" * 900) for i in range(100)]
    run = write_eval(tmp_path / "r", rows, k=100)
    write_report([run], tmp_path / "r.html", max_bytes=60_000)
    page = Page(tmp_path / "r.html")
    kept = len(page.data["rows"])
    assert 0 < kept < 100
    assert f"{100 - kept} whole samples, the last ones, are left out" in page.text
    assert "100.0" in page.text, "scores cover all samples"


def test_the_demos_1600_samples_take_little(tmp_path):
    rows = [(f"p{i}", j, "correct", "max of 3 and 4 is 4 " * 5, "4") for i in range(200) for j in range(8)]
    run = write_eval(tmp_path / "r", rows, k=8)
    start = time.perf_counter()
    write_report([run], tmp_path / "r.html")
    assert time.perf_counter() - start < 5
    assert (tmp_path / "r.html").stat().st_size < 1_000_000
    assert len(Page(tmp_path / "r.html").data["rows"]) == 1600


def test_the_same_runs_give_the_same_bytes(tmp_path):
    run = write_eval(tmp_path / "r", ROWS)
    for name in ("one", "two"):
        write_report([run], tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_failed_report_leaves_the_old_one(tmp_path):
    run = write_eval(tmp_path / "r", ROWS)
    out = tmp_path / "report.html"
    out.write_text("old")
    (run / "samples.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match=r"samples\.jsonl:1"):
        write_report([run], out)
    assert out.read_text() == "old"
    with pytest.raises(UsageError, match="at least one run"):
        write_report([], out)


def scored(statuses: list[str], suite: str = "puzzles") -> SuiteScore:
    samples, verdicts = records([("a", i, s, "x", None) for i, s in enumerate(statuses)], suite)
    return score_suite(suite, samples, verdicts, ["a"], len(statuses))


def test_the_text_table_is_aligned_markdown():
    table = score_table([("SFT | base", scored(["correct", "truncated"])), ("GPPO", scored(["judge_error"]))])
    lines = table.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split("|")[2:4] == [f"{'avg@k':>22} ", "   k "]
    assert lines[1].split("|")[1:4] == [" " + "-" * 11 + " ", " " + "-" * 20 + ": ", " --: "]
    cells = [[cell.strip() for cell in line.replace("\\|", "/").strip("|").split("|")] for line in lines[2:]]
    assert cells[0] == ["SFT / base", "50.0", "2", "0.0 to 100.0", "50.0 %", "0"]
    assert cells[1] == ["GPPO", "no score (incomplete)", "1", "-", "-", "1"]


def test_the_lines_of_a_run_tell_what_the_limit_did():
    lines = score_lines([scored(["correct", "truncated"])])
    assert lines[-1] == "puzzles: 1 of 2 samples ran into the token limit, 0 of these are right all the same"
    assert len(score_lines([scored(["correct"])])) == 3
