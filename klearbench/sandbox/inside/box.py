"""Where a test's input comes from and its output goes to: descriptors 0, 1 and 2 of a submission's process.

A test inherits them when it is forked, so that it need not open or move anything. Standard input is a regular file,
because programs ask for its size, seek in it and map it; standard output and error are pipes. As files in a folder
they can also be opened by name (`/dev/stdin` and so on lead there).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from typing import Protocol

_SEALS = 0x1 | 0x2 | 0x4 | 0x8
_ADD_SEALS = 1033


class Box(Protocol):
    """The files of one submission's tests. `out` and `err` are the ends of the pipes that we read; they never block."""

    out: int
    err: int

    path: str
    """Where the program's source is, as the program sees it."""

    def keep(self, source: memoryview) -> None:
        """In the zygote: lay a program's source down."""
        ...

    def source(self) -> bytes:
        """In the submission's process: the source."""
        ...

    def feed(self, data: memoryview) -> None:
        """Make descriptor 0 a file with this content, and take back what an earlier test did to 0, 1 and 2."""
        ...

    def look(self) -> None:
        """Remember what the place where tests write looks like while it is untouched."""
        ...

    def settle(self) -> bool:
        """After a test: whether nothing of it is left that the next one could find."""
        ...


class FileBox:
    """Files in a folder that tests can only read, `path`; `folder` is a descriptor through which we can write to it.

    `work` is the folder that tests can write to; `clean` empties it, where it is not simply thrown away.
    """

    def __init__(self, folder: int, path: str, work: str, clean: Callable[[], None] | None = None) -> None:
        self._folder, self.path, self._work, self._clean = path, f"{path}/solution.py", work, clean
        self._untouched: tuple[int, ...] = ()
        self.out = self.err = -1
        for name in ("stdout", "stderr"):
            os.mkfifo(name, dir_fd=folder)
        self._stdin, self._source = (
            os.open(name, os.O_RDWR | os.O_CREAT, 0o644, dir_fd=folder) for name in ("stdin", "solution.py")
        )
        self._made_in = folder

    def open(self) -> None:
        """Take descriptors 0 to 2, by the names that tests see."""
        self.out, self.err = (os.open(f"{self._folder}/{n}", os.O_RDONLY | os.O_NONBLOCK) for n in ("stdout", "stderr"))
        _take(os.open(f"{self._folder}/stdin", os.O_RDONLY), 0)
        for place, name in ((1, "stdout"), (2, "stderr")):
            _take(os.open(f"{self._folder}/{name}", os.O_WRONLY), place)
            # A program may open /dev/stdout to write, never to take away what is there for us.
            os.chmod(name, 0o222, dir_fd=self._made_in)
        os.close(self._made_in)

    def _marks(self) -> tuple[int, ...]:
        found = os.stat(self._work)
        return (found.st_ctime_ns, found.st_mtime_ns, found.st_mode, found.st_nlink, found.st_size)

    def keep(self, source: memoryview) -> None:
        _rewrite(self._source, source)

    def source(self) -> bytes:
        return os.pread(self._source, os.fstat(self._source).st_size, 0)

    def feed(self, data: memoryview) -> None:
        _rewrite(self._stdin, data)
        os.lseek(0, 0, os.SEEK_SET)
        _block()

    def look(self) -> None:
        self._untouched = self._marks()

    def settle(self) -> bool:
        if self._marks() == self._untouched:
            return True
        if self._clean is None:
            return False
        self._clean()
        self.look()
        return True


class MemoryBox:
    """Without a folder: the input is a sealed file in memory, the pipes have no names."""

    path = "solution.py"

    def __init__(self) -> None:
        self._source = os.memfd_create("source", os.MFD_CLOEXEC)
        self.out, write_end = os.pipe()
        _take(write_end, 1)
        self.err, write_end = os.pipe()
        _take(write_end, 2)
        os.set_blocking(self.out, False)
        os.set_blocking(self.err, False)

    def keep(self, source: memoryview) -> None:
        _rewrite(self._source, source)

    def source(self) -> bytes:
        return os.pread(self._source, os.fstat(self._source).st_size, 0)

    def feed(self, data: memoryview) -> None:
        fd = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        _write_all(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
        fcntl.fcntl(fd, _ADD_SEALS, _SEALS)
        _take(fd, 0)
        _block()

    def look(self) -> None:
        pass

    def settle(self) -> bool:
        return True


def _block() -> None:
    """The descriptors are shared by all tests: what one set on them must not reach the next."""
    for fd in (0, 1, 2):
        fcntl.fcntl(fd, fcntl.F_SETFL, 0)


def _rewrite(fd: int, data: memoryview) -> None:
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    _write_all(fd, data)


def _take(fd: int, place: int) -> None:
    if fd != place:
        os.dup2(fd, place)
        os.close(fd)


def _write_all(fd: int, data: memoryview) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])
