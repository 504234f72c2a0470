"""Warm worker processes that can be killed.

math-verify and sympy can hang in C code where no alarm and no thread reaches them, so each comparison runs in a
process of its own that is killed when its time is over. A hang costs its own time and one verdict: the worker holds
all that is loaded, and forks its next server in milliseconds (see `worker`).

Workers are started by exec (never by fork: the caller may hold torch threads), lazily, in a session of their own (a
Ctrl-C at the terminal doesn't reach them). They end when their stdin closes. The time limit is CPU time, kept by a
kernel timer in the worker: it holds in C code and after the parent's death, and a loaded machine changes no verdict.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Self

from klearbench.judging.dispatch import Reply, Requests
from klearbench.judging.process import Worker, WorkerDied

_CLOSED = "the pool is closed"


class Pool:
    """Up to `size` workers, started when first needed. Every method may be called from any thread.

    Args:
        size: workers at most.
        time_limit_s: CPU seconds for one request.
        memory_mb: address space of a server.
        op: the operation that the workers load ahead.
    """

    def __init__(self, size: int = 1, *, time_limit_s: float = 2.0, memory_mb: int = 2048, op: str = "strict") -> None:
        if size < 1:
            raise ValueError(f"workers is {size} (at least 1)")
        self.size = size
        self.limit_s = time_limit_s
        self._memory_mb = memory_mb
        self._op = op
        self._idle: queue.LifoQueue[Worker | None] = queue.LifoQueue()
        for _ in range(size):
            self._idle.put(None)
        self._lent: set[Worker] = set()
        self._wanted: deque[queue.SimpleQueue[Worker | None]] = deque()
        self._lock = threading.Lock()
        self.closed = False
        self.cannot_start = ""

    def run(self, request: Mapping[str, Any]) -> Reply:
        """One check on an idle worker; waits for one when all are busy."""
        return self.run_many([request])[0]

    def run_many(self, requests: Sequence[Mapping[str, Any]]) -> list[Reply]:
        """Replies in the order of the requests, on all workers that no other caller has."""
        return Requests(self, requests).replies() if requests else []

    def take(self, wait: bool) -> Worker:
        """A worker, started now if need be; callers are served in turn.

        Raises:
            queue.Empty: all are busy, and `wait` is False.
            WorkerDied: none can be started, or the pool is closed.
        """
        with self._lock:
            worker, turn = None, None
            if not self._idle.empty():
                worker = self._idle.get_nowait()
            elif wait:
                turn = queue.SimpleQueue[Worker | None]()
                self._wanted.append(turn)
            else:
                raise queue.Empty
        if turn is not None:
            worker = turn.get()
        try:
            if worker is not None and worker.ended():
                worker.kill()
                worker = None
            worker = worker or self._start()
            with self._lock:
                self._lent.add(worker)
            if self.closed:
                raise WorkerDied(_CLOSED)
        except BaseException:
            self.give_back(worker)
            raise
        return worker

    def _start(self) -> Worker:
        """A new worker; when one can't start, no further one is tried."""
        if self.closed or self.cannot_start:
            raise WorkerDied(_CLOSED if self.closed else self.cannot_start)
        try:
            return Worker(self._memory_mb, self._op)
        except WorkerDied as error:
            self.cannot_start = f"can't start: {error}"
            raise WorkerDied(self.cannot_start) from None

    def give_back(self, worker: Worker | None) -> None:
        """Return a worker that was taken, or None in place of one that is gone."""
        with self._lock:
            if worker is not None:
                self._lent.discard(worker)
                if self.closed:
                    worker.kill()
                    worker = None
            if self._wanted:
                self._wanted.popleft().put(worker)
            else:
                self._idle.put(worker)

    def lose(self, worker: Worker) -> None:
        """End a worker that was taken, and leave its place to another."""
        with self._lock:
            self._lent.discard(worker)
        worker.kill()
        self.give_back(None)

    @property
    def contested(self) -> bool:
        """Whether another caller waits for a worker."""
        return bool(self._wanted)

    def close(self) -> None:
        """End all workers, also those at work: what they were asked is answered "died"."""
        with self._lock:
            self.closed = True
            for worker in [self._idle.get_nowait() for _ in range(self._idle.qsize())]:
                if worker is not None:
                    worker.kill()
                self._idle.put(None)
            for worker in self._lent:
                worker.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
