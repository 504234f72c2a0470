"""Where expressions are compared: points in every regime of the reals, natural numbers where only these make sense."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import flint

from klearbench.judging.expressions.bounds import Work
from klearbench.judging.expressions.exact import Env, rational
from klearbench.judging.expressions.exactops import apply, as_rational
from klearbench.judging.expressions.nodes import Big, Cases, Node, Num, Op, Unreadable
from klearbench.judging.expressions.tree import children, symbols

_REALS = tuple(
    Fraction(text)
    for text in [
        "7/5",
        "3/17",
        "-13/7",
        "1009/7",
        "-1/3",
        "37/9",
        "11/23",
        "-41/13",
        "29/11",
        "-2003/3",
        "1/50",
        "-6/11",
    ]
)
_NATURALS = (5, 8, 3, 12, 7, 4, 10, 2, 6, 9, 11, 15)
_ROUNDS = 60
_ZERO, _ONE = Num(Fraction(0)), Num(Fraction(1))
_DISCRETE = frozenset(("factorial", "double_factorial", "binomial", "gcd", "lcm", "phi", "mod"))
_MAX_BOUNDARIES = 24
_LARGEST_SPREAD = 10**9
_SPREAD_WORK = 2000
_STEPPED = frozenset(("floor", "ceil"))
_INTEGERS_BY_NAME = frozenset("ijkmnpqNMK")
_ARITHMETIC = frozenset(("add", "mul", "neg", "div", "pow"))
_FAR = 100
_CLOSE = flint.fmpq(1, 1009)
_STEPS = frozenset(("floor", "ceil", "mod"))
KINKS = frozenset(("abs", "sign", "max", "min", "floor", "ceil", "mod"))
"""Operations that change their formula somewhere."""


def natural_names(node: Node) -> frozenset[str]:
    """Variables that stand for natural numbers: below factorials, in binomials, in exponents of negative numbers, and
    those under a floor whose name says so, as in floor(n/2).
    """
    found = frozenset[str]().union(*(natural_names(child) for child in children(node)))
    if isinstance(node, Op):
        if node.name in _DISCRETE:
            return found | symbols(node)
        if node.name in _STEPPED:
            return found | (symbols(node) & _INTEGERS_BY_NAME)
        if node.name == "pow" and _is_negative(node.args[0]):
            return found | symbols(node.args[1])
    if isinstance(node, Big) and node.name in ("sum", "product"):
        limits = [symbols(limit) for limit in (node.low, node.high) if limit is not None]
        return (found - {node.var}).union(*limits)
    return found


def _is_negative(node: Node) -> bool:
    if isinstance(node, Num):
        return node.value < 0
    return isinstance(node, Op) and node.name == "neg" and not symbols(node)


def has(node: Node, operations: frozenset[str]) -> bool:
    """Whether one of these operations appears."""
    if isinstance(node, Op) and node.name in operations:
        return True
    return any(has(child, operations) for child in children(node))


def spread(*nodes: Node) -> Fraction:
    """The largest constant in the trees, huge ones apart: points beyond it see what happens on both sides of it."""
    found = [flint.fmpq(0)]
    for node in nodes:
        _collect(node, found, Work(_SPREAD_WORK))
    largest = max(value for value in found if value <= _LARGEST_SPREAD)
    return Fraction(int(largest.p), int(largest.q))


def _collect(node: Node, found: list[flint.fmpq], work: Work) -> flint.fmpq | None:
    """The value of a constant tree; the sizes of all constants go into `found`."""
    value: flint.fmpq | None = None
    if isinstance(node, Num):
        value = as_rational(node.value)
    else:
        parts = [_collect(child, found, work) for child in children(node)]
        if isinstance(node, Op) and node.name in _ARITHMETIC and None not in parts:
            try:
                value = apply(node.name, parts, work)
            except Unreadable:
                return None
    if value is not None:
        found.append(abs(value))
    return value


def points(names: list[str], natural: frozenset[str], far: Fraction) -> Iterator[Env]:
    """Points to compare functions at, ordinary ones first; some lie beyond +-`far`."""
    for turn in range(_ROUNDS):
        yield {
            name: flint.fmpq(_natural(turn, i)) if name in natural else as_rational(_real(turn, i, far))
            for i, name in enumerate(names)
        }


def _natural(turn: int, i: int) -> int:
    value = _NATURALS[(turn * (2 * i + 1) + 5 * i) % 12]
    return value if turn < 24 else value * (3 + turn % 5) + i


def _real(turn: int, i: int, far: Fraction) -> Fraction:
    value = _REALS[(turn * (2 * i + 1) + 5 * i) % 12]
    if abs(value) > _FAR:
        value += far if value > 0 else -far
    if i:
        value += Fraction(i, 31)
    regime = turn // 12
    if regime == 1:
        return abs(value)
    if regime == 2:
        return 1 / (1 + abs(value))
    if regime == 3:
        return -1 / (1 + abs(value)) if (turn + i) % 2 else value * 40
    return value * (900 if turn % 2 else -900) ** (1 + i % 2) if regime == 4 else value


def boundaries(*nodes: Node) -> dict[str, list[flint.fmpq]]:
    """Rational values at which a formula may change, by variable, in rising order. Raises Unreadable for too many."""
    found: dict[str, set[flint.fmpq]] = {}
    for node in nodes:
        for left, right in _meetings(node):
            for name, value in _changes(left, right):
                found.setdefault(name, set()).add(value)
    if sum(map(len, found.values())) > _MAX_BOUNDARIES:
        raise Unreadable("a piecewise function of too many pieces")
    return {name: sorted(values) for name, values in found.items()}


def _meetings(node: Node) -> Iterator[tuple[Node, Node]]:
    """Pairs of expressions where a formula changes when they are equal."""
    if isinstance(node, Cases):
        for _, conditions in node.rows:
            for relation in conditions:
                yield from pairwise(relation.parts)
    if isinstance(node, Op):
        if node.name in ("abs", "sign"):
            yield node.args[0], _ZERO
        elif node.name in ("max", "min"):
            yield from pairwise(node.args)
        elif node.name in _STEPS:
            yield node.args[0], _ZERO
            yield node.args[0], _ONE
    for child in children(node):
        yield from _meetings(child)


def _changes(left: Node, right: Node) -> Iterator[tuple[str, flint.fmpq]]:
    """Where left - right, if linear in its only variable, is zero."""
    names = symbols(left) | symbols(right)
    if len(names) != 1:
        return
    (name,) = names
    difference = Op("add", (left, Op("neg", (right,))))
    try:
        values = [rational(difference, {name: flint.fmpq(at)}, Work(1000)) for at in (0, 1, 3)]
    except Unreadable:
        return
    a, b, c = values
    if a is not None and b is not None and c is not None and a != b and c - a == 3 * (b - a):
        yield name, -a / (b - a)


def piecewise_points(ordinary: Iterator[Env], edges: dict[str, list[flint.fmpq]]) -> Iterator[Env]:
    """Ordinary points, and those at, around and between the values where a formula may change."""
    for turn, base in enumerate(ordinary):
        yield base
        if turn < 2:
            for name, values in edges.items():
                for value in _around(values, turn):
                    yield {**base, name: value}


def _around(values: list[flint.fmpq], turn: int) -> Iterator[flint.fmpq]:
    share = flint.fmpq(3, 7) if turn else flint.fmpq(5, 8)
    if turn == 0:
        for value in values:
            yield from (value, value - _CLOSE, value + _CLOSE)
    yield values[0] - share
    yield values[-1] + share
    for low, high in pairwise(values):
        yield low + share * (high - low)
