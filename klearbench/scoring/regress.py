"""`klearbench regress` on paths: two runs are read, checked to be comparable, and gated.

Either side is a run folder of `klearbench eval`, or a baseline file. `gate` has the decision, `differences` and
`ratios` the statistics, `comparable` what is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.errors import (
    EXIT_GATE_FAILED,
    EXIT_INCOMPLETE,
    EXIT_OK,
    EXIT_USAGE,
    DataError,
    IncompleteError,
    UsageError,
)
from klearbench.scoring.baseline import is_baseline, read_baseline
from klearbench.scoring.comparable import Mismatch, chosen_suites, first_mismatch, greedy, notes
from klearbench.scoring.gate import GateOptions, SuiteGate, SuitePair, decide
from klearbench.scoring.metrics import EvalRun, read_eval

EXIT_CODES = {
    "ok": EXIT_OK,
    "regressed": EXIT_GATE_FAILED,
    "not_comparable": EXIT_INCOMPLETE,
    "not_enough_data": EXIT_INCOMPLETE,
    "error": EXIT_USAGE,
}
"""A gate's status -> the command's exit code."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """The gate on two runs.

    Attributes:
        status: ok, regressed, not_comparable, not_enough_data, or error (bad input).
        field, reason: of all but the first two: the field that forbids it, and one line.
        tests: a result for every suite and metric.
        notes: what differs between the runs and may have moved the score besides the model.
        sides: "base" and "candidate" -> what each is: path, model, seed, engine, a baseline's hash.
    """

    status: str
    options: GateOptions
    tests: tuple[SuiteGate, ...] = ()
    field: str | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()
    sides: Mapping[str, Mapping[str, Any]] | None = None

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.status]


def regress(base: Path, candidate: Path, options: GateOptions | None = None) -> GateResult:
    """Gate one run against another.

    Args:
        base, candidate: run folders of `klearbench eval`, or baseline files.
        options: what is asked.

    Raises:
        UsageError: a suite that the base doesn't have; DataError: a path that holds neither run nor baseline.
    """
    options = options or GateOptions()
    runs: list[EvalRun] = []
    for path in (base, candidate):
        found = read_side(path)
        if isinstance(found, Mismatch):
            return GateResult("not_comparable", options, field=found.field, reason=found.reason)
        runs.append(found)
    return gate_runs(runs[0], runs[1], options)


def gate_runs(base: EvalRun, candidate: EvalRun, options: GateOptions) -> GateResult:
    """As `regress`, for runs that were read."""
    sides = {"base": _side(base), "candidate": _side(candidate)}
    if found := first_mismatch(base, candidate, options):
        return GateResult("not_comparable", options, field=found.field, reason=found.reason, sides=sides)
    pairs = [suite_pair(base, candidate, suite) for suite in chosen_suites(base, options)]
    try:
        tests = tuple(decide(pairs, options))
    except IncompleteError as error:
        return GateResult("not_comparable", options, field="samples", reason=str(error), sides=sides)
    status, reason = _overall(tests)
    remarks = tuple(notes(base, candidate))
    name = None if reason is None else "samples"
    return GateResult(status, options, tests, name, reason, remarks, sides)


def suite_pair(base: EvalRun, candidate: EvalRun, suite: str) -> SuitePair:
    """One suite of two comparable runs, as the gate takes it."""
    before, after = base.scores[suite], candidate.scores[suite]
    return SuitePair(suite, before.k, before.per_problem, after.per_problem, greedy(base, suite))


def read_side(path: Path) -> EvalRun | Mismatch:
    """A run or a baseline; a Mismatch where there is one that is damaged.

    Raises:
        DataError: the path holds neither.
    """
    try:
        return read_baseline(path) if is_baseline(path) else read_eval(path)
    except DataError as error:
        damaged = Path(str(error.path))
        if damaged == path and not is_baseline(path):
            raise
        return Mismatch(damaged.name, f"{error}; make it again, or take an undamaged copy")


def _side(run: EvalRun) -> dict[str, Any]:
    about, config = run.manifest.get("about") or {}, run.config
    engine = config.get("engine") or {}
    return {
        "path": str(run.path),
        "model": about.get("model"),
        "model_hash": engine.get("model_hash"),
        "engine": engine.get("name"),
        "seed": config.get("seed"),
        "made": run.manifest.get("created"),
        "baseline_sha256": run.manifest.get("sha256"),
        "preset": about.get("preset"),
        "stage": about.get("stage"),
        "step": about.get("step"),
    }


def _overall(tests: tuple[SuiteGate, ...]) -> tuple[str, str | None]:
    """The gate's status, and why it isn't sure."""
    by_status = {status: [t for t in tests if t.status == status] for status in ("regressed", "too_few", "undecided")}
    if by_status["regressed"]:
        return "regressed", None
    if few := by_status["too_few"]:
        test = few[0]
        return "not_enough_data", (
            f"{test.suite} has {test.problems} problems with {test.k} samples each: no drop of {test.metric} above"
            f" {test.max_drop:g} could be shown with so few; take more --samples"
        )
    if undecided := by_status["undecided"]:
        test = undecided[0]
        margin = "no margin" if test.shown is None else f"a drop below {test.shown:.1f}"
        return "not_enough_data", (
            f"{test.suite}: a drop of {test.metric} below {test.max_drop:g} is not shown ({margin} is, p ="
            f" {test.p_within:.3f}); take more --samples (regress BASE --plan says how many)"
        )
    return "ok", None


def usage_error(error: UsageError, options: GateOptions) -> GateResult:
    """The result that stands for bad input."""
    return GateResult("error", options, field="input", reason=str(error))
