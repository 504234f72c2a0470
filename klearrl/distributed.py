"""Ranks: set-up, and the few collectives that the loops need. One process without a launcher is rank 0 of 1."""

from __future__ import annotations

import logging
import os
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist

if not torch.cuda.is_available():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")  # before DeepSpeed is imported, which otherwise warns
import deepspeed

T = TypeVar("T")

_PATIENCE = timedelta(hours=12)
"""How long ranks wait for one another: rank 0 evaluates checkpoints alone, which may take hours."""

logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
# Its shared-memory collectives for CPUs are compiled at the first start, and their segments stay in /dev/shm when a
# process is killed. gloo needs neither.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False


def setup() -> None:
    """Join the process group: NCCL on GPUs, gloo on CPUs. The launcher's environment is used when there is one."""
    if dist.is_initialized():
        return
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if "RANK" not in os.environ:  # one process needs no port, which another run might take first
        # nor the launcher's RANK, which our children would take for a launcher's (DeepSpeed asks for LOCAL_RANK alone)
        os.environ.setdefault("LOCAL_RANK", "0")
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    deepspeed.init_distributed(dist_backend=backend, verbose=False, timeout=_PATIENCE, auto_mpi_discovery=False)


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def is_main() -> bool:
    return rank() == 0


def barrier() -> None:
    if world_size() > 1:
        dist.barrier()


def gather(value: T) -> list[T]:
    """The value of every rank, in rank order, on every rank."""
    if world_size() == 1:
        return [value]
    values: list[T | None] = [None] * world_size()
    dist.all_gather_object(values, value)
    return values  # type: ignore[return-value]


def total(values: dict[str, float]) -> dict[str, float]:
    """Sums over all ranks, key by key; every rank must hold the same keys."""
    if world_size() == 1:
        return values
    keys = sorted(values)
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    packed = torch.tensor([values[k] for k in keys], dtype=torch.float64, device=device)
    dist.all_reduce(packed)
    return dict(zip(keys, packed.tolist(), strict=True))
