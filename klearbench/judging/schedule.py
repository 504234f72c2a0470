"""Who runs what, and when: threads that own slots, a queue that gives the longest lot first, and a gate.

    Workers --> a thread each --> Slots (one a role, opened when first needed) --> Lot.run(slots)

Knows nothing of programs and tests: a lot is any piece of work that needs slots.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from klearbench.faults import fault
from klearbench.sandbox.base import SandboxError, SandboxUnavailable, Slot

TRIES = 2
"""How often a lot is tried: after a failure of ours once more, on fresh slots."""
_JOIN_S = 10.0


class Gate:
    """Many at once, or one alone. Who wants to be alone goes first: new ones wait until it has been."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._waiting = 0
        self._taken = False

    @property
    def wanted(self) -> bool:
        """Whether somebody waits to be alone: those inside should leave when they can, and enter anew."""
        return self._waiting > 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Run beside others."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken and not self._waiting)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                if self._waiting and not self._inside:
                    self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run when nothing else does."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: not self._taken and not self._inside)
            self._waiting -= 1
            self._taken = True
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._changed.notify_all()


class Slots:
    """One thread's slots, one a role at most. A slot that served one role never serves another."""

    def __init__(self, open_slot: Callable[[str], Slot]) -> None:
        self._open = open_slot
        self._lock = threading.Lock()
        self._slots: dict[str, Slot] = {}
        self._ended = threading.Event()

    def get(self, role: str) -> Slot:
        """The slot of a role; the first call opens it. Raises SandboxError or SandboxUnavailable."""
        slot = self._slots.get(role)
        if slot is not None:
            return slot
        if self._ended.is_set():
            raise SandboxError("the judge was closed")
        slot = self._open(role)
        with self._lock:
            if not self._ended.is_set():
                self._slots[role] = slot
                return slot
        slot.close()
        raise SandboxError("the judge was closed")

    def drop(self) -> None:
        """Close all slots; the next `get` opens fresh ones."""
        with self._lock:
            slots, self._slots = list(self._slots.values()), {}
        for slot in slots:
            with suppress(SandboxError):  # it is given up in any case
                slot.close()

    def close(self) -> None:
        """Close all slots for good. May be called from another thread, to break a run off."""
        self._ended.set()
        self.drop()


class Lot(Protocol):
    """A piece of work. `expected_s` (CPU seconds) decides its place in the queue; `stopped` is True when nobody wants
    it any more."""

    @property
    def expected_s(self) -> float: ...

    @property
    def stopped(self) -> bool: ...

    def run(self, slots: Slots) -> None:
        """Do it. Called again on fresh slots after an exception: it goes on with what is missing."""
        ...

    def fail(self, error: Exception) -> None:
        """Take note that it can't be done. A SandboxUnavailable is the user's to see; all else is a judge error."""
        ...


class Workers:
    """`size` threads at most, started with the first lot, each with slots of its own.

    Args:
        open_slot: role -> a new slot.
        size: threads.
    """

    def __init__(self, open_slot: Callable[[str], Slot], size: int) -> None:
        self._open_slot = open_slot
        self._size = size
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, Lot]] = []
        self._arrived = 0
        self._idle = 0
        self._threads: list[threading.Thread] = []
        self._all: list[Slots] = []
        self._opened = False
        self._closed = False

    def put(self, lots: Iterable[Lot]) -> None:
        """Queue lots. Raises SandboxError when the workers are closed."""
        with self._changed:
            if self._closed:
                raise SandboxError("the judge was closed")
            for lot in lots:
                heapq.heappush(self._heap, (-lot.expected_s, self._arrived, lot))
                self._arrived += 1
            while len(self._threads) < self._size and len(self._heap) > self._idle:
                self._start()
            self._changed.notify(len(self._heap))

    def offer(self, lot: Lot) -> bool:
        """Queue a lot if a worker has nothing to do; whether it was queued."""
        with self._changed:
            spare = self._idle + self._size - len(self._threads)
            if self._closed or spare <= len(self._heap):
                return False
        self.put([lot])
        return True

    def _start(self) -> None:
        slots = Slots(self._open)
        thread = threading.Thread(target=self._work, args=(slots,), name="code-judge", daemon=True)
        self._all.append(slots)
        self._threads.append(thread)
        self._idle += 1
        thread.start()

    def _open(self, role: str) -> Slot:
        """A new slot. Where there was one before, that there is none now is a fault and not the user's to mend."""
        try:
            slot = self._open_slot(role)
        except SandboxUnavailable as error:
            if self._opened:
                raise SandboxError(str(error)) from error
            raise
        self._opened = True
        return slot

    def _take(self) -> Lot | None:
        with self._changed:
            self._changed.wait_for(lambda: self._heap or self._closed)
            if self._closed:
                return None
            self._idle -= 1
            return heapq.heappop(self._heap)[2]

    def _work(self, slots: Slots) -> None:
        while (lot := self._take()) is not None:
            if not lot.stopped:
                self._attempt(lot, slots)
            del lot  # a waiting thread must not hold the last submission's inputs
            with self._changed:
                self._idle += 1
        slots.close()

    def _attempt(self, lot: Lot, slots: Slots) -> None:
        for left in reversed(range(TRIES)):
            try:
                fault("judge.lot")
                lot.run(slots)
                return
            # Whatever it is, it is our fault and one submission's alone: the other submissions must not be lost.
            except Exception as error:
                slots.drop()
                if self._closed:
                    return lot.fail(SandboxError("the judge was closed"))
                if not left or isinstance(error, SandboxUnavailable):
                    return lot.fail(error)

    def close(self) -> None:
        """Break off what runs, close all slots and end the threads. Lots that were not done fail."""
        with self._changed:
            self._closed = True
            left, self._heap = self._heap, []
            self._changed.notify_all()
        for slots in self._all:
            slots.close()
        for _, _, lot in left:
            lot.fail(SandboxError("the judge was closed"))
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_JOIN_S)
