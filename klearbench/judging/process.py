"""A judging worker as its parent sees it: a process that takes batches of requests and streams the replies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_START_LIMIT_S = 120.0
_WALL_FACTOR = 15.0
"""A server that got no CPU (asleep, swapped out) is killed after this many times its CPU limit of wall time."""
_PACKAGE_ROOT = str(Path(__file__).parents[2])
_END_LIMIT_S = 5.0


class WorkerDied(Exception):
    """The worker ended by itself: our fault, never the answer's."""


class Worker:
    """One worker, started by exec, loading what `op` needs; its lines are read without waiting.

    Attributes:
        pid: the process that compares; another one after each hang, 0 until it is ready.
        deadline: when (monotonic clock, seconds) the next line must have come.

    Raises:
        WorkerDied: the system starts no process.
    """

    def __init__(self, memory_mb: int, op: str) -> None:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (_PACKAGE_ROOT, os.environ.get("PYTHONPATH"))))}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "klearbench.judging.worker", str(memory_mb), op],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True, env=env, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            raise WorkerDied(f"{error.strerror or error}") from None
        self.pid = 0
        self.deadline = time.monotonic() + _START_LIMIT_S
        self._limit_s = _START_LIMIT_S
        self._buffer = b""

    def fileno(self) -> int:
        """What to poll for lines."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def send(self, requests: Sequence[str], limit_s: float) -> None:
        """Send a batch of requests in JSON; `limit_s` is CPU seconds for each. Raises WorkerDied."""
        assert self._process.stdin is not None
        self._limit_s = max(10.0, _WALL_FACTOR * limit_s)
        self.deadline = time.monotonic() + self._limit_s
        left = memoryview(f'{{"limit_s": {limit_s}, "requests": [{", ".join(requests)}]}}\n'.encode())
        try:
            while left:
                left = left[self._process.stdin.write(left) or 0 :]
        except BrokenPipeError:
            raise WorkerDied(self._status()) from None

    def lines(self) -> list[Mapping[str, Any]]:
        """What came since the last call; call it when `fileno` is readable. Raises WorkerDied."""
        chunk = os.read(self.fileno(), 65536)
        if not chunk:
            raise WorkerDied(self._status())
        *whole, self._buffer = (self._buffer + chunk).split(b"\n")
        if whole:
            self.deadline = time.monotonic() + self._limit_s
        found: list[Mapping[str, Any]] = [json.loads(line) for line in whole]
        for line in found:
            self.pid = line.get("pid", self.pid)
        return found

    def _status(self) -> str:
        self.end()
        return f"exit status {self._process.returncode}"

    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def end(self) -> None:
        """End the worker with its server now. May be called from any thread, and again."""
        self._process.terminate()  # it ends its server and itself
        try:
            self._process.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait()

    def kill(self) -> None:
        """End the worker and close its pipes; it must not be used any more."""
        self.end()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
