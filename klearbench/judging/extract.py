"""From a completion to the final answer it commits to.

Policy: the text after the last closing thinking tag of the first assistant turn counts; a box is the answer; without
one an explicit commitment counts (`Answer: X` as the last line, `#### X`, `<answer>X</answer>`, "the answer is X").
Numbers in prose never count. Several different values are a hedge, unless the later one clearly replaces the earlier.

Covered: thinking tags of several families, chat turns that run on, nested and unfinished boxes, echoed prompts, code
blocks. Not covered: commitments in prose other than the closing sentences listed here.
Every pattern is linear; a megabyte of hostile text takes well under a second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from klearbench.judging.boxes import MAX_BOXES, Box, earlier_values, find_boxes
from klearbench.judging.choice import choose, denied, same_value
from klearbench.judging.commitments import committed
from klearbench.judging.normalize import is_placeholder, visible
from klearbench.judging.thinking import FINAL_CHANNEL, THINKING_TAG, TURN_END, closes

ExtractionKind = Literal["answer", "no_answer", "truncated", "hedge"]


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


_CUT_TAG = re.compile(r"(?:</[a-z:]{0,12}|\[/[a-z]{0,8}|◁/[a-z]{0,5})\Z", re.IGNORECASE)
_ASSISTANT = re.compile(
    r"<\|im_start\|>\s?assistant\s?|<start_of_turn>model\s?|<\|start_header_id\|>assistant<\|end_header_id\|>\s?"
    r"|<\|assistant\|>\s?|<｜Assistant｜>|\[/INST\]"
)
_NEXT_QUESTION = re.compile(r"\n[ \t]{0,3}(?:Q|Question|Problem)[ \t]{0,2}(?:\d{1,3})?[:.]")
_FENCE = re.compile(r"^[ \t]{0,3}(?:```|~~~).*$", re.MULTILINE)
_CUT_BOX = re.compile(r"\\(?:b|bo|box|boxe|boxed|f|fb|fbo|fbox|framebox)\s{0,8}\Z")
_SIMPLE = re.compile(r"\\boxed\{(-?\d{1,18})\}[$.\s]{0,8}\Z")
_EXAMPLE = re.compile(
    r"\byour\b[^.!?\n]{0,30}\b(?:answer|result|solution)\b[^.!?\n]{0,40}\b(?:within|inside|in|as|using|with)\W{0,4}\Z"
    r"|\b(?:for example|for instance|e\.g\.|such as|example|(?:in|of|use) the (?:form|format)|format)[^.!?\n\w]{0,8}\Z"
    r"|\b(?:please|remember|make sure)\b[^!?\n]{0,80}\b(?:in|within|inside|as|using|with|like)\W{0,4}\Z",
    re.IGNORECASE,
)


def extract(completion: str) -> Extraction:
    """The answer a completion commits to. Never raises; any text is allowed, lone surrogates and NUL included."""
    quick = _quick(completion)
    if quick is not None:
        return Extraction("answer", quick)
    tail, cut = after_thinking(completion)
    if cut:
        return Extraction("truncated", None, cut)
    tail = _before_next_question(tail)
    boxes, unfinished = find_boxes(_blank_code(tail))
    if unfinished or _CUT_BOX.search(tail, max(0, len(tail) - 24)):
        return Extraction("truncated", None, "the last box is unfinished")
    real = [
        b for b in boxes if not is_placeholder(b.text) and not _EXAMPLE.search(tail, max(0, b.start - 160), b.start)
    ]
    if real:
        return _from_boxes(tail, real)
    return _from_commitment(tail, "only an empty or placeholder box" if boxes else "no committed answer")


def _quick(completion: str) -> str | None:
    """The commonest case, in microseconds: one boxed plain integer at the end, no tag after it, nothing special."""
    match = _SIMPLE.search(completion, max(0, len(completion) - 40))
    if match is None or not completion.isascii() or "<|" in completion or "\x1b" in completion:
        return None
    start = completion.rfind("</think>") + 1
    tail = completion[start + 7 if start else 0 : match.start()]
    if any(mark in tail for mark in ("<", "[", "`", "~", "box", "\nHuman:", "\nUser:", "###")):
        return None
    if "</s>" in completion or "[INST]" in completion or "<eos>" in completion or "_of_turn>" in completion:
        return None
    return None if _EXAMPLE.search(tail, max(0, len(tail) - 160)) or denied(tail, len(tail)) else match[1]


def after_thinking(completion: str) -> tuple[str, str]:
    """The text that counts, and why it was cut ("" if it was not).

    It is the part of the first assistant turn after the last closing thinking tag. A turn that ends inside its thinking
    has none.
    """
    text = visible(completion)
    if "<|channel|>" in text:
        final = FINAL_CHANNEL.search(text)
        if final is None:
            ended = "<|end|>" in text or "<|return|>" in text
            return "", "" if ended else "the thinking channel is unclosed"
        text = text[final.end() :]
    else:
        text = _own_turn(text)
    end = TURN_END.search(text)
    if end is not None and text[: end.start()].strip():
        text = text[: end.start()]
    last_close, open_after = 0, False
    for tag in THINKING_TAG.finditer(text):
        if closes(tag[0]):
            last_close, open_after = tag.end(), False
        else:
            open_after = True
    if open_after:
        return "", "the thinking is unclosed"
    tail = text[last_close:]
    cut = _CUT_TAG.search(tail, max(0, len(tail) - 16))
    if cut is not None and last_close == 0 and _is_tag_start(cut[0]):
        return "", "the thinking is unclosed (its closing tag is cut)"
    return tail, ""


def _is_tag_start(text: str) -> bool:
    name = text[2:].lower()
    return any(tag.startswith(name) for tag in ("think", "thinking", "thought", "reasoning", "analysis", "seed:think"))


def _own_turn(text: str) -> str:
    """Without an echoed prompt: what follows the first assistant header, if the text begins with a chat header."""
    header = _ASSISTANT.search(text)
    if header is None:
        return text
    before = text[: header.start()].strip()
    echoed = not before or before.startswith(
        ("<|im_start|>", "<start_of_turn>", "<|start_header_id|>", "<|user|>", "[INST]", "<s>")
    )
    return text[header.end() :] if echoed else text


def _before_next_question(tail: str) -> str:
    """Without further questions that a base model asks itself once it has answered."""
    match = _NEXT_QUESTION.search(tail)
    if match is None:
        return tail
    before = tail[: match.start()]
    return before if find_boxes(before)[0] or committed(before) is not None else tail


def _blank_code(text: str) -> str:
    """The text with fenced code blocks blanked out, offsets kept."""
    if "```" not in text and "~~~" not in text:
        return text
    marks = [m.start() for m in _FENCE.finditer(text)]
    out, at = [], 0
    for opening, closing in zip(marks[::2], [*marks[1::2], len(text)], strict=False):
        out += [text[at:opening], " " * (closing - opening)]
        at = closing
    return "".join(out) + text[at:]


def _from_boxes(tail: str, boxes: list[Box]) -> Extraction:
    """One answer from the real boxes of a text, in their order; a commitment after a withdrawn box counts."""
    chosen = choose(tail, boxes)
    if chosen.hedge:
        return Extraction("hedge", " | ".join(box.text for box in chosen.boxes), "different boxes")
    if len(boxes) > MAX_BOXES // 2 and chosen.boxes:
        for value in earlier_values(tail, boxes[0].start):
            if not same_value(value, chosen.boxes[-1].text) and not is_placeholder(value):
                return Extraction("hedge", f"{value} | {chosen.boxes[-1].text}", "different boxes, too many to weigh")
    if len(chosen.boxes) > 1:
        return Extraction("answer", " ; ".join(box.text for box in chosen.boxes), "boxes joined as a list")
    if chosen.boxes:
        return Extraction("answer", chosen.boxes[0].text)
    return _from_commitment(tail[boxes[-1].end :], "the last box is withdrawn")


def _from_commitment(tail: str, otherwise: str) -> Extraction:
    found = committed(tail)
    if found is None:
        return Extraction("no_answer", None, otherwise)
    if found.several:
        return Extraction("hedge", found.text, "several values for one answer")
    return Extraction("answer", found.text, found.how, complete=found.complete)
