"""Exact numbers written in plain text or LaTeX, as Fractions. Nothing is evaluated; sizes are bounded."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

MAX_DIGITS = 4000
MAX_EXPONENT = 4000

_PLAIN_INT = re.compile(r"[+-]?\d{1,4000}")
_NUM = r"[1-9]\d{0,2}(?:,\d{3}){1,400}(?!\d)(?:\.\d{1,2000})?|\d{1,4000}(?:\.\d{0,4000})?|\.\d{1,4000}"
_ARG = rf"(?:\{{\s?([+-]?(?:{_NUM}))\s?\}}|\s?(\d))"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?)\s?(?P<num>{_NUM})(?:\s?(?:\\times|\\cdot|\*|x|X)\s?10\s?\^\s?(?P<exp>\{{?\s?[+-]?\s?\d{{1,9}}\s?\}}?)|[eE](?P<e>[+-]?\d{{1,9}}))?"
)
_LOOSE_E = re.compile(r"[+-]?\s?(?!1e)\d{1,60}e[+-]\d{1,3}")
"""`2e-3` may be 2e - 3 as well as 0.002: it is no number here."""
_TEN = re.compile(r"(?P<sign>[+-]?)10\s?\^\s?(?P<exp>\{?\s?[+-]?\s?\d{1,9}\s?\}?)")
_FRAC = re.compile(rf"(?P<sign>[+-]?)\s?(?P<whole>\d{{1,60}}\s?)?\\frac\s?{_ARG}\s?{_ARG}")
_SLASH = re.compile(
    rf"(?P<sign>[+-]?)\s?(?:(?P<whole>\d{{1,60}})\s)?[({{]?\s?(?P<top>[+-]?(?:{_NUM}))\s?[)}}]?\s?(?:/|\\over|\\div)\s?[({{]?\s?(?P<bottom>[+-]?(?:{_NUM}))\s?[)}}]?"
)
_REPEATING = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>\d{0,60})\.(?P<fixed>\d{0,60})\\(?:overline|bar)\s?\{?\s?(?P<cycle>\d{1,60})\s?\}?"
)
_DOTTED = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>\d{0,60})\.(?P<fixed>\d{0,60})\\dot\s?\{?(?P<first>\d)\}?(?:(?P<middle>\d{0,60})\\dot\s?\{?(?P<last>\d)\}?)?"
)

_ELLIPSIS = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>\d{1,60})\.(?P<fixed>\d{0,40}?)(?P<cycle>\d{1,12}?)(?P=cycle)+(?:\.\.\.|\s?\\ldots)\s?"
)


def exact_number(text: str) -> Fraction | None:
    """The value of a number: integer, decimal, a/b, \\frac, mixed, scientific or repeating; None for anything else.

    Expects the spelling of `normalize.canonical`. Thousands separators count only in well-formed groups. Numbers of
    more than MAX_DIGITS digits, or with an exponent beyond MAX_EXPONENT, are None.
    """
    if _PLAIN_INT.fullmatch(text):
        return Fraction(int(text))
    text = text.strip()
    if len(text) > 2 * MAX_DIGITS:
        return None
    while text.startswith("(") and text.endswith(")") and text.count("(") == 1 and "," not in text:  # (1,200): a pair
        text = text[1:-1].strip()
    text = re.sub(r"^([+-])\s+", r"\1", text)
    if text.startswith("-("):
        inner = exact_number(text[1:]) if text.endswith(")") and text.count("(") == 1 else None
        return None if inner is None else -inner
    for pattern, read in _READERS:
        match = pattern.fullmatch(text)
        if match is not None:
            return read(match)
    return None


def loose_number(text: str) -> Fraction | None:
    """Like `exact_number`, `2e-3` read as 0.002: for an answer to a reference that is a number."""
    value = exact_number(text)
    if value is None and _LOOSE_E.fullmatch(text.strip()):
        return Fraction(text.replace(" ", ""))
    return value


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", "") if not text.endswith(".") else text.replace(",", "")[:-1])


def _scaled(value: Fraction, exponent: str) -> Fraction | None:
    power = int(exponent.strip("{ }").replace(" ", ""))
    if abs(power) > MAX_EXPONENT:
        return None
    return value * Fraction(10**power) if power >= 0 else value / Fraction(10**-power)


def _signed(match: re.Match[str], value: Fraction | None) -> Fraction | None:
    return None if value is None else -value if match["sign"] == "-" else value


def _number(match: re.Match[str]) -> Fraction | None:
    exponent = match["exp"] or match["e"]
    if _LOOSE_E.fullmatch(match[0]):
        return None
    value = _decimal(match["num"])
    return _signed(match, value if exponent is None else _scaled(value, exponent))


def _ten(match: re.Match[str]) -> Fraction | None:
    return _signed(match, _scaled(Fraction(1), match["exp"]))


def _ratio(match: re.Match[str], top: str, bottom: str) -> Fraction | None:
    below = _decimal(bottom)
    if below == 0:
        return None
    part = _decimal(top) / below
    if match["whole"] is not None and (part < 0 or part >= 1 or "." in top + bottom):
        return None
    return _signed(match, part + int(match["whole"] or 0))


def _frac(match: re.Match[str]) -> Fraction | None:
    return _ratio(match, match[3] or match[4], match[5] or match[6])


def _slash(match: re.Match[str]) -> Fraction | None:
    return _ratio(match, match["top"], match["bottom"])


def _cycle(whole: str, fixed: str, cycle: str) -> Fraction:
    nines = 10 ** len(cycle) - 1
    return Fraction(int((whole + fixed) or "0"), 10 ** len(fixed)) + Fraction(int(cycle), nines * 10 ** len(fixed))


def _repeating(match: re.Match[str]) -> Fraction | None:
    return _signed(match, _cycle(match["whole"], match["fixed"], match["cycle"]))


def _ellipsis(match: re.Match[str]) -> Fraction | None:
    """`0.333...`: a cycle that is written out at least twice, a single digit at least three times."""
    written = len(match[0].partition(".")[2].rstrip(". ldots\\")) - len(match["fixed"])
    return _repeating(match) if written >= max(3, 2 * len(match["cycle"])) else None


def _dotted(match: re.Match[str]) -> Fraction | None:
    cycle = match["first"] + (match["middle"] or "") + (match["last"] or "")
    return _signed(match, _cycle(match["whole"], match["fixed"], cycle))


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Fraction | None]], ...] = (
    *((_NUMBER, _number), (_TEN, _ten), (_FRAC, _frac), (_SLASH, _slash)),
    *((_REPEATING, _repeating), (_DOTTED, _dotted), (_ELLIPSIS, _ellipsis)),
)
