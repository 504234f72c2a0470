"""Long sums of polynomial terms, from a few terms and their differences."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import flint

from klearbench.judging.expressions.nodes import Node, Num, Op, Sym
from klearbench.judging.expressions.tree import symbols

_MAX_DEGREE = 40
_FEW = 60
"""Terms that are rather added one by one."""


def polynomial_sum(
    body: Node, name: str, low: flint.fmpq, high: flint.fmpq, term: Callable[[flint.fmpq], flint.fmpq | None]
) -> flint.fmpq | None:
    """The sum of term(low) to term(high); None where it is short, or the body is no polynomial in its variable."""
    if low.q != 1 or high.q != 1 or high - low < _FEW:
        return None
    degree = _degree(body, name)
    if degree is None:
        return None
    row = [term(low + i) for i in range(degree + 1)]
    differences = [value for value in row if value is not None]
    if len(differences) < len(row):
        return None
    count = high - low + 1
    found, choose = flint.fmpq(0), flint.fmpq(1)
    for j in range(degree + 1):
        choose = choose * (count - j) / (j + 1)
        found += differences[0] * choose
        differences = [b - a for a, b in pairwise(differences)]
    return found


def _degree(node: Node, name: str) -> int | None:
    """An upper bound of the degree; None for no polynomial, or one of high degree."""
    if isinstance(node, Sym) and node.name == name:
        return 1
    if name not in symbols(node):
        return 0
    if not isinstance(node, Op):
        return None
    if node.name == "pow":
        exponent = node.args[1]
        base = _degree(node.args[0], name)
        if base is None or not isinstance(exponent, Num) or exponent.value.denominator != 1 or exponent.value < 0:
            return None
        found = base * exponent.value.numerator
    elif node.name in ("add", "mul", "neg") or (node.name == "div" and name not in symbols(node.args[1])):
        degrees = [_degree(arg, name) for arg in node.args]
        known = [degree for degree in degrees if degree is not None]
        if len(known) < len(degrees):
            return None
        found = sum(known) if node.name == "mul" else max(known)
    else:
        return None
    return found if found <= _MAX_DEGREE else None
