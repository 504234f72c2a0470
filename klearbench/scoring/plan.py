"""How many samples a gate needs: power before the run, from the base's own difficulties.

With problems fixed, the variance of a score is mean p (1 - p) / (n k). The base's samples give mean p (1 - p) without
bias; the candidate's is that of the same problems with every chance lowered in proportion, so that the mean falls by
the drop in question. Lengths: the base's scatter within problems stands for both runs. Normal theory, with the
smoothing term that the test has. Several tests share the error rate: the plan gives each an equal part (Bonferroni), on
the safe side of Holm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist, fmean

from klearbench.errors import IncompleteError, UsageError
from klearbench.scoring.comparable import chosen_suites
from klearbench.scoring.gate import GateOptions
from klearbench.scoring.groups import ProblemScore
from klearbench.scoring.measures import METRICS, length_of
from klearbench.scoring.metrics import EvalRun

MOST_SAMPLES = 65536


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one suite and metric.

    Attributes:
        drop: the true drop in question; `max_drop`: what is allowed; both in `unit`.
        power: the chance that the gate sees it (or, with prove, passes it) at the base's own k.
        samples: the least k, in both runs, that has the power asked; None where none up to 65,536 has.
        visible: the least drop that the base's own k sees with the power asked (with prove: the least margin that it
            shows when the true drop is `drop`).
        noise: mean p (1 - p) of the base's problems (shares), or the scatter within a problem over the mean (lengths).
        between: the base has one sample a problem: `noise` is an upper bound.
    """

    suite: str
    metric: str
    unit: str
    k: int
    problems: int
    drop: float
    max_drop: float
    power_asked: float
    power: float
    samples: int | None
    visible: float
    noise: float
    between: bool


Error = Callable[[float, float], float]
"""(k, drop) -> the standard error of the difference, in the metric's unit, with the candidate `drop` worse."""


def plan(base: EvalRun, drop: float, options: GateOptions, power: float = 0.8) -> list[Plan]:
    """A plan for every suite and metric of the gate.

    Args:
        base: the run to compare with; its k is the one that `power` is told for.
        drop: the true drop to see, points (percent for lengths). With `prove`: the true drop that must still pass.
        options: the gate's.
        power: the chance of seeing it that is wanted, 0..1.

    Raises:
        UsageError: a drop on the wrong side of max_drop, or a suite that isn't there.
        IncompleteError: a suite without samples for a metric.
    """
    if not 0 < power < 1:
        raise UsageError(f"--power is {power}; it must be above 0 and below 1, e.g. 0.8")
    suites = chosen_suites(base, options)
    level = (1 - options.confidence) / (1 if options.prove else len(suites) * len(options.metrics))
    return [
        _plan(base, suite, metric, drop, options, NormalDist().inv_cdf(1 - level), power)
        for metric in options.metrics
        for suite in suites
    ]


def _plan(base: EvalRun, suite: str, name: str, drop: float, options: GateOptions, z: float, power: float) -> Plan:
    metric, allowed, score = METRICS[name], options.allowed(suite, name), base.scores[suite]
    _refuse_drop(drop, allowed, suite, name, options.prove)
    rows = [row for row in score.per_problem if metric.sampled(row)]
    if not rows:
        raise IncompleteError(f"no plan ({name}): no problem of {suite} has samples for it in {base.path}")
    error, noise, between = _lengths(rows, z) if metric.unit == "%" else _shares(rows, name, z)
    gap = allowed - drop if options.prove else drop - allowed

    def chance(k: float) -> float:
        return NormalDist().cdf(gap / error(k, drop) - z)

    wanted = z + NormalDist().inv_cdf(power)
    return Plan(
        suite=suite,
        metric=name,
        unit=metric.unit,
        k=score.k,
        problems=len(rows),
        drop=drop,
        max_drop=allowed,
        power_asked=power,
        power=chance(score.k),
        samples=_least_k(lambda k: chance(k) >= power),
        visible=_visible(lambda d: wanted * error(score.k, drop if options.prove else d), drop, allowed, options.prove),
        noise=noise,
        between=between,
    )


def _refuse_drop(drop: float, allowed: float, suite: str, metric: str, prove: bool) -> None:
    if not math.isfinite(drop) or not 0 <= drop <= 100:
        raise UsageError(f"--plan is {drop}; it is the true drop in points (percent for lengths), 0 to 100")
    if prove and drop >= allowed:
        raise UsageError(
            f"--plan {drop:g} --prove: a true drop of {drop:g} can't be shown to be below --max-drop {allowed:g}"
            f" ({suite}, {metric}); plan for a smaller one, e.g. --plan 0"
        )
    if not prove and drop <= allowed:
        raise UsageError(
            f"--plan {drop:g}: a drop of {drop:g} is within --max-drop {allowed:g} ({suite}, {metric}) and is never to"
            f" be seen; plan for a larger one"
        )


def _shares(rows: list[ProblemScore], name: str, z: float) -> tuple[Error, float, bool]:
    """Error of the difference of two shares, in points; mean p (1 - p); whether the latter is only bounded."""
    metric, n = METRICS[name], len(rows)
    # Of faults (the truncated share) the good samples are what falls.
    shares = [1 - metric.value(row) if metric.rise_is_worse else metric.value(row) for row in rows]
    sizes = [metric.sampled(row) for row in rows]
    mean = fmean(shares)
    within = [p * (1 - p) * k / (k - 1) for p, k in zip(shares, sizes, strict=True) if k > 1]
    noise = min(mean * (1 - mean), fmean(within)) if within else mean * (1 - mean)

    def error(k: float, drop: float) -> float:
        left = max(0.0, 1 - drop / 100 / mean) if mean else 0.0
        after = max(0.0, left * mean - left**2 * (mean - noise))  # mean of s p (1 - s p), every p times s
        return 100 * math.sqrt((noise + after) / (n * k) + 2 * (z / (n * k)) ** 2)

    return error, noise, not within


def _lengths(rows: list[ProblemScore], z: float) -> tuple[Error, float, bool]:
    """Error of the ratio of two mean lengths, in percent; the scatter of a sample over the mean length."""
    lengths = [length_of(row) for row in rows]
    mean = fmean(length.mean for length in lengths)
    within = [length.scatter_squared for length in lengths if length.samples > 1]
    spread = fmean(within) if within else fmean((length.mean - mean) ** 2 for length in lengths)
    scatter = math.sqrt(spread) / mean if mean else 0.0

    def error(k: float, rise: float) -> float:
        ratio = 1 + rise / 100
        return max(1e-9, 100 * scatter * math.sqrt((1 + ratio**2) / (len(rows) * k)))

    return error, scatter, not within


def _least_k(enough: Callable[[int], bool]) -> int | None:
    """The least k that is enough, where a larger one is enough too."""
    high = 1
    while not enough(high):
        if high >= MOST_SAMPLES:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _visible(needed: Callable[[float], float], drop: float, allowed: float, prove: bool) -> float:
    """The least drop above `allowed` whose distance from it is what the noise needs; with prove, the least margin."""
    if prove:
        return drop + needed(drop)
    found = allowed
    for _ in range(60):  # the error changes slowly with the drop: this settles at once
        found = allowed + needed(found)
    return min(100.0, found)
