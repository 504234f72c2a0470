"""transformers models: batched, chat template, YaRN, and one random stream a sample.

The token at position t of a sample is drawn by inverting the cumulative distribution at the t-th number of a random
stream seeded with the sample's own seed, so a sample does not depend on its neighbours in the batch, except for what
floating point makes of another batch shape. A fixed plan of batches (evaluate.py) takes care of that.

Of the model's own generation_config.json only the end-of-turn tokens count: a penalty or a temperature in there would
be a sampling parameter that no manifest names, and log-probabilities that no trainer can reproduce.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, GenerationConfig

from klearbench.engines.base import Generation, Request, Sampling
from klearbench.engines.chat import Chat, chat_of, completion_text, first_line, load_chat, load_tokenizer, render_chat
from klearbench.engines.checkpoint import budget, check_dtype, context_of, load_config, model_hash, stop_tokens
from klearbench.engines.draws import SeededSampler, StopAtTexts
from klearbench.errors import ConfigError, UsageError
from klearbench.types import FinishReason, Message

__all__ = ["HfEngine", "load_engine", "load_tokenizer", "load_weights", "render_chat", "weights_hash"]

transformers.utils.logging.disable_progress_bar()  # ours shows what matters
# It takes the padded length for the sample's and warns; the budget keeps each sample within the context.
logging.getLogger("transformers.generation.stopping_criteria").setLevel(logging.ERROR)


def load_engine(
    model: str,
    batch_size: int = 16,
    rope_scaling: str | None = None,
    chat_template: str | None = None,
    thinking: bool | None = None,
    dtype: str = "auto",
    device: str | None = None,
) -> HfEngine:
    """An engine from a model folder or a hub name.

    Args:
        model: a transformers folder, or a name on the hub.
        batch_size: sequences a call.
        rope_scaling: "yarn:FACTOR" stretches the context FACTOR times (YaRN, arXiv 2309.00071), None leaves it.
        chat_template: "plain", or a Jinja file; None takes the tokenizer's, or plain where it has none.
        thinking: the switch of a template that has one (`enable_thinking`); None leaves the template's default.
        dtype: "auto" (the checkpoint's), "float32", "bfloat16" or "float16".
        device: "cpu", "cuda", ...; None takes a GPU when there is one.

    Raises:
        UsageError: the folder lacks a model or a tokenizer.
        ConfigError: a malformed rope_scaling, dtype or template file, or a thinking switch that is not there.
    """
    check_dtype(dtype)
    chat = load_chat(model, chat_template, thinking)
    config = load_config(model, rope_scaling)
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    weights = load_weights(model, config=config, dtype=dtype)
    try:
        weights = weights.to(where)
    except (RuntimeError, AssertionError) as error:  # no such device, or torch was built without it
        raise ConfigError(f"device {where!r} can't be used ({first_line(error)})") from None
    identity = {
        "model_hash": model_hash(model),
        "dtype": str(weights.dtype).removeprefix("torch."),
        "rope_scaling": rope_scaling,
    }
    return HfEngine(weights, chat.tokenizer, identity, batch_size=batch_size, chat=chat)


def load_weights(model: str, **options: Any) -> Any:
    """`AutoModelForCausalLM.from_pretrained`. Raises UsageError when the weights are absent or corrupt."""
    from safetensors import SafetensorError

    try:
        return AutoModelForCausalLM.from_pretrained(model, **options)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise UsageError(f"{model}: no model can be loaded ({first_line(error)})") from None


def weights_hash(model: torch.nn.Module) -> str:
    """SHA-256 over a live model's parameter names and values."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + b"\0")
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


class HfEngine:
    """Samples from a transformers causal language model, which may be one that is being trained."""

    def __init__(
        self, model: Any, tokenizer: Any, identity: Mapping[str, Any], *, batch_size: int = 16, chat: Chat | None = None
    ) -> None:
        """Wrap a loaded model.

        Args:
            model: a causal language model; its mode (train / eval) is restored after each call.
            tokenizer: its tokenizer.
            identity: what decides the output besides the library versions, with "model_hash".
            batch_size: sequences a call.
            chat: how prompts are rendered; None takes the tokenizer's own template, or plain where it has none.
        """
        self.model = model
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.chat = chat or chat_of(tokenizer)
        self.no_template = self.chat.absent
        self._identity = identity
        self._stop = stop_tokens(model.generation_config, tokenizer)
        self._ends = frozenset(self._stop)
        pad = tokenizer.pad_token_id
        self._pad: int = self._stop[0] if pad is None else pad

    def identity(self) -> Mapping[str, Any]:
        versions = {"transformers": transformers.__version__, "torch": torch.__version__}
        return {"name": "hf", **self._identity, **self.chat.identity(), "batch_size": self.batch_size, **versions}

    def render(self, prompt: Sequence[Message]) -> list[int]:
        """The token ids of a prompt, ready for the assistant's turn."""
        return self.chat.render(prompt)

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """One generation a request, all in one batch, left-padded.

        Raises:
            UsageError: a prompt that fills the model's whole context.
        """
        prompts = [self.render(request.prompt) for request in requests]
        longest = max(map(len, prompts))
        context = context_of(self.model.config)
        budgets = [budget(len(prompt), sampling.max_tokens, context) for prompt in prompts]
        seeds = [request.seed for request in requests]
        sampler = SeededSampler(seeds, sampling, longest, budgets, self._stop[0], prompts)
        watch = StopAtTexts(self.tokenizer, sampling.stop, len(prompts), self._ends) if sampling.stop else None
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                tokens = self._run(prompts, longest, max(budgets), sampler, watch)
        finally:
            self.model.train(was_training)
        rows = [row[:limit] for row, limit in zip(tokens[:, longest:].tolist(), budgets, strict=True)]
        logprobs = torch.stack(sampler.logprobs, 1).tolist()
        stopped = watch.at if watch else [None] * len(rows)
        return [
            self._one(prompt, row, scores, at, sampling.stop)
            for prompt, row, scores, at in zip(prompts, rows, logprobs, stopped, strict=True)
        ]

    def close(self) -> None:
        """The model is freed with the engine."""

    def _run(
        self, prompts: list[list[int]], longest: int, budget: int, sampler: SeededSampler, watch: StopAtTexts | None
    ) -> torch.Tensor:
        device = self.model.device
        ids = torch.tensor([[self._pad] * (longest - len(p)) + p for p in prompts], device=device)
        mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=device)
        plan = GenerationConfig(
            max_new_tokens=budget, do_sample=False, eos_token_id=self._stop, pad_token_id=self._pad, use_cache=True
        )
        ending = {"stopping_criteria": [watch]} if watch else {}
        own, self.model.generation_config = self.model.generation_config, plan  # generate() mixes the two
        try:
            out = self.model.generate(
                ids, attention_mask=mask, generation_config=plan, logits_processor=[sampler], **ending
            )
        finally:
            self.model.generation_config = own
        assert isinstance(out, torch.Tensor)
        return out

    def _one(
        self, prompt: list[int], row: list[int], logprobs: list[float], at: int | None, stop: Sequence[str]
    ) -> Generation:
        end = at if at is not None else next((i for i, token in enumerate(row) if token in self._ends), None)
        kept = row if end is None else row[: end + 1]
        return Generation(
            completion=completion_text(self.tokenizer, kept, self._ends, stop),
            finish_reason=FinishReason.length if end is None else FinishReason.stop,
            prompt_tokens=len(prompt),
            completion_tokens=len(kept),
            prompt_ids=tuple(prompt),
            token_ids=tuple(kept),
            logprobs=tuple(logprobs[: len(kept)]),
        )
