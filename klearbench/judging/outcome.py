"""What one run of a program says: its limits, whether it has to be run again alone, and its status.

CPU time decides, so that a loaded machine changes no verdict: 12 workers on 2 cores moved it by 6 %, wall time tenfold.
A run is killed at 1.2 times the limit; one that ends near the limit is run again alone, and that run decides.
"""

from __future__ import annotations

from klearbench.errors import KlearError
from klearbench.sandbox.base import Limits, RunResult, RunStatus
from klearbench.types import Status, TestInputs

KILL_AT = 1.2
NEAR = 0.9
"""Shares of the time limit: where a run is killed, and from where on it is run again alone."""
STARVED = 0.1
"""A run that its wall limit ended was kept from the CPU, not asleep, if it used this share of its CPU limit."""

SLEEPS = 3
"""A program that slept through so many tests, each for ten times its limit, is not run on those after them: they count
as failed. Without this one sample could hold a slot for the better part of an hour."""

_SHOWN_CHARS = 300
_TRACEBACK = b"Traceback (most recent call last)"
_ENDED = {
    RunStatus.memory_limit: Status.memory_limit,
    RunStatus.output_limit: Status.output_limit,
}


def limits_of(inputs: TestInputs) -> Limits:
    """The limits of each run of a problem: CPU and wall seconds, MiB."""
    limit = inputs.time_limit_s
    return Limits(cpu_s=KILL_AT * limit, wall_s=max(10 * limit, limit + 5), memory_mb=inputs.memory_limit_mb)


def needs_run_alone(result: RunResult, limit_s: float) -> bool:
    """Whether other load may have decided how a run ended (its CPU limit is `limit_s` seconds)."""
    if result.status in (RunStatus.cpu_limit, RunStatus.compile_error):
        return False
    if result.status is RunStatus.wall_limit:
        return result.cpu_s >= STARVED * limit_s
    return NEAR * limit_s <= result.cpu_s <= KILL_AT * limit_s


def status_of(result: RunResult, inputs: TestInputs, *, exit_counts: bool = True) -> Status | None:
    """How a run failed, or None for one whose output is to be compared.

    A program over its time limit was so before it met any other limit: time comes first.

    Args:
        result: the run that decides.
        inputs: mode and time limit.
        exit_counts: False takes `sys.exit(1)` for a normal end, as LiveCodeBench's judge does; an exception never is.
    """
    if result.status is RunStatus.compile_error:
        return Status.compile_error
    if result.status in (RunStatus.cpu_limit, RunStatus.wall_limit) or result.cpu_s > inputs.time_limit_s:
        return Status.time_limit
    if result.status in _ENDED:
        return _ENDED[result.status]
    if result.status is RunStatus.signalled:
        return Status.runtime_error
    if result.exit_code != 0 and (exit_counts or _TRACEBACK in result.stderr):
        return Status.runtime_error
    if inputs.mode == "functional" and not result.value:
        return Status.runtime_error
    return None


def why(result: RunResult, status: Status, inputs: TestInputs) -> str:
    """How a run failed, for a person."""
    if status is Status.time_limit:
        asleep = result.status is RunStatus.wall_limit and result.cpu_s <= inputs.time_limit_s
        used = f"{result.wall_s:.1f} s of wall time" if asleep else f"{result.cpu_s:.2f} s of CPU time"
        return f"{used}, the limit is {limits_of(inputs).wall_s if asleep else inputs.time_limit_s:g} s"
    if status is Status.memory_limit:
        return f"the limit is {inputs.memory_limit_mb} MiB"
    if status is Status.output_limit:
        return f"more than {limits_of(inputs).output_mb} MiB written"
    tail = result.stderr.decode("utf-8", "replace").strip()
    if status is Status.compile_error:
        return _end(tail) if tail else "it does not compile"
    if result.signal is not None:
        ended = f"signal {result.signal}"
    elif result.exit_code:
        ended = f"exit code {result.exit_code}"
    else:
        ended = "no value was returned"
    return f"{ended}: {_end(tail)}" if tail else ended


def _end(text: str) -> str:
    """The end of a text, in one line."""
    return repr(text[-_SHOWN_CHARS:])


def told(error: Exception) -> str:
    """An exception of ours in one line."""
    text = " ".join(str(error).split())[:500]
    return text if isinstance(error, KlearError) and text else f"{type(error).__name__}: {text}"
