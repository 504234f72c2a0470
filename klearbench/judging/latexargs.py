"""The arguments of LaTeX commands that may be written without braces: `\\frac\\pi2`, `\\sqrt\\frac12`, `\\binom52`."""

from __future__ import annotations

import re

_COMMANDS = {"frac": 2, "binom": 2, "sqrt": 1}
_COMMAND = re.compile(r"\\(frac|binom|sqrt)(?![A-Za-z])")
_NAME = re.compile(r"\\[A-Za-z]+")
_SPACE = re.compile(r"\s*")
_INDEX = re.compile(r"\s*(\[[^\[\]]*\])")
_MAX_COMMANDS = 400
_MAX_NESTED = 40


def matching_brace(text: str, start: int) -> int:
    """The index of the brace that closes the one at `start`, or -1."""
    depth = 0
    at = start
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return -1


def brace_arguments(text: str) -> str:
    r"""The text with braces around each argument of \frac, \binom and \sqrt; what can't be read stays as it is.

    An argument is a group, a command with its own arguments, or one character, as in TeX.
    """
    if not _COMMAND.search(text) or len(_COMMAND.findall(text)) > _MAX_COMMANDS:
        return text
    return _Reader(text).all(0, len(text), 0)


class _Reader:
    """Each command is read once by the stretch that holds it, so the work is bounded by depth times length."""

    def __init__(self, text: str) -> None:
        self.text = text

    def all(self, at: int, end: int, nested: int) -> str:
        """A stretch of text with its commands braced."""
        if nested > _MAX_NESTED:
            return self.text[at:end]
        out = []
        while (match := _COMMAND.search(self.text, at, end)) is not None:
            out.append(self.text[at : match.start()])
            written, at = self.command(match, end, nested)
            out.append(written)
        return "".join(out) + self.text[at:end]

    def command(self, match: re.Match[str], end: int, nested: int) -> tuple[str, int]:
        """One command with its arguments, and where it ends; the bare command where an argument is missing."""
        at, out = match.end(), match[0]
        if match[1] == "sqrt" and (index := _INDEX.match(self.text, at, end)) is not None:
            out, at = out + index[1], index.end()
        for _ in range(_COMMANDS[match[1]]):
            found = self.argument(at, end, nested + 1)
            if found is None:
                return match[0], match.end()
            out, at = f"{out}{{{found[0]}}}", found[1]
        return out, at

    def argument(self, at: int, end: int, nested: int) -> tuple[str, int] | None:
        """One argument without its braces, and where it ends."""
        space = _SPACE.match(self.text, at, end)
        at = at if space is None else space.end()
        if at >= end or nested > _MAX_NESTED:
            return None
        char = self.text[at]
        if char == "{":
            close = matching_brace(self.text, at)
            return None if close < 0 or close >= end else (self.all(at + 1, close, nested), close + 1)
        if (match := _COMMAND.match(self.text, at, end)) is not None:
            written, after = self.command(match, end, nested)
            return None if after == match.end() else (written, after)
        if (name := _NAME.match(self.text, at, end)) is not None:
            return name[0], name.end()
        return (char, at + 1) if char.isalnum() else None
