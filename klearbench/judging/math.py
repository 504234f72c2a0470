"""How a final answer is compared with a reference, by rule.

Cheap layers first, in this process: equal strings, integers, fractions, decimals in microseconds, then short texts
whose comparison is bounded by their length. The rest goes to a worker (`equality.py`, or math-verify), which may be
killed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from klearbench.judging.equality import equal, sets_of_values_equal
from klearbench.judging.normalize import canonical, is_placeholder
from klearbench.judging.numbers import exact_number, loose_number
from klearbench.judging.units import split_quantity

MAX_ANSWER_CHARS = 20_000
_SHORT_CHARS = 300
_SYMPY = re.compile(r"\\(?:i?int|oint|lim)(?![A-Za-z])|∫")
_INTEGER = re.compile(r"-?\d{1,4000}")


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
    if len(gold) + len(answer) > _SHORT_CHARS:
        return None
    decided = _by_value(canonical(gold), canonical(answer))
    return decided if decided is not None else _if_short(equal, gold, answer)


def _if_short(compare: Callable[[str, str], bool], gold: str, answer: str) -> Comparison | None:
    """Compare two short texts here; None for others, for what only sympy evaluates, and for anything unexpected."""
    if len(gold) + len(answer) > _SHORT_CHARS or _SYMPY.search(gold) or _SYMPY.search(answer):
        return None
    try:
        return _SAME if compare(gold, answer) else _DIFFERENT
    except Exception:  # a worker finds out whether the answer or the reference is to blame
        return None


def _by_value(gold: str, answer: str) -> Comparison | None:
    """Decide two exact numbers, a unit on the answer allowed; None when either is anything else."""
    if gold == answer:
        return _SAME
    x = exact_number(gold)
    if x is None:
        return None
    y = loose_number(answer)
    if y is not None:
        return _SAME if x == y else _DIFFERENT
    quantity = split_quantity(answer)
    y = exact_number(quantity.value) if quantity.dimension and "percent" not in quantity.dimension else None
    return _SAME if x == y else None


def _set(gold: str, answer: str) -> Comparison | None:
    """Lists and sets, order free."""
    if not gold.strip():
        return Comparison(None, "the reference is empty")
    if answer.strip() == gold.strip():
        return _SAME
    if len(answer) > MAX_ANSWER_CHARS:
        return _TOO_LONG
    return _if_short(sets_of_values_equal, gold, answer)


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
