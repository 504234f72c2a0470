"""Lengths of two runs over the same problems, compared: the ratio of the means, as a change in percent.

The test of a margin is linear: after - (1 + margin) before, over its standard error. The interval inverts it (Fieller
1954). Problems fixed: the scatter within problems. One sample a problem: the pairs' own scatter. Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance
from typing import NamedTuple

from klearbench.scoring.differences import Difference, tail
from klearbench.scoring.uncertainty import Interval, t_quantile, z_one_sided, z_two_sided


class Lengths(NamedTuple):
    """One problem's samples: how many, the sum of their lengths and the sum of the squares."""

    samples: int
    total: float
    squares: float

    @property
    def mean(self) -> float:
        return self.total / self.samples

    @property
    def scatter_squared(self) -> float:
        """Variance of one sample's length; needs two samples."""
        return max(0.0, self.squares - self.total**2 / self.samples) / (self.samples - 1)

    @property
    def error_squared(self) -> float:
        """Variance of the mean; needs two samples."""
        return self.scatter_squared / self.samples


class _Moments(NamedTuple):
    """Two means with their variances, their covariance, and the degrees of freedom behind these."""

    before: float
    after: float
    var_before: float
    var_after: float
    covariance: float
    df: int

    def z(self, ratio: float) -> float:
        """The normal deviate of the null that after = ratio * before; infinite where there is no noise."""
        net = self.after - ratio * self.before
        spread = self.var_after - 2 * ratio * self.covariance + ratio**2 * self.var_before
        if spread <= 1e-12 * (self.after**2 + self.before**2):  # nothing but rounding
            return math.copysign(math.inf, net) if abs(net) > 1e-9 * abs(self.before) else 0.0
        t = net / math.sqrt(spread)
        return math.copysign(_normal_deviate(abs(t), self.df), t)

    def interval(self, z: float) -> Interval | None:
        """The ratios whose null stands (Fieller), as changes in percent; None where the base may be 0."""
        t = t_quantile(z, self.df) if self.df < 200 else z
        a = self.before**2 - t**2 * self.var_before
        h = self.before * self.after - t**2 * self.covariance
        c = self.after**2 - t**2 * self.var_after
        if a <= 0 or h**2 < a * c:
            return None
        root = math.sqrt(h**2 - a * c)
        return (100 * ((h - root) / a - 1), 100 * ((h + root) / a - 1))


def _normal_deviate(t: float, df: int) -> float:
    """The normal deviate with the tail of Student's t (Wallace 1959, within 0.02 for the tails that matter)."""
    if df >= 200:
        return t
    return (8 * df + 1) / (8 * df + 3) * math.sqrt(df * math.log1p(t**2 / df))


def compare_means(
    base: Sequence[Lengths], candidate: Sequence[Lengths], *, max_drop: float = 0.0, confidence: float = 0.95
) -> Difference:
    """Lengths: same problems in the same order, at least one sample each and a base mean above 0; a rise is the drop.

    Args:
        base, candidate: samples of each problem.
        max_drop: the rise in percent of the base's mean that is allowed, and the margin of `p_within`.
        confidence: as of `compare_counts`.
    """
    moments, wide = _fixed(base, candidate), _between(base, candidate) if len(base) > 1 else None
    ratio, z1 = 1 + max_drop / 100, z_one_sided(confidence)
    upper = moments.interval(z1)
    return Difference(
        base=moments.before,
        candidate=moments.after,
        change=100 * (moments.after / moments.before - 1),
        interval=moments.interval(z_two_sided(confidence)),
        interval_problems=wide.interval(z_two_sided(confidence)) if wide else None,
        interval_naive=None,
        p_value=tail(moments.z(ratio)),
        p_within=tail(-moments.z(ratio)),
        shown=max(0.0, upper[1]) if upper else None,
    )


def _fixed(base: Sequence[Lengths], candidate: Sequence[Lengths]) -> _Moments:
    """Problems fixed: the scatter within problems; where a problem has one sample, that between the pairs."""
    if any(row.samples < 2 for row in (*base, *candidate)) and len(base) > 1:
        return _between(base, candidate)
    n = len(base)
    means = [fmean(row.mean for row in side) for side in (base, candidate)]
    parts = [[row.error_squared if row.samples > 1 else row.mean**2 for row in side] for side in (base, candidate)]
    errors = [sum(side) / n**2 for side in parts]
    # Satterthwaite 1946: a few problems may have nearly all the scatter, then only their samples tell how large it is.
    squares = sum(
        p**2 / max(1, row.samples - 1) for p, row in zip(parts[0] + parts[1], (*base, *candidate), strict=True)
    )
    df = max(1, int((sum(parts[0]) + sum(parts[1])) ** 2 / squares)) if squares else 1
    return _Moments(means[0], means[1], errors[0], errors[1], 0.0, df)


def _between(base: Sequence[Lengths], candidate: Sequence[Lengths]) -> _Moments:
    """Problems resampled: the scatter of the problems' means, and how the two runs' go together."""
    before, after = ([row.mean for row in side] for side in (base, candidate))
    n, middle, other = len(before), fmean(before), fmean(after)
    together = sum((b - middle) * (a - other) for b, a in zip(before, after, strict=True)) / (n - 1)
    return _Moments(middle, other, variance(before) / n, variance(after) / n, together / n, n - 1)
