"""What the loops of all stages share: the recipe, the run folder, where things lie, saving."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.run import Run
from klearbench.suites.base import Suite
from klearrl import distributed
from klearrl.checkpoint import Checkpoints, publish
from klearrl.config import RlStage, SftStage, StageBase, TrainRecipe
from klearrl.engine import Trainer
from klearrl.metrics import Metrics
from klearrl.model import save_model

TrainStage = SftStage | RlStage
"""Any stage."""


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

    def eval_due(self, stage: StageBase, step: int) -> bool:
        """Whether a step is one of `eval_every`; the stage's last step is evaluated whether it is or not."""
        return bool(self.suites and step and stage.eval_every and step % stage.eval_every == 0)

    def save_due(self, stage: TrainStage, step: int) -> bool:
        """Whether a checkpoint is written after a step: what is evaluated is saved, as it may be the best one, and a
        gate may end the training there."""
        return step % stage.save_every == 0 or step == stage.steps or self.eval_due(stage, step)

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


def save_stage_model(trainer: Trainer, tokenizer: Any, out: Path) -> None:
    """The stage's result as a plain transformers folder (rank 0 writes; all ranks call it)."""
    model = trainer.inference_model()
    if distributed.is_main():
        publish(lambda folder: save_model(model, model.state_dict(), tokenizer, folder), out)
    distributed.barrier()
