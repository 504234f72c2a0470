"""Rollouts from the trained transformers model itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from klearbench.engines.base import Generation, Request, Sampling
from klearbench.engines.hf import HfEngine
from klearbench.faults import fault


def sample(
    engine: HfEngine, requests: Sequence[Request], sampling: Sampling, log: Callable[[str], None]
) -> list[Generation]:
    """One generation a request, in calls of the engine's batch size; each call is a line in the log."""
    made: list[Generation] = []
    for start in range(0, len(requests), engine.batch_size):
        chunk = requests[start : start + engine.batch_size]
        fault("rollout.call")
        log(f"engine call: rollout of {len(chunk)} samples")
        made += engine.generate(chunk, sampling)
    return made
