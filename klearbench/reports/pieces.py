"""Where the texts of a report are kept: in pieces inside of the page, or in files of their own beside it."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

from klearbench.store import disk_full, dumps

PIECE_CHARS = 1 << 18
PIECE_ITEMS = 100
"""A piece of texts is closed when it holds so many characters or items."""
_OURS = re.compile(r"[0-9a-f]{20}\.txt")


def pack(text: str) -> str:
    """Text that is deflated and in base64: no character of it can end an element of the page."""
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 6)).decode("ascii")


def piece(name: str, value: Any) -> bytes:
    """A piece of data as an element of the page; its JSON is ASCII, so that any text comes back as it was."""
    return f'<script type="application/json" id="{name}">{pack(dumps(value))}</script>\n'.encode("ascii")


class Pieces:
    """Items put into pieces `<name>0`, `<name>1`, ... in the order in which they come."""

    def __init__(self, name: str, room: float) -> None:
        """`room`: bytes after which nothing more is kept (`full`), though items are still counted."""
        self.name, self.room = name, room
        self.done: list[bytes] = []
        self.size = self.chars = self._open_chars = 0
        self._open: list[Any] = []

    @property
    def full(self) -> bool:
        return self.size > self.room

    def add(self, item: Any, chars: int) -> tuple[int, int]:
        """Add an item of about so many characters; returns the number of its piece and its place there."""
        if self._open and (len(self._open) >= PIECE_ITEMS or self._open_chars + chars > PIECE_CHARS):
            self.close()
        self._open.append(item)
        self._open_chars += chars
        return len(self.done), len(self._open) - 1

    def close(self) -> None:
        """Close the piece that is open, if one is."""
        if self._open:
            self.done.append(piece(f"{self.name}{len(self.done)}", self._open))
            self.size += len(self.done[-1])
            self.chars += self._open_chars
        self._open, self._open_chars = [], 0


class Linked:
    """Texts in files of their own beside the page, named after what is in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, int] = {}
        """File name -> bytes."""
        self.samples = 0

    def add(self, text: str) -> str:
        """Write a text as UTF-8 with a mark, by which browsers know it; returns its address, relative to the page."""
        raw = text.encode("utf-8-sig", "surrogatepass")
        name = f"{hashlib.sha256(raw).hexdigest()[:20]}.txt"
        self.samples += 1
        if name not in self.files:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_bytes(raw)
            except OSError as error:
                raise disk_full(error, self.folder / name) or error from None
            self.files[name] = len(raw)
        return f"{quote(self.folder.name)}/{name}"

    def tidy(self) -> None:
        """Remove what an earlier report left in the folder; files with names that are not ours stay."""
        if not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            if _OURS.fullmatch(path.name) and path.name not in self.files:
                path.unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
