"""Judging the teacher's responses, and what the verdicts say of each problem's difficulty.

A response that the judge failed on (`judge_error`) is never counted as wrong: it takes no part in the pass rate, and
the next run of the same command judges it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from klearbench.curation.distill import Plan, SampleLog
from klearbench.curation.sources import ProblemKey
from klearbench.errors import DataError
from klearbench.faults import fault
from klearbench.progress import Progress
from klearbench.store import JsonlWriter, read_rows
from klearbench.suites.references import Judge
from klearbench.types import Reference, Status, Verdict, from_row, to_row

_CHUNK = 512
"""Responses a judge call: what a kill can cost, and what memory holds at once."""


class Judged:
    """Status and score by place; None where a response is not judged yet, or was never made."""

    def __init__(self, plan: Plan, verdicts: Path) -> None:
        self.plan = plan
        self._by_place: list[tuple[Status, float | None] | None] = [None] * len(plan)
        for line, row in read_rows(verdicts, ours=True) if verdicts.exists() else ():
            try:
                self.note(from_row(Verdict, row))
            except ValueError as error:
                raise DataError(verdicts, str(error), line) from None

    def note(self, verdict: Verdict) -> None:
        place = self.plan.place(verdict.key)
        if place is not None:
            self._by_place[place] = (verdict.status, verdict.score)

    def status(self, place: int) -> Status | None:
        at = self._by_place[place]
        return None if at is None else at[0]

    def score(self, place: int) -> float | None:
        at = self._by_place[place]
        return None if at is None else at[1]

    def count(self, status: Status) -> int:
        return sum(at is not None and at[0] is status for at in self._by_place)

    def pass_rate(self, problem: int) -> float | None:
        """Share (0..1) of a problem's judged responses that are correct; None when none could be judged."""
        found = [at[0] for place in self.plan.places(problem) if (at := self._by_place[place]) is not None]
        fair = [status for status in found if status is not Status.judge_error]
        return sum(status is Status.correct for status in fair) / len(fair) if fair else None


def to_judge(log: SampleLog, judged: Judged) -> list[int]:
    """The places whose response still needs a verdict: never judged, or our judge failed on it."""
    return [
        place
        for place in range(len(log.plan))
        if not log.missing(place) and judged.status(place) in (None, Status.judge_error)
    ]


def verify(
    log: SampleLog,
    judged: Judged,
    answers: Mapping[ProblemKey, Reference],
    judge: Judge,
    verdicts: Path,
) -> None:
    """Judge what is not judged yet; verdicts are appended to a file and noted in `judged`."""
    places = to_judge(log, judged)
    with JsonlWriter(verdicts) as writer, Progress("verify", len(places), unit="responses") as progress:
        for start in range(0, len(places), _CHUNK):
            samples = [log.read(place) for place in places[start : start + _CHUNK]]
            fault("verify.batch")
            for verdict in judge.judge([(s, answers[s.suite, s.problem_id]) for s in samples]):
                writer.append(to_row(verdict))
                judged.note(verdict)
            progress.advance(len(samples))
