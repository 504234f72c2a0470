"""What goes over the pipe between an engine and its replicas. Neither end needs vLLM for it."""

from __future__ import annotations

from dataclasses import dataclass

from klearbench.engines.base import Sampling
from klearbench.types import FinishReason

DROP = "drop"
"""In place of a Job: forget all jobs."""


@dataclass(frozen=True, slots=True)
class Job:
    """One completion to be made. `budget`: new tokens at most."""

    number: int
    prompt: tuple[int, ...]
    seed: int
    budget: int
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class Made:
    """What was sampled: ids and the natural logs of their probabilities. `detail` says why it is an error."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    reason: FinishReason
    detail: str = ""
