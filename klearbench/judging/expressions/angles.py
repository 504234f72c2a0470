"""Angles that are rational multiples of pi, and the rational values of trigonometric functions there."""

from __future__ import annotations

from collections.abc import Callable

import flint

from klearbench.judging.expressions.bounds import Undefined
from klearbench.judging.expressions.nodes import Const, Node, Op

_HALF = flint.fmpq(1, 2)
_COSINES = {
    flint.fmpq(0): flint.fmpq(1),
    flint.fmpq(1, 3): _HALF,
    flint.fmpq(1, 2): flint.fmpq(0),
    flint.fmpq(2, 3): -_HALF,
    flint.fmpq(1): flint.fmpq(-1),
}
"""The rational cosines, by the angle between 0 and pi in units of pi (Niven's theorem: there are no others)."""


def pi_multiple(node: Node, exact: Callable[[Node], flint.fmpq | None]) -> flint.fmpq | None:
    """The q of an angle q pi; None where it is not written as such a multiple. `exact` gives rational values."""
    if node == Const("pi"):
        return flint.fmpq(1)
    if not isinstance(node, Op):
        return None
    if node.name == "degree":
        value = exact(node.args[0])
        return None if value is None else value / 180
    if node.name == "neg":
        value = pi_multiple(node.args[0], exact)
        return None if value is None else -value
    if node.name == "div":
        value, by = pi_multiple(node.args[0], exact), exact(node.args[1])
        return None if value is None or by is None or by == 0 else value / by
    if node.name == "mul":
        return _product(node.args, exact)
    if node.name == "add":
        terms = [pi_multiple(arg, exact) for arg in node.args]
        known = [term for term in terms if term is not None]
        return sum(known, flint.fmpq(0)) if len(known) == len(terms) else None
    return None


def _product(args: tuple[Node, ...], exact: Callable[[Node], flint.fmpq | None]) -> flint.fmpq | None:
    found = flint.fmpq(1)
    angles = 0
    for arg in args:
        value = exact(arg)
        if value is None:
            value = pi_multiple(arg, exact)
            angles += 1
        if value is None or angles > 1:
            return None
        found *= value
    return found if angles else None


def trigonometric(name: str, turn: flint.fmpq) -> flint.fmpq | None:
    """sin, cos, tan, cot, sec or csc of `turn` pi where it is rational. Raises Undefined at a pole."""
    sine, cosine = _cosine(turn - _HALF), _cosine(turn)
    if name == "sin":
        return sine
    if name == "cos":
        return cosine
    below = cosine if name in ("tan", "sec") else sine
    if below == 0:
        raise Undefined(f"{name} at a pole")
    if name in ("sec", "csc"):
        return None if below is None else 1 / below
    above = sine if name == "tan" else cosine
    if above == 0:
        return flint.fmpq(0)
    doubled = _cosine(2 * turn)
    if doubled != 0:
        return None
    return flint.fmpq(1) if turn - turn.floor() < _HALF else flint.fmpq(-1)


def _cosine(turn: flint.fmpq) -> flint.fmpq | None:
    part = turn - 2 * (turn / 2).floor()
    return _COSINES.get(min(part, 2 - part))
