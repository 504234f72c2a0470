"""Sets of numbers by kind: what they hold of the integers, of the other rationals, and of the irrationals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from klearbench.judging.expressions.exact import exact_value
from klearbench.judging.expressions.nodes import Num, Unreadable
from klearbench.judging.expressions.realsets import EMPTY, REALS, RealSet
from klearbench.judging.expressions.roots import End, Root, compare_ends, enclosure

_BITS = 200


@dataclass(frozen=True, slots=True, eq=False)
class NumberSet:
    """Each real set counts for the numbers of its kind only; for an ordinary real set the three are one object."""

    integers: RealSet
    fractions: RealSet
    irrationals: RealSet
    beyond: bool = False
    """Whether all numbers that are not real belong."""

    def __or__(self, other: NumberSet) -> NumberSet:
        return self._combined(other, lambda a, b: a | b, self.beyond or other.beyond)

    def __and__(self, other: NumberSet) -> NumberSet:
        return self._combined(other, lambda a, b: a & b, self.beyond and other.beyond)

    def __sub__(self, other: NumberSet) -> NumberSet:
        return self._combined(other, lambda a, b: a - b, self.beyond and not other.beyond)

    def _combined(self, other: NumberSet, rule: Callable[[RealSet, RealSet], RealSet], beyond: bool) -> NumberSet:
        whole = rule(self.irrationals, other.irrationals)
        if self._is_plain() and other._is_plain():
            return NumberSet(whole, whole, whole, beyond)
        return NumberSet(rule(self.integers, other.integers), rule(self.fractions, other.fractions), whole, beyond)

    def _is_plain(self) -> bool:
        return self.integers is self.fractions is self.irrationals

    def same(self, other: NumberSet) -> bool:
        """Whether both hold the same numbers. Raises Unreadable where that is undecided."""
        if self.beyond != other.beyond:
            return False
        if self._is_plain() and other._is_plain():
            return self.integers.same(other.integers)
        return all(
            not holds_any((mine - yours) | (yours - mine))
            for holds_any, mine, yours in (
                (_holds_integer, self.integers, other.integers),
                (_holds_fraction, self.fractions, other.fractions),
                (_holds_irrational, self.irrationals, other.irrationals),
            )
        )

    def is_empty(self) -> bool:
        return self.same(real(EMPTY))


def real(values: RealSet) -> NumberSet:
    """An ordinary set of real numbers."""
    return NumberSet(values, values, values)


NUMBERS = {
    "R": real(REALS),
    "Z": NumberSet(REALS, EMPTY, EMPTY),
    "Q": NumberSet(REALS, REALS, EMPTY),
    "C": NumberSet(REALS, REALS, REALS, True),
}
"""Letter -> set. N is missing: texts disagree about 0."""


def _exact(end: End) -> Fraction | None:
    """The value of a rational end point; None for an irrational one, by all that the exact evaluation knows."""
    return None if isinstance(end, Root) else end.value if isinstance(end, Num) else exact_value(end)


def _points(values: RealSet) -> list[End]:
    return [point for at, point in enumerate(values.points) if values.cells[2 * at + 1]]


def _holds_fraction(values: RealSet) -> bool:
    found = [_exact(point) for point in _points(values)]
    return any(values.cells[::2]) or any(v is not None and v.denominator > 1 for v in found)


def _holds_irrational(values: RealSet) -> bool:
    return any(values.cells[::2]) or any(_exact(point) is None for point in _points(values))


def _holds_integer(values: RealSet) -> bool:
    if values.cells[0] or values.cells[-1]:
        return True
    if any(_is_integer(point) for point in _points(values)):
        return True
    return any(
        _first_above(low) <= _last_below(high)
        for low, high, cell in zip(values.points, values.points[1:], values.cells[2::2], strict=False)
        if cell
    )


def _is_integer(point: End) -> bool:
    return _first_above(point) - _last_below(point) == 2


def _first_above(point: End) -> int:
    """The least integer greater than a number."""
    value = _exact(point)
    if value is not None:
        return floor(value) + 1
    return _nearest(point, 1)


def _last_below(point: End) -> int:
    """The greatest integer less than a number."""
    value = _exact(point)
    if value is not None:
        return ceil(value) - 1
    return _nearest(point, -1)


def _nearest(point: End, step: int) -> int:
    around = enclosure(point, _BITS)
    if not (around.rad() < 0.25 and abs(around) < 2**_BITS):
        raise Unreadable("an end point is too large")
    at = int(around.mid().floor().unique_fmpz()) - 2 * step
    while compare_ends(Num(Fraction(at)), point) != step:
        at += step
    return at
