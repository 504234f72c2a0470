"""What an engine is: requests in, one generation each out. Nothing here, and nothing in an engine, knows an answer."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from klearbench.types import FinishReason, Message, Sample

LOG = logging.getLogger("klearbench.engines")
LOG.setLevel(logging.INFO)
LOG.addHandler(logging.NullHandler())
"""What engines say on their way (retries, rate limits): a run keeps it in its log.txt; warnings reach the terminal."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen. Off values: `top_p` 1.0, `top_k` 0, `min_p` 0.0, `repetition_penalty` 1.0.

    `temperature` 0 is greedy. `max_tokens` counts new tokens. A text of `stop` ends a completion and is no part of it.
    """

    temperature: float = 0.6
    top_p: float = 0.95
    top_k: int = 0
    max_tokens: int = 32768
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()


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
    `detail` is one line about an engine's failure (finish_reason `error`), for the log.
    """

    completion: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    prompt_ids: tuple[int, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    detail: str = ""


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


Finished = Generator[tuple[Request, Generation], None, None]
"""Requests with their generations, as they are finished."""


@runtime_checkable
class StreamingEngine(Engine, Protocol):
    """An engine that batches by itself: it wants all requests at once, and gives each back when it is finished.

    Its samples do not depend on a plan of batches, as far as it can promise that; each keeps its own seed.
    """

    def stream(
        self, requests: Iterable[Request], sampling: Sampling
    ) -> Generator[tuple[Request, Generation], None, None]:
        """Every request with its generation, in the order in which they are finished.

        Requests are taken only as there is room for them. Closing the iterator gives up what is unfinished. A request
        that fails for good comes back with finish_reason `error`.

        Raises:
            EngineDown: nothing more can be made (what was finished has been given back before).
        """
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


def stream_in_order(engine: StreamingEngine, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
    """`Engine.generate` of an engine that streams. Requests are told apart by identity, so twins may stand in one."""
    made = {id(request): generation for request, generation in engine.stream(iter(requests), sampling)}
    return [made[id(request)] for request in requests]
