"""The words of an OpenAI-compatible server: what a request's body holds, and how an answer is read, whole or streamed.

Reasoning that a server's parser took out of the content (`reasoning_content`, or `reasoning`) is put back as
`<think>\\n...\\n</think>\\n\\n` before it, so that judging sees where the thinking ended. Without any content the tag
stays open: nothing says that the model had closed it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from klearbench.engines.base import Request, Sampling
from klearbench.errors import ConfigError

FIXED = ("messages", "model", "n", "stream", "stream_options")
"""Fields that `extra_body` may not touch (`stream_options` it may take away)."""
SAMPLED = ("temperature", "top_p", "max_tokens", "seed", "stop", "top_k", "min_p", "repetition_penalty")
"""Fields that the run's manifest names: `extra_body` may take them away (null), and not change them behind its back."""
_ABSENT = ("[DONE]", "")


class Fault(Exception):
    """A call that failed in a way that may pass. `cause` is two words for the totals, `wait` the seconds asked for."""

    def __init__(self, cause: str, detail: str = "", wait: float | None = None) -> None:
        super().__init__(f"{cause}: {detail}" if detail else cause)
        self.cause = cause
        self.wait = wait


class ErrorBody(Exception):
    """An error that came as an answer: in a body of status 200, or as an event of a stream."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(error_text(data))
        self.data = data

    @property
    def status(self) -> int:
        """The code that it bears in place of a status; 500 where there is none."""
        error = self.data["error"]
        code = str(error.get("code")) if isinstance(error, Mapping) else ""
        return int(code) if code.isascii() and code.isdigit() and 400 <= int(code[:4]) <= 599 else 500


class Refused(Exception):
    """The server will never answer this one request; its text says why."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What goes into every body besides the prompt and the sampling.

    Attributes:
        thinking: the chat template's switch (`enable_thinking`), None leaves its default.
        extra_body: fields of the user's own; null takes one away.
        stream: ask for the answer piece by piece.
        say_off: send top_k, min_p and repetition_penalty where they are off, too. Servers that take their defaults
            from the model's generation_config.json (or from themselves) would sample with others otherwise.
    """

    thinking: bool | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    say_off: bool = False


def check_extra_body(extra_body: Mapping[str, Any] | str | None, thinking: bool | None) -> Mapping[str, Any]:
    """The user's own fields, from a mapping or JSON text.

    Raises:
        ConfigError: no JSON object, or a field that is not the user's to set.
    """
    if isinstance(extra_body, str):
        try:
            extra_body = json.loads(extra_body)
        except ValueError as error:
            raise ConfigError(f"extra_body is no JSON ({error}); write it as '{{\"key\": value}}'") from None
    if extra_body is None:
        return {}
    if not isinstance(extra_body, Mapping):
        raise ConfigError(f"extra_body is a {type(extra_body).__name__}; a JSON object is expected")
    for key, value in extra_body.items():
        if key in FIXED and not (key == "stream_options" and value is None):
            raise ConfigError(f"extra_body sets {key!r}, which is this engine's own")
        if key in SAMPLED and value is not None:
            raise ConfigError(f"extra_body sets {key!r}; use the run's own option, or null to leave the field out")
    template = extra_body.get("chat_template_kwargs")
    if template is not None and not isinstance(template, Mapping):
        raise ConfigError("extra_body: chat_template_kwargs is no JSON object")
    if thinking is not None and template is not None and template.get("enable_thinking", thinking) != thinking:
        raise ConfigError("extra_body: chat_template_kwargs.enable_thinking contradicts the option thinking")
    return extra_body


def body(model: str, request: Request, sampling: Sampling, extras: Extras) -> bytes:
    """The JSON of a chat completion, ASCII only: a lone surrogate in a prompt reaches the server as it is."""
    fields: dict[str, Any] = {
        "model": model,
        "messages": [dict(message) for message in request.prompt],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": request.seed,
        **_tail(sampling, extras.say_off),
        **extras.extra_body,
    }
    if extras.thinking is not None:
        own = extras.extra_body.get("chat_template_kwargs") or {}
        fields["chat_template_kwargs"] = {**own, "enable_thinking": extras.thinking}
    if extras.stream:
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
        fields |= {key: None for key, value in extras.extra_body.items() if value is None}
    return json.dumps({key: value for key, value in fields.items() if value is not None}, allow_nan=False).encode()


def _tail(sampling: Sampling, say_off: bool) -> dict[str, Any]:
    """Fields that OpenAI's own server refuses; an unlimited top_k is -1 everywhere (0 is refused by some)."""
    fields: dict[str, Any] = {"stop": list(sampling.stop)} if sampling.stop else {}
    if say_off or sampling.top_k:
        fields["top_k"] = sampling.top_k or -1
    if say_off or sampling.min_p:
        fields["min_p"] = sampling.min_p
    if say_off or sampling.repetition_penalty != 1:
        fields["repetition_penalty"] = sampling.repetition_penalty
    return fields


@dataclass(slots=True)
class Reply:
    """An answer that grows. `finish` is the server's word; `usage` its count of tokens; `pieces` those of a stream."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    finish: str | None = None
    usage: tuple[int, int] | None = None
    pieces: int = 0

    @property
    def text(self) -> str:
        content, reasoning = "".join(self.content), "".join(self.reasoning)
        if not reasoning:
            return content
        opened = "<think>\n" + reasoning.strip("\n")
        return f"{opened}\n</think>\n\n" + content.lstrip("\n") if content else opened

    def add(self, data: Any, part: str) -> None:
        """Take in a whole answer (`part` "message") or a piece of a streamed one ("delta").

        Raises:
            Fault: it isn't what a server of this kind says.
            ErrorBody: it is an error.
        """
        if not isinstance(data, Mapping):
            raise Fault("malformed answer", f"JSON {type(data).__name__}")
        if data.get("error"):
            raise ErrorBody(data)
        self.usage = _usage(data.get("usage")) or self.usage
        choices = data.get("choices")
        if part == "delta" and not choices:
            return  # the chunk of the usage, or a sign of life
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            raise Fault("malformed answer", "no choices")
        if choices[0].get("index") in (None, 0):
            self._add_choice(choices[0], part)

    def _add_choice(self, choice: Mapping[str, Any], part: str) -> None:
        message, finish = choice.get(part), choice.get("finish_reason")
        if not isinstance(message, Mapping) and (part == "message" or message is not None):
            raise Fault("malformed answer", f"no {part}")
        message = message or {}
        content = message.get("content")
        reasoning = message.get("reasoning_content") or message.get("reasoning")  # some send both, and mean one
        for value in (content, reasoning, finish):
            if value is not None and not isinstance(value, str):
                raise Fault("malformed answer", f"{type(value).__name__} where a text belongs")
        self.content += [content] if content else []
        self.reasoning += [reasoning] if reasoning else []
        self.pieces += bool(content or reasoning)
        self.finish = finish or self.finish


def _usage(value: Any) -> tuple[int, int] | None:
    """(prompt tokens, completion tokens), or None where they are not told."""
    if not isinstance(value, Mapping):
        return None
    counts = (value.get("prompt_tokens"), value.get("completion_tokens"))
    if any(not isinstance(count, int) or isinstance(count, bool) or count < 0 for count in counts):
        return None
    return counts  # type: ignore[return-value]


def parse(payload: bytes | str, kind: str = "") -> Any:
    """JSON of a server. Raises Fault, with the content type, when it is none (an error page, half an answer)."""
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        what = "an empty body" if not payload.strip() else f"{len(payload)} bytes that are no JSON"
        raise Fault("malformed answer", f"{what} ({kind or 'no content type'})") from None


def whole_reply(payload: bytes, kind: str) -> Reply:
    """An answer that came at once."""
    reply = Reply()
    reply.add(parse(payload, kind), "message")
    return reply


@dataclass(slots=True)
class Events:
    """The data of server-sent events, out of chunks of bytes cut anywhere.

    Lines end with LF or CRLF and with nothing else: JSON may hold U+2028 and U+0085 as they are, which are line ends
    to `str.splitlines`.
    """

    rest: bytes = b""

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The data of each line that the chunk completes; comments and other fields are passed over."""
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip().decode("utf-8", "replace")


def take_event(reply: Reply, data: str) -> bool:
    """Add one event to a reply; False when it was the last one."""
    if data not in _ABSENT:
        reply.add(parse(data, "text/event-stream"), "delta")
    return data != "[DONE]"


def error_text(data: Any) -> str:
    """What a server says of an error, in any of the usual forms, on one line."""
    found = data
    for key in ("error", "message", "detail"):
        if isinstance(found, Mapping) and found.get(key):
            found = found[key]
    return one_line(found if isinstance(found, str) else json.dumps(found))


def one_line(text: str, limit: int = 300) -> str:
    """A server's text on one line of printable characters."""
    shown = "".join(char if char.isprintable() else " " for char in text[: 4 * limit])
    shown = " ".join(shown.split())
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
