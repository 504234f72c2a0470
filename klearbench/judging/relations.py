"""Intervals, inequalities, unions and equations: compared as sets of numbers, or up to a constant factor."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise

from klearbench.judging.expressions.compare import equal, order, same_equation
from klearbench.judging.expressions.nodes import Node, Num, Op, Relation, Sym, Unreadable
from klearbench.judging.expressions.realsets import EMPTY, RealSet
from klearbench.judging.expressions.signs import flipped
from klearbench.judging.expressions.solve import solutions
from klearbench.judging.expressions.tree import minus, over, replaced, symbols, times
from klearbench.judging.forms import Form, parse, split_top
from klearbench.judging.listing import both_signs
from klearbench.judging.setreading import (
    SetReader,
    completed,
    is_difference,
    is_number_set,
    is_set_builder,
    value_of,
)
from klearbench.judging.setwords import in_signs

_ORDERS = {"<", ">", r"\le", r"\ge", r"\ne"}
_MAX_CONSTRAINTS = 12
_SAMPLES = 4

Constraint = tuple[str, Node]
"""`f mark 0`, the mark one of <, \\le, =, \\ne."""


def is_setlike(form: Form) -> bool:
    """Interval, union, inequality, set builder, or a named set of numbers."""
    if form.kind == "interval":
        return True
    if form.kind == "union":
        return not all(parse(part).kind == "set" for part in form.parts)
    if form.kind == "set":
        return not form.parts or is_set_builder(form.parts[0])
    if form.kind == "relation":
        return bool(set(form.marks) & _ORDERS) or (
            r"\in" in form.marks and len(form.parts) == 2 and _is_set(parse(form.parts[1]))
        )
    if form.kind == "list":
        parts = [parse(part) for part in completed(list(form.parts))]
        return (all(part.kind == "relation" for part in parts) and _are_setlike(parts)) or _is_description(form)
    return form.kind == "value" and _is_description(form)


def _is_set(form: Form) -> bool:
    r"""What may stand after \in: a pair is an interval there, a letter the set of that name."""
    return (
        is_setlike(form)
        or (form.kind == "tuple" and len(form.parts) == 2)
        or (form.kind == "value" and form.parts[0] in ("R", "Z", "N", "Q"))
    )


def _are_setlike(parts: list[Form]) -> bool:
    """Inequalities; equations among them must be of the same variable (`x = 1 or x > 3`)."""
    kinds = [is_setlike(part) for part in parts]
    return all(kinds) or (any(kinds) and len({part.parts[0] for part in parts}) == 1)


def _is_description(form: Form) -> bool:
    """A named set, in a sign or in words, perhaps without some members."""
    text = in_signs(", ".join(form.parts))
    return is_number_set(text) or is_difference(text)


def sets_equal(gold: str, answer: str) -> bool:
    """Whether two descriptions are the same set of numbers (in the same variable, if both name one).

    Inequalities of several variables, and those that are not solved, are compared up to positive factors.
    """
    try:
        return _same_sets(gold, answer)
    except Unreadable:
        pass
    try:
        return _same_constraints(_constraints(gold), _constraints(answer))
    except Unreadable:
        return False


def _same_sets(gold: str, answer: str) -> bool:
    for first_natural in (1, 0):  # texts disagree whether N has 0: equal is what is equal for both
        g, a = SetReader(first_natural), SetReader(first_natural)
        one, other = g.read(gold), a.read(answer)
        if (g.names and a.names and g.names != a.names) or not one.same(other):
            return False
        if not (g.met_naturals or a.met_naturals):
            break
    return True


def _constraints(text: str) -> list[Constraint]:
    """The inequalities and equations that must all hold. Raises Unreadable for anything else."""
    text = in_signs(text)
    if re.search(r"\bor\b", text):
        raise Unreadable("alternatives are no list of constraints")
    found = []
    for part in split_top(re.sub(r"\band\b", ",", text), ",;"):
        form = parse(part)
        if form.kind != "relation":
            raise Unreadable("no relation")
        sides = [value_of(side) for side in form.parts]
        found += [_downwards(a, m, b) for (a, b), m in zip(pairwise(sides), form.marks, strict=True)]
    if len(found) > _MAX_CONSTRAINTS:
        raise Unreadable("too many inequalities")
    return found


def _downwards(left: Node, mark: str, right: Node) -> Constraint:
    if mark in (">", r"\ge"):
        return flipped(mark), minus(right, left)
    flipped(mark)
    return mark, minus(left, right)


def _same_constraints(gold: list[Constraint], answer: list[Constraint]) -> bool:
    """One-to-one, in any order."""
    left = list(answer)
    for constraint in gold:
        match = next((other for other in left if _same_constraint(constraint, other)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _same_constraint(gold: Constraint, answer: Constraint) -> bool:
    (mark, f), (other, g) = gold, answer
    if mark != other or symbols(f) != symbols(g):
        return False
    if f == g:
        return _is_defined(f)
    if mark in ("=", r"\ne"):
        return same_equation(f, g)
    factor = _factor(f, g)
    return factor is not None and order(factor, _number(0)) == 1


def _is_defined(node: Node) -> bool:
    return equal(node, node)


def _factor(f: Node, g: Node) -> Node | None:
    """The constant c with f = c g, None where there is none or it is 0; both in the same variables."""
    names = sorted(symbols(f) | symbols(g))
    for sample in range(_SAMPLES):
        at_f, at_g = (_at_sample(node, names, sample) for node in (f, g))
        signs = _sign(at_f), _sign(at_g)
        if None in signs or signs == (0, 0):
            continue
        if 0 in signs:
            return None
        factor = over(at_f, at_g)
        return factor if equal(f, times(factor, g)) else None
    return None


def _at_sample(node: Node, names: list[str], sample: int) -> Node:
    for at, name in enumerate(names):
        node = replaced(node, Sym(name), _number(2 + sample + (3 + sample) * at))
    return node


def _sign(node: Node) -> int | None:
    try:
        return order(node, _number(0))
    except Unreadable:
        return None


def _number(value: int) -> Node:
    return Num(Fraction(value))


def equations_equal(gold: Form, answer: Form) -> bool:
    """Two equations, or chains of them: the same up to rearrangement and a non-zero factor.

    Equations of one variable are the same where their real solutions are.
    """
    try:
        if len(gold.parts) == len(answer.parts) == 2:
            return _same_equations(gold, answer)
        return len(gold.parts) == len(answer.parts) and _same_chains(gold, answer)
    except Unreadable:
        return False


def _same_equations(gold: Form, answer: Form) -> bool:
    one, other = _alternatives(gold), _alternatives(answer)
    names = [frozenset[str]().union(*(symbols(f) for f in found)) for found in (one, other)]
    if len(names[0]) == len(names[1]) == 1:
        if names[0] != names[1]:
            return False
        same = _same_solutions(one, other, next(iter(names[0])))
        if same is not None:
            return same
    return same_equation(_product(one), _product(other))


def _alternatives(form: Form) -> list[Node]:
    r"""The functions whose zeros are the solutions: one for each choice of the signs \pm."""
    left = both_signs(f"{form.parts[0]}\ue002{form.parts[1]}")
    return [minus(*(value_of(side) for side in text.split("\ue002"))) for text in left]


def _product(functions: list[Node]) -> Node:
    return functions[0] if len(functions) == 1 else Op("mul", tuple(functions))


def _same_solutions(gold: list[Node], answer: list[Node], name: str) -> bool | None:
    """Whether both have the same real solutions; None where they are not found, or say too little."""
    try:
        one, other = (_zeros(functions, name) for functions in (gold, answer))
        if one.points and other.points:
            return one.same(other)
    except Unreadable:
        return None
    return False if one.points or other.points else None


def _zeros(functions: list[Node], name: str) -> RealSet:
    found = EMPTY
    for f in functions:
        found = found | solutions(Relation((f, _number(0)), ("=",)), name)
    return found


def _same_chains(gold: Form, answer: Form) -> bool:
    """`a = b = c` in any order, all members times one constant."""
    members, others = ([value_of(part) for part in form.parts] for form in (gold, answer))
    if len(members) > _MAX_CONSTRAINTS:
        return False
    factors = [_number(1)]
    factors += [c for c in (_factor(members[0], other) for other in others if symbols(members[0])) if c is not None]
    return any(_matched(members, [times(factor, other) for other in others]) for factor in factors)


def _matched(members: list[Node], others: list[Node]) -> bool:
    left = list(others)
    for member in members:
        match = next((other for other in left if equal(member, other)), None)
        if match is None:
            return False
        left.remove(match)
    return True
