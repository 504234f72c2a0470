"""What an engine is: requests in, one generation each out. Nothing here, and nothing in an engine, knows an answer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from klearbench.types import FinishReason, Message, Sample


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen. Off values: `top_p` 1.0, `top_k` 0; `temperature` 0 is greedy."""

    temperature: float = 0.6
    top_p: float = 0.95
    top_k: int = 0
    max_tokens: int = 32768


@dataclass(frozen=True, slots=True)
class Request:
    """One completion to be made: the chat messages, the sample's own seed, and its (problem id, sample index)."""

    prompt: tuple[Message, ...]
    seed: int
    place: tuple[str, int] = ("", 0)


@dataclass(frozen=True, slots=True)
class Generation:
    """What an engine made of a request. `prompt_ids` are what the model read; `token_ids` end with the end-of-turn
    token if it was sampled; `logprobs` are those of the sampled tokens under the sampling distribution (natural log).
    """

    completion: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    prompt_ids: tuple[int, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None


class Engine(Protocol):
    """A sampler. `batch_size` requests go into one call; `identity` is everything that decides its output."""

    batch_size: int

    def identity(self) -> Mapping[str, Any]:
        """Name, versions, the model's content hash, chat template ...: part of the cache key of each sample."""
        ...

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """One generation a request, in order."""
        ...

    def close(self) -> None:
        """Free what the engine holds."""
        ...


def sample_seed(run_seed: int, *parts: str | int) -> int:
    """The 63-bit seed of one sample: a hash of the run's seed and the sample's place (suite, problem, index)."""
    text = "\0".join(map(str, (run_seed, *parts)))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1


def as_sample(suite: str, request: Request, generation: Generation, *, tokens: bool = False) -> Sample:
    """The record of a generation, which stands where its request says; with `tokens`, ids and log-probs too (RL)."""
    return Sample(
        suite=suite,
        problem_id=request.place[0],
        sample_index=request.place[1],
        seed=request.seed,
        completion=generation.completion,
        prompt_tokens=generation.prompt_tokens,
        completion_tokens=generation.completion_tokens,
        finish_reason=generation.finish_reason,
        token_ids=generation.token_ids if tokens else None,
        logprobs=generation.logprobs if tokens else None,
    )
