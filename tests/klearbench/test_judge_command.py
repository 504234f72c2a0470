"""`klearbench judge`: validation, order, resume, refusals, two judges side by side, the recorded GSM8K responses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from klearbench.errors import DataError, IncompleteError, RunConflict
from klearbench.judging import command
from klearbench.judging.command import run_judge
from klearbench.judging.judge import MathJudge
from klearbench.judging.math import Comparison

PROBLEMS = [
    {"id": "a", "kind": "math", "answer": "7"},
    {"id": "b", "kind": "math", "answer": "\\frac{1}{2}", "rule": "expression"},
]
COMPLETIONS = [
    {"problem_id": "b", "sample_index": 0, "completion": "so \\boxed{0.5}"},
    {"problem_id": "a", "sample_index": 1, "completion": "so \\boxed{8}"},
    {"problem_id": "a", "sample_index": 0, "answer": "7"},
    {"problem_id": "a", "sample_index": 2, "completion": "hm", "finish_reason": "length"},
]


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    return write(tmp_path / "c.jsonl", COMPLETIONS), write(tmp_path / "p.jsonl", PROBLEMS), tmp_path / "v.jsonl"


def test_verdicts_come_out_in_the_order_of_the_completions(files: tuple[Path, Path, Path]) -> None:
    summary = run_judge(*files)
    rows = read(files[2])
    assert [(r["problem_id"], r["sample_index"], r["status"]) for r in rows] == [
        ("b", 0, "correct"),
        ("a", 1, "wrong_answer"),
        ("a", 0, "correct"),
        ("a", 2, "truncated"),
    ]
    assert (summary.total, summary.judged, summary.counts["correct"]) == (4, 4, 2)
    assert "4 of 4 rows judged" in str(summary)
    assert not files[2].with_name("v.jsonl.lock").exists()


def test_the_same_command_finishes_what_is_missing(
    files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "BATCH", 1)
    run_judge(*files)
    whole = files[2].read_bytes().splitlines(keepends=True)
    files[2].write_bytes(whole[0] + whole[1][:20])
    judged: list[int] = []
    real = MathJudge.judge_rows
    monkeypatch.setattr(MathJudge, "judge_rows", lambda self, rows: judged.append(len(rows)) or real(self, rows))
    assert run_judge(*files).judged == 3
    assert sum(judged) == 3
    drop = ("cpu_s", "wall_s")
    again = [{k: v for k, v in r.items() if k not in drop} for r in read(files[2])]
    assert again == [{k: v for k, v in json.loads(line).items() if k not in drop} for line in whole]
    assert run_judge(*files).judged == 0


def test_a_kill_in_the_middle_is_resumed(files: tuple[Path, Path, Path]) -> None:
    code = (
        "import sys; from pathlib import Path; from klearbench.judging.command import run_judge;"
        " run_judge(*map(Path, sys.argv[1:]))"
    )
    argv = [sys.executable, "-c", code, *map(str, files)]
    killed = subprocess.run(argv, env={**os.environ, "KLEAR_FAULT": "half.v.jsonl:3:kill"}, check=False)
    assert killed.returncode == -9
    assert len(files[2].read_bytes().splitlines()) == 3  # two whole lines and a half
    assert run_judge(*files).judged == 2
    assert len(read(files[2])) == 4


def test_changed_inputs_and_options_are_refused(files: tuple[Path, Path, Path]) -> None:
    run_judge(*files)
    with pytest.raises(RunConflict, match=r"math_judge = 'strict'.*'both'"):
        run_judge(*files, math_judge="both")
    write(files[0], COMPLETIONS[:2])
    with pytest.raises(RunConflict, match="completions"):
        run_judge(*files)
    foreign = files[2].with_name("notes.jsonl")
    foreign.write_text("mine\n")
    with pytest.raises(RunConflict, match=r"notes\.jsonl"):
        run_judge(files[0], files[1], foreign)
    assert foreign.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"problem_id": "a", "sample_index": 0, "completed": "x"},
            "unknown key 'completed'; did you mean 'completion'",
        ),
        ({"problem_id": "c", "sample_index": 0, "completion": "x"}, "problem_id 'c' isn't in"),
        ({"problem_id": "a", "sample_index": "0", "completion": "x"}, "sample_index is '0'"),
        ({"problem_id": "a", "sample_index": True, "completion": "x"}, "sample_index is True"),
        ({"problem_id": "a", "sample_index": 0}, "exactly one of"),
        ({"problem_id": "a", "sample_index": 0, "completion": "x", "answer": "7"}, "exactly one of"),
        ({"problem_id": "a", "sample_index": 0, "completion": 7}, "completion is int"),
        ({"problem_id": "a", "sample_index": 0, "code": "x"}, '"code" row'),
        (
            {"problem_id": "a", "sample_index": 0, "completion": "x", "finish_reason": "eos"},
            "allowed: stop, length, error",
        ),
        ({"problem_id": "b", "sample_index": 0, "completion": "x"}, "stands twice \\(first in line 1\\)"),
    ],
)
def test_a_bad_completion_is_named_by_file_and_line(
    files: tuple[Path, Path, Path], row: dict[str, object], message: str
) -> None:
    write(files[0], [COMPLETIONS[0], row])
    with pytest.raises(DataError, match=rf"c\.jsonl:2: .*{message}"):
        run_judge(*files)
    assert not files[2].exists()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "c", "kind": "code", "tests": []}, "it has no test"),
        ({"id": "c", "kind": "code", "tests": [], "answer": "1"}, "unknown key 'answer'"),
        ({"id": "c", "kind": "maths", "answer": "1"}, "kind is 'maths'"),
        ({"id": "c", "kind": "math", "anser": "1"}, "unknown key 'anser'; did you mean 'answer'"),
        ({"id": "c", "kind": "math", "answer": 1}, "answer is 1, a string"),
        ({"id": "c", "kind": "math", "answer": "1", "rule": "integr"}, "did you mean 'integer'"),
        ({"id": "a", "kind": "math", "answer": "1"}, "stands twice"),
    ],
)
def test_a_bad_problem_is_named_by_file_and_line(
    files: tuple[Path, Path, Path], row: dict[str, object], message: str
) -> None:
    write(files[1], [*PROBLEMS, row])
    with pytest.raises(DataError, match=rf"p\.jsonl:3: .*{message}"):
        run_judge(*files)


def test_a_reference_that_breaks_its_rule_is_named(files: tuple[Path, Path, Path]) -> None:
    write(files[1], [{**PROBLEMS[0], "answer": "7000", "rule": "integer_0_999"}, PROBLEMS[1]])
    with pytest.raises(DataError, match="a: the reference answer '7000'"):
        run_judge(*files)


def test_judge_errors_end_incomplete_and_are_tried_again(
    files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = MathJudge._ask

    def broken(self: MathJudge, keys: list[tuple[str, str, str]]) -> list[object]:
        from klearbench.judging.judge import _Judged

        return [_Judged(Comparison(None, "a judging worker died twice"), key[2]) for key in keys]

    write(files[0], [*COMPLETIONS, {"problem_id": "b", "sample_index": 1, "completion": "\\boxed{\\int_0^1 x dx}"}])
    monkeypatch.setattr(MathJudge, "_ask", broken)
    with pytest.raises(IncompleteError, match="1 of 5 rows are judge errors"):
        run_judge(*files)
    assert [r["status"] for r in read(files[2])][-1] == "judge_error"
    assert read(files[2])[-1]["score"] is None
    monkeypatch.setattr(MathJudge, "_ask", real)
    assert run_judge(*files).judged == 1
    assert [r["status"] for r in read(files[2])] == ["correct", "wrong_answer", "correct", "truncated", "correct"]


def test_both_lists_each_differing_verdict(files: tuple[Path, Path, Path]) -> None:
    write(files[1], [{"id": "a", "kind": "math", "answer": "10\\text{ cm}"}])
    rows = [
        {"problem_id": "a", "sample_index": i, "answer": text}
        for i, text in enumerate(["10\\text{ cm}", "10\\text{ kg}", "11"])
    ]
    write(files[0], rows)
    summary = run_judge(*files, math_judge="both")
    [difference] = read(files[2].with_name("v.jsonl.differences.jsonl"))
    assert difference["sample_index"] == 1
    assert (difference["strict"]["status"], difference["math-verify"]["status"]) == ("wrong_answer", "correct")
    assert summary.differences == 1 and "differ in 1 rows" in str(summary)
    assert run_judge(*files, math_judge="both").differences == 1


@pytest.mark.shared
def test_the_recorded_gsm8k_responses(shared: Path, tmp_path: Path) -> None:
    problems, completions, labels = [], [], []
    for row in read(shared / "data/gsm8k_model_solutions.jsonl"):
        problems.append({"id": row["id"], "kind": "math", "answer": row["answer"]})
        for index, response in enumerate(row["responses"]):
            completions.append({"problem_id": row["id"], "sample_index": index, "completion": response["response"]})
            labels.append(response["correct"])
    run_judge(write(tmp_path / "c.jsonl", completions), write(tmp_path / "p.jsonl", problems), tmp_path / "v.jsonl")
    verdicts = read(tmp_path / "v.jsonl")
    assert len(verdicts) == 5276
    agreed = sum((v["status"] == "correct") == label for v, label in zip(verdicts, labels, strict=True))
    assert agreed >= 0.99 * len(verdicts)
