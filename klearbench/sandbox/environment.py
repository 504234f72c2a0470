"""The packages that submissions may import (solutions.txt), as a folder that the local sandbox binds read-only.

It is made once a version of Python and of the pins, by pip, and lies in the user's cache. KLEARBENCH_SOLUTIONS names
another folder, which is then taken as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from klearbench.errors import UsageError
from klearbench.sandbox.base import SandboxUnavailable

PINS = Path(__file__).with_name("solutions.txt")
MARKER = "klearbench-solutions.json"
"""Written last into a finished environment: the hash of the pins, and the version of Python that its wheels are for."""
VARIABLE = "KLEARBENCH_SOLUTIONS"


def find_environment() -> Path | None:
    """The environment for this Python and these pins, or None where it was not made yet.

    Raises:
        UsageError: KLEARBENCH_SOLUTIONS names no folder.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_dir():
            raise UsageError(f"{VARIABLE}={named}: no such folder (remedy: name one, or unset it)")
        return Path(named).resolve()
    folder = _folder()
    return folder if _is_complete(folder) else None


def ensure_environment(say: Callable[[str], None]) -> Path:
    """The environment, made first where it is absent (about 10 s, 80 MB). Two processes may do so at once.

    Raises:
        UsageError: KLEARBENCH_SOLUTIONS names no folder.
        SandboxUnavailable: pip could not install the packages, or the cache can't be written.
    """
    found = find_environment()
    if found:
        return found
    folder = _folder()
    say(f"installing the packages of {PINS.name} into {folder}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise SandboxUnavailable(
            f"{folder.parent}: {error.strerror} (remedy: XDG_CACHE_HOME=DIR, or {VARIABLE}=DIR of your own)"
        ) from error
    try:
        _install(made)
        (made / MARKER).write_text(json.dumps(_identity()) + "\n")
        _open_to_all(made)
        _move(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    identity = _identity()
    return base / "klearbench" / f"solutions-{identity['python']}-{identity['pins'][:12]}"


def _identity() -> dict[str, str]:
    return {"python": sys.implementation.cache_tag, "pins": hashlib.sha256(PINS.read_bytes()).hexdigest()}


def _is_complete(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / MARKER).read_text()) == _identity())
    except (OSError, ValueError):
        return False


def _install(folder: Path) -> None:
    # Wheels only: nothing of a package is run while it is installed.
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--target", str(folder), "-r", str(PINS)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        errors = [line for line in said if line.startswith("ERROR")] or said or ["no output"]
        raise SandboxUnavailable(
            f"pip could not install {PINS}: {errors[-1]} (remedy: a working `{sys.executable} -m pip`, "
            f"or {VARIABLE}=DIR for a folder of your own)"
        )


def _open_to_all(folder: Path) -> None:
    """Readable by every user, whatever the umask was: submissions run as users of their own."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _move(made: Path, folder: Path) -> None:
    """Put a finished environment in place, unless another process was first."""
    if _is_complete(folder):
        return
    if folder.exists():
        shutil.rmtree(folder)
    try:
        made.rename(folder)
    except OSError:
        if not _is_complete(folder):
            raise


if __name__ == "__main__":
    ensure_environment(print)
