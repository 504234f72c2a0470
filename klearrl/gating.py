"""What follows an evaluation: the stage's best checkpoint is marked, and the recipe's gate is asked."""

from __future__ import annotations

import json
from collections.abc import Set
from pathlib import Path

from klearbench.errors import (
    EXIT_GATE_FAILED,
    EXIT_INCOMPLETE,
    ConfigError,
    DataError,
    GateFailed,
    IncompleteError,
    KlearError,
    UsageError,
    unknown_name,
)
from klearbench.reports.gate import test_line, write_gate
from klearbench.scoring.baseline import read_score
from klearbench.scoring.comparable import Mismatch
from klearbench.scoring.gate import GateOptions
from klearbench.scoring.regress import GateResult, read_side, regress
from klearbench.store import write_atomic
from klearrl import distributed
from klearrl.best import Scores, best_json, best_step
from klearrl.config import EvaluationConfig, GateConfig, StageBase
from klearrl.context import Context

WITHIN_STAGE = ("previous", "first", "best")
"""Values of `evaluation.gate.against` that are no path."""


def refuse_unusable_gate(gate: GateConfig | None, suites: Set[str]) -> None:
    """Look at what a gate names, before anything is trained.

    Args:
        gate: the recipe's.
        suites: the names of the suites that are evaluated.

    Raises:
        ConfigError: max_drop names no suite or metric; `against` is no evaluation, or lacks a suite.
        DataError: `against` is no run or baseline, or a damaged one.
    """
    if gate is None:
        return
    if unknown := gate_options(gate, tuple(suites)).unknown_drop(suites):
        raise ConfigError(f"evaluation.gate.max_drop: {unknown}")
    if gate.against in WITHIN_STAGE:
        return
    path = Path(gate.against)
    if not path.exists():
        raise ConfigError(
            f"evaluation.gate.against: {unknown_name('evaluation', gate.against, WITHIN_STAGE)}, nor is it a path:"
            f" a baseline file or a run of `klearbench eval`"
        )
    base = read_side(path)
    if isinstance(base, Mismatch):
        raise DataError(path, base.reason)
    for suite in suites:
        if suite not in base.scores:
            raise ConfigError(f"evaluation.gate.against: {path} has no {unknown_name('suite', suite, base.scores)}")


def conclude(context: Context, stage: StageBase, step: int, *, quiet: bool = False) -> None:
    """Mark the best checkpoint and ask the gate about one that was evaluated. All ranks call it; rank 0 decides.

    Args:
        context: the run.
        stage, step: the checkpoint; without a finished evaluation nothing happens.
        quiet: say no more than why the training stops.

    Raises:
        GateFailed: it regressed, and the recipe says stop; IncompleteError: the gate can't decide, and it says stop.
        On every rank.
    """
    stop: tuple[int, str] | None = None
    if distributed.is_main() and context.suites and context.evaluated(stage, step):
        try:
            _mark_best(context, stage, step)
            _gate(context, stage, step, quiet=quiet)
        except KlearError as error:  # the other ranks must not wait for one that left
            stop = error.exit_code, str(error)
    stop = distributed.gather(stop)[0]
    if stop is not None:
        kinds = {EXIT_GATE_FAILED: GateFailed, EXIT_INCOMPLETE: IncompleteError}
        raise kinds.get(stop[0], UsageError)(stop[1])


def stage_scores(context: Context, stage: StageBase, until: int) -> dict[int, Scores]:
    """The scores of a stage's finished evaluations up to a step, by step."""
    names = (path.name.removeprefix(f"{stage.name}-") for path in (context.path / "evals").glob(f"{stage.name}-*"))
    steps = sorted(int(name) for name in names if name.isdecimal() and int(name) <= until)
    return {
        step: {suite: read_score(row) for suite, row in context.scores(stage, step).items()}
        for step in steps
        if context.evaluated(stage, step)
    }


def _mark_best(context: Context, stage: StageBase, step: int) -> None:
    """Point `best` to the best checkpoint so far, and write `best.json` beside it."""
    checkpoints, scores = context.checkpoints(stage), stage_scores(context, stage, step)
    rule, confidence, greedy = _rule(context.recipe.evaluation)
    best = best_step(scores, checkpoints.steps(), rule, confidence, greedy=greedy)
    if best is None:
        return
    checkpoints.mark_best(best)
    content = best_json(scores, best, rule, confidence, greedy=greedy)
    write_atomic(checkpoints.folder / "best.json", json.dumps(content, indent=1) + "\n")


def _rule(evaluation: EvaluationConfig) -> tuple[str, float, bool]:
    """How the best is found: the rule, the confidence, and whether samples are greedy."""
    confidence = GateOptions().confidence if evaluation.gate is None else evaluation.gate.confidence
    return evaluation.best, confidence, evaluation.temperature == 0


def _gate(context: Context, stage: StageBase, step: int, *, quiet: bool) -> None:
    gate = context.recipe.evaluation.gate
    if gate is None:
        return
    base, name = _base(context, stage, step, gate)
    if base is None:
        context.log(f"gate: {stage.name} step {step} is the first evaluation: there is nothing to compare it with")
        return
    here = context.eval_path(stage, step)
    result = regress(base, here, gate_options(gate, tuple(suite.name for suite in context.suites)))
    write_gate(here / "gate", result, "../report.html")
    about = f"gate: {stage.name} step {step} against {name}"
    for line in () if quiet else _lines(result):
        context.log(f"{about}: {line}")
        context.say(f"{about}: {line}")
    if gate.on_regression == "stop":
        _stop(result, about, context.checkpoints(stage).path(step))


def gate_options(gate: GateConfig, suites: tuple[str, ...]) -> GateOptions:
    """A recipe's gate as klearbench takes it."""
    return GateOptions(
        metrics=gate.metrics,
        max_drop=gate.max_drop,
        confidence=gate.confidence,
        prove=gate.prove,
        max_judge_errors=gate.max_judge_errors,
        suites=suites,
    )


def _base(context: Context, stage: StageBase, step: int, gate: GateConfig) -> tuple[Path | None, str]:
    """What a checkpoint is compared with, and its name; None for a stage's first evaluation.

    Only evaluations of earlier steps count, so a resume compares with what the first try did.
    """
    if gate.against not in WITHIN_STAGE:
        return Path(gate.against), gate.against
    before = stage_scores(context, stage, step - 1)
    if not before:
        return None, ""
    if gate.against == "best":
        rule, confidence, greedy = _rule(context.recipe.evaluation)
        found = best_step(before, list(before), rule, confidence, greedy=greedy)
        assert found is not None  # some evaluation there is
    else:
        found = max(before) if gate.against == "previous" else min(before)
    return context.eval_path(stage, found), f"step {found}"


def _lines(result: GateResult) -> list[str]:
    lines = [test_line(test, result.options.confidence) for test in result.tests]
    undecided = (
        [] if result.reason is None else [f"{result.status.replace('_', ' ')} ({result.field}): {result.reason}"]
    )
    return [*lines, *undecided, *(f"note: {note}" for note in result.notes)]


def _stop(result: GateResult, about: str, checkpoint: Path) -> None:
    """Raise what ends the training, unless the gate passed."""
    remedy = f"{checkpoint} is saved; to go on from it: --set evaluation.gate.on_regression=warn"
    worse = [test_line(test, result.options.confidence) for test in result.tests if test.status == "regressed"]
    if worse:
        raise GateFailed(f"{about}: {worse[0]}{f' (and {len(worse) - 1} more)' * (len(worse) > 1)}; {remedy}")
    if result.reason is not None:
        raise IncompleteError(f"{about}: the gate can't decide ({result.field}): {result.reason}; {remedy}")
