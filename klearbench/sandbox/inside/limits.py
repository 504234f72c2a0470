"""Resource limits that a process gives itself for good."""

from __future__ import annotations

import resource

_PLAIN_LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_MSGQUEUE, 0),
    (resource.RLIMIT_MEMLOCK, 0),
    (resource.RLIMIT_NOFILE, 128),
)


def no_more_than(kind: int, value: int) -> tuple[int, int]:
    """Soft and hard value of a limit: as asked for, but never above what is allowed now."""
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    return value, value


def lower_limit(kind: int, value: int) -> None:
    """Set a limit for good."""
    resource.setrlimit(kind, no_more_than(kind, value))


def plain_limits() -> None:
    """What every slot has: no core dumps, no message queues, no locked memory, few open files."""
    for kind, value in _PLAIN_LIMITS:
        lower_limit(kind, value)
