"""The code judge over a toy sandbox: statuses, limits, order, faults, checkers, the two modes side by side."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from klearbench.errors import ConfigError
from klearbench.judging import code as code_module
from klearbench.judging import lots
from klearbench.judging.code import CodeJudge
from klearbench.sandbox.base import RunResult, RunStatus, SandboxError, SandboxUnavailable
from klearbench.types import CodeTests, ExpectedOutputs, Sample, Status, Verdict
from klearbench.types import TestInputs as Inputs
from tests.klearbench.judging.fake_sandbox import (
    Call,
    FakeSandbox,
    Program,
    broken,
    double,
    doubling,
    nowhere,
    plus_one,
    ran,
    sample,
    sleepy,
)

PROGRAMS: dict[str, Program] = {"double": double, "plus_one": plus_one, "broken": broken}


def judge(items: list[tuple[Sample, CodeTests]], box: FakeSandbox, **options: Any) -> list[Verdict]:
    with CodeJudge(sandbox=box, **options) as judge:
        return judge.judge(items)


def one(result: RunResult | Program, tests: CodeTests, **options: Any) -> Verdict:
    """The verdict on a program that ends so on every input."""
    program = (lambda data, call: result) if isinstance(result, RunResult) else result
    [verdict] = judge([(sample("it"), tests)], FakeSandbox({"it": program}), **options)
    return verdict


def test_all_tests_pass() -> None:
    verdict = one(double, doubling())
    assert (verdict.status, verdict.score, verdict.passed, verdict.total) == (Status.correct, 1.0, 3, 3)
    assert verdict.extracted == "it"
    assert (verdict.cpu_s, verdict.wall_s) == (pytest.approx(0.03), pytest.approx(0.06))
    assert verdict.peak_mb == 10.0
    assert "[fake submission]" in verdict.detail


def test_the_score_is_the_share_of_passed_tests_and_the_status_that_of_the_first_failing_one() -> None:
    endings = {
        b"1": ran("2"),
        b"2": ran("5"),
        b"3": ran(exit_code=1, stderr=b"Traceback\nValueError: no"),
        b"4": ran("8"),
    }
    verdict = one(lambda data, call: endings[data], doubling([1, 2, 3, 4]))
    assert (verdict.status, verdict.score, verdict.passed, verdict.total) == (Status.wrong_answer, 0.5, 2, 4)
    assert verdict.detail == "test 2 of 4: line 1: expected '4', got '5' (input '2') [fake submission]"


@pytest.mark.parametrize(
    ("result", "status", "detail"),
    [
        (ran("2", exit_code=3, stderr=b"bad luck"), Status.runtime_error, "exit code 3: 'bad luck'"),
        (ran("2", status=RunStatus.signalled, exit_code=None, signal=11), Status.runtime_error, "signal 11"),
        (ran(status=RunStatus.cpu_limit, exit_code=None, signal=9, cpu_s=2.4), Status.time_limit, "2.40 s of CPU"),
        (ran(status=RunStatus.wall_limit, exit_code=None, cpu_s=0.1, wall_s=20), Status.time_limit, "20.0 s of wall"),
        (ran("2", status=RunStatus.memory_limit, exit_code=None), Status.memory_limit, "256 MiB"),
        (ran("2", status=RunStatus.output_limit, exit_code=None), Status.output_limit, "32 MiB"),
        (ran("2", cpu_s=2.5), Status.time_limit, "the limit is 2 s"),
        (ran("2", exit_code=1, cpu_s=2.5), Status.time_limit, "2.50 s of CPU"),
    ],
)
def test_how_a_run_fails(result: RunResult, status: Status, detail: str) -> None:
    verdict = one(result, doubling([1], time_limit_s=2.0, memory_limit_mb=256))
    assert (verdict.status, verdict.score, verdict.passed) == (status, 0.0, 0)
    assert "test 1 of 1: " in verdict.detail and detail in verdict.detail and "[fake submission]" in verdict.detail


def test_limits_given_to_the_sandbox() -> None:
    box = FakeSandbox(PROGRAMS)
    judge(
        [
            (sample("double"), doubling([1], time_limit_s=2.0, memory_limit_mb=300)),
            (sample("double", problem="q"), doubling([1], "q", time_limit_s=0.25, preamble="lcb")),
        ],
        box,
    )
    first, second = [command for _, command in box.submissions]
    assert (first.limits.cpu_s, first.limits.wall_s, first.limits.memory_mb) == (pytest.approx(2.4), 20.0, 300)
    assert (second.limits.cpu_s, second.limits.wall_s) == (pytest.approx(0.3), 5.25)
    assert (first.preamble, second.preamble, first.wait_for_threads) == (None, "lcb", True)


def test_a_program_that_does_not_compile_fails_as_a_whole_and_is_tried_once() -> None:
    box = FakeSandbox({"it": lambda d, c: ran(status=RunStatus.compile_error, exit_code=None, stderr=b"SyntaxError")})
    [verdict] = judge([(sample("it"), doubling(range(10)))], box)
    assert (verdict.status, verdict.score, verdict.passed, verdict.total) == (Status.compile_error, 0.0, 0, 10)
    assert verdict.detail == "'SyntaxError' [fake submission]"
    assert len(box.calls) == 1


@pytest.mark.parametrize(
    ("text", "finish", "status"),
    [
        ("no code at all", "stop", Status.no_answer),
        ("no code at all", "length", Status.truncated),
        ("```python\ndouble", "length", Status.truncated),
        ("```python\ndouble", "stop", Status.correct),
        ("```python\ndouble\n```\nand then", "length", Status.correct),
        ("```python\n\n```", "stop", Status.no_answer),
    ],
)
def test_samples_without_a_whole_program(text: str, finish: str, status: Status) -> None:
    [verdict] = judge([(sample(text, raw=True, finish=finish), doubling())], FakeSandbox(PROGRAMS))
    assert verdict.status is status
    assert verdict.score == (1.0 if status is Status.correct else 0.0)
    assert (verdict.passed, verdict.total) == ((3, 3) if status is Status.correct else (0, 3))


def test_a_program_that_is_taken_as_it_is() -> None:
    box = FakeSandbox(PROGRAMS)
    rows = [(sample(text, i, raw=True, finish="length"), doubling(), True) for i, text in enumerate(["double", " \n"])]
    with CodeJudge(sandbox=box) as judge:
        verdicts = [judged.verdict for judged in judge.stream_rows(rows)]
    assert [v.status for v in verdicts] == [Status.correct, Status.no_answer]


def test_long_programs_are_shown_in_part() -> None:
    text = "double" + " " * 5000
    [verdict] = judge([(sample(text), doubling())], FakeSandbox({text: double}))
    assert verdict.status is Status.correct
    assert len(verdict.extracted or "") < 1100 and "(5006 characters)" in (verdict.extracted or "")


def test_functional_values_are_compared_and_their_absence_is_an_error() -> None:
    tests = CodeTests(
        Inputs("p", "functional", ("[1, 2]", "[3]", "[0]"), fn_name="f"),
        ExpectedOutputs("p", ("[2, 4]", "[6]", "null")),
    )
    values = {b"[1, 2]": b'{"t":[2,4]}', b"[3]": b"[7]", b"[0]": b""}
    verdict = one(lambda data, call: ran("noise", value=values[data]), tests)
    assert (verdict.status, verdict.passed) == (Status.wrong_answer, 1)
    assert "test 2 of 3: at [0]: expected 6, got 7" in verdict.detail
    values[b"[3]"] = b"[6]"
    verdict = one(lambda data, call: ran("noise", value=values[data]), tests)
    assert (verdict.status, verdict.passed) == (Status.runtime_error, 2)
    assert "no value was returned" in verdict.detail


def near_limit(alone_cpu: float, crowded_cpu: float, alone_status: RunStatus = RunStatus.exited) -> Program:
    """Uses more CPU time the first time an input is met."""
    met: set[bytes] = set()

    def program(data: bytes, call: Call) -> RunResult:
        first = data not in met
        met.add(data)
        if first:
            return ran(double(data, call).stdout, cpu_s=crowded_cpu)
        return ran(double(data, call).stdout, cpu_s=alone_cpu, status=alone_status)

    return program


@pytest.mark.parametrize(
    ("alone", "crowded", "status", "runs"),
    [
        (0.95, 1.1, Status.correct, 2),
        (1.05, 1.1, Status.time_limit, 2),
        (1.05, 0.95, Status.time_limit, 2),
        (0.5, 0.89, Status.correct, 1),
        (0.5, 1.25, Status.time_limit, 1),
    ],
)
def test_near_the_limit_a_run_alone_decides(alone: float, crowded: float, status: Status, runs: int) -> None:
    box = FakeSandbox({"it": near_limit(alone, crowded)})
    [verdict] = judge([(sample("it"), doubling([7], time_limit_s=1.0))], box)
    assert (verdict.status, len(box.calls)) == (status, runs)
    assert verdict.cpu_s == pytest.approx(alone if runs == 2 else crowded)


@pytest.mark.parametrize(("cpu_s", "runs"), [(0.02, 1), (0.3, 2)])
def test_a_starved_run_gets_another_chance_and_a_sleeper_none(cpu_s: float, runs: int) -> None:
    box = FakeSandbox({})

    def program(data: bytes, call: Call) -> RunResult:
        if len(box.calls) == 1:
            return ran(status=RunStatus.wall_limit, exit_code=None, cpu_s=cpu_s, wall_s=10)
        return double(data, call)

    box.programs["it"] = program
    [verdict] = judge([(sample("it"), doubling([7], time_limit_s=1.0))], box)
    assert len(box.calls) == runs
    assert verdict.status is (Status.correct if runs == 2 else Status.time_limit)


@pytest.mark.parametrize("workers", [1, 4])
def test_after_three_tests_that_sleep_the_rest_counts_as_failed(workers: int) -> None:
    def program(data: bytes, call: Call) -> RunResult:
        if int(data) in (2, 4, 5):
            return ran(status=RunStatus.wall_limit, exit_code=None, signal=9, cpu_s=0.0)
        return double(data, call)

    box = FakeSandbox({"it": program})
    [verdict] = judge([(sample("it"), doubling(range(1, 101)))], box, workers=workers)
    assert (verdict.status, verdict.passed, verdict.total) == (Status.time_limit, 2, 100)
    assert verdict.detail.startswith("test 2 of 100: ")
    if workers == 1:
        assert sorted(map(int, box.seen("it"))) == [1, 2, 3, 4, 5]


def test_one_that_sleeps_has_one_run_alone() -> None:
    starved = ran(status=RunStatus.wall_limit, exit_code=None, signal=9, cpu_s=1.0)
    box = FakeSandbox({"it": lambda data, call: starved})
    [verdict] = judge([(sample("it"), doubling((1, 2, 3)))], box)
    assert (verdict.status, verdict.passed) == (Status.time_limit, 0)
    assert len(box.calls) == 4  # each once, and the first once more


def test_what_runs_again_runs_alone_and_nothing_is_lost_by_it() -> None:
    box = FakeSandbox({"busy": sleepy(0.002)})
    met: set[bytes] = set()
    beside: list[int] = []

    def program(data: bytes, call: Call) -> RunResult:
        if data not in met:
            met.add(data)
            return ran(double(data, call).stdout, cpu_s=1.1)
        beside.append(call.others)
        time.sleep(0.01)
        beside.append(box.running - 1)
        return ran(double(data, call).stdout, cpu_s=0.9)

    box.programs["near"] = program
    items = []
    for i in range(12):
        items.append((sample("busy", i, "b"), doubling(range(20), "b", time_limit_s=1.0)))
        items.append((sample("near", i, "n"), doubling([100 + 2 * i, 101 + 2 * i], "n", time_limit_s=1.0)))
    verdicts = judge(items, box, workers=4)
    assert {v.status for v in verdicts} == {Status.correct}
    assert box.most > 1 and len(beside) == 48 and set(beside) == {0}


def test_equal_inputs_run_once_and_are_compared_each_with_its_own_output() -> None:
    box = FakeSandbox(PROGRAMS)
    tests = doubling([5, 6, 5, 5], outputs=["10", "12", "11", "10"])
    [verdict] = judge([(sample("double"), tests)], box)
    assert box.seen("double") == [b"5", b"6"]
    assert (verdict.status, verdict.passed, verdict.total) == (Status.wrong_answer, 3, 4)
    assert "test 3 of 4: line 1: expected '11', got '10'" in verdict.detail


def test_lots_of_one_submission_share_the_slots_and_the_first_failing_test_wins() -> None:
    box = FakeSandbox({})

    def program(data: bytes, call: Call) -> RunResult:
        if data == b"3":
            time.sleep(0.2)  # found last, but first in the tests' order
            return ran("wrong")
        return ran(exit_code=1) if data == b"90" else double(data, call)

    box.programs["it"] = program
    [verdict] = judge([(sample("it"), doubling(range(100)))], box, workers=4)
    assert len({call.slot for call in box.calls}) > 1
    assert (verdict.status, verdict.passed) == (Status.wrong_answer, 98)
    assert "test 4 of 100" in verdict.detail
    assert len(box.calls) == 100


@pytest.mark.parametrize("workers", [1, 4])
def test_first_failure_stops_and_gives_the_same_status(workers: int) -> None:
    box = FakeSandbox({})

    def program(data: bytes, call: Call) -> RunResult:
        if int(data) in (30, 70):
            return ran(exit_code=1)
        return ran("x") if int(data) == 20 else double(data, call)

    box.programs["it"] = program
    tests = doubling(range(100))
    [whole] = judge([(sample("it"), tests)], box, workers=workers)
    box.calls.clear()
    [early] = judge([(sample("it"), tests)], box, workers=workers, first_failure=True)
    assert whole.status is early.status is Status.wrong_answer
    assert (whole.passed, early.passed) == (97, 20)
    assert early.detail.partition(" [")[0] == whole.detail.partition(" [")[0]
    assert len(box.calls) < 100
    if workers == 1:
        assert len(box.calls) == 21


def test_first_failure_waits_for_what_is_decided_alone() -> None:
    """Test 1 ends near its limit and test 2 fails: which of them is the first failing one, the run alone says."""
    for alone, status in [(0.5, Status.wrong_answer), (1.1, Status.time_limit)]:
        near = near_limit(alone, 1.1)
        verdict = one(
            lambda data, call, near=near: near(data, call) if data == b"1" else ran("x"),
            doubling(time_limit_s=1.0),
            first_failure=True,
        )
        assert verdict.status is status


def test_verdicts_come_in_the_order_of_the_rows_from_a_bounded_window() -> None:
    box = FakeSandbox({"double": double, "slow": sleepy(0.05)})
    taken = 0

    def items() -> Iterator[tuple[Sample, CodeTests]]:
        nonlocal taken
        for i in range(200):
            taken += 1
            yield sample("slow" if i == 0 else "double", i), doubling()

    with CodeJudge(sandbox=box, workers=2) as judge:
        stream = judge.stream(items())
        first = next(stream)
        assert taken <= 2 * 16 + 1
        rest = list(stream)
    assert [v.sample_index for v in [first, *rest]] == list(range(200))
    assert taken == 200


def test_large_inputs_are_held_once_and_let_go() -> None:
    class Big(str):
        __slots__ = ("__weakref__",)

    box = FakeSandbox({"it": lambda data, call: ran("1")})
    alive: list[weakref.ref[Big]] = []
    most = 0

    def items() -> Iterator[tuple[Sample, CodeTests]]:
        nonlocal most
        for i in range(200):
            text = Big("x" * 1000 + str(i))
            alive.append(weakref.ref(text))
            most = max(most, sum(ref() is not None for ref in alive))
            yield (
                sample("it", i, f"p{i}"),
                CodeTests(Inputs(f"p{i}", "stdio", (text,)), ExpectedOutputs("p", ("1",))),
            )

    with CodeJudge(sandbox=box, workers=2) as judge:
        for _ in judge.stream(items()):
            box.calls.clear()
            box.submissions.clear()
        gc.collect()
        assert most <= 2 * 16 + 4
        assert sum(ref() is not None for ref in alive) <= 2


def test_a_long_lot_gives_half_of_what_is_left_to_a_free_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lots, "SHARE_AFTER_S", 0.05)
    box = FakeSandbox({"slow": sleepy(0.04)})
    numbers = range(1, 17)
    [verdict] = judge([(sample("slow"), doubling(numbers))], box, workers=4)
    assert (verdict.status, verdict.passed, verdict.total) == (Status.correct, 16, 16)
    assert sorted(map(int, box.seen("slow"))) == list(numbers)  # each once
    assert len({call.slot for call in box.calls}) > 1
    assert box.most > 1


def test_problems_known_to_be_slow_go_first() -> None:
    box = FakeSandbox({})
    release = threading.Event()
    box.programs["wait"] = lambda data, call: (release.wait(10), double(data, call))[1]
    box.programs["slow"] = lambda data, call: ran(double(data, call).stdout, cpu_s=0.5)
    box.programs["double"] = double
    with CodeJudge(sandbox=box) as judge:
        judge.judge([(sample("slow", 0, "slow"), doubling([1], "slow"))])
        box.calls.clear()

        def items() -> Iterator[tuple[Sample, CodeTests]]:
            yield sample("wait"), doubling([1])
            while not box.running:
                time.sleep(0.001)
            yield sample("double", 1), doubling([1])
            yield sample("slow", 1, "slow"), doubling([1], "slow")
            release.set()

        verdicts = list(judge.stream(items()))
    assert [call.command.code for call in box.calls] == ["wait", "slow", "double"]
    assert [v.problem_id for v in verdicts] == ["p", "p", "slow"]


def test_a_slot_that_dies_costs_nothing_but_a_new_slot() -> None:
    box = FakeSandbox({})
    died: list[str] = []

    def program(data: bytes, call: Call) -> RunResult:
        if data == b"2" and not died:
            died.append(call.slot)
            raise SandboxError(f"{call.slot} died")
        return double(data, call)

    box.programs["it"] = program
    [verdict] = judge([(sample("it"), doubling())], box)
    assert (verdict.status, verdict.passed) == (Status.correct, 3)
    assert verdict.cpu_s == pytest.approx(0.03)
    assert box.seen("it") == [b"1", b"2", b"2", b"3"]
    assert died == ["fake:1 submission"] and box.calls[-1].slot == "fake:2 submission"


@pytest.mark.parametrize("workers", [1, 3])
def test_a_fault_is_a_judge_error_without_a_score_and_loses_nothing_else(workers: int) -> None:
    box = FakeSandbox(PROGRAMS)
    items = [(sample("broken" if i == 5 else "double", i), doubling()) for i in range(12)]
    verdicts = judge(items, box, workers=workers)
    assert [v.status for v in verdicts] == [Status.judge_error if i == 5 else Status.correct for i in range(12)]
    fault = verdicts[5]
    assert (fault.score, fault.passed, fault.total) == (None, None, 3)
    assert "died" in fault.detail
    assert box.seen("broken") == [b"1", b"1"]
    assert box.open_slots == set()


def test_a_slot_that_gives_too_few_results_is_a_fault() -> None:
    class Short(FakeSandbox):
        def open(self, role: str = "submission") -> Any:
            slot = super().open(role)
            real = slot.run
            slot.run = lambda command, inputs: real(command, list(inputs)[:1])  # type: ignore[method-assign]
            return slot

    [verdict] = judge([(sample("double"), doubling([1, 2]))], Short(PROGRAMS))
    assert verdict.status is Status.correct  # one result a try, and two tries
    [verdict] = judge([(sample("double"), doubling([1, 2, 3, 4]))], Short(PROGRAMS))
    assert verdict.status is Status.judge_error and "fewer results" in verdict.detail


def test_a_bug_of_ours_is_no_fault_of_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("klearbench.judging.lots.held_against", bug)
    verdicts = judge([(sample("double", i), doubling()) for i in range(3)], FakeSandbox(PROGRAMS))
    assert [(v.status, v.score) for v in verdicts] == [(Status.judge_error, None)] * 3
    assert "KeyError" in verdicts[0].detail
    for place in ("submission.read_program", "views.View.verdict"):
        monkeypatch.undo()
        monkeypatch.setattr(f"klearbench.judging.{place}", bug)
        [verdict] = judge([(sample("double"), doubling())], FakeSandbox(PROGRAMS))
        assert (verdict.status, verdict.score) == (Status.judge_error, None)


def test_no_sandbox_at_all_is_said_at_once() -> None:
    with CodeJudge(sandbox=FakeSandbox(PROGRAMS, nowhere), workers=2) as judge:
        with pytest.raises(SandboxUnavailable, match="run as root, or choose"):
            judge.judge([(sample("double", i), doubling()) for i in range(50)])
        with pytest.raises(SandboxUnavailable):
            asyncio.run(judge.judge_async([(sample("double"), doubling())]))


def test_a_sandbox_that_goes_away_in_mid_run_is_a_judge_error() -> None:
    def opening(number: int, role: str) -> None:
        if number > 1:
            nowhere(number, role)

    box = FakeSandbox(PROGRAMS, opening)
    with CodeJudge(sandbox=box) as kept:
        verdicts = [kept.judge([(sample(code), doubling())])[0] for code in ("double", "broken", "double")]
    assert [v.status for v in verdicts] == [Status.correct, Status.judge_error, Status.judge_error]
    assert "no user namespaces" in verdicts[2].detail


@pytest.mark.parametrize("tests", [doubling([]), doubling([1, 2], outputs=["2"])])
def test_tests_that_would_prove_nothing_are_our_fault(tests: CodeTests) -> None:
    box = FakeSandbox(PROGRAMS)
    [verdict] = judge([(sample("double"), tests)], box)
    assert (verdict.status, verdict.score) == (Status.judge_error, None)
    assert "problem 'p' has" in verdict.detail and not box.calls


def test_an_expected_value_that_is_no_json_is_our_fault_and_not_tried_again() -> None:
    tests = CodeTests(Inputs("p", "functional", ("1",), fn_name="f"), ExpectedOutputs("p", ("{",)))
    box = FakeSandbox({"it": lambda data, call: ran(value=b"1")})
    [verdict] = judge([(sample("it"), tests)], box)
    assert (verdict.status, verdict.score, len(box.calls)) == (Status.judge_error, None, 1)
    assert "test 1 of problem 'p'" in verdict.detail


CHECKER = "def check(input, expected, output):\n    return True\n"


def says(value: bytes, **fields: Any) -> Program:
    return lambda data, call: ran(value=value, **fields)


def test_a_trusted_checker_judges_on_the_host() -> None:
    box = FakeSandbox({"it": lambda data, call: ran("b a")})
    tests = doubling([1, 2], outputs=["a b", "a c"], checker="unordered_tokens")
    [verdict] = judge([(sample("it"), tests)], box)
    assert (verdict.status, verdict.passed) == (Status.wrong_answer, 1)
    assert {call.role for call in box.calls} == {"submission"}


def test_a_checker_program_runs_in_slots_of_its_own() -> None:
    def check(data: bytes, call: Call) -> RunResult:
        given, expected, output = [json.loads(line) for line in data.splitlines()]
        return ran(value=b"true" if int(output) == int(given) + int(expected) else b"false")

    box = FakeSandbox({"it": lambda data, call: ran(str(int(data) + 100)), CHECKER: check})
    tests = doubling([1, 2, 3], outputs=["100", "100", "7"], checker=CHECKER)
    [verdict] = judge([(sample("it"), tests)], box)
    assert (verdict.status, verdict.passed) == (Status.wrong_answer, 2)
    assert verdict.detail == "test 3 of 3: the checker refuses the output (input '3') [fake submission]"
    roles = {call.command.code: {(c.role, c.slot) for c in box.calls if c.command.code == call.command.code}
             for call in box.calls}  # fmt: skip
    assert roles == {"it": {("submission", "fake:1 submission")}, CHECKER: {("checker", "fake:2 checker")}}
    assert not any(b"100" in call.data for call in box.calls if call.role == "submission")


@pytest.mark.parametrize(
    ("checker", "detail"),
    [
        (says(b"", exit_code=1, stderr=b"IndexError: no"), "exit code 1: 'IndexError: no'"),
        (says(b"", status=RunStatus.cpu_limit, exit_code=None), "cpu_limit"),
        (says(b"1"), "True or False is expected"),
        (says(b"garbage"), "failed on test 1"),
    ],
)
def test_a_checker_that_fails_is_our_fault(checker: Program, detail: str) -> None:
    box = FakeSandbox({"double": double, CHECKER: checker})
    [verdict] = judge([(sample("double"), doubling(checker=CHECKER))], box)
    assert (verdict.status, verdict.score) == (Status.judge_error, None)
    assert "the checker program of problem 'p'" in verdict.detail and detail in verdict.detail
    assert len(box.seen("double")) == 3


def test_a_checker_slot_that_dies_is_tried_again_without_running_the_program_again() -> None:
    box = FakeSandbox({"double": double})
    calls: list[str] = []

    def check(data: bytes, call: Call) -> RunResult:
        calls.append(call.slot)
        return broken(data, call) if len(calls) == 2 else ran(value=b"true")

    box.programs[CHECKER] = check
    [verdict] = judge([(sample("double"), doubling(checker=CHECKER))], box)
    assert (verdict.status, verdict.passed) == (Status.correct, 3)
    assert len(box.seen("double")) == 3


def test_the_modes_side_by_side() -> None:
    programs: dict[str, Program] = {
        "close": lambda data, call: ran("1.0000001"),
        "leaves": lambda data, call: ran("1.0", exit_code=1),
        "crashes": lambda data, call: ran("1.0", exit_code=1, stderr=b"Traceback (most recent call last):\n ..."),
        "wrong": lambda data, call: ran("2"),
    }
    box = FakeSandbox(programs)
    tests = doubling([1, 2], outputs=["1.0", "1.0"], preamble="lcb")
    texts = [f"```python\n{name}\n```" for name in programs]
    texts.append("```python\nwrong\n```\nIt prints\n```\nclose\n```")
    rows = [(sample(text, i, raw=True), tests, False) for i, text in enumerate(texts)]
    with CodeJudge(sandbox=box, mode="both") as judge:
        judged = list(judge.stream_rows(rows))
    pairs = [(j.verdict.status, j.other.status if j.other else None) for j in judged]
    wrong, right, crash = Status.wrong_answer, Status.correct, Status.runtime_error
    assert pairs == [(right, wrong), (crash, right), (crash, crash), (wrong, wrong), (wrong, wrong)]
    assert [j.cause for j in judged] == [
        "comparison (test 1: strict correct, compat wrong_answer)",
        "exit code (test 1: strict runtime_error, compat correct)",
        "",
        "",
        "",
    ]
    first = judged[0].difference()
    assert first is not None and judged[2].difference() is None
    assert (first["problem_id"], first["sample_index"], first["cause"]) == ("p", 0, judged[0].cause)
    assert (first["strict"]["status"], first["compat"]["status"]) == ("correct", "wrong_answer")
    assert len(box.seen("close")) == 2 + 1  # shared by both modes; and once as another block, to the first failure


def test_compat_alone_imports_stops_early_and_leaves_threads() -> None:
    box = FakeSandbox({"import threading": plus_one})
    [verdict] = judge([(sample("import threading"), doubling())], box, mode="compat")
    assert (verdict.status, verdict.passed, verdict.total) == (Status.wrong_answer, 1, 3)
    assert len(box.calls) == 2
    command = box.calls[0].command
    assert (command.preamble, command.wait_for_threads) == ("lcb", False)


def test_async_awaits_beside_other_tasks() -> None:
    box = FakeSandbox({"it": sleepy(0.02)})
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    async def main(judge: CodeJudge) -> list[list[Verdict]]:
        ticking = asyncio.create_task(tick())
        items = [(sample("it", i), doubling()) for i in range(4)]
        both = await asyncio.gather(judge.judge_async(items), judge.judge_async(items[:2]))
        ticking.cancel()
        return list(both)

    with CodeJudge(sandbox=box, workers=2) as judge:
        four, two = asyncio.run(main(judge))
    assert [v.sample_index for v in four] == [0, 1, 2, 3] and [v.sample_index for v in two] == [0, 1]
    assert {v.status for v in four + two} == {Status.correct}
    assert ticks > 20


def test_async_cancelled_gives_up_what_is_not_run() -> None:
    box = FakeSandbox({"it": sleepy(0.05)})

    async def main(judge: CodeJudge) -> None:
        task = asyncio.create_task(judge.judge_async([(sample("it", i), doubling()) for i in range(50)]))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with CodeJudge(sandbox=box) as judge:
        asyncio.run(main(judge))
        assert [v.status for v in judge.judge([(sample("it"), doubling([1]))])] == [Status.correct]
    assert len(box.calls) < 10


def test_an_iterator_that_is_closed_gives_up_the_rest() -> None:
    box = FakeSandbox({"it": sleepy(0.01)})
    with CodeJudge(sandbox=box) as judge:
        stream = judge.stream((sample("it", i), doubling()) for i in range(50))
        next(stream)
        stream.close()  # type: ignore[attr-defined]
        time.sleep(0.1)
        assert len(box.calls) < 12


def test_an_interrupt_ends_promptly(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import signal

    box = FakeSandbox({})
    box.programs["it"] = lambda data, call: (time.sleep(0.5), double(data, call))[1]
    threads = threading.active_count()
    started = time.monotonic()
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt), CodeJudge(sandbox=box, workers=2) as judge:
        judge.judge([(sample("it", i), doubling()) for i in range(400)])
    assert time.monotonic() - started < 15  # all would take five minutes
    assert box.open_slots == set()
    assert threading.active_count() <= threads


def test_close_ends_everything_and_a_given_sandbox_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    box = FakeSandbox(PROGRAMS)
    threads = threading.active_count()
    judge = CodeJudge(sandbox=box, workers=3)
    judge.judge([(sample("double", i), doubling()) for i in range(9)])
    judge.close()
    judge.close()
    assert (box.open_slots, box.closed, threading.active_count()) == (set(), False, threads)
    monkeypatch.setattr(code_module, "build_sandbox", lambda name: box)
    with CodeJudge() as judge:
        judge.judge([(sample("double"), doubling())])
    assert box.closed


def test_nothing_starts_for_samples_without_a_program() -> None:
    box = FakeSandbox(PROGRAMS)
    judge([(sample("no code", raw=True), doubling())], box, workers=4)
    assert box.opened == 0


def test_wrong_options_and_identity() -> None:
    with pytest.raises(ConfigError, match=r"unknown sandbox 'dokcer'; did you mean 'docker'"):
        CodeJudge(sandbox="dokcer")
    with pytest.raises(ConfigError, match=r"unknown mode of judging 'lax'"):
        CodeJudge(mode="lax")
    with pytest.raises(ConfigError, match="workers is 0"):
        CodeJudge(workers=0)
    assert CodeJudge(sandbox="docker", first_failure=True).identity() == {
        "name": "code", "version": 1, "mode": "strict", "sandbox": "docker", "first_failure": True,
    }  # fmt: skip
