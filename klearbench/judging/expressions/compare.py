"""Whether two expressions are equal: as numbers, as functions of real variables, as matrices or piecewise functions.

A difference is proven; equality is proven for rationals and rational functions, and is otherwise agreement to more bits
than any term could hide in, for functions at sample points. Undefined expressions equal nothing, not even themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import flint

from klearbench.judging.expressions import sympy_bridge
from klearbench.judging.expressions.agreement import FIRST_BITS, Outcome, Pair
from klearbench.judging.expressions.balls import Evaluation, is_complex, precision
from klearbench.judging.expressions.bounds import TooLarge, Undecided, Undefined, Work
from klearbench.judging.expressions.exact import Env
from klearbench.judging.expressions.infinite import Infinite
from klearbench.judging.expressions.matrices import is_matrix, rows_of
from klearbench.judging.expressions.nodes import Cases, Const, Node, Num, Op, Sym
from klearbench.judging.expressions.rational import same_function, same_zeros
from klearbench.judging.expressions.samples import (
    KINKS,
    boundaries,
    has,
    natural_names,
    piecewise_points,
    points,
    spread,
)
from klearbench.judging.expressions.shape import shape
from klearbench.judging.expressions.tree import children, symbols

_ENOUGH = 4
"""Sample points that must agree."""
_MOST = 8
"""Sample points that are looked at when all agree."""
_SETTLED = 2
"""Of them, those compared at full precision."""
_MOST_WITH_KINKS = 40
"""The same where a formula changes somewhere."""
_RATIO_BITS = 640


def equal(gold: Node, answer: Node) -> bool:
    """Whether two expressions are equal where both are defined. Raises Unreadable where sympy can't evaluate one."""
    if sympy_bridge.needed(gold, answer):
        return sympy_bridge.equal(gold, answer)
    if is_matrix(gold) or is_matrix(answer):
        return _matrices_equal(gold, answer)
    names = _names(gold, answer)
    pair = Pair(gold, answer, is_complex(gold, answer), Work(), real=bool(names))
    try:
        return _functions_equal(pair, names) if names else _numbers_equal(pair)
    except Undefined:
        return False


def order(a: Node, b: Node) -> int | None:
    """-1, 0 or 1 for two real constants; None where it is undecided, or one is undefined or not real."""
    if symbols(a) or symbols(b) or is_matrix(a) or is_matrix(b):
        return None
    pair = Pair(a, b, is_complex(a, b), Work())
    outcome = pair.settle({})
    if outcome == Outcome.EQUAL:
        return 0 if _is_real(a) else None
    return pair.sign or None if outcome == Outcome.DIFFERENT else None


def _is_real(node: Node) -> bool:
    with precision(64):
        try:
            value = Evaluation({}, is_complex(node)).value(node)
        except (Undefined, Undecided, TooLarge):
            return False
        return isinstance(value, Infinite) or not hasattr(value, "imag") or bool(value.imag.contains(0))


def _matrices_equal(gold: Node, answer: Node) -> bool:
    if not (is_matrix(gold) and is_matrix(answer)):
        return False
    try:
        one, other = rows_of(gold), rows_of(answer)
    except Undefined:
        return False
    if (len(one), len(one[0])) != (len(other), len(other[0])):
        return False
    pairs = [pair for rows in zip(one, other, strict=True) for pair in zip(*rows, strict=True)]
    return all(equal(a, b) for a, b in pairs)


def _numbers_equal(pair: Pair) -> bool:
    outcome = pair.settle({})
    if outcome in (Outcome.UNDECIDED, Outcome.TOO_LARGE):
        return _same_shape(pair)
    return outcome == Outcome.EQUAL


def _same_shape(pair: Pair) -> bool:
    """For what is too large to evaluate: one expression in two spellings."""
    one, other = pair.trees
    try:
        return bool(shape(one) == shape(other))
    except (Undefined, TooLarge):
        return False


def _functions_equal(pair: Pair, names: list[str]) -> bool:
    piecewise = any(_has_cases(tree) for tree in pair.trees)
    kinks = piecewise or any(has(tree, KINKS) for tree in pair.trees)
    if not kinks:
        exact = same_function(*pair.trees)
        if exact is not None:
            return exact
    where = _points(pair, names)
    if kinks:
        where = piecewise_points(where, boundaries(*pair.trees))
    agreed = 0
    seen: set[Outcome] = set()
    for env in where:
        outcome = pair.glance(env) if agreed >= _SETTLED else pair.settle(env)
        if outcome == Outcome.DIFFERENT or (piecewise and outcome == Outcome.ONE_UNDEFINED):
            return False
        agreed += outcome == Outcome.EQUAL
        seen.add(outcome)
        if agreed >= (_MOST_WITH_KINKS if kinks else _MOST):
            return True
    if agreed >= (1 if piecewise else _ENOUGH):
        return True
    return bool(seen & {Outcome.TOO_LARGE, Outcome.UNDECIDED}) and _same_shape(pair)


def _points(pair: Pair, names: list[str]) -> Iterator[Env]:
    one, other = pair.trees
    return points(names, natural_names(one) | natural_names(other), spread(one, other))


def _has_cases(node: Node) -> bool:
    return isinstance(node, Cases) or any(_has_cases(child) for child in children(node))


def _names(*nodes: Node) -> list[str]:
    """The free variables in alphabetical order."""
    found: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Op):
            waiting += node.args
        elif isinstance(node, Sym):
            found.add(node.name)
        elif not isinstance(node, Num | Const):
            found |= symbols(node)
    return sorted(found)


def same_equation(f: Node, g: Node) -> bool:
    """Whether f = 0 and g = 0 are one equation: the same up to a constant factor other than 0."""
    names = symbols(f)
    if not names or names != symbols(g):
        return False
    try:
        exact = same_zeros(f, g)
        return _proportional(f, g, sorted(names)) if exact is None else exact
    except Undefined:
        return False


def _proportional(f: Node, g: Node, names: list[str]) -> bool:
    """Whether f / g is one constant at all sample points where it can be told."""
    pair = Pair(f, g, is_complex(f, g), Work(), real=True)
    for bits in (FIRST_BITS, _RATIO_BITS):
        ratios: list[flint.acb] = []
        for env in _points(pair, names):
            ratio = pair.ratio(env, bits)
            if ratio is None:
                continue
            if ratios and not ratio.overlaps(ratios[0]):
                return False
            ratios.append(ratio)
            if len(ratios) == _MOST:
                break
        if len(ratios) < _ENOUGH:
            return False
    return True
