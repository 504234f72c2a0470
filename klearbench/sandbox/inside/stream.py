"""Frames over a pair of descriptors (a socket, or the standard input and output of a container), and the memory that
they are held in.

A test is a copy of its parents. What other tests and other submissions were given, and what they printed, is therefore
held in pages that a fork leaves out, never in ordinary objects.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence

from . import frames

_FIRST = 1 << 18
_ROOM = 1 << 16


class Pages:
    """Some bytes, `size` of them, in memory that forked children do not get. Each process makes its own.

    One that exists at a fork must live as long as the child does: to let go of it there would unmap what has come into
    the place of its memory.
    """

    def __init__(self) -> None:
        self._map = self._new(_FIRST)
        self.size = 0

    @staticmethod
    def _new(length: int) -> mmap.mmap:
        made = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        made.madvise(mmap.MADV_DONTFORK)
        return made

    def clear(self) -> None:
        """Forget all; what was large goes back to the machine."""
        self.size = 0
        if len(self._map) > 16 * _FIRST:
            self._map = self._new(_FIRST)

    def view(self, start: int = 0, end: int | None = None) -> memoryview:
        """A part of the bytes. To be let go of before more is taken in."""
        return memoryview(self._map)[start : self.size if end is None else end]

    def take(self, fd: int, count: int = _ROOM) -> int:
        """Read up to `count` bytes and add them; how many came.

        Raises:
            BlockingIOError: none are there now.
        """
        if self.size + count > len(self._map):
            old, self._map = self._map, self._new(max(2 * len(self._map), self.size + count))
            self._map[: self.size] = memoryview(old)[: self.size]
        with memoryview(self._map) as whole, whole[self.size : self.size + count] as room:
            came = os.readv(fd, [room])
        self.size += came
        return came

    def keep_end(self, count: int) -> None:
        """Forget all but the last bytes."""
        if self.size > count:
            self._map.move(0, self.size - count, count)
            self.size = count

    def last_line_starts_with(self, text: bytes) -> bool:
        """Whether the last line, an empty one aside, begins so."""
        start = self._map.rfind(b"\n", 0, max(self.size - 1, 0)) + 1
        return self._map[start : min(start + len(text), self.size)] == text


class Stream:
    """Reads and writes whole frames; never reads further than the frame asked for, since processes take turns."""

    def __init__(self, fd_in: int, fd_out: int) -> None:
        self.fd_in, self.fd_out = fd_in, fd_out

    def read_frame(self, pages: Pages) -> bytes:
        """The kind of the next frame, its payload in the pages; CLOSE at the end of the stream."""
        pages.clear()
        while pages.size < frames.HEADER.size:
            if not pages.take(self.fd_in, frames.HEADER.size - pages.size):
                return frames.CLOSE
        with pages.view() as head:
            kind, length = frames.HEADER.unpack(head)
        pages.clear()
        while pages.size < length:
            if not pages.take(self.fd_in, min(length - pages.size, 1 << 20)):
                return frames.CLOSE
        return bytes(kind)

    def write(self, *parts: bytes | memoryview) -> None:
        """All of it. A judge that is gone is no error: there is nobody left to work for."""
        rest: Sequence[bytes | memoryview] = [part for part in parts if len(part)]
        try:
            while rest:
                rest = _after(rest, os.writev(self.fd_out, rest))
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)


def _after(parts: Sequence[bytes | memoryview], written: int) -> Sequence[bytes | memoryview]:
    """What is left of some parts when so many bytes are written."""
    for number, part in enumerate(parts):
        if written < len(part):
            return [memoryview(part)[written:], *parts[number + 1 :]]
        written -= len(part)
    return []
