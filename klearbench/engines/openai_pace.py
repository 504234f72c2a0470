"""How fast a server is asked: one gate for all calls, backoff, and the breaker that finds out that a server is down.

A rate limit (429) holds everybody back for as long as the server asks, and halves how many calls run at once; each
success gives a little of that back. A row of failures without a success between shuts the gate while one call asks the
server whether it lives. Everything here runs in one event loop, so nothing is locked.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from klearbench.engines.base import LOG
from klearbench.errors import EngineDown


@dataclass(frozen=True, slots=True)
class Patience:
    """Bounds, in seconds where they are times.

    Attributes:
        timeout_s: one try of one request, all in all.
        retries: tries after the first.
        connect_s: until a connection stands.
        silence_s: between two pieces of a stream, once it has begun.
        backoff_s: the first retry waits up to this long, each further one up to twice as long.
        backoff_cap_s: and no longer than this.
        down_s: a server that doesn't answer for so long is down.
        wait_s: a server that asks for a longer wait than this is as good as down.
        limited_s: so is one that for so long has only said that we are too fast.
    """

    timeout_s: float = 3600.0
    retries: int = 6
    connect_s: float = 10.0
    silence_s: float = 300.0
    backoff_s: float = 0.5
    backoff_cap_s: float = 30.0
    down_s: float = 60.0
    wait_s: float = 600.0
    limited_s: float = 1200.0

    def backoff(self, failures: int) -> float:
        """Seconds before the next try: full jitter (any time up to the bound), so that no two workers march in step."""
        return random.uniform(0, min(self.backoff_cap_s, self.backoff_s * 2.0 ** min(failures - 1, 30)))


class Gate:
    """Lets calls through, at most so many at once, and none before a given time. Use it as `async with`."""

    def __init__(self, most: int, patience: Patience) -> None:
        self._most, self._patience = most, patience
        self._limit = float(most)
        self._inside = self._rounds = 0
        self._closed_until = 0.0
        self._shut = False
        self._changed = asyncio.Condition()
        self._last_good = time.monotonic()

    async def __aenter__(self) -> None:
        while True:
            wait = self._closed_until - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait * random.uniform(1.0, 1.1))
                continue
            async with self._changed:
                if not self._shut and self._inside < max(1, int(self._limit)):
                    self._inside += 1
                    return
                await self._changed.wait()

    async def __aexit__(self, *_: object) -> None:
        self._inside -= 1
        await self._wake()

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def shut(self, shut: bool) -> None:
        """Keep everybody out, or let them in again."""
        self._shut = shut
        await self._wake()

    def worked(self) -> None:
        """A call succeeded."""
        self._limit = min(self._most, self._limit + 1 / self._limit)
        self._rounds = 0
        self._last_good = time.monotonic()

    def hold(self, seconds: float) -> None:
        """Nobody goes in for so long."""
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)

    def limited(self, wait: float | None, why: str) -> None:
        """The server said that we are too fast. `wait` is what it asked for, None leaves it to us.

        Raises:
            EngineDown: it asks for longer than we wait, or has let nothing through for too long.
        """
        now = time.monotonic()
        if wait is not None and wait > self._patience.wait_s:
            raise EngineDown(f"the server asks for a pause of {wait:.0f} s ({why}); rerun the same command after it")
        if now - self._last_good > self._patience.limited_s:
            raise EngineDown(
                f"rate limit: nothing was let through for {now - self._last_good:.0f} s ({why}); rerun the same command"
                " later, or with a lower --concurrency"
            )
        first = now >= self._closed_until
        self._rounds += first
        wait = self._patience.backoff(self._rounds) if wait is None else wait
        self.hold(wait)
        if first:  # the others' calls were on their way already
            self._limit = max(1.0, self._limit / 2)
            level = logging.WARNING if self._rounds == 1 else logging.INFO
            LOG.log(
                level,
                "rate limit (%s): all calls wait %.1f s, then %d at a time", why, wait, int(self._limit),
            )  # fmt: skip


class Breaker:
    """Counts failures in a row over all calls, and asks for the server's health before any more are made."""

    ROW = 3
    LOST = 8

    def __init__(self, gate: Gate, patience: Patience, lives: Callable[[], Awaitable[bool]], where: str) -> None:
        """Args: the gate to shut; bounds; a question to the server that never raises; its address for messages."""
        self._gate, self._patience, self._lives, self._where = gate, patience, lives, where
        self._row = self._lost = 0
        self._asking = asyncio.Lock()

    def worked(self) -> None:
        """A call succeeded."""
        self._row = self._lost = 0

    def lost(self, detail: str) -> None:
        """A request was given up. Raises EngineDown when that is all that has happened for a while."""
        self._lost += 1
        if self._lost >= self.LOST:
            raise EngineDown(
                f"{self._where} answers, but {self._lost} requests in a row failed for good ({detail}); look into the"
                " server's log, then rerun the same command: what was finished is kept"
            )

    async def failed(self, detail: str, open_calls: int) -> None:
        """Count a failure; when there are as many in a row as calls open, hold everything until the server answers.

        Raises:
            EngineDown: it does not within the time for that.
        """
        self._row += 1
        async with self._asking:
            if self._row < max(self.ROW, open_calls):
                return
            await self._gate.shut(True)
            try:
                await self._until_it_lives(detail)
            finally:
                self._row = 0
                await self._gate.shut(False)

    async def _until_it_lives(self, detail: str) -> None:
        LOG.warning("calls fail in a row (%s): asking %s whether it lives", detail, self._where)
        end = time.monotonic() + self._patience.down_s
        tries = 0
        while not await self._lives():
            tries += 1
            left = end - time.monotonic()
            if left <= 0:
                raise EngineDown(
                    f"{self._where} is down ({detail}; no answer for {self._patience.down_s:g} s); start it again, then"
                    " rerun the same command: what was finished is kept"
                )
            await asyncio.sleep(min(left, 5.0, self._patience.backoff_s * 2.0 ** min(tries, 10)))
        LOG.warning("%s answers; going on", self._where)


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that an answer asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def used_up(headers: Mapping[str, str]) -> float | None:
    """Seconds until a rate limit is fresh again (`x-ratelimit-reset-*`), when an answer says that it is used up."""
    waits = [
        _duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}", "").strip() == "0"
    ]
    known = [wait for wait in waits if wait is not None]
    return max(known) if known else None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip()) else None


def _duration(text: str) -> float | None:
    """Seconds of "6m0s", "20ms", "1.5s" or a plain number of seconds."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[smhd])", text.strip())
    if parts and "".join(number + unit for number, unit in parts) == text.strip():
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    return _number(text)
