"""Models and tokenizers: loading, making a small one from nothing, saving a plain transformers folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from klearbench.engines.hf import load_tokenizer
from klearbench.errors import ConfigError, UsageError
from klearrl.config import ModelConfig, NewModel

_SPECIAL = ("<pad>", "<|im_end|>", "<|im_start|>", "<unk>")
_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|> ' + message['role'] + ' ' + message['content'] + ' <|im_end|> ' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|> assistant ' }}{% endif %}"
)


def word_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer of whole words, those of `texts`, sorted: the same texts in any order give the same tokenizer.

    Words are split at white space. Where some text has line breaks (programs), they are split at spaces alone, and a
    break is part of a word; so text whose words are joined by single spaces survives encoding and decoding.
    """
    found = list(texts)
    breaks = any("\n" in text for text in found)
    split = [word for text in found for word in (text.split(" ") if breaks else text.split())]
    words = sorted({*filter(None, split), "user", "assistant", "system"})
    vocabulary = {word: i for i, word in enumerate([*_SPECIAL, *(w for w in words if w not in _SPECIAL)])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Split(" ", "removed") if breaks else pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<|im_end|>", unk_token="<unk>", chat_template=_TEMPLATE
    )


def new_model(spec: NewModel, tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen3ForCausalLM:
    """A Qwen3 model with random weights, the same for the same seed."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=spec.hidden_size,
        intermediate_size=spec.intermediate_size,
        num_hidden_layers=spec.layers,
        num_attention_heads=spec.heads,
        num_key_value_heads=spec.kv_heads,
        head_dim=spec.head_dim,
        max_position_embeddings=spec.context,
        tie_word_embeddings=True,
        initializer_range=spec.init_std,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config)


def start_model(spec: ModelConfig, texts: Iterable[str], seed: int) -> tuple[Any, Any]:
    """The model and tokenizer that a run starts from; `texts` are what a new tokenizer is made of."""
    if spec.new is not None:
        tokenizer = word_tokenizer(texts)
        return new_model(spec.new, tokenizer, seed), _checked(tokenizer, spec.chat_template)
    assert spec.path is not None
    model, tokenizer = load_model(spec.path, spec.dtype)
    return model, _checked(tokenizer, spec.chat_template)


def load_model(path: str, dtype: str) -> tuple[Any, Any]:
    """A model and its tokenizer from a folder or the hub. Raises UsageError when one of them can't be loaded."""
    tokenizer = load_tokenizer(path)
    try:
        model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: no model can be loaded ({str(error).strip().splitlines()[0][:200]})") from None
    plan = model.generation_config
    if any(getattr(plan, name) is not None for name in ("temperature", "top_p", "top_k")):
        plan.do_sample = True  # without it transformers refuses to save such a config, after the training
    return model, tokenizer


def _checked(tokenizer: Any, file: str | None) -> Any:
    """The tokenizer with the recipe's chat template. Raises ConfigError when it can't end a turn or has no template."""
    if file is not None:
        try:
            tokenizer.chat_template = Path(file).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"model.chat_template {file}: {error.strerror}") from None
    if not tokenizer.chat_template:
        raise ConfigError("the tokenizer has no chat template: give model.chat_template a Jinja file")
    if tokenizer.eos_token_id is None:
        raise ConfigError("the tokenizer has no end-of-turn token: set eos_token in its tokenizer_config.json")
    return tokenizer


def save_model(model: Any, weights: Mapping[str, torch.Tensor], tokenizer: Any, folder: Path) -> None:
    """A plain transformers folder: config, generation config with the trained end-of-turn token, template, weights."""
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder, state_dict=dict(weights))
    tokenizer.save_pretrained(folder)


def save_skeleton(model: Any, tokenizer: Any, folder: Path) -> None:
    """Everything of a transformers folder but the weights: what an export needs beside a training checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "dtype.json").write_text(json.dumps(str(model.dtype).removeprefix("torch.")))
