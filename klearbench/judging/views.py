"""What one mode's rules make of a program's runs, test by test, and the verdict they add up to."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from klearbench.judging.modes import Program, Rules, command_of
from klearbench.judging.outcome import SLEEPS
from klearbench.sandbox.base import Command
from klearbench.types import CodeTests, Sample, Status, Verdict


class Usage(Protocol):
    """What the runs of a program used: seconds, seconds, MiB; the slot of one of them; the tests that it slept
    through."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    slot: str
    asleep: list[int]


class View:
    """The tests of one submission under one mode's rules. Written to by the threads of its lots, a test by one of them.

    Attributes:
        statuses: a status a test, None while it was not run.
        first: the number (from 0) of the first test known to fail; the number of tests if none is.
        early: tests after that one need not be run.
        other: the rules' name of the view beside this one, if there is one.
        differs: tests of which the other rules' comparison says something else of the very same output.
    """

    __slots__ = (
        "_details",
        "_refusal",
        "command",
        "differs",
        "early",
        "first",
        "other",
        "program",
        "rules",
        "statuses",
    )

    def __init__(self, rules: Rules, program: Program, tests: CodeTests, *, early: bool) -> None:
        self.rules = rules
        self.program = program
        self.early = early
        self.command: Command | None = command_of(rules, program.code, tests.inputs) if program.code else None
        self.statuses: list[Status | None] = [None] * len(tests.inputs.inputs)
        self.first = len(self.statuses)
        self.other: str | None = None
        self.differs: set[int] = set()
        self._details: dict[int, str] = {}
        self._refusal: str | None = None

    def passed(self, test: int) -> None:
        """A test was passed."""
        self.statuses[test] = Status.correct

    def failed(self, test: int, status: Status, detail: Callable[[], str]) -> None:
        """A test was failed. The detail (it names the slot) is made only for one that may be the first."""
        self.statuses[test] = status
        if test < self.first:
            self._details[test] = detail()
            self.first = test  # two threads may race here: a later test then stays, which costs runs, never a verdict

    def refused(self, detail: str) -> None:
        """The program does not compile: no test can be passed."""
        self._refusal = detail
        self.first = 0

    def verdict(self, sample: Sample, usage: Usage | None) -> Verdict:
        """The verdict of a submission whose lots are done: that of the first failing test, in test order.

        `passed` counts over all tests; where it was stopped at the first failing one, over those before it.
        `usage` is None for a sample in which nothing was there to run.
        """
        total = len(self.statuses)
        if usage is None:
            program = self.program
            status = program.status or Status.judge_error
            score = None if status is Status.judge_error else 0.0
            return Verdict(*sample.key, status, score, program.shown, 0, total, program.detail)
        self._give_up_after(usage.asleep)
        status, passed, detail = self._outcome(f"[{usage.slot}]")
        return Verdict(
            *sample.key,
            status=status,
            score=None if status is Status.judge_error else passed / total,
            extracted=self.program.shown,
            passed=passed,
            total=total,
            detail=detail,
            cpu_s=usage.cpu_s,
            wall_s=usage.wall_s,
            peak_mb=usage.peak_mb,
        )

    def _give_up_after(self, asleep: list[int]) -> None:
        """Tests after the last that may be slept through count as failed, in test order, whether they were run or not:
        which of them were depends on how the lots were spread."""
        if len(asleep) >= SLEEPS:
            last = sorted(asleep)[SLEEPS - 1]
            for test in range(last + 1, len(self.statuses)):
                self.statuses[test] = Status.time_limit

    def _outcome(self, slot: str) -> tuple[Status, int, str]:
        """Status, tests passed, detail."""
        if self._refusal is not None:
            return Status.compile_error, 0, self._refusal
        total = len(self.statuses)
        failing = next((i for i, status in enumerate(self.statuses) if status is not Status.correct), None)
        if failing is None:
            return Status.correct, total, f"{total} tests passed {kind_of(slot)}"
        needed = self.statuses[: failing + 1] if self.early else self.statuses
        if None in needed:
            return Status.judge_error, 0, f"test {needed.index(None) + 1} of {total} has no result {slot}"
        passed = failing if self.early else self.statuses.count(Status.correct)
        status = self.statuses[failing] or Status.judge_error
        return status, passed, f"test {failing + 1} of {total}: {self._details[failing]}"


def kind_of(slot: str) -> str:
    """A slot's name without its number, as "local namespaces": the verdict of a rerun must be the same text."""
    return re.sub(r":[0-9a-f]+", "", slot)
