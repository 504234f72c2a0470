"""What the loops of all stages share: the recipe, the run folder, evaluation, saving."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.engines.base import Sampling
from klearbench.engines.hf import HfEngine, weights_hash
from klearbench.evaluate import EvalOptions, evaluate
from klearbench.run import Run
from klearbench.suites.base import Suite
from klearrl import distributed
from klearrl.checkpoint import Checkpoints, publish
from klearrl.config import StageBase, TrainRecipe
from klearrl.engine import Trainer
from klearrl.metrics import Metrics
from klearrl.model import save_model


@dataclass(frozen=True, slots=True)
class Context:
    """A training run in progress. `run` is held by rank 0 alone."""

    recipe: TrainRecipe
    path: Path
    run: Run | None
    metrics: Metrics
    suites: tuple[Suite, ...]
    say: Callable[[str], None]

    def log(self, message: str) -> None:
        """A line in log.txt (rank 0)."""
        if self.run is not None:
            self.run.log(message)

    def stage_path(self, stage: StageBase) -> Path:
        return self.path / "stages" / stage.name

    def checkpoints(self, stage: StageBase) -> Checkpoints:
        return Checkpoints(self.stage_path(stage) / "checkpoints", stage.keep_last)

    def evaluated(self, stage: StageBase, step: int) -> bool:
        """Whether a checkpoint's evaluation is done and complete (true when the recipe asks for none)."""
        scores = self.scores(stage, step)
        complete = all(s.name in scores and scores[s.name]["complete"] for s in self.suites)
        report = self.eval_path(stage, step) / "report.html"  # the last file that an evaluation writes
        return not self.suites or (complete and report.exists())

    def scores(self, stage: StageBase, step: int) -> dict[str, Any]:
        """A checkpoint's scores.json: suite -> score; empty before its evaluation."""
        path = self.eval_path(stage, step) / "scores.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def eval_path(self, stage: StageBase, step: int) -> Path:
        """Where a checkpoint's evaluation lies."""
        return self.path / "evals" / f"{stage.name}-{step}"


def evaluate_if_due(context: Context, stage: StageBase, step: int, trainer: Trainer, tokenizer: Any) -> None:
    """`evaluate_checkpoint` at every `eval_every`-th step. A resume begins with it: a kill may have broken one off."""
    if step and stage.eval_every and step % stage.eval_every == 0:
        evaluate_checkpoint(context, stage, step, trainer, tokenizer)


def evaluate_checkpoint(context: Context, stage: StageBase, step: int, trainer: Trainer, tokenizer: Any) -> None:
    """Score the live weights through klearbench, into `evals/<stage>-<step>` (rank 0; the others wait)."""
    if distributed.gather(context.evaluated(stage, step))[0]:  # rank 0 decides: it may be done before others look
        if distributed.is_main() and context.suites:
            _mark_best(context, stage)  # a kill may have come between the scores and this
        return
    model = trainer.inference_model()
    if distributed.is_main():
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
        _mark_best(context, stage)
    distributed.barrier()


def _mark_best(context: Context, stage: StageBase) -> None:
    """The best checkpoint is the one with the highest mean score over the suites; the earlier one on a tie."""
    checkpoints = context.checkpoints(stage)
    means: dict[int, float] = {}
    for step in checkpoints.steps():
        averages = [suite["avg"] for suite in context.scores(stage, step).values()]
        if averages:
            means[step] = sum(averages) / len(averages)
    if means:
        checkpoints.mark_best(max(means, key=lambda s: (means[s], -s)))


def save_stage_model(trainer: Trainer, tokenizer: Any, out: Path) -> None:
    """The stage's result as a plain transformers folder (rank 0 writes; all ranks call it)."""
    model = trainer.inference_model()
    if distributed.is_main():
        publish(lambda folder: save_model(model, model.state_dict(), tokenizer, folder), out)
    distributed.barrier()
