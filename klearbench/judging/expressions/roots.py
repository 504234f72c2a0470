"""Real algebraic numbers that are kept as roots of a polynomial, and the order of end points of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import flint

from klearbench.judging.expressions.balls import ball, precision
from klearbench.judging.expressions.compare import order
from klearbench.judging.expressions.exact import exact_value
from klearbench.judging.expressions.nodes import Const, Node, Num, Op, Unreadable

_PRECISIONS = (64, 160, 400)
"""Bits; roots of one bounded polynomial, or of two, lie further apart than the last unless made to order."""
MAX_DEGREE = 12
_MAX_BITS = 2000
"""Of a coefficient."""


@dataclass(frozen=True, slots=True)
class Root:
    """A real root of an irreducible polynomial over the integers."""

    coefficients: tuple[int, ...]
    """Primitive, the constant term first, the last one positive."""
    index: int
    """Its place among the real roots in rising order, from 0."""


End = Node | Root
"""A real number, or infinity (`Const`) with or without a minus."""

INFINITY: Node = Const("infinity")
ZERO: Node = Num(Fraction(0))
MINUS_INFINITY: Node = Op("neg", (INFINITY,))


def infinite_sign(end: End) -> int:
    """1 and -1 for the two infinities, 0 for anything else."""
    return 1 if end == INFINITY else -1 if end == MINUS_INFINITY else 0


def end_point(node: Node) -> Node:
    """A constant as an end point, rationals folded. Raises Unreadable where it is undefined."""
    if isinstance(node, Num) or infinite_sign(node):
        return node
    value = exact_value(node)
    return node if value is None else Num(value)


def compare_ends(one: End, other: End) -> int:
    """-1, 0 or 1. Raises Unreadable where the order is undecided or a value is not real."""
    if isinstance(one, Num) and isinstance(other, Num):
        return (one.value > other.value) - (one.value < other.value)
    if one == other and (isinstance(one, Root) or infinite_sign(one)):
        return 0
    signs = infinite_sign(one), infinite_sign(other)
    if signs != (0, 0):
        return (signs[0] > signs[1]) - (signs[0] < signs[1])
    if isinstance(one, Root):
        return _compare_root(one, other)
    if isinstance(other, Root):
        return -_compare_root(other, one)
    found = order(one, other)
    if found is None:
        raise Unreadable("the order of two end points is not known")
    return found


def _compare_root(root: Root, other: End) -> int:
    equal: bool | None = False if isinstance(other, Root) else None  # two distinct roots are distinct numbers
    for bits in _PRECISIONS:
        left, right = enclosure(root, bits), enclosure(other, bits)
        if not left.overlaps(right):
            return -1 if bool(left < right) else 1
        if equal is None and not isinstance(other, Root):
            equal = _is_zero_of(root.coefficients, other)
        if equal and sum(bool(ball_.overlaps(right)) for ball_ in real_balls(root.coefficients, bits)) == 1:
            return 0
    raise Unreadable("the order of two end points is not known")


def _is_zero_of(coefficients: tuple[int, ...], node: Node) -> bool:
    value: Node = Num(Fraction(coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        value = Op("add", (Op("mul", (value, node)), Num(Fraction(coefficient))))
    found = order(value, ZERO)
    if found is None:
        raise Unreadable("the order of two end points is not known")
    return found == 0


@lru_cache(maxsize=64)
def real_balls(coefficients: tuple[int, ...], bits: int) -> tuple[flint.arb, ...]:
    """Disjoint enclosures of the real roots of a squarefree polynomial, in rising order."""
    with precision(bits):
        found = flint.fmpz_poly(list(coefficients)).complex_roots()
        return tuple(sorted((flint.acb(r).real for r, _ in found if flint.acb(r).imag == 0), key=lambda r: r.mid()))


def enclosure(end: End, bits: int) -> flint.arb:
    """A ball around a finite end point. Raises Unreadable where none is found, or it is not real."""
    if isinstance(end, Root):
        return real_balls(end.coefficients, bits)[end.index]
    found = ball(end, bits)
    if found is None or not found.imag.contains(0) or not found.is_finite():
        raise Unreadable("an end point is not real")
    return found.real


def factors(poly: flint.fmpq_poly) -> dict[tuple[int, ...], int]:
    """The irreducible factors of a polynomial over the rationals, constants left out, and their multiplicities.

    A factor is given as in `Root.coefficients`. Raises Unreadable beyond MAX_DEGREE or for too large a coefficient.
    """
    whole = poly.numer()
    if whole.degree() < 1:
        return {}
    if whole.degree() > MAX_DEGREE or max(abs(int(c)).bit_length() for c in whole.coeffs()) > _MAX_BITS:
        raise Unreadable("a polynomial is too large to solve")
    found = {}
    for factor, times in whole.factor()[1]:
        coefficients = tuple(int(c) for c in factor.coeffs())
        found[coefficients if coefficients[-1] > 0 else tuple(-c for c in coefficients)] = int(times)
    return found


def irreducible_roots(c: tuple[int, ...]) -> list[End]:
    """The real roots of an irreducible polynomial, given as in `Root.coefficients`, in no order."""
    if len(c) == 2:
        return [Num(Fraction(-c[0], c[1]))]
    if len(c) == 3:
        under = c[1] * c[1] - 4 * c[0] * c[2]
        if under < 0:
            return []
        half = Op("div", (Op("root", (Num(Fraction(under)), Num(Fraction(2)))), Num(Fraction(2 * c[2]))))
        middle = Num(Fraction(-c[1], 2 * c[2]))
        return [Op("add", (middle, Op("neg", (half,)))), Op("add", (middle, half))]
    if not any(c[1:-1]):
        return _binomial_roots(Fraction(-c[0], c[-1]), len(c) - 1)
    return [Root(c, i) for i in range(len(real_balls(c, _PRECISIONS[0])))]


def _binomial_roots(value: Fraction, degree: int) -> list[End]:
    if degree % 2:
        root = Op("root", (Num(abs(value)), Num(Fraction(degree))))
        return [root if value > 0 else Op("neg", (root,))]
    if value < 0:
        return []
    root = Op("root", (Num(value), Num(Fraction(degree))))
    return [root, Op("neg", (root,))]
