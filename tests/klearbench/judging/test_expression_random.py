"""Random expressions: identities keep values, and mpmath and sympy agree as other implementations."""

from __future__ import annotations

from fractions import Fraction

import flint
import mpmath
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from klearbench.judging.expressions.balls import ball
from klearbench.judging.expressions.compare import equal
from klearbench.judging.expressions.exact import exact_value
from klearbench.judging.expressions.nodes import Const, Node, Num, Op, Sym

ONE, TWO = Num(Fraction(1)), Num(Fraction(2))

# Random trees. mpmath evaluates them at 60 digits; rewriting by an identity keeps the value.

numbers = st.fractions(min_value=-9, max_value=9, max_denominator=7).map(Num)
leaves = numbers | st.sampled_from([Const("pi"), Const("e"), Sym("x"), Sym("y")])


def grow(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    two = st.tuples(inner, inner)
    return (
        st.builds(lambda args: Op("add", args), two)
        | st.builds(lambda args: Op("mul", args), two)
        | st.builds(lambda args: Op("div", args), two)
        | st.builds(lambda a, n: Op("pow", (a, Num(Fraction(n)))), inner, st.integers(1, 3))
        | st.builds(lambda a: Op("root", (Op("add", (Op("pow", (a, TWO)), ONE)), TWO)), inner)
        | st.builds(lambda name, a: Op(name, (a,)), st.sampled_from(["neg", "sin", "cos", "arctan", "abs"]), inner)
    )


trees = st.recursive(leaves, grow, max_leaves=8)
POINTS = ({"x": Fraction(7, 5), "y": Fraction(-3, 17)}, {"x": Fraction(-9, 4), "y": Fraction(11, 6)})
CALLS = {"neg": lambda a: -a, "abs": abs, "sin": mpmath.sin, "cos": mpmath.cos, "arctan": mpmath.atan}


def by_mpmath(node: Node, point: dict[str, Fraction]) -> mpmath.mpf:
    """The value at one point. Raises ZeroDivisionError where it is undefined."""
    if isinstance(node, Num | Sym):
        value = node.value if isinstance(node, Num) else point[node.name]
        return mpmath.mpf(value.numerator) / value.denominator
    if isinstance(node, Const):
        return +(mpmath.pi if node.name == "pi" else mpmath.e)
    assert isinstance(node, Op)
    args = [by_mpmath(arg, point) for arg in node.args]
    if node.name in CALLS:
        return CALLS[node.name](*args)
    if node.name == "div" and abs(args[1]) < mpmath.mpf(10) ** -50:
        raise ZeroDivisionError
    match node.name:
        case "add":
            return args[0] + args[1]
        case "mul":
            return args[0] * args[1]
        case "div":
            return args[0] / args[1]
        case "pow":
            return args[0] ** int(args[1])
        case _:
            return mpmath.sqrt(args[0])


def values(node: Node) -> list[mpmath.mpf]:
    """The values at both points, to 60 digits and more."""
    with mpmath.workdps(90):
        try:
            return [by_mpmath(node, point) for point in POINTS]
        except ZeroDivisionError:
            assume(False)
            raise


def rewritten(node: Node, draw: st.DrawFn) -> Node:
    """The tree with an identity applied at every other node or so; none of them changes where it is defined."""
    if not isinstance(node, Op):
        return node
    node = Op(node.name, tuple(rewritten(arg, draw) for arg in node.args))
    choice = draw(st.integers(0, 6))
    if choice == 0:
        return Op("add", (node, Sym("x"), Op("neg", (Sym("x"),))))
    if choice == 1:
        return Op("div", (Op("mul", (node, Op("root", (TWO, TWO)))), Op("root", (TWO, TWO))))
    if choice == 2 and node.name in ("add", "mul"):
        return Op(node.name, node.args[::-1])
    if choice == 3 and node.name == "mul" and isinstance(node.args[1], Op) and node.args[1].name == "add":
        return Op("add", tuple(Op("mul", (node.args[0], term)) for term in node.args[1].args))
    if choice == 4 and node.name == "div":
        return Op("div", (Op("neg", (node.args[0],)), Op("neg", (node.args[1],))))
    if choice == 5 and node.name == "root":
        return Op("div", (node.args[0], node))
    if choice == 6 and node.name == "sin":
        half = Op("div", (node.args[0], TWO))
        return Op("mul", (TWO, Op("sin", (half,)), Op("cos", (half,))))
    return node


@settings(max_examples=150, deadline=None)
@given(trees, st.data())
def test_rewriting_by_identities_keeps_expressions_equal(tree: Node, data: st.DataObject) -> None:
    values(tree)
    assert equal(tree, rewritten(tree, data.draw))


@settings(max_examples=150, deadline=None)
@given(trees, st.data(), st.fractions(min_value=-9, max_value=9, max_denominator=7))
def test_another_leaf_makes_another_value(tree: Node, data: st.DataObject, leaf: Fraction) -> None:
    changed = with_another_leaf(tree, data.draw, Num(leaf))
    pairs_ = list(zip(values(tree), values(changed), strict=True))
    assume(any(abs(a - b) > mpmath.mpf(10) ** -40 for a, b in pairs_))
    assert not equal(tree, changed)


def with_another_leaf(node: Node, draw: st.DrawFn, leaf: Node) -> Node:
    if not isinstance(node, Op):
        return leaf
    at = draw(st.integers(0, len(node.args) - 1))
    if node.name in ("pow", "root"):
        at = 0
    return Op(node.name, tuple(with_another_leaf(a, draw, leaf) if i == at else a for i, a in enumerate(node.args)))


@settings(max_examples=150, deadline=None)
@given(trees)
def test_balls_enclose_the_value(tree: Node) -> None:
    for point, value in zip(POINTS, values(tree), strict=True):
        found = ball(tree, 128, point)
        if found is not None:
            with mpmath.workdps(60):
                shown = flint.arb(mpmath.nstr(value, 55))
                error = flint.arb(mpmath.nstr((abs(value) + 1) * mpmath.mpf(10) ** -40, 5))
            wide = shown + flint.arb(0, error)
            assert found.real.overlaps(wide)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 30), st.integers(-4, 34), st.integers(1, 12), st.integers(1, 12))
def test_integer_functions_agree_with_sympy(n: int, k: int, a: int, b: int) -> None:
    assert exact_value(Op("binomial", (Num(Fraction(n)), Num(Fraction(k))))) == sympy.binomial(n, k)
    assert exact_value(Op("double_factorial", (Num(Fraction(n)),))) == sympy.factorial2(n)
    assert exact_value(Op("phi", (Num(Fraction(a)),))) == sympy.totient(a)
    assert exact_value(Op("lcm", (Num(Fraction(a)), Num(Fraction(b))))) == sympy.lcm(a, b)
    turn = Op("div", (Op("mul", (Num(Fraction(n - k)), Const("pi"))), Num(Fraction(b))))
    exact = sympy.cos(sympy.pi * (n - k) / b)
    assert exact_value(Op("cos", (turn,))) == (Fraction(int(exact.p), int(exact.q)) if exact.is_Rational else None)
