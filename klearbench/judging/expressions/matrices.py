"""Matrix arithmetic on trees, so that matrices can be compared entry by entry."""

from __future__ import annotations

from fractions import Fraction

from klearbench.judging.expressions.bounds import TooLarge, Undefined
from klearbench.judging.expressions.exact import exact_value
from klearbench.judging.expressions.nodes import Matrix, Node, Num, Op
from klearbench.judging.expressions.tree import symbols

Rows = tuple[tuple[Node, ...], ...]

_MAX_POWER = 4
_MAX_INVERSE = 3
_MAX_ENTRIES = 400
_MAX_CHAIN = 6
"""Products in one expression; each one multiplies the size of the entries."""


def is_matrix(node: Node) -> bool:
    """Whether the value of a tree is a matrix."""
    if isinstance(node, Matrix):
        return True
    if not isinstance(node, Op) or node.name not in ("add", "mul", "neg", "div", "pow", "transpose"):
        return False
    return any(is_matrix(arg) for arg in node.args)


def rows_of(node: Node) -> Rows:
    """The entries of a matrix expression. Raises Undefined where shapes don't fit, TooLarge for long calculations."""
    return _rows(node, [_MAX_CHAIN])


def _rows(node: Node, left: list[int]) -> Rows:
    if isinstance(node, Matrix):
        if len(node.rows) * len(node.rows[0]) > _MAX_ENTRIES:
            raise TooLarge("a matrix is too large")
        return node.rows
    if not isinstance(node, Op) or not is_matrix(node):
        raise Undefined("a number in the place of a matrix")
    if node.name == "neg":
        return _scaled(Num(Fraction(-1)), _rows(node.args[0], left))
    if node.name == "transpose":
        return tuple(zip(*_rows(node.args[0], left), strict=True))
    if node.name == "add":
        return _sum([_rows(arg, left) for arg in node.args])
    if node.name == "div":
        if is_matrix(node.args[1]):
            raise Undefined("a division by a matrix")
        return _scaled(Op("div", (Num(Fraction(1)), node.args[1])), _rows(node.args[0], left))
    if node.name == "mul":
        return _product(node.args, left)
    return _power(node, left)


def _scaled(factor: Node, rows: Rows) -> Rows:
    return tuple(tuple(Op("mul", (factor, entry)) for entry in row) for row in rows)


def _sum(parts: list[Rows]) -> Rows:
    if len({(len(rows), len(rows[0])) for rows in parts}) > 1:
        raise Undefined("a sum of matrices of several shapes")
    return tuple(tuple(Op("add", entries) for entries in zip(*rows, strict=True)) for rows in zip(*parts, strict=True))


def _product(args: tuple[Node, ...], left: list[int]) -> Rows:
    scalars = tuple(arg for arg in args if not is_matrix(arg))
    found: Rows | None = None
    for arg in args:
        if is_matrix(arg):
            found = _rows(arg, left) if found is None else _times(found, _rows(arg, left), left)
    if found is None:
        raise Undefined("a number in the place of a matrix")
    for scalar in scalars:
        found = _scaled(scalar, found)
    return found


def _times(one: Rows, other: Rows, left: list[int]) -> Rows:
    left[0] -= 1
    if left[0] < 0 or len(one) * len(other) * len(other[0]) > _MAX_ENTRIES:
        raise TooLarge("a product of matrices is too large")
    if len(one[0]) != len(other):
        raise Undefined("a product of matrices that don't fit")
    columns = tuple(zip(*other, strict=True))
    return tuple(tuple(_dot(row, column) for column in columns) for row in one)


def _dot(row: tuple[Node, ...], column: tuple[Node, ...]) -> Node:
    terms = tuple(Op("mul", pair) for pair in zip(row, column, strict=True))
    return terms[0] if len(terms) == 1 else Op("add", terms)


def _power(node: Op, left: list[int]) -> Rows:
    base = _rows(node.args[0], left)
    if is_matrix(node.args[1]) or symbols(node.args[1]) or len(base) != len(base[0]):
        raise Undefined("a power of a matrix that is none")
    times = exact_value(node.args[1])
    if times is None or times.denominator != 1:
        raise Undefined("a power of a matrix that is none")
    if abs(times) > _MAX_POWER:
        raise TooLarge("a power of a matrix is too large")
    if times < 0:
        base, times = _inverse(base), -times
    one = tuple(tuple(Num(Fraction(int(i == j))) for j in range(len(base))) for i in range(len(base)))
    found: Rows = base if times else one
    for _ in range(int(times) - 1):
        found = _times(found, base, left)
    return found


def _inverse(rows: Rows) -> Rows:
    """The adjugate over the determinant."""
    size = len(rows)
    if size > _MAX_INVERSE:
        raise TooLarge("an inverse of a large matrix")
    below = Op("det", (Matrix(rows),))
    if size == 1:
        return ((Op("div", (Num(Fraction(1)), rows[0][0])),),)
    return tuple(tuple(Op("div", (_cofactor(rows, j, i), below)) for j in range(size)) for i in range(size))


def _cofactor(rows: Rows, i: int, j: int) -> Node:
    minor = tuple(row[:j] + row[j + 1 :] for at, row in enumerate(rows) if at != i)
    value = Op("det", (Matrix(minor),))
    return value if (i + j) % 2 == 0 else Op("neg", (value,))
