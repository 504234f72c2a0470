"""Where a rational function of one variable, or a quadratic with real coefficients, is positive, zero or negative."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cmp_to_key

import flint

from klearbench.judging.expressions.compare import order
from klearbench.judging.expressions.exact import exact_value
from klearbench.judging.expressions.nodes import Matrix, Node, Num, Op, Sym, Unreadable
from klearbench.judging.expressions.realsets import RealSet, from_cells
from klearbench.judging.expressions.roots import MAX_DEGREE, ZERO, End, compare_ends, factors, irreducible_roots
from klearbench.judging.expressions.tree import minus, over, symbols, times

HOLDS: dict[str, Callable[[int], bool]] = {
    **{"<": lambda sign: sign < 0, ">": lambda sign: sign > 0, "=": lambda sign: sign == 0},
    **{r"\le": lambda sign: sign <= 0, r"\ge": lambda sign: sign >= 0, r"\ne": lambda sign: sign != 0},
}
"""Mark -> whether `f mark 0` holds for the sign of f."""

Quotient = tuple[flint.fmpq_poly, flint.fmpq_poly, tuple[flint.fmpq_poly, ...]]
"""Numerator, denominator, and the polynomials that must not vanish (denominators met on the way)."""


_FLIPPED = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le", "=": "=", r"\ne": r"\ne"}


def flipped(mark: str) -> str:
    """The mark with its sides exchanged. Raises Unreadable for a mark that is no relation of numbers."""
    if mark not in _FLIPPED:
        raise Unreadable(f"relation {mark}")
    return _FLIPPED[mark]


_Zero = tuple[End, bool, bool]
"""A point, whether the sign changes there, and whether the function is defined (and then zero) there."""


def sign_of(node: Node) -> int:
    """-1, 0 or 1. Raises Unreadable where the sign of a constant is undecided, or it is not real."""
    found = compare_ends(node, ZERO) if isinstance(node, Num) else order(node, ZERO)
    if found is None:
        raise Unreadable("the sign of a constant is not known")
    return found


def quotient(node: Node, name: str) -> Quotient | None:
    """An expression as a rational function over Q in one variable; None when it is none.

    Raises Unreadable when it is undefined everywhere or of too high a degree.
    """
    if isinstance(node, Num):
        return _polynomial(flint.fmpq_poly([_fmpq(node.value)]))
    if isinstance(node, Sym) and node.name == name:
        return _polynomial(flint.fmpq_poly([0, 1]))
    if not isinstance(node, Op) or node.name not in ("add", "mul", "neg", "div"):
        if name not in symbols(node):
            value = exact_value(node)
            return None if value is None else _polynomial(flint.fmpq_poly([_fmpq(value)]))
        return _power(node, name) if isinstance(node, Op) and node.name == "pow" else None
    parts = [quotient(arg, name) for arg in node.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if node.name == "neg":
        top, bottom, poles = known[0]
        return -top, bottom, poles
    found = known[0]
    for part in known[1:]:
        found = _checked(_COMBINE[node.name](found, part))
    return found


def _polynomial(poly: flint.fmpq_poly) -> Quotient:
    return poly, flint.fmpq_poly([1]), ()


def _fmpq(value: Fraction) -> flint.fmpq:
    return flint.fmpq(value.numerator, value.denominator)


def _checked(found: Quotient) -> Quotient:
    if max(found[0].degree(), found[1].degree()) > MAX_DEGREE:
        raise Unreadable("a polynomial is of too high a degree")
    return found


def _sum(a: Quotient, b: Quotient) -> Quotient:
    return a[0] * b[1] + b[0] * a[1], a[1] * b[1], a[2] + b[2]


def _product(a: Quotient, b: Quotient) -> Quotient:
    return a[0] * b[0], a[1] * b[1], a[2] + b[2]


def _ratio(a: Quotient, b: Quotient) -> Quotient:
    if not b[0]:
        raise Unreadable("division by zero")
    return a[0] * b[1], a[1] * b[0], (*a[2], *b[2], b[0])


_COMBINE: dict[str, Callable[[Quotient, Quotient], Quotient]] = {"add": _sum, "mul": _product, "div": _ratio}


def _power(node: Op, name: str) -> Quotient | None:
    exponent = exact_value(node.args[1]) if not symbols(node.args[1]) else None
    base = quotient(node.args[0], name) if exponent is not None and exponent.denominator == 1 else None
    if base is None or exponent is None:
        return None
    times_ = abs(int(exponent))
    if times_ * max(base[0].degree(), base[1].degree(), 1) > MAX_DEGREE:
        raise Unreadable("a polynomial is of too high a degree")
    if exponent <= 0 and not base[0]:
        raise Unreadable("0 to the power 0, or a division by zero")
    top, bottom = base[0] ** times_, base[1] ** times_
    return (top, bottom, base[2]) if exponent > 0 else (bottom, top, (*base[2], base[0]))


def _falling(one: _Zero, other: _Zero) -> int:
    return compare_ends(other[0], one[0])


def where_quotient(found: Quotient, mark: str) -> RealSet:
    """Where a rational function is in the relation `mark` to 0; where it is undefined is left out."""
    top, bottom, poles = found
    whole = factors(top * bottom)
    forbidden = {factor for pole in poles for factor in factors(pole)}
    roots: list[_Zero] = [
        (root, whole.get(factor, 0) % 2 == 1, factor not in forbidden)
        for factor in {**whole, **dict.fromkeys(forbidden, 0)}
        for root in irreducible_roots(factor)
    ]
    roots.sort(key=cmp_to_key(_falling))
    holds = HOLDS[mark]
    lead = (top * bottom).leading_coefficient() if top else 0
    sign = (lead > 0) - (lead < 0)
    cells = [holds(sign)]
    for _, crosses, defined in roots:  # from the right to the left
        sign = -sign if crosses else sign
        cells += [defined and holds(0), holds(sign)]
    return from_cells([root for root, _, _ in reversed(roots)], cells[::-1])


def quadratic(node: Node, name: str) -> list[Node] | None:
    """The coefficients, constant term first, of a polynomial of degree <= 2 whose coefficients lack the variable."""
    if isinstance(node, Sym) and node.name == name:
        return [ZERO, Num(Fraction(1))]
    if not isinstance(node, Op) or node.name not in ("add", "mul", "neg", "div"):
        if name not in symbols(node):
            return None if isinstance(node, Matrix) else [node]
        if not isinstance(node, Op) or node.name != "pow":
            return None
        square = quadratic(node.args[0], name) if node.args[1] == Num(Fraction(2)) else None
        return None if square is None else _multiplied(square, square)
    parts = [quadratic(arg, name) for arg in node.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if node.name == "neg":
        return [Op("neg", (c,)) for c in known[0]]
    if node.name == "div":
        return [over(c, known[1][0]) for c in known[0]] if len(known[1]) == 1 else None
    found: list[Node] | None = known[0]
    for part in known[1:]:
        if found is not None:
            found = _added(found, part) if node.name == "add" else _multiplied(found, part)
    return found


def _added(a: list[Node], b: list[Node]) -> list[Node]:
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    return [Op("add", (c, shorter[i])) if i < len(shorter) else c for i, c in enumerate(longer)]


def _multiplied(a: list[Node], b: list[Node]) -> list[Node] | None:
    if len(a) + len(b) > 4:
        return None
    found: list[Node] = [ZERO] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            found[i + j] = Op("add", (found[i + j], times(x, y)))
    return found


def where_quadratic(coefficients: list[Node], mark: str) -> RealSet:
    """Where a polynomial of degree <= 2 with constant real coefficients is in the relation `mark` to 0."""
    c = list(coefficients)
    lead = sign_of(c[-1])
    while len(c) > 1 and lead == 0:
        c.pop()
        lead = sign_of(c[-1])
    if len(c) == 1:
        return from_cells([], [HOLDS[mark](lead)])
    ends, signs = _linear(c, lead) if len(c) == 2 else _square(c, lead)
    return from_cells(ends, [HOLDS[mark](sign) for sign in signs])


def _linear(c: list[Node], lead: int) -> tuple[list[End], list[int]]:
    return [Op("neg", (over(c[0], c[1]),))], [-lead, 0, lead]


def _square(c: list[Node], lead: int) -> tuple[list[End], list[int]]:
    under = minus(times(c[1], c[1]), times(Num(Fraction(4)), times(c[0], c[2])))
    found = sign_of(under)
    if found < 0:
        return [], [lead]
    below = times(Num(Fraction(2)), c[2])
    middle = over(Op("neg", (c[1],)), below)
    if found == 0:
        return [middle], [lead, 0, lead]
    half = Op("abs", (over(Op("root", (under, Num(Fraction(2)))), below),))
    return [minus(middle, half), Op("add", (middle, half))], [lead, 0, -lead, 0, lead]
