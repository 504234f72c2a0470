"""Single values with their units: percent, degrees, currency, numbers, expressions, and text as the last resort."""

from __future__ import annotations

import re
from functools import lru_cache

from klearbench.judging.expressions.compare import equal
from klearbench.judging.expressions.nodes import Node, Unreadable
from klearbench.judging.expressions.parser import parse_expression
from klearbench.judging.forms import strip_parens
from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN, words
from klearbench.judging.numbers import exact_number, loose_number
from klearbench.judging.units import DEGREE, PERCENT, RADIAN, Quantity, split_quantity

_CASES = re.compile(r"\\begin\{cases\}(.*)\\end\{cases\}", re.DOTALL)
_IF = re.compile(r"\A(?:if|for|when|where)\s|[,.\s]+\Z|\bis\s")
_MAX_ROWS = 20
_DEGREE_MARK = re.compile(r"\^\s?\{?\s?\\circ\s?\}?")
APPROX = re.compile(r"\\(?:approx|simeq|sim|doteq)(?![A-Za-z])")


def squash(text: str) -> str:
    """Without idle spaces, text marks and braces around one character or a whole bracket."""
    text = re.sub(rf"(?<!\d)\s|\s(?!\d)|[{TEXT_OPEN}{TEXT_CLOSE}]", "", text)
    before = None
    while before != text:  # each round removes characters, and nesting is bounded by the answer's length
        before = text
        text = re.sub(r"\{(\w)\}", r"\1", re.sub(r"(?<=\^)\(([^(){}]*)\)", r"{\1}", text))
        text = re.sub(r"\{\(([^(){}]*)\)\}", r"{\1}", text)
    return text


def values_equal(gold: str, answer: str) -> bool:
    """Two single values with their units."""
    if (APPROX.search(answer) and not APPROX.search(gold)) or _primes(gold) != _primes(answer):
        return False
    g, a = split_quantity(strip_parens(gold), reference=True), split_quantity(strip_parens(answer))
    if PERCENT in (g.dimension, a.dimension):
        return _percent_equal(g.value, g.dimension, a.value, a.dimension)
    if g.dimension and a.dimension:
        if g.dimension != a.dimension:
            return False
        if g.factor != a.factor:
            x, y = exact_number(g.value), exact_number(a.value)
            return x is not None and y is not None and x * g.factor == y * a.factor
    if DEGREE in (g.dimension, a.dimension):
        return _degrees_equal(g, a)
    if a.dimension and a.dimension.startswith("dollar") and a.factor != 1 and g.dimension == "":
        return _plain_equal(g.value, a.value)
    return _plain_equal(g.value, a.value)


def _degrees_equal(gold: Quantity, answer: Quantity) -> bool:
    """A number of degrees, the mark optional on one side; a multiple of pi is in radians, and no number of degrees."""
    if (answer.dimension == RADIAN and exact_number(gold.value) is not None) or r"\pi" in gold.value + answer.value:
        return gold.dimension == answer.dimension and _plain_equal(gold.value, answer.value)
    inside = _DEGREE_MARK.sub("", answer.value) if "\\frac" in answer.value else answer.value
    return _plain_equal(gold.value, inside)


def _percent_equal(gold: str, gold_unit: str, answer: str, answer_unit: str) -> bool:
    if gold_unit == answer_unit:
        return _plain_equal(gold, answer)
    x, y = exact_number(gold), exact_number(answer)
    if x is None or y is None:
        return not (gold_unit and answer_unit) and gold_unit == PERCENT and _plain_equal(gold, answer)
    if gold_unit == PERCENT:
        return answer_unit == "" and y in (x, x / 100)
    return gold_unit == "" and (y == x * 100 or (y == x and abs(x) >= 1))  # 0.5 is not 0.5 %, though 15 may be 15 %


def _plain_equal(gold: str, answer: str) -> bool:
    x, y = exact_number(gold), loose_number(answer)
    if x is not None and y is not None:
        return x == y
    if re.fullmatch(r"[+-]?\d+", gold) and re.fullmatch(r"[+-]?\d+", answer):
        return _long(gold) == _long(answer)
    if squash(gold) == squash(answer):
        return True
    want, have = read(gold), read(answer)
    if want is not None and have is not None:
        return equal(want, have)
    return words(gold) == words(answer) != "" or _cases_equal(gold, answer)


def _cases_equal(gold: str, answer: str) -> bool:
    r"""Piecewise functions whose conditions are words, like "n even": the same rows in any order."""
    want, have = _case_rows(gold), _case_rows(answer)
    if not want or len(want) != len(have) or len(want) > _MAX_ROWS:
        return False
    return all(any(_row_equal(row, other) for other in have) for row in want) and all(
        any(_row_equal(row, other) for row in want) for other in have
    )


def _case_rows(text: str) -> list[tuple[str, str, str]]:
    match = _CASES.fullmatch(text)
    return [] if match is None else [row.partition("&") for row in re.split(r"\\\\|\\cr", match[1]) if row.strip()]


def _row_equal(gold: tuple[str, str, str], answer: tuple[str, str, str]) -> bool:
    conditions = [_IF.sub("", words(row[2])) for row in (gold, answer)]
    return conditions[0] == conditions[1] and values_equal(gold[0].strip(" ,"), answer[0].strip(" ,"))


@lru_cache(maxsize=1024)
def read(text: str) -> Node | None:
    """The tree of an expression, None when the text is none."""
    try:
        return parse_expression(text)
    except Unreadable:
        return None


def _primes(text: str) -> list[str]:
    """Marks of minutes, seconds, feet or derivatives after a number."""
    return re.findall(r"\d\s?(?:\^\s?\{?\s?(?:\\prime\s?)+\}?|'+)", re.sub(f"[{TEXT_OPEN}{TEXT_CLOSE}]", " ", text))


def _long(text: str) -> str:
    return ("-" if text[0] == "-" else "") + text.lstrip("+-").lstrip("0")
