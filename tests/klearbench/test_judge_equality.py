"""Answers that must not be taken for the reference, and rightly written ones that must: worked out by hand, by kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from klearbench.judging.judge import MathJudge
from klearbench.judging.latexargs import brace_arguments
from klearbench.types import Answer


@pytest.fixture(scope="module")
def judge() -> Iterator[MathJudge]:
    with MathJudge() as made:
        yield made


def says(judge: MathJudge, gold: str, answer: str, rule: str = "expression") -> bool | None:
    return judge.compare(Answer("p", gold, rule), answer).equal


NO_UNITS = (
    *("42 million", "42 thousand", "42 dozen", "42 squared", "42 factorial", "42 in base nine", "42 minus one", "42k"),
    *("42 probably", "42 maybe", "42 plus constant", "42 times n", "42 choose two", "42 half", "42 modulo seven"),
    *("42 thirds", "42 over three", "42 tenths", "42 percent of n", "42 is not the answer", "42 fails", "42 is wrong"),
    *("42 unless n is even", r"42\text{ is incorrect}", r"42\text{ (wrong)}", r"42\text{ million}", "42 seems wrong"),
    *(
        "42 contradicts the claim",
        "42 cm wrong",
        r"42\text{ cm, wrong}",
        "42 apples wrong",
        "42 isn't right",
        "42 or so",
    ),
    *(
        "42 lies",
        "42 overcounts",
        "42 at most",
        "42 at least",
        "up to 42",
        "at least 42",
        "42 at minimum",
        "no fewer than 42",
        "nearly 42",
    ),
    *("42 to the fourth power", "42 less than n", "42 apples fewer than needed", "42 divided by two", "42万", "42左右"),
    *("half of 42", "square root of 42", "the negative of 42", "twice 42", "negative 42", r"\text{half of }42"),
    *(r"\approx 42", r"\sim 42", "about 42", "42'", r"42^\prime", "42_{9}", r"42\approx 42.3"),
)
UNITS = (
    *("42 apples", "42 ways", "42 different ways", "42 dollars", "42 square units", "42 square meters", "42 years old"),
    *(
        "42 miles per hour",
        "42 miles/hour",
        "42 students in total",
        "42 pieces of candy",
        "42 people",
        "42 hours a day",
    ),
    *(
        "42 more apples",
        "42 possible values",
        "42 minutes later",
        "42 pounds of flour",
        "42 feet per second squared",
        r"42\text{ sheets}",
        r"42\text{ (cm)}",
    ),
    *("$42", "42米", "42个", r"42\ \mathrm{m\,s^{-1}}", "the answer is 42", "There are 42 ways", "Total of 42 apples"),
    *("exactly 42", "forty-two", "42,", "042", "42_{10}", "42.", r"42\approx 42"),
)


@pytest.mark.parametrize("rule", ["expression", "integer_0_999", "integer"])
@pytest.mark.parametrize("answer", NO_UNITS)
def test_words_that_change_or_deny_a_value_are_no_unit(judge: MathJudge, answer: str, rule: str) -> None:
    assert says(judge, "42", answer, rule) is False


@pytest.mark.parametrize("rule", ["expression", "integer_0_999"])
@pytest.mark.parametrize("answer", UNITS)
def test_units_and_count_nouns_may_follow(judge: MathJudge, answer: str, rule: str) -> None:
    assert says(judge, "42", answer, rule) is True


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        (r"3\text{ million}", "3", False),
        (r"3\text{ million}", "3 million", True),
        (r"42\text{ sheet}", "42", True),
        (r"8\text{ m/s}", r"8\ \mathrm{m\,s^{-1}}", True),
        (r"8\text{ m/s}", r"8\ \mathrm{m\,s^{-2}}", False),
        (r"\frac12", r"\frac{1}{2}\text{ cup}", True),
        (r"30^\circ", "30'", False),
        (r"5\text{ p.m.}", "5:00 PM", True),
        (r"5\text{ p.m.}", "5 a.m.", False),
        (r"5\text{ p.m.}", "5", False),
    ],
)
def test_units_of_the_reference(judge: MathJudge, gold: str, answer: str, equal: bool) -> None:
    assert says(judge, gold, answer) is equal


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("2^{200}", "2^{200}-1"),
        ("100!", "100!+1"),
        ("1", r"1-\frac{1}{2^{2024}}"),
        (r"1-\frac{1}{2^{200}}", r"1-\frac{1}{2^{201}}"),
        ("1", r"\frac{10^{50}+1}{10^{50}}"),
        (r"\sqrt2", r"\sqrt2+10^{-45}"),
        (r"\sqrt2", r"\sqrt2+10^{-2000}"),
        (r"\pi", r"\pi+2^{-19000}"),
        (r"\pi", r"\pi+e^{-5000}"),
        ("x", "x+10^{-30}"),
        ("x^2", "x^2+10^{-40}x"),
        (r"\sin x", r"\sin x+10^{-300}"),
        (r"e^{\pi\sqrt{163}}", "262537412640768744"),
        ("0", r"\frac{1}{50!}"),
        ("1", "0^0"),
        ("1", "0^{1-1}"),
        ("1", "(1-1)^0"),
        ("2", "1+0^0"),
    ],
)
def test_close_is_not_equal(judge: MathJudge, gold: str, answer: str) -> None:
    assert says(judge, gold, answer) is False
    assert says(judge, answer, gold) is not True


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("2^{200}-1", "-1+2^{200}"),
        (r"\sqrt{3+2\sqrt2}", r"1+\sqrt2"),
        (r"\sqrt[3]{2+\sqrt5}+\sqrt[3]{2-\sqrt5}", "1"),
        (r"\cos\frac{\pi}{7}-\cos\frac{2\pi}{7}+\cos\frac{3\pi}{7}", r"\frac12"),
        (r"\sin 2x", r"2\sin x\cos x"),
        ("1", "10^0"),
        ("1", "x^0"),
    ],
)
def test_equal_values_stay_equal(judge: MathJudge, gold: str, answer: str) -> None:
    assert says(judge, gold, answer) is True


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"\frac\pi2", r"\frac{\pi}{2}"),
        (r"\frac\pi{2}", r"\frac{\pi}{2}"),
        (r"\frac{x}2", r"\frac{x}{2}"),
        (r"\frac{2\sqrt3}3", r"\frac{2\sqrt{3}}{3}"),
        (r"2\sqrt\pi", r"2\sqrt{\pi}"),
        (r"\sqrt\frac{1}{2}", r"\sqrt{\frac{1}{2}}"),
        (r"\sqrt[3]\frac18", r"\sqrt[3]{\frac{1}{8}}"),
        (r"\binom52", r"\binom{5}{2}"),
        (r"\frac1{\sqrt2}", r"\frac{1}{\sqrt{2}}"),
        (r"\frac{\frac\pi2}3", r"\frac{\frac{\pi}{2}}{3}"),
        (r"\frac 1 2", r"\frac{1}{2}"),
        (r"\frac{1", r"\frac{1"),
        (r"\frac", r"\frac"),
        (r"\sqrt(2)", r"\sqrt(2)"),
        ("x+1", "x+1"),
    ],
)
def test_arguments_get_their_braces(written: str, read: str) -> None:
    assert brace_arguments(written) == read


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        (r"\frac\pi2", r"\frac{\pi}{2}", True),
        (r"\frac{\pi}{2}", r"\dfrac\pi2", True),
        (r"\frac\pi2", r"\frac2\pi", False),
        ("10", r"\binom52", True),
        (r"\frac{\sqrt2}{2}", r"\sqrt\frac{1}{2}", True),
        (r"\sqrt{10}", "√10", True),
        (r"\frac{2\sqrt3}3", r"\frac{2}{\sqrt 3}", True),
        (r"\frac13", r"0.\overline{3}", True),
    ],
)
def test_half_braced_answers_and_references(judge: MathJudge, gold: str, answer: str, equal: bool) -> None:
    assert says(judge, gold, answer) is equal


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        ("x=2,y=3", "x=3,y=2", False),
        ("x=2,y=3", "y=2,x=3", False),
        ("x=2,y=3", "(3,2)", False),
        ("x=2,y=3", "x=2", False),
        ("x=2,y=3", "x=2,y=3,z=4", False),
        ("x=2,y=3", "a=2,b=3", False),
        ("x=2,y=3", r"\{2,3\}", False),
        ("x=2,y=3", "y=3,x=2", True),
        ("x=2,y=3", "(2,3)", True),
        ("x=2,y=3", r"(x,y)=(2,3)", True),
        ("x=2,y=3", r"x=2\text{ and }y=3", True),
        ("(2,3)", "x=3,y=2", False),
        ("x=1,x=2", "2,1", True),
        (r"\{x: x>2\}", r"[2,\infty)", False),
        (r"\{x: x>2\}", r"(2,\infty)", True),
        (r"\{x\mid x>2\}", "x>2", True),
        (r"(2,\infty)", r"\{x\in\mathbb{R}\mid x>2\}", True),
    ],
)
def test_named_components_and_set_builders(judge: MathJudge, gold: str, answer: str, equal: bool) -> None:
    assert says(judge, gold, answer) is equal


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        ("A", "a circle", False),
        ("A", "A circle", False),
        ("A", "A is wrong", False),
        ("B", "B is not correct", False),
        ("B", "(B) is incorrect", False),
        ("B", "(B) is not the answer", False),
        ("B", "B. wrong", False),
        ("A", "A, B", False),
        ("A", "(A) and (B)", False),
        ("A", "a) or b)", False),
        ("I", "I think", False),
        ("B", "b", True),
        ("B", "(b)", True),
        ("B", "B. 14", True),
        ("B", "B: cat", True),
        ("B", "(B) not enough information", True),
        ("B", "B is correct", True),
        ("B", "Option B", True),
        ("B", r"\textbf{(B)}\ 12", True),
    ],
)
def test_options(judge: MathJudge, gold: str, answer: str, equal: bool) -> None:
    assert says(judge, gold, answer) is equal
