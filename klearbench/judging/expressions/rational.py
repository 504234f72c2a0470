"""Rational functions of several variables over the rationals, exact; too large ones are left to sample points."""

from __future__ import annotations

from math import comb
from typing import TypeAlias

import flint

from klearbench.judging.expressions.bounds import TooLarge, Undefined, Work
from klearbench.judging.expressions.exact import rational
from klearbench.judging.expressions.exactops import as_rational
from klearbench.judging.expressions.nodes import Big, Cases, Const, Matrix, Node, Num, Op, Sym
from klearbench.judging.expressions.tree import symbols

Polynomial: TypeAlias = flint.fmpq_mpoly
Quotient: TypeAlias = tuple[Polynomial, Polynomial]
"""Numerator and denominator, not reduced."""

_MAX_TERMS = 1500
_MAX_PRODUCTS = 40_000
"""Pairs of terms that one multiplication may form."""
_MAX_DEGREE = 2000
_MAX_VARIABLES = 12
_MAX_COEFFICIENT_BITS = 20_000
_MAX_MATRIX = 4
_WORK = 6_000


class _NotRational(Exception):
    """No rational function, or too large a one."""


def quotients(one: Node, other: Node) -> tuple[Quotient, Quotient] | None:
    """Both expressions as rational functions of all their variables; None when one is none or too large.

    Raises Undefined where one is undefined everywhere.
    """
    names = sorted(symbols(one) | symbols(other))
    if not names or len(names) > _MAX_VARIABLES:
        return None
    reader = _Reader(names)
    try:
        return reader.read(one), reader.read(other)
    except (_NotRational, TooLarge):
        return None


def same_function(one: Node, other: Node) -> bool | None:
    """Whether two rational functions are equal where both are defined; None when they are none, or too large."""
    found = quotients(one, other)
    if found is None:
        return None
    (a, b), (c, d) = found
    if b == d:
        return bool(a == c)
    if len(a) * len(d) > _MAX_PRODUCTS or len(b) * len(c) > _MAX_PRODUCTS:
        return None
    return bool(a * d == c * b)


def same_zeros(one: Node, other: Node) -> bool | None:
    """Whether the numerators of two rational functions, reduced, differ by a constant factor other than 0."""
    found = quotients(one, other)
    if found is None:
        return None
    a, c = (_reduced(quotient) for quotient in found)
    if not a or not c or a.is_constant() or c.is_constant():
        return False
    return bool(a / a.leading_coefficient() == c / c.leading_coefficient())


def _reduced(quotient: Quotient) -> Polynomial:
    top, bottom = quotient
    if bottom.is_constant():
        return top
    return divmod(top, top.gcd(bottom))[0]


class _Reader:
    def __init__(self, names: list[str]) -> None:
        self.context = flint.fmpq_mpoly_ctx.get(tuple(f"v{i}" for i in range(len(names))))
        self.variables = dict(zip(names, self.context.gens(), strict=True))
        self.one = self.context.constant(1)
        self.work = Work(_WORK)

    def read(self, node: Node) -> Quotient:
        if isinstance(node, Num):
            return self.context.constant(as_rational(node.value)), self.one
        if isinstance(node, Sym):
            return self.variables[node.name], self.one
        if isinstance(node, Const | Big | Cases | Matrix):
            return self._constant(node)
        if node.name == "add":
            return self._sum(node.args)
        if node.name == "mul":
            return self._multiplied(node.args)
        if node.name == "neg":
            top, bottom = self.read(node.args[0])
            return -top, bottom
        if node.name == "div":
            (a, b), (c, d) = self.read(node.args[0]), self.read(node.args[1])
            if not c:
                raise Undefined("division by zero")
            return self._product(a, d), self._product(b, c)
        if node.name == "pow":
            return self._power(node)
        if node.name == "det" and symbols(node):
            return self._determinant(node.args[0])
        return self._constant(node)

    def _constant(self, node: Node) -> Quotient:
        value = None if symbols(node) else rational(node, {}, self.work)
        if value is None or value.height_bits() > _MAX_COEFFICIENT_BITS:
            raise _NotRational
        return self.context.constant(value), self.one

    def _sum(self, args: tuple[Node, ...]) -> Quotient:
        top, bottom = self.read(args[0])
        for arg in args[1:]:
            a, b = self.read(arg)
            if b == bottom:
                top = top + a
            else:
                top = self._product(top, b) + self._product(a, bottom)
                bottom = self._product(bottom, b)
        return top, bottom

    def _multiplied(self, args: tuple[Node, ...]) -> Quotient:
        top, bottom = self.read(args[0])
        for arg in args[1:]:
            a, b = self.read(arg)
            top, bottom = self._product(top, a), self._product(bottom, b)
        return top, bottom

    def _product(self, a: Polynomial, b: Polynomial) -> Polynomial:
        pairs = len(a) * len(b)
        if pairs > _MAX_PRODUCTS or (len(a) > 1 and len(b) > 1 and min(pairs, _dense(a, b)) > _MAX_TERMS):
            raise _NotRational
        self.work.spend(3 + pairs // 8)
        return a * b

    def _power(self, node: Op) -> Quotient:
        if symbols(node.args[1]):
            raise _NotRational
        exponent = rational(node.args[1], {}, self.work)
        if exponent is None or exponent.q != 1 or abs(exponent) > _MAX_DEGREE:
            raise _NotRational
        top, bottom = self.read(node.args[0])
        times = int(exponent.p)
        if not top and times <= 0:
            raise Undefined("a power of zero")
        above, below = self._raised(top, abs(times)), self._raised(bottom, abs(times))
        return (above, below) if times >= 0 else (below, above)

    def _raised(self, base: Polynomial, times: int) -> Polynomial:
        """A power, its size estimated first."""
        if not base or base.is_one():
            return base if times else self.one
        terms = len(base)
        dense = 1
        for degree in base.degrees():
            if degree * times > _MAX_DEGREE:
                raise _NotRational
            dense *= degree * times + 1
        size = min(dense, comb(terms + times - 1, times) if terms < 30 else dense)
        bits = max(c.height_bits() for c in base.coeffs()) + terms.bit_length()
        if size > _MAX_TERMS or bits * times > _MAX_COEFFICIENT_BITS:
            raise _NotRational
        self.work.spend(1 + size * min(size, terms * times) // 16 * (1 + bits * times // 2000))
        return base**times

    def _determinant(self, node: Node) -> Quotient:
        if not isinstance(node, Matrix) or len(node.rows) != len(node.rows[0]):
            raise Undefined("the determinant of no square matrix")
        if len(node.rows) > _MAX_MATRIX:
            raise _NotRational
        return self._minor([[self.read(entry) for entry in row] for row in node.rows])

    def _minor(self, rows: list[list[Quotient]]) -> Quotient:
        """A determinant by its first row."""
        if len(rows) == 1:
            return rows[0][0]
        top, bottom = self.context.constant(0), self.one
        for column, (a, b) in enumerate(rows[0]):
            c, d = self._minor([row[:column] + row[column + 1 :] for row in rows[1:]])
            over = self._product(b, d)
            part = self._product(a, c) if column % 2 == 0 else -self._product(a, c)
            top = self._product(top, over) + self._product(part, bottom)
            bottom = self._product(bottom, over)
        return top, bottom


def _dense(a: Polynomial, b: Polynomial) -> int:
    """An upper bound for the terms of a product, by its degrees."""
    found = 1
    for one, other in zip(a.degrees(), b.degrees(), strict=True):
        found *= one + other + 1
    return found
