"""How far a score may be off: two noise models, closed forms, stdlib only. `differences` compares two scores.

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
from statistics import NormalDist, fmean, variance
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
    return sum(right / judged for right, judged in counts) / len(counts)


def variance_fixed(counts: Sequence[Count]) -> float:
    """Variance of the score (a share) with problems fixed, without the smoothing term.

    Problems with one sample take the mean of the others' variance; when all have one, the variance between problems.
    """
    n = len(counts)
    repeated = [c for c in counts if c.judged > 1]
    if len(repeated) == n:
        return sum(within(c) / c.judged for c in counts) / n**2
    between = [c.share for c in counts]
    usual = fmean(map(within, repeated)) if repeated else variance(between) if n > 1 else 0.0
    return sum((within(c) if c.judged > 1 else usual) / c.judged for c in counts) / n**2


def within(count: Count) -> float:
    """The unbiased estimate of p (1 - p) of one problem."""
    right, judged = count
    return right * (judged - right) / (judged * (judged - 1))


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
    return around(mean_share(counts), z * standard_error(counts, z))


def interval_problems(counts: Sequence[Count], confidence: float = 0.95) -> Interval | None:
    """The score's interval in points with problems resampled; None with fewer than two problems."""
    z = z_two_sided(confidence)
    error = standard_error_problems(counts, z)
    if error is None:
        return None
    return around(mean_share(counts), t_quantile(z, len(counts) - 1) * error)


def around(share: float, half: float, lowest: float = 0.0) -> Interval:
    """`share` plus and minus `half` in points, within what a share can be."""
    return (100 * max(lowest, share - half), 100 * min(1.0, share + half))
