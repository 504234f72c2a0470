"""Named points at which a test can make this process die, stop or fail: `KLEAR_FAULT=name:count:action`.

`KLEAR_FAULT=sample.append:17:kill` kills the process with SIGKILL at the 17th time `fault("sample.append")` is reached.
Actions: `kill` (SIGKILL), `term` (SIGTERM), `int` (SIGINT), `enospc` (OSError, no space left), `raise` (RuntimeError).
Several faults are separated by commas. Without the variable a point costs one dictionary look-up.

Real crashes come at moments that a test can't time; these points put them where a resume is hardest.
"""

from __future__ import annotations

import errno
import os
import signal
from collections import Counter


def _parse(text: str) -> dict[str, tuple[int, str]]:
    plan: dict[str, tuple[int, str]] = {}
    for item in filter(None, text.split(",")):
        name, count, action = item.split(":")
        plan[name] = (int(count), action)
    return plan


_PLAN = _parse(os.environ.get("KLEAR_FAULT", ""))
_SEEN: Counter[str] = Counter()


def fault(name: str) -> None:
    """Do what KLEAR_FAULT asks for at this point, if it asks for anything."""
    if name not in _PLAN:
        return
    _SEEN[name] += 1
    count, action = _PLAN[name]
    if _SEEN[name] != count:
        return
    if action == "enospc":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if action == "raise":
        raise RuntimeError(f"fault point {name}")
    os.kill(os.getpid(), {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT}[action])
