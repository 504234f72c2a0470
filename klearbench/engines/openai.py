"""Any server with OpenAI's chat completions (vLLM, SGLang, llama.cpp, a paid API): bounded in calls, tries and time.

Every request carries its sample's own seed, in each try; what a server makes of a seed is the server's promise, and is
none with most of them once batches differ. Top-k, min-p and the repetition penalty are sent where they are on; to a
server that is known to have them (vLLM, SGLang, llama.cpp) also where they are off, because it would take them from
the model's generation_config.json or from its own defaults otherwise.

A completion is what the server's text says. A parser that split the reasoning off is undone (see `openai_wire`), as far
as it can be: vLLM's parsers drop a second tag, and a space of a streamed answer. Serve without one for the whole text.
Special tokens are left out by most servers, while the `hf` engine shows them; vLLM shows them with
`extra_body={"skip_special_tokens": false}`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Coroutine, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from queue import SimpleQueue
from typing import Any, Self, TypeVar

from klearbench import __version__
from klearbench.engines.base import LOG, Generation, Request, Sampling, stream_in_order
from klearbench.engines.openai_calls import Calls
from klearbench.engines.openai_pace import Patience
from klearbench.engines.openai_refusals import Asked
from klearbench.engines.openai_server import Address, Server, ask_server, read_address
from klearbench.engines.openai_wire import Extras, check_extra_body
from klearbench.errors import ConfigError

_PATIENCE = Patience()
T = TypeVar("T")

logging.getLogger("httpx").setLevel(logging.WARNING)  # it tells every call, with the whole URL
_END_S = 5.0


def load_engine(
    model: str,
    base_url: str,
    api_key_env: str = "OPENAI_API_KEY",
    concurrency: int = 32,
    timeout_s: float = _PATIENCE.timeout_s,
    retries: int = _PATIENCE.retries,
    stream: bool = False,
    thinking: bool | None = None,
    extra_body: Mapping[str, Any] | str | None = None,
) -> OpenAIEngine:
    """An engine of a server, which is asked at once what it serves.

    Args:
        model: the name that the server knows the model by.
        base_url: the address of its API, as http://localhost:8000/v1.
        api_key_env: the environment variable that holds the key; unset for servers that want none.
        concurrency: calls at a time.
        timeout_s: seconds that one try of a request may take in all.
        retries: tries after the first one, for what may pass; a rate limit costs none.
        stream: ask for completions piece by piece. The samples are the same; a silent server is noticed sooner.
        thinking: the switch of a chat template (`enable_thinking`); None leaves its default. A server says nothing
            where its template has none.
        extra_body: more fields for every request, a mapping or JSON text; null takes a field away.

    Raises:
        UsageError: no such API at that address, or the key is not accepted.
        ConfigError: an option of a value that is not allowed.
        EngineDown: nothing answers there.
    """
    _check_number("concurrency", concurrency, 1)
    _check_number("retries", retries, 0)
    _check_number("timeout_s", timeout_s, 0.001)
    for name, value, allowed in (("stream", stream, (True, False)), ("thinking", thinking, (True, False, None))):
        if not any(value is choice for choice in allowed):
            raise ConfigError(f"{name} is {value!r} (allowed: {', '.join(str(a).lower() for a in allowed)})")
    extras = Extras(thinking, check_extra_body(extra_body, thinking), stream)
    patience = Patience(timeout_s, retries, down_s=min(_PATIENCE.down_s, timeout_s))
    return OpenAIEngine(read_address(base_url, api_key_env), model, extras, patience, concurrency)


def _check_number(name: str, value: Any, least: float) -> None:
    """Raises ConfigError unless it is a finite number from `least`, a whole one where `least` is."""
    kinds = int if isinstance(least, int) else (int, float)
    if not isinstance(value, kinds) or isinstance(value, bool) or not least <= value < math.inf:
        what = "a whole number" if kinds is int else "a number"
        raise ConfigError(f"{name} is {value!r} ({what} from {least:g} is expected)")


class OpenAIEngine:
    """Chat completions of one model of one server, as a stream in the order in which they are finished."""

    def __init__(self, address: Address, model: str, extras: Extras, patience: Patience, concurrency: int) -> None:
        """Raises as `load_engine`, what comes of asking the server."""
        self.batch_size = concurrency
        self._address, self._model, self._patience = address, model, patience
        self._server: Server = ask_server(address, model)
        self._extras = Extras(extras.thinking, extras.extra_body, extras.stream, self._server.say_off)

    def identity(self) -> Mapping[str, Any]:
        return {
            "name": "openai",
            "version": __version__,
            "model": self._model,
            "base_url": self._address.shown,
            "server": dict(self._server.model),
            "server_version": self._server.version,
            "thinking": self._extras.thinking,
            "extra_body": dict(self._extras.extra_body),
            "seeds": "not sent" if "seed" in self._extras.extra_body else "sent; the server promises what they do",
        }

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """One generation a request, in order. Raises as `stream`."""
        return stream_in_order(self, requests, sampling)

    def stream(
        self, requests: Iterable[Request], sampling: Sampling
    ) -> Generator[tuple[Request, Generation], None, None]:
        """Every request with its generation, in the order in which they are finished; see StreamingEngine.

        Raises:
            UsageError: the server refuses what all requests ask: the model, the key, a field, the context's length.
            EngineDown: it is down, or lets nothing through any more.
        """
        asked = Asked(self._address, self._model, self._server, sampling, self._extras)
        asked.check()
        calls = Calls(asked, self._patience, self.batch_size)
        pending = iter(requests)
        running: dict[Future[Generation], Request] = {}
        done: SimpleQueue[Future[Generation]] = SimpleQueue()
        failure: BaseException | None = None
        try:
            with _Background(calls) as background:
                while True:
                    for request in islice(pending, 0 if failure else self.batch_size - len(running)):
                        future = background.start(calls.make(request))
                        running[future] = request
                        future.add_done_callback(done.put)
                    if not running or (failure and done.empty()):
                        break
                    future = done.get()
                    request, error = running.pop(future), future.exception()
                    failure = failure or error
                    if error is None:
                        yield request, future.result()
        finally:
            LOG.info("%s: %s", self._address.shown, calls.totals)
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Nothing is held between streams."""


class _Background:
    """An event loop in a thread of its own, for as long as a stream lasts. Its end gives up every call."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._ended = asyncio.Event()
        self._running: set[asyncio.Task[Any]] = set()
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=self._run, name="openai", daemon=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except OSError as error:  # too many open files: no loop can be made
            self._loop.set_exception(error)

    async def _main(self) -> None:
        async with self._calls.client:
            self._loop.set_result(asyncio.get_running_loop())
            await self._ended.wait()
            # Calls alone: a call gives up the tasks that it started, which leaves no coroutine behind that never ran.
            calls = set(self._running)
            for task in calls:
                task.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine there."""
        return asyncio.run_coroutine_threadsafe(self._noted(coroutine), self._loop.result())

    async def _noted(self, coroutine: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            return await coroutine
        finally:
            self._running.discard(task)

    def __enter__(self) -> Self:
        self._thread.start()
        self._loop.result()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.result().call_soon_threadsafe(self._ended.set)
        self._thread.join(_END_S)
