"""Exact rational values. Operations that leave the rationals give None; undefined ones raise Undefined.

See `exactops` for what is defined by convention.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import flint

from klearbench.judging.expressions.angles import pi_multiple, trigonometric
from klearbench.judging.expressions.bounds import MAX_TERMS, TooLarge, Undefined, Work
from klearbench.judging.expressions.exactops import apply, as_rational, power, product, total
from klearbench.judging.expressions.finite import polynomial_sum
from klearbench.judging.expressions.nodes import Big, Const, Matrix, Node, Num, Op, Sym

Q = flint.fmpq
Env = Mapping[str, flint.fmpq]
_ZERO, _ONE = Q(0), Q(1)
_MAX_COMMON_BITS = 50_000
"""Of a numerator and a denominator that both leave this module; Python's own fractions are slow."""
_MAX_MATRIX = 12


def exact_value(node: Node) -> Fraction | None:
    """The exact rational value of a constant expression; None when it is not plainly rational.

    Raises Undefined (1/0, 0^0), or TooLarge for values beyond the limits of `bounds`.
    """
    if isinstance(node, Num):
        return node.value
    found = rational(node, {}, Work())
    if found is None:
        return None
    if min(found.p.bit_length(), found.q.bit_length()) > _MAX_COMMON_BITS:
        raise TooLarge("a fraction is too large")
    return Fraction(int(found.p), int(found.q))


def rational(node: Node, env: Env, work: Work) -> flint.fmpq | None:
    """The exact value with the variables of `env` put in; None when it is not plainly rational."""
    if isinstance(node, Num):
        return as_rational(node.value)
    if isinstance(node, Sym):
        return env.get(node.name)
    if isinstance(node, Op):
        if node.name == "det":
            return _determinant(node.args[0], env, work)
        parts = []
        known = True
        for arg in node.args:  # all of them: another one may be undefined
            part = rational(arg, env, work)
            known = known and part is not None
            parts.append(part)
        return apply(node.name, parts, work) if known else special(node, parts, env, work)
    if isinstance(node, Big):
        return _big(node, env, work) if node.name in ("sum", "product") else None
    return None


def special(node: Op, parts: list[flint.fmpq | None], env: Env, work: Work) -> flint.fmpq | None:
    """Operations with a rational value though an argument has none: sin(pi/6), ln(e^3), sqrt(2)^4."""
    if node.name in _TRIGONOMETRIC:
        turn = pi_multiple(node.args[0], lambda part: rational(part, env, work))
        return None if turn is None else trigonometric(node.name, turn)
    if node.name == "ln" or (node.name == "log" and node.args[0] == Const("e")):
        return _exponent_of_e(node.args[-1], env, work)
    if node.name == "pow" and parts[1] is not None:
        inner = node.args[0]
        if isinstance(inner, Op) and inner.name == "root":
            radicand, index = (rational(arg, env, work) for arg in inner.args)
            if radicand is not None and radicand >= 0 and index is not None and index > 0:
                return power([radicand, parts[1] / index], work)
    return None


_TRIGONOMETRIC = frozenset(("sin", "cos", "tan", "cot", "sec", "csc"))


def _exponent_of_e(node: Node, env: Env, work: Work) -> flint.fmpq | None:
    if node == Const("e"):
        return _ONE
    if isinstance(node, Op) and node.name == "exp":
        return rational(node.args[0], env, work)
    if isinstance(node, Op) and node.name == "pow" and node.args[0] == Const("e"):
        return rational(node.args[1], env, work)
    return None


def bounds_of(low: flint.fmpq | None, high: flint.fmpq | None) -> range:
    """The whole numbers that a sum runs over. Raises Undefined for limits that are none, TooLarge for too many."""
    if low is None or high is None or low.q != 1 or high.q != 1:
        raise Undefined("a sum with limits that are no whole numbers")
    if high - low >= MAX_TERMS:
        raise TooLarge("a sum of too many terms")
    return range(int(low.p), int(high.p) + 1)


def _big(node: Big, env: Env, work: Work) -> flint.fmpq | None:
    """A finite sum or product, by halves so that numbers grow late."""
    if node.low is None or node.high is None:
        return None
    low, high = rational(node.low, env, work), rational(node.high, env, work)
    if low is None or high is None:
        return None
    if node.name == "sum":
        quick = polynomial_sum(
            node.body, node.var, low, high, lambda k: rational(node.body, {**env, node.var: k}, work)
        )
        if quick is not None:
            return quick
    combine = total if node.name == "sum" else product
    inner = dict(env)
    stack: list[tuple[int, flint.fmpq]] = []
    for k in bounds_of(low, high):
        inner[node.var] = Q(k)
        value = rational(node.body, inner, work)
        if value is None:
            return None
        count = 1
        while stack and stack[-1][0] == count:
            other = stack.pop()[1]
            work.spend_on(other, value)
            count, value = 2 * count, combine([other, value], work)
        stack.append((count, value))
    found = _ZERO if node.name == "sum" else _ONE
    for _, value in reversed(stack):
        work.spend_on(found, value)
        found = combine([value, found], work)
    return found


def _determinant(node: Node, env: Env, work: Work) -> flint.fmpq | None:
    if not isinstance(node, Matrix):
        return None
    size = len(node.rows)
    if len(node.rows[0]) != size:
        raise Undefined("the determinant of a matrix that is not square")
    if size > _MAX_MATRIX:
        raise TooLarge("a matrix is too large")
    entries = [rational(entry, env, work) for row in node.rows for entry in row]
    known = [entry for entry in entries if entry is not None]
    if len(known) < len(entries):
        return None
    work.spend_on(*known * size)
    return flint.fmpq_mat(size, size, known).det()
