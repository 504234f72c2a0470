"""Warm worker processes that can be killed.

math-verify and sympy can hang in C code where no alarm and no thread reaches them, so each comparison runs in a
process of its own that is killed when its time is over. A hang costs one worker and one verdict.

Workers are started by exec (never by fork: the caller may hold torch threads), lazily, in a session of their own (a
Ctrl-C at the terminal doesn't reach them). They end when their stdin closes. The time limit is CPU time, kept by a
kernel timer in the worker: it holds in C code and after the parent's death, and a loaded machine changes no verdict.
"""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from klearbench.faults import fault

_START_LIMIT_S = 120.0
_WALL_FACTOR = 15.0
"""A worker that got no CPU (asleep, swapped out) is killed after this many times its CPU limit of wall time."""
_PACKAGE_ROOT = str(Path(__file__).parents[2])


class WorkerDied(Exception):
    """The worker ended by itself: our fault, never the answer's."""


class WorkerTimeout(Exception):
    """The worker was killed because a check ran past its time."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one request.

    `value` is the worker's answer, None when there is none; then `error` is "timeout" (the worker was killed) or
    "died" (it ended by itself, twice), and `detail` says more. Times in seconds.
    """

    value: Mapping[str, Any] | None
    error: str
    detail: str
    cpu_s: float
    wall_s: float


class Worker:
    """One process that answers one request at a time over pipes, one JSON line each way."""

    def __init__(self, memory_mb: int) -> None:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (_PACKAGE_ROOT, os.environ.get("PYTHONPATH"))))}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "klearbench.judging.worker", str(memory_mb)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True, env=env, bufsize=0,
        )  # fmt: skip
        self._buffer = b""
        try:
            self._read_line(_START_LIMIT_S)
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, request: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
        """The worker's reply. Raises WorkerTimeout or WorkerDied; the worker is then gone."""
        line = json.dumps({**request, "limit_s": limit_s}).encode() + b"\n"
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            raw = self._read_line(max(10.0, _WALL_FACTOR * limit_s))
        except BrokenPipeError:
            self.kill()
            raise WorkerDied(f"exit status {self._process.returncode}") from None
        except BaseException:
            self.kill()
            raise
        reply: dict[str, Any] = json.loads(raw)
        return reply

    def _read_line(self, limit_s: float) -> bytes:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        deadline = time.monotonic() + limit_s
        poll = select.poll()  # select() can't watch descriptors beyond 1023
        poll.register(fd, select.POLLIN | select.POLLHUP)
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                raise WorkerTimeout(f"no reply within {limit_s:g} s of wall time")
            chunk = os.read(fd, 65536)
            if not chunk:
                status = self._process.wait()
                if status == -signal.SIGPROF:
                    raise WorkerTimeout("out of CPU time")
                raise WorkerDied(f"exit status {status}")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def kill(self) -> None:
        """End the process now and reap it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Pool:
    """Up to `size` workers, started when first needed. Every method may be called from any thread."""

    def __init__(self, size: int = 1, *, time_limit_s: float = 2.0, memory_mb: int = 2048) -> None:
        if size < 1:
            raise ValueError(f"workers is {size} (at least 1)")
        self._limit_s = time_limit_s
        self._memory_mb = memory_mb
        self._size = size
        self._idle: queue.LifoQueue[Worker | None] = queue.LifoQueue()
        for _ in range(size):
            self._idle.put(None)
        self._closed = False
        self._cannot_start = ""
        self._lock = threading.Lock()

    def run(self, request: Mapping[str, Any]) -> Reply:
        """One check on an idle worker; waits for one when all are busy."""
        worker = self._idle.get()
        start = time.perf_counter()
        try:
            worker, reply = self._attempt(worker, request, start)
            return reply
        except BaseException:
            worker = None
            raise
        finally:
            self._give_back(worker)

    def _attempt(self, worker: Worker | None, request: Mapping[str, Any], start: float) -> tuple[Worker | None, Reply]:
        detail = ""
        for _ in range(2):
            try:
                fault("judge.worker")
                worker = worker or self._start()
                value = worker.ask(request, self._limit_s)
                return worker, Reply(value, "", "", float(value.get("cpu_s", 0.0)), time.perf_counter() - start)
            except WorkerTimeout as error:
                wall = time.perf_counter() - start
                return None, Reply(None, "timeout", str(error), min(wall, self._limit_s), wall)
            except WorkerDied as error:
                worker, detail = None, str(error)
        return None, Reply(None, "died", f"a judging worker died twice ({detail})", 0.0, time.perf_counter() - start)

    def _start(self) -> Worker:
        """A new worker; when one can't start, no further one is tried."""
        if self._cannot_start:
            raise WorkerDied(self._cannot_start)
        try:
            return Worker(self._memory_mb)
        except WorkerDied as error:
            self._cannot_start = f"can't start: {error}"
            raise WorkerDied(self._cannot_start) from None

    def _give_back(self, worker: Worker | None) -> None:
        with self._lock:
            if self._closed and worker is not None:
                worker.kill()
                worker = None
            self._idle.put(worker)

    def run_many(self, requests: Sequence[Mapping[str, Any]]) -> list[Reply]:
        """Replies in the order of the requests, `size` at a time."""
        if self._size == 1 or len(requests) < 2:
            return [self.run(request) for request in requests]
        with ThreadPoolExecutor(min(self._size, len(requests))) as threads:
            return list(threads.map(self.run, requests))

    def close(self) -> None:
        """End all workers. A check in flight ends with its worker."""
        with self._lock:
            self._closed = True
            kept = [self._idle.get_nowait() for _ in range(self._idle.qsize())]
            for worker in kept:
                if worker is not None:
                    worker.kill()
                self._idle.put(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
