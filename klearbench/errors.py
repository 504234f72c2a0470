"""Every error a user can meet, and the exit code it ends the command with.

    KlearError                      one clear line, no traceback (unless --debug)
    ├── UsageError            2     bad input: flag, file, row, folder
    │   ├── ConfigError       2     a recipe's key or value
    │   ├── DataError         2     a row of a data file (path and line)
    │   ├── RunConflict       2     the run folder holds another configuration, or is in use
    │   └── DiskFull          2     no space left; what was written before is kept
    ├── IncompleteError       3     judge errors, failed samples
    │   └── EngineDown        3     the server or the engine is down for good; what was finished is kept
    ├── GateFailed            1     a training's checkpoint regressed; its state is saved
    └── Terminated          143     SIGTERM; state is saved and the same command resumes

Anything else that escapes a command is our own crash and ends with 70.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

EXIT_OK = 0
EXIT_GATE_FAILED = 1
EXIT_USAGE = 2
EXIT_INCOMPLETE = 3
EXIT_CRASH = 70
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class KlearError(Exception):
    """Base of all expected errors. `str(error)` is one line: what, where, allowed values, remedy."""

    exit_code = EXIT_USAGE


class UsageError(KlearError):
    """The user's input can't be used as it is."""


class ConfigError(UsageError):
    """A recipe or an option has an unknown key or a value that is not allowed."""


class DataError(UsageError):
    """A data file is missing, corrupt or of another format. `path` is the file."""

    def __init__(self, path: object, message: str, line: int | None = None) -> None:
        self.path = path
        where = f"{path}" if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {message}")


class RunConflict(UsageError):
    """The run folder belongs to another configuration or to a live process."""


class DiskFull(UsageError):
    """The file system of the run is full."""


class IncompleteError(KlearError):
    """The work ended without a result that may be trusted."""

    exit_code = EXIT_INCOMPLETE


class EngineDown(IncompleteError):
    """The engine can make nothing more: its server is down for good, or its process died."""


class GateFailed(KlearError):
    """A checkpoint is worse than the recipe's gate allows, and the recipe says to stop there."""

    exit_code = EXIT_GATE_FAILED


class Terminated(KlearError):
    """SIGTERM arrived."""

    exit_code = EXIT_TERMINATED


def nearest(word: str, allowed: Iterable[str]) -> str:
    """`"; did you mean 'x'?"` for the closest allowed word, or an empty string when none is close."""
    close = difflib.get_close_matches(word, list(allowed), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def unknown_name(what: str, name: str, allowed: Iterable[str]) -> str:
    """One line for a name that is in no table: the nearest one, and all that are allowed."""
    names = sorted(allowed)
    return f"unknown {what} {name!r}{nearest(name, names)} (allowed: {', '.join(names)})"
