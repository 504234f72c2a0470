"""A training run: stage after stage, each from the model that the one before it left."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

from klearbench.errors import RunConflict
from klearbench.run import Run
from klearbench.store import content_hash
from klearbench.suites.registry import load_suite
from klearrl import distributed
from klearrl.checkpoint import Checkpoints, publish
from klearrl.config import RlStage, SftStage, TrainRecipe
from klearrl.context import Context, save_stage_model
from klearrl.data import SFT_COLUMNS, load_rows
from klearrl.engine import Trainer
from klearrl.gating import conclude, refuse_unusable_gate
from klearrl.metrics import Metrics
from klearrl.model import load_model, start_model
from klearrl.rl import run_rl
from klearrl.sft import run_sft

LOOPS: dict[str, Callable[[Any, Context, Trainer, Any], None]] = {"sft": run_sft, "rl": run_rl}


def train(recipe: TrainRecipe, out: Path, say: Callable[[str], None] = print) -> None:
    """Run a recipe, or finish one that was interrupted.

    Args:
        recipe: what `klearrl.config.load_train_recipe` read.
        out: the run folder.
        say: where messages for the user go.

    Raises:
        ConfigError, DataError: bad input.
        RunConflict: the folder holds a run of another recipe.
        IncompleteError: an evaluation had judge errors, engine and trainer disagree, or a gate that stops can't decide.
        GateFailed: the recipe's gate stops at a regression; the same command asks it again.
    """
    suites = tuple(load_suite(name, recipe.evaluation.data_dir) for name in recipe.evaluation.suites)
    refuse_unusable_gate(recipe.evaluation.gate, {suite.name for suite in suites})
    _refuse_raised_before_others(recipe, out)
    distributed.setup()
    speak = say if distributed.is_main() else _silent
    with _run_folder(recipe, out) as run:
        metrics = Metrics(out, tensorboard=recipe.tensorboard)
        context = Context(recipe, out, run, metrics, suites, speak)
        try:
            for number, stage in enumerate(recipe.stages):
                _run_stage(context, number, stage)
            _publish_model(context)
        finally:
            metrics.close()
        speak(f"model: {out / 'model'}")


def _refuse_raised_before_others(recipe: TrainRecipe, out: Path) -> None:
    """Raising an earlier stage's steps would leave the later ones trained from a model that is no longer there.

    This comes before the run folder takes over the raised number, which would lock out the recipe it was made with.
    """
    for stage, later in pairwise(recipe.stages):
        last = Checkpoints(out / "stages" / stage.name / "checkpoints", stage.keep_last).last() or 0
        if last < stage.steps and (out / "stages" / later.name).exists():
            raise RunConflict(
                f"{out}: stage {stage.name!r} stands at {last} steps and {later.name!r} was trained from it;"
                f" more steps of {stage.name!r} need another -o"
            )


def _silent(_: str) -> None:
    """The other ranks say nothing."""


@contextmanager
def _run_folder(recipe: TrainRecipe, out: Path) -> Iterator[Run | None]:
    free = {"gate", "best"}  # what they decide is not what is trained: another start may have others
    config = {"command": "train", **recipe.model_dump(mode="json", exclude={"evaluation": free})}
    about = {"evaluation": recipe.evaluation.model_dump(mode="json", include=free)}
    inputs = {f"data:{path}": content_hash(Path(path) / "data") for path in _dataset_folders(recipe)}
    if recipe.model.path is not None and Path(recipe.model.path).is_dir():
        inputs["model"] = content_hash(Path(recipe.model.path))
    held: Any = nullcontext()
    if distributed.is_main():
        held = Run(out, config, inputs, extends=("stages.*.steps",), about=about)
    with held as run:
        yield run


def _dataset_folders(recipe: TrainRecipe) -> list[str]:
    paths = dict.fromkeys(recipe.dataset_path(stage) for stage in recipe.stages)
    return [path for path in paths if (Path(path) / "data").is_dir()]


def _run_stage(context: Context, number: int, stage: SftStage | RlStage) -> None:
    """Train one stage, unless its model is there; then leave its model for the next."""
    out = context.stage_path(stage) / "model"
    last = context.checkpoints(stage).last() or 0
    conclude(context, stage, last, quiet=True)  # where the gate stopped it stops again, before a model is loaded
    if out.exists() and last >= stage.steps and context.evaluated(stage, stage.steps):
        context.say(f"{stage.name}: finished ({last} steps)")
        return
    if out.exists():  # of fewer steps, or not evaluated: after a kill it must not pass for the result
        distributed.barrier()
        if distributed.is_main():
            shutil.rmtree(out)
    model, tokenizer = _stage_start(context, number)
    updates = stage.steps * (stage.mini_batches if isinstance(stage, RlStage) else 1)
    trainer = Trainer(
        model,
        stage.optimizer,
        total_steps=updates,
        zero_stage=context.recipe.deepspeed.zero_stage,
        bf16=context.recipe.model.dtype == "bfloat16",
        seed=context.recipe.seed,
    )
    LOOPS[stage.kind](stage, context, trainer, tokenizer)
    save_stage_model(trainer, tokenizer, out)


def _stage_start(context: Context, number: int) -> tuple[Any, Any]:
    recipe = context.recipe
    if number > 0:
        before = context.stage_path(recipe.stages[number - 1]) / "model"
        return load_model(str(before), recipe.model.dtype)
    return start_model(recipe.model, _texts(context), recipe.seed)


def _texts(context: Context) -> Iterator[str]:
    """What a new tokenizer is made of: every message of the SFT stages' rows."""
    for stage in context.recipe.stages:
        if isinstance(stage, SftStage):
            for row in load_rows(context.recipe.dataset_path(stage), stage.data, SFT_COLUMNS):
                yield from (message["content"] for message in row["messages"])


def _publish_model(context: Context) -> None:
    """`model/`: the last stage's, copied whole."""
    if not distributed.is_main():
        return
    source, target = context.stage_path(context.recipe.stages[-1]) / "model", context.path / "model"
    if target.exists() and content_hash(target) == content_hash(source):
        return
    shutil.rmtree(target, ignore_errors=True)
    publish(lambda folder: shutil.copytree(source, folder, dirs_exist_ok=True), target)
