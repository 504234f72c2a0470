"""`klearbench judge` with code rows: mixed with math, streamed, resumed, refused, both modes side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from klearbench.errors import DataError, IncompleteError, RunConflict
from klearbench.judging import code as code_module
from klearbench.judging.command import run_judge
from klearbench.sandbox.base import SandboxUnavailable
from klearbench.sandbox.registry import SANDBOXES
from tests.klearbench.judging.fake_sandbox import FakeSandbox, Program, broken, double, nowhere, plus_one, ran
from tests.tools import complaint, jsonl, run, write_jsonl

Files = tuple[Path, Path, Path]

TESTS = [{"input": str(n), "output": str(2 * n)} for n in (1, 2, 3)]
PROBLEMS = [
    {"id": "m", "kind": "math", "answer": "7"},
    {"id": "c", "kind": "code", "tests": TESTS, "time_limit_s": 2},
    {"id": "lcb", "kind": "code", "tests": TESTS, "preamble": "lcb"},
]
COMPLETIONS = [
    {"problem_id": "m", "sample_index": 0, "answer": "7"},
    {"problem_id": "c", "sample_index": 0, "code": "double"},
    {"problem_id": "m", "sample_index": 1, "completion": "so \\boxed{8}"},
    {"problem_id": "c", "sample_index": 1, "completion": "```python\nplus_one\n```"},
    {"problem_id": "c", "sample_index": 2, "completion": "no code", "finish_reason": "length"},
    {"problem_id": "m", "sample_index": 2, "completion": "so \\boxed{7}"},
]
STATUSES = ["correct", "correct", "wrong_answer", "wrong_answer", "truncated", "correct"]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return (
        write_jsonl(tmp_path / "c.jsonl", COMPLETIONS),
        write_jsonl(tmp_path / "p.jsonl", PROBLEMS),
        tmp_path / "v.jsonl",
    )


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSandbox]:
    """The sandbox that the command finds under every name."""
    programs: dict[str, Program] = {"double": double, "plus_one": plus_one, "broken": broken}
    box = FakeSandbox(programs)
    monkeypatch.setattr(code_module, "build_sandbox", lambda name: box)
    yield box
    assert box.open_slots == set()


def statuses(path: Path) -> list[str]:
    return [row["status"] for row in jsonl(path)]


@pytest.mark.parametrize("workers", [1, 3])
def test_rows_of_both_kinds_come_out_in_the_files_order(files: Files, box: FakeSandbox, workers: int) -> None:
    steps: list[tuple[int, int]] = []
    summary = run_judge(*files, workers=workers, progress=lambda done, total: steps.append((done, total)))
    rows = jsonl(files[2])
    assert [(r["problem_id"], r["sample_index"]) for r in rows] == [
        (r["problem_id"], r["sample_index"]) for r in COMPLETIONS
    ]
    assert statuses(files[2]) == STATUSES
    assert rows[3]["score"] == pytest.approx(1 / 3) and rows[3]["suite"] == "p"
    assert "test 2 of 3" in rows[3]["detail"] and "[fake submission]" in rows[3]["detail"]
    assert steps[-1] == (6, 6) and (summary.judged, summary.differences) == (6, 0)


def test_code_verdicts_are_written_as_they_come(files: Files, box: FakeSandbox) -> None:
    """While a program runs, what was judged before it stands in the file."""
    written: list[int] = []

    def look(data: bytes, call: Any) -> Any:
        written.append(len(files[2].read_bytes().splitlines()))
        return double(data, call)

    box.programs["look"] = look
    rows = [{"problem_id": "c", "sample_index": i, "code": "look"} for i in range(40)]
    write_jsonl(files[0], rows)
    run_judge(*files)
    assert written[0] == 0 and written[-1] >= 20
    assert len(jsonl(files[2])) == 40


def test_the_same_command_finishes_what_is_missing(files: Files, box: FakeSandbox) -> None:
    run_judge(*files)
    whole = files[2].read_bytes().splitlines(keepends=True)
    files[2].write_bytes(b"".join(whole[:2]) + whole[2][:10])
    box.calls.clear()
    assert run_judge(*files).judged == 4
    assert statuses(files[2]) == STATUSES
    assert box.seen("double") == []
    assert box.seen("plus_one") == [b"1", b"2", b"3"]
    assert run_judge(*files).judged == 0


def test_judge_errors_are_incomplete_and_tried_again(files: Files, box: FakeSandbox) -> None:
    write_jsonl(files[0], [*COMPLETIONS, {"problem_id": "c", "sample_index": 3, "code": "broken"}])
    with pytest.raises(IncompleteError, match="1 of 7 rows are judge errors"):
        run_judge(*files)
    last = jsonl(files[2])[-1]
    assert (last["status"], last["score"]) == ("judge_error", None)
    box.programs["broken"] = double
    box.calls.clear()
    assert run_judge(*files).judged == 1
    assert statuses(files[2]) == [*STATUSES, "correct"]
    assert {call.command.code for call in box.calls} == {"broken"}


def test_changed_options_are_refused_by_name(files: Files, box: FakeSandbox) -> None:
    run_judge(*files)
    for name, value in [("mode", "both"), ("sandbox", "docker"), ("first_failure", True)]:
        with pytest.raises(RunConflict, match=rf"made with {name} = .*another -o"):
            run_judge(*files, **{name: value})
    assert run_judge(*files, workers=2).judged == 0


def test_without_code_rows_the_code_options_decide_nothing(files: Files, box: FakeSandbox) -> None:
    write_jsonl(files[0], [row for row in COMPLETIONS if row["problem_id"] == "m"])
    run_judge(*files)
    manifest = json.loads(files[2].with_name("v.jsonl.manifest.json").read_text())
    assert sorted(manifest["config"]) == ["math_judge", "math_judges"]
    assert run_judge(*files, mode="both", sandbox="docker").judged == 0
    assert box.opened == 0


def test_the_manifest_names_the_code_judge(files: Files, box: FakeSandbox) -> None:
    run_judge(*files, first_failure=True)
    config = json.loads(files[2].with_name("v.jsonl.manifest.json").read_text())["config"]
    assert config["code_judge"] == {"name": "code", "version": code_module.VERSION}
    assert (config["mode"], config["sandbox"], config["first_failure"]) == ("strict", "local", True)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"problem_id": "m", "sample_index": 9, "code": "x"}, '"code" row for a math problem; .* or "answer"'),
        ({"problem_id": "c", "sample_index": 9, "answer": "x"}, '"answer" row for a code problem; .* or "code"'),
        ({"problem_id": "c", "sample_index": 9, "code": None}, "code is NoneType"),
        ({"problem_id": "c", "sample_index": 9, "code": "x", "completion": "x"}, "exactly one of"),
    ],
)
def test_a_bad_completion_is_named_by_file_and_line(files: Files, row: dict[str, Any], message: str) -> None:
    write_jsonl(files[0], [*COMPLETIONS, row])
    with pytest.raises(DataError, match=rf"c\.jsonl:7: .*{message}"):
        run_judge(*files)
    assert not files[2].exists()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "x", "kind": "code", "tests": TESTS, "fn_nam": "f"}, "unknown key 'fn_nam'; did you mean 'fn_name'"),
        ({"id": "x", "kind": "code", "tests": TESTS, "mode": "function"}, "unknown mode 'function'"),
        ({"id": "x", "kind": "code"}, "tests are missing"),
        ({"id": "c", "kind": "code", "tests": TESTS}, "id 'c' stands twice"),
        ({"id": "x", "kind": "cod", "tests": TESTS}, "kind is 'cod'"),
    ],
)
def test_a_bad_problem_is_named_by_file_and_line(files: Files, row: dict[str, Any], message: str) -> None:
    write_jsonl(files[1], [*PROBLEMS, row])
    with pytest.raises(DataError, match=rf"p\.jsonl:4: .*{message}"):
        run_judge(*files)


def test_both_modes_list_each_difference_with_its_cause(files: Files, box: FakeSandbox) -> None:
    box.programs["spaced"] = lambda data, call: ran(f"{2 * int(data)}.0000001")
    write_jsonl(files[1], [*PROBLEMS, {"id": "f", "kind": "code", "preamble": "lcb",
                                       "tests": [{"input": "1", "output": "2.0"}]}])  # fmt: skip
    rows = [
        {"problem_id": "lcb", "sample_index": 0, "code": "double"},
        {"problem_id": "m", "sample_index": 0, "answer": "7"},
        {"problem_id": "f", "sample_index": 0, "code": "spaced"},
        {"problem_id": "lcb", "sample_index": 1, "code": "plus_one"},
    ]
    write_jsonl(files[0], rows)
    summary = run_judge(*files, mode="both", workers=2)
    assert statuses(files[2]) == ["correct", "correct", "correct", "wrong_answer"]
    [difference] = jsonl(files[2].with_name("v.jsonl.differences.jsonl"))
    assert (difference["problem_id"], difference["sample_index"]) == ("f", 0)
    assert (difference["strict"]["status"], difference["compat"]["status"]) == ("correct", "wrong_answer")
    assert difference["cause"] == "comparison (test 1: strict correct, compat wrong_answer)"
    assert summary.differences == 1
    assert len(box.seen("double")) == 3  # one run served both
    assert run_judge(*files, mode="both").differences == 1


def test_many_math_rows_between_code_rows(files: Files, box: FakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klearbench.judging.command.BATCH", 4)
    rows: list[dict[str, Any]] = []
    for i in range(60):
        code = i in (5, 6, 30, 58)
        rows.append({"problem_id": "c" if code else "m", "sample_index": i, "code" if code else "answer": "7"})
        if code:
            rows[-1]["code"] = "plus_one" if i == 6 else "double"
    write_jsonl(files[0], rows)
    run_judge(*files, workers=2)
    assert [r["sample_index"] for r in jsonl(files[2])] == list(range(60))
    assert [i for i, status in enumerate(statuses(files[2])) if status != "correct"] == [6]


def test_no_sandbox_is_said_in_one_line_and_nothing_is_written(files: Files, box: FakeSandbox) -> None:
    box.opening = nowhere
    with pytest.raises(SandboxUnavailable, match="choose --sandbox docker"):
        run_judge(*files)
    assert all(row["problem_id"] == "m" for row in jsonl(files[2]))


def test_the_command_line(files: Files) -> None:
    assert "'dokcer' is not one of 'local', 'docker'" in complaint(
        run("klearbench", "judge", files[0], "--problems", files[1], "--sandbox", "dokcer", "-o", files[2])
    )
    assert "c.jsonl: no such file" in complaint(
        run("klearbench", "judge", files[0].parent / "d" / "c.jsonl", "--problems", files[1], "-o", files[2])
    )
    shown = run("klearbench", "judge", "--help").stdout
    for word in ("--sandbox", "--mode", "--first-failure", "--workers", *SANDBOXES, "compat", "both"):
        assert word in shown
