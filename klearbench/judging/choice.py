"""Which of several boxes is the answer: withdrawn and denied ones fall out, a correction or the next step replaces.

Everything here looks at a bounded stretch of text around each box, or at the text between two of them once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from klearbench.judging.boxes import Box
from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN, canonical, words
from klearbench.judging.numbers import exact_number

_LOOK_BACK = 80
_LOOK_AHEAD = 240
_BETWEEN = 4000
"""Between two boxes, only so much after the first and before the second is read."""

_DENIED = re.compile(
    r"(?:\b(?:not|never|neither|nor|rather than|instead of|other than|as opposed to|cannot|excluding|excludes"
    r"|rules? out)|n['’]t)"
    r"(?:\s(?:be|equals?|equal to|the answer|the value|actually|simply|just|really|exactly|possibly|have been|is)){0,3}"
    r"[\s:=$\\(\[*_]{0,8}\Z"
    r"|(?:\\neq?|≠|不是|并非|不等于|不为)[\s:$\\(\[*]{0,8}\Z",
    re.IGNORECASE,
)
_LEAD = (
    r"(?:(?:but|and|no|wait|hmm+|oh|actually|oops|sorry|unfortunately|hold on|however|though|so)\b"
    r"[\s,.!:…—-]{0,5}){0,4}"
)
_RIGHT = r"(?:right|correct|true|possible|valid|the (?:right |correct |final )?answer)"
_WRONG = (
    r"(?:(?:clearly|obviously|actually|definitely|probably|also|simply|just|still)\s)?"
    rf"(?:wrong|incorrect|mistaken|invalid|false|(?:a|my) mistake|an error|not {_RIGHT}|ruled out|excluded"
    r"|an? (?:contradiction|(?:format|formatting|placeholder)\b)|(?:just |only )?an example"
    r"|too (?:large|big|small|high|low))"
)
_CANNOT = (
    r"(?:can['’]?t|cannot|can not|couldn['’]?t|could not) (?:possibly )?be"
    r"(?: (?:right|correct|true|it|possible|valid|the answer)\b|(?=[.!\n]|\Z))"
)
_IS_NOT = rf"(?:isn['’]t|wasn['’]t) {_RIGHT}|(?:doesn['’]t|does not|did not|didn['’]t) work|fails\b"
_IS = r"(?:is|was|seems|looks|turns out to be|must be|should be|would be|may be|might be|has to be)"
_WITHDRAWN_HERE = re.compile(
    rf"[\s$\\)\]*_\"'`]{{0,8}}(?:{_IS}\s{_WRONG}|{_CANNOT}|{_IS_NOT}|\(\s?(?:this is\s)?{_WRONG}\b)", re.IGNORECASE
)
_WITHDRAWN_LATER = re.compile(
    rf"[^.!?\n]{{0,40}}[.!?…]{{0,3}}[\s$*]{{0,6}}{_LEAD}"
    rf"\b(?:that|this|it|which|the answer|my answer|the above|the result)(?:['’]s|\s{_IS})\s{_WRONG}"
    rf"|[^.!?\n]{{0,40}}[.!?…]{{0,3}}[\s$*]{{0,6}}{_LEAD}"
    rf"\b(?:that|this|it|which|the answer|my answer)\s(?:{_CANNOT}|{_IS_NOT})"
    r"|[\s$\\)\]*]{0,6}[.,;!?…—-]{0,3}\s{0,4}(?:but |hmm+,? |oh,? )?"
    r"(?:no,? wait|wait,? no|scratch that|strike that|never ?mind|that['’]s impossible"
    r"|but (?:that|this|it) is impossible)\b",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\b(?:wait|actually|correct(?:ion|ed|ing)|mistake|redo|re-?check(?:ing)?|recount|recalculat\w*|recomput\w*|error|oops"
    r"|sorry|hold on|revis\w*|it should be|should have been|scratch that|not right|not correct"
    r"|incorrect|wrong|on second thought|(?:mis|over|under)(?:count|calculat|read)\w*|overlooked|forgot|missed"
    r"|but the (?:correct|right|true|actual) (?:answer|value|result))\b"
    r"|[—–-]\s?no,|更正|改正|修正|等等|等一下|不对|错了"
    r"|\b(?:erratum|erreur|fehler|falsch|irrtum|moment mal)\b|ошибк|間違|틀렸",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"\b(?:step|next|substitut\w*|which gives|giving|gives|implies|it follows|using this|with this|plugging"
    r"|the (?:sum|total|product|difference|quotient) is|adding|combining|multiplying|in total|altogether"
    r"|finally)\b|然后|接着|最终",
    re.IGNORECASE,
)
_FINAL = re.compile(r"\bfinal\b", re.IGNORECASE)
_THUS = re.compile(r"\b(?:so|then|therefore|thus|hence|now)\b|因此|所以", re.IGNORECASE)
_OFFERS = re.compile(
    r"\b(?:or|either|alternatively|maybe|perhaps|possibly|could also|might|another|oder|vielleicht|ou|peut-être|quizás"
    r"|some (?:would|might|may|people)|(?:second|third|other|alternative|different)"
    r" (?:approach|method|way|option|answer|possibility|interpretation|reading))\b|或|または|또는|или|возможно",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|when|otherwise|unless|assuming|suppose|case)\b|如果|若", re.IGNORECASE)
_ALSO = re.compile(
    r"[\s$\\)\]*]{0,6}(?:(?:is|would be|could be|seems|are)\s(?:also\s|another\s)?"
    r"(?:possible|plausible|another|acceptable|valid too|too)"
    r"|is also|also works|works (?:too|as well)|as well|too)\b",
    re.IGNORECASE,
)
_JOINS = re.compile(r"[\s$,;\\()\[\]、和及与]*+(?:and\b)?[\s$,;\\()\[\]]*+", re.IGNORECASE)
_EQUALS = re.compile(r"(?:[\s$]|\\[()\[\],;])*+(=|≈|\\approx\b)(?:[\s$]|\\[()\[\],;])*+")
_OR_AFTER = re.compile(
    r"[\s$\\)\],]{0,6}\b(?:or|oder|ou)\s(?:maybe\s|perhaps\s|possibly\s|even\s)?[$\\(]{0,3}(-?\d{1,18})(?=[\s$\\)]{0,4}(?:[.!?](?!\d)|\n|\Z))"
    r"|[\s$\\)\],]{0,6}(?:或者?|または|또는|или)\s?[$\\(]{0,3}(-?\d{1,18})(?![\d.,])",
    re.IGNORECASE,
)
_OR_BEFORE = re.compile(
    r"(?:\beither\s[$\\(]{0,3}|[=:]\s?[$\\(]{0,3}|\bis\s[$\\(]{0,3})(-?\d{1,18})[\s$\\),]{1,6}or\s(?:maybe\s|perhaps\s|possibly\s)?[$\\(\[\s]{0,4}\Z",
    re.IGNORECASE,
)
_NAMED = re.compile(r"([A-Za-z]\w{0,2}|\\[a-z]{2,8})\s?=\s?(?=[^=\s])([^=]+)")
_UNIT = re.compile(rf"\s?\{{?{TEXT_OPEN}[^{TEXT_OPEN}{TEXT_CLOSE}]{{0,40}}{TEXT_CLOSE}\}}?\Z")
_OPTION = re.compile(r"\(?([a-j])\)?(?:\s?[.:,)]\s?|\s|\Z)(.*)")
_LONG = 400
"""Longer contents are the same only letter by letter."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The boxes that count together and the sign between them, or none; `hedge` where they differ uncorrected."""

    boxes: tuple[Box, ...]
    hedge: bool = False
    glue: str = " ; "


def denied(text: str, start: int) -> bool:
    """Whether the words right before a box deny it ("not", "rather than", "can't be")."""
    return _DENIED.search(text, max(0, start - _LOOK_BACK), start) is not None


def withdrawn(text: str, end: int) -> bool:
    """Whether the words right after a box take it back ("is wrong", "Wait, that's wrong")."""
    after = text[end : end + _LOOK_AHEAD]
    return _WITHDRAWN_HERE.match(after) is not None or _WITHDRAWN_LATER.match(after) is not None


def offered_beside(text: str, box: Box) -> str:
    """Another whole number that the prose offers right beside a box ("[12] or 13"), or ""."""
    before = _OR_BEFORE.search(text, max(0, box.start - _LOOK_BACK), box.start)
    after = _OR_AFTER.match(text, box.end, box.end + _LOOK_BACK)
    found = (after[1] or after[2]) if after is not None else before[1] if before is not None else ""
    return "" if not found or same_value(found, box.text) else found


def choose(text: str, boxes: list[Box]) -> Choice:
    """The answer among the real boxes of a text, in their order."""
    taken_back = [box for box in boxes if withdrawn(text, box.end)]
    out = set(taken_back)
    kept = [box for box in boxes if box not in out and not denied(text, box.start)]
    # A value that was taken back counts only where it is boxed again later.
    kept = [b for b in kept if not any(t.start > b.start and same_value(t.text, b.text) for t in taken_back)]
    if taken_back and kept and kept[-1].start < taken_back[-1].start and _replaces(text, kept[-1], taken_back[-1]):
        return Choice(())
    if not kept:
        return Choice(())
    last = kept[-1]
    group, glue = [last], ""
    for box, later in zip(reversed(kept[:-1]), reversed(kept[1:]), strict=True):
        sign = _glue(text, box, later)
        if sign != " ; " and sign in (glue or sign) and sign:
            group.insert(0, box)
            glue = sign
        elif same_value(box.text, last.text):
            continue
        elif sign and glue in ("", sign):
            group.insert(0, box)
            glue = sign
        elif _replaces(text, box, later):
            break
        else:
            return Choice((box, last), hedge=True)
    return Choice(tuple(group), glue=glue)


def _glue(text: str, box: Box, later: Box) -> str:
    """How two boxes belong together: " = " or " \\approx " in a chain, " ; " in a list; "" if they do not."""
    if later.start - box.end > 40:
        return ""
    between = text[box.end : later.start]
    equals = _EQUALS.fullmatch(between)
    if equals is not None:
        return " = " if equals[1] == "=" else r" \approx "
    line = text[max(0, box.start - 60) : box.start].rpartition("\n")[2]
    joined = _JOINS.fullmatch(between) is not None and between.strip(" $\n") != "" and not _OFFERS.search(line)
    return " ; " if joined else ""


def _replaces(text: str, earlier: Box, later: Box) -> bool:
    """Whether the later box is a correction of the earlier one, or the next step after it."""
    between = text[earlier.end : later.start]
    if len(between) > 2 * _BETWEEN:
        between = f"{between[:_BETWEEN]}\n{between[-_BETWEEN:]}"
    if _ALSO.match(text[later.end : later.end + 60]):
        return False
    if _CORRECTS.search(between) or withdrawn(text, earlier.end):
        return True
    sentence = re.split(r"[.!?\n]", between[-300:])[-1]
    if _OFFERS.search(between) or _CONDITION.search(sentence):
        return False
    if _STEP.search(between):
        return True
    before = text[max(0, earlier.start - 60) : earlier.start].lower()
    if _FINAL.search(between) and "answer" not in before and "final" not in before:
        return True
    derived = "=" in between or re.search(r"\d\s?(?:[-+*/×]|\\times|\\cdot)\s?\d", between) is not None
    assigned = text[max(0, earlier.start - 8) : earlier.start].rstrip().endswith("=")
    chain = not assigned and re.search(r"=[^,;=]+=", between) is not None
    return derived and (chain or _THUS.search(between) is not None)


def same_value(one: str, other: str) -> bool:
    """Whether two contents are one answer: the same words or number, once with and once without a name, a unit or the
    text of an option."""
    if one == other:
        return True
    if max(len(one), len(other)) > _LONG:
        return False
    a, b = _spelling(one), _spelling(other)
    if a.words == b.words or (a.number is not None and a.number == b.number and a.unit == b.unit):
        return True
    if a.option and a.option == b.option and "" in (a.option_text, b.option_text):
        return True
    return a.bare == b.bare and (not a.name or not b.name) and (not a.unit or not b.unit)


@dataclass(frozen=True, slots=True)
class _Spelling:
    """An answer's words, its number, and its parts: name, value and unit; the letter and text of an option."""

    words: str
    number: Fraction | None
    name: str
    bare: str | Fraction
    unit: str
    option: str
    option_text: str


@lru_cache(maxsize=2048)
def _spelling(text: str) -> _Spelling:
    spelled = canonical(text)
    unit = _UNIT.search(spelled)
    value = spelled if unit is None else spelled[: unit.start()]
    named = _NAMED.fullmatch(value)
    inner = value if named is None else named[2].strip()
    number = exact_number(inner)
    lower = words(text)
    option = _OPTION.fullmatch(lower)
    return _Spelling(
        words=lower,
        number=exact_number(spelled),
        name="" if named is None else named[1],
        bare=(words(inner) or lower) if number is None else number,
        unit="" if unit is None else words(unit[0]) or "?",
        option="" if option is None else option[1],
        option_text="" if option is None else option[2],
    )
