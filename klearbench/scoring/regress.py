"""The gate for checkpoints: is the candidate worse than the base, beyond what sampling noise explains?

Paired by problem, problems fixed, one-sided. Null: the true drop is at most `max_drop` points. The suite is `regressed`
when the null is rejected at `confidence`; several suites share one error rate (Holm 1979).
    * k > 1: z = (drop - max_drop) / sqrt(SE_base^2 + SE_candidate^2), the smoothed errors of `uncertainty`. With
      problems fixed the two runs' noise is independent; pairing enters because both score the same problems.
    * k = 1: exact and conditional on the problems on which the runs differ: McNemar's binomial test. For max_drop > 0
      the chance of a loss is tilted from 1/2 to that which max_drop implies for the observed number of differences.
Covered: two runs of the same suites, k, problems, parameters, prompt and judge; engine, model and seed may differ.
Not covered: sameness shown (a pass says "no drop seen", not "equal"); how many samples a wanted power needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from klearbench.errors import EXIT_GATE_FAILED, EXIT_OK, IncompleteError, UsageError, unknown_name
from klearbench.run import flatten
from klearbench.scoring.groups import ProblemScore
from klearbench.scoring.metrics import EvalRun, SuiteScore, read_eval
from klearbench.scoring.uncertainty import Count, Difference, Interval, compare_counts, holm

METRICS: dict[str, Callable[[ProblemScore], int]] = {
    "avg@k": lambda problem: problem.right,
    "truncated": lambda problem: problem.judged - problem.truncated,
}
"""Metric -> the good samples of a problem. For `truncated` a rise of the truncated share is the drop."""

_MAY_DIFFER = ("seed", "limit", "engine")  # of `limit` the problems it leaves are compared
_WORST = 10


@dataclass(frozen=True, slots=True)
class Worse:
    """A problem with fewer good samples than before."""

    problem_id: str
    base: int
    candidate: int


@dataclass(frozen=True, slots=True)
class SuiteGate:
    """The gate's word on one suite. `base`, `candidate`, `difference` (candidate - base) and the intervals in points.

    `interval` has problems fixed, `interval_problems` problems resampled (None for one problem); both are two-sided.
    `p_value` is one-sided; `p_adjusted` shares the error rate among the suites.
    """

    suite: str
    status: str
    k: int
    problems: int
    base: float
    candidate: float
    difference: float
    interval: Interval
    interval_problems: Interval | None
    p_value: float
    p_adjusted: float
    worst: tuple[Worse, ...]


@dataclass(frozen=True, slots=True)
class GateResult:
    """`status` is ok, regressed or not_comparable; for the last, `field` is what differs and `reason` one line."""

    status: str
    metric: str
    max_drop: float
    confidence: float
    suites: tuple[SuiteGate, ...] = ()
    field: str | None = None
    reason: str | None = None


def regress(
    base: Path, candidate: Path, *, max_drop: float = 0.0, confidence: float = 0.95, metric: str = "avg@k"
) -> GateResult:
    """Compare two run folders of `klearbench eval`.

    Args:
        base, candidate: run folders.
        max_drop: the drop in points that is allowed, 0..100.
        confidence: 1 - the false-alarm rate, above 0.5 and below 1.
        metric: a name in METRICS.

    Raises:
        UsageError: a value that is not allowed; DataError: not a run folder of `eval`, or a corrupt file.
    """
    if metric not in METRICS:
        raise UsageError(unknown_name("metric", metric, METRICS))
    if not 0 <= max_drop <= 100:
        raise UsageError(f"--max-drop is {max_drop}; it is in points, 0 to 100")
    if not 0.5 < confidence < 1:
        raise UsageError(f"--confidence is {confidence}; it must be above 0.5 and below 1, e.g. 0.95")
    runs = read_eval(base), read_eval(candidate)
    differs = _first_difference(*runs)
    if differs:
        field, reason = differs
        return GateResult("not_comparable", metric, max_drop, confidence, field=field, reason=reason)
    good = METRICS[metric]
    pairs = [(runs[0].scores[suite], runs[1].scores[suite]) for suite in runs[0].config["suites"]]
    found = [
        compare_counts(_counts(b, b, good), _counts(c, b, good), max_drop=max_drop, confidence=confidence)
        for b, c in pairs
    ]
    adjusted = holm([difference.p_value for difference in found])
    gates = tuple(
        _suite_gate(b, _worst(b, c, good), difference, p, 1 - confidence)
        for (b, c), difference, p in zip(pairs, found, adjusted, strict=True)
    )
    status = "regressed" if any(gate.status == "regressed" for gate in gates) else "ok"
    return GateResult(status, metric, max_drop, confidence, gates)


def _counts(score: SuiteScore, order: SuiteScore, good: Callable[[ProblemScore], int]) -> list[Count]:
    """Counts of `score` in the order of the other run's problems."""
    rows = {row.problem_id: row for row in score.per_problem}
    return [Count(good(rows[other.problem_id]), rows[other.problem_id].judged) for other in order.per_problem]


def _worst(base: SuiteScore, candidate: SuiteScore, good: Callable[[ProblemScore], int]) -> tuple[Worse, ...]:
    after = {row.problem_id: good(row) for row in candidate.per_problem}
    rows = [Worse(row.problem_id, good(row), after[row.problem_id]) for row in base.per_problem]
    lost = sorted((row for row in rows if row.candidate < row.base), key=lambda row: row.candidate - row.base)
    return tuple(lost[:_WORST])


def _suite_gate(
    base: SuiteScore, worst: tuple[Worse, ...], difference: Difference, p_adjusted: float, level: float
) -> SuiteGate:
    return SuiteGate(
        suite=base.suite,
        status="regressed" if p_adjusted < level else "ok",
        k=base.k,
        problems=base.problems,
        base=difference.base,
        candidate=difference.candidate,
        difference=difference.points,
        interval=difference.interval,
        interval_problems=difference.interval_problems,
        p_value=difference.p_value,
        p_adjusted=p_adjusted,
        worst=worst,
    )


def _first_difference(base: EvalRun, candidate: EvalRun) -> tuple[str, str] | None:
    """The first field that makes two runs incomparable, with one line about it; None when there is none."""
    before, after = (_must_agree(run) for run in (base, candidate))
    for name in [*before, *(name for name in after if name not in before)]:
        if before.get(name) != after.get(name):
            return name, f"{name} is {before.get(name)!r} in {base.path} and {after.get(name)!r} in {candidate.path}"
    for run in (base, candidate):
        if trouble := _unfinished(run):
            return trouble
    for suite, score in base.scores.items():
        ids = [{row.problem_id for row in s.per_problem} for s in (score, candidate.scores[suite])]
        if only := sorted(ids[0] ^ ids[1]):
            here, other = (base, candidate) if only[0] in ids[0] else (candidate, base)
            return "problems", f"problem {only[0]!r} of {suite} is in {here.path} and not in {other.path}"
    return None


def _must_agree(run: EvalRun) -> dict[str, Any]:
    """The fields of a run's configuration that both runs share, flat; the order of the suites is none of them."""
    config = {name: value for name, value in run.config.items() if name not in _MAY_DIFFER}
    inputs = {name: value for name, value in run.manifest.get("inputs", {}).items() if name.startswith("suite:")}
    return flatten({**config, "suites": ", ".join(sorted(config["suites"])), "inputs": inputs})


def _unfinished(run: EvalRun) -> tuple[str, str] | None:
    """What keeps a run's scores from being trusted."""
    remedy = "rerun its `klearbench eval` command"
    for suite, score in run.scores.items():
        for name, count in (("judge_errors", score.judge_errors), ("engine_errors", score.engine_errors)):
            if count:
                return name, f"{run.path} has {count} {name.replace('_', ' ')} in {suite}: {remedy}"
        if score.missing or not score.complete:
            return "missing", f"{run.path} lacks {score.missing} verdicts of {suite}: {remedy}"
    if not run.finished:
        return "scores", f"{run.path} did not finish (no current scores.json): {remedy}"
    return None


def run_regress(
    base: Path,
    candidate: Path,
    *,
    max_drop: float = 0.0,
    confidence: float = 0.95,
    metric: str = "avg@k",
    as_json: bool = False,
    echo: Callable[[str], None] = print,
) -> int:
    """`klearbench regress`: print one line a suite (or one JSON object) and return the exit code, 0 or 1.

    Raises:
        IncompleteError: the runs can't be compared (exit 3); the line names the field. As for `regress` otherwise.
    """
    result = regress(base, candidate, max_drop=max_drop, confidence=confidence, metric=metric)
    if as_json:
        echo(json.dumps({"format": 1, "base": str(base), "candidate": str(candidate), **asdict(result)}, indent=1))
    if result.status == "not_comparable":
        raise IncompleteError(f"not comparable ({result.field}): {result.reason}")
    if not as_json:
        for gate in result.suites:
            echo(gate_line(gate, result))
            for row in gate.worst if gate.status == "regressed" else ():
                echo(f"    {row.problem_id}: {row.base}/{gate.k} -> {row.candidate}/{gate.k}")
    return EXIT_GATE_FAILED if result.status == "regressed" else EXIT_OK


def gate_line(gate: SuiteGate, result: GateResult) -> str:
    """One suite in one line."""
    metric = f"avg@{gate.k}" if result.metric == "avg@k" else f"not {result.metric} (of {gate.k})"
    low, high = gate.interval
    p = f"p = {gate.p_adjusted:.3f}" if gate.p_adjusted >= 0.001 else "p < 0.001"
    return (
        f"{gate.suite} {metric}: {gate.base:.1f} -> {gate.candidate:.1f} ({gate.difference:+.1f} points,"
        f" {100 * result.confidence:g} % interval {low:+.1f} to {high:+.1f}): {gate.status}"
        f" (allowed drop {result.max_drop:g}, {p})"
    )
