"""A program's tests, cut into lots: each lot runs on one slot, and its results are compared as they come.

Inputs are encoded one at a time, as the slot asks for them, and outputs are dropped once they are compared: a lot holds
references, however large its tests are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Protocol, cast

from klearbench.judging.checks import Check, ReferenceFault, held_against, run_checks
from klearbench.judging.compare import Comparison, shorten
from klearbench.judging.outcome import SLEEPS, needs_run_alone, status_of, why
from klearbench.judging.schedule import Gate, Slots
from klearbench.judging.views import View, kind_of
from klearbench.sandbox.base import Command, RunResult, RunStatus, SandboxError
from klearbench.types import CodeTests, Status

_PROBLEMS = 100_000
SHARE_AFTER_S = 1.0
"""A lot that has run for so long (wall time) gives half of what is left to a slot that has nothing to do."""
_HELD_CHARS = 64 << 20
"""Outputs that may wait for a checker program, characters together."""


class Pace:
    """How long a test of each problem takes: the mean CPU time of its runs so far. Used by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}

    def mean(self, problem: tuple[str, str]) -> float | None:
        """CPU seconds a test, None for a problem that was not met yet."""
        runs, cpu_s = self._seen.get(problem, (0, 0.0))
        return cpu_s / runs if runs else None

    def add(self, problem: tuple[str, str], runs: int, cpu_s: float) -> None:
        """Some runs of a problem's tests, and their CPU seconds together."""
        with self._lock:
            if len(self._seen) >= _PROBLEMS:
                self._seen.clear()
            before = self._seen.get(problem, (0, 0.0))
            self._seen[problem] = (before[0] + runs, before[1] + cpu_s)


class Series:
    """The runs of one program: once an input, equal inputs once in all.

    Attributes:
        units: an entry a run, the numbers of the tests that have its input, in the order of the first of them.
        views: what makes something of the results.
        refused: the program does not compile; nothing more has to be run.
        asleep: the tests, by the first of each run, that its wall limit ended.
    """

    def __init__(self, command: Command, tests: CodeTests, views: Sequence[View]) -> None:
        self.command, self.tests, self.views = command, tests, views
        places: dict[str, list[int]] = {}
        for test, text in enumerate(tests.inputs.inputs):
            places.setdefault(text, []).append(test)
        self.units = list(places.values())
        self.refused = False
        self.asleep: list[int] = []
        self._early = all(view.early for view in views)
        self.cpu_s = self.wall_s = self.peak_mb = 0.0
        self.slot = ""

    def over_at(self, unit: int) -> bool:
        """Whether a run needs not be made: every view stops at a test before it, or too many before it slept."""
        first = self.units[unit][0]
        if self.refused or (self._early and first > max(view.first for view in self.views)):
            return True
        return len(self.asleep) >= SLEEPS and sum(test < first for test in self.asleep) >= SLEEPS

    def add_usage(self, lot: TestLot) -> None:
        """Add what a lot's runs used; the caller sees to it that one does so at a time."""
        self.cpu_s += lot.cpu_s
        self.wall_s += lot.wall_s
        self.peak_mb = max(self.peak_mb, lot.peak_mb)
        self.slot = self.slot or lot.slot


class Owner(Protocol):
    """Whose tests they are. `settled` is True when its verdict is known, or nobody waits for it any more."""

    settled: bool

    def done(self, lot: TestLot) -> None: ...

    def share(self, lot: TestLot) -> bool:
        """Whether a slot that has nothing to do takes the lot over."""
        ...

    def fail(self, error: Exception) -> None: ...


class TestLot:
    """Some consecutive runs of a series: a `Lot` of the schedule. After a fault it goes on with those that are missing.

    Attributes:
        expected_s: CPU seconds it will need, 0 if unknown.
        runs, cpu_s, wall_s, peak_mb: what its deciding runs used (seconds, MiB).
    """

    def __init__(self, owner: Owner, series: Series, units: Sequence[int], gate: Gate, *, expected_s: float) -> None:
        self.series = series
        self.expected_s = expected_s
        self._owner, self._gate = owner, gate
        self._todo: Sequence[int] = units
        self._alone: list[tuple[int, RunResult | None]] = []
        self._checks: list[Check] = []
        self._held = 0
        self.runs = 0
        self.cpu_s = self.wall_s = self.peak_mb = 0.0
        self.slot = ""

    @property
    def stopped(self) -> bool:
        return self._owner.settled

    def run(self, slots: Slots) -> None:
        """Run, compare, and run alone what ended near its limit. Raises SandboxError (a slot broke)."""
        try:
            while self._todo or self._checks:
                with self._gate.shared():
                    self._together(slots)
            while self._alone:
                with self._gate.alone():
                    self._one_alone(slots)
        except ReferenceFault as error:  # it would come again
            self._owner.fail(error)
        self._owner.done(self)

    def fail(self, error: Exception) -> None:
        self._owner.fail(error)

    def _over(self, unit: int) -> bool:
        return self._owner.settled or self.series.over_at(unit)

    def _share(self, since: float) -> bool:
        """Give the later half away if this takes long and a slot is free."""
        half = len(self._todo) // 2
        if not half or time.monotonic() - since < SHARE_AFTER_S:
            return False
        mean_s = self.cpu_s / self.runs if self.runs else 0.0
        lot = TestLot(self._owner, self.series, self._todo[-half:], self._gate, expected_s=mean_s * half)
        if not self._owner.share(lot):
            return False
        self._todo = self._todo[:-half]
        return True

    def _together(self, slots: Slots) -> None:
        """Run what is left, beside other lots, until another one wants to be alone or takes a part over."""
        limit_s = self.series.tests.inputs.time_limit_s
        todo, since = self._todo, time.monotonic()
        if todo and not self._over(todo[0]):
            with closing(self._results(slots, todo)) as results:
                for place, result in enumerate(results):
                    if needs_run_alone(result, limit_s):
                        slept = result.status is RunStatus.wall_limit
                        self._alone.append((todo[place], result if slept else None))
                    else:
                        self._settle(todo[place], result)
                    self._todo = todo[place + 1 :]
                    if self._held > _HELD_CHARS:
                        self._check(slots)
                    if self._gate.wanted or (self._todo and self._over(self._todo[0])) or self._share(since):
                        break
        if self._todo and self._over(self._todo[0]):
            self._todo = ()
        self._check(slots)

    def _one_alone(self, slots: Slots) -> None:
        """Run again what ended near its limit, with nothing beside it. The result of that run decides."""
        unit, slept = self._alone[0]
        if slept is not None and self.series.asleep:  # it has been seen to sleep when nothing kept it from running
            self._settle(unit, slept)
        elif not self._over(unit):
            with closing(self._results(slots, [unit])) as results:
                for result in results:
                    self._settle(unit, result)
        self._alone.pop(0)
        self._check(slots)

    def _results(self, slots: Slots, units: Sequence[int]) -> Generator[RunResult, None, None]:
        """One result a unit, in order; fewer is a fault of the slot."""
        slot = slots.get("submission")
        texts = self.series.tests.inputs.inputs
        given = (texts[self.series.units[unit][0]].encode("utf-8", "surrogatepass") for unit in units)
        runs = cast(Generator[RunResult, None, None], slot.run(self.series.command, given))
        with closing(runs):
            for _ in units:
                result = next(runs, None)
                if result is None:
                    raise SandboxError(f"{slot.id} gave fewer results than it was given inputs")
                yield result

    def _settle(self, unit: int, result: RunResult) -> None:
        """Take the result that decides a unit into account, test by test and view by view."""
        self.runs += 1
        self.cpu_s += result.cpu_s
        self.wall_s += result.wall_s
        self.peak_mb = max(self.peak_mb, result.peak_mb)
        self.slot = self.slot or result.slot
        tests = self.series.tests
        if result.status is RunStatus.wall_limit:
            self.series.asleep.append(self.series.units[unit][0])
        open_views = []
        for view in self.series.views:
            status = status_of(result, tests.inputs, exit_counts=view.rules.exit_counts)
            if status is Status.compile_error:
                view.refused(f"{why(result, status, tests.inputs)} [{kind_of(result.slot)}]")
                self.series.refused = True
            elif status is None:
                open_views.append(view)
            else:
                for test in self.series.units[unit]:
                    self._failed(view, test, status, result)
        if open_views:
            for test in self.series.units[unit]:
                self._hold_against(test, result, open_views)

    def _failed(self, view: View, test: int, status: Status, result: RunResult) -> None:
        view.failed(test, status, lambda: f"{why(result, status, self.series.tests.inputs)} [{kind_of(result.slot)}]")

    def _hold_against(self, test: int, result: RunResult, views: Sequence[View]) -> None:
        """Compare a test's output with what was expected, or keep it for the checker program."""
        for view in views:
            found = held_against(self.series.tests, test, result, view.rules.name)
            if isinstance(found, str):
                self._checks.append(Check(test, found, result.slot, tuple(views)))
                self._held += len(found)
                return
            self._mark(view, test, found, result.slot)
            if view.other is not None:
                other = held_against(self.series.tests, test, result, view.other)
                if isinstance(other, Comparison) and other.equal is not found.equal:
                    view.differs.add(test)

    def _mark(self, view: View, test: int, comparison: Comparison, slot: str) -> None:
        if comparison.equal:
            view.passed(test)
            return
        given = self.series.tests.inputs.inputs[test]
        view.failed(
            test, Status.wrong_answer, lambda: f"{comparison.detail} (input {shorten(given)}) [{kind_of(slot)}]"
        )

    def _check(self, slots: Slots) -> None:
        """Let the checker program see the outputs that wait for it."""
        if self._checks:
            run_checks(self.series.tests, self._checks, slots, self._mark)
            self._checks, self._held = [], 0
