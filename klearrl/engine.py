"""DeepSpeed behind one small class: several micro-batches a step, the right scale on any number of ranks, exact resume.

Losses come in already divided by a global count (all micro-batches, all ranks). DeepSpeed averages gradients over
ranks, so each loss is multiplied by the number of ranks and by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from klearbench.errors import DataError, IncompleteError
from klearbench.faults import fault
from klearrl.config import OptimizerConfig
from klearrl.distributed import rank, world_size  # before deepspeed: it sets what deepspeed reads when it is imported

import deepspeed  # isort: skip
from klearrl.schedule import learning_rate


class Trainer:
    """A model, AdamW and a learning-rate schedule in a DeepSpeed engine (ZeRO 0 to 3, fp32 or bf16)."""

    def __init__(
        self, model: Any, optimizer: OptimizerConfig, *, total_steps: int, zero_stage: int, bf16: bool, seed: int = 0
    ) -> None:
        """Wrap a model.

        Args:
            model: a transformers causal language model.
            optimizer: AdamW's settings and the schedule.
            total_steps: optimizer steps of the whole schedule.
            zero_stage: DeepSpeed's ZeRO stage.
            bf16: train in bfloat16 with fp32 master weights.
            seed: of dropout, with the step and the rank: a resumed run draws what an undisturbed one would.
        """
        self.seed = seed
        self.settings = optimizer
        self.total_steps = total_steps
        self.zero_stage = zero_stage
        adamw = torch.optim.AdamW(
            model.parameters(), lr=optimizer.lr, betas=optimizer.betas, weight_decay=optimizer.weight_decay
        )
        self._norm = 0.0
        if zero_stage == 0 and not bf16:  # there DeepSpeed clips, but keeps no norm: take it where it would clip
            adamw.register_step_pre_hook(self._clip)
        self._engine, *_ = deepspeed.initialize(
            model=model, optimizer=adamw, config=_deepspeed_config(optimizer, zero_stage, bf16)
        )
        self.module: Any = self._engine.module
        self._plain: Any = None

    @property
    def device(self) -> torch.device:
        return torch.device(self._engine.device)

    def __call__(self, **inputs: Any) -> Any:
        """A forward pass through the engine."""
        return self._engine(**inputs)

    def step(self, losses: Iterable[torch.Tensor], step: int) -> dict[str, float]:
        """One optimizer step over the micro-batches' losses, which are made one at a time.

        Args:
            losses: scalars, each a sum over the micro-batch divided by a global count.
            step: the optimizer step, from 0: it decides the learning rate.

        Returns:
            `loss` (this rank's part), `grad_norm` before clipping and `lr`.

        Raises:
            IncompleteError: the gradient is not finite; the weights in memory are not to be used any more.
        """
        lr = self.learning_rate(step)
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        torch.manual_seed((self.seed * 1_000_003 + step) * world_size() + rank())
        part = 0.0
        self.module.train()
        for loss in losses:
            part += float(loss.detach())
            self._engine.backward(loss * world_size(), scale_wrt_gas=False)
        fault("optimizer.step")
        self._engine.step()
        found = self._engine.get_global_grad_norm()
        norm = self._norm if found is None else float(found)
        if not norm < float("inf"):  # DeepSpeed would go on: with NaN weights in fp32 without ZeRO, else without a step
            raise IncompleteError(
                f"optimizer step {step + 1}: the gradient is not finite (loss {part:g}, lr {lr:g});"
                " the last checkpoint is from before it: lower lr or grad_clip, with another -o"
            )
        return {"loss": part, "grad_norm": norm, "lr": lr}

    def _clip(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Clip the reduced gradients just before the update, and remember the norm they had."""
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        limit = self.settings.grad_clip or float("inf")
        self._norm = float(torch.nn.utils.clip_grad_norm_(parameters, limit))

    def learning_rate(self, step: int) -> float:
        """The learning rate of an optimizer step (from 0)."""
        o = self.settings
        return learning_rate(
            step, peak=o.lr, warmup=o.warmup_steps, total=self.total_steps, kind=o.schedule, floor=o.floor * o.lr
        )

    def inference_model(self) -> Any:
        """The model to sample from or to save, whole on every rank.

        Below ZeRO 3 it is the trained module itself; at ZeRO 3 a copy that is filled parameter by parameter.
        """
        if self.zero_stage < 3:
            return self.module
        if self._plain is None:
            self._plain = self._copy()
        target = dict(self._plain.named_parameters())
        for name, parameter in self.module.named_parameters():
            with deepspeed.zero.GatheredParameters([parameter]), torch.no_grad():
                target[name].copy_(parameter)
        return self._plain

    def _copy(self) -> Any:
        """A model like the trained one, its weights yet to be filled in. Buffers (rotary frequencies) stay fp32."""
        model = type(self.module)(self.module.config).to(self.device)
        for parameter in model.parameters():
            parameter.data = parameter.data.to(self.module.dtype)
        model.generation_config = self.module.generation_config
        return model

    def save(self, folder: Path) -> None:
        """Write weights, optimizer state and step counts of all ranks (a collective call)."""
        self._engine.save_checkpoint(str(folder), tag="deepspeed", save_latest=False)

    def load(self, folder: Path) -> None:
        """Restore what `save` wrote, bit by bit, on the same number of ranks. Raises DataError if nothing is there."""
        if not (folder / "deepspeed").is_dir():
            raise DataError(folder, "holds no DeepSpeed checkpoint (its folder `deepspeed` is missing)")
        self._engine.load_checkpoint(str(folder), tag="deepspeed")


def _deepspeed_config(optimizer: OptimizerConfig, zero_stage: int, bf16: bool) -> dict[str, Any]:
    ours = zero_stage == 0 and not bf16
    return {
        "train_micro_batch_size_per_gpu": 1,  # the loops make their own micro-batches; step() ends each accumulation
        "gradient_accumulation_steps": 1,
        "managed_gradient_accumulation": False,
        "gradient_clipping": 0.0 if ours else optimizer.grad_clip,
        "bf16": {"enabled": bf16},
        "zero_optimization": {"stage": zero_stage},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": 2**31,
    }
