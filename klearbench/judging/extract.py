"""From a completion to the final answer it commits to.

Policy: the text after the last closing thinking tag of the first assistant turn counts; a box is the answer; without
one an explicit commitment counts (`Answer: X` as the last line, `#### X`, `<answer>X</answer>`, "the answer is X").
Numbers in prose never count. Several different values are a hedge, unless the later one clearly replaces the earlier.

Covered: thinking tags of several families, chat turns that run on, nested and unfinished boxes, echoed prompts, code
blocks. Not covered: commitments in prose other than the closing sentences of commitments.py.
Every pattern is linear; a megabyte of hostile text takes well under a second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from klearbench.judging.boxes import (
    MAX_BOXES,
    Box,
    blank_code,
    earlier_values,
    find_boxes,
    is_empty,
    is_example,
    real_boxes,
)
from klearbench.judging.choice import choose, denied, offered_beside, same_value
from klearbench.judging.commitments import committed
from klearbench.judging.thinking import after_thinking

__all__ = ["Extraction", "ExtractionKind", "after_thinking", "extract"]

ExtractionKind = Literal["answer", "no_answer", "truncated", "hedge"]
_MAX_EARLIER = 50


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a completion commits to.

    `text` is the answer for kind "answer" (for "hedge" the differing values, for a person to read), else None.
    `complete` is False when the text ends right inside an unboxed answer: more digits might have followed.
    """

    kind: ExtractionKind
    text: str | None
    detail: str = ""
    complete: bool = True


_NEXT_QUESTION = re.compile(r"\n[ \t]{0,3}(?:Q|Question|Problem)[ \t]{0,2}(?:\d{1,3})?[:.]")
_SIMPLE = re.compile(r"\\boxed\{(-?\d{1,18})\}[$.\s]{0,8}\Z")
_CONTROLS = tuple(map(chr, (*range(9), 11, 12, *range(14, 32), 127)))
_SPECIAL = ("<", "[", "`", "~", "box", "analysis", " or ")
_TURN_MARKS = ("<|", "|>", "</s>", "<eos>", "_of_turn>", "[INST]", "\nHuman", "\n Human", "\nUser", "\n User", "###")
_ENTITY = re.compile(r"&(nbsp|lt|gt|le|ge|minus|times);")
_ENTITIES = {"nbsp": " ", "lt": "<", "gt": ">", "le": "≤", "ge": "≥", "minus": "-", "times": "×"}


def extract(completion: str) -> Extraction:
    """The answer a completion commits to. Never raises; any text is allowed, lone surrogates and NUL included."""
    quick = _quick(completion)
    if quick is not None:
        return Extraction("answer", quick)
    tail, cut = after_thinking(completion)
    if cut:
        return Extraction("truncated", None, cut)
    tail = _before_next_question(_ENTITY.sub(lambda m: _ENTITIES[m[1]], tail))
    prose = blank_code(tail)
    boxes, unfinished = find_boxes(prose)
    if unfinished:
        return Extraction("truncated", None, "the last box is unfinished")
    real = real_boxes(tail, boxes)
    if real:
        return _from_boxes(tail, real)
    # A box in a code block is an example, and so is the sentence around it.
    shown = prose if not boxes and "box" in tail else tail
    return _from_commitment(shown, "only an empty or placeholder box" if boxes else "no committed answer")


def _quick(completion: str) -> str | None:
    """The commonest case, in microseconds: one boxed plain integer at the end, nothing special anywhere.

    Whatever it answers, the rest of `extract` answers too.
    """
    match = _SIMPLE.search(completion, max(0, len(completion) - 40))
    if match is None or not completion.isascii() or _has(completion, _TURN_MARKS) or _has(completion, _CONTROLS):
        return None
    start = completion.rfind("</think>") + 1
    tail = completion[start + 7 if start else 0 : match.start()]
    if (
        _has(tail, _SPECIAL)
        or tail.endswith("\\")
        or is_example(tail, len(tail))
        or denied(tail, len(tail))
        or _NEXT_QUESTION.search(tail)
    ):
        return None
    return match[1]


def _has(text: str, marks: tuple[str, ...]) -> bool:
    for mark in marks:  # noqa: SIM110  (each search is quicker than a step of a generator)
        if mark in text:
            return True
    return False


def _before_next_question(tail: str) -> str:
    """Without further questions that a base model asks itself once it has answered."""
    match = _NEXT_QUESTION.search(tail)
    if match is None:
        return tail
    before = tail[: match.start()]
    boxes = real_boxes(before, find_boxes(blank_code(before))[0])
    return before if boxes or committed(before) is not None else tail


def _from_boxes(tail: str, boxes: list[Box]) -> Extraction:
    """One answer from the real boxes of a text, in their order; a commitment after a withdrawn box counts."""
    chosen = choose(tail, boxes)
    if not chosen.boxes:
        return _from_commitment(tail[boxes[-1].end :], "the last box is withdrawn")
    last = chosen.boxes[-1]
    other = "" if chosen.hedge else _other_value(tail, boxes, last)
    if chosen.hedge or other:
        values = [box.text for box in chosen.boxes]
        return Extraction("hedge", " | ".join([other, *values] if other else values), "different values")
    if len(chosen.boxes) > 1:
        return Extraction("answer", chosen.glue.join(box.text for box in chosen.boxes), "boxes joined")
    return Extraction("answer", last.text)


def _other_value(tail: str, boxes: list[Box], chosen: Box) -> str:
    """A value beside the chosen one that makes it a hedge: offered in the prose next to it, or among boxes too many to
    weigh each."""
    beside = offered_beside(tail, chosen)
    if beside or len(boxes) <= MAX_BOXES // 2:
        return beside
    earlier = [value for value in earlier_values(tail, boxes[0].start) if not is_empty(value)]
    if len(earlier) > _MAX_EARLIER:
        return earlier[0]
    return next((value for value in earlier if not same_value(value, chosen.text)), "")


def _from_commitment(tail: str, otherwise: str) -> Extraction:
    found = committed(tail)
    if found is None:
        return Extraction("no_answer", None, otherwise)
    if found.several:
        return Extraction("hedge", found.text, "several values for one answer")
    return Extraction("answer", found.text, found.how, complete=found.complete)
