"""A submission's own process: for each test it forks a child, watches it, and tells the judge what it did."""

from __future__ import annotations

import atexit
import contextlib
import mmap
import os
import re
import resource
import select
import signal
import time
from typing import Any

from . import child, frames, linux
from .box import Box
from .jail import Jail, lower_limit
from .stream import Stream

RENEW_EXIT = 42
"""Exit code that asks the zygote for a fresh process for the same submission: a test left files behind."""

EXITED, SIGNALLED, CPU_LIMIT, WALL_LIMIT, MEMORY_LIMIT, OUTPUT_LIMIT, COMPILE_ERROR = range(7)
"""`klearbench.sandbox.base.RunStatus`, by number."""

_STDERR_KEPT = 4096
_CHUNK = 1 << 20
_FIRST_LOOK_MS = 4
_ADDRESS_SLACK_MB = 64
"""Address space that the warm interpreter itself takes, over what the program is allowed."""

_OOM_MB = 512

_MAY_START_THREADS = re.compile(
    rb"thread|concurrent|asyncio|multiproc|ctypes|joblib|numpy|scipy|numba|pandas|cffi|nogil"
)
_HAS_LAST_WORDS = re.compile(rb"__del__|weakref|open|Buffer|TextIO|BytesIO|StringIO|finali[sz]e|eval|exec|import_")
"""Programs whose objects may have something to do when they are let go of: a method of their own, unwritten output."""
_WORTH_PRELOADING = ("numpy",)


class Watched:
    """One running test: its process, its pipes, what came out so far."""

    def __init__(self, pid: int, pipes: list[int], limits: dict[str, Any], started: float) -> None:
        self.pid, self.started = pid, started
        self.pidfd = os.pidfd_open(pid)
        self.clock = (~pid << 3) | 2  # the process's CPU clock: clock_getcpuclockid(3)
        self.texts = {fd: bytearray() for fd in pipes}
        self.out, self.err, self.value = (*pipes, -1)[:3]
        self.cpu_s, self.wall_s = float(limits["cpu_s"]), float(limits["wall_s"])
        self.cap = int(limits["output_mb"]) << 20
        self.reason = EXITED

    def cpu(self) -> float:
        try:
            return time.clock_gettime(self.clock)
        except OSError:
            return 0.0

    def watch(self, stream: Stream) -> None:
        """Until the process has ended, by itself or by us."""
        ended = select.poll()
        ended.register(self.pidfd, select.POLLIN)
        ended.register(stream.fd_in, 0)  # the judge's end: only its hanging up is of interest
        # Most tests end within a moment; their output then waits in the pipes, and is read once.
        if not self._ended(ended.poll(_FIRST_LOOK_MS), stream):
            for fd in self.texts:
                ended.register(fd, select.POLLIN)
            while not self._ended(ended.poll(self._patience_ms()), stream):
                self.read(ended)
                self._check_limits()

    def _ended(self, events: list[tuple[int, int]], stream: Stream) -> bool:
        ready = [fd for fd, _ in events]
        if stream.fd_in in ready:  # the judge is gone
            self.kill()
            os._exit(0)
        return self.pidfd in ready or self.reason != EXITED

    def _patience_ms(self) -> int:
        left = self.wall_s - (time.monotonic() - self.started)
        return max(1, int(1000 * min(left, max(self.cpu_s - self.cpu(), 0.002))) + 1)

    def _check_limits(self) -> None:
        if self.reason != EXITED:
            return
        if self.cpu() >= self.cpu_s:
            self.end(CPU_LIMIT)
        elif time.monotonic() - self.started >= self.wall_s:
            self.end(WALL_LIMIT)

    def end(self, reason: int) -> None:
        self.reason = reason
        self.kill()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def read(self, poll: select.poll | None = None) -> None:
        """Take what is in the pipes; past the limit of the output the test is over."""
        for fd, text in self.texts.items():
            try:
                while data := os.read(fd, _CHUNK):
                    text += data
                    if fd == self.err:
                        del text[:-_STDERR_KEPT]
                    elif len(text) > self.cap:
                        del text[self.cap :]
                        self.end(OUTPUT_LIMIT)
                        return
                if poll is not None:  # closed by the program, which goes on
                    with contextlib.suppress(KeyError):
                        poll.unregister(fd)
            except BlockingIOError:
                continue


class Submission:
    """The loop over the tests of one submission."""

    def __init__(self, jail: Jail, stream: Stream, opening: bytes, names: dict[str, Any]) -> None:
        settings, source = frames.unpack_open(opening)
        modules = [name for name in _WORTH_PRELOADING if name.encode() in source]
        for name in modules:
            with contextlib.suppress(Exception):
                __import__(name)
        address_mb = int(settings["memory_mb"]) + _ADDRESS_SLACK_MB * (8 if modules else 1)
        settings["threads"] = _MAY_START_THREADS.search(source) is not None
        settings["finalizes"] = _HAS_LAST_WORDS.search(source) is not None
        settings["callbacks"] = atexit._ncallbacks()  # type: ignore[attr-defined]
        settings["seeds"] = b"random" in source or bool(settings["preamble"])
        self._functional = settings["mode"] == "functional"
        self._stream, self._jail = stream, jail
        self._stage = mmap.mmap(-1, mmap.PAGESIZE)
        self._box: Box = jail.prepare(settings["threads"])
        lower_limit(resource.RLIMIT_AS, address_mb << 20)  # inherited by every test
        self._program = child.Program(settings, source, self._box.source(source), names)

    def serve(self) -> int:
        """Run tests until the judge closes the submission; the exit code of this process."""
        while True:
            kind, payload = self._stream.read_frame()
            if kind != frames.TEST:
                return 0
            self._stream.write(frames.frame(frames.RESULT, self._test(payload)))
            if not self._box.settle():
                return RENEW_EXIT

    def _test(self, data: bytes) -> bytes:
        started = time.monotonic()
        out, err = self._output()
        value = os.pipe() if self._functional else None
        ours, theirs = [out[0], err[0]], [out[1], err[1]]
        if value is not None:
            os.set_blocking(value[0], False)
            ours.append(value[0])
            theirs.append(value[1])
        files = [self._box.input(b"" if self._functional else data), *theirs]
        self._stage[0] = child.SETTING_UP
        pid = linux.fork()
        if pid == 0:
            child.run(self._program, self._jail, self._stage, data, (*files, -1)[:4])
        for fd in files:
            os.close(fd)
        watched = Watched(pid, ours, self._program.settings, started)
        try:
            watched.watch(self._stream)
            watched.read()
            return self._result(watched)
        finally:
            for fd in (*ours, watched.pidfd):
                os.close(fd)

    def _output(self) -> tuple[tuple[int, int], tuple[int, int]]:
        if not self._functional:
            return self._box.pipe("stdout"), self._box.pipe("stderr")
        nowhere = os.open("/dev/null", os.O_RDONLY | os.O_NONBLOCK)
        return (nowhere, os.open("/dev/null", os.O_WRONLY)), self._box.pipe("stderr")

    def _result(self, test: Watched) -> bytes:
        _, state, usage = os.wait4(test.pid, 0)
        wall = time.monotonic() - test.started
        code, number = os.waitstatus_to_exitcode(state), -1
        if code < 0:
            code, number = -1, -code
        out, err = bytes(test.texts[test.out]), bytes(test.texts[test.err])
        value = bytes(test.texts[test.value]) if test.value >= 0 else b""
        peak_mb = usage.ru_maxrss / 1024
        status = self._status(test.reason, code, number, err, peak_mb)
        times = (usage.ru_utime + usage.ru_stime, wall)
        return frames.pack_result(status, code, number, times, peak_mb, (out, err, value))

    def _status(self, reason: int, code: int, number: int, err: bytes, peak_mb: float) -> int:
        stage = self._stage[0]
        if reason != EXITED:
            return reason
        if stage == child.REFUSED or (stage == child.COMPILING and number > 0):
            return COMPILE_ERROR
        if stage == child.SETTING_UP:
            raise RuntimeError(f"a test could not be started: {err.decode(errors='replace')}")
        if stage == child.COMPILED and self._program.code is None:
            # It has compiled in a test's own process, so it can be compiled here, for all tests to come.
            self._program.code = self._program.compile()
        if code == 1 and err.rstrip().rsplit(b"\n", 1)[-1].startswith(b"MemoryError"):
            return MEMORY_LIMIT
        if number > 0:
            # The kernel kills whom it finds when the machine's memory is used up.
            enough = _OOM_MB if number == signal.SIGKILL else 0.9 * self._program.settings["memory_mb"]
            return MEMORY_LIMIT if peak_mb >= enough else SIGNALLED
        return EXITED
