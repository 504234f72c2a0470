"""What an error of a server means for a run: try again, one request's own fault, or nothing to be done before the user
changes something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from klearbench.engines.base import Sampling
from klearbench.engines.openai_server import Address, Server, listed
from klearbench.engines.openai_wire import Extras, Fault, Refused
from klearbench.errors import EngineDown, UsageError, nearest

_PASSING = (408, 409, 425)
"""Statuses below 500, besides 429, that may pass."""
_NO_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_ITS_OWN = (400, 413, 422, 431, 451)
"""Statuses that speak of what one request holds."""

_NOT_HAD = re.compile(
    r"unrecogni[sz]ed|unknown|unsupported|not support|(?:n't|not) (?:permitted|allowed|available|a valid)|unexpected"
    r"|extra (?:inputs|fields|keys)|extra_forbidden|(?:invalid|additional) (?:parameter|argument|field|propert)",
    re.IGNORECASE,
)
_REMEDY: Mapping[str, str] = {
    "temperature": "use --temperature 1",
    "top_p": "use --top-p 1",
    "top_k": "use --top-k 0",
    "min_p": "use --min-p 0",
    "repetition_penalty": "use --repetition-penalty 1",
    "stop": "use no --stop",
    "seed": "--engine-arg 'extra_body={\"seed\": null}' leaves it out, and no sample can be made again then",
    "max_tokens": (
        '--engine-arg \'extra_body={"max_tokens": null, "max_completion_tokens": N}\', N that of --max-tokens, says'
        " it otherwise"
    ),
    "stream": "use --engine-arg stream=false",
    "stream_options": "--engine-arg 'extra_body={\"stream_options\": null}' leaves it out",
    "chat_template_kwargs": "use neither --thinking nor --no-thinking",
}
_DEFAULTS: Mapping[str, Any] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "stop": (),
}
"""What a server does without the field."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What every request of a stream has in common."""

    address: Address
    model: str
    server: Server
    sampling: Sampling
    extras: Extras

    def check(self) -> None:
        """Raises UsageError where no request can be answered, or would be answered otherwise than the run says."""
        context = self.server.context
        if context is not None and self.sampling.max_tokens > context:
            raise UsageError(
                f"max_tokens is {self.sampling.max_tokens}, and {self.address.shown} serves {self.model!r} with"
                f" {context} tokens for prompt and completion together; lower --max-tokens, or serve it with more"
            )
        for name, default in _DEFAULTS.items():
            if name in self.extras.extra_body and getattr(self.sampling, name) != default:
                raise UsageError(
                    f"extra_body leaves {name} out, and the run asks for {getattr(self.sampling, name)!r};"
                    f" {_REMEDY[name]}, or take it out of extra_body"
                )

    def fields(self) -> Iterator[str]:
        """The names of what is sent besides the messages."""
        yield from ("temperature", "top_p", "max_tokens", "seed", "stop", "top_k", "min_p", "repetition_penalty")
        yield from ("stream", "stream_options", "chat_template_kwargs")
        yield from self.extras.extra_body

    def remedy(self, name: str) -> str:
        """What a user can do about a field that the server does not take."""
        own = name in self.extras.extra_body and self.extras.extra_body[name] is not None
        if own and (name != "chat_template_kwargs" or self.extras.thinking is None):
            return "take it out of extra_body"
        if name in ("top_k", "min_p", "repetition_penalty") and getattr(self.sampling, name) == _DEFAULTS[name]:
            return f"--engine-arg 'extra_body={{\"{name}\": null}}' leaves it out"
        return _REMEDY.get(name, "take it out of extra_body")


def verdict(status: int, data: Any, text: str, wait: float | None, asked: Asked, answered: bool) -> Exception:
    """The exception for an error of the server.

    Args:
        status: of HTTP, or the code inside an answer that bears an error.
        data: the answer's JSON, None where it is none.
        text: what it says, on one line.
        wait: the seconds that it asks us to wait.
        asked: what was asked.
        answered: some request of this stream has been answered, so address, model and key are good.
    """
    error = data.get("error", data) if isinstance(data, Mapping) else {}
    code = error.get("code") or error.get("type") if isinstance(error, Mapping) else None
    if status in (401, 403):
        return asked.address.denied(status, text)
    if status == 402 or (status == 429 and code in _NO_QUOTA):
        return EngineDown(f"{asked.address.shown} wants to be paid first; it says: {text}; then rerun the same command")
    if status == 429:
        return Fault("rate limit", text, wait)
    if status >= 500 or status in _PASSING:
        return Fault(f"status {status}", text, wait)
    if status in _ITS_OWN:
        name = _refused_field(error, text, asked)
        if name is None:
            return Refused(text or f"status {status}")
        return UsageError(f"{asked.address.shown} does not take {name} ({text}); {asked.remedy(name)}")
    if answered:
        return Fault(f"status {status}", text, wait)
    if status == 404:
        return _no_model(asked, text)
    return UsageError(
        f"{asked.address.at('/chat/completions').path} of {asked.address.shown} answers {status}"
        f"{asked.address.said(text)}; is --base-url right?"
    )


def _no_model(asked: Asked, text: str) -> UsageError:
    offers = asked.server.offers
    hint = nearest(asked.model, offers)
    return UsageError(
        f"{asked.address.shown} has no model {asked.model!r}{hint} (it lists {listed(offers)})"
        f"{asked.address.said(text)}; name another one with --model"
    )


def _refused_field(error: Any, text: str, asked: Asked) -> str | None:
    """The name of a field that the server does not have or take, None where it speaks of something else.

    Servers name the field in `param` (OpenAI, vLLM), in `detail[].loc` (FastAPI's own errors) or in their text alone.
    """
    fields = set(asked.fields())
    named = [error.get("param")] if isinstance(error, Mapping) else []
    rows = error.get("detail") if isinstance(error, Mapping) else None
    for row in rows if isinstance(rows, list) else ():
        where = row.get("loc") if isinstance(row, Mapping) else None
        named += where if isinstance(where, list) else []
    not_had = _NOT_HAD.search(text)
    for name in named:
        # vLLM names max_tokens where the prompt has left no room for them: one request's fault.
        if isinstance(name, str) and name in fields and (name != "max_tokens" or not_had):
            return name
    if not not_had:
        return None
    words = [name for name in fields if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]
    return max(words, key=len, default=None)
