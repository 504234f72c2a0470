"""How far a score, or the difference of two, may be off: two noise models, closed forms, stdlib only.

A problem's result is `Count(right, judged)`; the score is the mean over problems of right / judged.

Problems fixed (the first interval): only the sampling of completions is random. With p_i the chance that one sample of
problem i is right, Var(score) = (1/n^2) sum_i p_i (1 - p_i) / k_i, estimated without bias by
right (judged - right) / (judged - 1) per problem.
    * One sample a problem says nothing of p_i (1 - p_i). We then fall back, as Miller 2024 (arXiv 2411.00640) does, on
      the variance between problems, which is never smaller in expectation: the interval is on the wide side.
    * Samples that all agree would give an interval of width 0. So the variance of the number of right samples gets z^2
      added, as in a score interval: with no disagreement at all the half-width is z^2 samples (3.84 at 95 %, where the
      exact Poisson bound is 3.69), and with hundreds of disagreements the term can't be seen.
Problems resampled (the second, wider interval): the problems are a draw from a larger pool; variance between problems,
Student's t with n - 1 degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev, variance
from typing import NamedTuple


class Count(NamedTuple):
    """One problem's samples: how many are right, of how many that were judged."""

    right: int
    judged: int

    @property
    def share(self) -> float:
        return self.right / self.judged


Interval = tuple[float, float]
"""(low, high)."""


def z_two_sided(confidence: float) -> float:
    """The normal quantile of a two-sided interval: 1.96 for 0.95."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def z_one_sided(confidence: float) -> float:
    """The normal quantile of a one-sided test: 1.645 for 0.95."""
    return NormalDist().inv_cdf(confidence)


def t_quantile(z: float, df: int) -> float:
    """Student's t quantile at the probability of the normal quantile `z`: exact at 1 and 2 degrees of freedom, above
    them by a series (1 % short at 3)."""
    p = NormalDist().cdf(z)
    if df == 1:
        return math.tan(math.pi * (p - 0.5))
    if df == 2:
        return (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / df + second / df**2 + third / df**3


def mean_share(counts: Sequence[Count]) -> float:
    """The score as a share, 0..1: the mean over problems. `counts` is not empty and every `judged` is above 0."""
    return fmean(c.share for c in counts)


def variance_fixed(counts: Sequence[Count]) -> float:
    """Variance of the score (a share) with problems fixed, without the smoothing term.

    Problems with one sample take the mean of the others' variance; when all have one, the variance between problems.
    """
    repeated = [c for c in counts if c.judged > 1]
    if repeated:
        usual = fmean(_within(c) for c in repeated)
    else:
        usual = variance([c.share for c in counts]) if len(counts) > 1 else 0.0
    return sum((_within(c) if c.judged > 1 else usual) / c.judged for c in counts) / len(counts) ** 2


def _within(count: Count) -> float:
    """The unbiased estimate of p (1 - p) of one problem."""
    return count.right * (count.judged - count.right) / (count.judged * (count.judged - 1))


def smoothing(counts: Sequence[Count], z: float) -> float:
    """What is added to a variance so that samples that all agree never give width 0: z^2 in units of samples."""
    return (z / sum(c.judged for c in counts)) ** 2


def standard_error(counts: Sequence[Count], z: float) -> float:
    """Standard error of the score (a share) with problems fixed, smoothed for the quantile `z`; never 0."""
    return math.sqrt(variance_fixed(counts) + smoothing(counts, z))


def standard_error_problems(counts: Sequence[Count], z: float) -> float | None:
    """Standard error with problems resampled, at least that with problems fixed. None for a single problem."""
    if len(counts) < 2:
        return None
    between = variance([c.share for c in counts]) / len(counts)
    return math.sqrt(max(between, variance_fixed(counts)) + smoothing(counts, z))


def interval_fixed(counts: Sequence[Count], confidence: float = 0.95) -> Interval | None:
    """The score's interval in points (0..100) with problems fixed; None when nothing was judged."""
    if not counts:
        return None
    z = z_two_sided(confidence)
    return _around(mean_share(counts), z * standard_error(counts, z))


def interval_problems(counts: Sequence[Count], confidence: float = 0.95) -> Interval | None:
    """The score's interval in points with problems resampled; None with fewer than two problems."""
    z = z_two_sided(confidence)
    error = standard_error_problems(counts, z)
    if error is None:
        return None
    return _around(mean_share(counts), t_quantile(z, len(counts) - 1) * error)


def _around(share: float, half: float, lowest: float = 0.0) -> Interval:
    return (100 * max(lowest, share - half), 100 * min(1.0, share + half))


@dataclass(frozen=True, slots=True)
class Difference:
    """Two sets of counts over the same problems, compared. Points; `p_value` one-sided for a drop above max_drop."""

    base: float
    candidate: float
    interval: Interval
    interval_problems: Interval | None
    p_value: float

    @property
    def points(self) -> float:
        return self.candidate - self.base


def compare_counts(
    base: Sequence[Count], candidate: Sequence[Count], *, max_drop: float = 0.0, confidence: float = 0.95
) -> Difference:
    """The statistics of the gate on counts: same problems in the same order, every `judged` above 0.

    Args:
        base, candidate: good and judged samples of each problem.
        max_drop: the drop in points that is allowed.
        confidence: of the two-sided intervals, and 1 - the level at which the p-value is meant to be read.
    """
    single = all(c.judged == 1 for c in (*base, *candidate))
    before, after = mean_share(base), mean_share(candidate)
    differences = [c.share - b.share for b, c in zip(base, candidate, strict=True)]
    z = z_two_sided(confidence)
    error = _paired_error(base, candidate, z, single)
    if single:
        p_value = _exact_p(differences, max_drop / 100)
    else:
        tail = (before - after - max_drop / 100) / _paired_error(base, candidate, z_one_sided(confidence), single)
        p_value = NormalDist().cdf(-tail)
    wide = None
    if len(base) > 1:
        spread = math.hypot(stdev(differences) / math.sqrt(len(differences)), z / sum(c.judged for c in base))
        wide = _around(after - before, t_quantile(z, len(base) - 1) * max(spread, error), lowest=-1.0)
    return Difference(100 * before, 100 * after, _around(after - before, z * error, lowest=-1.0), wide, p_value)


def _paired_error(base: Sequence[Count], candidate: Sequence[Count], z: float, single: bool) -> float:
    """Standard error of the difference of shares, problems fixed.

    With one sample a problem the pairs themselves give it (McNemar): sqrt(differing - net^2 / n) / n, smoothed.
    """
    if not single:
        return math.hypot(standard_error(base, z), standard_error(candidate, z))
    net = sum(c.right - b.right for b, c in zip(base, candidate, strict=True))
    differing = sum(c.right != b.right for b, c in zip(base, candidate, strict=True))
    n = len(base)
    return math.sqrt((differing - net**2 / n) / n**2 + smoothing(base, z))


def _exact_p(differences: Sequence[float], max_drop: float) -> float:
    """P(losses this many or more | problems that differ), where each is a loss with the null's chance."""
    losses = sum(d < 0 for d in differences)
    differing = losses + sum(d > 0 for d in differences)
    if not differing:
        return 1.0
    chance = min(1.0, (1 + max_drop * len(differences) / differing) / 2)
    if chance == 1:
        return 1.0
    return min(1.0, math.fsum(_binomial(x, differing, chance) for x in range(losses, differing + 1)))


def _binomial(x: int, n: int, chance: float) -> float:
    """P(x of n), by logarithms: binomial coefficients of large n are no floats."""
    ways = math.lgamma(n + 1) - math.lgamma(x + 1) - math.lgamma(n - x + 1)
    return math.exp(ways + x * math.log(chance) + (n - x) * math.log1p(-chance))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment, in the order given: reject where the result is below the level."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted
