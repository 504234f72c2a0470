"""What a call costs, for tests that tell linear from quadratic: nothing else on the machine may decide them."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TRIES = 3
HOPELESS = 10
"""A try that takes so many times its limit is not repeated: that is no busy machine, and three would take minutes."""


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No garbage collector, which would walk what other tests left, and no cache, which would make a try a look-up."""
    for name, module in list(sys.modules.items()):
        if name.startswith("klearbench.judging"):
            for value in list(vars(module).values()):
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def cpu_seconds(call: Callable[[], object], limit_s: float = 0.0) -> float:
    """CPU seconds of this thread alone: the least of three tries, or of fewer once one is within the limit."""
    best = float("inf")
    for _ in range(TRIES):
        with _undisturbed():
            start = time.thread_time()
            call()
            best = min(best, time.thread_time() - start)
        if best < limit_s or 0 < HOPELESS * limit_s < best:
            break
    return best


def assert_quick(call: Callable[[], object], limit_s: float) -> None:
    """A call takes less than `limit_s` CPU seconds of this thread at its best.

    A limit lies between the cost on an idle machine, ten times and more above it, and that of the known bug.
    """
    took = cpu_seconds(call, limit_s)
    assert took < limit_s, f"{took:.2f} s of CPU time, the limit is {limit_s:g} s"


def assert_linear(cost: Callable[[int], Callable[[], object]], size: int, floor_s: float = 5.0) -> None:
    """A call for `size` takes less than 100 times one for a twentieth of it, or less than `floor_s`.

    Twenty times the work is 20 times the time where it is linear, and 400 times where it is quadratic.
    """
    small, large = cost(size // 20), cost(size)
    assert_quick(large, max(floor_s, 100 * cpu_seconds(small)))
