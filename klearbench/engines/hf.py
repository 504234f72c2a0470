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
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from klearbench.engines.base import Generation, Request, Sampling
from klearbench.engines.draws import SeededSampler
from klearbench.errors import ConfigError, UsageError
from klearbench.store import content_hash, text_hash
from klearbench.types import FinishReason, Message

transformers.utils.logging.disable_progress_bar()  # ours shows what matters
# It takes the padded length for the sample's and warns; _budget keeps each sample within the context.
logging.getLogger("transformers.generation.stopping_criteria").setLevel(logging.ERROR)

PLAIN = "plain"
"""The explicit template of models that have none: the messages' contents, a blank line between, a newline after."""


def load_engine(
    model: str,
    batch_size: int = 16,
    rope_scaling: str | None = None,
    chat_template: str | None = None,
    dtype: str = "auto",
    device: str | None = None,
) -> HfEngine:
    """An engine from a model folder or a hub name.

    Args:
        model: a transformers folder, or a name on the hub.
        batch_size: sequences a call.
        rope_scaling: "yarn:FACTOR" stretches the context FACTOR times (YaRN, arXiv 2309.00071), None leaves it.
        chat_template: "plain", or a Jinja file; None takes the tokenizer's, or plain where it has none.
        dtype: "auto", "float32", "bfloat16" or "float16".
        device: "cpu", "cuda", ...; None takes a GPU when there is one.

    Raises:
        UsageError: the folder lacks a model or a tokenizer.
        ConfigError: a malformed rope_scaling, dtype or template file.
    """
    if dtype not in ("auto", "float32", "bfloat16", "float16"):
        raise ConfigError(f"dtype is {dtype!r} (allowed: auto, float32, bfloat16, float16)")
    tokenizer = load_tokenizer(model)
    if chat_template not in (None, PLAIN):
        tokenizer.chat_template = _read_template(Path(str(chat_template)))
    config = _load_config(model, rope_scaling)
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    weights = load_weights(model, config=config, dtype=dtype).to(where)
    folder = Path(model)
    identity = {
        "model_hash": content_hash(folder) if folder.is_dir() else f"hub:{model}",
        "dtype": str(weights.dtype).removeprefix("torch."),
        "rope_scaling": rope_scaling,
    }
    return HfEngine(weights, tokenizer, identity, batch_size=batch_size, plain=chat_template == PLAIN)


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a model folder or hub name. Raises UsageError when there is none."""
    folder = Path(model)
    if model.startswith(("/", ".", "~")) and not folder.exists():
        raise UsageError(f"{model}: no such folder")
    if folder.is_dir() and not any((folder / n).exists() for n in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise UsageError(f"{model} has no tokenizer (tokenizer.json); save the model's tokenizer into that folder")
    try:
        return AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise UsageError(f"{model}: no tokenizer can be loaded ({_first_line(error)})") from None


def load_weights(model: str, **options: Any) -> Any:
    """`AutoModelForCausalLM.from_pretrained`. Raises UsageError when the weights are absent or corrupt."""
    from safetensors import SafetensorError

    try:
        return AutoModelForCausalLM.from_pretrained(model, **options)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise UsageError(f"{model}: no model can be loaded ({_first_line(error)})") from None


def _load_config(model: str, rope_scaling: str | None) -> Any:
    try:
        config = AutoConfig.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise UsageError(f"{model} is no model folder and no model of the hub ({_first_line(error)})") from None
    if rope_scaling is not None:
        kind, _, text = rope_scaling.partition(":")
        factor = float(text) if text.replace(".", "", 1).isdigit() else 0.0
        if kind != "yarn" or factor <= 1:
            raise ConfigError(
                f"rope scaling is {rope_scaling!r} (write yarn:FACTOR with a factor above 1, as yarn:2.5)"
            )
        _stretch(config, factor)
    return config


def _stretch(config: Any, factor: float) -> None:
    """YaRN for a model whose positions are plain rotary ones."""
    rope: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
    by_layer = any(isinstance(value, dict) for value in rope.values())
    if rope.get("rope_type") != "default" or by_layer:
        raise ConfigError(f"rope scaling needs a model of plain rotary positions, this one has {rope!r}")
    original = config.max_position_embeddings
    config.rope_parameters = {
        **rope,
        "rope_type": "yarn",
        "factor": factor,
        "original_max_position_embeddings": original,
    }
    config.max_position_embeddings = int(original * factor)


def _read_template(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"chat template {path}: {error.strerror} (give 'plain' or a Jinja file)") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200]


def render_chat(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Token ids of a chat up to the assistant's turn; trainers use it too, so that both sides read the same prompt."""
    plain = [dict(message) for message in messages]
    return list(tokenizer.apply_chat_template(plain, add_generation_prompt=True, tokenize=True, return_dict=False))


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
        self, model: Any, tokenizer: Any, identity: Mapping[str, Any], *, batch_size: int = 16, plain: bool = False
    ) -> None:
        """Wrap a loaded model.

        Args:
            model: a causal language model; its mode (train / eval) is restored after each call.
            tokenizer: its tokenizer.
            identity: what decides the output besides the library versions, with "model_hash".
            batch_size: sequences a call.
            plain: ignore the tokenizer's chat template.
        """
        self.model = model
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.plain = plain or not tokenizer.chat_template
        self.no_template = not plain and self.plain
        self._identity = identity
        self._stop = _stop_tokens(model, tokenizer)
        pad = tokenizer.pad_token_id
        self._pad: int = self._stop[0] if pad is None else pad

    def identity(self) -> Mapping[str, Any]:
        template = PLAIN if self.plain else text_hash(str(self.tokenizer.chat_template))
        versions = {"transformers": transformers.__version__, "torch": torch.__version__}
        return {"name": "hf", **self._identity, "chat_template": template, "batch_size": self.batch_size, **versions}

    def render(self, prompt: Sequence[Message]) -> list[int]:
        """The token ids of a prompt, ready for the assistant's turn."""
        if self.plain:
            text = "\n\n".join(message["content"] for message in prompt) + "\n"
            return list(self.tokenizer(text)["input_ids"])
        return render_chat(self.tokenizer, prompt)

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """One generation a request, all in one batch, left-padded.

        Raises:
            UsageError: a prompt that fills the model's whole context.
        """
        prompts = [self.render(request.prompt) for request in requests]
        longest = max(map(len, prompts))
        budgets = [self._budget(len(prompt), sampling.max_tokens) for prompt in prompts]
        sampler = SeededSampler([request.seed for request in requests], sampling, longest, budgets, self._stop[0])
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                tokens = self._run(prompts, longest, max(budgets), sampler)
        finally:
            self.model.train(was_training)
        logprobs = torch.stack(sampler.logprobs, 1).tolist()
        return [
            self._one(prompt, row[:budget], scores)
            for prompt, row, budget, scores in zip(
                prompts, tokens[:, longest:].tolist(), budgets, logprobs, strict=True
            )
        ]

    def close(self) -> None:
        """The model is freed with the engine."""

    def _budget(self, prompt_tokens: int, max_tokens: int) -> int:
        context = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        if context is None:
            return max_tokens
        if prompt_tokens >= context:
            raise UsageError(f"a prompt has {prompt_tokens} tokens, the model's context is {context}")
        return int(min(max_tokens, context - prompt_tokens))

    def _run(self, prompts: list[list[int]], longest: int, budget: int, sampler: SeededSampler) -> torch.Tensor:
        device = self.model.device
        ids = torch.tensor([[self._pad] * (longest - len(p)) + p for p in prompts], device=device)
        mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=device)
        plan = GenerationConfig(
            max_new_tokens=budget, do_sample=False, eos_token_id=self._stop, pad_token_id=self._pad, use_cache=True
        )
        own, self.model.generation_config = self.model.generation_config, plan  # generate() mixes the two
        try:
            out = self.model.generate(ids, attention_mask=mask, generation_config=plan, logits_processor=[sampler])
        finally:
            self.model.generation_config = own
        assert isinstance(out, torch.Tensor)
        return out

    def _one(self, prompt: list[int], row: list[int], logprobs: list[float]) -> Generation:
        end = next((i for i, token in enumerate(row) if token in self._stop), None)
        kept = row if end is None else row[: end + 1]
        text = self.tokenizer.decode(
            kept if end is None else kept[:-1], skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return Generation(
            completion=text,
            finish_reason=FinishReason.length if end is None else FinishReason.stop,
            prompt_tokens=len(prompt),
            completion_tokens=len(kept),
            prompt_ids=tuple(prompt),
            token_ids=tuple(kept),
            logprobs=tuple(logprobs[: len(kept)]),
        )


def _stop_tokens(model: Any, tokenizer: Any) -> list[int]:
    configured = getattr(model.generation_config, "eos_token_id", None)
    ids = configured if isinstance(configured, list) else [configured]
    found = [i for i in dict.fromkeys([*ids, tokenizer.eos_token_id]) if i is not None]
    if not found:
        raise UsageError("the model has no end-of-turn token (eos_token_id in generation_config.json or the tokenizer)")
    return found
