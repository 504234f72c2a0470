"""The requests of one call on their way through a pool's workers: batches out, replies in, hangs and deaths between."""

from __future__ import annotations

import json
import queue
import select
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from klearbench.faults import fault
from klearbench.judging.process import Worker, WorkerDied

_BATCH = 64
_BATCH_CHARS = 8_000
"""A batch fits a pipe, whatever JSON makes of its characters, unless one request alone does not."""
_BATCH_S = 0.05


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one request.

    `value` is the worker's answer, None when there is none; then `error` is "timeout" (the server was killed) or
    "died" (the worker ended by itself, twice), and `detail` says more. Times in seconds.
    """

    value: Mapping[str, Any] | None
    error: str
    detail: str
    cpu_s: float
    wall_s: float


class Workers(Protocol):
    """The pool, as far as a call needs it."""

    size: int
    limit_s: float
    closed: bool
    cannot_start: str

    @property
    def contested(self) -> bool: ...

    def take(self, wait: bool) -> Worker: ...

    def give_back(self, worker: Worker | None) -> None: ...

    def lose(self, worker: Worker) -> None: ...


@dataclass(slots=True)
class _Lot:
    """A worker at work: the rows it was sent that have no reply yet, and when the first of them began."""

    worker: Worker
    rows: deque[int] = field(default_factory=deque)
    since: float = 0.0


class Requests:
    """The requests of one call on their way through the workers, by one thread that waits for all of them.

    Batches shrink towards the end, and where rows are slow, so that the workers end together. After a hang the rest of
    the batch goes back to the front: it waits for no further hang.
    """

    def __init__(self, pool: Workers, requests: Sequence[Mapping[str, Any]]) -> None:
        self._pool, self._requests = pool, requests
        self._todo = deque(range(len(requests)))
        self._found: list[Reply | None] = [None] * len(requests)
        self._left = len(requests)
        self._deaths: Counter[int] = Counter()
        self._lots: dict[int, _Lot] = {}
        self._poll = select.poll()  # select() can't watch descriptors beyond 1023
        self._row_s = 0.0

    def replies(self) -> list[Reply]:
        try:
            while self._left:
                self._hire()
                for lot in list(self._lots.values()):
                    if self._todo and not lot.rows and lot.worker.pid:
                        self._feed(lot)
                self._wait()
            for lot in list(self._lots.values()):
                self._release(lot)
        except BaseException:
            for lot in self._lots.values():
                self._pool.lose(lot.worker)
            raise
        return [reply for reply in self._found if reply is not None]

    def _hire(self) -> None:
        """Take what workers there are for what is to do; wait for one only when there is none."""
        while self._todo and len(self._lots) < min(self._pool.size, self._left):
            try:
                worker = self._pool.take(wait=not self._lots)
            except queue.Empty:
                return
            except WorkerDied as error:
                if not self._lots:
                    self._give_up(str(error))
                return
            self._lots[worker.fileno()] = _Lot(worker)
            self._poll.register(worker.fileno(), select.POLLIN | select.POLLHUP)

    def _feed(self, lot: _Lot) -> None:
        """Send the next batch to a worker that has none."""
        fault("judge.worker")
        size = min(_BATCH, len(self._todo) // (2 * self._pool.size), int(_BATCH_S / max(self._row_s, 1e-6)))
        lines: list[str] = []
        chars = 0
        while self._todo and (not lines or (len(lines) < size and chars < _BATCH_CHARS)):
            row = self._todo.popleft()
            request = self._requests[row]
            lines.append(json.dumps(request))
            lot.rows.append(row)
            chars += sum(map(len, request.values()))
        lot.since = time.perf_counter()
        try:
            lot.worker.send(lines, self._pool.limit_s)
        except WorkerDied as error:
            self._died(lot, str(error))

    def _wait(self) -> None:
        """Wait until a worker has said something, and hear it."""
        waited_for = [lot for lot in self._lots.values() if lot.rows or not lot.worker.pid]
        if not waited_for:
            return
        left = min(lot.worker.deadline for lot in waited_for) - time.monotonic()
        for fd, _ in self._poll.poll(max(0.0, left) * 1000):
            self._hear(self._lots[fd])
        now = time.monotonic()
        for lot in waited_for:
            if lot.worker.deadline <= now and lot.worker.fileno() in self._lots:
                self._late(lot)

    def _hear(self, lot: _Lot) -> None:
        try:
            lines = lot.worker.lines()
        except WorkerDied as error:
            self._died(lot, str(error))
            return
        for line in lines:
            if "pid" not in line:
                wall = self._since(lot)
                self._row_s += 0.1 * (wall - self._row_s)
                self._settle(lot, Reply(line, "", "", float(line.get("cpu_s", 0.0)), wall))
            elif line["timeout"]:
                self._settle(lot, Reply(None, "timeout", "out of CPU time", self._pool.limit_s, self._since(lot)))
                self._put_back(lot)
        if not lot.rows and self._pool.contested:
            self._release(lot)

    def _since(self, lot: _Lot) -> float:
        """Seconds of wall time that the row under way took."""
        now = time.perf_counter()
        taken, lot.since = now - lot.since, now
        return taken

    def _settle(self, lot: _Lot, reply: Reply) -> None:
        self._found[lot.rows.popleft()] = reply
        self._left -= 1

    def _put_back(self, lot: _Lot) -> None:
        self._todo.extendleft(reversed(lot.rows))
        lot.rows.clear()

    def _late(self, lot: _Lot) -> None:
        """A worker said nothing for too long: the row under way is lost."""
        if lot.rows:
            wall = self._since(lot)
            self._settle(lot, Reply(None, "timeout", f"no reply within {wall:.0f} s of wall time", 0.0, wall))
            self._put_back(lot)
            self._drop(lot)
        else:
            self._died(lot, "it was not ready in time")

    def _died(self, lot: _Lot, detail: str) -> None:
        """A worker ended by itself: the row under way gets one more chance."""
        if not lot.worker.pid and not self._pool.closed:
            self._pool.cannot_start = f"can't start: {detail}"
        if lot.rows:
            self._deaths[lot.rows[0]] += 1
            if self._deaths[lot.rows[0]] > 1:
                self._settle(lot, _died(detail, self._since(lot)))
        self._put_back(lot)
        self._drop(lot)

    def _give_up(self, detail: str) -> None:
        """No worker is left, and none can be started."""
        for row in self._todo:
            self._found[row] = _died(detail, 0.0)
        self._todo.clear()
        self._left = 0

    def _forget(self, lot: _Lot) -> None:
        fd = lot.worker.fileno()
        self._poll.unregister(fd)
        del self._lots[fd]

    def _drop(self, lot: _Lot) -> None:
        self._forget(lot)
        self._pool.lose(lot.worker)

    def _release(self, lot: _Lot) -> None:
        self._forget(lot)
        self._pool.give_back(lot.worker)


def _died(detail: str, wall_s: float) -> Reply:
    return Reply(None, "died", f"a judging worker died twice ({detail})", 0.0, wall_s)
