"""A submission's own process: for each test it forks a child, watches it, and tells the judge what it did.

After a fork, parent and child copy each page that one of them writes to; this loop is flat, and opens nothing, because
that is what a trivial test's time goes into.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import re
import resource
import select
import signal
import time
import warnings

from . import child, frames, linux, preamble
from .frames import Settings
from .limits import no_more_than
from .stream import Pages, Stream
from .tiers import Jail

RENEW_EXIT = 42
"""Exit code that asks the zygote for a fresh process for the same submission: a test left files behind."""

EXITED, SIGNALLED, CPU_LIMIT, WALL_LIMIT, MEMORY_LIMIT, OUTPUT_LIMIT, COMPILE_ERROR = range(7)
"""`klearbench.sandbox.base.RunStatus`, by number."""

_STDERR_KEPT = 4096
_PIPE_BYTES = 1 << 16
_FIRST_LOOK_MS = 4
_HELD_OPEN = 30
"""A descriptor that no test gets."""
_OOM_MB = 512
_ADDRESS_SLACK_MB = 64
"""Address space that the warm interpreter itself takes, over what the program is allowed."""

_TRAITS = {
    "threads": re.compile(
        rb"thread|concurrent|asyncio|multiproc|ctypes|joblib|numpy|scipy|numba|pandas|cffi|nogil|faulthandler"
        rb"|import_|\bexec\b|\beval\b|base64|marshal"
    ),
    "last_words": re.compile(
        rb"__del__|weakref|open|Buffer|TextIO|BytesIO|StringIO|finali[sz]e|finally|__exit__|contextmanager|eval|exec"
        rb"|import_"
    ),
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

    def __init__(self, jail: Jail, stream: Stream, settings: Settings, modules: preamble.Modules) -> None:
        self._box, self._stream = jail.box, stream
        self._source = self._box.source()
        packages = _import_mentioned(self._source)
        found = traits(self._source)
        module = preamble.module(modules, settings.preamble or settings.functional, self._source, found["last_words"])
        self._cpu_s, self._wall_s = settings.cpu_s, settings.wall_s
        self._cap, self._memory_mb = settings.output_mb << 20, settings.memory_mb
        self._stage = mmap.mmap(-1, mmap.PAGESIZE)
        slack = _ADDRESS_SLACK_MB * (8 if "numpy" in packages else 1)
        memory = no_more_than(resource.RLIMIT_AS, (self._memory_mb + slack) << 20)
        self._program = child.Program(settings, found, self._box.path, module, jail.prepare(found["threads"]), memory)
        self._functional = self._program.functional
        self._given, self._out, self._err, self._thrown_away = Pages(), Pages(), Pages(), Pages()
        self._result = self._value_pipe() if self._functional else self._box.out
        self._pipes = select.poll()
        for fd in {self._result, self._box.out, self._box.err}:
            self._pipes.register(fd, select.POLLIN)

    def _value_pipe(self) -> int:
        """Descriptor 3 for the value; what a function prints goes nowhere. Descriptor 4 is nothing to be read."""
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        os.dup2(1, _HELD_OPEN)  # or the pipe of the standard output would look closed
        os.dup2(write_end, child.VALUE_FD)
        os.dup2(child.NOTHING_FD, 1)
        os.close(write_end)
        return read_end

    def serve(self) -> int:
        """Run tests until the judge closes the submission; the exit code of this process."""
        while self._stream.read_frame(self._given) == frames.TEST:
            self._test()
            if not self._box.settle():
                return RENEW_EXIT
        return 0

    def _test(self) -> None:
        with self._given.view() as given:
            self._box.feed(given)
        if self._functional:
            fcntl.fcntl(child.VALUE_FD, fcntl.F_SETFL, 0)
        self._out.clear()
        self._err.clear()
        self._stage[0] = child.SETTING_UP
        started = time.monotonic()
        pid = linux.fork()
        if pid == 0:
            child.run(self._program, self._stage, self._source)
        pidfd = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.register(self._stream.fd_in, 0)  # the judge's end: only its hanging up is of interest
        reason = EXITED
        # Most tests end within a moment; their output then waits in the pipes, and is read once.
        if [fd for fd, _ in poll.poll(_FIRST_LOOK_MS)] != [pidfd]:
            reason = self._watch(pid, pidfd, poll, started)
        _, state, usage = os.wait4(pid, 0)
        wall = time.monotonic() - started
        os.close(pidfd)
        self._drain()
        if self._out.size > self._cap:
            reason = reason or OUTPUT_LIMIT
        self._tell(reason, os.waitstatus_to_exitcode(state), usage, wall)

    def _tell(self, reason: int, code: int, usage: resource.struct_rusage, wall: float) -> None:
        """Send the result."""
        peak_mb = usage.ru_maxrss / 1024
        status = self._status(reason, code, peak_mb)
        if status == OUTPUT_LIMIT:
            self._out.size = min(self._out.size, _PIPE_BYTES)
        out, err = self._out.size, self._err.size
        sizes = (0, err, out) if self._functional else (out, err, 0)
        exit_code, number = (code, -1) if code >= 0 else (-1, -code)
        times = (usage.ru_utime + usage.ru_stime, wall)
        head = frames.result_head(status, exit_code, number, times, peak_mb, sizes)
        with self._out.view() as printed, self._err.view() as said:
            self._stream.write(head, *((said, printed) if self._functional else (printed, said)))

    def _watch(self, pid: int, pidfd: int, poll: select.poll, started: float) -> int:
        """Until a longer test has ended, by itself or by us; why it ended."""
        clock = (~pid << 3) | 2  # the process's CPU clock: clock_getcpuclockid(3)
        for fd in {self._result, self._box.out, self._box.err}:
            poll.register(fd, select.POLLIN)
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
                if not self._read():
                    reason = OUTPUT_LIMIT
        os.kill(pid, signal.SIGKILL)
        return reason

    def _read(self) -> bool:
        """Take what is in the pipes now; False when there is more output than allowed (its beginning is kept)."""
        for fd, _ in self._pipes.poll(0):
            full = self._out.size > self._cap
            taken = self._err if fd == self._box.err else self._out if fd == self._result and not full else None
            with contextlib.suppress(BlockingIOError):  # gone again: only the program can have taken it
                (taken or self._thrown_away).take(fd)
            self._err.keep_end(_STDERR_KEPT)
            self._thrown_away.clear()
        return self._out.size <= self._cap

    def _drain(self) -> None:
        """After a test's end: leave nothing of it in the pipes."""
        while self._pipes.poll(0):
            self._read()

    def _status(self, reason: int, code: int, peak_mb: float) -> int:
        stage = self._stage[0]
        if reason != EXITED:
            return reason
        if stage == child.REFUSED or (stage == child.COMPILING and code < 0):
            return COMPILE_ERROR
        if stage != child.COMPILED:
            with self._err.view() as said:
                raise RuntimeError(f"a test could not be started: {bytes(said).decode(errors='replace')}")
        if self._program.code is None:
            self._compile()
        if code == 1 and self._err.last_line_starts_with(b"MemoryError"):
            return MEMORY_LIMIT
        if code < 0:
            # The kernel kills whom it finds when the machine's memory is used up.
            enough = _OOM_MB if code == -signal.SIGKILL else 0.9 * self._memory_mb
            return MEMORY_LIMIT if peak_mb >= enough else SIGNALLED
        return EXITED

    def _compile(self) -> None:
        """It has compiled in a test's own process, so it can be compiled here, for all tests to come.

        If it can't (a nesting that is just too deep from here), each test goes on doing it. Warnings were the test's
        to print: here they would go into the pipe that only we read.
        """
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            self._program.code = self._program.compile(self._source)
