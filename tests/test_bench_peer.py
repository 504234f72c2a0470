"""The peer that the benchmark of code judging measures against is a real judge: its verdicts are right."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from benchmarks.lcb_peer import CRASHED, PASSED, TIMEOUT, WRONG, judge_many, same_output, submission, sums

ADD = "class Solution:\n    def add(self, a: int, b: List[int]) -> int:\n        return a + sum(b)\n"
LOOP = "while True:\n    pass\n"

PROGRAMS = {
    "right": (submission("print(int(input()) + 1)", ["1\n", "2\n"], ["2\n", "3\n"]), [PASSED, PASSED]),
    "main guard": (
        submission("import sys\nif __name__ == '__main__':\n    print(sys.stdin.read().strip())", ["x\n"], ["x"]),
        [PASSED],
    ),
    "exit": (submission("print(1)\nexit()", ["", ""], ["1", "1"]), [PASSED, PASSED]),
    "equal as decimals": (submission("print('1.50')", [""], ["1.5"]), [PASSED]),
    "wrong": (submission("print(2)", ["", ""], ["2", "3"]), [PASSED, WRONG]),
    "stops at the first": (submission("print(2)", ["", ""], ["3", "2"]), [WRONG]),
    "crashing": (submission("print(1 // int(input()))", ["1\n", "0\n"], ["1", "0"]), [PASSED, CRASHED]),
    "no syntax": (submission("print(", [""], [""]), [CRASHED]),
    "looping": (submission(LOOP, [""], [""]), [TIMEOUT]),
    "function, right": (submission(ADD, ["1\n[2, 3]", "0\n[]"], ["6", "0"], "add"), [PASSED, PASSED]),
    "function, wrong": (submission(ADD, ["1\n[2, 3]"], ["7"], "add"), [WRONG]),
    "function, tuple": (submission("def f(n):\n    return (n,)", ["1"], ["[1]"], "f"), [PASSED]),
    "function, crashing": (submission(ADD, ["1\n2"], ["3"], "add"), [CRASHED]),
    "function, looping": (submission("def f(n):\n    " + LOOP.replace("\n    ", " "), ["1"], ["1"], "f"), [TIMEOUT]),
}


def in_a_fresh_process(*args, **options):
    """`judge_many` in a process of its own: it forks, which fails where DeepSpeed's tests have mapped 48 GB before."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(judge_many, *args, **options).result()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[str]]:
    return dict(zip(PROGRAMS, in_a_fresh_process([item for item, _ in PROGRAMS.values()], 2, timeout_s=1), strict=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_peer_judges_a_program_as_its_published_design_does(name: str, outcomes: dict[str, list[str]]) -> None:
    assert outcomes[name] == PROGRAMS[name][1]


def test_the_trivial_problem_of_the_bench_passes_and_its_programs_differ() -> None:
    first, second = sums(4), sums(4, 1)
    assert first.code != second.code
    assert in_a_fresh_process([first, second]) == [[PASSED] * 4] * 2


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("a b\n", " a b", True),
        ("1\n2", "1\n3", False),
        ("1\n", "1\n\n2", False),
        ("1e1", "10", True),
        ("x", "1", False),
    ],
)
def test_outputs_are_compared_line_by_line(printed: str, expected: str, same: bool) -> None:
    assert same_output(printed, expected) is same
