"""Prompts and completions as text and as tokens: the tokenizer, the chat template, stop texts. Loads no torch itself.

Every engine that holds a tokenizer goes through here, so that one prompt has the same tokens in all of them, and a
completion the same end.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.errors import ConfigError, UsageError
from klearbench.store import text_hash
from klearbench.types import Message, parquet_text

PLAIN = "plain"
"""The explicit template of models that have none: the messages' contents, a blank line between, a newline after."""

OWN = "model"
"""The name of the template that the model's tokenizer brings."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A tokenizer with the template that makes a prompt of messages.

    `template` is its name ("model", "plain", or a file's). `thinking` is passed on as `enable_thinking`; None leaves it
    to the template. `absent`: no template was asked for, and the tokenizer has none either.
    """

    tokenizer: Any
    template: str = OWN
    thinking: bool | None = None
    absent: bool = False

    def render(self, prompt: Sequence[Message]) -> list[int]:
        """The token ids of a prompt, ready for the assistant's turn.

        Raises:
            UsageError: the template can't be read, or refuses these messages.
        """
        from jinja2 import TemplateError

        if self.template == PLAIN:
            text = "\n\n".join(message["content"] for message in prompt) + "\n"
            return list(self.tokenizer(parquet_text(text))["input_ids"])
        try:
            return render_chat(self.tokenizer, prompt, self.thinking)
        except TemplateError as error:
            line = first_line(error)
            raise UsageError(f"the chat template {self.template!r} can't render a prompt ({line})") from None

    def identity(self) -> dict[str, Any]:
        """What of it decides an engine's output: the template's name and SHA-256, and the thinking switch."""
        text = PLAIN if self.template == PLAIN else str(self.tokenizer.chat_template)
        return {
            "chat_template": self.template,
            "chat_template_hash": text_hash(text),
            **({} if self.thinking is None else {"thinking": self.thinking}),
        }


def load_chat(model: str, chat_template: str | None = None, thinking: bool | None = None) -> Chat:
    """The tokenizer of a model with the template asked for.

    Args:
        model: a transformers folder, or a name on the hub.
        chat_template: "plain", or a Jinja file; None takes the tokenizer's, or plain where it has none.
        thinking: True or False for a template with a switch (`enable_thinking`); None leaves the template's default.

    Raises:
        UsageError: no tokenizer.
        ConfigError: a template file that can't be read; a switch that the template doesn't have.
    """
    tokenizer = load_tokenizer(model)
    if chat_template in (None, PLAIN):
        return chat_of(tokenizer, chat_template, thinking)
    path = Path(str(chat_template))
    try:
        tokenizer.chat_template = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"chat template {path}: {error.strerror} (give 'plain' or a Jinja file)") from None
    except UnicodeDecodeError:
        raise ConfigError(f"chat template {path}: no UTF-8 text (give 'plain' or a Jinja file)") from None
    return chat_of(tokenizer, path.name, thinking)


def chat_of(tokenizer: Any, template: str | None = None, thinking: bool | None = None) -> Chat:
    """A chat with the tokenizer's own template, or plain where it has none; `template` names what it was given.

    Raises:
        ConfigError: a thinking switch that the template doesn't have.
    """
    absent = template is None and not tokenizer.chat_template
    name = PLAIN if absent else template or OWN
    if thinking is not None and (name == PLAIN or "enable_thinking" not in str(tokenizer.chat_template)):
        raise ConfigError(
            f"thinking is {thinking}, and the chat template {name!r} has no such switch (it never reads"
            " enable_thinking); leave thinking out, or give a --chat-template that has it"
        )
    return Chat(tokenizer, name, thinking, absent)


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a model folder or hub name. Raises UsageError when there is none."""
    from transformers import AutoTokenizer

    folder = Path(model)
    if model.startswith(("/", ".", "~")) and not folder.exists():
        raise UsageError(f"{model}: no such folder")
    if folder.is_dir() and not any((folder / n).exists() for n in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise UsageError(f"{model} has no tokenizer (tokenizer.json); save the model's tokenizer into that folder")
    try:
        return AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise UsageError(f"{model}: no tokenizer can be loaded ({first_line(error)})") from None


def render_chat(tokenizer: Any, messages: Sequence[Message], thinking: bool | None = None) -> list[int]:
    """Token ids of a chat up to the assistant's turn; trainers use it too, so that both sides read the same prompt."""
    plain = [{key: parquet_text(text) for key, text in message.items()} for message in messages]
    switch = {} if thinking is None else {"enable_thinking": thinking}
    ids = tokenizer.apply_chat_template(plain, add_generation_prompt=True, tokenize=True, return_dict=False, **switch)
    return list(ids)


class StopTexts:
    """Watches one completion grow, token by token, for the first of its stop texts. A text may span tokens."""

    def __init__(self, tokenizer: Any, stop: Sequence[str]) -> None:
        """Raises UsageError for a tokenizer that can't decode step by step."""
        from tokenizers.decoders import DecodeStream

        core = getattr(tokenizer, "backend_tokenizer", None)
        if core is None:
            raise UsageError("stop texts need a fast tokenizer (tokenizer.json), and the model has none")
        self._core = core
        self._stream = DecodeStream(skip_special_tokens=False)
        self._stop = tuple(stop)
        self._reach = max(map(len, stop)) - 1
        self._tail = ""

    def feed(self, token: int) -> bool:
        """Take the next token; True when a stop text has just been completed."""
        new = self._stream.step(self._core, token)  # None while a character is incomplete
        if not new:
            return False
        text = self._tail + new
        self._tail = text[max(0, len(text) - self._reach) :]
        return any(word in text for word in self._stop)


def completion_text(tokenizer: Any, tokens: Sequence[int], ends: AbstractSet[int], stop: Sequence[str] = ()) -> str:
    """The text of a completion: without the end-of-turn token that closes it, and up to the first stop text."""
    kept = list(tokens[:-1] if tokens and tokens[-1] in ends else tokens)
    text = str(tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False))
    return text[: min((at for word in stop if (at := text.find(word)) >= 0), default=len(text))]


def first_line(error: Exception) -> str:
    """The first line of an error's text, at most 200 characters."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
