"""The fenced blocks of a Markdown text, found in one pass, with an eye on Python's triple-quoted strings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from klearbench.judging.thinking import TURN_END

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})([^\n]*)", re.MULTILINE)
_PYTHON = re.compile(r"[{\s]*\.?(?:python|py|pypy|ipython|cpython)(?:[-_]?\d[\d.]*)?(?=[\s:,;{}()=]|\Z)", re.IGNORECASE)
# What matters to a scanner of Python text: strings, comments and the starts of triple-quoted strings.
_OUTSIDE = re.compile(
    r"\"\"\"|'''|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|#[^\n]*",
    re.DOTALL,
)
_INSIDE = {
    '"""': re.compile(r'\\.|"""', re.DOTALL),
    "'''": re.compile(r"\\.|'''", re.DOTALL),
}


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. `text[body:end]` is its content; `start` is where its opening line begins.

    `language` is "python" for every tag that means Python, "" without a tag, else the tag's first word.
    `closed` is False if no closing fence ends it: then a new block, or the text's end, does.
    """

    start: int
    body: int
    end: int
    indent: int
    language: str
    closed: bool


@dataclass(slots=True)
class _Fence:
    start: int
    end: int
    indent: int
    marks: str
    info: str
    opens_python: bool

    def may_close(self, opening: _Fence) -> bool:
        same_kind = self.marks[0] == opening.marks[0] and len(self.marks) >= len(opening.marks)
        return same_kind and not self.info


def find_blocks(text: str) -> list[Block]:
    """All fenced blocks in their order. None lies inside another."""
    fences = _fences(text)
    strings = _Strings(text, fences)
    blocks: list[Block] = []
    opening: _Fence | None = None
    for number, fence in enumerate(fences):
        if opening is None:
            if not (fence.marks[0] == "`" and "`" in fence.info):
                opening = fence
                strings.begin(fence.end)
            continue
        closing = fence.may_close(opening)
        if not closing and not (fence.opens_python and _supersedes(fence, opening)):
            continue
        if _maybe_python(opening) and strings.hide(number):
            continue
        blocks.append(_block(text, opening, fence.start, closed=closing))
        opening = None if closing else fence
        if opening is not None:
            strings.begin(fence.end)
    if opening is not None:
        blocks.append(_block(text, opening, len(text), closed=False))
    return blocks


def _fences(text: str) -> list[_Fence]:
    if "```" not in text and "~~~" not in text:
        return []
    found = []
    for match in _FENCE.finditer(text):
        info = match[3].strip()
        if info.startswith("<") and TURN_END.match(info):
            info = ""
        # In Markdown, text with a backtick after a fence of backticks makes the line inline code.
        python = _PYTHON.match(info) is not None and not (match[2][0] == "`" and "`" in info)
        found.append(_Fence(match.start(), match.end(), len(match[1]), match[2], info, python))
    return found


def _supersedes(fence: _Fence, opening: _Fence) -> bool:
    """Whether a fence tagged as Python begins anew within an open block: always in a block of another language, and
    in one of Python if it would have been long enough to close it."""
    if not opening.opens_python:
        return True
    return fence.marks[0] == opening.marks[0] and len(fence.marks) >= len(opening.marks)


def _maybe_python(opening: _Fence) -> bool:
    return opening.opens_python or not opening.info


def _block(text: str, opening: _Fence, end: int, closed: bool) -> Block:
    language = "python" if opening.opens_python else opening.info.split(maxsplit=1)[0][:30] if opening.info else ""
    return Block(opening.start, min(opening.end + 1, len(text)), end, opening.indent, language, closed)


class _Strings:
    """Follows Python's triple-quoted strings through the block that is open."""

    def __init__(self, text: str, fences: list[_Fence]) -> None:
        self._text = text
        self._fences = fences
        self._at = 0
        self._quote = ""
        self._found = {'"""': 0, "'''": 0}
        # For each fence, where the next one tagged as Python begins; and the last fence without a tag, by kind.
        self._next_python = [len(text)] * len(fences)
        for number in range(len(fences) - 2, -1, -1):
            after = fences[number + 1]
            self._next_python[number] = after.start if after.opens_python else self._next_python[number + 1]
        self._last_bare = {fence.marks[0]: fence.start for fence in fences if not fence.info}

    def begin(self, at: int) -> None:
        """A block begins at this offset, outside of any string."""
        self._at, self._quote = at, ""

    def hide(self, number: int) -> bool:
        """Whether a fence lies inside a string that ends before the next Python block and before a bare fence."""
        fence = self._fences[number]
        self._advance(fence.start)
        if not self._quote:
            return False
        end = self._next_quote(fence.start)
        return -1 < end < min(self._next_python[number], self._last_bare.get(fence.marks[0], -1))

    def _advance(self, upto: int) -> None:
        while self._at < upto:
            pattern = _INSIDE[self._quote] if self._quote else _OUTSIDE
            match = pattern.search(self._text, self._at, upto)
            if match is None:
                self._at = upto
                return
            self._at = match.end()
            if match[0] in _INSIDE:
                self._quote = "" if self._quote else match[0]

    def _next_quote(self, after: int) -> int:
        """Where the open string's quotes come next after an offset, or -1. Asked with growing offsets: linear."""
        found = self._found[self._quote]
        if found != -1 and found < after:
            found = self._found[self._quote] = self._text.find(self._quote, after)
        return found
