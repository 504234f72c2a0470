"""A server seen from outside: its address, the key for it, and what it says of itself before the first completion."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.request import getproxies

import httpx

from klearbench.engines.base import LOG
from klearbench.engines.openai_wire import error_text, one_line
from klearbench.errors import EngineDown, KlearError, UsageError

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_TRIES = 3
_PROBE_S = 10.0
_FACTS: Mapping[str, type] = {"id": str, "root": str, "owned_by": str, "max_model_len": int}
"""What is kept of the server's word on a model."""
KNOW_EXTRAS = ("vllm", "sglang", "llamacpp")
"""`owned_by` of servers that have top_k, min_p and repetition_penalty, and defaults of their own for them."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, and how it is addressed. `key` and the URL's user information appear in no text of ours."""

    url: httpx.URL
    key_name: str
    key: str = field(repr=False, default="")

    @property
    def shown(self) -> str:
        """The URL without user, password and query."""
        return str(self.url.copy_with(username=None, password=None, query=None, fragment=None))

    def at(self, path: str) -> httpx.URL:
        """The URL of a path below the base, which keeps its query."""
        return self.url.copy_with(path=self.url.path.rstrip("/") + path)

    @property
    def headers(self) -> dict[str, str]:
        own = {"Content-Type": "application/json"}
        return own | ({"Authorization": f"Bearer {self.key}"} if self.key else {})

    def clean(self, text: str) -> str:
        """A server's text, without what is secret of ours."""
        for secret in (self.key, self.url.password):
            text = text.replace(secret, "***") if secret else text
        return text

    def denied(self, status: int, text: str) -> UsageError:
        """The server doesn't know our key."""
        remedy = (
            f"the key in {self.key_name} is not accepted" if self.key else f"put the server's key into {self.key_name}"
        )
        return UsageError(f"{self.shown} answers {status}: {remedy} (another variable: api_key_env){self.said(text)}")

    def said(self, text: str) -> str:
        return f"; it says: {self.clean(text)}" if text else ""


def read_address(base_url: str, api_key_env: str) -> Address:
    """The address of a server, with the key that the environment variable `api_key_env` holds, if any.

    Raises:
        UsageError: no URL of a server, or a key that can't be sent.
    """
    example = "as http://localhost:8000/v1"
    try:
        url = httpx.URL(str(base_url).strip())
    except httpx.InvalidURL as error:
        raise UsageError(f"base_url is no URL ({error}); write it {example}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f"base_url is {str(base_url)!r}; write it with http:// or https://, {example}")
    path = url.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    key = os.environ.get(api_key_env, "").strip()
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"the key in {api_key_env} holds characters that no key has; copy it again")
    return Address(url.copy_with(path=path or "/", fragment=None), api_key_env, key)


def client_options(address: Address) -> dict[str, Any]:
    """What any client of httpx for that address is made with: proxies are not for this machine's own servers, and
    certificates are read (0.1 s) only where there can be any."""
    return {
        "headers": address.headers,
        "mounts": {f"all://{host}": None for host in _LOOPBACK},
        "verify": address.url.scheme == "https" or bool(getproxies()),
    }


@dataclass(frozen=True, slots=True)
class Server:
    """What a server says of itself: `model` of our model (empty: not listed), `offers` are all that it lists."""

    model: Mapping[str, Any]
    offers: tuple[str, ...]
    version: str | None

    @property
    def context(self) -> int | None:
        """Tokens of prompt and completion together, where the server tells."""
        length = self.model.get("max_model_len")
        return length if isinstance(length, int) and length > 0 else None

    @property
    def say_off(self) -> bool:
        return self.model.get("owned_by") in KNOW_EXTRAS


def ask_server(address: Address, model: str) -> Server:
    """Ask a server what it serves, before anything depends on it.

    Raises:
        UsageError: the address is not that of an OpenAI-compatible API, or the key is not accepted.
        EngineDown: nothing answers there.
    """
    with _client(address) as client:
        answer = _ask(client, address, "GET", address.at("/models"))
        if answer.status_code in (401, 403):
            raise address.denied(answer.status_code, _said(answer))
        offers = _offers(answer)
        if offers is None:
            _need_completions(client, address, answer)
            offers = []
        found = next((offer for offer in offers if offer["id"] == model), {})
        names = tuple(offer["id"] for offer in offers)
        if offers and not found:
            LOG.warning("%s does not list the model %r (it lists %s)", address.shown, model, listed(names))
        return Server(found, names, _version(client, address))


def _client(address: Address) -> httpx.Client:
    try:
        return httpx.Client(timeout=_PROBE_S, **client_options(address))
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise UsageError(
            f"a proxy that the environment names can't be used ({error}); set it right or unset it"
        ) from None


def listed(names: tuple[str, ...]) -> str:
    """Names of models for a message, not all of hundreds."""
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") if names else "none"


def _ask(client: httpx.Client, address: Address, method: str, url: httpx.URL, **options: Any) -> httpx.Response:
    """One answer; a server that stumbles is asked again. Raises EngineDown when there is none."""
    why = ""
    for attempt in range(_TRIES):
        time.sleep(0.3 * attempt)
        try:
            answer = client.request(method, url, **options)
        except (httpx.HTTPError, UnicodeError) as error:
            why = address.clean(one_line(str(error) or type(error).__name__))
            continue
        if answer.status_code < 500 and answer.status_code != 429:
            return answer
        why = f"status {answer.status_code} {address.clean(_said(answer))}".strip()
    raise EngineDown(f"no answer from {address.shown} ({why}); start the server, or give its address with --base-url")


def _offers(answer: httpx.Response) -> list[dict[str, Any]] | None:
    """The models of a list, or None where the answer is no list of models."""
    data = _json(answer)
    rows = data.get("data") if isinstance(data, dict) else None
    if answer.status_code != 200 or not isinstance(rows, list):
        return None
    named = [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
    return [{key: row[key] for key, kind in _FACTS.items() if type(row.get(key)) is kind} for row in named]


def _need_completions(client: httpx.Client, address: Address, models: httpx.Response) -> None:
    """A server without a list of models is one all the same if it knows the path of completions.

    Raises:
        UsageError: it doesn't. The message names the address that would do, when there is one near.
    """
    if models.is_redirect:
        target = one_line(models.headers.get("location", "another address")).removesuffix("/models")
        raise UsageError(f"{address.shown} redirects to {address.clean(target)}; give that address with --base-url")
    below = address.url.copy_with(path=address.url.path.rstrip("/") + "/v1")
    if _offers(_ask(client, address, "GET", address.url.copy_with(path=below.path + "/models"))) is not None:
        hint = str(below.copy_with(username=None, password=None, query=None))
        raise UsageError(f"{address.shown} is no OpenAI-compatible API; --base-url {hint} is one")
    refusal = _ask(client, address, "POST", address.at("/chat/completions"), content=b"{}")
    if refusal.status_code in (401, 403):
        raise address.denied(refusal.status_code, _said(refusal))
    if refusal.status_code not in (400, 422) or not isinstance(_json(refusal), dict):
        kind = models.headers.get("content-type", "no content type").partition(";")[0]
        raise UsageError(
            f"{address.shown} is no OpenAI-compatible API (/models answers {models.status_code}, {one_line(kind, 40)}):"
            " the address ends with /v1 for most servers (--base-url)"
        )


def _version(client: httpx.Client, address: Address) -> str | None:
    """What /version beside /v1 says (vLLM), None where there is no such thing."""
    path = address.url.path.rstrip("/")
    if not path.endswith("/v1"):
        return None
    try:
        answer = _ask(client, address, "GET", address.url.copy_with(path=path.removesuffix("/v1") + "/version"))
    except KlearError:
        return None
    data = _json(answer) if answer.status_code == 200 else None
    version = data.get("version") if isinstance(data, dict) else None
    return one_line(version, 100) if isinstance(version, str) else None


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def _said(answer: httpx.Response) -> str:
    data = _json(answer)
    return error_text(data) if data else ""
