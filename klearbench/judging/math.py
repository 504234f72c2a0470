"""How a final answer is compared with a reference, by rule.

Exact paths first, in this process and in microseconds: equal strings, integers, fractions, decimals. What they can't
decide goes to a worker (`equality.py` with sympy, or math-verify), which may be killed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from klearbench.judging.normalize import canonical, is_placeholder
from klearbench.judging.numbers import exact_number
from klearbench.judging.units import split_quantity

MAX_ANSWER_CHARS = 20_000
_INTEGER = re.compile(r"-?\d{1,4000}")
_SIGNED_DIGITS = re.compile(r"[+-]?\d+")


@dataclass(frozen=True, slots=True)
class Comparison:
    """`equal` is None when the reference itself can't be used: our fault, never the answer's."""

    equal: bool | None
    detail: str = ""


_SAME = Comparison(True)
_DIFFERENT = Comparison(False, "not equal to the reference")
_TOO_LONG = Comparison(False, "too long to be an answer")


def _integer(gold: str, answer: str) -> Comparison | None:
    """Integers of any sign; leading zeros don't count."""
    if not _INTEGER.fullmatch(gold):
        return Comparison(None, f"the reference {gold[:80]!r} is no integer")
    if _INTEGER.fullmatch(answer):
        return _SAME if int(answer) == int(gold) else _DIFFERENT
    return _expression(gold, answer)


def _integer_0_999(gold: str, answer: str) -> Comparison | None:
    """AIME: integers from 0 to 999."""
    if not (gold.isascii() and gold.isdigit() and len(gold) <= 3):
        return Comparison(None, f"the reference {gold[:80]!r} is no integer from 0 to 999")
    if answer.isdigit() and answer.isascii() and len(answer) <= 4000:
        return _SAME if int(answer) == int(gold) else _DIFFERENT
    return _expression(gold, answer)


def _expression(gold: str, answer: str) -> Comparison | None:
    if _INTEGER.fullmatch(gold) and _INTEGER.fullmatch(answer):
        return _SAME if int(gold) == int(answer) else _DIFFERENT
    if not gold.strip():
        return Comparison(None, "the reference is empty")
    if answer.strip() == gold.strip():
        return _SAME
    if len(answer) > MAX_ANSWER_CHARS:
        return _TOO_LONG
    if is_placeholder(answer):
        return _DIFFERENT
    return _by_value(canonical(gold), canonical(answer))


def _by_value(gold: str, answer: str) -> Comparison | None:
    """Decide two exact numbers, a unit on the answer allowed; None when either is anything else."""
    if gold == answer:
        return _SAME
    x = exact_number(gold)
    if x is None:
        return None
    y = exact_number(answer)
    if y is not None:
        return _SAME if x == y else _DIFFERENT
    if _SIGNED_DIGITS.fullmatch(answer):
        return _DIFFERENT  # more digits than are ever evaluated; the reference has fewer
    quantity = split_quantity(answer)
    y = exact_number(quantity.value) if quantity.dimension and "percent" not in quantity.dimension else None
    return _SAME if x == y else None


def _set(gold: str, answer: str) -> Comparison | None:
    """Lists and sets, order free: decided by the worker unless the texts agree."""
    if not gold.strip():
        return Comparison(None, "the reference is empty")
    if answer.strip() == gold.strip():
        return _SAME
    return _TOO_LONG if len(answer) > MAX_ANSWER_CHARS else None


RULES: dict[str, Callable[[str, str], Comparison | None]] = {
    "integer_0_999": _integer_0_999,
    "integer": _integer,
    "expression": _expression,
    "set": _set,
}
"""Rule -> (reference, answer) -> a decision, or None for "ask a worker"."""


def worker_op(rule: str) -> str:
    """The worker's operation that goes on where a rule's exact path ends."""
    return "set" if rule == "set" else "strict"
