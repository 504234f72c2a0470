"""Solution sets, over the real numbers, of relations in one variable.

Solved: rational functions over Q, quadratics with real coefficients, absolute values, and roots, powers, exponentials
and logarithms where one of them holds all of the variable or stands against a polynomial. Points where a side is
undefined are no solutions. Everything else is Unreadable.
"""

from __future__ import annotations

from collections.abc import Iterator

from klearbench.judging.expressions.compare import order
from klearbench.judging.expressions.exact import exact_value
from klearbench.judging.expressions.inverse import domain, index_of, inverted, rises, root_against
from klearbench.judging.expressions.nodes import Node, Op, Relation, Sym, Unreadable
from klearbench.judging.expressions.realsets import EMPTY, REALS, RealSet, interval
from klearbench.judging.expressions.roots import INFINITY, MINUS_INFINITY, ZERO, Root, infinite_sign
from klearbench.judging.expressions.signs import (
    HOLDS,
    flipped,
    quadratic,
    quotient,
    sign_of,
    where_quadratic,
    where_quotient,
)
from klearbench.judging.expressions.tree import children, minus, over, replaced, size, symbols, times

_MAX_WORK = 80
"""Relations that one call may solve on the way."""
_MAX_SIZE = 300
"""Nodes of all parts of a chain."""
_MAX_INNER = 8
"""Absolute values, roots, logarithms and the like in a chain."""
_INNER = Sym("\ue003")
"""Stands for an inner function; no text spells it."""


def solutions(relation: Relation, name: str) -> RealSet:
    """The real numbers for which a chain holds, each link of it. Raises Unreadable where they are not found."""
    if sum(size(part) for part in relation.parts) > _MAX_SIZE:
        raise Unreadable("a relation is too large to solve")
    solver = _Solver(name)
    if len(list(solver.inner(*relation.parts))) > _MAX_INNER:
        raise Unreadable("a relation has too many functions to solve")
    found = REALS
    for left, mark, right in zip(relation.parts, relation.marks, relation.parts[1:], strict=False):
        flipped(mark)
        found = found & solver.solve(left, mark, right)
    return found


def ray(mark: str, bound: Node) -> RealSet:
    """The numbers x with `x mark bound`, for a constant."""
    if infinite_sign(bound) and mark != ("<" if infinite_sign(bound) > 0 else ">"):
        raise Unreadable("infinity is no real number")
    if mark in ("<", r"\le"):
        return interval(MINUS_INFINITY, bound, True, mark == "<")
    if mark in (">", r"\ge"):
        return interval(bound, INFINITY, mark == ">", True)
    point = interval(bound, bound, False, False)
    return point if mark == "=" else ~point


class _Solver:
    """One call's work in one variable, and how much of it was done."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.left = _MAX_WORK

    def solve(self, left: Node, mark: str, right: Node) -> RealSet:
        """Where `left mark right` holds and both sides are defined."""
        self.left -= 1
        if self.left < 0:
            raise Unreadable("a relation takes too much work to solve")
        if isinstance(left, Sym) and not symbols(right):
            return ray(mark, right)
        if isinstance(right, Sym) and not symbols(left):
            return ray(flipped(mark), left)
        if not symbols(left) and not symbols(right):
            return self._constant(left, mark, right)
        inner = next((node for node in self.inner(left, right) if node.name == "abs"), None)
        if inner is not None:
            return self._by_cases(left, mark, right, inner)
        return self._without_abs(left, mark, right)

    def _constant(self, left: Node, mark: str, right: Node) -> RealSet:
        found = order(left, right)
        if found is None:
            raise Unreadable("the order of two constants is not known")
        return REALS if HOLDS[mark](found) else EMPTY

    def inner(self, *nodes: Node) -> Iterator[Op]:
        """Functions of the variable that no rational function has, inner ones first."""
        for node in nodes:
            if self.name not in symbols(node):
                continue
            yield from self.inner(*children(node))
            if isinstance(node, Op) and not self._is_rational(node):
                yield node

    def _is_rational(self, node: Op) -> bool:
        if node.name != "pow":
            return node.name in ("add", "mul", "neg", "div")
        if symbols(node.args[1]):
            return False
        exponent = exact_value(node.args[1])
        return exponent is not None and exponent.denominator == 1

    def _by_cases(self, left: Node, mark: str, right: Node, inner: Op) -> RealSet:
        found = EMPTY
        for condition, value in ((r"\ge", inner.args[0]), ("<", Op("neg", (inner.args[0],)))):
            where = self.solve(inner.args[0], condition, ZERO)
            if not where.is_empty():
                found = found | where & self.solve(replaced(left, inner, value), mark, replaced(right, inner, value))
        return found

    def _without_abs(self, left: Node, mark: str, right: Node) -> RealSet:
        whole = left if right == ZERO else minus(left, right)
        fraction = quotient(whole, self.name)
        if fraction is not None:
            return where_quotient(fraction, mark)
        coefficients = quadratic(whole, self.name)
        if coefficients is not None:
            return where_quadratic(coefficients, mark)
        if isinstance(left, Op) and not symbols(right) and not self._is_rational(left):
            return inverted(left, mark, right, self.solve)
        if isinstance(right, Op) and not symbols(left) and not self._is_rational(right):
            return inverted(right, flipped(mark), left, self.solve)
        return self._around_inner(left, mark, right, whole)

    def _around_inner(self, left: Node, mark: str, right: Node, whole: Node) -> RealSet:
        """One inner function t that holds all of the variable, or that stands linearly against the rest."""
        same = self._same_function(left, mark, right)
        if same is not None:
            return same
        inner = next(self.inner(whole), None)
        if inner is None:
            raise Unreadable("a relation that is not solved")
        outer = replaced(whole, inner, _INNER)
        if self.name not in symbols(outer):
            return self._preimage(_Solver(_INNER.name).solve(outer, mark, ZERO), inner)
        linear = quadratic(outer, _INNER.name)
        if inner.name == "root" and linear is not None and len(linear) == 2 and not symbols(linear[1]):
            sign = sign_of(linear[1])
            if sign:
                rest = Op("neg", (over(linear[0], linear[1]),))
                return root_against(inner, mark if sign > 0 else flipped(mark), rest, self.solve)
        return self._by_signs(left, mark, right)

    def _same_function(self, left: Node, mark: str, right: Node) -> RealSet | None:
        """f(a) against f(b) for a rising function f: roots and logarithms."""
        if not isinstance(left, Op) or not isinstance(right, Op) or left.name != right.name:
            return None
        if left.name == "root" and left.args[1] == right.args[1]:
            a, b, domain = left.args[0], right.args[0], r"\ge"
        elif left.name == "ln":
            a, b, domain = left.args[0], right.args[0], ">"
        elif left.name == "log" and left.args[0] == right.args[0] and not symbols(left.args[0]):
            a, b, domain = left.args[1], right.args[1], ">"
            mark = mark if rises(left.args[0]) else flipped(mark)
        else:
            return None
        found = self.solve(a, mark, b)
        if left.name == "root" and index_of(left) % 2:
            return found
        return found & self.solve(a, domain, ZERO) & self.solve(b, domain, ZERO)

    def _preimage(self, values: RealSet, inner: Op) -> RealSet:
        """The x whose inner(x) lies in a set."""
        points = [end for end in values.points if not isinstance(end, Root)]
        if len(points) < len(values.points):
            raise Unreadable("a relation that is not solved")
        found = EMPTY
        for at, cell in enumerate(values.cells):
            if cell:
                found = found | self._in_cell(at, points, inner)
        return found

    def _in_cell(self, at: int, points: list[Node], inner: Op) -> RealSet:
        """Where inner(x) lies in one cell, as `RealSet` numbers them."""
        if at % 2:
            return self.solve(inner, "=", points[at // 2])
        found = REALS if points else domain(inner, self.solve)
        if at > 0:
            found = found & self.solve(inner, ">", points[at // 2 - 1])
        if at // 2 < len(points):
            found = found & self.solve(inner, "<", points[at // 2])
        return found

    def _by_signs(self, left: Node, mark: str, right: Node) -> RealSet:
        """A product against zero, or a quotient against a constant, by the signs of its two sides."""
        if isinstance(left, Op) and left.name == "mul" and right == ZERO:
            one, other = left.args[0], left.args[1] if len(left.args) == 2 else Op("mul", left.args[1:])
        elif isinstance(left, Op) and left.name == "div" and not symbols(right):
            above, other = left.args
            one = above if right == ZERO else minus(above, times(right, other))
        else:
            raise Unreadable("a relation that is not solved")
        signs = [[(s, self.solve(side, m, ZERO)) for s, m in ((-1, "<"), (0, "="), (1, ">"))] for side in (one, other)]
        found = EMPTY
        for s, where in signs[0]:
            for t, there in signs[1]:
                if HOLDS[mark](s * t) and (t != 0 or left.name == "mul"):
                    found = found | where & there
        return found
