"""Sets of numbers, inequalities and equations: equal and unequal pairs worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from klearbench.judging.expressions.nodes import Num, Unreadable
from klearbench.judging.expressions.parser import parse_expression, parse_relation
from klearbench.judging.expressions.realsets import EMPTY, REALS, RealSet, interval, singletons
from klearbench.judging.expressions.roots import INFINITY, MINUS_INFINITY, Root
from klearbench.judging.expressions.solve import solutions
from klearbench.judging.forms import parse
from klearbench.judging.normalize import canonical
from klearbench.judging.relations import equations_equal, is_setlike, sets_equal
from tests.timing import assert_quick

TWO_RAYS = r"(-\infty,2)\cup(3,\infty)"
NOT_0_1 = r"\mathbb{R}\setminus\{0,1\}"
SAME_SETS = [
    (r"\mathbb{R}", "all real numbers", r"\text{all reals}", r"(-\infty,\infty)", "x is any real number", "R"),
    (r"\mathbb{R}", r"x\in\mathbb{R}", r"-\infty<x<\infty", r"\R", "x^2 \\ge 0", "任意实数", "for all real x"),
    (TWO_RAYS, r"(3,\infty)\cup(-\infty,2)", r"x<2 \text{ or } x>3", "x<2, x>3", r"]-\infty,2[ \cup ]3,\infty["),
    (TWO_RAYS, r"x\in(-\infty,2)\cup(3,\infty)", r"(-\infty,2) \text{ and } (3,\infty)", r"(-\infty,2), (3,\infty)"),
    (TWO_RAYS, r"(x-2)(x-3)>0", r"\frac{x-2}{x-3}>0, x \ne 3", r"\mathbb{R}\setminus[2,3]", "x>3或x<2"),
    (NOT_0_1, r"x \ne 0, 1", r"x\ne 0, x\ne 1", r"x\neq 0 \text{ and } x \neq 1", r"\mathbb{R}-\{0,1\}"),
    (
        NOT_0_1,
        "all real numbers except 0 and 1",
        "all real numbers except x=0 and x=1",
        r"(-\infty,0)\cup(0,1)\cup(1,\infty)",
    ),
    (NOT_0_1, r"\{x\in\mathbb{R} : x\ne 0, x \ne 1\}", r"\{x \mid x \ne 0\} \cap \{t : t \ne 1\}", r"x^2 \ne x"),
    (
        r"\mathbb{R}\setminus\{0\}",
        r"x \ne 0",
        r"\mathbb{R}^{*}",
        "all nonzero real numbers",
        r"\{x\in\mathbb{R}:x\ne0\}",
    ),
    (r"(0,\infty)", r"\mathbb{R}^+", r"\mathbb{R}_{>0}", "all positive real numbers", "x>0", r"\mathbb R_+"),
    (r"[0,\infty)", r"\mathbb{R}_{\ge 0}", r"\mathbb{R}_0^+", "x is at least 0", "nonnegative real numbers"),
    (r"(3,\infty)", "x>3", "3<x", "-x<-3", "2x>6", "x-3>0", r"\{x \mid x>3\}", r"\{t : t>3\}", r"x\in(3,\infty)"),
    (r"(3,\infty)", "all real numbers greater than 3", r"x \text{ is greater than } 3", "f(x) > 3", "x > 3.0"),
    ("(2,5)", "]2,5[", "x > 2 and x < 5", "x>2, x<5", "2<x<5", "5>x>2", "x is greater than 2 and less than 5"),
    (TWO_RAYS, r"(-\infty,2[ \cup ]3,\infty)", r"x \notin [2,3]"),
    (r"[1,2)\cup[3,4)", r"[1,2[\cup[3,4[", r"([1,2)\cup[3,4))"),
    (r"(\sqrt[3]{2},\sqrt[3]{3}]", r"]\sqrt[3]{2},\sqrt[3]{3}]"),
    ("[2,5)", "[2,5[", r"2\le x<5", r"5>x\ge 2", r"\{x: 2\le x<5\}", r"x \ge 2 \text{ and } x<5"),
    (r"[\frac12,3]", "[0.5,3]", r"\frac12 \le x \le 3", r"1 \leq 2x \leq 6", r"(2x-1)(x-3) \le 0"),
    (r"(-\infty,-3]", r"x\le -3", r"-3 \geq x", "x is at most -3", "x is less than or equal to -3"),
    ("[-1,1]", r"|x|\le 1", r"x^2\le 1", r"\left|x\right| \leq 1"),
    ("(-3,3)", "||x|-1|<2", "|x|<3", "x^2<9"),
    ("[-3,7]", r"|x-2|\le 5"),
    (r"x>\frac12", "|x|>|x-1|", "x > 0.5"),
    (r"x<-3 \text{ or } x>3", "|x|>3", "x^2>9", r"x \in \mathbb{R} \setminus [-3,3]"),
    (r"x \ge 3, x \ne 5", r"[3,5)\cup(5,\infty)", r"[3,\infty)\setminus\{5\}"),
    (r"[1,2]\cup\{5\}", r"1\le x\le 2 \text{ or } x=5", r"\{5\}\cup[1,2]", r"([1,2])\cup\{5\}"),
    (r"\emptyset", "no solution", r"\text{no real solutions}", r"\{\}", "(2,2)", "empty set", "x^2<0", "x>5 and x<2"),
    (r"[0,9)", r"\sqrt{x}<3", r"0 \le x < 9"),
    (r"(1,\infty)", r"\ln x>0", r"\log_2 x > 0", r"2^x > 2", r"\log_{1/2} x < 0"),
    ("(0,4)", r"\sqrt{x}>\frac{x}{2}", r"x \in (0,4)"),
    (r"(-\infty,0)\cup(1,\infty)", r"\frac{1}{x}<1"),
    (r"(\sqrt[3]{2},\infty)", "x^3>2", r"x > \sqrt[3]{2}"),
    (r"(0,1)\cup(1,\infty)", r"\frac{x(x-1)}{x-1}>0"),
    (r"x>\frac{1}{\sqrt2}", r"x>\frac{\sqrt2}{2}", r"\sqrt{2}x>1"),
    (r"(-\infty,\frac{1-\sqrt5}{2})\cup(\frac{1+\sqrt5}{2},\infty)", "x^2-x-1>0", "x^2>x+1"),
    (r"[0,4)\cup(9,\infty)", r"x-5\sqrt{x}+6>0"),
    (r"(0,e)\cup(e^2,\infty)", r"(\ln x)^2-3\ln x+2>0"),
    (r"\mathbb{Z}", r"x\in\mathbb{Z}", "all integers"),
    (r"\mathbb{N}", r"n\in\mathbb{N}", r"\mathbb N"),
    (r"\mathbb{C}", "all complex numbers"),
    (r"\mathbb{Q}", r"x \in \mathbb{Q}"),
    (r"(1,4)\cap\mathbb{Z}", r"\{2,3\}", r"x\in(1,4), x\in\mathbb{Z}", r"[\frac32, \sqrt{10}]\cap\mathbb{N}"),
    (r"\mathbb{R}\setminus\mathbb{Z}", r"x\in\mathbb{R}, x \notin \mathbb{Z}"),
    ("x>1000", "x>1,000"),
    (r"a\le b", r"b\ge a", r"2a \le 2b", r"a-b \le 0"),
    ("x+y<2", "2x+2y<4", "-x-y>-2", "y<2-x"),
    ("0<x<y", "y>x>0", "2y>2x>0", "x>0, x<y", "x>0 and y>x"),
    ("x-y \\ne 0", "y \\ne x"),
]
DIFFERENT_SETS = [
    (r"(3,\infty)", r"[3,\infty)"),
    (r"(3,\infty)", r"(-3,\infty)"),
    (r"(3,\infty)", r"(3,\infty]"),
    (TWO_RAYS, r"(-\infty,2)\cap(3,\infty)"),
    (TWO_RAYS, "x<2 and x>3"),
    (TWO_RAYS, r"(-\infty,2)"),
    ("[1,5]", r"\{1,5\}"),
    ("(2,5)", "[2,5]"),
    ("(2,5)", "(5,2)"),
    ("x>3", r"x\ge 3"),
    ("x>3", "y>3"),
    ("x>3", "4"),
    ("1<x<3", "x<3"),
    ("x+y<2", "x+y>2"),
    ("x+y<2", "-x-y<-2"),
    ("x+y<2", r"x+y\le 2"),
    ("x+y<2", "x+z<2"),
    ("a<b", "b<a"),
    ("0<x<y", "0<x"),
    (r"\emptyset", "(5,2)"),
    (r"\emptyset", "0"),
    (r"\emptyset", r"\{0\}"),
    (r"\mathbb{Z}", r"\mathbb{R}"),
    (r"\mathbb{N}", r"\mathbb{Z}^+"),
    (r"\mathbb{N}", r"\mathbb{Z}"),
    (r"\mathbb{Q}", r"\mathbb{R}"),
    (r"\mathbb{R}", r"\mathbb{C}"),
    (r"\mathbb{R}", r"\mathbb{R}^2"),
    (r"\mathbb{R}", r"\frac{x}{x}>0"),
    (r"(1,4]\cap\mathbb{Z}", r"\{2,3\}"),
    (r"(1,\sqrt2)", "(1,1.41421356237)"),
    (r"(0,\infty)", r"x>0, x\ne 3"),
    (r"x>\frac{1}{0}", r"x>\frac{1}{0}"),
    (NOT_0_1, "all real numbers except 0"),
    (r"\mathbb{R}", "x is any real number except 0"),
]
SAME_EQUATIONS = [
    ("y=2x+1", "2x-y+1=0", "2x+1=y", "2y=4x+2"),
    (r"y=\frac{x}{2}", "x=2y"),
    ("x^2+y^2=1", "y^2+x^2=1", "1-x^2=y^2"),
    (r"\frac{x^2}{4}+\frac{y^2}{9}=1", "9x^2+4y^2=36"),
    ("xy=1", r"y=\frac1x"),
    ("x^2=4", "x^2-4=0", r"x=\pm2", "(x-2)(x+2)=0"),
    ("x^2+1=0", "2x^2+2=0"),
    (r"y=\pm 2x", "y^2=4x^2"),
    ("x=y=z", "z=x=y", "2x=2y=2z"),
    (r"\frac{x-1}{2}=\frac{y}{3}=z", r"3(x-1)=2y=6z"),
]
DIFFERENT_EQUATIONS = [
    ("x^2=4", "x=2"),
    ("x^2=4", "y^2=4"),
    ("x^2+1=0", "x^2+2=0"),
    ("y=2x+1", "x=2y+1"),
    ("y=2x+1", "y=2z+1"),
    ("y=2x+1", "2x+1=0"),
    ("3x-y+13=0", "3x+4y+14=0"),
    ("x=y=z", "x=2y=z"),
    ("x=y=z", "x=y"),
    ("(x,y)=(1,2)+t(3,4)", "(x,y)=(1,2)+s(3,4)"),
]


def pairs(rows: list[tuple[str, ...]]) -> list[tuple[str, str]]:
    """Each first spelling with each other one, both ways."""
    return [pair for first, *others in rows for other in others for pair in ((first, other), (other, first))]


def same_sets(gold: str, answer: str) -> bool:
    return sets_equal(canonical(gold), canonical(answer))


def same_equations(gold: str, answer: str) -> bool:
    return equations_equal(parse(canonical(gold)), parse(canonical(answer)))


@pytest.mark.parametrize(("gold", "answer"), pairs(SAME_SETS))
def test_one_set_in_two_spellings_is_equal(gold: str, answer: str) -> None:
    assert same_sets(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), pairs(DIFFERENT_SETS))
def test_different_sets_are_not_equal(gold: str, answer: str) -> None:
    assert not same_sets(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), pairs(SAME_EQUATIONS))
def test_one_equation_in_two_spellings_is_equal(gold: str, answer: str) -> None:
    assert same_equations(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), pairs(DIFFERENT_EQUATIONS))
def test_different_equations_are_not_equal(gold: str, answer: str) -> None:
    assert not same_equations(gold, answer)


@pytest.mark.parametrize(
    "gold",
    [
        *("[1,2)", TWO_RAYS, "x>3", r"x \ne 0", "x<2 \\text{ or } x>3", "no solution", "all real numbers", NOT_0_1),
        *("all real numbers except 0 and 1", r"\{x \mid x>3\}", r"x\in[1,2]", r"x \in (1,2)", r"x \ne 0, 1", "1<x<3"),
        *(r"\mathbb{R}^+", r"\mathbb{Z}", "x=1 \\text{ or } x>3", "x is any real number"),
    ],
)
def test_descriptions_of_sets_are_setlike(gold: str) -> None:
    assert is_setlike(parse(canonical(gold)))


@pytest.mark.parametrize("gold", [r"\{1,2\}", "(1,2)", "x=3", "1, 2", "R", "12", "y=2x", r"\{1\}\cup\{2\}", "x^2", "C"])
def test_values_are_not_setlike(gold: str) -> None:
    assert not is_setlike(parse(canonical(gold)))


def solved(text: str) -> RealSet:
    return solutions(parse_relation(canonical(text)), "x")


def closed(low: str, high: str) -> RealSet:
    return interval(parse_expression(low), parse_expression(high), False, False)


def test_a_cubic_without_radicals_keeps_its_roots_and_compares_them() -> None:
    found = solved("x^3-3x-1>0")  # roots 2 cos(20), 2 cos(140), 2 cos(260) degrees
    assert [type(point) for point in found.points] == [Root] * 3
    assert found.same(solved("2x^3 > 6x+2"))
    assert not found.same(solved("x^3-3x+1>0"))
    assert (found & closed("1", "2")).points[-1] == Num(Fraction(2))
    assert (found & closed("0", "1")).is_empty()


def test_unions_and_intersections_meet_where_they_touch() -> None:
    one, other = closed("0", "1"), closed("1", "2")
    assert (one | other).same(closed("0", "2"))
    assert (one & other).same(singletons([Num(Fraction(1))]))
    assert (closed("0", "2") - other).same(interval(Num(Fraction(0)), Num(Fraction(1)), False, True))
    assert (~EMPTY).same(REALS)
    assert (one | ~one).same(REALS)
    assert not interval(MINUS_INFINITY, INFINITY, True, True).is_empty()


@pytest.mark.parametrize(
    ("low", "high"), [(Num(Fraction(2)), Num(Fraction(1))), (INFINITY, Num(Fraction(1))), (INFINITY, INFINITY)]
)
def test_ends_in_the_wrong_order_are_refused(low: Num, high: Num) -> None:
    with pytest.raises(Unreadable):
        interval(low, high, True, True)


@pytest.mark.parametrize("text", [r"\sin x>0", "x^x>2", r"x+2^x>3", "x^{40}>2x+1", r"\lfloor x\rfloor<2"])
def test_what_is_not_solved_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        solved(text)


HOSTILE = [
    *("[" * 500, "x<" * 250 + "1", r"\{x:" * 100 + "x>1" + r"\}" * 100, r"\mathbb{R}\setminus" * 40 + r"\{0\}"),
    *(
        " or ".join(f"x={n}" for n in range(80)),
        "all " * 140 + "real",
        "x and " * 90 + "x",
        "|" * 40 + "x" + "|" * 40 + "<1",
    ),
    *("+".join(f"|x-{n}|" for n in range(30)) + ">9", r"\sqrt{" * 30 + "x" + "}" * 30 + "<3", "(x^{12}+1)(x^{9}-2)>0"),
    *("+".join(f"{3**n}x^{{{n}}}" for n in range(13)) + ">0", "x>10^{10^{10}}", "x^{999999999}>1", "x<" + "9" * 550),
    r"\cup".join(f"(\\sqrt{{{n}}},\\sqrt{{{n + 1}}})" for n in range(20)),
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_descriptions_end_soon(text: str) -> None:
    def compared() -> None:
        same_sets(text, "x>3")
        same_equations("x^2=4", text.replace("<", "=").replace(">", "="))

    assert_quick(compared, 3)
