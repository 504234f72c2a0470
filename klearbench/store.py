"""Files that survive: append-only JSONL, whole-file writes, content hashes.

Covered: kill -9 at any byte (a half-written last line is dropped at the next start), a full disk (the half line is cut
off at once). Not covered: a file system that reorders what was fsynced.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from klearbench.errors import DataError, DiskFull
from klearbench.faults import fault
from klearbench.types import from_row

R = TypeVar("R")
_FSYNC_EVERY_S = 1.0


def dumps(row: Any) -> str:
    """One JSON line, ASCII only: lone surrogates and NUL survive, and no byte of a line can be half a character."""
    return json.dumps(row, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def disk_full(error: OSError, path: object) -> DiskFull | None:
    """The one-line error for ENOSPC / EDQUOT, or None for any other OSError."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    remedy = "what was finished is kept: free some space, then rerun the same command"
    return DiskFull(f"{path}: no space left on the disk; {remedy}")


def write_atomic(path: Path, data: str | bytes) -> None:
    """Write a whole file or nothing: a temporary file beside it, fsync, rename.

    Raises:
        DiskFull: the old file, if any, is untouched.
    """
    raw = data.encode() if isinstance(data, str) else data
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as handle:
            fault("write_atomic")
            handle.write(raw)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise disk_full(error, path) or error from None


class JsonlWriter:
    """Appends records to a file, one line each, flushed each, fsynced at most once a second.

    A last line without its newline is the trace of a kill and is cut off when the file is opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise disk_full(error, path) or error from None
        self._size = _end_of_last_line(self._fd)
        os.ftruncate(self._fd, self._size)
        self._synced = time.monotonic()

    def append(self, *rows: Mapping[str, Any]) -> None:
        """Append rows, each a whole line or nothing of it. Raises DiskFull with the file cut to whole lines."""
        for row in rows:
            self._write((dumps(row) + "\n").encode("ascii"))
        if time.monotonic() - self._synced > _FSYNC_EVERY_S:
            self._sync()

    def _write(self, line: bytes) -> None:
        try:
            fault(f"append.{self.path.name}")
            if os.environ.get("KLEAR_FAULT"):  # a kill in the middle of a line can only be placed between two writes
                half = len(line) // 2
                _write_all(self._fd, line[:half])
                fault(f"half.{self.path.name}")
                _write_all(self._fd, line[half:])
            else:
                _write_all(self._fd, line)
        except OSError as error:
            os.ftruncate(self._fd, self._size)
            raise disk_full(error, self.path) or error from None
        self._size += len(line)

    def _sync(self) -> None:
        try:
            os.fsync(self._fd)
        except OSError as error:  # some file systems say only now that the disk is full
            raise disk_full(error, self.path) or error from None
        self._synced = time.monotonic()

    def close(self) -> None:
        try:
            self._sync()
        finally:
            os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _end_of_last_line(fd: int) -> int:
    """The offset after the last newline of a file, or 0."""
    end = os.lseek(fd, 0, os.SEEK_END)
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def read_rows(path: Path, *, ours: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a JSONL file with their line numbers (from 1). Blank lines are skipped.

    Args:
        path: the file.
        ours: it is one of our append-only logs, where a last line without a newline is dropped (a kill left it).

    Raises:
        DataError: missing file, or a line that is no JSON object (file and line are named).
    """
    try:
        handle = path.open("rb")
    except FileNotFoundError:
        raise DataError(path, "no such file") from None
    except IsADirectoryError:
        raise DataError(path, "is a folder, a JSONL file was expected") from None
    with handle:
        for number, raw in enumerate(handle, start=1):
            if ours and not raw.endswith(b"\n"):
                return
            if not raw.strip():
                continue
            try:
                row = json.loads(raw, parse_constant=_refuse_constant)
            except UnicodeDecodeError as error:
                raise DataError(path, f"not UTF-8 ({error.reason} at byte {error.start})", number) from None
            except (ValueError, RecursionError) as error:  # ValueError also for an integer of over 4,300 digits
                raise DataError(path, f"not valid JSON ({error})", number) from None
            if not isinstance(row, dict):
                raise DataError(path, f"a JSON object was expected, found {type(row).__name__}", number)
            yield number, row


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number; write null")


def read_records(path: Path, cls: type[R]) -> list[R]:
    """All records of one of our logs; an absent file holds none. Raises DataError with the line of a bad row."""
    return list(scan(path, cls))


def scan(path: Path, cls: type[R]) -> Iterator[R]:
    """Like `read_records`, one record at a time: memory does not grow with the file."""
    if not path.exists():
        return
    for number, row in read_rows(path, ours=True):
        try:
            yield from_row(cls, row)
        except ValueError as error:
            raise DataError(path, str(error), number) from None


def keep_lines(path: Path, keep: Sequence[bool]) -> None:
    """Rewrite one of our logs, whole or not at all, with those of its rows (not blank, not half) that `keep` names.

    Raises:
        DiskFull: the old file is untouched.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with path.open("rb") as old, temporary.open("wb") as new:
            rows = (raw for raw in old if raw.endswith(b"\n") and raw.strip())
            new.writelines(raw for raw, kept in zip(rows, keep, strict=True) if kept)
            new.flush()
            os.fsync(new.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise disk_full(error, path) or error from None


def content_hash(*paths: Path) -> str:
    """SHA-256 over the names and bytes of files (folders: every file below, sorted, hidden ones left out).

    Raises:
        DataError: a path does not exist.
    """
    digest = hashlib.sha256()
    for path in paths:
        names = sorted(p.relative_to(path) for p in path.rglob("*") if p.is_file()) if path.is_dir() else [None]
        for name in names:
            if name is not None and any(part.startswith(".") for part in name.parts):
                continue
            digest.update(os.fsencode(name or path.name) + b"\0")
            try:
                with (path / name if name else path).open("rb") as handle:
                    digest.update(hashlib.file_digest(handle, "sha256").digest())
            except FileNotFoundError:
                raise DataError(path, "no such file or folder") from None
    return digest.hexdigest()


def text_hash(text: str) -> str:
    """SHA-256 of a text; lone surrogates are hashed as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
