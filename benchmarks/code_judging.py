"""Our judge of code beside an in-process one (`lcb_peer.py`), in one run on one machine.

    python benchmarks/code_judging.py [--rounds N] [--sandbox local|docker]     (also a part of `make bench`)

Each side lives in a process of its own, opened and warmed before anything is counted, and they take turns: on a shared
machine only the ratio of two neighbours in time means something, and the figure is the median of those. Counted are the
CPU seconds of the whole process tree of a side, dead children included. Where a CPU-accounting cgroup can be made, it
counts the same work again by other means, so that a process nobody waited for can't go uncounted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Self

import lcb_peer

from klearbench.errors import KlearError
from klearbench.types import CodeTests, ExpectedOutputs, FinishReason, Sample, Status, TestInputs

WORKERS = 2
TARGETS = {10: (1.7, 2.5), 50: (1.05, 1.3)}
"""Tests a submission: (the ratio that must be reached, the aim)."""

COUNTS = {1: 40, 10: 24, 50: 10, 200: 4}
"""Tests a submission: submissions in one round, about a second of the peer's time."""

RATE_TARGETS = {"local": 900, "docker": 150}
FIXED_TARGET_MS = 5

Batch = tuple[int, int, str | None]
"""Tests a submission, submissions, preamble."""


@dataclass(frozen=True)
class Cost:
    """What one batch took: CPU seconds of the process tree, wall seconds."""

    cpu_s: float
    wall_s: float


def lines(rounds: int = 7, sandbox: str = "local") -> Iterator[str]:
    """Each figure as a line of text, as soon as it is there."""
    with ExitStack() as stack:
        try:
            ours = stack.enter_context(Side(sandbox))
        except KlearError as error:
            yield f"code judging, {sandbox}: skipped ({error})"
            return
        if sandbox == "local":
            peer = stack.enter_context(Side("peer"))
            for tests in TARGETS:
                yield ratio(ours, peer, tests, rounds, "lcb")
            yield ratio(ours, peer, 10, rounds, None)
            yield fixed_cost(ours, rounds)
        yield rate(ours)
        if sandbox == "local":
            yield from ours.check()


def ratio(ours: Side, peer: Side, tests: int, rounds: int, preamble: str | None) -> str:
    """Submissions a CPU second, ours over the peer's: the median of neighbouring pairs."""
    pairs = []
    for turn in range(rounds):
        order = (ours, peer) if turn % 2 else (peer, ours)
        costs = {side.kind: side.run(tests, COUNTS[tests], preamble).cpu_s / COUNTS[tests] for side in order}
        pairs.append((costs[ours.kind], costs[peer.kind]))
    fast, slow = (1000 * median(column) for column in zip(*pairs, strict=True))
    ratios = sorted(theirs / our for our, theirs in pairs)
    must, aim = TARGETS[tests]
    return (
        f"code judging, {tests} trivial tests, {'import preamble' if preamble else 'no preamble'}: "
        f"ours {fast:.1f} CPU-ms a submission, in-process peer {slow:.1f}, "
        f"ratio {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}; {must} needed, {aim} aimed at)"
    )


def fixed_cost(ours: Side, rounds: int) -> str:
    """What a submission costs beside its tests: a line through the medians, each point weighing by its own size."""
    import numpy as np

    medians = {}
    for tests, count in COUNTS.items():
        costs = [ours.run(tests, count, "lcb").cpu_s / count for _ in range(rounds)]
        medians[tests] = 1000 * median(costs)
    sizes, costs_ms = np.array(list(medians)), np.array(list(medians.values()))
    slope, fixed = np.polyfit(sizes, costs_ms, 1, w=1 / costs_ms)
    points = ", ".join(f"{size}: {cost:.1f}" for size, cost in medians.items())
    return (
        f"code judging, {fixed:.1f} CPU-ms fixed a submission ({FIXED_TARGET_MS} allowed) and {slope:.2f} a test "
        f"(CPU-ms at each number of tests: {points})"
    )


def rate(ours: Side, tests: int = 50, count: int = 20) -> str:
    """Tests a second of wall time on two workers: the best of a few tries, since others may use the machine."""
    rates = [tests * count / ours.run(tests, count, None).wall_s for _ in range(5)]
    return (
        f"code judging, {ours.kind}, {WORKERS} workers: {max(rates):.0f} tests/s "
        f"(median {median(rates):.0f}; {RATE_TARGETS[ours.kind]} needed on two free cores)"
    )


class Side:
    """One judge in a process of its own. `kind` is "peer", or the sandbox of our judge ("local" or "docker").

    Raises:
        KlearError: the judge can't be had on this machine.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._counted = 0.0
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(kind, theirs))
        self._process.start()
        theirs.close()
        self._cgroup = Accounting(self._process.pid or 0)
        trouble = self._ask((10, 8, None))
        if isinstance(trouble, str):
            self.__exit__()
            raise KlearError(trouble)
        self._cgroup.start()

    def run(self, tests: int, count: int, preamble: str | None) -> Cost:
        """Judge so many submissions of so many trivial tests; all must be found right."""
        cost = self._ask((tests, count, preamble))
        assert isinstance(cost, Cost), cost
        self._counted += cost.cpu_s
        return cost

    def check(self) -> Iterator[str]:
        """A line that says what the cgroup counted, where there is one."""
        measured = self._cgroup.used_s()
        if measured is not None:
            yield f"code judging, {self.kind}: counted {self._counted:.2f} CPU s, the cgroup {measured:.2f}"

    def _ask(self, batch: Batch) -> Cost | str:
        self._pipe.send(batch)
        answer: Cost | str = self._pipe.recv()
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(BrokenPipeError):
            self._pipe.send(None)
        self._process.join()
        self._cgroup.close()


def _serve(kind: str, pipe: Connection) -> None:
    """Judge the batches that come through the pipe, until None; a judge that can't be had answers with the reason."""
    with ExitStack() as stack:
        work: Callable[[Batch], None] | None = None
        while (batch := pipe.recv()) is not None:
            try:
                work = work or (_peer_work if kind == "peer" else _our_work(kind, stack))
                cpu, wall = tree_cpu_s(), time.perf_counter()
                work(batch)
                pipe.send(Cost(tree_cpu_s() - cpu, time.perf_counter() - wall))
            except KlearError as error:
                pipe.send(str(error))


def _peer_work(batch: Batch) -> None:
    tests, count, _ = batch
    found = lcb_peer.judge_many([lcb_peer.sums(tests, index) for index in range(count)], WORKERS)
    assert found == [[lcb_peer.PASSED] * tests] * count, found


def _our_work(sandbox: str, stack: ExitStack) -> Callable[[Batch], None]:
    from klearbench.judging.code import CodeJudge

    judge = stack.enter_context(CodeJudge(sandbox=sandbox, workers=WORKERS))

    def work(batch: Batch) -> None:
        tests, count, preamble = batch
        for verdict in judge.judge([_item(tests, index, preamble) for index in range(count)]):
            if verdict.status is not Status.correct:
                raise KlearError(f"a right program was found {verdict.status}: {verdict.detail}")

    return work


def _item(tests: int, index: int, preamble: str | None) -> tuple[Sample, CodeTests]:
    code, inputs, outputs = lcb_peer.sums_problem(tests, index)
    given = TestInputs("sums", "stdio", tuple(inputs), preamble=preamble)
    sample = Sample("bench", "sums", index, 0, f"```python\n{code}```\n", 0, 0, FinishReason.stop)
    return sample, CodeTests(given, ExpectedOutputs("sums", tuple(outputs)))


def tree_cpu_s() -> float:
    """CPU seconds of this process, its living descendants, and every dead one that was waited for."""
    stats: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                stats[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    tree = {os.getpid()}
    while grown := {pid for pid, (parent, _) in stats.items() if parent in tree} - tree:
        tree |= grown
    return sum(stats[pid][1] for pid in tree) / os.sysconf("SC_CLK_TCK")


class Accounting:
    """A cgroup (version 1, cpuacct) around one process and all that it starts; without the right to make one, nothing.

    Only to check the other count: it sees every process, whoever waited for it.
    """

    def __init__(self, pid: int) -> None:
        self._folder: Path | None = Path(f"/sys/fs/cgroup/cpuacct/klear-bench-{pid}")
        self._began = 0
        try:
            self._folder.mkdir()
            (self._folder / "cgroup.procs").write_text(str(pid))
        except OSError:
            self.close()

    def start(self) -> None:
        """Count from here."""
        self._began = self._usage() or 0

    def used_s(self) -> float | None:
        """CPU seconds since the start; None where there is no cgroup."""
        usage = self._usage()
        return None if usage is None else (usage - self._began) / 1e9

    def _usage(self) -> int | None:
        return None if self._folder is None else int((self._folder / "cpuacct.usage").read_text())

    def close(self) -> None:
        """Remove the cgroup. A process that has just been waited for may still count as a member for a moment."""
        for _ in range(20):
            if self._folder is None or not self._folder.exists():
                break
            with suppress(OSError):
                self._folder.rmdir()
                break
            time.sleep(0.05)
        self._folder = None


def main(arguments: Any = None) -> None:
    """Print one line a figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="pairs behind each ratio")
    parser.add_argument("--sandbox", choices=sorted(RATE_TARGETS), action="append", help="default: both")
    chosen = parser.parse_args(arguments)
    for sandbox in chosen.sandbox or ("local", "docker"):
        for line in lines(chosen.rounds, sandbox):
            print(line, flush=True)


if __name__ == "__main__":
    main()
