"""Checkpoints are scored by klearbench while a stage trains: every `eval_every` steps, and at its end."""

from __future__ import annotations

from typing import Any

from klearbench.engines.base import Sampling
from klearbench.engines.hf import HfEngine, weights_hash
from klearbench.evaluate import EvalOptions, evaluate
from klearrl import distributed
from klearrl.config import StageBase
from klearrl.context import Context, TrainStage
from klearrl.engine import Trainer
from klearrl.gating import conclude


def evaluate_at_start(context: Context, stage: StageBase, start: int, trainer: Trainer, tokenizer: Any) -> None:
    """A resume finishes what a kill broke off, and asks the gate again about a checkpoint that was evaluated."""
    if context.eval_due(stage, start) or (start and context.evaluated(stage, start)):
        evaluate_checkpoint(context, stage, start, trainer, tokenizer)


def evaluate_if_due(context: Context, stage: StageBase, step: int, trainer: Trainer, tokenizer: Any) -> None:
    """`evaluate_checkpoint` at every `eval_every`-th step."""
    if context.eval_due(stage, step):
        evaluate_checkpoint(context, stage, step, trainer, tokenizer)


def evaluate_at_end(context: Context, stage: TrainStage, trainer: Trainer, tokenizer: Any) -> None:
    """`evaluate_checkpoint` after the last step, unless it was the turn of `eval_every`."""
    if not context.eval_due(stage, stage.steps):
        evaluate_checkpoint(context, stage, stage.steps, trainer, tokenizer)


def evaluate_checkpoint(context: Context, stage: StageBase, step: int, trainer: Trainer, tokenizer: Any) -> None:
    """Score the live weights into `evals/<stage>-<step>` (rank 0; the others wait), mark the best, ask the gate.

    Raises:
        GateFailed, IncompleteError: the gate stops the training.
    """
    if not distributed.gather(context.evaluated(stage, step))[0]:  # rank 0 decides: others may look later
        model = trainer.inference_model()
        if distributed.is_main():
            _score(context, stage, step, model, tokenizer)
        distributed.barrier()
    conclude(context, stage, step)


def _score(context: Context, stage: StageBase, step: int, model: Any, tokenizer: Any) -> None:
    plan = context.recipe.evaluation
    identity = {"model_hash": weights_hash(model), "dtype": str(model.dtype).removeprefix("torch.")}
    engine = HfEngine(model, tokenizer, identity, batch_size=plan.batch_size)
    options = EvalOptions(
        samples=plan.samples,
        limit=plan.limit,
        seed=context.recipe.seed,
        sampling=Sampling(plan.temperature, plan.top_p, 0, plan.max_tokens),
        sandbox=plan.sandbox,
        judge_workers=plan.judge_workers,
    )
    about = {"run": str(context.path), "stage": stage.name, "step": step}
    for score in evaluate(context.eval_path(stage, step), context.suites, engine, options, about):
        context.say(f"{stage.name} step {step}: {score.suite} avg@{score.k} {score.avg:.1f}")
