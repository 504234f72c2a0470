"""`klearbench judge` ended in mid-run, by kill -9 and by signals: nothing is left behind, the same command finishes.

Real commands with programs on the local sandbox. This process adopts whatever they orphan, so that nothing can hide.
"""

from __future__ import annotations

import ctypes
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from benchmarks.sandbox_load import PR_SET_CHILD_SUBREAPER, descendants
from klearbench.sandbox.local import TIERS
from tests.tools import ROOT, TIMES, complaint, environment, jsonl, ok, start, write_jsonl

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(300)]

PATIENCE_S = 2.0
TESTS = [{"input": f"{n}\n", "output": f"{2 * n}\n"} for n in range(1, 7)]
PROBLEMS: list[dict[str, Any]] = [
    {"id": "double", "kind": "code", "tests": TESTS, "time_limit_s": 0.5},
    {"id": "function", "kind": "code", "tests": TESTS, "mode": "functional", "fn_name": "f", "time_limit_s": 0.5},
    {"id": "loop", "kind": "code", "tests": TESTS[:1], "time_limit_s": 0.2},
    {"id": "sum", "kind": "math", "answer": "7"},
]
TWICE = "print(2 * int(input()))"
PROGRAMS: list[tuple[str, str, str]] = [
    ("double", TWICE, "correct"),
    ("double", f"import time\ntime.sleep(0.15)\n{TWICE}", "correct"),
    ("double", f"for name in ('/tmp/kept', 'kept'):\n    open(name, 'a').write('x' * 1000)\n{TWICE}", "correct"),
    ("double", f"import threading\nt = threading.Thread(target=lambda: {TWICE})\nt.start()", "correct"),
    ("double", f"import time\nends = time.process_time() + 0.05\nwhile time.process_time() < ends: pass\n{TWICE}",
     "correct"),
    ("loop", "while True: pass", "time_limit"),
    ("double", "print(2)", "wrong_answer"),
    ("double", "import os\nos.fork()", "runtime_error"),
    ("double", f"try:\n    open('/dev/shm/klear-kill', 'w')\nexcept OSError:\n    pass\n{TWICE}", "correct"),
    ("double", "print(", "compile_error"),
    ("double", f"kept = bytearray(30_000_000)\n{TWICE}", "correct"),
    ("function", "def f(n):\n    return 2 * n", "correct"),
    ("function", "class Solution:\n    def f(self, n):\n        return 2 * n if n < 4 else None", "wrong_answer"),
]  # fmt: skip
ROWS = 78
KILLS = 5


@pytest.fixture(autouse=True)
def adopted() -> Iterator[None]:
    """Orphans of the commands become children of this process, not of the machine's first one."""
    libc, before = ctypes.CDLL(None), descendants().keys()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    for pid in descendants().keys() - before:  # after a failure: some would run for ever
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture
def words(tmp_path: Path) -> Callable[[str], list[object]]:
    """The command that judges every row into a file of this name."""
    rows: list[dict[str, Any]] = []
    for index in range(ROWS):
        problem, code, _ = PROGRAMS[index % len(PROGRAMS)]
        rows.append({"problem_id": problem, "sample_index": index, "code": code})
    rows[40:40] = [{"problem_id": "sum", "sample_index": index, "answer": str(index)} for index in range(10)]
    completions = write_jsonl(tmp_path / "completions.jsonl", rows)
    problems = write_jsonl(tmp_path / "problems.jsonl", PROBLEMS)
    common = ["klearbench", "judge", completions, "--problems", problems, "--workers", 2, "-o"]
    return lambda name: [*common, tmp_path / name]


class Traces:
    """What a command could leave on the machine, before and after it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.before = self._now()
        self.processes = set(descendants())

    def _now(self) -> dict[str, set[str]]:
        shared = [line.split()[1] for name in ("shm", "sem", "msg") for line in _lines(f"/proc/sysvipc/{name}")[1:]]
        return {
            "files": {str(path) for path in self.folder.rglob("*")},
            "mounts": set(_lines("/proc/self/mounts")),
            "shared memory": {*os.listdir("/dev/shm"), *shared},
        }

    def _living(self) -> set[int]:
        found = descendants()
        for pid in (pid for pid, zombie in found.items() if zombie and pid not in self.processes):
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return {pid for pid, zombie in found.items() if not zombie} - self.processes

    def left(self) -> dict[str, set[str]]:
        """What is more than before, after PATIENCE_S at most; empty if nothing is."""
        ends = time.monotonic() + PATIENCE_S
        while True:
            now = self._now()
            found = {kind: now[kind] - old for kind, old in self.before.items()}
            found["processes"] = {f"{pid}: {_command_of(pid)}" for pid in self._living()}
            found = {kind: items for kind, items in found.items() if items}
            if not found or time.monotonic() > ends:
                return found
            time.sleep(0.05)


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def _command_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:100]
    return "gone by now"


def started(words: list[object], traces: Traces) -> subprocess.Popen[str]:
    """The command, from the moment when it starts its first slot."""
    process = start(*map(str, words), TMPDIR=str(traces.folder))
    ends = time.monotonic() + 60
    while len(descendants().keys() - traces.processes) < 2:
        assert process.poll() is None and time.monotonic() < ends, process.communicate()
        time.sleep(0.01)
    return process


def rows_of(out: Path) -> int:
    return out.read_bytes().count(b"\n") if out.exists() else 0


def wait_for_rows(out: Path, count: int, process: subprocess.Popen[str]) -> None:
    while rows_of(out) < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def essence(path: Path) -> list[dict[str, Any]]:
    """Verdicts without what differs from run to run: times, memory readings, and the slots' numbers."""
    rows = [{key: value for key, value in row.items() if key not in TIMES} for row in jsonl(path)]
    for row in rows:
        row["detail"] = re.sub(r"local:\d+", "local:N", re.sub(r"\d+\.\d+ s of CPU", "T s of CPU", row["detail"]))
    return rows


def undisturbed(words: list[object]) -> list[dict[str, Any]]:
    ok(*map(str, words))
    rows = essence(Path(str(words[-1])))
    found = [row["status"] for row in rows if row["problem_id"] != "sum"]
    assert found == [PROGRAMS[index % len(PROGRAMS)][2] for index in range(ROWS)]
    return rows


def test_kill_9_at_random_moments_leaves_nothing_and_the_same_command_finishes(
    words: Callable[[str], list[object]], tmp_path: Path
) -> None:
    wanted = undisturbed(words("undisturbed.jsonl"))
    command, moments, done = words("killed.jsonl"), random.Random(3), 0
    out = Path(str(command[-1]))
    for number in range(KILLS):
        traces = Traces(tmp_path / f"tmp{number}")
        process = started(command, traces)
        if number:  # the first one is killed while its slots start
            wait_for_rows(out, done + moments.randint(1, 6), process)
        time.sleep(moments.uniform(0.0, 0.3))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "it had finished before it was killed: more rows are needed"
        assert traces.left() == {}
        done = rows_of(out)
    assert 0 < done < len(wanted)
    traces = Traces(tmp_path / "tmp")
    ok(*map(str, command), TMPDIR=str(traces.folder))
    assert essence(Path(str(command[-1]))) == wanted
    assert traces.left() == {}


JUDGE = """
import sys
from klearbench.judging.code import CodeJudge
from klearbench.sandbox.local import LocalSandbox
from klearbench.types import CodeTests, ExpectedOutputs, FinishReason, Sample, TestInputs
tests = CodeTests(TestInputs("p", "stdio", ("",), time_limit_s=500), ExpectedOutputs("p", ("",)))
items = [(Sample("s", "p", n, 0, f"```python\\n{code}\\n```", 0, 0, FinishReason.stop), tests)
         for n, code in enumerate(sys.argv[2:])]
with LocalSandbox(sys.argv[1]) as box, CodeJudge(sandbox=box, workers=len(items)) as judge:
    judge.judge(items)
"""
ENDLESS = (
    "import time\ntime.sleep(1000)",
    "while True: pass",
    "import signal, time\nfor n in range(1, 32):\n    if n not in (9, 19):\n        signal.signal(n, signal.SIG_IGN)\n"
    "time.sleep(1000)",
    "import threading, time\nfor n in range(5):\n    threading.Thread(target=time.sleep, args=(1000,)).start()",
)


@pytest.mark.parametrize("tier", TIERS)
def test_kill_9_ends_programs_that_would_never_end(tier: str, tmp_path: Path) -> None:
    traces = Traces(tmp_path / "tmp")
    words = [sys.executable, "-c", JUDGE, tier, *ENDLESS]
    process = subprocess.Popen(words, cwd=ROOT, env=environment(TMPDIR=str(traces.folder)))
    a_slot = 4 if tier == "namespaces" else 3  # zygote (two processes in the better tier), submission, test
    ends = time.monotonic() + 60
    while len(descendants().keys() - traces.processes) < 1 + a_slot * len(ENDLESS):
        assert process.poll() is None and time.monotonic() < ends
        time.sleep(0.02)
    time.sleep(0.3)
    process.kill()
    process.wait()
    assert traces.left() == {}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_in_one_line_with_nothing_left(
    words: Callable[[str], list[object]], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    command = words("signalled.jsonl")
    traces = Traces(tmp_path / "tmp")
    process = started(command, traces)
    out = Path(str(command[-1]))
    wait_for_rows(out, 4, process)
    process.send_signal(number)
    said = process.communicate(timeout=30)
    assert "the same command goes on" in complaint(subprocess.CompletedProcess([], process.returncode, *said), code)
    assert traces.left() == {}
    done = len(jsonl(out))
    assert 4 <= done < ROWS
    ok(*map(str, command))
    statuses = [row["status"] for row in jsonl(out) if row["problem_id"] != "sum"]
    assert statuses == [PROGRAMS[index % len(PROGRAMS)][2] for index in range(ROWS)]
