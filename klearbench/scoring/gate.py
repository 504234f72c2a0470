"""The gate's decision: is the candidate worse than the base by more than is allowed, beyond what sampling explains?

One test a suite and metric (`differences`), problems fixed. The decision:
    regressed   the drop is shown to be larger than max_drop. Several tests share one error rate (Holm 1979), so the
                chance that any of them is a false alarm stays below 1 - confidence.
    ok          it isn't. With `prove`, ok needs more: the drop is shown to be smaller than max_drop. Each test has the
                full error rate there, since all of them must succeed (an intersection-union test).
    undecided   with `prove`: neither is shown; more samples are needed.
    too_few     so few problems and samples that no drop at all could have been shown: the gate can't protect the suite.

With greedy decoding (temperature 0) a problem's samples are one sample repeated: each problem counts once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from klearbench.errors import IncompleteError, UsageError, unknown_name
from klearbench.scoring.differences import compare_counts, holm
from klearbench.scoring.groups import ProblemScore
from klearbench.scoring.measures import METRICS, Metric, Rows, natural
from klearbench.scoring.uncertainty import Count, Interval


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What is asked of the gate.

    Attributes:
        metrics: names of METRICS.
        max_drop: the drop that is allowed: "" -> for all; a suite's or metric's name -> for it; `SUITE:METRIC` -> for
            that test. Points, or percent for lengths. The most special one counts (a metric's before a suite's).
        confidence: 1 - the share of false alarms.
        prove: pass only what is shown to drop less than max_drop.
        max_judge_errors: percent of a suite's samples that a judge may have failed on.
        suites: the suites to look at; () for all.
    """

    metrics: Sequence[str] = ("avg@k",)
    max_drop: Mapping[str, float] = field(default_factory=dict)
    confidence: float = 0.95
    prove: bool = False
    max_judge_errors: float = 0.0
    suites: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in self.metrics:
            if name not in METRICS:
                raise UsageError(unknown_name("metric", name, METRICS))
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise UsageError("--metric: name each metric once")
        for name, drop in self.max_drop.items():
            if not 0 <= drop < 100:
                raise UsageError(f"--max-drop is {f'{name}=' if name else ''}{drop:g}; it is in points (percent for"
                                 f" lengths), from 0 to below 100")  # fmt: skip
        if not 0.5 < self.confidence < 1:
            raise UsageError(f"--confidence is {self.confidence}; it must be above 0.5 and below 1, e.g. 0.95")
        if not 0 <= self.max_judge_errors <= 100:
            raise UsageError(f"--max-judge-errors is {self.max_judge_errors:g}; it is a percentage, 0 to 100")

    def allowed(self, suite: str, metric: str) -> float:
        """max_drop of one test."""
        for name in (f"{suite}:{metric}", metric, suite, ""):
            if name in self.max_drop:
                return self.max_drop[name]
        return 0.0

    def unknown_drop(self, suites: Collection[str]) -> str:
        """One line on a name of max_drop that is no suite, metric or SUITE:METRIC of these suites; "" if all are."""
        known = [*suites, *METRICS]
        for name in self.max_drop:
            if name not in {"", *known, *(f"{suite}:{metric}" for suite in suites for metric in METRICS)}:
                return f"{name}: {unknown_name('suite or metric', name, known)}"
        return ""


@dataclass(frozen=True, slots=True)
class Worse:
    """A problem that got worse: good samples (or mean tokens) before and after, and of how many samples.

    `p_value` is Fisher's exact one for this problem alone, `beyond_noise` whether it stands among all problems of the
    suite (Holm). Both None where a problem's own test isn't at hand (lengths).
    """

    problem_id: str
    base: float
    candidate: float
    base_samples: int
    candidate_samples: int
    p_value: float | None
    beyond_noise: bool | None


@dataclass(frozen=True, slots=True)
class SuiteGate:
    """The gate's word on one metric of one suite.

    Attributes:
        status: ok, regressed, undecided or too_few.
        k: samples asked of a problem; `problems` compared, and `left_out` for want of a judged sample in one run.
        base, candidate, change: `unit` of change is "points" or "%" (then base and candidate are tokens).
        interval, interval_problems, interval_naive: of `change`, two-sided; see `differences.Difference`.
        max_drop: what is allowed, in the unit of `change`; `shown`: the drop is shown to be smaller than this.
        p_value, p_adjusted: of the null that the drop is within max_drop; `p_adjusted` shares the error rate.
        p_within: of the null that the drop is max_drop or more.
        worst: the problems that got worse, the worst first.
    """

    suite: str
    metric: str
    unit: str
    status: str
    k: int
    problems: int
    left_out: int
    base: float
    candidate: float
    change: float
    interval: Interval | None
    interval_problems: Interval | None
    interval_naive: Interval | None
    max_drop: float
    shown: float | None
    p_value: float
    p_adjusted: float
    p_within: float
    worst: tuple[Worse, ...] = ()


@dataclass(frozen=True, slots=True)
class SuitePair:
    """A suite in two runs: every problem of both, with k samples asked of each; `greedy` at temperature 0."""

    suite: str
    k: int
    base: Rows
    candidate: Rows
    greedy: bool = False

    def aligned(self, metric: Metric) -> tuple[list[ProblemScore], list[ProblemScore]]:
        """The problems of which both runs have a sample for the metric, in the base's order."""
        after = {row.problem_id: row for row in self.candidate}
        pairs = [(row, after[row.problem_id]) for row in self.base if row.problem_id in after]
        pairs = [pair for pair in pairs if metric.sampled(pair[0]) and metric.sampled(pair[1])]
        if self.greedy:
            pairs = [(once(a), once(b)) for a, b in pairs]
        return [a for a, _ in pairs], [b for _, b in pairs]


def once(row: ProblemScore) -> ProblemScore:
    """A problem whose samples are all one, repeated: what most of them are, counted once."""
    judged, sampled = min(1, row.judged), min(1, row.sampled)
    mean = round(row.tokens / row.sampled) if sampled else 0
    return replace(
        row,
        judged=judged,
        right=int(judged and 2 * row.right >= row.judged),
        truncated=int(judged and 2 * row.truncated > row.judged),
        judge_errors=int(not judged and row.judge_errors > 0),
        sampled=sampled,
        tokens=mean,
        tokens_squared=mean * mean,
    )


def decide(pairs: Sequence[SuitePair], options: GateOptions, *, listing: bool = True) -> list[SuiteGate]:
    """The gate on suites of two runs that may be compared: one result for each suite and metric.

    `listing` False leaves out the list of the problems that got worse, which decides nothing.

    Raises:
        IncompleteError: a suite of which no problem can be compared in a metric.
    """
    tests = [_look(pair, name, options, listing) for name in options.metrics for pair in pairs]
    adjusted = holm([test.p_value for test in tests])
    return [
        replace(test, p_adjusted=p, status=_status(test, p, options)) for test, p in zip(tests, adjusted, strict=True)
    ]


def _status(test: SuiteGate, p_adjusted: float, options: GateOptions) -> str:
    level = 1 - options.confidence
    if p_adjusted < level:
        return "regressed"
    if test.status == "too_few":
        return "too_few"
    return "ok" if not options.prove or test.p_within < level else "undecided"


def _look(pair: SuitePair, name: str, options: GateOptions, listing: bool) -> SuiteGate:
    """One test; its status is "too_few" or, for now, "ok"."""
    metric, allowed = METRICS[name], options.allowed(pair.suite, name)
    base, candidate = pair.aligned(metric)
    if not base:
        raise IncompleteError(f"not comparable ({name}): no problem of {pair.suite} has samples for it in both runs")
    found = natural(metric.compare(base, candidate, allowed, options.confidence), metric)
    return SuiteGate(
        suite=pair.suite,
        metric=name,
        unit=metric.unit,
        status="ok" if _could_fail(base, candidate, metric, allowed, options.confidence) else "too_few",
        k=pair.k,
        problems=len(base),
        left_out=len(pair.base) - len(base),
        base=found.base,
        candidate=found.candidate,
        change=found.change,
        interval=found.interval,
        interval_problems=found.interval_problems,
        interval_naive=found.interval_naive,
        max_drop=allowed,
        shown=found.shown,
        p_value=found.p_value,
        p_adjusted=found.p_value,
        p_within=found.p_within,
        worst=worst(base, candidate, metric, 1 - options.confidence) if listing else (),
    )


def _could_fail(base: Rows, candidate: Rows, metric: Metric, allowed: float, confidence: float) -> bool:
    """Whether the largest drop there can be, from all good to all bad, would be seen with so many samples."""
    if metric.unit == "%":
        return len(base) > 1 or base[0].sampled > 1
    sizes = [[metric.sampled(row) for row in side] for side in (base, candidate)]
    good, bad = [Count(n, n) for n in sizes[0]], [Count(0, n) for n in sizes[1]]
    return compare_counts(good, bad, max_drop=allowed, confidence=confidence).p_value < 1 - confidence


def worst(base: Rows, candidate: Rows, metric: Metric, level: float) -> tuple[Worse, ...]:
    """Every problem that got worse in the metric, the worst first; problems of equal loss in the suite's order."""
    sign, value = 1 if metric.rise_is_worse else -1, metric.value
    lost = [
        (loss, before, after)
        for before, after in zip(base, candidate, strict=True)
        if (loss := sign * (value(after) - value(before))) > 0
    ]
    lost.sort(key=lambda row: -row[0])
    chances = [metric.chance(before, after) for _, before, after in lost] if metric.chance else []
    # Problems that did not get worse count in the number of tests, with p-values of no interest.
    adjusted = holm([*chances, *[1.0] * (len(base) - len(chances))])
    return tuple(
        Worse(
            before.problem_id,
            _seen(metric, before),
            _seen(metric, after),
            metric.sampled(before),
            metric.sampled(after),
            chances[i] if chances else None,
            adjusted[i] < level if chances else None,
        )
        for i, (_, before, after) in enumerate(lost)
    )


def _seen(metric: Metric, row: ProblemScore) -> float:
    """A problem's value as a reader counts it: samples, or mean tokens."""
    value = metric.value(row)
    return round(value, 1) if metric.unit == "%" else round(value * metric.sampled(row))
