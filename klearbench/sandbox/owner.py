"""Labels that tell which judge a container belongs to, and whether that judge is dead."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

_HOST, _PID, _STARTED = "klearbench.host", "klearbench.pid", "klearbench.started"


def identity() -> dict[str, str]:
    """Labels of this process: where its pid counts, its pid, and when it started."""
    return {_HOST: _here(), _PID: str(os.getpid()), _STARTED: _started(os.getpid())}


def dead(labels: Mapping[str, str]) -> bool:
    """Whether the process of these labels is gone for certain; False for one whose pid counts elsewhere."""
    if labels.get(_HOST) != _here() or not labels.get(_PID, "").isdecimal():
        return False
    pid = int(labels[_PID])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return _started(pid) != labels.get(_STARTED)


def _here() -> str:
    """The host and its pid namespace: judges in two containers may share an engine, and pids."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str:
    """Ticks since boot, which tell a reused pid apart; empty for a zombie, "unknown" where there is no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "unknown"
    return "" if stat[0] in "ZX" else stat[19]
