"""Checkpoints of a stage: `checkpoints/step-N/`, with `last` and `best` beside them, and their export.

    step-N/deepspeed/       weights, optimizer state and counts of every rank
    step-N/skeleton/        config, tokenizer, chat template: with the weights, a transformers folder
    step-N/state.json       where the stage's data stood

A checkpoint is written beside its name and renamed, so one that has its name is whole.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch

from klearbench.errors import DataError, RunConflict, UsageError
from klearbench.faults import fault
from klearbench.store import disk_full, write_atomic
from klearrl import distributed
from klearrl.engine import Trainer
from klearrl.model import save_model, save_skeleton


class Checkpoints:
    """The checkpoints of one stage."""

    def __init__(self, folder: Path, keep_last: int) -> None:
        self.folder = folder
        self.keep_last = keep_last

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step}"

    def steps(self) -> list[int]:
        """The steps of all whole checkpoints, ascending."""
        names = (p.name.removeprefix("step-") for p in self.folder.glob("step-*") if (p / "state.json").exists())
        return sorted(int(name) for name in names if name.isdigit())

    def last(self) -> int | None:
        """The newest whole checkpoint's step."""
        return max(self.steps(), default=None)

    def save(self, step: int, trainer: Trainer, tokenizer: Any, state: Mapping[str, Any]) -> None:
        """Write a checkpoint (all ranks call it), point `last` to it and drop old ones.

        Raises:
            DiskFull: the checkpoints before it are untouched.
        """
        temporary = self.folder / f".step-{step}.tmp"
        try:
            if distributed.is_main():
                shutil.rmtree(temporary, ignore_errors=True)
                temporary.mkdir(parents=True)
            distributed.barrier()
            trainer.save(temporary)
            fault("checkpoint.write")
            distributed.barrier()
            if distributed.is_main():
                save_skeleton(trainer.module, tokenizer, temporary / "skeleton")
                write_atomic(
                    temporary / "state.json", json.dumps({"step": step, "ranks": distributed.world_size(), **state})
                )
                _sync(temporary)
                shutil.rmtree(self.path(step), ignore_errors=True)
                temporary.replace(self.path(step))
                _point(self.folder / "last", f"step-{step}")
                self._prune()
        except (OSError, RuntimeError) as error:
            raise _failed(error, temporary, self.folder) from None
        distributed.barrier()

    def load(self, step: int, trainer: Trainer) -> dict[str, Any]:
        """Restore a checkpoint; its state.

        Raises:
            RunConflict: other ranks wrote it, and its optimizer state is spread over them (ZeRO 1 to 3).
        """
        path = self.path(step)
        state: dict[str, Any] = json.loads((path / "state.json").read_text())
        ranks = distributed.world_size()
        if trainer.zero_stage > 0 and state["ranks"] != ranks:
            raise RunConflict(f"{path} was written by {state['ranks']} ranks, this command has {ranks}: use as many")
        trainer.load(path)
        return state

    def mark_best(self, step: int) -> None:
        """Point `best` to a checkpoint, which is then kept; the one before it may go."""
        _point(self.folder / "best", f"step-{step}")
        self._prune()

    def _prune(self) -> None:
        best = self.folder / "best"
        kept = {f"step-{s}" for s in self.steps()[-self.keep_last :]} | (
            {os.readlink(best)} if best.is_symlink() else set()
        )
        for step in self.steps():
            if f"step-{step}" not in kept:
                (self.path(step) / "state.json").unlink()  # from here on it is no checkpoint, whatever happens
                shutil.rmtree(self.path(step))
        for leftover in self.folder.glob("step-*"):
            if not (leftover / "state.json").exists():
                shutil.rmtree(leftover)


def _failed(error: Exception, temporary: Path, place: Path) -> Exception:
    """Remove what could not be written; DiskFull if that is why, else the error itself.

    torch and safetensors don't raise an OSError on a full disk: whether it is full is seen by writing a little more.
    """
    full = disk_full(error, place) if isinstance(error, OSError) else None
    try:
        (temporary / "probe").write_bytes(bytes(2**20))
    except OSError as found:
        full = full or disk_full(found, place)
    shutil.rmtree(temporary, ignore_errors=True)
    return full or error


def _point(link: Path, target: str) -> None:
    temporary = link.with_name(f".{link.name}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)


def _sync(folder: Path) -> None:
    """Flush every file below to the disk, so that the rename can't come to be before them."""
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb") as handle:
                os.fsync(handle.fileno())


def export(checkpoint: Path, out: Path) -> None:
    """A plain transformers folder from a checkpoint, on one process without a process group.

    Args:
        checkpoint: a `step-N` folder, or `last` / `best`.
        out: the folder to make; it must not exist.

    Raises:
        DataError: `checkpoint` is none.
        UsageError: `out` exists.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    if not (checkpoint / "state.json").is_file():
        raise DataError(checkpoint, "is no checkpoint (a step-N folder with state.json, or last / best beside them)")
    if out.exists():
        raise UsageError(f"{out} exists; choose another -o")
    skeleton = checkpoint / "skeleton"
    dtype = getattr(torch, json.loads((skeleton / "dtype.json").read_text()))
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(skeleton)).to(dtype)
    weights = {name: tensor.to(dtype) for name, tensor in _weights(checkpoint / "deepspeed").items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if unexpected or set(missing) - set(_tied(model)):
        raise DataError(checkpoint, f"weights don't fit the model: {[*missing, *unexpected][:3]}")
    model.tie_weights()
    model.generation_config = GenerationConfig.from_pretrained(skeleton)
    publish(lambda folder: save_model(model, model.state_dict(), AutoTokenizer.from_pretrained(skeleton), folder), out)


def _tied(model: Any) -> list[str]:
    return list(getattr(model, "all_tied_weights_keys", None) or {})


def _weights(folder: Path) -> Mapping[str, torch.Tensor]:
    """The full weights of a DeepSpeed checkpoint: fp32 masters where ZeRO keeps them, else the module's own."""
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

    if any(folder.glob("*_optim_states.pt")):
        with redirect_stdout(sys.stderr):  # it says what it does
            found: Mapping[str, torch.Tensor] = get_fp32_state_dict_from_zero_checkpoint(
                str(folder.parent), tag=folder.name
            )
        return found
    state = torch.load(folder / "mp_rank_00_model_states.pt", map_location="cpu", weights_only=False)
    module: Mapping[str, torch.Tensor] = state["module"]
    return module


def publish(write: Any, out: Path) -> None:
    """Call `write(folder)` on a temporary folder and give it the name `out` only when it is whole."""
    from safetensors import SafetensorError

    temporary = out.with_name(f".{out.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        write(temporary)
        fault("model.write")
        _sync(temporary)
        temporary.replace(out)
    except (OSError, RuntimeError, SafetensorError) as error:
        raise _failed(error, temporary, out) from None
