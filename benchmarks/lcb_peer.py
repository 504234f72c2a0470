"""An in-process judge of code after LiveCodeBench's published design: the peer that `code_judging.py` measures against.

It is no part of klearbench. In our own words it does what the official judge does for each submission, so that its cost
is the official one's (0.9 to 1.0 of it, both run in turns on one machine). A manager process and a judging process are
started. In the latter destructive functions are set to None, star imports stand before the program, the program is
executed once, and each test calls it with a mocked stdin and an in-memory stdout, under an alarm. The expected outputs
lie in the same process. The first test that does not pass is the last.

    python benchmarks/lcb_peer.py       CPU milliseconds a submission of 3, 10, 50 and 200 trivial tests

Source of the facts: LiveCodeBench 15808c7, lcb_runner/evaluation/{testing_util,compute_code_generation_metrics}.py.
Never feed it a program that you would not run yourself.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from io import StringIO
from multiprocessing import get_context
from types import FrameType, ModuleType
from typing import Any
from unittest.mock import mock_open, patch

PASSED, WRONG, TIMEOUT, CRASHED, LOST = "passed", "wrong_answer", "time_limit", "runtime_error", "lost"

MODULES = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json"),
)
STAR_IMPORTS = [f"from {name} import *" for name in (*MODULES, "builtins", "typing")]
PREAMBLE = "\n".join([*STAR_IMPORTS, *(f"import {name}" for name in MODULES), "sys.setrecursionlimit(50000)", ""])

FORBIDDEN = {
    os: "kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg rename renames truncate replace "
    "unlink fchmod fchown chmod chown chroot lchflags lchmod lchown getcwd chdir",
    shutil: "rmtree move chown",
    subprocess: "Popen",
}


@dataclass(frozen=True)
class Submission:
    """A program and its tests, as the official judge gets them: JSON with inputs, outputs and fn_name (or null)."""

    code: str
    tests: str


def submission(code: str, inputs: Sequence[str], outputs: Sequence[str], fn_name: str | None = None) -> Submission:
    """One submission. Functional inputs hold a JSON value a line, functional outputs one JSON value."""
    return Submission(code, json.dumps({"inputs": list(inputs), "outputs": list(outputs), "fn_name": fn_name}))


def judge_many(submissions: Sequence[Submission], workers: int = 2, timeout_s: int = 6) -> list[list[str]]:
    """Judge in a pool of processes; the outcomes of each submission's tests up to the first that did not pass."""
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        return [future.result() for future in [pool.submit(judge, item, timeout_s) for item in submissions]]


def judge(item: Submission, timeout_s: int = 6) -> list[str]:
    """Judge one submission in a process of its own, its outcomes handed over by a manager process."""
    context = get_context("fork")
    count = len(json.loads(item.tests)["inputs"])
    manager = context.Manager()
    outcomes, details = manager.list(), manager.list()
    process = context.Process(target=_run_into, args=(item, timeout_s, outcomes, details))
    process.start()
    process.join(timeout=(timeout_s + 1) * count + 5)
    if process.is_alive():
        process.kill()
        process.join()
    return list(outcomes[0]) if outcomes else [LOST] * count


def _run_into(item: Submission, timeout_s: int, outcomes: Any, details: Any) -> None:
    signal.signal(signal.SIGALRM, _on_alarm)
    reliability_guard()
    found = run_tests(item, timeout_s)
    outcomes.append(found)
    details.append({"outcomes": found})


def reliability_guard() -> None:
    """Take destructive functions away from this process. Good for programs that mean no harm; no protection at all."""
    os.environ["OMP_NUM_THREADS"] = "1"
    for module, names in FORBIDDEN.items():
        for name in names.split():
            setattr(module, name, None)
    for name in ("ipdb", "joblib", "resource", "psutil", "tkinter"):
        sys.modules[name] = None  # type: ignore[assignment]


class OutOfTime(Exception):
    """The alarm went off."""


def _on_alarm(_signal: int, _frame: FrameType | None) -> None:
    raise OutOfTime


def run_tests(item: Submission, timeout_s: int) -> list[str]:
    """All tests in this process, up to the first that does not pass."""
    tests = json.loads(item.tests)
    fn_name = tests["fn_name"]
    try:
        source = PREAMBLE + item.code if fn_name else as_function(item.code)
        target = load(source, fn_name or "solve_once", timeout_s)
    except Exception:
        return [CRASHED]
    run_one = _call if fn_name else _feed
    outcomes: list[str] = []
    for given, expected in zip(tests["inputs"], tests["outputs"], strict=True):
        outcomes.append(_outcome(run_one, target, given, expected, timeout_s))
        if outcomes[-1] != PASSED:
            break
    return outcomes


def _outcome(run_one: Callable[..., bool], target: Callable[..., Any], given: str, wanted: str, timeout_s: int) -> str:
    try:
        return PASSED if run_one(target, given, wanted, timeout_s) else WRONG
    except OutOfTime:
        return TIMEOUT
    except Exception:
        return CRASHED


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    """Raise OutOfTime in the block after so many seconds of wall time."""
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def as_function(code: str) -> str:
    """A whole program as the body of a function, so that it can be called once a test; its imports stay outside."""
    body = ast.parse(code).body
    if isinstance(body[-1], ast.If) and ast.unparse(body[-1].test) == "__name__ == '__main__'":
        body = body[:-1] + body[-1].body
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    rest = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]
    wrapper = ast.parse("def solve_once(): pass").body[0]
    assert isinstance(wrapper, ast.FunctionDef)
    wrapper.body = rest or wrapper.body
    return "\n".join([PREAMBLE, *(ast.unparse(node) for node in [*imports, wrapper]), ""])


def load(source: str, name: str, timeout_s: int) -> Callable[..., Any]:
    """Execute a program as a module; its function, or the method of its Solution."""
    module = ModuleType("submission")
    with alarm(timeout_s):
        exec(source, module.__dict__)
        owner = module.Solution() if "class Solution" in source else module
    found: Callable[..., Any] = getattr(owner, name)
    return found


def _call(method: Callable[..., Any], given: str, expected: str, timeout_s: int) -> bool:
    arguments = [json.loads(line) for line in given.split("\n")]
    with alarm(timeout_s):
        value = method(*arguments)
    return bool((list(value) if isinstance(value, tuple) else value) == json.loads(expected))


def _feed(program: Callable[..., Any], given: str, expected: str, timeout_s: int) -> bool:
    captured = StringIO()
    with alarm(timeout_s), redirect_stdout(captured):
        _with_stdin(program, given)
    return same_output(captured.getvalue(), expected)


def _with_stdin(program: Callable[..., Any], given: str) -> None:
    lines = iter(given.split("\n"))
    with (
        patch("builtins.open", mock_open(read_data=given)),
        patch("sys.stdin", StringIO(given)),
        patch("sys.stdin.readline", lambda *_: next(lines)),
        patch("sys.stdin.readlines", lambda *_: given.split("\n")),
        patch("sys.stdin.read", lambda *_: given),
        suppress(SystemExit),
    ):
        program()


def same_output(printed: str, expected: str) -> bool:
    """Line by line after stripping: the same text, or the same numbers as exact decimals."""
    ours, theirs = ([line.strip() for line in text.strip().split("\n")] for text in (printed, expected))
    return len(ours) == len(theirs) and all(map(_same_line, ours, theirs))


def _same_line(printed: str, expected: str) -> bool:
    if printed == expected:
        return True
    try:
        return [Decimal(token) for token in printed.split()] == [Decimal(token) for token in expected.split()]
    except InvalidOperation:
        return False


def sums(tests: int, index: int = 0) -> Submission:
    """The trivial problem of all our figures: read a list, print its sum. No two indices give the same program."""
    code, inputs, outputs = sums_problem(tests, index)
    return submission(code, inputs, outputs)


def sums_problem(tests: int, index: int = 0) -> tuple[str, list[str], list[str]]:
    """(program, inputs, outputs) of the trivial problem; every test has an input of its own."""
    rows = [[i, i * 7 % 11, 3] for i in range(tests)]
    code = f"n = int(input())\nvalues = list(map(int, input().split()))\nprint(sum(values[:n]))  # {index}\n"
    return code, [f"3\n{' '.join(map(str, row))}\n" for row in rows], [f"{sum(row)}\n" for row in rows]


def cpu_s() -> float:
    """CPU seconds of this process and of every child that was waited for, theirs included."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def main() -> None:
    """Print the cost of a submission, the least of three tries."""
    for tests, count in ((3, 60), (10, 60), (50, 30), (200, 15)):
        costs = []
        for _ in range(3):
            before = cpu_s()
            outcomes = judge_many([sums(tests, index) for index in range(count)])
            costs.append((cpu_s() - before) / count)
            assert outcomes == [[PASSED] * tests] * count
        print(f"{tests:4d} tests: {1000 * min(costs):6.1f} CPU-ms a submission", flush=True)


if __name__ == "__main__":
    main()
