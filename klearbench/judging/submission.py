"""One sample on its way to a verdict: the program in it, its runs in lots, and what each test came to.

    Submission --> Series (a program as it is run) --> TestLot (some of its inputs, on one slot)
               --> View (what one mode's rules make of each run) --> Verdict

In the mode "both" two views share one series where strict and compat rules run the same program in the same way.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from klearbench.judging.checks import ReferenceFault
from klearbench.judging.lots import Pace, Series, TestLot
from klearbench.judging.modes import Rules, cause_of, read_program
from klearbench.judging.outcome import told
from klearbench.judging.schedule import Gate
from klearbench.judging.views import View
from klearbench.sandbox.base import Command, SandboxUnavailable
from klearbench.types import CodeTests, Sample, Status, Verdict

LOT_TESTS = 64
_LOT_S = 1.0
"""A lot of a problem never seen holds this many tests; of one that was, about this much CPU time (seconds)."""

Row = tuple[Sample, CodeTests, bool]
"""A sample, its reference, and whether the completion is a program to be taken as it is."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict; in the mode "both" also the compat one, and why the two differ ("" if they don't)."""

    verdict: Verdict
    other: Verdict | None = None
    cause: str = ""

    def difference(self) -> dict[str, Any] | None:
        """A row for a file of differences, None when both statuses are the same."""
        if self.other is None or not self.cause:
            return None
        row = difference_row(self.verdict, self.other, "compat", ("status", "score", "extracted", "detail"))
        return {**row, "cause": self.cause}


def difference_row(ours: Verdict, theirs: Verdict, other: str, shown: Sequence[str]) -> dict[str, Any]:
    """A row for a file of differences: the key, and what is shown of our verdict and, by its name, of the other one."""
    row: dict[str, Any] = {"problem_id": ours.problem_id, "sample_index": ours.sample_index}
    for name, verdict in (("strict", ours), (other, theirs)):
        row[name] = {field: getattr(verdict, field) for field in shown}
    return row


class Submission:
    """One row while it is judged. `future` ends with a `Judged`, or with the SandboxUnavailable the user has to see.

    Args:
        row: what is judged.
        rules: the rules of each view; the first one's verdict is the submission's.
        first_failure: stop at the first failing test.
        workers: slots that could share the tests.
        offer: takes a lot over if a slot has nothing to do.
    """

    def __init__(
        self,
        row: Row,
        rules: Sequence[Rules],
        *,
        first_failure: bool,
        workers: int,
        gate: Gate,
        pace: Pace,
        offer: Callable[[TestLot], bool],
    ) -> None:
        self._sample, self._total = row[0], len(row[1].inputs.inputs)
        self.key = (row[0].suite, row[0].problem_id)
        self.future: Future[Judged] = Future()
        self.future.add_done_callback(self._settle)
        self.settled = False
        self._lock = threading.Lock()
        self._pace, self._offer = pace, offer
        self.lots: list[TestLot] = []
        self._views: list[View] = []
        self._series: list[Series] = []
        self._pending: set[TestLot] = set()
        try:
            refuse_useless(row[1])
            self._views = [View(r, read_program(r, row), row[1], early=first_failure or r.early) for r in rules]
            for view, other in zip(self._views, reversed(rules), strict=True):
                view.other = other.name if other is not view.rules else None
            self._series = self._group(row[1])
            lots = [lot for series in self._series for lot in self._cut(series, workers, gate)]
        except Exception as error:  # whatever it is, it is our fault: the other submissions must not be lost
            self.fail(error)
            return
        self.lots, self._pending = lots, set(lots)
        if not lots:
            self._finish()

    def _group(self, tests: CodeTests) -> list[Series]:
        """One series a program as it is run; views of equal commands share it."""
        groups: dict[Command, list[View]] = {}
        for view in self._views:
            if view.command is not None:
                groups.setdefault(view.command, []).append(view)
        return [Series(command, tests, views) for command, views in groups.items()]

    def _cut(self, series: Series, workers: int, gate: Gate) -> list[TestLot]:
        """Lots of consecutive inputs, as many as help: each has the program compiled anew."""
        count = len(series.units)
        mean = self._pace.mean(self.key)
        if workers == 1:
            pieces = 1
        elif mean is None:
            pieces = min(workers, math.ceil(count / LOT_TESTS))
        else:
            pieces = min(count, math.ceil(mean * count / _LOT_S)) or 1
        bounds = [count * i // pieces for i in range(pieces + 1)]
        return [
            TestLot(self, series, range(start, end), gate, expected_s=(mean or 0.0) * (end - start))
            for start, end in pairwise(bounds)
        ]

    def share(self, lot: TestLot) -> bool:
        """Count a part of one of the lots as a lot of its own, if a slot that has nothing to do takes it over."""
        with self._lock:
            if self.settled:
                return False
            self._pending.add(lot)
            taken = self._offer(lot)
            if not taken:
                self._pending.discard(lot)
            return taken

    def done(self, lot: TestLot) -> None:
        """A lot is done; the last one brings the verdict."""
        with self._lock:
            if lot not in self._pending:  # decided already, or cancelled
                return
            self._pending.discard(lot)
            last = not self._pending
            lot.series.add_usage(lot)
        self._pace.add(self.key, lot.runs, lot.cpu_s)
        if last:
            self._finish()

    def _finish(self) -> None:
        """All lots are done, or there are none: the verdict."""
        views, series = self._views, self._series
        if self.settled:
            return
        try:
            self._resolve(_judged(self._sample, views, series))
        except Exception as error:  # as above: without this, somebody would wait for ever
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Our fault: a judge error for this sample, unless it is decided already."""
        if isinstance(error, SandboxUnavailable):
            self._resolve(error)
            return
        total = self._total or None
        self._resolve(Judged(Verdict(*self._sample.key, Status.judge_error, None, total=total, detail=told(error))))

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self.future.cancel()

    def _resolve(self, outcome: Judged | SandboxUnavailable) -> None:
        try:
            if isinstance(outcome, Judged):
                self.future.set_result(outcome)
            else:
                self.future.set_exception(outcome)
        except InvalidStateError:  # decided by another lot, or cancelled
            return

    def _settle(self, _: object) -> None:
        """Let go of the tests: what still runs holds its own part of them."""
        self.settled = True
        self.lots, self._views, self._series, self._pending = [], [], [], set()


def _judged(sample: Sample, views: Sequence[View], series: Sequence[Series]) -> Judged:
    usages = [next((s for s in series if view in s.views), None) for view in views]
    verdicts = [view.verdict(sample, usage) for view, usage in zip(views, usages, strict=True)]
    if len(verdicts) == 1:
        return Judged(verdicts[0])
    ours, theirs = verdicts
    return Judged(ours, theirs, cause_of(ours, theirs, *views))


def refuse_useless(tests: CodeTests) -> None:
    """Refuse a reference that would pass every program, or none. Raises ReferenceFault."""
    given, expected = tests.inputs, tests.expected
    if not given.inputs:
        raise ReferenceFault(f"problem {given.problem_id!r} has no tests")
    if len(given.inputs) != len(expected.outputs):
        counts = f"{len(given.inputs)} inputs and {len(expected.outputs)} expected outputs"
        raise ReferenceFault(f"problem {given.problem_id!r} has {counts}")
