"""Relations `f(g(x)) mark c` undone to relations of g, for roots, powers, exponentials and logarithms."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from klearbench.judging.expressions.exact import exact_value
from klearbench.judging.expressions.nodes import Const, Node, Num, Op, Unreadable
from klearbench.judging.expressions.realsets import EMPTY, RealSet
from klearbench.judging.expressions.roots import ZERO
from klearbench.judging.expressions.signs import HOLDS, flipped, sign_of
from klearbench.judging.expressions.tree import minus, over, symbols

Solve = Callable[[Node, str, Node], RealSet]
"""Where `left mark right` holds."""

_ONE = Num(Fraction(1))
_MAX_LOGARITHM = 64


def inverted(node: Op, mark: str, bound: Node, solve: Solve) -> RealSet:
    """Where `node mark bound`, for a constant bound. Raises Unreadable for a function that is not inverted here."""
    if node.name == "root":
        return _root(node, mark, bound, solve)
    if node.name == "ln":
        return _logarithm(Const("e"), node.args[0], mark, bound, solve)
    if node.name == "log" and not symbols(node.args[0]):
        return _logarithm(node.args[0], node.args[1], mark, bound, solve)
    if node.name == "exp":
        return _exponential(Const("e"), node.args[0], mark, bound, solve)
    if node.name == "pow" and not symbols(node.args[0]):
        return _exponential(node.args[0], node.args[1], mark, bound, solve)
    if node.name == "pow" and not symbols(node.args[1]):
        return _power(node.args[0], node.args[1], mark, bound, solve)
    raise Unreadable(f"{node.name} is not solved for its argument")


def domain(node: Node, solve: Solve) -> RealSet:
    """Where an expression is defined."""
    return solve(node, r"\ge", ZERO) | solve(node, "<", ZERO)


def index_of(root: Op) -> int:
    """The index of a root. Raises Unreadable where it is no whole number from 2 on."""
    index = exact_value(root.args[1]) if not symbols(root.args[1]) else None
    if index is None or index.denominator != 1 or index < 2:
        raise Unreadable("a root of another index than 2, 3, 4, ...")
    return int(index)


def rises(base: Node) -> bool:
    """Whether the logarithm to a base is a rising function. Raises Unreadable where the base is none."""
    above = sign_of(minus(base, _ONE))
    if above == 0 or sign_of(base) <= 0:
        raise Unreadable("no base of a logarithm")
    return above > 0


def root_against(root: Op, mark: str, other: Node, solve: Solve) -> RealSet:
    """Where `root mark other`, for an expression in the variable."""
    index = index_of(root)
    inside, power = root.args[0], Op("pow", (other, Num(Fraction(index))))
    if index % 2:
        return solve(inside, mark, power)
    defined, above, below = solve(inside, r"\ge", ZERO), solve(other, r"\ge", ZERO), solve(other, "<", ZERO)
    found = above & solve(inside, mark, power)
    return defined & (found | below if HOLDS[mark](1) else found)


def _root(node: Op, mark: str, bound: Node, solve: Solve) -> RealSet:
    index = index_of(node)
    inside, power = node.args[0], Op("pow", (bound, Num(Fraction(index))))
    if index % 2:
        return solve(inside, mark, power)
    defined = solve(inside, r"\ge", ZERO)
    if sign_of(bound) < 0:
        return defined if HOLDS[mark](1) else EMPTY
    return defined & solve(inside, mark, power)


def _power(base: Node, exponent: Node, mark: str, bound: Node, solve: Solve) -> RealSet:
    value = exact_value(exponent)
    if value is None or value == 0 or abs(value.numerator) > _MAX_LOGARITHM:
        raise Unreadable("a power that is not solved")
    if value < 0:
        return solve(over(_ONE, Op("pow", (base, Num(-value)))), mark, bound)
    if value.denominator > 1:
        inside = base if value.numerator == 1 else Op("pow", (base, Num(Fraction(value.numerator))))
        found = _root(Op("root", (inside, Num(Fraction(value.denominator)))), mark, bound, solve)
        return found if value.denominator % 2 else found & solve(base, r"\ge", ZERO)
    if value.numerator % 2 == 0 and sign_of(bound) < 0:
        return domain(base, solve) if HOLDS[mark](1) else EMPTY
    root = Op("root", (bound, Num(value))) if value > 1 else bound
    return solve(Op("abs", (base,)) if value.numerator % 2 == 0 else base, mark, root)


def _logarithm(base: Node, inside: Node, mark: str, bound: Node, solve: Solve) -> RealSet:
    mark = mark if rises(base) else flipped(mark)
    power = _ONE if bound == ZERO else Op("pow", (base, bound))
    return solve(inside, ">", ZERO) & solve(inside, mark, power)


def _exponential(base: Node, exponent: Node, mark: str, bound: Node, solve: Solve) -> RealSet:
    mark_inside = mark if rises(base) else flipped(mark)
    if sign_of(bound) <= 0:
        return domain(exponent, solve) if HOLDS[mark](1) else EMPTY
    return solve(exponent, mark_inside, _log(base, bound))


def _log(base: Node, value: Node) -> Node:
    """The logarithm of a positive constant, a whole number where it is one."""
    b, v = (None if isinstance(node, Const) else exact_value(node) for node in (base, value))
    if b is not None and v is not None:
        for exponent in range(_MAX_LOGARITHM):
            power = b**exponent
            if v in (power, 1 / power):
                return Num(Fraction(exponent if v == power else -exponent))
            if max(power.numerator.bit_length(), power.denominator.bit_length()) > _MAX_LOGARITHM:
                break
    logarithm = Op("ln", (value,))
    return logarithm if base == Const("e") else over(logarithm, Op("ln", (base,)))
