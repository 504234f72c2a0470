"""A canonical form for what is too large to evaluate: order, brackets and exact parts no longer matter."""

from __future__ import annotations

from typing import Any, TypeAlias

import flint

from klearbench.judging.expressions.bounds import TooLarge, Work
from klearbench.judging.expressions.exactops import apply, as_rational
from klearbench.judging.expressions.nodes import Big, Cases, Matrix, Node, Num, Op

Shape: TypeAlias = Any
"""A rational number, a node, or a tuple that begins with an operation's name; hashable."""
_ONE = flint.fmpq(1)
_LARGEST_BASE = 10**18
_DEGREES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59)
_Terms = dict[Shape, flint.fmpq]


def shape(node: Node, work: Work | None = None) -> Shape:
    """A form that equal trees share; distinct forms may still have equal values. Raises Undefined and TooLarge."""
    work = work or Work()
    if isinstance(node, Num):
        return as_rational(node.value)
    if isinstance(node, Op):
        return _operation(node.name, [shape(arg, work) for arg in node.args], work)
    if isinstance(node, Big):
        low, high = (None if part is None else shape(part, work) for part in (node.low, node.high))
        return node.name, node.var, low, high, shape(node.body, work)
    if isinstance(node, Matrix):
        return "matrix", tuple(tuple(shape(entry, work) for entry in row) for row in node.rows)
    if isinstance(node, Cases):
        return "cases", tuple(
            (shape(value, work), tuple((tuple(shape(part, work) for part in c.parts), c.marks) for c in conditions))
            for value, conditions in node.rows
        )
    return node


def _operation(name: str, parts: list[Shape], work: Work) -> Shape:
    exact = [part for part in parts if isinstance(part, flint.fmpq)]
    if len(exact) == len(parts):
        try:
            found = apply(name, exact, work)
        except TooLarge:
            found = None
        if found is not None:
            return found
    if name == "root" and isinstance(parts[1], flint.fmpq) and parts[1] != 0:
        name, parts = "pow", [parts[0], 1 / parts[1]]
    if name == "exp":
        return "pow", "e", parts[0]
    if name == "neg":
        return _product([flint.fmpq(-1), parts[0]], work)
    if name == "div":
        return _product([parts[0], _power(parts[1], flint.fmpq(-1), work)], work)
    if name == "mul":
        return _product(parts, work)
    if name == "add":
        return _sum(parts, work)
    if name == "pow":
        return _power(parts[0], parts[1], work)
    if name in ("gcd", "lcm", "max", "min"):
        return name, frozenset(parts)
    return name, tuple(parts)


def _power(base: Shape, exponent: Shape, work: Work) -> Shape:
    """A power, over the least base: 4^n is 2^(2n)."""
    if isinstance(base, flint.fmpq) and base.q == 1 and 1 < base.p < _LARGEST_BASE:
        for degree in _DEGREES:
            root = base.p.root(degree)
            while root > 1 and root**degree == base.p:
                base, exponent = flint.fmpq(root), _product([flint.fmpq(degree), exponent], work)
                root = root.root(degree)
    if exponent == _ONE:
        return base
    if isinstance(exponent, flint.fmpq):
        return "mul", _ONE, frozenset(((base, exponent),))
    return "pow", base, exponent


def _sum(parts: list[Shape], work: Work) -> Shape:
    constant = flint.fmpq(0)
    terms: _Terms = {}
    for part in parts:
        if isinstance(part, flint.fmpq):
            constant = _plus(constant, part, work)
        elif isinstance(part, tuple) and part[0] == "add":
            constant = _plus(constant, part[1], work)
            _gather(terms, part[2], work)
        elif isinstance(part, tuple) and part[0] == "mul" and part[1] != 1:
            _gather(terms, (((*part[:1], _ONE, part[2]), part[1]),), work)
        else:
            _gather(terms, ((part, _ONE),), work)
    kept = frozenset((term, times) for term, times in terms.items() if times != 0)
    if not kept:
        return constant
    ((term, times),) = kept if len(kept) == 1 else ((None, None),)
    if constant != 0 or term is None:
        return "add", constant, kept
    return _product([times, term], work)


def _product(parts: list[Shape], work: Work) -> Shape:
    constant = _ONE
    factors: _Terms = {}
    for part in parts:
        if isinstance(part, flint.fmpq):
            work.spend_on(constant, part)
            constant *= part
        elif isinstance(part, tuple) and part[0] == "mul":
            work.spend_on(constant, part[1])
            constant *= part[1]
            _gather(factors, part[2], work)
        else:
            _gather(factors, ((part, _ONE),), work)
    kept = frozenset((factor, times) for factor, times in factors.items() if times != 0)
    if not kept:
        return constant
    ((factor, times),) = kept if len(kept) == 1 else ((None, None),)
    return factor if constant == 1 and times == 1 else ("mul", constant, kept)


def _plus(one: flint.fmpq, other: flint.fmpq, work: Work) -> flint.fmpq:
    work.spend_on(one, other)
    return one + other


def _gather(found: _Terms, more: Any, work: Work) -> None:
    for part, times in more:
        found[part] = _plus(found.get(part, flint.fmpq(0)), times, work)
