"""Fuzz of the code judge on the local sandbox: whatever a program is or writes, a verdict comes out and nothing stays.

2,000 programs, the same ones in every run: random bytes, valid programs with random edits, programs that write random
bytes or return random values. They run in batches, so that a few hundred examples of each kind take seconds.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.sandbox_load import descendants
from klearbench.judging.code import CodeJudge
from klearbench.judging.submission import Judged
from klearbench.types import CodeTests, ExpectedOutputs, FinishReason, Sample, Status
from klearbench.types import TestInputs as Inputs
from tests.klearbench.judging.fake_sandbox import doubling

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(400)]

BATCH = 25
DEFINED = set(Status) - {Status.judge_error, Status.truncated}
VALID = (
    "n = int(input())\nprint(n * 2)\n",
    "import sys\nfor line in sys.stdin:\n    print(*[2 * int(word) for word in line.split()])\n",
    "def f(n):\n    return n + n\n\nif __name__ == '__main__':\n    print(f(int(input())))\n",
    "import os\nos.write(1, str(2 * int(os.read(0, 9))).encode())\n",
    "from collections import deque\nd = deque([int(input())])\nwhile d:\n    print(d.popleft() << 1)\n",
    "try:\n    x = int(input())\nfinally:\n    print(2 * x, end='')\nraise SystemExit(0)\n",
    "class A:\n    def __del__(self):\n        print(2 * self.n)\na = A()\na.n = int(input())\n",
    "import threading\nt = threading.Thread(target=lambda: print(2 * int(input())))\nt.start(); t.join()\n",
)
LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
One = TypeVar("One")
found: Counter[Status] = Counter()


def texts_of_bytes(size: int) -> st.SearchStrategy[str]:
    return st.binary(max_size=size).map(lambda data: data.decode("utf-8", "surrogateescape"))


@st.composite
def edited(draw: st.DrawFn) -> str:
    """A valid program of which a piece is left out, doubled, or replaced by another program's, or by random bytes."""
    code = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 3))):
        start, end = sorted((draw(st.integers(0, len(code))), draw(st.integers(0, len(code)))))
        other = draw(st.sampled_from(VALID))
        piece = draw(st.sampled_from(["", 2 * code[start:end], other[start:end], None]))
        code = code[:start] + (draw(texts_of_bytes(6)) if piece is None else piece) + code[end:]
    return code


def batches(one: st.SearchStrategy[One]) -> st.SearchStrategy[list[One]]:
    return st.lists(one, min_size=BATCH, max_size=BATCH)


def fuzz(programs: int) -> settings:
    """So many programs; the same ones each time, and no time spent on making a failure smaller by running more."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
    return settings(
        max_examples=programs // BATCH, derandomize=True, database=None, deadline=None, suppress_health_check=checks
    )


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeJudge]:
    """One judge for all; afterwards nothing of it is left: no process, no temporary file, no shared memory."""
    scratch, before, shm = tmp_path_factory.mktemp("tmp"), descendants().keys(), set(os.listdir("/dev/shm"))
    with pytest.MonkeyPatch.context() as patch, CodeJudge(mode="both", workers=2) as judge:
        patch.setenv("TMPDIR", str(scratch))
        patch.setattr(tempfile, "tempdir", None)
        yield judge
    ends = time.monotonic() + 20
    while (left := descendants().keys() - before) and time.monotonic() < ends:
        time.sleep(0.02)
    assert not left
    assert list(Path(scratch).iterdir()) == []
    assert set(os.listdir("/dev/shm")) <= shm


def verdicts(judge: CodeJudge, items: list[tuple[str, CodeTests]]) -> list[Judged]:
    """Judge programs as they are; what must be true of every verdict is checked here."""
    rows = [
        (Sample("fuzz", tests.inputs.problem_id, index, 0, code, 0, 0, FinishReason.stop), tests, True)
        for index, (code, tests) in enumerate(items)
    ]
    judged = list(judge.stream_rows(rows))
    assert [one.verdict.sample_index for one in judged] == list(range(len(rows)))
    for one in judged:
        for verdict in (one.verdict, one.other):
            assert verdict is not None and verdict.status in DEFINED, verdict
            assert verdict.score is not None and math.isfinite(verdict.score) and 0.0 <= verdict.score <= 1.0
            assert (verdict.score == 1.0) is (verdict.status is Status.correct)
            assert verdict.passed is not None and verdict.total and 0 <= verdict.passed <= verdict.total
            assert "\n" not in verdict.detail
        found[one.verdict.status] += 1
    return judged


TESTS = doubling([3, 21], time_limit_s=0.25, memory_limit_mb=256)


@fuzz(600)
@given(batches(texts_of_bytes(60)))
def test_random_bytes_as_programs(judge: CodeJudge, programs: list[str]) -> None:
    for one, code in zip(verdicts(judge, [(code, TESTS) for code in programs]), programs, strict=True):
        assert one.verdict.status is not Status.correct, code


@fuzz(600)
@given(batches(edited()))
def test_random_edits_of_valid_programs(judge: CodeJudge, programs: list[str]) -> None:
    verdicts(judge, [(code, TESTS) for code in programs])


@fuzz(400)
@given(batches(st.binary(max_size=200)), st.integers(0, 255), st.sampled_from([1, 2]))
def test_programs_that_write_random_bytes(judge: CodeJudge, outputs: list[bytes], code: int, stream: int) -> None:
    """Right exactly when what is written to stdout is UTF-8, the exit code 0, and nothing else was expected."""
    items = []
    for output in outputs:
        expected = output.decode("utf-8", "replace")
        tests = CodeTests(Inputs("bytes", "stdio", ("",)), ExpectedOutputs("bytes", (expected,)))
        items.append((f"import os\nos.write({stream}, {output!r})\nos._exit({code})", tests))
    for one, output in zip(verdicts(judge, items), outputs, strict=True):
        written = output if stream == 1 else b""
        text = written.decode("utf-8", "replace")
        valid = text.encode() == written
        right = valid and code == 0 and text.strip() == output.decode("utf-8", "replace").strip()
        wrong = Status.wrong_answer if code == 0 else Status.runtime_error
        assert one.verdict.status is (Status.correct if right else wrong), (output, one.verdict)


@fuzz(400)
@given(batches(LITERALS))
def test_functions_that_return_random_values(judge: CodeJudge, values: list[object]) -> None:
    """None of them is the text that was expected."""
    tests = CodeTests(
        Inputs("value", "functional", ("1",), fn_name="f", time_limit_s=0.25),
        ExpectedOutputs("value", ('"a text of more than eight letters"',)),
    )
    items = [(f"inf = nan = 1e999\ndef f(n):\n    return {value!r}", tests) for value in values]
    for one in verdicts(judge, items):
        assert one.verdict.status is Status.wrong_answer, one.verdict


def test_the_programs_were_of_many_kinds() -> None:
    """After the tests above: had nearly all ended in one way, little would have been tried."""
    if sum(found.values()) < 2000:
        pytest.skip("only with all tests of this file")
    assert {Status.correct, Status.wrong_answer, Status.runtime_error, Status.compile_error} <= found.keys()
    assert max(found.values()) < 0.6 * sum(found.values()), found
