"""Named points at which a test can make this process die, stop, fail or hang: `KLEAR_FAULT=name:when:action`.

`KLEAR_FAULT=sample.append:17:kill` kills the process with SIGKILL at the 17th time `fault("sample.append")` is reached.
`KLEAR_FAULT=judge.compare:=MARK:hang` strikes every time that the text given at the point contains MARK.
Actions: `kill` (SIGKILL), `term` (SIGTERM), `int` (SIGINT), `enospc` (OSError, no space left), `raise` (RuntimeError),
`hang` (an endless loop). Several faults are separated by commas. Without the variable a point costs one dictionary
look-up.

Real crashes come at moments that a test can't time; these points put them where a resume is hardest.
"""

from __future__ import annotations

import errno
import os
import signal
from collections import Counter


def _parse(text: str) -> dict[str, tuple[int | str, str]]:
    plan: dict[str, tuple[int | str, str]] = {}
    for item in filter(None, text.split(",")):
        name, when, action = item.split(":")
        plan[name] = (when[1:] if when.startswith("=") else int(when), action)
    return plan


_PLAN = _parse(os.environ.get("KLEAR_FAULT", ""))
_SEEN: Counter[str] = Counter()


def fault(name: str, text: str = "") -> None:
    """Do what KLEAR_FAULT asks for at this point, if it asks for anything. `text` is what the point works on."""
    if name not in _PLAN:
        return
    _SEEN[name] += 1
    when, action = _PLAN[name]
    if when not in text if isinstance(when, str) else _SEEN[name] != when:
        return
    if action == "enospc":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if action == "raise":
        raise RuntimeError(f"fault point {name}")
    while action == "hang":
        pass
    os.kill(os.getpid(), {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT}[action])
