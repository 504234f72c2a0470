"""Bounds on the size of an expression, read off its text before any library evaluates it."""

from __future__ import annotations

import re

from klearbench.judging.latexargs import matching_brace

_MAX_DEPTH = 40
_MAX_POWER = 20000
_MAX_FACTORIAL = 5000
_MAX_TERMS = 20000


INCOMPARABLE = (TypeError, ValueError, AttributeError, NotImplementedError, ArithmeticError, KeyError, IndexError)
"""sympy's ways of saying that it can't compare two things."""


class Unreadable(Exception):
    """The text is no expression that may be evaluated: code, too large, or not understood."""


def check_size(latex: str) -> None:
    """Refuse what would hang or fill the memory: deep nesting, huge powers, factorials, sums."""
    depth = deepest = 0
    for char in latex:
        depth += (char in "{([") - (char in "})]")
        deepest = max(deepest, depth)
    if deepest > _MAX_DEPTH or latex.count(r"\sqrt") > 12 or latex.count(r"\frac") > 30:
        raise Unreadable("too deeply nested")
    exponents = []
    for match in re.finditer(r"\^\s?(?:(\{)|([+-]?\d)|\\?[A-Za-z])", latex):
        if not match[1]:
            exponents.append(match[2] or "")
            continue
        end = matching_brace(latex, match.end() - 1)
        exponents.append(latex[match.end() : end if end > 0 else len(latex)])
    product = 1
    for exponent in exponents:
        if _exponent_depth(exponent) > 2:
            raise Unreadable("a power tower is too large to evaluate")
        small = re.fullmatch(r"[{(\s]*(\d)\s?\^\s?[{(]?(\d)[})\s]*", exponent)
        if (
            (small is None or int(small[1]) ** int(small[2]) > _MAX_POWER)
            and "^" in exponent
            and re.search(r"\d\s?\}?\)?\s?\^|!", exponent)
        ):
            raise Unreadable("a power tower is too large to evaluate")
        largest = max((int(d) if len(d) < 10 else 10**10 for d in re.findall(r"\d+", exponent)), default=1)
        if "!" in exponent:
            raise Unreadable("a power is too large to evaluate")
        product *= max(largest, 1) if largest > 9 else 1
    if product > _MAX_POWER:
        raise Unreadable("a power is too large to evaluate")
    _check_operators(latex, exponents)


def _check_operators(latex: str, exponents: list[str]) -> None:
    """Factorials, binomial coefficients, sums and products."""
    for number in re.findall(r"(\d+)\s?\)?\}?\s?!", latex):
        if len(number) > 5 or int(number) > _MAX_FACTORIAL:
            raise Unreadable("a factorial is too large to evaluate")
    if re.search(r"!\s?\)?\s?!|\^[^!+*-]{0,20}\)\s?!", latex):
        raise Unreadable("a factorial is too large to evaluate")
    if r"\binom" in latex and (exponents or any(len(d) > 4 for d in re.findall(r"\d+", latex))):
        raise Unreadable("a binomial coefficient is too large to evaluate")
    if re.search(r"\\(?:sum|prod|int)", latex):
        bounds = [int(d) if len(d) < 8 else 10**8 for d in re.findall(r"\d+", latex)]
        if exponents and max(bounds, default=0) ** max(2, 1) > _MAX_TERMS and any(len(e) > 0 for e in exponents):
            raise Unreadable("a sum or product is too large to evaluate")
        if max(bounds, default=0) > _MAX_TERMS:
            raise Unreadable("a sum or product is too large to evaluate")


def _exponent_depth(exponent: str) -> int:
    """How many exponents are nested in an exponent."""
    deepest, depth = 0, 0
    powers: list[int] = []
    for at, char in enumerate(exponent):
        if char in "{(":
            depth += 1
        elif char in "})":
            depth -= 1
            powers = [p for p in powers if p <= depth]
        elif char == "^" and at + 1 < len(exponent):
            powers.append(depth + 1 if exponent[at + 1] in "{(" else depth)
            deepest = max(deepest, len(powers))
    return deepest
