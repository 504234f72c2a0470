r"""Values and equality of expressions, worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from klearbench.judging.expressions.balls import ball
from klearbench.judging.expressions.bounds import Undefined
from klearbench.judging.expressions.compare import equal, order, same_equation
from klearbench.judging.expressions.exact import exact_value
from klearbench.judging.expressions.nodes import Node
from klearbench.judging.expressions.parser import parse_expression
from klearbench.judging.normalize import canonical


def read(text: str) -> Node:
    return parse_expression(canonical(text))


RATIONALS = {
    r"\frac{1}{2}+\frac13": Fraction(5, 6),
    r"2^{-3}": Fraction(1, 8),
    r"\sqrt{4}": Fraction(2),
    r"\sqrt[3]{-8}": Fraction(-2),
    r"8^{2/3}": Fraction(4),
    r"(-8)^{2/3}": Fraction(4),
    r"\sqrt2^4": Fraction(4),
    r"\log_2 8": Fraction(3),
    r"\log_9 27": Fraction(3, 2),
    r"\log_{1/2} 8": Fraction(-3),
    r"\ln 1": Fraction(0),
    r"\ln e^3": Fraction(3),
    r"5!": Fraction(120),
    r"5!!": Fraction(15),
    r"6!!": Fraction(48),
    r"\binom{5}{2}": Fraction(10),
    r"\binom{-2}{3}": Fraction(-4),
    r"\binom{1/2}{2}": Fraction(-1, 8),
    r"\binom{5}{-1}": Fraction(0),
    r"\binom{3}{5}": Fraction(0),
    r"\gcd(12,18)": Fraction(6),
    r"\text{lcm}(4,6)": Fraction(12),
    r"\max(1,3,2)": Fraction(3),
    r"\lfloor -\frac72\rfloor": Fraction(-4),
    r"\lceil -\frac72\rceil": Fraction(-3),
    r"|-3|": Fraction(3),
    r"-7 \bmod 5": Fraction(3),
    r"\phi(10)": Fraction(4),
    r"\sum_{k=1}^{10} k^2": Fraction(385),
    r"\sum_{k=1}^{10000} k^2": Fraction(333383335000),
    r"\sum_{k=1}^{10^{12}} k": Fraction(10**12 * (10**12 + 1), 2),
    r"\sum_{k=1}^{3} \frac1k": Fraction(11, 6),
    r"\prod_{k=1}^{5} k": Fraction(120),
    r"\sum_{k=5}^{4} k": Fraction(0),
    r"\begin{vmatrix}1&2\\3&4\end{vmatrix}": Fraction(-2),
    r"\sin 30^\circ": Fraction(1, 2),
    r"\cos\frac{2\pi}{3}": Fraction(-1, 2),
    r"\tan\frac{3\pi}{4}": Fraction(-1),
    r"\sec\frac{\pi}{3}": Fraction(2),
    r"\text{arcsec}(1)": Fraction(0),
    r"\cot\frac{5\pi}{4}": Fraction(1),
}


@pytest.mark.parametrize(("text", "value"), RATIONALS.items())
def test_rational_values(text: str, value: Fraction) -> None:
    assert exact_value(read(text)) == value


@pytest.mark.parametrize("text", [r"\sqrt2", r"\pi", "i", r"\sqrt{-1}", r"\log_2 3", r"\sin 1", r"\sin\frac\pi5", "x"])
def test_values_that_are_not_plainly_rational(text: str) -> None:
    assert exact_value(read(text)) is None


UNDEFINED = [r"\frac10", "0^0", "0^{-1}", r"\frac{1}{\sqrt4-2}", r"\ln 0", r"\log_1 3", r"\tan\frac\pi2", r"(\frac12)!"]
UNDEFINED += [r"\cot 0", r"\text{arccsc}(0)", r"\text{arcsec}(0)", r"\binom{3}{1/2}", r"(-1)!", r"5 \bmod 0"]


@pytest.mark.parametrize("text", UNDEFINED)
def test_undefined_equals_nothing(text: str) -> None:
    with pytest.raises(Undefined):
        exact_value(read(text))
    assert ball(read(text), 128) is None
    assert not equal(read(text), read(text))


@pytest.mark.parametrize("text", [r"\infty-\infty", r"0\cdot\infty", r"\frac\infty\infty", r"\arcsin 2", r"\ln(-1)"])
def test_undefined_without_a_rational_value(text: str) -> None:
    assert not equal(read(text), read(text))


EQUAL = r"""
\frac{\sqrt3}{3} ; \frac1{\sqrt3}
0 ; \sqrt{3+2\sqrt2}-1-\sqrt2
\sqrt[3]{2+\sqrt5}+\sqrt[3]{2-\sqrt5} ; 1
\cos\frac{\pi}{5} ; \frac{1+\sqrt5}{4}
\cos(\arccos\frac13) ; 1/3
e^{i\pi} ; -1
\sqrt{-1} ; i
\ln(-1) ; i\pi
\frac{1}{1+i} ; \frac{1-i}2
0.1+0.2 ; 0.3
\infty ; 2\infty+1
2^{1000000}+\sqrt2 ; \sqrt2+4^{500000}
9^{9^9}+1 ; 1+9^{9^9}
10^{10^{10}} ; 10^{10^{5+5}}
\lfloor 10^{10^9}\pi\rfloor ; \lfloor 10^{10^9}\pi\rfloor
(x+1)^{50} ; (1+x)^{50}
(x+y+z)^{1000} ; (z+x+y)^{1000}
x+1 ; \frac{x^2-1}{x-1}
\sqrt{x^2} ; |x|
\sqrt{(x-5000)^2} ; |5000-x|
\sqrt{x-10^{6}} ; \frac{x-10^6}{\sqrt{x-10^6}}
\sqrt[3]{x} ; x^{1/3}
x^{\frac23} ; \sqrt[3]{x^2}
\frac1{\sqrt n} ; \sqrt{1/n}
\sin 2x ; 2\sin x\cos x
\sin^2 x+\cos^2 x ; 1
2^{n+1} ; 2\cdot2^n
\frac{n!}{(n-2)!} ; n(n-1)
\frac{(2n)!}{2^nn!} ; (2n-1)!!
\binom{n}{k} ; \frac{n!}{k!(n-k)!}
(-1)^n ; \cos(n\pi)
\ln x^2 ; 2\ln x
a^{\ln b} ; b^{\ln a}
\max(a,b) ; \frac{a+b+|a-b|}2
\lfloor -x\rfloor ; -\lceil x\rceil
\sum_{k=1}^n k ; \frac{n(n+1)}2
\sum_{k=0}^{n} ar^k ; a\frac{r^{n+1}-1}{r-1}
\prod_{k=1}^{n}k ; n!
x^2+1 ; (x+i)(x-i)
|x+iy| ; \sqrt{x^2+y^2}
x+y-y ; x
\begin{pmatrix}1&2\\3&4\end{pmatrix} ; \begin{pmatrix}1&2\\3&\frac82\end{pmatrix}
\begin{pmatrix}1&x\\0&1\end{pmatrix}^2 ; \begin{pmatrix}1&2x\\0&1\end{pmatrix}
\begin{pmatrix}1&2\\3&4\end{pmatrix}^{-1} ; -\frac{1}{2}\begin{pmatrix}4&-2\\-3&1\end{pmatrix}
\begin{cases}x&x\ge0\\-x&x<0\end{cases} ; |x|
\begin{cases}x^2&x\ge1\\x&x<1\end{cases} ; \begin{cases}x^2&x>1\\x&x\le1\end{cases}
\begin{cases}1&x=1\\2&x=2\end{cases} ; \begin{cases}2&x=2\\1&x=1\end{cases}
\int_0^1 x^2 dx ; \frac13
\int_0^a x dx ; \frac{a^2}{2}
\lim_{x\to0}\frac{\sin x}{x} ; 1
\sum_{n=1}^{\infty}\frac1{n^2} ; \frac{\pi^2}6
"""

UNEQUAL = r"""
2^{1000000} ; 2^{1000000}+1
2^{1000000}+\sqrt2 ; 4^{500000}+\sqrt3
\frac1{2004!} ; \frac1{2006!}
\frac{\pi}{2004!} ; 0
\sqrt{10^{100}+1} ; 10^{50}
e^{\pi\sqrt{163}} ; 262537412640768744
\sqrt2 ; 1.41421356237309504880168872420969807856967187537694
0.333 ; 1/3
\sqrt{-1} ; -\sqrt{-1}
\infty ; -\infty
\infty ; 5
9^{9^9} ; 9^{9^8}
9^{9^9} ; 9^{9^9}+1
(10^{100})! ; 5
1^\infty ; 1
\frac1\infty ; 0
(x+1)^{50} ; (x+1)^{51}
(x+y+z)^{1000} ; (z+x+y)^{1000}+1
x ; y
x ; x+y
x^2 ; x^2+10^{-100}
\sin x ; \sin x+10^{-40}x
|x-50| ; 50-x
\max(x,50) ; 50
\sqrt{(x-5000)^2} ; 5000-x
|x-y| ; x-y
\lfloor x\rfloor ; \lfloor x+\frac1{100}\rfloor
\ln x ; \ln 2x
\ln(-1-x^2) ; \ln(-1-x^2)
\frac{1}{x-x} ; \frac1{x-x}
\frac{1}{\sqrt{3+2\sqrt2}-1-\sqrt2} ; \frac{1}{\sqrt{3+2\sqrt2}-1-\sqrt2}
\arctan x+\arctan\frac1x ; \frac\pi2
\begin{pmatrix}1&2\end{pmatrix} ; \begin{pmatrix}1\\2\end{pmatrix}
\begin{pmatrix}1\end{pmatrix} ; 1
\begin{cases}x&x>0\\-x&x<0\end{cases} ; |x|
\begin{cases}1&x>0\\-1&x\le0\end{cases} ; \begin{cases}1&x\ge0\\-1&x<0\end{cases}
\begin{cases}1&0<x<\frac{1}{1000}\\0&\text{otherwise}\end{cases} ; 0
\int_0^1 x^2dx ; 1/2
"""


def pairs(table: str) -> list[tuple[str, ...]]:
    return [tuple(line.split(" ; ")) for line in table.strip().splitlines()]


@pytest.mark.parametrize(("gold", "answer"), pairs(EQUAL))
def test_equal(gold: str, answer: str) -> None:
    assert equal(read(gold), read(answer))
    assert equal(read(answer), read(gold))


@pytest.mark.parametrize(("gold", "answer"), pairs(UNEQUAL))
def test_unequal(gold: str, answer: str) -> None:
    assert not equal(read(gold), read(answer))
    assert not equal(read(answer), read(gold))


SMALLER = [("1", "2"), (r"\sqrt2", "1.5"), (r"\pi^e", r"e^\pi"), ("2^{1000000}", "3^{630930}"), ("5", r"\infty")]
UNORDERED = [("i", "1"), ("i", "i"), (r"\infty", "i"), (r"\frac10", "1"), ("x", "x")]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        *((a, b, -1) for a, b in SMALLER),
        *((b, a, 1) for a, b in SMALLER),
        *((a, b, None) for a, b in UNORDERED),
        (r"\sqrt{3+2\sqrt2}", r"1+\sqrt2", 0),
    ],
)
def test_order(one: str, other: str, expected: int | None) -> None:
    assert order(read(one), read(other)) == expected


@pytest.mark.parametrize(
    ("f", "g", "expected"),
    [
        ("x+y-1", "2x+2y-2", True),
        ("x^2-y", "y-x^2", True),
        (r"\frac{x}{2}-y", "x-2y", True),
        (r"\frac xy-1", "x-y", True),
        (r"\sqrt2x-y", r"2x-\sqrt2y", True),
        ("e^x-y", "2y-2e^x", True),
        ("x-y", "x+y", False),
        ("x^2-y^2", "x-y", False),
        ("x", "x^2", False),
        ("x-1", "y-1", False),
        (r"\sin x-y", r"\sin x-2y", False),
    ],
)
def test_same_equation(f: str, g: str, expected: bool) -> None:
    assert same_equation(read(f), read(g)) is expected
