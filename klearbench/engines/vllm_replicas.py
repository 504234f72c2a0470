"""Replicas of one vLLM engine, each a process of its own, fed from one stream of jobs.

A replica that dies gives its unfinished jobs to the others; when none is left, the engine is down. Replicas are leaders
of process groups of their own: a Ctrl-C at the terminal reaches us alone, and whatever they started ends with them.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from klearbench.engines.base import LOG
from klearbench.engines.vllm_jobs import DROP, Job, Made
from klearbench.errors import EngineDown, UsageError

_CLOSING_S = 8.0
_ERROR = re.compile(r"\b\w+(?:Error|Exception): .+")


class Replica:
    """One process: its pipe, the jobs that it works on, and the last lines that it printed."""

    def __init__(self, index: int, plan: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        self.index = index
        self.jobs: dict[int, Job] = {}
        self.ready = False
        self.why = ""
        self.connection = Connection(ours.detach())
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "klearbench.engines.vllm_worker", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env=environment,
        )
        theirs.close()
        self._lines: deque[str] = deque(maxlen=200)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.send(dict(plan) | {"name": f"DP{index}"})

    @property
    def pid(self) -> int:
        """The process, which leads the group of all that it started."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Send; to a process that has died it goes nowhere (the end of its pipe is what tells)."""
        with suppress(OSError):
            self.connection.send(message)

    def end(self, grace_s: float = 0.0) -> None:
        """End it and all that it started: by closing the pipe and, after the grace, by SIGKILL."""
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(_CLOSING_S)

    def blame(self) -> str:
        """Why it has ended: a signal, the last error that it printed, or what it said itself."""
        if self._process.returncode < 0 and not self.why:
            return f"signal {-self._process.returncode}"
        found = [match[0] for line in self._lines if (match := _ERROR.search(line)) and "See root cause" not in line]
        return re.sub(r"\s+", " ", found[-1])[:400] if found else self.why or "it ended by itself"

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip():
                self._lines.append(line.rstrip())
                LOG.info("vllm replica %d: %s", self.index, line.rstrip())


class Pool:
    """The replicas, and the jobs on their way. One stream of jobs at a time."""

    def __init__(self, plan: Mapping[str, Any], environments: Sequence[Mapping[str, str]], room: int) -> None:
        """Start one replica an environment, all at once, and wait for them.

        Args:
            plan: see vllm_worker.
            environments: the environment variables of each replica, which name its devices.
            room: jobs that a replica holds at a time, waiting ones included.

        Raises:
            UsageError: one can't start.
        """
        self._room = room
        self._all = len(environments)
        self._live: list[Replica] = []
        self._last = ""
        try:
            for index, environment in enumerate(environments):
                self._live.append(Replica(index, plan, environment))
            while waiting := [replica for replica in self._live if not replica.ready]:
                for replica, message in self._hear(waiting):
                    if message is None or message[0] != "ready":
                        self._fail(replica, message)
                    replica.ready = True
                    LOG.info("vllm replica %d is ready, pid %d: %s", replica.index, replica.pid, message[1])
        except BaseException:
            self.close()
            raise

    def pids(self) -> list[int]:
        """The processes of the live replicas."""
        return [replica.pid for replica in self._live]

    def run(self, jobs: Iterator[Job]) -> Generator[tuple[Job, Made], None, None]:
        """Every job with what was made of it, as it is finished.

        Raises:
            EngineDown: no replica is left.
            UsageError: vLLM does not take such a job.
        """
        back: list[Job] = []
        try:
            while True:
                self._feed(jobs, back)
                busy = [replica for replica in self._live if replica.jobs]
                if not busy:
                    return
                for replica, message in self._hear(busy):
                    if message is None:
                        back += self._bury(replica)
                    elif message[0] == "done":
                        job = replica.jobs.pop(message[1], None)  # None: of a stream that was given up
                        if job is not None:
                            yield job, message[2]
                    elif message[0] == "refused":
                        if replica.jobs.pop(message[1], None):
                            raise UsageError(f"vLLM does not take these sampling parameters: {message[2]}")
                    else:
                        replica.why = message[1]
        finally:
            self._drop()

    def close(self) -> None:
        """End every replica."""
        for replica in self._live:
            replica.connection.close()
        for replica in self._live:
            replica.end(_CLOSING_S if replica.ready else 0.0)
        self._live.clear()

    def _feed(self, jobs: Iterator[Job], back: list[Job]) -> None:
        while True:
            if not self._live:
                raise EngineDown(
                    f"the vLLM engine is down: all {self._all} replicas ended, the last by {self._last}; what was"
                    " finished is kept: rerun the same command, and see log.txt if it ends so again"
                )
            replica = min(self._live, key=lambda r: len(r.jobs))
            job = None
            if len(replica.jobs) < self._room:
                job = back.pop() if back else next(jobs, None)
            if job is None:
                return
            replica.jobs[job.number] = job
            replica.send(job)

    def _hear(self, replicas: Sequence[Replica]) -> Iterator[tuple[Replica, Any]]:
        """One message of each replica that has one; None for the end of its pipe."""
        by_pipe = {replica.connection: replica for replica in replicas}
        for pipe in wait(list(by_pipe)):
            assert isinstance(pipe, Connection)
            try:
                yield by_pipe[pipe], pipe.recv()
            except (EOFError, OSError):
                yield by_pipe[pipe], None

    def _bury(self, replica: Replica) -> list[Job]:
        """Take a dead replica out; its unfinished jobs."""
        self._live.remove(replica)
        replica.end()
        self._last = replica.blame()
        left = list(replica.jobs.values())
        LOG.warning(
            "vllm replica %d of %d ended (%s); %d unfinished requests, %d replicas left",
            *(replica.index, self._all, self._last, len(left), len(self._live)),
        )
        return left

    def _fail(self, replica: Replica, message: Any) -> NoReturn:
        replica.why = "" if message is None else message[1]
        replica.end()
        raise UsageError(f"the vLLM engine can't start: {replica.blame()}")

    def _drop(self) -> None:
        for replica in self._live:
            if replica.jobs:
                replica.send(DROP)
                replica.jobs.clear()
