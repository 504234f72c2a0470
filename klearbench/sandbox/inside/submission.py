"""A submission's own process: for each test it forks a child, watches it, and tells the judge what it did.

After a fork, parent and child copy each page that one of them writes to; this loop is flat, and opens nothing, because
that is what a trivial test's time goes into.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
import resource
import select
import signal
import time

from . import child, frames, linux, preamble
from .jail import Jail, lower_limit
from .stream import Stream

RENEW_EXIT = 42
"""Exit code that asks the zygote for a fresh process for the same submission: a test left files behind."""

EXITED, SIGNALLED, CPU_LIMIT, WALL_LIMIT, MEMORY_LIMIT, OUTPUT_LIMIT, COMPILE_ERROR = range(7)
"""`klearbench.sandbox.base.RunStatus`, by number."""

_STDERR_KEPT = 4096
_CHUNK = 1 << 20
_PIPE_BYTES = 1 << 16
_FIRST_LOOK_MS = 4
_OOM_MB = 512
_ADDRESS_SLACK_MB = 64
"""Address space that the warm interpreter itself takes, over what the program is allowed."""

_TRAITS = {
    "threads": re.compile(rb"thread|concurrent|asyncio|multiproc|ctypes|joblib|numpy|scipy|numba|pandas|cffi|nogil"),
    "last_words": re.compile(rb"__del__|weakref|open|Buffer|TextIO|BytesIO|StringIO|finali[sz]e|eval|exec|import_"),
    "random": re.compile(rb"rand|shuffle|choice|sample|gauss|uniform|variate|import_"),
}
_WORTH_IMPORTING = re.compile(
    rb"\b(?:array|asyncio|cmath|concurrent|contextlib|dataclasses|datetime|decimal|enum|fractions|inspect|itertools"
    rb"|numbers|numpy|pprint|queue|sortedcontainers|statistics|struct|textwrap|threading|traceback|typing|zlib)\b"
)
"""Modules that are imported once for a submission where its source names them, not again by each of its tests."""


def traits(source: bytes) -> dict[str, bool]:
    """What a program may do, by its words.

    threads: it may start some. Others run under a filter that is installed once, and can start none.
    last_words: its objects may have something to do when they are let go of (`__del__`, unwritten output).
    random: it may draw random numbers.
    """
    return {name: words.search(source) is not None for name, words in _TRAITS.items()}


def _import_mentioned(source: bytes) -> set[str]:
    """Import what the source names; the names."""
    found = {name.decode() for name in _WORTH_IMPORTING.findall(source)}
    for name in found:
        with contextlib.suppress(Exception):
            __import__(name)
    return found


class Submission:
    """The loop over the tests of one submission."""

    def __init__(self, jail: Jail, stream: Stream, opening: bytes, modules: preamble.Modules) -> None:
        settings, self._source = frames.unpack_open(opening)
        packages = _import_mentioned(self._source)
        found = traits(self._source)
        module = preamble.module(modules, settings.preamble or settings.functional, self._source, found["last_words"])
        self._stream = stream
        self._cpu_s, self._wall_s = settings.cpu_s, settings.wall_s
        self._cap, self._memory_mb = settings.output_mb << 20, settings.memory_mb
        self._stage = mmap.mmap(-1, mmap.PAGESIZE)
        self._box, drop = jail.box, jail.prepare(found["threads"])
        self._program = child.Program(settings, found, self._box.source(self._source), module, drop)
        self._functional = self._program.functional
        self._result = self._value_pipe() if self._functional else self._box.out
        self._pipes = select.poll()
        self._pipes.register(self._result, select.POLLIN)
        self._pipes.register(self._box.err, select.POLLIN)
        slack = _ADDRESS_SLACK_MB * (8 if "numpy" in packages else 1)
        lower_limit(resource.RLIMIT_AS, (self._memory_mb + slack) << 20)  # inherited by every test

    def _value_pipe(self) -> int:
        """Descriptor 3 for the value; what a function prints goes nowhere."""
        read_end, write_end = os.pipe()
        os.dup2(write_end, 3)
        os.close(write_end)
        os.set_blocking(read_end, False)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        return read_end

    def serve(self) -> int:
        """Run tests until the judge closes the submission; the exit code of this process."""
        while True:
            kind, payload = self._stream.read_frame()
            if kind != frames.TEST:
                return 0
            self._stream.write(self._test(payload))
            if not self._box.settle():
                return RENEW_EXIT

    def _test(self, data: bytes) -> bytes:
        arguments = [json.loads(line) for line in data.decode().split("\n") if line.strip()] if self._functional else []
        self._box.feed(b"" if self._functional else data)
        self._stage[0] = child.SETTING_UP
        started = time.monotonic()
        pid = linux.fork()
        if pid == 0:
            child.run(self._program, self._stage, self._source, arguments)
        pidfd = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.register(self._stream.fd_in, 0)  # the judge's end: only its hanging up is of interest
        out, err, reason = bytearray(), bytearray(), EXITED
        # Most tests end within a moment; their output then waits in the pipes, and is read once.
        if [fd for fd, _ in poll.poll(_FIRST_LOOK_MS)] != [pidfd]:
            reason = self._watch(pid, pidfd, poll, started, (out, err))
        _, state, usage = os.wait4(pid, 0)
        wall = time.monotonic() - started
        os.close(pidfd)
        if not self._drain(out, err) and reason == EXITED:
            reason = OUTPUT_LIMIT
        if reason == OUTPUT_LIMIT:
            del out[_PIPE_BYTES:]
        code = os.waitstatus_to_exitcode(state)
        status = self._status(reason, code, err, usage.ru_maxrss / 1024)
        texts = (b"", bytes(err), bytes(out)) if self._functional else (bytes(out), bytes(err), b"")
        times = (usage.ru_utime + usage.ru_stime, wall)
        exit_code, number = (code, -1) if code >= 0 else (-1, -code)
        result = frames.pack_result(status, exit_code, number, times, usage.ru_maxrss / 1024, texts)
        return frames.frame(frames.RESULT, result)

    def _watch(
        self, pid: int, pidfd: int, poll: select.poll, started: float, texts: tuple[bytearray, bytearray]
    ) -> int:
        """Until a longer test has ended, by itself or by us; why it ended."""
        clock = (~pid << 3) | 2  # the process's CPU clock: clock_getcpuclockid(3)
        poll.register(self._result, select.POLLIN)
        poll.register(self._box.err, select.POLLIN)
        reason = EXITED
        while reason == EXITED:
            now = time.monotonic()
            used = time.clock_gettime(clock)
            if used >= self._cpu_s:
                reason = CPU_LIMIT
            elif now - started >= self._wall_s:
                reason = WALL_LIMIT
            else:
                patience = min(self._wall_s - (now - started), max(self._cpu_s - used, 0.002))
                ready = [fd for fd, _ in poll.poll(int(1000 * patience) + 1)]
                if self._stream.fd_in in ready:  # the judge is gone
                    os.kill(pid, signal.SIGKILL)
                    os._exit(0)
                if pidfd in ready:
                    return EXITED
                if not self._read(*texts):
                    reason = OUTPUT_LIMIT
        os.kill(pid, signal.SIGKILL)
        return reason

    def _read(self, out: bytearray, err: bytearray) -> bool:
        """Take what is in the pipes now; False when there is more output than allowed (its beginning is kept)."""
        for fd, _ in self._pipes.poll(0):
            data = os.read(fd, _CHUNK)
            if fd != self._result:
                err += data
                del err[:-_STDERR_KEPT]
            elif len(out) <= self._cap:
                out += data
        return len(out) <= self._cap

    def _drain(self, out: bytearray, err: bytearray) -> bool:
        """After a test's end: leave nothing of it in the pipes."""
        within = True
        while self._pipes.poll(0):
            within = self._read(out, err) and within
        return within

    def _status(self, reason: int, code: int, err: bytearray, peak_mb: float) -> int:
        stage = self._stage[0]
        if reason != EXITED:
            return reason
        if stage == child.REFUSED or (stage == child.COMPILING and code < 0):
            return COMPILE_ERROR
        if stage != child.COMPILED:
            raise RuntimeError(f"a test could not be started: {err.decode(errors='replace')}")
        if self._program.code is None:
            # It has compiled in a test's own process, so it can be compiled here, for all tests to come. If it can't
            # (a nesting that is just too deep from here), each test goes on doing it.
            with contextlib.suppress(Exception):
                self._program.code = self._program.compile(self._source)
        if code == 1 and err.rstrip().rsplit(b"\n", 1)[-1].startswith(b"MemoryError"):
            return MEMORY_LIMIT
        if code < 0:
            # The kernel kills whom it finds when the machine's memory is used up.
            enough = _OOM_MB if code == -signal.SIGKILL else 0.9 * self._memory_mb
            return MEMORY_LIMIT if peak_mb >= enough else SIGNALLED
        return EXITED
