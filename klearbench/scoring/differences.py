"""Two sets of results over the same problems, compared: the statistics of the gate, closed forms, stdlib only.

`ratios` compares lengths. Every comparison answers three questions, each with its own error rate:
    * How large is the change? Two-sided intervals: problems fixed, problems resampled, and (shares only) the naive one
      of two unpaired heaps of samples, which is what a reader of two scores has in mind.
    * Is it worse than allowed? `p_value`, one-sided; null: the true drop is at most `max_drop`.
    * Is it shown to be no worse? `p_within`, one-sided; null: the true drop is at least `max_drop`. `shown` is the
      least margin for which that null falls at the confidence asked.

Shares (`compare_counts`):
    * More than one sample a problem: z = (drop - max_drop) / sqrt(SE_base^2 + SE_candidate^2), the smoothed errors of
      `uncertainty`. With problems fixed the two runs' noise is independent; pairing enters because both score the same
      problems.
    * One sample a problem, max_drop 0: McNemar's exact binomial test on the problems in which the runs differ.
    * One sample a problem, another margin: the score test for paired proportions (Tango 1998, Statistics in Medicine
      17:891-908, eq. 2.11) with half an observation as continuity correction; at no differing problem it stays valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from klearbench.scoring.uncertainty import (
    Count,
    Interval,
    around,
    mean_share,
    smoothing,
    t_quantile,
    variance_fixed,
    z_one_sided,
    z_two_sided,
)

_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """Two results compared.

    Attributes:
        base, candidate: the two means: points (0..100) of shares, tokens of lengths.
        change: candidate - base; points, or percent of the base's mean.
        interval: of `change`, two-sided, problems fixed; `interval_problems` resamples problems (None for one problem);
            `interval_naive` takes the samples of both runs for two unpaired heaps (None for lengths).
        p_value: one-sided, of a drop of at most max_drop; `p_within` of a drop of at least max_drop.
        shown: the least margin, in the unit of `change`, that the drop is shown to stay below; None where none is.
    """

    base: float
    candidate: float
    change: float
    interval: Interval | None
    interval_problems: Interval | None
    interval_naive: Interval | None
    p_value: float
    p_within: float
    shown: float | None


def compare_counts(
    base: Sequence[Count], candidate: Sequence[Count], *, max_drop: float = 0.0, confidence: float = 0.95
) -> Difference:
    """Shares: same problems in the same order, every `judged` above 0; a fall of the share is the drop.

    Args:
        base, candidate: good and judged samples of each problem.
        max_drop: the drop in points that is allowed, and the margin of `p_within`.
        confidence: of the two-sided intervals, and 1 - the level at which p-values and `shown` are meant.
    """
    pairs = Pairs.of(base, candidate) if all(c.judged == 1 for c in (*base, *candidate)) else None
    before, after = mean_share(base), mean_share(candidate)
    z, z1, margin = z_two_sided(confidence), z_one_sided(confidence), max_drop / 100
    error_at = _paired_error(base, candidate, pairs)
    error = error_at(z)
    if pairs:
        p_value = pairs.exact() if margin == 0 else tail(pairs.score(margin, -0.5))
        p_within = tail(-pairs.score(margin, 0.5))
        shown = _least(lambda m: -pairs.score(m, 0.5) > z1)
    else:
        error1 = error_at(z1)
        p_value = tail((before - after - margin) / error1)
        p_within = tail((margin - before + after) / error1)
        shown = before - after + z1 * error1
    wide = None
    if len(base) > 1:
        changes = [c.right / c.judged - b.right / b.judged for b, c in zip(base, candidate, strict=True)]
        scatter = math.fsum((change - (after - before)) ** 2 for change in changes) / (len(changes) - 1)
        spread = math.hypot(math.sqrt(scatter / len(changes)), z / sum(c.judged for c in base))
        wide = around(after - before, t_quantile(z, len(base) - 1) * max(spread, error), lowest=-1.0)
    return Difference(
        base=100 * before,
        candidate=100 * after,
        change=100 * (after - before),
        interval=around(after - before, z * error, lowest=-1.0),
        interval_problems=wide,
        interval_naive=_naive(base, candidate, z),
        p_value=p_value,
        p_within=p_within,
        shown=100 * max(0.0, shown),
    )


def tail(z: float) -> float:
    """P(a standard normal is above z)."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def _paired_error(base: Sequence[Count], candidate: Sequence[Count], pairs: Pairs | None) -> Callable[[float], float]:
    """Quantile -> standard error of the difference of shares, problems fixed, smoothed for it.

    With one sample a problem the pairs themselves give it (McNemar): sqrt(differing - net^2 / n) / n.
    """
    if pairs:
        differing, net = pairs.losses + pairs.gains, pairs.losses - pairs.gains
        variance = (differing - net**2 / pairs.n) / pairs.n**2
        return lambda z: math.sqrt(variance + smoothing(base, z))
    variance = variance_fixed(base) + variance_fixed(candidate)
    return lambda z: math.sqrt(variance + smoothing(base, z) + smoothing(candidate, z))


def _naive(base: Sequence[Count], candidate: Sequence[Count], z: float) -> Interval:
    """Every sample a coin of the run's own: sqrt(p (1 - p) / N) of each run, added in squares."""
    shares = [sum(c.right for c in side) / sum(c.judged for c in side) for side in (base, candidate)]
    sizes = [sum(c.judged for c in side) for side in (base, candidate)]
    error = math.sqrt(sum(p * (1 - p) / n for p, n in zip(shares, sizes, strict=True)))
    return around(shares[1] - shares[0], z * error, lowest=-1.0)


class Pairs(NamedTuple):
    """One sample a problem in both runs: problems, those lost (right before, wrong now), those gained."""

    n: int
    losses: int
    gains: int

    @classmethod
    def of(cls, base: Sequence[Count], candidate: Sequence[Count]) -> Pairs:
        nets = [c.right - b.right for b, c in zip(base, candidate, strict=True)]
        return cls(len(nets), sum(net < 0 for net in nets), sum(net > 0 for net in nets))

    def exact(self) -> float:
        """P(so many losses or more | the problems that differ), each a loss with chance 1/2: McNemar's exact test."""
        differing = self.losses + self.gains
        if not differing:
            return 1.0
        way = ways = 1  # of `differing` losses, then of one loss fewer, and so on
        for losses in range(differing, self.losses, -1):
            way = way * losses // (differing - losses + 1)
            ways += way
        return float(ways / 2**differing)

    def score(self, margin: float, correction: float) -> float:
        """Tango's z of the null that the drop is `margin` (a share): positive for a larger drop.

        `correction` is added to the net number of losses: -1/2 to test for more, +1/2 to test for less.
        """
        n, b, c = self.n, self.losses, self.gains
        if margin >= 1:
            return -math.inf
        linear = -(b + c) + (2 * n - b + c) * margin
        gains = (math.sqrt(max(0.0, linear**2 + 8 * n * c * margin * (1 - margin))) - linear) / (4 * n)
        spread = n * (2 * gains + margin * (1 - margin))
        above = b - c - n * margin + correction
        if spread <= 0:  # no problem differs and the margin is 0
            return math.copysign(math.inf, above) if above > 0 else 0.0
        return above / math.sqrt(spread)


def _least(is_shown: Callable[[float], bool]) -> float:
    """The least margin (a share, 0..1) that is shown, where larger margins are shown before smaller ones."""
    low, high = 0.0, 1.0
    if is_shown(low):
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment (1979), in the order given: reject where the result is below the level."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


@lru_cache(maxsize=100_000)
def fisher(base: Count, candidate: Count) -> float:
    """One-sided exact p of one problem: that so few of the candidate's samples are right by chance (Fisher 1935)."""
    right, all_samples = base.right + candidate.right, base.judged + candidate.judged
    lowest = max(0, right - base.judged)
    ways = sum(
        math.comb(candidate.judged, x) * math.comb(base.judged, right - x) for x in range(lowest, candidate.right + 1)
    )
    return ways / math.comb(all_samples, right)
