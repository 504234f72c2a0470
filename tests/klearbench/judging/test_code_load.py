"""Load changes no verdict and nothing piles up: cut versions of `benchmarks/sandbox_load.py`, on the local sandbox."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.sandbox_load import Found, Item, found, load_items
from klearbench.judging.code import CodeJudge
from klearbench.sandbox.local import LocalSandbox
from klearbench.sandbox.wire import StreamSlot
from tests.tools import ROOT, environment

pytestmark = pytest.mark.slow

LIMIT_S = 0.5
EACH = 10
WORKERS = 12


@pytest.fixture(scope="module")
def items() -> tuple[list[Item], list[Found]]:
    return load_items(EACH, LIMIT_S)


class CountingSandbox(LocalSandbox):
    """A local sandbox that keeps the names of the slots it opens."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def open(self, role: str = "submission") -> StreamSlot:
        slot = super().open(role)
        self.opened.append(slot.id)
        return slot


def judged(items: list[Item], workers: int) -> list[Found]:
    with CodeJudge(workers=workers) as judge:
        return [found(verdict) for verdict in judge.judge(items)]


def test_one_worker_alone_finds_the_truth(items: tuple[list[Item], list[Found]]) -> None:
    programs, truth = items
    assert {status for status, _, _ in truth} == {"correct", "time_limit"}
    assert judged(programs, 1) == truth


@pytest.mark.parametrize("run", [1, 2])
def test_many_workers_on_few_cores_find_the_same(items: tuple[list[Item], list[Found]], run: int) -> None:
    programs, truth = items
    assert judged(programs, WORKERS) == truth, f"run {run}"


def test_the_work_is_really_spread_over_that_many_slots(items: tuple[list[Item], list[Found]]) -> None:
    programs, _ = items
    sleepers = [one for index, one in enumerate(programs) if index % 2 == 0][:9]
    with CountingSandbox() as box, CodeJudge(sandbox=box, workers=9) as judge:
        judge.judge(sleepers)
        assert len(set(box.opened)) == 9


def test_a_soak_leaves_memory_processes_and_descriptors_as_they_were() -> None:
    """In a process of its own, because the judge's own memory is measured too."""
    command = [sys.executable, "benchmarks/sandbox_load.py", "--runs", "0", "--soak", "1500"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment(), timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["tests", "500", "1000", "1500", "closed", "as"]
    assert all(line.split()[1] == "0" for line in lines[1:4])
