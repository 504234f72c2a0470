"""A line of progress now and then: how much is done, how fast, how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY_S = 5.0


class Progress:
    """Counts towards a total and says so at most every five seconds, and once at the end."""

    def __init__(self, what: str, total: int, unit: str, say: Callable[[str], None]) -> None:
        self.what, self.total, self.unit, self._say = what, total, unit, say
        self._start = self._said = time.monotonic()
        self._done = 0

    def add(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if now - self._said < _EVERY_S or self._done >= self.total:
            return
        self._said = now
        rate = self._done / (now - self._start)
        left = (self.total - self._done) / rate
        self._say(f"{self.what}: {self._done:,}/{self.total:,} {self.unit}, {rate:,.0f}/s, about {left:,.0f} s left")

    def done(self) -> None:
        if self.total:
            seconds = time.monotonic() - self._start
            self._say(f"{self.what}: {self.total:,} {self.unit} in {seconds:.1f} s")
