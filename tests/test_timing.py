"""The stop-watch of the tests: it counts what this thread computes in a call, and nothing besides."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

import pytest

from klearbench.judging.normalize import canonical
from tests import timing
from tests.timing import TRIES, assert_linear, assert_quick, cpu_seconds


class Clock:
    """Stands for the module `time`: a thread's time goes on by what a call says that it took."""

    def __init__(self) -> None:
        self.now = 0.0

    def thread_time(self) -> float:
        return self.now

    def calls_of(self, *seconds: float) -> tuple[Callable[[], None], list[float]]:
        """A call that takes so long the first time, so long the second ..., and what it took so far."""
        taken: list[float] = []

        def call() -> None:
            taken.append(seconds[len(taken)])
            self.now += taken[-1]

        return call, taken

    def cost(self, of_size: Callable[[int], float]) -> Callable[[int], Callable[[], None]]:
        return lambda size: self.calls_of(*[of_size(size)] * TRIES)[0]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(timing, "time", fake)
    return fake


def test_neither_sleep_nor_another_thread_counts() -> None:
    def spin() -> None:
        while time.thread_time() < 0.3:
            pass

    def call() -> None:
        thread = threading.Thread(target=spin)
        thread.start()
        thread.join()
        time.sleep(0.1)

    assert cpu_seconds(call) < 0.2


def test_one_slow_try_is_forgiven_and_three_are_not(clock: Clock) -> None:
    call, taken = clock.calls_of(2.0, 0.5)
    assert_quick(call, 1.0)
    assert len(taken) == 2
    call, taken = clock.calls_of(3.0, 1.25, 2.0)
    with pytest.raises(AssertionError, match=r"1\.25 s of CPU time, the limit is 1 s"):
        assert_quick(call, 1.0)
    assert len(taken) == TRIES


def test_a_hopeless_try_is_not_repeated(clock: Clock) -> None:
    call, taken = clock.calls_of(10.5)
    with pytest.raises(AssertionError, match=r"10\.50 s"):
        assert_quick(call, 1.0)
    assert len(taken) == 1


def test_linear_and_cheap_pass_and_quadratic_does_not(clock: Clock) -> None:
    assert_linear(clock.cost(lambda size: size * 1e-3), 10_000)  # 10 s, and 0.5 s for a twentieth
    assert_linear(clock.cost(lambda size: size**2 * 4e-8), 10_000)  # 4 s: too little to tell
    with pytest.raises(AssertionError, match=r"40\.00 s of CPU time, the limit is 10 s"):
        assert_linear(clock.cost(lambda size: size**2 * 4e-7), 10_000)


def test_no_try_is_a_look_up_and_the_collector_rests() -> None:
    seen: list[tuple[int, bool]] = []

    def call() -> None:
        seen.append((canonical.cache_info().currsize, gc.isenabled()))
        canonical(r"\frac12")

    cpu_seconds(call)
    assert seen == [(0, False)] * TRIES
    assert gc.isenabled()
