"""Where a test's input comes from and its output goes to.

Standard input is a regular file, because programs ask for its size, seek in it and map it; standard output and error
are pipes. As files in /box they can also be opened by their names (`/dev/stdin` and so on lead there).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from typing import Protocol

_SEALS = 0x1 | 0x2 | 0x4 | 0x8
_ADD_SEALS = 1033
Pipe = tuple[int, int]
"""The end that is read (it never blocks) and the end that is written."""


class Box(Protocol):
    """The files of one submission's tests."""

    def source(self, code: bytes) -> str:
        """Lay the program's source down; its path as the program sees it."""
        ...

    def input(self, data: bytes) -> int:
        """A file with this content, opened for reading."""
        ...

    def pipe(self, name: str) -> Pipe:
        """A pipe that the program may also open as /dev/NAME."""
        ...

    def settle(self) -> bool:
        """After a test: whether nothing of it is left that the next one could find."""
        ...


class FileBox:
    """Files in a folder that tests can only read. `clean` empties the folder they can write to, where that is needed."""

    def __init__(self, folder_fd: int, path: str, clean: Callable[[], None] | None = None) -> None:
        self._fd, self._path, self._clean = folder_fd, path, clean
        self._watched = ""
        self._untouched: tuple[int, ...] = ()
        self._write("stdin", b"")
        for name in ("stdout", "stderr"):
            if name not in os.listdir(folder_fd):
                os.mkfifo(name, 0o666, dir_fd=folder_fd)
                os.chmod(name, 0o666, dir_fd=folder_fd)

    def _write(self, name: str, data: bytes) -> None:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=self._fd)
        _write_all(fd, data)
        os.close(fd)

    def watch(self, folder: str) -> None:
        """Name the folder that tests can write to, while it is untouched."""
        self._watched = folder
        self._untouched = self._marks()

    def _marks(self) -> tuple[int, ...]:
        found = os.stat(self._watched)
        return (found.st_ctime_ns, found.st_mtime_ns, found.st_mode, found.st_nlink)

    def source(self, code: bytes) -> str:
        self._write("solution.py", code)
        return f"{self._path}/solution.py"

    def input(self, data: bytes) -> int:
        self._write("stdin", data)
        return os.open(f"{self._path}/stdin", os.O_RDONLY)

    def pipe(self, name: str) -> Pipe:
        path = f"{self._path}/{name}"
        read_end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        return read_end, os.open(path, os.O_WRONLY)

    def settle(self) -> bool:
        if self._marks() == self._untouched:
            return True
        if self._clean is None:
            return False
        self._clean()
        self._untouched = self._marks()
        return True


class MemoryBox:
    """Without a folder: the input is a sealed file in memory, the pipes have no names."""

    def source(self, code: bytes) -> str:
        del code
        return "solution.py"

    def input(self, data: bytes) -> int:
        fd = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        _write_all(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
        fcntl.fcntl(fd, _ADD_SEALS, _SEALS)
        return fd

    def pipe(self, name: str) -> Pipe:
        del name
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        return read_end, write_end

    def settle(self) -> bool:
        return True


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
