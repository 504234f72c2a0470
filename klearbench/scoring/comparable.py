"""May two runs be compared? The first field that forbids it, by name.

Compared: suites (and their content), k, problems, sampling, prompt, errata, judges, and of the engine what changes the
task (context stretching, thinking, a server's extra parameters). Free: seed, model, engine, batch and devices; what of
these differs and may matter is a note. Both runs must be finished, whole and free of judge errors beyond a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from klearbench.errors import UsageError, unknown_name
from klearbench.run import flatten
from klearbench.scoring.gate import GateOptions
from klearbench.scoring.metrics import EvalRun, SuiteScore, samples_of

_OWN_RULE = ("suites", "samples", "suite_sampling", "engine")
_FREE = ("command", "seed", "limit")  # of `limit` the problems it leaves are compared
_TASK = ("rope_scaling", "thinking", "extra_body")
_NOTED = ("name", "chat_template", "chat_template_hash", "dtype")


class Mismatch(NamedTuple):
    """What keeps two runs from being compared: a field's name and one line."""

    field: str
    reason: str


def chosen_suites(base: EvalRun, options: GateOptions) -> list[str]:
    """The suites to compare. Raises UsageError: one that the base doesn't have."""
    for name in options.suites:
        if name not in base.scores:
            raise UsageError(f"--suite: {base.path} has no suite {unknown_name('name', name, base.scores)}")
    return list(options.suites or base.scores)


def first_mismatch(base: EvalRun, candidate: EvalRun, options: GateOptions) -> Mismatch | None:
    """The first thing that makes two runs incomparable; None when there is none."""
    suites = chosen_suites(base, options)
    if found := _suites(base, candidate, options):
        return found
    before, after = (_parameters(run, suites) for run in (base, candidate))
    for name in [*before, *(name for name in after if name not in before)]:
        if found := _differs(name, base, candidate, before.get(name), after.get(name)):
            return found
    for run in (base, candidate):
        if found := unfinished(run, suites, options):
            return found
    for suite in suites:
        if found := _problems(suite, base, candidate) or _content(suite, base, candidate):
            return found
    return None


def _differs(name: str, base: EvalRun, candidate: EvalRun, before: Any, after: Any) -> Mismatch | None:
    if before == after:
        return None
    return Mismatch(name, f"{name} is {before!r} in {base.path} and {after!r} in {candidate.path}")


def _suites(base: EvalRun, candidate: EvalRun, options: GateOptions) -> Mismatch | None:
    if options.suites:
        lacking = [suite for suite in options.suites if suite not in candidate.scores]
        return Mismatch("suites", f"{candidate.path} has no suite {lacking[0]!r}") if lacking else None
    lists = [", ".join(sorted(run.scores)) for run in (base, candidate)]
    if lists[0] == lists[1]:
        return None
    return Mismatch(
        "suites",
        f"suites is {lists[0]!r} in {base.path} and {lists[1]!r} in {candidate.path}; --suite NAME compares one",
    )


def _parameters(run: EvalRun, suites: Sequence[str]) -> dict[str, Any]:
    """What both runs must share, flat: k of each suite, sampling, prompt, judges, what the engine does to the task."""
    config = run.config
    counts = {suite: samples_of(config["samples"], suite) for suite in suites}
    own = {suite: (config.get("suite_sampling") or {}).get(suite, {}) for suite in suites}
    shared = {name: value for name, value in config.items() if name not in (*_OWN_RULE, *_FREE)}
    found = {
        **({"samples": counts[suites[0]]} if len(set(counts.values())) == 1 else flatten(counts, "samples")),
        **flatten({**shared, "suite_sampling": own}),
        **flatten(_engine(run), "engine"),
    }
    return {name: value for name, value in found.items() if value not in ({}, [])}  # what is empty isn't there


def _engine(run: EvalRun) -> dict[str, Any]:
    """Of the engine what changes the task, without what is off."""
    engine = run.config.get("engine") or {}
    return {name: engine[name] for name in _TASK if engine.get(name)}


def _problems(suite: str, base: EvalRun, candidate: EvalRun) -> Mismatch | None:
    ids = [{row.problem_id for row in run.scores[suite].per_problem} for run in (base, candidate)]
    only = sorted(ids[0] ^ ids[1])
    if not only:
        return None
    here, other = (base, candidate) if only[0] in ids[0] else (candidate, base)
    more = f" (and {len(only) - 1} more that one run lacks)" if len(only) > 1 else ""
    return Mismatch("problems", f"problem {only[0]!r} of {suite} is in {here.path} and not in {other.path}{more}")


def _content(suite: str, base: EvalRun, candidate: EvalRun) -> Mismatch | None:
    """Other problems are named one by one, so the hash of a suite's content comes after them."""
    name = f"suite:{suite}"
    before, after = (run.manifest.get("inputs", {}).get(name) for run in (base, candidate))
    return _differs(f"inputs.{name}", base, candidate, before, after)


def unfinished(run: EvalRun, suites: Sequence[str], options: GateOptions) -> Mismatch | None:
    """What keeps a run's scores from being trusted."""
    remedy = "rerun its `klearbench eval` command"
    for suite in suites:
        score = run.scores[suite]
        if score.engine_errors:
            return Mismatch("engine_errors", f"{run.path} has {score.engine_errors} engine errors in {suite}: {remedy}")
        if score.missing:
            return Mismatch("missing", f"{run.path} lacks {score.missing} verdicts of {suite}: {remedy}")
        if share := _too_many_errors(score, options):
            return Mismatch(
                "judge_errors",
                f"{run.path} has {score.judge_errors} judge errors in {suite} ({share:.2g} %, allowed"
                f" {options.max_judge_errors:g} %: --max-judge-errors): {remedy}",
            )
    if not run.finished:
        return Mismatch("scores", f"{run.path} did not finish (no current scores.json): {remedy}")
    return None


def _too_many_errors(score: SuiteScore, options: GateOptions) -> float:
    """The share of judge errors in percent where it is above the bound, else 0. Their own metric has its own bound."""
    asked = score.judged + score.judge_errors
    share = 100 * score.judge_errors / asked if asked else 0.0
    return 0.0 if share <= options.max_judge_errors or list(options.metrics) == ["judge-errors"] else share


def notes(base: EvalRun, candidate: EvalRun) -> list[str]:
    """What differs between two runs that may be compared, and may have moved the score besides the model."""
    before, after = (run.config.get("engine") or {} for run in (base, candidate))
    found = [
        f"engine.{name} is {before.get(name)!r} in the base and {after.get(name)!r} in the candidate"
        for name in _NOTED
        if before.get(name) != after.get(name)
    ]
    if base.config.get("seed") == candidate.config.get("seed") and _same_model(before, after):
        found.append("both runs have the same engine, model and seed: they may hold the same samples")
    return found


def _same_model(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return before == after and before.get("model_hash") is not None


def greedy(run: EvalRun, suite: str) -> bool:
    """Whether a suite was sampled at temperature 0: its samples of a problem are one, repeated."""
    own = (run.config.get("suite_sampling") or {}).get(suite, {})
    sampling = {**(run.config.get("sampling") or {}), **own}
    return sampling.get("temperature") == 0
