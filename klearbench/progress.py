"""Progress of long work on standard error: a live bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

_PLAIN_EVERY_S = 5.0


class Progress:
    """Counts up to `total`. Use it as a context manager; `advance` may be called as often as one likes."""

    def __init__(self, label: str, total: int, done: int = 0, unit: str = "") -> None:
        self.label, self.total, self.done, self.unit = label, total, done, unit
        self.note = ""
        self._start, self._first = time.monotonic(), done
        self._said, self._told = self._start, -1
        self._live = sys.stderr.isatty()

    def __enter__(self) -> Self:
        if self._live:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(self.unit),
                TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=Console(stderr=True),
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task(self.label, total=self.total, completed=self.done, note="")
        return self

    def advance(self, count: int = 1, note: str = "") -> None:
        """Add `count` finished pieces; `note` is a short remark, such as a score, shown beside them."""
        self.done += count
        self.note = note or self.note
        if self._live:
            self._bar.update(self._task, completed=self.done, note=self.note)
        elif time.monotonic() - self._said > _PLAIN_EVERY_S:
            self._say()

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if self._live:
            self._bar.stop()
        elif kind is None and self.done != self._told:
            self._say()

    def _say(self) -> None:
        now = time.monotonic()
        rate = (self.done - self._first) / max(now - self._start, 1e-9)
        left = f", {(self.total - self.done) / rate:.0f} s left" if rate > 0 and self.done < self.total else ""
        note = f"  {self.note}" if self.note else ""
        print(f"{self.label}: {self.done}/{self.total} {self.unit}{left}{note}", file=sys.stderr, flush=True)
        self._said, self._told = now, self.done
