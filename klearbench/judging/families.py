r"""General solutions with an integer parameter, such as `x = \frac{\pi}{4} + k\pi, k \in \mathbb{Z}`.

Two of them are equal when they are the same set of numbers: the parameter's name, a shift or another sign of it, and
the split into several families don't matter. Linear families are compared by their residues, others as functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import cast

from klearbench.judging.expressions.balls import ball
from klearbench.judging.expressions.compare import equal
from klearbench.judging.expressions.exact import exact_value
from klearbench.judging.expressions.nodes import Const, Node, Num, Op, Sym, Unreadable
from klearbench.judging.expressions.parser import parse_expression
from klearbench.judging.expressions.tree import minus, over, replaced, symbols, times
from klearbench.judging.listing import members
from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN

_T = f"[{TEXT_OPEN}{TEXT_CLOSE}]"
_INTEGERS = (
    rf"(?:\\in\s?(?:\\mathbb\s?\{{?\s?Z\s?\}}?|Z\b)|(?:{_T}|\s){{0,4}}(?:is|are|be|being)?\s?(?:an|any|some|arbitrary|all)?\s?"
    rf"(?:arbitrary\s)?integers?|=\s?0\s?,\s?\\pm\s?1\s?,.{{0,40}})"
)
_CLAUSE = re.compile(
    rf"(?:[\s,;:|]|{_T}){{0,6}}\(?(?:{_T}|\s){{0,4}}(?:where|for(?:\s(?:any|all|every|some))?|with|and|any|integers?)?(?:{_T}|\s){{0,4}}"
    rf"(?P<name>[a-z])\s?{_INTEGERS}\)?(?:{_T}|\s|\.){{0,4}}\Z"
)
_HEAD = re.compile(r"\A[A-Za-z]\s?(?:=|\\in)\s?|\A\\(?:theta|alpha|beta|phi|varphi)\s?=\s?")
_MAX_RESIDUES = 2_000
_MAX_FAMILIES = 12


@dataclass(frozen=True, slots=True)
class Family:
    """The members of a general solution and the name of the integer in them ("" when not said)."""

    terms: tuple[str, ...]
    name: str


def family(text: str) -> Family | None:
    """A text read as a general solution; None without words that name its integer."""
    text = text.strip().removesuffix(r"\}")
    clause = _CLAUSE.search(text)
    if clause is None or not re.search(rf"(?<![A-Za-z\\]){clause['name']}(?![A-Za-z])", text[: clause.start()]):
        return None
    return Family(_terms(text[: clause.start()]), clause["name"])


def unnamed_family(text: str) -> Family:
    """A text read as a general solution whose integer is not said to be one."""
    return Family(_terms(text.strip()), "")


def _terms(body: str) -> tuple[str, ...]:
    if body.startswith(r"\{"):
        body = body.removeprefix(r"\{").removesuffix(r"\}")
    return tuple(_HEAD.sub("", member.strip()) for member in members(body))


def families_equal(gold: Family, answer: Family) -> bool:
    """Whether two general solutions are one set of numbers."""
    if not gold.terms or not answer.terms or max(len(gold.terms), len(answer.terms)) > _MAX_FAMILIES:
        return False
    try:
        want = [parse_expression(term) for term in gold.terms]
        have = [parse_expression(term) for term in answer.terms]
        name = answer.name or _only_variable(have, gold.name)
        if not name:
            return False
        have = [replaced(node, Sym(name), Sym(gold.name)) for node in have]
        if len(want) == len(have) and all(any(equal(w, h) for h in have) for w in want):
            return all(any(equal(w, h) for w in want) for h in have)
        one, other = _residues(want, gold.name), _residues(have, gold.name)
    except Unreadable:
        return False
    return one is not None and one == other


def _only_variable(nodes: Iterable[Node], preferred: str) -> str:
    names = set().union(*(symbols(node) for node in nodes))
    return preferred if preferred in names else names.pop() if len(names) == 1 else ""


Residues = tuple[str, Fraction, frozenset[Fraction]]
"""What is counted in ("pi" or "1"), the common period, and the residues modulo it."""


def _residues(nodes: list[Node], name: str) -> Residues | None:
    """The union of linear families as residues modulo a common period; None when one is of another kind."""
    lines = [line for node in nodes for line in _lines(node, name)]
    for unit in (Num(Fraction(1)), cast(Node, Const("pi"))):
        pairs = [(_multiple(start, unit), _multiple(step, unit)) for start, step in lines]
        if all(start is not None and step for start, step in pairs):
            return _reduce("1" if isinstance(unit, Num) else "pi", cast(list[tuple[Fraction, Fraction]], pairs))
    return None


def _lines(node: Node, name: str) -> list[tuple[Node, Node]]:
    """A family as one line (start, step), or as two where it alternates, like (-1)^k a + kb. Raises Unreadable."""
    k = Sym(name)
    even = times(Num(Fraction(2)), k)
    odd = Op("add", (even, Num(Fraction(1))))
    for parts in ((node,), (replaced(node, k, even), replaced(node, k, odd))):
        lines = [_line(part, name) for part in parts]
        if all(line is not None for line in lines):
            return [line for line in lines if line is not None]
    raise Unreadable("the family isn't linear")


def _line(node: Node, name: str) -> tuple[Node, Node] | None:
    start, one, two, five = (replaced(node, Sym(name), Num(Fraction(k))) for k in (0, 1, 2, 5))
    step = minus(one, start)
    linear = equal(minus(two, one), step) and equal(minus(five, start), times(Num(Fraction(5)), step))
    return (start, step) if linear else None


def _multiple(value: Node, unit: Node) -> Fraction | None:
    """The rational r with value = r unit; None when there is none with a small denominator."""
    if isinstance(unit, Num):
        return exact_value(value)
    there = ball(over(value, unit), 128)
    if there is None or not there.imag.contains(0):
        return None
    guess = Fraction(str(there.real.mid().str(30, radius=False))).limit_denominator(10_000)
    return guess if equal(value, times(Num(guess), unit)) else None


def _reduce(unit: str, pairs: list[tuple[Fraction, Fraction]]) -> Residues | None:
    bottom = lcm(*(step.denominator for _, step in pairs))
    period = Fraction(lcm(*(abs(int(step * bottom)) for _, step in pairs)), bottom)
    if sum(period / abs(step) for _, step in pairs) > _MAX_RESIDUES:
        return None
    residues = frozenset(
        (start + turn * abs(step)) % period for start, step in pairs for turn in range(int(period / abs(step)))
    )
    return unit, *_shortest(period, residues)


def _shortest(period: Fraction, residues: frozenset[Fraction]) -> tuple[Fraction, frozenset[Fraction]]:
    """The same set with its least period."""
    for parts in range(len(residues), 1, -1):
        shorter = period / parts
        reduced = frozenset(residue % shorter for residue in residues)
        if len(residues) == parts * len(reduced):
            return shorter, reduced
    return period, residues
