"""What the engines read of a model folder besides its weights: positions, end-of-turn tokens, data type, hash."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from klearbench.engines.base import LOG
from klearbench.engines.chat import first_line
from klearbench.errors import ConfigError, UsageError
from klearbench.store import content_hash

DTYPES = ("auto", "float32", "bfloat16", "float16")


def load_config(model: str, rope_scaling: str | None = None) -> Any:
    """The model's transformers config, its positions stretched if asked ("yarn:FACTOR").

    Raises:
        UsageError: no model.
        ConfigError: a malformed rope_scaling, or a model that can't be stretched.
    """
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise UsageError(f"{model} is no model folder and no model of the hub ({first_line(error)})") from None
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


def check_dtype(dtype: str) -> None:
    """Raises ConfigError for a data type that is not in DTYPES."""
    if dtype not in DTYPES:
        raise ConfigError(f"dtype is {dtype!r} (allowed: {', '.join(DTYPES)})")


def model_hash(model: str) -> str:
    """The content hash of a folder; a model of the hub is known by its name alone."""
    folder = Path(model)
    return content_hash(folder) if folder.is_dir() else f"hub:{model}"


def context_of(config: Any) -> int | None:
    """The model's context in tokens, None where the config doesn't say."""
    return getattr(config.get_text_config(), "max_position_embeddings", None)


def budget(prompt_tokens: int, max_tokens: int, context: int | None) -> int:
    """How many new tokens a sample may have. Raises UsageError for a prompt that fills the whole context."""
    if context is None:
        return max_tokens
    if prompt_tokens >= context:
        raise UsageError(f"a prompt has {prompt_tokens} tokens, the model's context is {context}")
    if context - prompt_tokens < max_tokens:
        _tell_shortened(context, max_tokens)
    return int(min(max_tokens, context - prompt_tokens))


@cache
def _tell_shortened(context: int, max_tokens: int) -> None:
    """Once: a sample that ends there is truncated by the context, and not by the limit that the manifest names."""
    LOG.warning(
        "the model's context of %d tokens ends samples before --max-tokens %d does (lower it, or stretch the context)",
        context, max_tokens,
    )  # fmt: skip


def load_stop_tokens(model: str, config: Any, tokenizer: Any) -> list[int]:
    """`stop_tokens` of a model whose weights are not loaded here: its generation_config.json, or else its config."""
    from transformers import GenerationConfig

    try:
        plan = GenerationConfig.from_pretrained(model)
    except OSError:
        plan = GenerationConfig.from_model_config(config)
    return stop_tokens(plan, tokenizer)


def stop_tokens(generation_config: Any, tokenizer: Any) -> list[int]:
    """The tokens that end a turn: those of the generation config and the tokenizer's. UsageError when there is none."""
    configured = getattr(generation_config, "eos_token_id", None)
    ids = configured if isinstance(configured, list) else [configured]
    found = [i for i in dict.fromkeys([*ids, tokenizer.eos_token_id]) if i is not None]
    if not found:
        raise UsageError("the model has no end-of-turn token (eos_token_id in generation_config.json or the tokenizer)")
    return found
