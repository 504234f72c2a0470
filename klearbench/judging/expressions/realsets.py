"""Sets of real numbers: unions of finitely many intervals and points, closed under the Boolean operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key

from klearbench.judging.expressions.nodes import Unreadable
from klearbench.judging.expressions.roots import ZERO, End, Root, compare_ends, end_point, infinite_sign

MAX_POINTS = 200


@dataclass(frozen=True, slots=True, eq=False)
class RealSet:
    """A set given by what it contains of the cells that its points cut the real line into.

    `points` rise strictly; `cells` tells, from left to right, whether each cell belongs: the open interval before the
    first point, the first point, the open interval after it, and so on: 2 n + 1 cells for n points. No point is one
    whose three cells around it are alike. Compare with `same`; Python's own equality is identity.
    """

    points: tuple[End, ...]
    cells: tuple[bool, ...]

    def __or__(self, other: RealSet) -> RealSet:
        return _combine(self, other, lambda a, b: a or b)

    def __and__(self, other: RealSet) -> RealSet:
        return _combine(self, other, lambda a, b: a and b)

    def __sub__(self, other: RealSet) -> RealSet:
        return _combine(self, other, lambda a, b: a and not b)

    def __invert__(self) -> RealSet:
        return RealSet(self.points, tuple(not cell for cell in self.cells))

    def same(self, other: RealSet) -> bool:
        """Whether both hold the same numbers. Raises Unreadable where that is undecided."""
        if self is other:
            return True
        return self.cells == other.cells and all(
            compare_ends(a, b) == 0 for a, b in zip(self.points, other.points, strict=True)
        )

    def is_empty(self) -> bool:
        return not any(self.cells)


EMPTY = RealSet((), (False,))
REALS = RealSet((), (True,))


def interval(low: End, high: End, low_open: bool, high_open: bool) -> RealSet:
    """An interval, an end may be infinite and is open then; an empty one such as (2, 2) is the empty set.

    Raises Unreadable for a closed infinite end, ends in the wrong order, or an order that is undecided.
    """
    low, high = _folded(low), _folded(high)
    below, above = infinite_sign(low), infinite_sign(high)
    if (below and not low_open) or (above and not high_open):
        raise Unreadable("infinity is no member of an interval of reals")
    found = compare_ends(low, high)
    if found > 0 or below > 0 or above < 0:
        raise Unreadable("the ends of an interval are in the wrong order")
    if found == 0:
        return EMPTY if low_open or high_open else singletons((low,))
    points = tuple(end for end in (low, high) if not infinite_sign(end))
    left = () if below else (False, not low_open)
    right = () if above else (not high_open, False)
    return RealSet(points, (*left, True, *right))


def singletons(values: Iterable[End]) -> RealSet:
    """A finite set, members in any order. Raises Unreadable for infinite members and where an order is undecided."""
    ends = [_folded(value) for value in values]
    if any(infinite_sign(end) for end in ends) or len(ends) > MAX_POINTS:
        raise Unreadable("no finite set of real numbers")
    rising = sorted(ends, key=cmp_to_key(compare_ends))
    points = [end for i, end in enumerate(rising) if i == 0 or compare_ends(rising[i - 1], end) != 0]
    if len(points) == 1:
        compare_ends(points[0], ZERO)  # a lone value was compared with nothing: it may be undefined or not real
    return RealSet(tuple(points), (False,) + (True, False) * len(points))


def _folded(end: End) -> End:
    return end if isinstance(end, Root) else end_point(end)


def _combine(one: RealSet, other: RealSet, rule: Callable[[bool, bool], bool]) -> RealSet:
    """Both sets on the points of both, cell by cell."""
    points: list[End] = []
    cells: list[bool] = []
    i = j = 0
    while True:
        cells.append(rule(one.cells[2 * i], other.cells[2 * j]))
        if i == len(one.points) and j == len(other.points):
            break
        found = _next_point(one.points, i, other.points, j)
        points.append(one.points[i] if found <= 0 else other.points[j])
        cells.append(rule(one.cells[2 * i + (found <= 0)], other.cells[2 * j + (found >= 0)]))
        i, j = i + (found <= 0), j + (found >= 0)
    if len(points) > MAX_POINTS:
        raise Unreadable("a set of too many pieces")
    return from_cells(points, cells)


def _next_point(one: tuple[End, ...], i: int, other: tuple[End, ...], j: int) -> int:
    """Which of two rising sequences has the next point: -1 the first, 1 the second, 0 both."""
    if i == len(one):
        return 1
    if j == len(other):
        return -1
    return compare_ends(one[i], other[j])


def from_cells(points: Sequence[End], cells: Sequence[bool]) -> RealSet:
    """The set with these cells (see RealSet) on rising points, points that separate nothing left out."""
    kept: list[End] = []
    left = [cells[0]]
    for at, point in enumerate(points):
        here, after = cells[2 * at + 1 : 2 * at + 3]
        if not (left[-1] == here == after):
            kept.append(point)
            left += [here, after]
    return RealSet(tuple(kept), tuple(left))
