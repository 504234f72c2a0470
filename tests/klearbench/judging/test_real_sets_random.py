"""Random unions of intervals in every spelling, and solution sets against the relation at points."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from test_real_sets import same_sets, solved

from klearbench.judging.expressions.nodes import Num, Unreadable
from klearbench.judging.expressions.realsets import singletons
from klearbench.judging.normalize import canonical


@dataclass(frozen=True)
class Point:
    spellings: tuple[str, str]
    value: float


POINTS = sorted(
    [
        *(Point((str(n), rf"\frac{{{2 * n}}}{{2}}"), n) for n in range(-6, 7)),
        *(Point((rf"\frac{{{n}}}{{4}}", f"{n / 4}"), n / 4) for n in range(-9, 12, 2)),
        *(Point((rf"\sqrt{{{n}}}", rf"\frac{{\sqrt{{{4 * n}}}}}{{2}}"), n**0.5) for n in (2, 3, 5, 7, 11, 29)),
        *(Point((rf"-\sqrt{{{n}}}", rf"-\frac{{{n}}}{{\sqrt{{{n}}}}}"), -(n**0.5)) for n in (2, 3, 5, 7, 11, 29)),
        *(Point((rf"1+\sqrt{{{n}}}", rf"\sqrt{{{n}}}+1"), 1 + n**0.5) for n in (2, 3, 5)),
    ],
    key=lambda point: point.value,
)


@dataclass(frozen=True)
class Piece:
    low: Point | None
    high: Point | None
    low_open: bool
    high_open: bool


@st.composite
def unions(draw: st.DrawFn) -> list[Piece]:
    """Unions of intervals that do not touch; the first and the last may be infinite."""
    count = draw(st.integers(1, 3))
    at = sorted(draw(st.lists(st.integers(0, len(POINTS) - 1), min_size=2 * count, max_size=2 * count, unique=True)))
    ends: list[Point | None] = [POINTS[i] for i in at]
    if draw(st.booleans()):
        ends[0] = None
    if draw(st.booleans()) and (count > 1 or ends[0] is not None):
        ends[-1] = None
    pairs_ = list(zip(ends[::2], ends[1::2], strict=True))
    return [Piece(a, b, a is None or draw(st.booleans()), b is None or draw(st.booleans())) for a, b in pairs_]


def as_interval(piece: Piece, spelling: int) -> str:
    low = r"-\infty" if piece.low is None else piece.low.spellings[spelling]
    high = r"\infty" if piece.high is None else piece.high.spellings[spelling]
    return f"{'(' if piece.low_open else '['}{low},{high}{')' if piece.high_open else ']'}"


def as_iso(piece: Piece, spelling: int) -> str:
    text = as_interval(piece, spelling)
    return f"{text[0].replace('(', ']')}{text[1:-1]}{text[-1].replace(')', '[')}"


def as_chain(piece: Piece, spelling: int, name: str = "x") -> str:
    low = "" if piece.low is None else piece.low.spellings[spelling] + (" < " if piece.low_open else r" \le ")
    high = "" if piece.high is None else ("<" if piece.high_open else r"\leq ") + piece.high.spellings[spelling]
    return f"{low}{name}{high}"


def as_words(piece: Piece, spelling: int) -> str:
    low = f"x is {'greater than' if piece.low_open else 'at least'} "
    high = f"x is {'less than' if piece.high_open else 'at most'} "
    said = [start + end.spellings[spelling] for start, end in ((low, piece.low), (high, piece.high)) if end is not None]
    return " and ".join(said)


def renderings(pieces: list[Piece], spelling: int) -> list[str]:
    chains = [as_chain(piece, spelling) for piece in pieces]
    return [
        r"\cup ".join(as_interval(piece, spelling) for piece in pieces),
        r"x\in " + r" \cup ".join(as_interval(piece, 1 - spelling) for piece in reversed(pieces)),
        r" \cup ".join(as_iso(piece, spelling) for piece in pieces),
        r" \text{ or } ".join(chains),
        rf"\{{x \mid {' or '.join(chains)}\}}",
        r"\cup".join(rf"\{{t\in\mathbb{{R}} : {as_chain(piece, spelling, 't')}\}}" for piece in pieces),
        " or ".join(as_words(piece, spelling) for piece in pieces),
    ]


@settings(max_examples=60, deadline=None)
@given(
    pieces=unions(),
    spellings=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    forms=st.tuples(*[st.integers(0, 6)] * 2),
)
def test_random_unions_are_equal_in_every_form(
    pieces: list[Piece], spellings: tuple[int, int], forms: tuple[int, int]
) -> None:
    one, other = (renderings(pieces, spelling)[form] for spelling, form in zip(spellings, forms, strict=True))
    assert same_sets(one, other)
    assert same_sets(other, one)


@settings(max_examples=60, deadline=None)
@given(pieces=unions(), forms=st.tuples(*[st.integers(0, 6)] * 2), data=st.data())
def test_random_unions_with_one_change_are_unequal(
    pieces: list[Piece], forms: tuple[int, int], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(pieces) - 1))
    piece = pieces[at]
    low = piece.low is not None and (piece.high is None or data.draw(st.booleans()))
    if data.draw(st.booleans()):
        changed = Piece(piece.low, piece.high, piece.low_open ^ low, piece.high_open ^ (not low))
    else:
        end = piece.low if low else piece.high
        assert end is not None
        moved = Point((f"{end.spellings[0]}-0.001", f"{end.spellings[1]}-0.001"), end.value - 0.001)
        changed = Piece(moved if low else piece.low, piece.high if low else moved, piece.low_open, piece.high_open)
    one = renderings(pieces, 0)[forms[0]]
    other = renderings([*pieces[:at], changed, *pieces[at + 1 :]], 0)[forms[1]]
    assert not same_sets(one, other)
    assert not same_sets(other, one)


Rule = Callable[[Fraction], Fraction]
MARKS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    r"\le": operator.le,
    r"\ge": operator.ge,
    "=": operator.eq,
    r"\ne": operator.ne,
}


def _joined(parts: tuple[tuple[str, Rule], str, tuple[str, Rule]]) -> tuple[str, Rule]:
    (left, f), sign, (right, g) = parts
    spelled = {
        "+": f"({left}+{right})",
        "-": f"({left}-{right})",
        "*": rf"({left})\cdot({right})",
        "/": rf"\frac{{{left}}}{{{right}}}",
    }
    rules = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
    return spelled[sign], lambda x: rules[sign](f(x), g(x))


def _absolute(part: tuple[str, Rule]) -> tuple[str, Rule]:
    text, f = part
    return rf"\left|{text}\right|", lambda x: abs(f(x))


def expressions() -> st.SearchStrategy[tuple[str, Rule]]:
    """Expressions in x as text and as exact rules; ZeroDivisionError where they are undefined."""
    numbers = st.integers(-4, 4).map(lambda n: (f"({n})", lambda _: Fraction(n)))
    leaves = st.one_of(st.just(("x", lambda x: x)), numbers)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.tuples(inner, st.sampled_from("+-*/"), inner).map(_joined), inner.map(_absolute)),
        max_leaves=6,
    )


@settings(max_examples=150, deadline=None)
@given(
    left=expressions(),
    mark=st.sampled_from(sorted(MARKS)),
    right=expressions(),
    at=st.fractions(-6, 6, max_denominator=4),
)
def test_a_solution_set_holds_the_points_where_the_relation_holds(
    left: tuple[str, Rule], mark: str, right: tuple[str, Rule], at: Fraction
) -> None:
    try:
        found = solved(rf"{canonical(left[0])} {mark} {canonical(right[0])}")
    except Unreadable:  # undefined everywhere
        return
    for point in (at, *(Fraction(n) for n in range(-5, 6))):
        try:
            holds = MARKS[mark](left[1](point), right[1](point))
        except ZeroDivisionError:
            holds = False
        assert (found & singletons([Num(point)])).is_empty() is not holds, point
