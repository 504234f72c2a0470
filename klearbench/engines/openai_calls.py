"""One request, seen through: tried, waited for, tried again with the same seed, and given up in the end."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.request import getproxies

import httpx

from klearbench.engines.base import LOG, Generation, Request
from klearbench.engines.openai_pace import Breaker, Gate, Patience, asked_wait, used_up
from klearbench.engines.openai_refusals import Asked, verdict
from klearbench.engines.openai_server import client_options
from klearbench.engines.openai_wire import (
    ErrorBody,
    Events,
    Fault,
    Refused,
    Reply,
    body,
    error_text,
    one_line,
    parse,
    take_event,
    whole_reply,
)
from klearbench.errors import EngineDown, UsageError
from klearbench.types import FinishReason

FINISHED = {
    "stop": FinishReason.stop,
    "eos": FinishReason.stop,
    "eos_token": FinishReason.stop,
    "end_turn": FinishReason.stop,
    "stop_sequence": FinishReason.stop,
    "length": FinishReason.length,
    "max_tokens": FinishReason.length,
}
"""Any other reason (content_filter, tool_calls ...) is no end that the model chose: the sample is an engine error, and
no wrong answer. `abort` and `error` are the server's own faults, and tried again."""
_AGAIN = ("abort", "error")
_LARGEST = 256 << 20
"""Bytes of an answer that are read, at most."""
_TOO_LONG = "timeout"
_TIMEOUTS = 2
"""Retries of a request that took all its time: most likely it will again, and each costs the server as much."""
_LINGER_S = 1.0
"""How long a stream may take to close after its last event."""
_REFUSALS = 8
"""So many requests refused in a row before any was answered: it isn't them, it is what all of them ask."""
_USED_UP_S = 60.0
_KEEP_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
        if hasattr(socket, name)
    ),
]
"""A peer that vanished is noticed within two minutes, even where nothing is due for an hour."""


@dataclass(slots=True)
class Totals:
    """What a stream cost, for the log."""

    begun: float = field(default_factory=time.monotonic)
    requests: int = 0
    tries: int = 0
    failed: int = 0
    estimated: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        causes = ", ".join(f"{n} {cause}" for cause, n in self.causes.most_common()) or "none"
        estimates = f" (of {self.estimated} answers estimated)" if self.estimated else ""
        return (
            f"{self.requests} requests in {self.tries} tries, {self.failed} given up; tries that failed: {causes};"
            f" tokens: {self.tokens['prompt']} prompt, {self.tokens['completion']} completion{estimates};"
            f" {time.monotonic() - self.begun:.1f} s"
        )


class Calls:
    """All calls of one stream. Made anywhere; used within one event loop, and closed there."""

    def __init__(self, asked: Asked, patience: Patience, most: int) -> None:
        """Args: what every request asks; bounds; how many calls run at once."""
        self.totals = Totals()
        self._asked, self._patience = asked, patience
        self._gate = Gate(most, patience)
        self._breaker = Breaker(self._gate, patience, self._lives, asked.address.shown)
        self._open = self._refused = self._answered = 0
        timeout = httpx.Timeout(patience.timeout_s, connect=min(patience.connect_s, patience.timeout_s), pool=None)
        # Idle connections are dropped before servers drop theirs (5 s): a call must not meet a closing one.
        limits = httpx.Limits(max_connections=most + 1, max_keepalive_connections=most + 1, keepalive_expiry=2.0)
        options = client_options(asked.address)
        # A transport of our own would ignore the environment's proxies.
        transport = None
        if not getproxies():
            transport = httpx.AsyncHTTPTransport(options["verify"], limits=limits, socket_options=_KEEP_ALIVE)
        self.client = httpx.AsyncClient(timeout=timeout, limits=limits, transport=transport, **options)

    async def make(self, request: Request) -> Generation:
        """The generation of a request, of finish_reason `error` when it has failed for good.

        Raises:
            EngineDown: nothing more can be made.
            UsageError: no request can be answered as it is asked.
        """
        self._open += 1
        try:
            return await self._make(request)
        finally:
            self._open -= 1

    async def _make(self, request: Request) -> Generation:
        payload = body(self._asked.model, request, self._asked.sampling, self._asked.extras)
        failures = 0
        self.totals.requests += 1
        while True:
            try:
                async with self._gate:
                    reply = await self._try(payload)
                return self._finish(request, reply)
            except Refused as error:
                return self._give_up(self._count_refusal(str(error)))
            except Fault as fault:
                detail = self._asked.address.clean(one_line(str(fault)))
                self.totals.causes[fault.cause] += 1
                if fault.cause == "rate limit":
                    self._gate.limited(fault.wait, detail)
                    self._tell(request, fault.cause, f"try again after the pause: {detail}")
                    continue
                failures += 1
                await self._breaker.failed(detail, self._open)
                most = min(self._patience.retries, _TIMEOUTS if fault.cause == _TOO_LONG else self._patience.retries)
                if failures > most:
                    self._breaker.lost(detail)
                    return self._give_up(f"{failures} {'try' if failures == 1 else 'tries'} failed, the last: {detail}")
                wait = self._wait(fault, failures)
                self._tell(request, fault.cause, f"retry {failures} of {most} in {wait:.1f} s: {detail}")
                await asyncio.sleep(wait)

    def _wait(self, fault: Fault, failures: int) -> float:
        wait = self._patience.backoff(failures)
        if fault.wait is None:
            return wait
        if fault.wait > self._patience.wait_s:
            raise EngineDown(
                f"the server asks for a pause of {fault.wait:.0f} s ({fault}); rerun the same command later"
            )
        self._gate.hold(fault.wait)
        return max(wait, fault.wait)

    def _tell(self, request: Request, cause: str, text: str) -> None:
        """Every retry goes to the log; the first one of each cause is worth a look."""
        level = logging.WARNING if self.totals.causes[cause] == 1 and cause != "rate limit" else logging.INFO
        LOG.log(level, "%s sample %d: %s", *request.place, text)

    def _give_up(self, detail: str) -> Generation:
        self.totals.failed += 1
        return Generation("", FinishReason.error, 0, 0, detail=detail)

    def _count_refusal(self, detail: str) -> str:
        detail = self._asked.address.clean(detail)
        self._refused += 1
        if not self._answered and self._refused >= _REFUSALS:
            raise UsageError(f"{self._asked.address.shown} refuses every request; it says: {detail}")
        return f"the server refuses this request: {detail}"

    async def _try(self, payload: bytes) -> Reply:
        """One try, within its time."""
        self.totals.tries += 1
        try:
            async with asyncio.timeout(self._patience.timeout_s):
                return await self._post(payload)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Fault("no connection", str(error) or f"within {self._patience.connect_s:g} s") from None
        except (TimeoutError, httpx.TimeoutException):
            raise Fault(_TOO_LONG, f"no answer within {self._patience.timeout_s:g} s (timeout_s)") from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise Fault("broken connection", str(error) or type(error).__name__) from None

    async def _post(self, payload: bytes) -> Reply:
        url = self._asked.address.at("/chat/completions")
        async with self.client.stream("POST", url, content=payload) as answer:
            if answer.status_code != 200:
                raise self._bad(answer, await _read(answer))
            kind = answer.headers.get("content-type", "")
            streamed = self._asked.extras.stream and not kind.startswith("application/json")
            try:
                reply = await self._events(answer) if streamed else whole_reply(await _read(answer), kind)
            except ErrorBody as error:
                raise self._verdict(answer, error.status, error.data, str(error)) from None
            fresh_in = used_up(answer.headers)
            if fresh_in is not None:
                self._gate.hold(min(fresh_in, _USED_UP_S))
            return reply

    async def _events(self, answer: httpx.Response) -> Reply:
        reply, events, over = Reply(), Events(), False
        silence, clock = min(self._patience.silence_s, self._patience.timeout_s), asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as bound:  # a queue before the first piece is no silence
                async for chunk in _chunks(answer):
                    for data in events.feed(chunk):
                        over = over or not take_event(reply, data)
                    bound.reschedule(clock.time() + (_LINGER_S if over else silence))
        except (TimeoutError, httpx.HTTPError) as error:
            if not over and isinstance(error, TimeoutError):
                raise Fault("silent stream", f"nothing for {silence:g} s") from None
            if not over:
                raise
        for data in () if over else events.feed(b"\n"):
            take_event(reply, data)
        if reply.finish is None:
            kind = answer.headers.get("content-type", "no content type")
            raise Fault("cut stream", f"it ended after {reply.pieces} pieces ({kind})")
        return reply

    def _bad(self, answer: httpx.Response, said: bytes) -> Exception:
        """The exception for an answer of any status but 200."""
        try:
            data = parse(said)
        except Fault:
            return self._verdict(answer, answer.status_code, None, one_line(said.decode("utf-8", "replace")))
        return self._verdict(answer, answer.status_code, data, error_text(data))

    def _verdict(self, answer: httpx.Response, status: int, data: Any, text: str) -> Exception:
        said = self._asked.address.clean(text)
        return verdict(status, data, said, asked_wait(answer.headers), self._asked, bool(self._answered))

    async def _lives(self) -> bool:
        """Whether the server answers at all, in a few seconds."""
        try:
            answer = await self.client.get(self._asked.address.at("/models"), timeout=self._patience.connect_s)
        except httpx.HTTPError:
            return False
        return answer.status_code < 500

    def _finish(self, request: Request, reply: Reply) -> Generation:
        """A whole answer as a generation.

        Raises:
            Fault: the server gave up on it.
        """
        reason = FINISHED.get(reply.finish or "")
        if reply.finish is None or reply.finish in _AGAIN:
            raise Fault("server error", f"finish_reason is {reply.finish!r}")
        self._answered += 1
        self._gate.worked()
        self._breaker.worked()
        if reason is None:
            return self._give_up(f"the server ended the completion with finish_reason {one_line(reply.finish)!r}")
        prompt, completion = reply.usage or self._estimate(request, reply, reason)
        self.totals.tokens.update(prompt=prompt, completion=completion)
        return Generation(reply.text, reason, prompt, completion)

    def _estimate(self, request: Request, reply: Reply, reason: FinishReason) -> tuple[int, int]:
        """Tokens where the server tells none: a piece of a stream is one, and four bytes are one elsewhere."""
        self.totals.estimated += 1
        if self.totals.estimated == 1:
            LOG.warning("%s tells no usage: the counts of tokens are estimates", self._asked.address.shown)
        prompt = sum(_by_bytes(message["content"]) for message in request.prompt)
        if reason is FinishReason.length:
            return prompt, self._asked.sampling.max_tokens
        return prompt, reply.pieces if self._asked.extras.stream else _by_bytes(reply.text)


async def _chunks(answer: httpx.Response) -> AsyncIterator[bytes]:
    """The body as it comes. Raises Fault when it does not end."""
    async for chunk in answer.aiter_bytes():
        if answer.num_bytes_downloaded > _LARGEST:
            raise Fault("malformed answer", f"more than {_LARGEST >> 20} MiB")
        yield chunk


async def _read(answer: httpx.Response) -> bytes:
    return b"".join([chunk async for chunk in _chunks(answer)])


def _by_bytes(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)
