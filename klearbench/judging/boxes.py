"""The boxes of a text, found in one pass, and which of them hold no answer: placeholders, examples, code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from klearbench.judging.normalize import is_placeholder, words

MAX_BOXES = 200
"""Only so many boxes at the end of a text are weighed."""

_NAME = r"\\(?:boxed|fbox|framebox)(?![A-Za-z])"
_BARE = r"-?\d[\d.,]{0,40}|\\[a-z]?frac(?:\{[^{}]{1,40}\}\{[^{}]{1,40}\}|\s?\d\s?\d)"
# A backslash that escapes the backslash of a box, as a JSON string has it, is passed over.
_TOKEN = re.compile(
    rf"({_NAME}\s{{0,8}}\{{)|({_NAME}\s{{0,8}}\$?\s?({_BARE}))|\\(?!{_NAME}).|([{{}}])",
    re.DOTALL,
)
_SHORT = re.compile(r"\\(?:boxed|fbox)\s?\{((?:[^{}]|\{[^{}]{0,40}\}){1,80})\}")
_CUT_COMMAND = re.compile(r"\\(?:b|bo|box|boxe|boxed|f|fb|fbo|fbox|fr|fra|fram|frame|frameb|framebo|framebox)\s{0,8}\Z")
_PROSE = re.compile(r"[A-Za-z]{2,}\s|\n")
_BLANK = re.compile(r"\\(?:[hv]?phantom|[hv]space\*?)\s?\{[^{}]*\}|\\(?:hfill|,|;|!|:|\s)|\\?_|~|\$|\.\s?\.\s?\.")
_STANDS_FOR = re.compile(
    r"[\[<(]?(?:(?:insert|put|place|write|enter|your|the|my|final|numeric|numerical|correct|actual)\s){1,4}"
    r"(?:answer|result|value)(?:\s(?:goes|here|in|this|form|box)){0,3}[\])>]?"
)
_FENCE = re.compile(r"^[ \t>]{0,12}(?:(?:[-*+]|\d{1,2}[.)])[ \t]{1,4})?(`{3,}+|~{3,}+)([^`\n]*)$", re.MULTILINE)
_EXAMPLE = re.compile(
    r"\byour\b[^.!?\n]{0,30}\b(?:answer|result|solution|response)\b[^.!?\n]{0,40}"
    r"\b(?:within|inside|in|as|using|with)\W{0,4}\Z"
    r"|\b(?:put|present|write|state|give|return|enclose|format) (?:the|my|a|its) (?:final )?(?:answer|result|response)"
    r" (?:within|inside|in|as|using|with|like)\W{0,4}(?:(?:the|this) (?:form|format)\W{0,4})?\Z"
    r"|\b(?:for example|for instance|e\.g\.|such as|example|(?:in|of|use) the (?:form|format)|format)[^.!?\n\w]{0,8}\Z"
    r"|\b(?:for example|for instance|e\.g\.)[^.!?\n]{0,60}\b(?:writes?|puts?|enters?|boxe?s?|say)\W{0,4}\Z"
    r"|\b(?:please|remember|make sure)\b[^!?\n]{0,80}\b(?:in|within|inside|as|using|with|like)\W{0,4}\Z",
    re.IGNORECASE,
)
_LOOK_BACK = 160
_SHORT_CONTENT = 60


@dataclass(frozen=True, slots=True)
class Box:
    """The content of one outermost box, or of another mark of an answer, and where that starts and ends in the text."""

    text: str
    start: int
    end: int


def find_boxes(text: str) -> tuple[list[Box], bool]:
    """The outermost closed boxes, the last MAX_BOXES at least, and whether the text ends inside a box or its command.

    A box that was left open counts as given up where a later box stands after some prose.
    """
    cut = _CUT_COMMAND.search(text, max(0, len(text) - 24)) is not None
    first = _first(text)
    if first < 0:
        return [], cut
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
                boxes.append(Box(_unescaped(text, start, text[inner : token.start()]), start, token.end()))
    return boxes, cut or _ends_inside(text, stack, boxes)


def _ends_inside(text: str, stack: list[tuple[int, int] | None], boxes: list[Box]) -> bool:
    """Whether the outermost box that no later box replaces was left open."""
    opened = [entry for entry in stack if entry is not None]
    if not opened:
        return False
    last = boxes[-1].start if boxes else -1
    if opened[-1][0] > last:
        return True
    first_after = next((box for box in boxes if box.start > opened[-1][0]), boxes[-1])
    return _PROSE.search(text, opened[-1][1], first_after.start) is None


def _unescaped(text: str, start: int, content: str) -> str:
    """The content of a box, with single backslashes where the box's own command has two, as in a JSON string."""
    doubled = start > 0 and text[start - 1] == "\\" and text[max(0, start - 2) : start] != "\\\\"
    return content.replace("\\\\", "\\") if doubled else content


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


def real_boxes(text: str, boxes: list[Box]) -> list[Box]:
    """Those that hold an answer. One in inline code counts only where no other box does."""
    real = [box for box in boxes if not is_empty(box.text) and not is_example(text, box.start)]
    outside = [box for box in real if text[box.start - 1 : box.start] != "`" or text[box.end : box.end + 1] != "`"]
    return outside or real


def is_empty(content: str) -> bool:
    """Whether a content is blank or only stands for an answer."""
    if len(content) >= _SHORT_CONTENT:
        return False
    blank = is_placeholder(content) or is_placeholder(_BLANK.sub(" ", content))
    return blank or _STANDS_FOR.fullmatch(words(content)) is not None


def is_example(text: str, start: int) -> bool:
    """Whether the words right before a box say that it shows the format, or are an echoed instruction."""
    return _EXAMPLE.search(text, max(0, start - _LOOK_BACK), start) is not None


def blank_code(text: str) -> str:
    """The text with fenced code blocks blanked out, offsets kept. A block that stays open runs to the end."""
    if "```" not in text and "~~~" not in text:
        return text
    out, at, opened = [], 0, None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2].strip():
            out += [text[at : opened.start()], " " * (fence.end() - opened.start())]
            at, opened = fence.end(), None
    if opened is not None:
        out += [text[at : opened.start()], " " * (len(text) - opened.start())]
        at = len(text)
    return "".join(out) + text[at:]
