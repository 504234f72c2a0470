"""Judging beside sampling: a thread that judges what is put to it, in order, while the engine makes the next samples.

Verdicts come in the order of the samples, whatever the speeds, so the verdicts of a resumed run are those of an
undisturbed one, in its order. A judge that raises ends the run: at the next `put`, or at the end.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from klearbench.faults import fault
from klearbench.progress import Progress
from klearbench.store import JsonlWriter
from klearbench.suites.references import Judge
from klearbench.types import FinishReason, Reference, Sample, Status, to_row

_FIRST, _AT_ONCE = 16, 256
_CHUNK_S = 2.0
"""What waits is judged in chunks of about so many seconds, from 16 to 256 samples: a verdict is written soon after it
was given, and a kill loses no more than these."""
_AHEAD = 1024
"""Samples that wait to be judged, at most: the engine waits for the judge then, and memory stays flat."""
_GRACE_S = 1.0
_GIVE_UP_S = 20.0


class JudgeThread:
    """Use it as a context manager: its end waits for every verdict; an error on the way gives up what is not judged.

    Args:
        judge: of all samples; `close` breaks it off.
        reference: what a sample is judged against.
        log: where the verdicts go.
        progress: shows what is left while the end waits for verdicts.
    """

    def __init__(
        self, judge: Judge, reference: Callable[[Sample], Reference], log: JsonlWriter, progress: Progress
    ) -> None:
        self._judge, self._reference, self._log, self._progress = judge, reference, log, progress
        self._put = self._judged = self._right = 0
        self._at_once = _FIRST
        self._waiting: queue.Queue[Sample | None] = queue.Queue(_AHEAD)
        self._failure: BaseException | None = None
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._work, name="judge", daemon=True)

    @property
    def note(self) -> str:
        """How it stands, for a progress line: the share of right samples of this call, and how many wait."""
        share = f"{100 * self._right / self._judged:.1f} % right" if self._judged else ""
        left = self._put - self._judged
        return ", ".join(filter(None, (share, f"{left} to judge" if left else "")))

    def put(self, samples: Sequence[Sample]) -> None:
        """Have samples judged; those that the engine failed to make are passed over. Raises what the judge raised."""
        for sample in samples:
            if sample.finish_reason is FinishReason.error:
                continue
            while True:
                self._raise()
                try:
                    self._waiting.put(sample, timeout=1.0)
                    self._put += 1
                    break
                except queue.Full:
                    continue

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        try:
            while batch := self._take():
                fault("judge.batch")
                began = time.monotonic()
                verdicts = self._judge.judge([(sample, self._reference(sample)) for sample in batch])
                for verdict in verdicts:
                    if self._given_up.is_set():  # a judge that was broken off has no word that counts
                        return
                    self._log.append(to_row(verdict))
                    self._judged += 1
                    self._right += verdict.status is Status.correct
                took = time.monotonic() - began
                self._at_once = max(_FIRST, min(_AT_ONCE, int(len(batch) * _CHUNK_S / max(took, 1e-3))))
        except BaseException as error:  # for the main thread to raise
            self._failure = error

    def _take(self) -> list[Sample]:
        """What waits, at least one; empty at the end."""
        batch: list[Sample] = []
        while len(batch) < self._at_once:
            try:
                sample = self._waiting.get(block=not batch)
            except queue.Empty:
                break
            if sample is None:
                self._waiting.put(None)  # for the next call
                break
            batch.append(sample)
        return batch

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is not None:
            self._give_up()
            return
        ended = False
        try:
            while self._thread.is_alive():
                if not ended:
                    with suppress(queue.Full):
                        self._waiting.put_nowait(None)
                        ended = True
                self._thread.join(1.0)
                self._progress.advance(0, self.note)
        except BaseException:
            self._give_up()
            raise
        self._raise()

    def _give_up(self) -> None:
        """Let what waits be judged if that is quick, and break it off if it is not."""
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
            self._thread.join(_GRACE_S)
        self._given_up.set()
        self._judge.close()
        with suppress(queue.Empty):
            while True:
                self._waiting.get_nowait()
        self._waiting.put(None)  # wakes the thread if it waits
        self._thread.join(_GIVE_UP_S)
