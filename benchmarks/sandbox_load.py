"""Does load change a verdict, and does anything pile up? A load test and a soak of the code judge.

    python benchmarks/sandbox_load.py [--sandbox local|docker] [--runs 10] [--each 50] [--workers 12] [--soak 10000]

Load: so many workers on however few cores there are, with tests that sleep and tests that use 0.85 or 1.15 of a CPU
second where one is allowed. Each run must find what a judge with one worker, alone, found, and what is true. The
programs spin on their own CPU clock, so that the truth does not hang on the speed of the machine.

Soak: many tests of every kind of end. The memory of the judge and of its slots, their processes, zombies and file
descriptors must stay as they were at the first sample, and nothing may be left when the judge is closed.

Prints a table each; exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from klearbench.judging.code import CodeJudge
from klearbench.types import CodeTests, ExpectedOutputs, FinishReason, Sample, Status, TestInputs, Verdict

Item = tuple[Sample, CodeTests]
Found = tuple[str, int | None, int | None]
"""What must be the same under load: the status, the tests passed, and how many there are."""

SLEEPER = "import time\ntime.sleep(float(input()))\nprint('awake')\n"
SPINNER = (
    "import time\nlimit = float(input())\nwhile time.process_time() < limit:\n"
    "    sum(range(1000))\nprint('done', flush=True)\n"
)

SOAK_PROGRAMS: dict[str, tuple[str, Status]] = {
    "right": ("print(int(input()) * 2)", Status.correct),
    "wrong": ("print(-1)", Status.wrong_answer),
    "crash": ("print(1 // 0)", Status.runtime_error),
    "thread": (
        "import threading\nt = threading.Thread(target=lambda: print(int(input()) * 2))\nt.start()\nt.join()",
        Status.correct,
    ),
    "memory": ("kept = list(range(200_000))\nprint(int(input()) * 2)", Status.correct),
    "file": ("import os\nopen(os.devnull).close()\nos.pipe()\nprint(int(input()) * 2)", Status.correct),
    "long output": ("print('x' * 100_000)", Status.wrong_answer),
    "killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\ninput()", Status.runtime_error),
    "no syntax": ("print(", Status.compile_error),
    "leaves a thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(0.01,)).start()\nprint(int(input()) * 2)",
        Status.correct,
    ),
}

PR_SET_CHILD_SUBREAPER = 36
SOAK_TESTS = 50
"""Tests of one submission in the soak."""

SAMPLE_EVERY = 500
GROWTH_MB = 8.0
"""What the memory may move by between the first sample and any later one, MiB."""
_SETTLE_S, _PATIENCE_S = 0.3, 5.0
"""Before each sample, and for what still differs from the first one."""


def item(index: int, code: str, inputs: Sequence[str], outputs: Sequence[str], time_limit_s: float) -> Item:
    """A sample with this program, and its tests."""
    problem = f"load-{index}"
    given = TestInputs(problem, "stdio", tuple(inputs), time_limit_s=time_limit_s)
    sample = Sample("load", problem, 0, 0, f"```python\n{code}\n```\n", 0, 0, FinishReason.stop)
    return sample, CodeTests(given, ExpectedOutputs(problem, tuple(outputs)))


def load_items(each: int, limit_s: float = 1.0) -> tuple[list[Item], list[Found]]:
    """So many sleepers and as many spinners in turns, with this limit (CPU seconds), and what is true of them.

    A sleeper outlasts its CPU limit by half and is right; one in ten never wakes and is over the time limit. Of the
    spinners every other one is under the limit.
    """
    items, truth = [], []
    for index in range(each):
        right = index % 10 != 9
        seconds = 1.5 * limit_s if right else 1000
        items.append(item(2 * index, SLEEPER, [f"{seconds}\n"], ["awake\n"], limit_s))
        truth.append(_found_of(right))
        right = index % 2 == 0
        seconds = (0.85 if right else 1.15) * limit_s
        items.append(item(2 * index + 1, SPINNER, [f"{seconds}\n"], ["done\n"], limit_s))
        truth.append(_found_of(right))
    return items, truth


def _found_of(right: bool) -> Found:
    return (str(Status.correct), 1, 1) if right else (str(Status.time_limit), 0, 1)


def found(verdict: Verdict) -> Found:
    """The part of a verdict that load must not change."""
    return str(verdict.status), verdict.passed, verdict.total


def load(sandbox: str, runs: int, each: int, workers: int) -> bool:
    """Judge alone, then `runs` times under load; True if all found the truth."""
    items, truth = load_items(each)
    fine = True
    print(f"{2 * each} tests, limit 1 CPU s, sandbox {sandbox}, {os.cpu_count()} cores")
    print(f"{'run':>5} {'workers':>8} {'wall s':>7} {'differ':>7}")
    for run in range(runs + 1):
        began = time.perf_counter()
        with CodeJudge(sandbox=sandbox, workers=workers if run else 1) as judge:
            verdicts = judge.judge(items)
        differing = [(v, want) for v, want in zip(verdicts, truth, strict=True) if found(v) != want]
        fine = fine and not differing
        took, name = time.perf_counter() - began, str(run or "alone")
        print(f"{name:>5} {workers if run else 1:8d} {took:7.1f} {len(differing):7d}", flush=True)
        for verdict, want in differing:
            print(f"      {verdict.problem_id}: {found(verdict)} for {want}; cpu {verdict.cpu_s} s, {verdict.detail}")
    return fine


@dataclass(frozen=True)
class Held:
    """What the judge and everything under it hold between two batches."""

    judge_mb: float
    slots_mb: float
    processes: int
    zombies: int
    judge_fds: int
    slot_fds: int

    @classmethod
    def now(cls) -> Held:
        tree = descendants()
        living = [pid for pid, zombie in tree.items() if not zombie]
        return cls(
            _memory_mb(os.getpid()),
            sum(map(_memory_mb, living)),
            len(living),
            len(tree) - len(living),
            _descriptors(os.getpid()),
            sum(map(_descriptors, living)),
        )

    @classmethod
    def settled(cls, first: Held | None) -> Held:
        """The same, once the last submission's process has ended, which it does a moment after its verdict."""
        time.sleep(_SETTLE_S)
        held, ends = cls.now(), time.monotonic() + _PATIENCE_S
        while first is not None and held.differs(first) and time.monotonic() < ends:
            time.sleep(0.02)
            held = cls.now()
        return held

    def row(self) -> str:
        memory = f"{self.judge_mb:9.1f} {self.slots_mb:9.1f}"
        return f"{memory} {self.processes:9d} {self.zombies:8d} {self.judge_fds:9d} {self.slot_fds:8d}"

    def differs(self, first: Held) -> list[str]:
        """What has grown since the first sample, in words; empty if nothing has."""
        wrong = []
        for name in ("judge_mb", "slots_mb"):
            if getattr(self, name) - getattr(first, name) > GROWTH_MB:
                wrong.append(name)
        for name in ("processes", "judge_fds", "slot_fds"):
            if getattr(self, name) != getattr(first, name):
                wrong.append(name)
        return wrong + (["zombies"] if self.zombies else [])


def descendants() -> dict[int, bool]:
    """Every process under this one: its id, and whether it is a zombie."""
    stats: dict[int, tuple[int, bool]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                stats[int(entry.name)] = (int(fields[1]), fields[0] == "Z")
    tree = {os.getpid()}
    while grown := {pid for pid, (parent, _) in stats.items() if parent in tree} - tree:
        tree |= grown
    return {pid: stats[pid][1] for pid in tree - {os.getpid()}}


def _memory_mb(pid: int) -> float:
    """Resident memory, shared pages counted by halves, thirds and so on where the kernel says (PSS), in MiB."""
    for file, field in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
                if line.startswith(field):
                    return int(line.split()[1]) / 1024
    return 0.0


def _descriptors(pid: int) -> int:
    with suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0


def soak(sandbox: str, tests: int, workers: int = 2) -> bool:
    """Judge so many tests in batches; True if every verdict was right and nothing grew or stayed."""
    # Whatever the judge or a sandbox orphans becomes a child of this process, and is counted.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    scratch = Path(tempfile.mkdtemp())
    scratch.chmod(0o755)
    os.environ["TMPDIR"], tempfile.tempdir = str(scratch), None
    with CodeJudge(sandbox=sandbox, workers=workers) as judge:
        judge.judge([soak_item(0, "right")])
    before = Held.settled(None)
    with CodeJudge(sandbox=sandbox, workers=workers) as judge:
        fine = _soak_batches(judge, tests)
    after, left = Held.settled(before), sorted(path.name for path in scratch.rglob("*"))
    print(f"{'closed':>7} {0:6d} {after.row()}")
    wrong = [name for name in after.differs(before) if name != "judge_mb"]
    if left or wrong:
        print(f"left behind: files {left}; not as before: {wrong}, before: {before.row()}")
    else:
        scratch.rmdir()
    return fine and not left and not wrong


def soak_item(index: int, kind: str) -> Item:
    """One submission of the soak."""
    numbers = range(index, index + SOAK_TESTS)
    code, _ = SOAK_PROGRAMS[kind]
    return item(index, f"{code}\n# {index}", [f"{n}\n" for n in numbers], [f"{2 * n}\n" for n in numbers], 6.0)


def _soak_batches(judge: CodeJudge, tests: int) -> bool:
    print(f"{'tests':>7} {'wrong':>6} {'judge MB':>9} {'slots MB':>9} {'processes':>9} {'zombies':>8} ", end="")
    print(f"{'judge fds':>9} {'slot fds':>8}")
    kinds, first, fine = list(SOAK_PROGRAMS), None, True
    per_batch = min(SAMPLE_EVERY, tests) // SOAK_TESTS
    for start in range(0, tests // SOAK_TESTS, per_batch):
        batch = [kinds[index % len(kinds)] for index in range(start, start + per_batch)]
        verdicts = judge.judge([soak_item(start + offset, kind) for offset, kind in enumerate(batch)])
        pairs = list(zip(verdicts, batch, strict=True))
        wrong = [(v, kind) for v, kind in pairs if v.status is not SOAK_PROGRAMS[kind][1]]
        held = Held.settled(first)
        first = first or held
        grown = held.differs(first)
        print(f"{(start + per_batch) * SOAK_TESTS:7d} {len(wrong):6d} {held.row()} {' '.join(grown)}", flush=True)
        for verdict, kind in wrong[:3]:
            print(f"      {kind}: {verdict.status}, {verdict.detail}")
        fine = fine and not wrong and not grown
    return fine


def main() -> None:
    """Run both, print the tables, exit with 1 if anything differed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sandbox", choices=["local", "docker"], default="local")
    parser.add_argument("--runs", type=int, default=10, help="runs under load; 0 leaves the load test out")
    parser.add_argument("--each", type=int, default=50, help="sleeping tests, and as many near the limit")
    parser.add_argument("--workers", type=int, default=12, help="workers of the load test")
    parser.add_argument("--soak", type=int, default=10000, help="tests of the soak; 0 leaves it out")
    chosen = parser.parse_args()
    fine = not chosen.runs or load(chosen.sandbox, chosen.runs, chosen.each, chosen.workers)
    fine = (not chosen.soak or soak(chosen.sandbox, chosen.soak)) and fine
    print("as alone, and nothing left" if fine else "DIFFERENCES, see above")
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
