"""The boxes of a text, found in one pass."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BOX = r"\\(?:boxed|fbox|framebox)(?![A-Za-z])"
_TOKEN = re.compile(
    rf"({_BOX}\s{{0,8}}\{{)|({_BOX}\s{{0,8}}\$?\s?(-?\d[\d.,]{{0,40}}|\\[a-z]?frac\{{[^{{}}]{{1,40}}\}}\{{[^{{}}]{{1,40}}\}}))|\\.|([{{}}])",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Box:
    """The content of one outermost box and where the command starts and ends in the text."""

    text: str
    start: int
    end: int


def find_boxes(text: str) -> tuple[list[Box], bool]:
    """All outermost closed boxes, and whether a box is still open at the end with no closed box after its start."""
    first = text.find("\\boxed")
    others = [at for name in ("\\fbox", "\\framebox") if (at := text.find(name)) >= 0]
    if first < 0 and not others:
        return [], False
    stack: list[tuple[int, int] | None] = []
    boxes: list[Box] = []
    for token in _TOKEN.finditer(text, min(others + ([first] if first >= 0 else []))):
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
