"""`klearbench score --rejudge`: what changes is found, and the run is only read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from codefakes import ToySandbox
from rejudge_tools import again, edit, edit_first, make, right_if_even, sums
from tools import ToyEngine, complaint, jsonl, run, snapshot, write_jsonl

from klearbench.changes import find_changes
from klearbench.engines.base import Generation
from klearbench.errors import IncompleteError
from klearbench.evaluate import EvalOptions, evaluate
from klearbench.judging.judge import MathJudge
from klearbench.suites.registry import load_suite
from klearbench.types import FinishReason, Status, Verdict, to_row

TESTS = [{"input": f"{i}\n", "output": f"{2 * i}\n"} for i in range(4)]
DOUBLE, HALF = "print(2 * int(input()))", "x = int(input())\nprint(2 * x if x < 2 else x)"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return make(tmp_path)


def records(path: Path) -> dict[str, bytes]:
    """The files of a run besides those of judging again."""
    return {name: raw for name, raw in snapshot(path).items() if not name.startswith("rejudge/")}


def verdict(index: int, status: str = "correct", **more: Any) -> Verdict:
    return Verdict("s", "p", index, Status(status), 1.0 if status == "correct" else 0.0, **more)


def write_verdicts(path: Path, *verdicts: Verdict) -> Path:
    return write_jsonl(path, map(to_row, verdicts))


def test_a_run_that_is_judged_alike_has_no_change_and_stays_as_it_is(made: Path) -> None:
    before = records(made)
    found = again(made)
    assert (found.samples, found.judged, found.changes, found.errors, found.differs) == ({"sums": 12}, 12, [], 0, {})
    assert found.scores == {"sums": (50.0, (50.0,))}
    found.refuse_changes()
    assert records(made) == before
    assert (made / "rejudge" / "changes.jsonl").read_bytes() == b""
    assert not (made / "rejudge" / ".lock").exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "wrong_answer"},
        {"score": 0.5},
        {"passed": 3, "total": 4},
        {"extracted": "01"},
        {"status": "judge_error", "score": None},
    ],
)
def test_each_field_that_says_something_is_compared(made: Path, fields: dict[str, Any]) -> None:
    edit(made, edit_first(**fields))
    found = again(made)
    assert [change.before.key for change in found.changes] == [("sums", "q0", 0)]
    (row,) = jsonl(made / "rejudge" / "changes.jsonl")
    assert {name: row["before"][name] for name in fields} == fields
    assert [(said["status"], said["score"], said["extracted"]) for said in row["after"]] == [("correct", 1.0, "1")]
    with pytest.raises(IncompleteError, match=r"1 of 12 verdicts changed: .*changes\.jsonl"):
        found.refuse_changes()


def test_times_memory_and_details_say_nothing(made: Path) -> None:
    edit(made, lambda _, row: row.update(cpu_s=9.0, wall_s=9.0, peak_mb=9.0, detail="otherwise", score=row["score"]))
    assert again(made).changes == []


def test_the_command_lists_the_changes_and_ends_with_3(made: Path) -> None:
    edit(made, lambda number, row: row.update(status="wrong_answer", score=0.0) if number in (0, 2) else None)
    before = records(made)
    done = run("klearbench", "score", made, "--rejudge", "--suite", made.parent / "sums.jsonl")
    assert complaint(done, 3) == f"klearbench: 2 of 12 verdicts changed: {made / 'rejudge' / 'changes.jsonl'}"
    assert done.stdout.splitlines() == [
        "sums q0 sample 0: wrong_answer -> correct",
        "sums q2 sample 0: wrong_answer -> correct",
        "12 samples judged again (12 verdicts now); 2 changed: wrong_answer -> correct (2); the same judge, so it is"
        " not steady, or this machine is too slow; sums 33.3 -> 50.0 points",
    ]
    assert records(made) == before
    summary = json.loads((made / "rejudge" / "summary.json").read_text())
    assert summary == {
        "times": 1, "samples": 12, "left_out": 0, "changed": 2, "differ_between_rounds": 0, "judge_errors": 0,
        "transitions": {"wrong_answer -> correct": 2},
        "suites": {"sums": {"samples": 12, "changed": 2, "before": pytest.approx(100 / 3), "after": [50.0]}},
        "same_judge": True, "judge_differs": {},
    }  # fmt: skip


def test_more_than_twenty_changes_are_left_to_the_file(tmp_path: Path) -> None:
    evaluate(tmp_path / "run", [sums(tmp_path)], ToyEngine(right_if_even), EvalOptions(samples=4))
    edit(tmp_path / "run", lambda _, row: row.update(extracted="other"))
    *lines, more, _ = again(tmp_path / "run").lines
    assert len(lines) == 20 and lines[0] == (
        "sums q0 sample 0: correct, score 1.0, extracted 'other' -> correct, score 1.0, extracted '1'"
    )
    assert more == f"... and 4 more: {tmp_path / 'run' / 'rejudge' / 'changes.jsonl'}"
    assert len(jsonl(tmp_path / "run" / "rejudge" / "changes.jsonl")) == 24


def test_a_change_in_any_round_counts(tmp_path: Path) -> None:
    recorded = write_verdicts(tmp_path / "0.jsonl", verdict(0), verdict(1), verdict(2, passed=3, total=8))
    rounds = [
        write_verdicts(tmp_path / "1.jsonl", verdict(0), verdict(1), verdict(2, passed=3, total=8)),
        write_verdicts(tmp_path / "2.jsonl", verdict(2, passed=4, total=8), verdict(1, "time_limit"), verdict(0)),
        write_verdicts(tmp_path / "3.jsonl", verdict(0), verdict(1), verdict(2, passed=4, total=8)),
    ]
    keys = {("s", "p", index) for index in range(3)}
    second, third = find_changes(recorded, rounds, keys)
    assert str(second) == "s p sample 1: correct -> correct (2 of 3), time_limit (1 of 3)"
    assert str(third) == "s p sample 2: correct 3/8 -> correct 3/8 (1 of 3), correct 4/8 (2 of 3)"
    assert (second.transition, second.steady) == ("correct -> correct | time_limit", False)
    assert find_changes(recorded, rounds[:1], keys) == []
    assert [c.steady for c in find_changes(recorded, rounds[2:], keys)] == [True]
    assert find_changes(recorded, rounds, {("s", "p", 0)}) == []


def test_a_program_that_answers_by_chance_is_found_in_a_few_rounds(tmp_path: Path) -> None:
    """Each of 24 tests is passed with a chance of a half. That five rounds pass the same number has the chance
    sum of (C(24,k)/2^24)^5 = 3.0e-4; that they do so for each of two samples, 9.3e-8."""
    chance = "import os\nint(input())\nprint(os.urandom(1)[0] % 2)"
    tests = [{"input": f"{i}\n", "output": "1\n"} for i in range(24)]
    rows = [
        {"id": "chance", "problem": "One.", "tests": tests},
        {"id": "steady", "problem": "Double.", "tests": TESTS},
    ]
    suite = load_suite(str(write_jsonl(tmp_path / "sums.jsonl", rows)))
    programs = {"chance": chance, "steady": DOUBLE}
    engine = ToyEngine(lambda request: f"```python\n{programs[request.place[0]]}\n```")
    evaluate(tmp_path / "run", [suite], engine, EvalOptions(samples=2))
    found = again(tmp_path / "run", times=5)
    assert found.samples == {"sums": 4} and found.judged == 20
    uneven = {change.before.problem_id for change in found.changes if not change.steady}
    assert uneven == {"chance"} == {change.before.problem_id for change in found.changes}
    assert "differ between rounds" in found.lines[-1]
    with pytest.raises(IncompleteError):
        found.refuse_changes()


def test_what_is_judged_of_programs_is_what_the_run_says(tmp_path: Path) -> None:
    rows = [{"id": "half", "problem": "Double.", "tests": TESTS}, {"id": "q0", "problem": "0 + 1?", "answer": "1"}]
    suite = load_suite(str(write_jsonl(tmp_path / "sums.jsonl", rows)))
    replies = {"half": f"```python\n{HALF}\n```", "q0": "The answer is \\boxed{1}"}
    for number, more in enumerate(({}, {"first_failure": True}, {"code_mode": "compat"})):
        out = tmp_path / f"run-{number}"
        engine = ToyEngine(lambda request: replies[request.place[0]])
        evaluate(out, [suite], engine, EvalOptions(sandbox=ToySandbox(), system="Think.", **more))
        found = again(out, sandbox=ToySandbox(), workers=2)
        assert (found.changes, found.differs, found.judged) == ([], {}, 2), more
        config = json.loads((out / "rejudge" / "manifest.json").read_text())["config"]
        recorded = json.loads((out / "manifest.json").read_text())["config"]
        assert {name: recorded[name] for name in ("judge", "code_judge")} | {"command": "rejudge"} == config


def test_judge_errors_of_the_run_have_a_verdict_now_and_ours_are_tried_again(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = MathJudge.judge

    def failing(judge: MathJudge, items: Any) -> list[Verdict]:
        said = real(judge, items)
        return [
            replace(v, status=Status.judge_error, score=None, extracted=None) if v.problem_id == "q1" else v
            for v in said
        ]

    monkeypatch.setattr(MathJudge, "judge", failing)
    broken = again(made)
    assert (broken.errors, len(broken.changes)) == (2, 2)
    with pytest.raises(IncompleteError, match="2 of 12 samples are judge errors"):
        broken.refuse_changes()
    monkeypatch.undo()
    healed = again(made)
    assert (healed.judged, healed.errors, healed.changes) == (2, 0, [])
    edit(made, edit_first(status="judge_error", score=None))
    (change,) = again(made).changes
    assert change.transition == "judge_error -> correct"


def test_samples_that_the_engine_failed_to_make_and_those_not_judged_yet_are_left_out(tmp_path: Path) -> None:
    class Failing(ToyEngine):
        def generate(self, requests: Any, sampling: Any) -> list[Generation]:
            made = super().generate(requests, sampling)
            failed = Generation("", FinishReason.error, 0, 0)
            return [failed if r.place[0] == "q1" else g for r, g in zip(requests, made, strict=True)]

    out = tmp_path / "run"
    evaluate(out, [sums(tmp_path)], Failing(right_if_even), EvalOptions(allow_partial=True))
    lines = (out / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (out / "verdicts.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:30])
    found = again(out)
    assert (found.samples, found.left_out, found.changes) == ({"sums": 3}, 3, [])
    assert "3 samples without a verdict left out" in found.lines[-1]
    evaluate(out, [sums(tmp_path)], ToyEngine(right_if_even), EvalOptions())
    assert again(out).samples == {"sums": 6}
