"""The schedule of judging: the gate, the order of the lots, slots and their replacement, closing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from klearbench.judging.schedule import Gate, Lot, Slots, Workers
from klearbench.sandbox.base import SandboxError, SandboxUnavailable
from tests.klearbench.judging.fake_sandbox import FakeSandbox, nowhere


class Piece:
    """A lot that calls `work` with the slots."""

    stopped = False

    def __init__(self, work: Callable[[Slots], object], expected_s: float = 0.0) -> None:
        self.work, self.expected_s = work, expected_s
        self.errors: list[Exception] = []
        self.ended = threading.Event()

    def run(self, slots: Slots) -> None:
        self.work(slots)
        self.ended.set()

    def fail(self, error: Exception) -> None:
        self.errors.append(error)
        self.ended.set()


def wait(*pieces: Piece) -> None:
    for piece in pieces:
        assert piece.ended.wait(10)


def test_the_longest_lot_goes_first_and_equals_in_the_order_of_arrival() -> None:
    order: list[str] = []
    start = threading.Event()
    workers = Workers(FakeSandbox({}).open, 1)
    first = Piece(lambda _: start.wait(10))
    rest = [Piece(lambda _, name=name: order.append(name), s) for name, s in [("a", 0), ("b", 2), ("c", 0), ("d", 5)]]
    workers.put([first])
    workers.put(rest)
    start.set()
    wait(first, *rest)
    workers.close()
    assert order == ["d", "b", "a", "c"]


def test_alone_is_alone_and_goes_before_those_who_come_later() -> None:
    gate, log, lock = Gate(), [], threading.Lock()
    inside = threading.Event()
    leave = threading.Event()

    def note(what: str) -> None:
        with lock:
            log.append(what)

    def reader() -> None:
        with gate.shared():
            inside.set()
            leave.wait(10)
            note("first reader out")

    def writer() -> None:
        with gate.alone():
            note("alone in")
            time.sleep(0.05)
            note("alone out")

    def late() -> None:
        with gate.shared():
            note("late reader in")

    threads = [threading.Thread(target=reader)]
    threads[0].start()
    assert inside.wait(10) and not gate.wanted
    threads.append(threading.Thread(target=writer))
    threads[1].start()
    while not gate.wanted:
        time.sleep(0.001)
    threads += [threading.Thread(target=late) for _ in range(3)]
    for thread in threads[2:]:
        thread.start()
    time.sleep(0.05)
    assert log == []
    leave.set()
    for thread in threads:
        thread.join(10)
    assert log == ["first reader out", "alone in", "alone out"] + ["late reader in"] * 3


def test_readers_share_the_gate() -> None:
    gate, barrier = Gate(), threading.Barrier(3, timeout=10)

    def reader() -> None:
        with gate.shared():
            barrier.wait()  # passed only if all three are inside at once

    threads = [threading.Thread(target=reader) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not barrier.broken


def test_a_lot_that_breaks_is_tried_once_more_on_a_fresh_slot() -> None:
    box = FakeSandbox({})
    used: list[str] = []

    def work(slots: Slots) -> None:
        used.append(slots.get("submission").id)
        if len(used) == 1:
            raise SandboxError("the slot died")

    workers = Workers(box.open, 1)
    piece, after = Piece(work), Piece(work)
    workers.put([piece, after])
    wait(piece, after)
    assert piece.errors == after.errors == []
    assert used == ["fake:1 submission", "fake:2 submission", "fake:2 submission"]
    assert box.open_slots == {"fake:2 submission"}
    workers.close()
    assert box.open_slots == set()


def test_a_lot_that_breaks_twice_fails_alone_whatever_the_exception() -> None:
    def work(_: Slots) -> None:
        raise ZeroDivisionError("a bug of ours")

    workers = Workers(FakeSandbox({}).open, 1)
    bad, good = Piece(work), Piece(lambda slots: slots.get("submission"))
    workers.put([bad, good])
    wait(bad, good)
    workers.close()
    assert [type(error) for error in bad.errors] == [ZeroDivisionError]
    assert good.errors == []


def test_a_sandbox_that_never_was_is_the_users_to_see_one_that_went_away_is_a_fault() -> None:
    workers = Workers(FakeSandbox({}, nowhere).open, 1)
    piece = Piece(lambda slots: slots.get("submission"))
    workers.put([piece])
    wait(piece)
    workers.close()
    assert isinstance(piece.errors[0], SandboxUnavailable)

    def went_away(number: int, role: str) -> None:
        if number > 1:
            nowhere(number, role)

    workers = Workers(FakeSandbox({}, went_away).open, 1)
    first = Piece(lambda slots: slots.get("submission"))
    second = Piece(lambda slots: (slots.drop(), slots.get("submission")))
    workers.put([first, second])
    wait(first, second)
    workers.close()
    assert first.errors == []
    assert isinstance(second.errors[0], SandboxError) and "no user namespaces" in str(second.errors[0])


def test_each_role_has_a_slot_of_its_own() -> None:
    slots = Slots(FakeSandbox({}).open)
    one, two = slots.get("submission"), slots.get("checker")
    assert one is slots.get("submission") and two is slots.get("checker") and one is not two
    slots.close()
    with pytest.raises(SandboxError, match="closed"):
        slots.get("submission")


def test_close_breaks_off_what_runs_and_fails_what_waits() -> None:
    box = FakeSandbox({})
    started = threading.Event()

    def work(slots: Slots) -> None:
        slot = slots.get("submission")
        started.set()
        assert slot.closed.wait(10)  # type: ignore[attr-defined]
        raise SandboxError("the slot was closed")

    workers = Workers(box.open, 1)
    running, waiting = Piece(work), Piece(work)
    before = threading.active_count()
    workers.put([running, waiting])
    assert started.wait(10)
    workers.close()
    workers.close()
    wait(running, waiting)
    assert "closed" in str(running.errors[0]) and "closed" in str(waiting.errors[0])
    assert box.open_slots == set() and box.opened == 1
    assert threading.active_count() == before
    with pytest.raises(SandboxError, match="closed"):
        workers.put([running])


def test_no_more_threads_than_lots_and_none_that_are_not_wanted() -> None:
    box = FakeSandbox({})
    workers = Workers(box.open, 8)
    for _ in range(5):
        piece = Piece(lambda slots: slots.get("submission"))
        workers.put([piece])
        wait(piece)
        time.sleep(0.05)
    assert box.opened <= 2
    dead: Lot = Piece(lambda slots: pytest.fail("nobody wants it"))
    dead.stopped = True  # type: ignore[misc]
    last = Piece(lambda slots: None, expected_s=-1)
    workers.put([dead, last])
    wait(last)
    workers.close()
