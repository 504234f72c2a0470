"""vLLM: continuous batching, tensor parallel engines, and replicas of them for data parallelism.

What decides a sample: the model and its data type, positions, template and context, vLLM's and torch's versions, the
kind of device (a CPU draws other numbers than a GPU from the same seed), tensor parallelism and compiled kernels (sums
in another order) - all this is the identity. What does not: `data_parallel`, `max_num_seqs`, `gpu_memory` and
`prefix_caching`. Each sample has a random stream of its own seed, so they can only shift logits by what floating point
makes of another batch shape: two runs of a sample part where two tokens nearly tie, and nowhere else. With
VLLM_BATCH_INVARIANT=1, on GPUs that support it, vLLM promises the same bits in any batch; the identity then says so.

Of the model's own generation_config.json only the end-of-turn tokens count, as in the hf engine.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

from klearbench.engines.base import Generation, Request, Sampling, stream_in_order
from klearbench.engines.chat import Chat, completion_text, load_chat
from klearbench.engines.checkpoint import budget, check_dtype, context_of, load_config, load_stop_tokens, model_hash
from klearbench.engines.vllm_devices import device, environments, installed
from klearbench.engines.vllm_jobs import Job, Made
from klearbench.engines.vllm_replicas import Pool
from klearbench.errors import ConfigError
from klearbench.types import FinishReason, Message

if importlib.util.find_spec("vllm") is None:
    raise ModuleNotFoundError("vLLM is not installed", name="vllm")

_AHEAD = 4
"""So many times the requests in flight are read ahead, to begin with the longest prompts."""


def load_engine(
    model: str,
    tensor_parallel: int = 1,
    data_parallel: int = 1,
    rope_scaling: str | None = None,
    chat_template: str | None = None,
    thinking: bool | None = None,
    dtype: str = "auto",
    max_model_len: int | None = None,
    gpu_memory: float = 0.9,
    max_num_seqs: int = 256,
    enforce_eager: bool | None = None,
    prefix_caching: bool = True,
) -> VllmEngine:
    """An engine from a model folder or a hub name. vLLM itself starts with the first request.

    Args:
        model: a transformers folder, or a name on the hub.
        tensor_parallel: devices that share one copy of the weights.
        data_parallel: copies of the weights, each on devices of its own.
        rope_scaling: "yarn:FACTOR" stretches the context FACTOR times (YaRN, arXiv 2309.00071), None leaves it.
        chat_template: "plain", or a Jinja file; None takes the tokenizer's, or plain where it has none.
        thinking: the switch of a template that has one (`enable_thinking`); None leaves the template's default.
        dtype: "auto" (the checkpoint's, float32 included), "float32", "bfloat16" or "float16".
        max_model_len: tokens of prompt and completion together; None takes the model's context.
        gpu_memory: the share of each GPU's memory that vLLM takes, weights included.
        max_num_seqs: sequences that a copy works on at a time.
        enforce_eager: no compiled kernels; None compiles on a GPU and not on a CPU.
        prefix_caching: samples of one problem share their prompt's cache.

    Raises:
        UsageError: the folder lacks a model or a tokenizer; too few GPUs.
        ConfigError: an option of another type or out of range, a malformed rope_scaling or template file.
    """
    check_dtype(dtype)
    _check_numbers(
        {"tensor_parallel": tensor_parallel, "data_parallel": data_parallel, "max_num_seqs": max_num_seqs}
        | ({} if max_model_len is None else {"max_model_len": max_model_len}),
        gpu_memory,
    )
    chat = load_chat(model, chat_template, thinking)
    config = load_config(model, rope_scaling)
    arguments = {
        "model": model,
        "tensor_parallel_size": tensor_parallel,
        "dtype": _dtype(config, dtype),
        "max_model_len": _context(config, max_model_len),
        "gpu_memory_utilization": gpu_memory,
        "max_num_seqs": max_num_seqs,
        "enforce_eager": device() == "cpu" if enforce_eager is None else enforce_eager,
        "enable_prefix_caching": prefix_caching,
        "hf_overrides": _overrides(config, rope_scaling),
    }
    return VllmEngine(arguments | _cpu_arguments(arguments), chat, config, data_parallel, rope_scaling)


class VllmEngine:
    """A StreamingEngine. Replicas are started at the first request and stay until `close`."""

    def __init__(
        self, arguments: Mapping[str, Any], chat: Chat, config: Any, data_parallel: int, rope_scaling: str | None
    ) -> None:
        """Take vLLM's arguments (EngineArgs) and what prompts are rendered with; `load_engine` makes both."""
        model = arguments["model"]
        self.tokenizer, self.chat = chat.tokenizer, chat
        self.no_template = chat.absent
        self.context: int = arguments["max_model_len"]
        self.batch_size = arguments["max_num_seqs"] * data_parallel
        self._ends = frozenset(load_stop_tokens(model, config, chat.tokenizer))
        self._arguments = dict(arguments)
        self._environments = environments(data_parallel, arguments["tensor_parallel_size"])
        self._model_hash = model_hash(model)
        self._rope_scaling = rope_scaling
        self._pool: Pool | None = None
        self._numbers = count()

    def identity(self) -> Mapping[str, Any]:
        a = self._arguments
        return {
            "name": "vllm",
            "model_hash": self._model_hash,
            "dtype": a["dtype"],
            "rope_scaling": self._rope_scaling,
            **self.chat.identity(),
            "max_model_len": self.context,
            "tensor_parallel": a["tensor_parallel_size"],
            "enforce_eager": a["enforce_eager"],
            "device": device(),
            **({"batch_invariant": True} if os.environ.get("VLLM_BATCH_INVARIANT", "0") not in ("", "0") else {}),
            "vllm": installed()[1],
            "torch": importlib.metadata.version("torch"),
        }

    def render(self, prompt: Sequence[Message]) -> list[int]:
        """The token ids of a prompt, ready for the assistant's turn."""
        return self.chat.render(prompt)

    def pids(self) -> list[int]:
        """The replicas' processes, once they run; each leads the group of all that it started."""
        return self._pool.pids() if self._pool else []

    def stream(
        self, requests: Iterable[Request], sampling: Sampling
    ) -> Generator[tuple[Request, Generation], None, None]:
        """See StreamingEngine. Besides EngineDown it raises

        UsageError: vLLM can't start, a prompt that fills the whole context, sampling parameters that vLLM refuses.
        """
        if 0 < sampling.temperature < 0.01:  # vLLM would take 0.01 and say nothing that a manifest holds
            raise ConfigError(f"temperature is {sampling.temperature}; vLLM samples at 0 (greedy), or from 0.01")
        if self._pool is None:
            self._pool = Pool(self._plan(), self._environments, self._room)
        asked: dict[int, Request] = {}
        done = self._pool.run(self._jobs(requests, sampling, asked))
        try:
            for job, made in done:
                yield asked.pop(job.number), self._generation(job, made)
        finally:
            done.close()

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """One generation a request, in order. Raises as `stream`."""
        return stream_in_order(self, requests, sampling)

    def close(self) -> None:
        """End every process of vLLM's."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    @property
    def _room(self) -> int:
        """Requests in flight, a replica: as many as it works on, and some to go on with when these are finished."""
        seqs: int = self._arguments["max_num_seqs"]
        return seqs + max(1, seqs // 8)

    def _plan(self) -> dict[str, Any]:
        fixed = {
            "skip_tokenizer_init": True,  # token ids go in, token ids come out
            "generation_config": "vllm",  # the model's own would bring penalties that no manifest names
            "logprobs_mode": "processed_logprobs",
            "disable_log_stats": True,
            "use_tqdm_on_load": False,
            "seed": 0,
        }
        return {"engine": self._arguments | fixed, "ends": sorted(self._ends), "model": self._arguments["model"]}

    def _jobs(self, requests: Iterable[Request], sampling: Sampling, asked: dict[int, Request]) -> Iterator[Job]:
        """In blocks read ahead, the longest prompts first; equal prompts next to each other share their cache."""
        coming = iter(requests)
        while block := list(islice(coming, _AHEAD * self._room * len(self._environments))):
            rendered = [(tuple(self.render(request.prompt)), request) for request in block]
            for prompt, request in sorted(rendered, key=lambda pair: (-len(pair[0]), pair[0])):
                room = budget(len(prompt), sampling.max_tokens, self.context)
                number = next(self._numbers)
                asked[number] = request
                yield Job(number, prompt, request.seed, room, sampling)

    def _generation(self, job: Job, made: Made) -> Generation:
        failed = made.reason is FinishReason.error
        text = "" if failed else completion_text(self.tokenizer, made.token_ids, self._ends, job.sampling.stop)
        return Generation(
            completion=text,
            finish_reason=made.reason,
            prompt_tokens=len(job.prompt),
            completion_tokens=len(made.token_ids),
            prompt_ids=job.prompt,
            token_ids=made.token_ids,
            logprobs=made.logprobs,
            detail=made.detail,
        )


def _check_numbers(counts: Mapping[str, Any], gpu_memory: Any) -> None:
    for name, value in counts.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"engine 'vllm': {name} is {value!r}; a whole number from 1 is needed")
    if not isinstance(gpu_memory, int | float) or not 0 < gpu_memory <= 1:
        raise ConfigError(f"engine 'vllm': gpu_memory is {gpu_memory!r}; a share above 0 and up to 1 is needed")


def _dtype(config: Any, dtype: str) -> str:
    """vLLM's own "auto" would make float16 of a float32 checkpoint."""
    if dtype != "auto":
        return dtype
    own = str(config.get_text_config().dtype or config.dtype).removeprefix("torch.")
    if own not in ("float32", "bfloat16", "float16"):
        raise ConfigError(f"the model's config.json says dtype {own}; say float32, bfloat16 or float16 (--dtype)")
    return own


def _context(config: Any, asked: int | None) -> int:
    own = context_of(config)
    if asked is None and own is None:
        raise ConfigError("the model's config.json names no context; say max_model_len (--engine-arg max_model_len=N)")
    if asked is not None and own is not None and asked > own:
        raise ConfigError(f"max_model_len is {asked}, the model's context is {own} (rope_scaling yarn:F stretches it)")
    return int(asked or own or 0)


def _overrides(config: Any, rope_scaling: str | None) -> dict[str, Any]:
    if rope_scaling is None:
        return {}
    return {"rope_parameters": dict(config.rope_parameters), "max_position_embeddings": config.max_position_embeddings}


def _cpu_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """On a CPU a prompt is read whole. A chunk of one ends with a draw that is thrown away; vLLM takes the number back
    on a GPU, and dies of trying on a CPU (0.32: "CPU Generator does not use offset")."""
    if device() != "cpu":
        return {}
    room = max(arguments["max_model_len"], arguments["max_num_seqs"], 2048)
    return {"enable_chunked_prefill": False, "max_num_batched_tokens": room}
