"""The code judge: samples and tests in, one verdict each out.

    rows --> a window of submissions --> lots in a queue, the longest first --> slots --> verdicts in the rows' order

The expected outputs stay in this process: what enters a submission's slot is its program and the tests' inputs. A
fault of ours (a slot that died, a checker that crashed) is a `judge_error` without a score, after a second try.
Covered: faults of one slot, a sandbox that goes away in mid-run. Not covered: two judges in one process do not know of
each other, so a run alone near its limit is alone among the runs of its own judge.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import weakref
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Self

from klearbench.errors import ConfigError, unknown_name
from klearbench.faults import fault
from klearbench.judging.lots import Pace
from klearbench.judging.modes import MODES
from klearbench.judging.schedule import Gate, Workers
from klearbench.judging.submission import Judged, Row, Submission
from klearbench.sandbox.base import Sandbox, Slot
from klearbench.sandbox.registry import SANDBOXES, build_sandbox
from klearbench.types import CodeTests, Sample, Verdict

VERSION = 1
"""Raised whenever a verdict may change; part of the identity that a run records."""

_OPEN_A_WORKER = 4
_HELD_A_WORKER = 16
"""Submissions in the window: not yet judged, and all that wait for their turn to come out; each a slot."""


class CodeJudge:
    """Judges code samples. The sandbox starts with the first program; use it as a context manager.

    Args:
        sandbox: "local", "docker", or a sandbox of the caller's (which stays the caller's to close).
        mode: "strict" (ours), "compat" (LiveCodeBench's rules), or "both": strict verdicts, and each difference from
            the compat ones by `stream_rows`.
        workers: slots at most; each runs one program at a time.
        first_failure: stop at a submission's first failing test. The status is the same; `passed` and the score then
            count the tests before it.

    Raises:
        ConfigError: an unknown sandbox or mode, or fewer than one worker.
    """

    def __init__(
        self, *, sandbox: str | Sandbox = "local", mode: str = "strict", workers: int = 1, first_failure: bool = False
    ) -> None:
        if mode not in MODES:
            raise ConfigError(unknown_name("mode of judging", mode, MODES))
        if isinstance(sandbox, str) and sandbox not in SANDBOXES:
            raise ConfigError(unknown_name("sandbox", sandbox, SANDBOXES))
        if workers < 1:
            raise ConfigError(f"workers is {workers}; at least 1 is needed")
        self._mode, self._first_failure, self._size = mode, first_failure, workers
        self._slots = _Slots(sandbox)
        self._gate, self._pace = Gate(), Pace()
        self._workers = Workers(self._slots.open, workers)
        self._end = weakref.finalize(self, _close, self._workers, self._slots)

    def identity(self) -> Mapping[str, Any]:
        """Everything that decides a verdict, for manifests."""
        return {
            "name": "code",
            "version": VERSION,
            "mode": self._mode,
            "sandbox": self._slots.name,
            "first_failure": self._first_failure,
        }

    def start(self) -> None:
        """Start the sandbox now, so that a machine without one is known before anything is made or written.

        Raises:
            SandboxUnavailable: this machine has no such sandbox.
        """
        self._slots.start()

    def judge(self, items: Sequence[tuple[Sample, CodeTests]]) -> list[Verdict]:
        """One verdict a sample, in order. A failure of ours is a `judge_error` verdict, never an exception.

        Raises:
            SandboxUnavailable: this machine has no such sandbox.
        """
        return list(self.stream(items))

    def stream(self, items: Iterable[tuple[Sample, CodeTests]]) -> Iterator[Verdict]:
        """Like `judge`, as the verdicts come, in order; items are taken from the iterable a window ahead."""
        with closing(self.stream_rows((sample, tests, False) for sample, tests in items)) as rows:
            for judged in rows:
                yield judged.verdict

    def stream_rows(self, rows: Iterable[Row]) -> Generator[Judged, None, None]:
        """Like `stream`, for rows of which some completions are programs taken as they are, with the differences.

        Closing the iterator gives up what is not judged yet.
        """
        source = iter(rows)
        window: deque[Submission] = deque()
        news: queue.SimpleQueue[object] = queue.SimpleQueue()
        try:
            while True:
                self._fill(window, source, news)
                if not window:
                    return
                if window[0].future.done():
                    yield window.popleft().future.result()
                else:
                    news.get()  # one of them is done, this one or another; the place of either can be filled
        finally:
            for submission in window:
                submission.cancel()

    def _fill(self, window: deque[Submission], source: Iterator[Row], news: queue.SimpleQueue[object]) -> None:
        """Take rows into the window while it has room."""
        unjudged = sum(not submission.future.done() for submission in window)
        while unjudged < _OPEN_A_WORKER * self._size and len(window) < _HELD_A_WORKER * self._size:
            row = next(source, None)
            if row is None:
                return
            submission = self._submit(row)
            window.append(submission)
            if not submission.future.done():
                unjudged += 1
                submission.future.add_done_callback(news.put)

    def _submit(self, row: Row) -> Submission:
        fault("judge.submission")
        submission = Submission(
            row,
            MODES[self._mode],
            first_failure=self._first_failure,
            workers=self._size,
            gate=self._gate,
            pace=self._pace,
            offer=self._workers.offer,
        )
        if submission.lots:
            self._slots.start()
            self._workers.put(submission.lots)
        return submission

    async def judge_async(self, items: Sequence[tuple[Sample, CodeTests]]) -> list[Verdict]:
        """Like `judge`, for an event loop: it awaits, and other tasks run meanwhile. May run several times at once.

        Cancelling it gives up what is not judged yet.
        """
        if items:
            await asyncio.to_thread(self._slots.start)
        room = asyncio.Semaphore(_HELD_A_WORKER * self._size)

        async def one(sample: Sample, tests: CodeTests) -> Verdict:
            async with room:
                judged = await asyncio.wrap_future(self._submit((sample, tests, False)).future)
                return judged.verdict

        tasks = [asyncio.create_task(one(*item)) for item in items]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    def close(self) -> None:
        """Break off what runs, and end all slots and threads. May be called twice, and from another thread."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Slots:
    """The sandbox, made when it is first needed. One that was given is used, and left open."""

    def __init__(self, sandbox: str | Sandbox) -> None:
        self._lock = threading.Lock()
        self._given = sandbox
        self._sandbox: Sandbox | None = None if isinstance(sandbox, str) else sandbox

    @property
    def name(self) -> str:
        return self._given if isinstance(self._given, str) else self._given.name

    def start(self) -> Sandbox:
        """The sandbox. Raises SandboxUnavailable."""
        with self._lock:
            if self._sandbox is None:
                assert isinstance(self._given, str)
                self._sandbox = build_sandbox(self._given)
            return self._sandbox

    def open(self, role: str) -> Slot:
        return self.start().open(role)

    def close(self) -> None:
        with self._lock:
            if self._sandbox is not None and isinstance(self._given, str):
                self._sandbox.close()
                self._sandbox = None


def _close(workers: Workers, slots: _Slots) -> None:
    workers.close()
    slots.close()
