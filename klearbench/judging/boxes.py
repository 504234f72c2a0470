"""The boxes of a text, found in one pass."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BOX = r"\\(?:boxed|fbox|framebox)(?![A-Za-z])"
_TOKEN = re.compile(
    rf"({_BOX}\s{{0,8}}\{{)|({_BOX}\s{{0,8}}\$?\s?(-?\d[\d.,]{{0,40}}|\\[a-z]?frac\{{[^{{}}]{{1,40}}\}}\{{[^{{}}]{{1,40}}\}}))|\\.|([{{}}])",
    re.DOTALL,
)


_SHORT = re.compile(r"\\(?:boxed|fbox)\s?\{((?:[^{}]|\{[^{}]{0,40}\}){1,80})\}")
MAX_BOXES = 200
"""Only so many boxes at the end of a text are read."""


@dataclass(frozen=True, slots=True)
class Box:
    """The content of one outermost box and where the command starts and ends in the text."""

    text: str
    start: int
    end: int


def find_boxes(text: str) -> tuple[list[Box], bool]:
    """All outermost closed boxes, and whether a box is still open at the end with no closed box after its start."""
    first = _first(text)
    if first < 0:
        return [], False
    stack: list[tuple[int, int] | None] = []
    boxes: list[Box] = []
    for token in _TOKEN.finditer(text, first):
        if token[1]:
            stack.append((token.start(), token.end()))
        elif token[2]:
            boxes.append(Box(token[3], token.start(), token.end()))
        elif token[4] == "{":
            stack.append(None)
        elif token[4] == "}" and stack:
            opened = stack.pop()
            if opened is not None:
                start, inner = opened
                while boxes and boxes[-1].start > start:
                    boxes.pop()
                boxes.append(Box(text[inner : token.start()], start, token.end()))
    opened_last = max((entry[0] for entry in stack if entry is not None), default=-1)
    return boxes, opened_last >= 0 and not any(box.start > opened_last for box in boxes[-1:])


def _first(text: str) -> int:
    """Where the first of the last MAX_BOXES boxes starts, or -1."""
    latest = {name: text.rfind(name) for name in ("\\boxed", "\\fbox", "\\framebox")}
    first = -1
    for _ in range(MAX_BOXES):
        name = max(latest, key=lambda n: latest[n])
        if latest[name] < 0:
            break
        first = latest[name]
        latest[name] = text.rfind(name, 0, first)
    return first


def earlier_values(text: str, before: int) -> set[str]:
    """The short contents of the boxes before a place; for texts with more than MAX_BOXES of them."""
    return set(_SHORT.findall(text, 0, before))
