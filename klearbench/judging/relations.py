"""Intervals, inequalities, unions and equations, compared as sympy sets or up to a constant factor."""

from __future__ import annotations

import re
from typing import Any

import sympy

from klearbench.judging.forms import Form, parse
from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN
from klearbench.judging.size import INCOMPARABLE, Unreadable
from klearbench.judging.symbolic import same_equation, to_sympy

_SET_WORDS = {
    **dict.fromkeys(
        ("all real numbers", "all reals", "real numbers", "all real x", "any real number", "every real number"), "R"
    ),
    **dict.fromkeys(
        ("no solution", "no solutions", "none", "empty set", "no real solutions", "no real solution", "the empty set"),
        "0",
    ),
}
_ORDERS = {"<", ">", r"\le", r"\ge", r"\ne"}
_AND = re.compile(rf"{TEXT_OPEN}?\s*\band\b\s*{TEXT_CLOSE}?", re.IGNORECASE)
_OR = re.compile(rf"{TEXT_OPEN}?\s*(?:\bor\b|或)\s*{TEXT_CLOSE}?", re.IGNORECASE)


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " ")).strip(" .").lower()


def is_setlike(form: Form) -> bool:
    """Interval, union, inequality, or a named set of numbers."""
    if form.kind in ("interval", "union"):
        return not (form.kind == "union" and all(parse(p).kind == "set" for p in form.parts))
    if form.kind == "relation":
        return bool(set(form.marks) & _ORDERS) or (
            r"\in" in form.marks and len(form.parts) == 2 and is_setlike(parse(form.parts[1]))
        )
    if form.kind == "list":
        return all(is_setlike(parse(p)) and parse(p).kind == "relation" for p in form.parts)
    return form.kind == "value" and _named_set(form.parts[0]) is not None


def _named_set(text: str) -> Any:
    if plain(text) in _SET_WORDS:
        return sympy.S.Reals if _SET_WORDS[plain(text)] == "R" else sympy.S.EmptySet
    squashed = re.sub(r"\s", "", text)
    if re.fullmatch(r"\\mathbb\{?R\}?|\\Reals", squashed):
        return sympy.S.Reals
    if re.fullmatch(r"\\emptyset|\\phi|\\\{\\\}", squashed):
        return sympy.S.EmptySet
    if r"\setminus" in text:
        return text
    return None


def sets_equal(gold: str, answer: str) -> bool:
    """Whether two descriptions are the same set of real numbers (in the same variable, if both name one)."""
    try:
        g, a = _Reader(), _Reader()
        one, other = g.read(gold), a.read(answer)
        if g.names and a.names and g.names != a.names:
            return _same_inequality(gold, answer)
        if len(g.names) > 1 or len(a.names) > 1:
            return _same_inequality(gold, answer)
        if one == other:
            return True
        difference = sympy.simplify(sympy.SymmetricDifference(one, other)) if _simple(one, other) else None
        return bool(difference == sympy.S.EmptySet)
    except Unreadable:
        return _same_inequality(gold, answer)
    except INCOMPARABLE:
        return False


def _simple(*sets: Any) -> bool:
    kinds = (sympy.Interval, sympy.Union, sympy.FiniteSet, sympy.Complement)
    return all(isinstance(s, kinds) or s in (sympy.S.Reals, sympy.S.EmptySet) for s in sets)


class _Reader:
    """Text to sympy set; remembers the variables it met."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def read(self, text: str) -> Any:
        text = re.sub(r"^\s*(\\\{)?\s*[A-Za-z]\s?\\in\s?\\mathbb\{R\}\s?[|:]", r"\1", text)
        named = _named_set(text)
        if named is not None and not isinstance(named, str):
            return named
        if r"\setminus" in text:
            left, _, right = text.partition(r"\setminus")
            return sympy.Complement(self.read(left), self.read(right))
        for pattern, combine in ((_OR, sympy.Union), (_AND, sympy.Intersection)):
            parts = [p.strip(" ,") for p in pattern.split(text)]
            if len(parts) > 1 and all(parts):
                return combine(*(self.read(p) for p in parts))
        return self._form(text)

    def _form(self, text: str) -> Any:
        builder = re.fullmatch(r"\\\{\s*[A-Za-z]\s*[|:](.*)\\\}", text.strip())
        if builder is not None:
            return self.read(builder[1])
        if r"\cap" in text:
            return sympy.Intersection(*(self.read(p) for p in re.split(r"\\cap(?![a-z])", text)))
        form = parse(text)
        if form.kind == "union":
            return sympy.Union(*(self.read(p) for p in form.parts))
        if form.kind == "list":
            parts = [self.read(p) for p in form.parts]
            both = sympy.Intersection(*parts)
            return sympy.Union(*parts) if both == sympy.S.EmptySet else both  # "x < 0, x > 1" can only mean "or"
        if form.kind == "set":
            return sympy.FiniteSet(*(_value(p) for p in form.parts))
        if form.kind in ("interval", "tuple") and len(form.parts) == 2:
            low, high = (_value(p) for p in form.parts)
            if (low.is_infinite and form.marks[0] == "[") or (high.is_infinite and form.marks[1] == "]"):
                raise Unreadable("infinity is no member of an interval of reals")
            return sympy.Interval(low, high, form.marks[0] == "(", form.marks[1] == ")")
        if form.kind == "relation":
            return self._relation(form)
        raise Unreadable("no set")

    def _relation(self, form: Form) -> Any:
        if form.marks == (r"\in",) and len(form.parts) == 2:
            self.names.add(form.parts[0].strip())
            return self.read(form.parts[1])
        sides = [_value(p) for p in form.parts]
        symbols = set().union(*(s.free_symbols for s in sides))
        self.names |= {str(s) for s in symbols}
        if len(symbols) != 1:
            return sympy.S.EmptySet  # two variables: compared as an inequality, not as a set
        symbol = next(iter(symbols))
        real = sympy.Symbol("x", real=True)
        pairs = [
            _relational(mark, left.subs(symbol, real), right.subs(symbol, real))
            for mark, left, right in zip(form.marks, sides, sides[1:], strict=False)
        ]
        return sympy.Intersection(*(_solution(p, real) for p in pairs))


def _value(text: str) -> Any:
    return to_sympy(re.sub(r"^\+\s?", "", text.strip()))


def _relational(mark: str, left: Any, right: Any) -> Any:
    kinds = {"<": sympy.Lt, ">": sympy.Gt, r"\le": sympy.Le, r"\ge": sympy.Ge, r"\ne": sympy.Ne, "=": sympy.Eq}
    if mark not in kinds:
        raise Unreadable(f"relation {mark}")
    return kinds[mark](left, right)


def _solution(relation: Any, symbol: Any) -> Any:
    if relation in (sympy.true, sympy.false):
        return sympy.S.Reals if relation == sympy.true else sympy.S.EmptySet
    if isinstance(relation, sympy.Ne):
        return sympy.Complement(sympy.S.Reals, sympy.solveset(relation.lhs - relation.rhs, symbol, sympy.S.Reals))
    return sympy.solveset(relation, symbol, sympy.S.Reals)


def _same_inequality(gold: str, answer: str) -> bool:
    """Two inequalities of several variables: the same up to rearrangement and a positive factor."""
    g, a = parse(gold), parse(answer)
    if g.kind != "relation" or a.kind != "relation" or len(g.parts) != len(a.parts):
        return False
    if len(g.parts) == 3:
        forward = g.marks == a.marks and all(_same_value(x, y) for x, y in zip(g.parts, a.parts, strict=True))
        flipped = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}
        back = [flipped.get(m) for m in reversed(a.marks)] == list(g.marks)
        return forward or (back and all(_same_value(x, y) for x, y in zip(g.parts, reversed(a.parts), strict=True)))
    one, other = _difference(g), _difference(a)
    if one is None or other is None or one[0] != other[0]:
        return False
    ratio = sympy.simplify(one[1] / other[1])
    return bool(ratio.is_number and (ratio.is_positive or (one[0] in ("=", r"\ne") and ratio.is_nonzero)))


def _same_value(x: str, y: str) -> bool:
    return bool(sympy.simplify(_value(x) - _value(y)) == 0)


def _difference(form: Form) -> tuple[str, Any] | None:
    """An inequality as `mark, expression` with the mark pointing down (<, <=) or symmetric."""
    left, right = (_value(p) for p in form.parts[:2])
    mark = form.marks[0]
    if mark in (">", r"\ge"):
        return {">": "<", r"\ge": r"\le"}[mark], right - left
    return (mark, left - right) if mark in ("<", r"\le", r"\ne", "=") else None


def equations_equal(gold: Form, answer: Form) -> bool:
    """Two equations: the same up to rearrangement and a non-zero factor."""
    try:
        if len(gold.parts) != 2 or len(answer.parts) != 2:
            return len(gold.parts) == len(answer.parts) and all(
                _same_value(x, y) for x, y in zip(gold.parts, answer.parts, strict=True)
            )
        one, other = (_value(f.parts[0]) - _value(f.parts[1]) for f in (gold, answer))
        return same_equation(one, other)
    except Unreadable:
        return False
    except INCOMPARABLE:
        return False
