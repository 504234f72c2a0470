"""Which vLLM is installed, for which kind of device, and how devices are shared out among replicas."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from functools import cache
from pathlib import Path

from klearbench.errors import UsageError

_ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "TOKENIZERS_PARALLELISM": "false",
}
"""Set for the replicas where the user has not set it."""

_ENVIRONMENT_CPU = {"VLLM_CPU_KVCACHE_SPACE": "4", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
"""On a CPU also: GiB of cache for a replica; the engine within the replica's process, which starts twice as fast."""


@cache
def installed() -> tuple[str, str]:
    """The distribution that brings the module vllm ("vllm", "vllm-cpu") and its version."""
    name = importlib.metadata.packages_distributions()["vllm"][0]
    return name, importlib.metadata.version(name)


def device() -> str:
    """The kind of device that this vLLM was built for: "cpu" or "gpu"."""
    name, version = installed()
    return "cpu" if "cpu" in name or "cpu" in version else "gpu"


def environments(replicas: int, devices_each: int) -> list[dict[str, str]]:
    """The environment of each replica, with a slice of the devices. Raises UsageError where there are too few."""
    base = _ENVIRONMENT | os.environ
    base["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), base.get("PATH", os.defpath)])
    if device() == "cpu":
        threads = max(1, len(os.sched_getaffinity(0)) // (replicas * devices_each))
        return [{"OMP_NUM_THREADS": str(threads)} | _ENVIRONMENT_CPU | base for _ in range(replicas)]
    if replicas == 1:
        return [base]
    visible = _visible_gpus()
    if len(visible) < replicas * devices_each:
        raise UsageError(
            f"data_parallel {replicas} x tensor_parallel {devices_each} needs {replicas * devices_each} GPUs,"
            f" {len(visible)} are visible (CUDA_VISIBLE_DEVICES)"
        )
    slices = [visible[i * devices_each : (i + 1) * devices_each] for i in range(replicas)]
    return [base | {"CUDA_VISIBLE_DEVICES": ",".join(part)} for part in slices]


def _visible_gpus() -> list[str]:
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name for name in named.split(",") if name]
    import torch

    return [str(i) for i in range(torch.cuda.device_count())]
