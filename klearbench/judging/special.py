"""Answers that are no expressions: option letters, clock times, ratios, numerals in a base, congruences, words."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import cast

from klearbench.judging.expressions.compare import equal as same
from klearbench.judging.expressions.nodes import Node, Num
from klearbench.judging.expressions.tree import times
from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN
from klearbench.judging.numbers import exact_number
from klearbench.judging.values import read, squash
from klearbench.judging.wording import text_equal

CHOICE_AND_VALUE = r"\(([A-J])\)\s*(\S.*)"
_T = f"[{TEXT_OPEN}{TEXT_CLOSE}]"
_LETTER = re.compile(r"\(?\s?([A-J])\s?\)?")
_CHOICE = re.compile(
    r"(?i:option|choice|answer|graph|figure|diagram|statement|选项|答案|选)?\s?(?:\(\s?([A-Ja-j])\s?\)\s?(?:[.:]\s?)?(.*)|([A-Ja-j])(?:\s?[.):]\s?|\s[-=]\s|\s?\Z)(.*))",
    re.DOTALL,
)
_CONFIRMED = re.compile(
    r"\sis\s(?:the\s)?(?:correct|right|answer)(?:\s(?:answer|option|choice|one))?[.!]?\Z", re.IGNORECASE
)
_OPTION_DENIED = re.compile(
    r"\W*(?:(?:is|are|was|isn't|aren't|wasn't|can't|cannot|can|could|does|doesn't|do|fails?|seems?|looks?|should|must"
    r"|would|may|might|has|and|or|nor|not)\b(?!\s(?:the\s)?(?:correct|right|answer)\b)"
    r"(?!\senough|\sdetermin|\spossible to)"
    r"|(?:wrong|incorrect|impossible|excluded|eliminated|ruled out|no)\W*\Z)",
    re.IGNORECASE,
)
_ARRIVES = re.compile(r"\A(?:(?!not\b|before\b|after\b|until\b|about\b|around\b)[A-Za-z']+\s){1,8}(?:at|is)\s(?=\d)")
_TIME = re.compile(r"(\d{1,2})\s?:\s?(\d{2})(?:\s?:\s?(\d{2}))?\s?(a\.?\s?m\.?|p\.?\s?m\.?)?", re.IGNORECASE)
_BASE = re.compile(r"([0-9A-F]{1,200})\s?_\s?\{?\s?(\d{1,2}|[a-z]{3,12})\s?\}?", re.IGNORECASE)
_BASE_WORDS = {
    **{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10},
    **{"eleven": 11, "twelve": 12, "sixteen": 16, "binary": 2, "octal": 8, "hex": 16},
}
_MODULUS = re.compile(
    r"(?:[A-Za-z]\s?(?:\\equiv|=)\s?)?(-?\d{1,60})\s?\(?\s?(?:\\pmod|\\bmod|\\mod|mod)\s?\{?\s?\(?(\d{1,60})\)?\s?\}?\s?\)?"
)


def special_equal(gold: str, answer: str) -> bool | None:
    """True or False when the reference is of a special kind, None when it is a number or an expression."""
    for check in _CHECKS:
        verdict = check(gold, answer)
        if verdict is not None:
            return verdict
    return None


def _option(gold: str, answer: str) -> bool | None:
    bare = re.sub(_T, "", gold).strip()
    alone = _LETTER.fullmatch(bare)
    with_value = re.fullmatch(CHOICE_AND_VALUE, bare)
    if alone is None and with_value is None:
        return None
    want = alone[1] if alone is not None else (with_value or [""])[1]
    said = _CHOICE.fullmatch(_CONFIRMED.sub("", re.sub(_T, " ", answer).strip()))
    if said is None:
        return False if alone is not None else None
    rest = said[2] or said[4] or ""
    if _OPTION_DENIED.match(rest):
        return False
    if re.match(r"\W*(?:or|and|/|,)\W*\(?[A-J]\b", rest, re.IGNORECASE) or re.match(r"[A-J]\b", rest.strip()):
        return False
    return (said[1] or said[3]).upper() == want


def _clock(text: str) -> re.Match[str] | None:
    """A clock time; a full hour may leave its minutes out where it says a.m. or p.m."""
    text = re.sub(r"\s+", " ", re.sub(_T, " ", text)).strip()
    text = _ARRIVES.sub("", text)
    return _TIME.fullmatch(re.sub(r"\A(\d{1,2})(?=\s?[ap]\.?\s?m\.?\Z)", r"\1:00", text, flags=re.IGNORECASE))


def _time(gold: str, answer: str) -> bool | None:
    g = _clock(gold)
    if g is None or (g[3] and not g[4]) or (not g[4] and int(g[2]) > 59) or int(g[1]) > 24:
        return None
    a = _clock(answer)
    if a is None:
        return False
    one, other = (_moment(m) for m in (g, a))
    same_face = (one[0] % 12, *one[1:3]) == (other[0] % 12, *other[1:3]) and not (one[3] and other[3])
    return one[:3] == other[:3] or (same_face and max(int(g[1]), int(a[1])) <= 12)


def _moment(match: re.Match[str]) -> tuple[int, int, int, str]:
    """Hour of the day, minute, second, and "a" or "p" where it is said; without it the hour stays as written."""
    hour, minute, second = (int(x or 0) for x in match.group(1, 2, 3))
    half = (match[4] or "")[:1].lower()
    return hour % 12 + 12 * (half == "p") if half else hour, minute, second, half


def _ratio(gold: str, answer: str) -> bool | None:
    """Ratios of two or more terms, up to a common factor; a quotient answers a ratio of two."""
    if ":" not in gold or re.search(r"\\\{|[|]", gold):
        return None
    want, have = _terms(gold), _terms(answer)
    if want is None or have is None or squash(gold) == squash(answer):
        return squash(gold) == squash(answer)
    if len(have) == 1 and len(want) == 2:
        have = [*have, Num(Fraction(1))]
    if len(have) != len(want) or any(same(term, Num(Fraction(0))) for term in (*want, *have)):
        return False
    return all(same(times(a, d), times(b, c)) for (a, b), (c, d) in pairwise(zip(want, have, strict=True)))


def _terms(text: str) -> list[Node] | None:
    """The terms of a ratio; None where one can't be read."""
    found = [read(part.strip()) for part in re.split(r":|\bto\b", re.sub(_T, " ", text))]
    return None if None in found else cast(list[Node], found)


def _base(gold: str, answer: str) -> bool | None:
    g, a = _numeral(gold), _numeral(answer)
    if g is None:
        value = exact_number(gold)
        return None if value is None or a is None or "_" not in answer else value == a[0]
    if a is not None:
        return a[0] == g[0]
    bare = re.sub(rf"{_T}|\s", "", answer)
    return re.fullmatch(r"[0-9A-Fa-f]+", bare) is not None and bare.lstrip("0").upper() == g[1].lstrip("0").upper()


def _numeral(text: str) -> tuple[int, str] | None:
    text = re.sub(r"\s?\(?\s?_?\{?\s?(?:in\s)?base[\s-]*(\w+)\s?\}?\)?$", r"_{\1}", re.sub(_T, " ", text).strip())
    match = _BASE.fullmatch(re.sub(r"^\((\w+)\)", r"\1", re.sub(r"(?<!\d)\s|\s(?!\d)", "", text)))
    if match is None:
        return None
    base = int(match[2]) if match[2].isdigit() else _BASE_WORDS.get(match[2].lower(), 0)
    if not 2 <= base <= 36:
        return None
    try:
        return int(match[1], base), match[1]
    except ValueError:
        return None


def _congruence(gold: str, answer: str) -> bool | None:
    g = _MODULUS.fullmatch(re.sub(_T, "", gold).strip())
    if g is None:
        return None
    a = _MODULUS.fullmatch(re.sub(_T, "", answer).strip())
    if a is None:
        return False
    return int(g[2]) == int(a[2]) and int(g[2]) > 0 and (int(g[1]) - int(a[1])) % int(g[2]) == 0


_CHECKS: tuple[Callable[[str, str], bool | None], ...] = (_option, _time, _ratio, _base, _congruence, text_equal)
