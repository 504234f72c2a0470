"""What the gate can look at: a metric's unit, which way is worse, and how two runs of a suite are compared in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from klearbench.scoring.differences import Difference, compare_counts, fisher
from klearbench.scoring.groups import ProblemScore
from klearbench.scoring.ratios import Lengths, compare_means
from klearbench.scoring.uncertainty import Count

Rows = Sequence[ProblemScore]
Compare = Callable[[Rows, Rows, float, float], Difference]
"""(base's problems, the candidate's in the same order, max_drop, confidence) -> Difference, of which a fall of a share
or a rise of a length is the drop."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One way to look at a suite.

    Attributes:
        title: in a table, `{k}` for samples a problem.
        unit: of a change and of max_drop: "points", or "%" of the base.
        rise_is_worse: a score falls when it gets worse; shares of faults and lengths rise.
        sampled: a problem's samples that the metric looks at; a problem with none is left out.
        value: a problem's own value: a share 0..1, or tokens.
        compare: see `Compare`.
        chance: one-sided p-value of one problem that got worse; None where no test of one problem is at hand.
    """

    title: str
    unit: str
    rise_is_worse: bool
    sampled: Callable[[ProblemScore], int]
    value: Callable[[ProblemScore], float]
    compare: Compare
    chance: Callable[[ProblemScore, ProblemScore], float] | None = None


def _share(
    title: str, good: Callable[[ProblemScore], int], sampled: Callable[[ProblemScore], int], *, faults: bool = False
) -> Metric:
    """A metric that counts good samples of all `sampled`; `faults` shows the share of the others."""

    def value(row: ProblemScore) -> float:
        share = good(row) / sampled(row)
        return 1 - share if faults else share

    def compare(base: Rows, candidate: Rows, max_drop: float, confidence: float) -> Difference:
        sides = [[Count(good(row), sampled(row)) for row in side] for side in (base, candidate)]
        return compare_counts(sides[0], sides[1], max_drop=max_drop, confidence=confidence)

    def chance(before: ProblemScore, after: ProblemScore) -> float:
        return fisher(Count(good(before), sampled(before)), Count(good(after), sampled(after)))

    return Metric(title, "points", faults, sampled, value, compare, chance)


def length_of(row: ProblemScore) -> Lengths:
    return Lengths(row.sampled, row.tokens, row.tokens_squared)


def _compare_lengths(base: Rows, candidate: Rows, max_drop: float, confidence: float) -> Difference:
    sides = [[length_of(row) for row in side] for side in (base, candidate)]
    return compare_means(sides[0], sides[1], max_drop=max_drop, confidence=confidence)


METRICS: Mapping[str, Metric] = {
    "avg@k": _share("avg@{k}", lambda row: row.right, lambda row: row.judged),
    "truncated": _share("truncated", lambda row: row.judged - row.truncated, lambda row: row.judged, faults=True),
    "judge-errors": _share(
        "judge errors", lambda row: row.judged, lambda row: row.judged + row.judge_errors, faults=True
    ),
    "length": Metric(
        "mean tokens", "%", True, lambda row: row.sampled, lambda row: length_of(row).mean, _compare_lengths
    ),
}
"""Metric -> what it is. Shares are of judged samples; judge errors of all samples that reached a judge."""


def natural(difference: Difference, metric: Metric) -> Difference:
    """A share of faults as it is read: what was compared is the share of the others."""
    if not metric.rise_is_worse or metric.unit == "%":
        return difference

    def turned(interval: tuple[float, float] | None) -> tuple[float, float] | None:
        return None if interval is None else (-interval[1] + 0.0, -interval[0] + 0.0)

    return Difference(
        base=100 - difference.base,
        candidate=100 - difference.candidate,
        change=-difference.change + 0.0,  # no minus before a zero
        interval=turned(difference.interval),
        interval_problems=turned(difference.interval_problems),
        interval_naive=turned(difference.interval_naive),
        p_value=difference.p_value,
        p_within=difference.p_within,
        shown=difference.shown,
    )
