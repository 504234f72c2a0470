"""Faults of ours on the real local sandbox: tried again on a fresh slot, then a judge error; never a score of 0.

Slots' processes are killed from outside in mid-test; our own code inside the sandbox is patched to fail. After a
program has started, its process is the program's: what fails there, in our code or not, is the program's own failure.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.sandbox_load import descendants
from klearbench.judging.code import CodeJudge
from klearbench.sandbox import local
from klearbench.sandbox.local import LocalSandbox
from klearbench.sandbox.wire import StreamSlot
from klearbench.types import CodeTests, Sample, Status, Verdict
from tests.klearbench.judging.fake_sandbox import doubling, sample
from tests.tools import complaint, jsonl, ok, start, write_jsonl

SLOW = "import time\ntime.sleep(0.6)\nprint(2 * int(input()))"
QUICK = "print(2 * int(input()))"
LEVELS = {"the slot's first process": 0, "the zygote": 1, "the submission's process": 2}
"""How deep below the judge a process of a slot lies. A test's own process, one deeper, is the program's."""


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(entry.name))
    return found


def line_of(first: int) -> list[int]:
    """A slot's first process, the zygote, the submission's process, the test's: as many as there are."""
    line = [first]
    while (below := children(line[-1])) and len(line) < 4:
        line.append(below[0])
    return line


def strike(first: int, level: int) -> None:
    """Kill a slot's process of this level, as soon as a test runs."""
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        line = line_of(first)
        if len(line) == 4:
            os.kill(line[level], signal.SIGKILL)
            return
        time.sleep(0.01)


class StruckSandbox(LocalSandbox):
    """A local sandbox whose first `strikes` slots lose a process in the middle of a test."""

    def __init__(self, level: int, strikes: int) -> None:
        super().__init__()
        self.level, self.strikes = level, strikes
        self.opened: list[str] = []
        self.threads: list[threading.Thread] = []

    def open(self, role: str = "submission") -> StreamSlot:
        slot = super().open(role)
        self.opened.append(slot.id)
        if len(self.opened) <= self.strikes:
            first = int(slot.id.split()[0].removeprefix("local:"))
            self.threads.append(threading.Thread(target=strike, args=(first, self.level)))
            self.threads[-1].start()
        return slot

    def close(self) -> None:
        super().close()
        for thread in self.threads:
            thread.join()


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = descendants().keys()
    yield
    ends = time.monotonic() + 20
    while (left := descendants().keys() - before) and time.monotonic() < ends:
        time.sleep(0.02)
    assert not left


def judged(box: LocalSandbox | str, *items: tuple[Sample, CodeTests]) -> list[Verdict]:
    with CodeJudge(sandbox=box) as judge:
        return judge.judge(items)


def assert_our_fault(verdict: Verdict, *words: str) -> None:
    assert (verdict.status, verdict.score) == (Status.judge_error, None)
    assert any(word in verdict.detail for word in words), verdict.detail
    assert "\n" not in verdict.detail and len(verdict.detail) < 600


@pytest.mark.parametrize("level", LEVELS)
def test_a_slot_killed_in_mid_run_is_replaced_and_the_verdict_is_right(level: str) -> None:
    with StruckSandbox(LEVELS[level], strikes=1) as box:
        first, second = judged(box, (sample(SLOW), doubling()), (sample("print(1)", 1), doubling()))
        assert (first.status, first.score, first.passed, first.total) == (Status.correct, 1.0, 3, 3)
        assert second.status is Status.wrong_answer
        assert len(box.opened) == 2
        assert "[local namespaces]" in second.detail, "the kind of slot, without its number"


@pytest.mark.parametrize("level", LEVELS)
def test_a_slot_killed_each_time_is_a_judge_error_that_says_so_and_the_next_program_is_judged(level: str) -> None:
    with StruckSandbox(LEVELS[level], strikes=2) as box:
        first, second = judged(box, (sample(SLOW), doubling()), (sample(QUICK, 1), doubling()))
        assert_our_fault(first, "the sandbox's process", "a submission's process ended with -9")
        assert second.status is Status.correct
        assert len(box.opened) == 3


BROKEN = {
    "the first process": ("zygote.py", '"""Become the zygote and serve until the judge hangs up."""'),
    "the zygote": ("zygote.py", '"""Serve one submission, by as many processes as it takes'),
    "the submission's start": ("submission.py", "self._program = child.Program("),
    "a test's start": ("submission.py", "self._box.feed("),
    "the giving up of rights": ("child.py", "program.drop()"),
    "the descriptors": ("child.py", "os.closerange(program.first_fd"),
    "the result": ("submission.py", "_, state, usage = os.wait4("),
}
"""Where our own code inside is made to fail: the line before which it raises."""


@pytest.fixture
def broken_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes slots run a copy of our code inside that raises at one of the places of BROKEN."""

    def patch(place: str) -> None:
        name, mark = BROKEN[place]
        copy = tmp_path / "inside"
        shutil.copytree(Path(local.__file__).parent / "inside", copy)
        text = (copy / name).read_text()
        line = re.compile(rf"^( *)(?=.*{re.escape(mark)})", re.MULTILINE)
        changed = line.sub(r"\1raise ValueError('our own mistake')\n\1", text)
        assert changed.count("our own mistake") == 1, f"{name} has no line {mark!r} any more"
        (copy / name).write_text(changed)
        monkeypatch.setattr(local, "_FOLDER", tmp_path)

    return patch


@pytest.mark.parametrize("place", BROKEN)
def test_a_mistake_of_our_own_inside_is_never_held_against_the_program(
    broken_at: Callable[[str], None], place: str
) -> None:
    with LocalSandbox() as box:
        broken_at(place)
        [verdict] = judged(box, (sample(QUICK), doubling()))
    assert_our_fault(verdict, "our own mistake", "the sandbox broke", "the sandbox's process")


def test_two_fault_points_make_a_judge_error_one_is_made_good(tmp_path: Path) -> None:
    """A fault when a lot begins uses up the first try, one when its slot runs the second. (The first run of all is the
    sandbox's trial of itself.)"""
    command = files(tmp_path, QUICK, 2)
    once = start(*command, "-o", str(tmp_path / "once.jsonl"), fault="sandbox.run:2:raise")
    both = start(*command, "-o", str(tmp_path / "both.jsonl"), fault="judge.lot:1:raise,sandbox.run:2:raise")
    assert finished(once).returncode == 0
    assert [row["status"] for row in jsonl(tmp_path / "once.jsonl")] == ["correct"] * 2
    assert "1 of 2 rows are judge errors" in complaint(finished(both), 3)
    first, second = jsonl(tmp_path / "both.jsonl")
    assert (first["status"], first["score"], second["status"]) == ("judge_error", None, "correct")
    assert "RuntimeError: fault point sandbox.run" in first["detail"]
    assert "1 of 2 rows judged" in ok(*command, "-o", str(tmp_path / "both.jsonl"))
    assert [row["status"] for row in jsonl(tmp_path / "both.jsonl")] == ["correct"] * 2


@pytest.mark.slow
def test_a_command_whose_slots_are_killed_each_time_exits_with_3_and_then_tries_again(tmp_path: Path) -> None:
    command = [*files(tmp_path, SLOW, 2), "-o", str(tmp_path / "v.jsonl")]
    process = start(*command)
    seen: dict[int, float] = {}
    while process.poll() is None:
        for first in children(process.pid):
            line = line_of(first)
            # Not the sandbox's short trial of itself: only a test that has been running for a while.
            if len(line) == 4 and time.monotonic() - seen.setdefault(line[-1], time.monotonic()) > 0.2:
                with suppress(ProcessLookupError):
                    os.kill(first, signal.SIGKILL)
        time.sleep(0.01)
    assert "2 of 2 rows are judge errors (our fault, they have no score)" in complaint(finished(process), 3)
    for row in jsonl(tmp_path / "v.jsonl"):
        assert (row["status"], row["score"]) == ("judge_error", None)
        assert "the sandbox's process" in row["detail"]
    assert "2 of 2 rows judged" in ok(*command)
    assert [(row["status"], row["score"]) for row in jsonl(tmp_path / "v.jsonl")] == [("correct", 1.0)] * 2


def files(folder: Path, code: str, count: int) -> list[str]:
    """The command, but for its output, that judges so many samples of a program."""
    tests = [{"input": str(n), "output": str(2 * n)} for n in range(3)]
    problems = write_jsonl(folder / "problems.jsonl", [{"id": "p", "kind": "code", "tests": tests}])
    rows = [{"problem_id": "p", "sample_index": index, "code": code} for index in range(count)]
    completions = write_jsonl(folder / "completions.jsonl", rows)
    return ["klearbench", "judge", str(completions), "--problems", str(problems)]


def finished(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
