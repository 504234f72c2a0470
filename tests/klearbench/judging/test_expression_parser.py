"""Reading expressions: every notation against its tree, worked out by hand; one tree has one or more spellings."""

from __future__ import annotations

import pytest

from klearbench.judging.expressions.nodes import Big, Cases, Const, Matrix, Node, Num, Op, Relation, Sym
from klearbench.judging.expressions.parser import parse_expression, parse_relation
from klearbench.judging.normalize import canonical


def shown(node: Node) -> str:
    """A tree on one line: names of operations before their arguments in brackets."""
    match node:
        case Num(value):
            return str(value)
        case Const(name) | Sym(name):
            return name
        case Op(name, args):
            return f"{name}({', '.join(map(shown, args))})"
        case Big(name, var, low, high, body):
            limits = [shown(limit) if limit is not None else "" for limit in (low, high)]
            return f"{name}[{var}, {limits[0]}, {limits[1]}]({shown(body)})"
        case Matrix(rows):
            return "[" + "; ".join(" ".join(map(shown, row)) for row in rows) + "]"
        case Cases(rows):
            return "{" + "; ".join(f"{shown(v)} if {' & '.join(map(shown_relation, cs))}" for v, cs in rows) + "}"


def shown_relation(relation: Relation) -> str:
    rest = (f" {mark} {shown(part)}" for mark, part in zip(relation.marks, relation.parts[1:], strict=True))
    return shown(relation.parts[0]) + "".join(rest)


def read(text: str) -> str:
    return shown(parse_expression(canonical(text)))


NUMBERS = {
    "7": ["7", "007"],
    "-5": ["-5", "- 5"],
    "5": ["+5", "5."],
    "2": ["--2"],
    "-3": ["+-3"],
    "1/2": [".5", "0.50"],
    "1234567": ["1,234,567"],
    "2469/2": ["1,234.5"],
    "1234": ["1{,}234"],
    "12345": ["12,345"],
    "602000000000000000000000": ["6.02e23"],
    "1/1000": ["1e-3"],
    "1/40": ["2.5E-2"],
    "2000": ["2e3"],
    "add(mul(2, e), -3)": ["2e-3"],
    "mul(2, e)": ["2e"],
    "mul(1, pow(10, 999999999))": ["1e999999999"],
    "1/3": [r"0.\overline{3}", r".\overline{3}", r"0.\bar3", "0.(3)"],
    "11/30": [r"0.3\bar{6}"],
    "1/7": [r"0.\dot{1}4285\dot{7}"],
    "1/9": [r"0.\dot{1}"],
    "1/6": ["0.1(6)"],
    "3/2": [r"1\frac12", r"1\frac{1}{2}", r"1\dfrac{1}{2}", "1 1/2", "1½"],
    "-3/2": [r"-1\frac12", "-1 1/2"],
    "degree(45/2)": [r"22\frac12^\circ"],
    "mul(3, 3/2)": [r"3\cdot 1\frac12"],
    "mul(3/2, x)": [r"1\frac12x"],
}

ARITHMETIC = {
    "add(1, 2, -3)": ["1+2-3"],
    "add(a, neg(b))": ["a-b"],
    "mul(2, 3, 4, 5)": [r"2\cdot3\times 4*5"],
    "div(mul(2, 3), 4)": ["2 × 3 ÷ 4"],
    "div(6, 3)": ["6/3"],
    "div(div(a, b), c)": ["a/b/c"],
    "mul(2, -3)": [r"2\cdot -3"],
    "div(2, -3)": ["2/-3"],
    "div(a, b)": [r"\frac ab", r"\frac{a}{b}", r"{a \over b}"],
    "div(1, 2)": [r"\frac12", r"\frac1{2}"],
    "div(pi, 2)": [r"\frac\pi2", "pi/2"],
    "mul(div(1, 2), 3)": [r"\frac{1}{2}3"],
    "mul(2, div(pi, 3))": [r"2\frac{\pi}{3}"],
    "div(add(1, x), 2)": [r"1+x \over 2"],
    "binomial(5, 2)": [r"\binom{5}{2}", r"\binom52", "C(5,2)", "C_5^2", "C^2_5", r"\mathrm{C}_5^2", "_5C_2", "{}_5C_2"],
    "binomial(n, k)": [r"{n \choose k}", "C_n^k"],
    "mul(C, add(x, 1))": ["C(x+1)"],
    "mul(2, binomial(5, 2))": ["2{}_5C_2"],
    "pow(C_1, 2)": ["C_1^2"],
    "mul(2, pi)": [r"2\pi"],
    "mul(2, x)": ["2x"],
    "mul(a, b)": ["ab", "(a)(b)"],
    "mul(x, y, z)": ["xyz"],
    "mul(x, add(x, 1))": ["x(x+1)"],
    "mul(2, root(3, 2))": [r"2\sqrt3"],
    "mul(pi, pow(r, 2))": [r"\pi r^2"],
    "mul(2, 3)": ["2(3)", "(2)3"],
    "mul(div(1, 2), x)": ["1/2x"],
    "mul(div(1, 2), pi)": [r"1/2\pi"],
    "div(1, root(2, 2))": [r"1/\sqrt{2}"],
    "mul(div(a, b), c)": ["a/bc"],
    "neg(mul(2, x))": ["-2x"],
    "neg(div(2, 3))": ["-2/3"],
    "pow(add(x, 1), 2)": ["[x+1]^2"],
    "x": ["{{x}}"],
    "mod(5, 3)": [r"5 \bmod 3", r"5 \mod 3", "5 mod 3"],
    "mod(-7, 5)": [r"-7 \bmod 5"],
    "mod(mul(2, 4), 3)": [r"2\cdot 4 \bmod 3"],
}

POWERS_AND_ROOTS = {
    "neg(pow(2, 2))": ["-2^2"],
    "pow(-2, 2)": ["(-2)^2"],
    "pow(2, -3)": ["2^-3"],
    "pow(2, add(n, 1))": ["2^{n+1}"],
    "pow(2, 10)": ["2^10"],
    "pow(2, pow(3, 2))": ["2^3^2"],
    "mul(pow(x, 2), y)": ["x^2y"],
    "pow(x, 2)": ["x**2", "x²"],
    "pow(x, add(2, y))": ["x^(2+y)"],
    "pow(e, mul(i, pi))": [r"e^{i\pi}"],
    "pow(e, x)": [r"\mathrm{e}^{x}", "e^x"],
    "pow(e, neg(x))": ["e^-x"],
    "pow(e, x_1)": ["e^x_1"],
    "pow(2, div(1, 2))": [r"2^\frac12"],
    "x'": ["x'", r"x^{\prime}", r"x^\prime"],
    "f''": ["f''"],
    "x_1'": ["x_1'"],
    "pow(x', 2)": ["x'^2"],
    "root(2, 2)": [r"\sqrt2", r"\sqrt 2", r"\sqrt{2}", "√2"],
    "root(8, 3)": [r"\sqrt[3]{8}", r"\sqrt[3]8", "∛8"],
    "root(3, 2)": ["sqrt(3)", "sqrt3"],
    "div(root(3, 2), 3)": ["sqrt(3)/3"],
    "div(root(2, 2), 2)": ["sqrt 2/2"],
    "root(2, 3)": ["cbrt(2)"],
    "root(x, 2)": ["√x"],
    "root(add(x, 1), 2)": ["√(x+1)"],
    "mul(4, root(2, 2))": [r"4\sqrt(2)"],
    "root(add(1, root(2, 2)), 2)": [r"\sqrt{1+\sqrt{2}}"],
    "root(root(2, 2), 2)": [r"\sqrt\sqrt2"],
    "pow(root(x, 2), 2)": [r"\sqrt{x}^2"],
    "factorial(n)": ["n!"],
    "factorial(add(n, 1))": ["(n+1)!"],
    "double_factorial(n)": ["n!!"],
    "mul(factorial(k), factorial(add(n, neg(k))))": ["k!(n-k)!"],
    "degree(30)": [r"30^\circ", r"30^{\circ}", "30°"],
}

BARS = {
    "abs(x)": ["|x|", r"\lvert x\rvert", r"\left|x\right|"],
    "abs(add(x, -1))": ["|x-1|"],
    "abs(add(abs(x), -1))": ["||x|-1|"],
    "abs(add(x, neg(abs(y))))": ["|x-|y||"],
    "add(abs(mul(2, x)), abs(y))": ["|2x|+|y|"],
    "mul(2, abs(x))": ["2|x|"],
    "mul(abs(x), abs(y))": ["|x||y|"],
    "abs(mul(x, mul(y, abs(z))))": ["|x(y|z|)|"],
    "floor(div(x, 2))": [r"\lfloor x/2\rfloor"],
    "ceil(x)": [r"\left\lceil x\right\rceil", "ceil(x)"],
    "floor(5/2)": ["floor(2.5)"],
    "abs(-3)": ["abs(-3)"],
}

FUNCTIONS = {
    "sin(x)": [r"\sin x", "sin(x)", "sinx"],
    "mul(2, sin(mul(2, x)))": ["2sin2x"],
    "sin(mul(2, x))": [r"\sin 2x", r"\sin{2x}"],
    "mul(sin(x), cos(x))": [r"\sin x\cos x"],
    "mul(x, sin(x))": [r"x\sin x"],
    "pow(sin(x), 2)": [r"\sin^2 x", "sin^2(x)", r"\sin(x)^2"],
    "sin(pow(x, 2))": [r"\sin x^2"],
    "arcsin(x)": [r"\sin^{-1} x"],
    "arctan(2)": [r"\tan^{-1}\left(2\right)", r"\operatorname{arctan}2"],
    "arcsinh(x)": [r"\sinh^{-1} x"],
    "sin(div(pi, 5))": [r"\sin\frac{\pi}{5}"],
    "sin(div(pi, 4))": [r"\sin\pi/4"],
    "cos(div(mul(2, pi), 3))": [r"\cos 2\pi/3"],
    "cos(mul(2, x))": [r"\cos(2x)"],
    "mul(cos(x), y)": [r"\cos(x)y"],
    "mul(sin(x), add(1, cos(x)))": [r"\sin x(1+\cos x)"],
    "sin(mul(2, add(x, 1)))": [r"\sin 2(x+1)"],
    "sin(neg(x))": [r"\sin -x"],
    "tan(degree(15))": [r"\tan 15^\circ"],
    "arcsin(1)": ["asin(1)"],
    "arccos(x)": [r"\arccos x"],
    "add(cot(x), sec(x), csc(x))": [r"\cot x+\sec x+\csc x"],
    "mul(sinh(x), cosh(x), tanh(x))": [r"\sinh x\cosh x\tanh x"],
    "div(ln(2), 2)": [r"\ln 2/2"],
    "div(ln(3), ln(2))": [r"\ln 3/\ln 2"],
    "pow(ln(x), 2)": [r"\ln^2 x"],
    "ln(abs(x))": [r"\ln|x|"],
    "ln(ln(x))": [r"\ln\ln x"],
    "log(10, 100)": [r"\log 100", "log(100)", r"\lg 100", r"\log_{10}100"],
    "log(2, 8)": [r"\log_2 8", r"\log_28", r"\log_{2}\left(8\right)", "log_2(8)"],
    "log(10, x)": [r"\log_10 x"],
    "log(a, b)": [r"\log_a b"],
    "pow(log(2, x), 2)": [r"\log_2^2 x"],
    "pow(log(3, x), 2)": [r"\log^2_3 x"],
    "exp(2)": [r"\exp(2)"],
    "gcd(123, 456)": [r"\gcd(123,456)"],
    "lcm(4, 6)": [r"\text{lcm}(4,6)"],
    "max(1, 2)": [r"\max\{1,2\}"],
    "min(a, b, c)": ["min(a,b,c)"],
    "sign(x)": [r"\operatorname{sgn}(x)"],
    "conjugate(z)": [r"\overline{z}", r"\bar z"],
    "conjugate(add(2, mul(3, i)))": [r"\overline{2+3i}"],
    "conjugate(mul(3, i))": [r"\overline{3i}"],
    "re(z)": [r"\Re(z)", r"\operatorname{Re}(z)"],
    "im(z)": [r"\Im z"],
    "arg(z)": [r"\arg z"],
    "phi(10)": [r"\phi(10)", r"\varphi(10)"],
    "mul(phi, add(x, 1))": [r"\phi(x+1)"],
}

NAMES = {
    "pi": ["pi", "π", r"\pi"],
    "e": ["e"],
    "i": ["i", r"\mathrm{i}"],
    "infinity": [r"\infty", "oo", "inf", "Infinity"],
    "neg(infinity)": [r"-\infty"],
    "x": ["x"],
    "X": ["X"],
    "theta": ["theta", r"\theta"],
    "mul(2, alpha)": [r"2\alpha"],
    "mul(2, x, i)": ["2xi"],
    "xi": [r"\xi"],
    "a_1": ["a_1", "a_{1}", "a₁"],
    "a_12": ["a_{12}"],
    "x_{n+1}": ["x_{n+1}", "x_{n + 1}"],
    "a_{ij}": ["a_{ij}"],
    "x_{max}": [r"x_{\text{max}}"],
    "v_{total}": [r"v_{\text{total}}", "v_{total}"],
    "x_{alpha}": [r"x_\alpha"],
    "e_1": ["e_1"],
    "pow(x_1, 2)": ["x_1^2", "x^2_1"],
    "mul(k, pi)": ["kpi"],
}

LARGE = {
    "[1 2; 3 4]": [r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\left[\begin{array}{cc}1&2\\3&4\end{array}\right]"],
    "[1; 2]": [r"\begin{bmatrix}1\\2\\\end{bmatrix}"],
    "transpose([1 -2; 3 pow(x, 2)])": [r"\left(\begin{array}{c|c}1&-2\\[2pt] 3&x^2\end{array}\right)^T"],
    "det([1 2; 3 4])": [
        r"\begin{vmatrix}1&2\cr3&4\end{vmatrix}",
        r"\left|\begin{matrix}1&2\\3&4\end{matrix}\right|",
        r"\det\begin{pmatrix}1&2\\3&4\end{pmatrix}",
    ],
    "mul(2, [1; 2])": [r"2\begin{pmatrix}1\\2\end{pmatrix}"],
    r"{x if x \ge 0; neg(x) if }": [r"\begin{cases} x & \text{if } x\ge 0\\ -x, & \text{otherwise}\end{cases}"],
    r"{x if 0 \le x < 1; 2 if x > 1}": [r"\begin{cases} x & 0\le x<1 \\[2pt] 2, & x>1\end{cases}"],
    r"{1 if x > 0 & y < 2; 2 if x = 0 & y \ne 1}": [
        r"\begin{cases} 1 & \text{if $x>0$ and } y<2 \\ 2 & x=0, y\ne 1\end{cases}"
    ],
    "{1 if x < 0; 1 if x > 1; 2 if }": [r"\begin{cases} 1 & x<0\text{ or }x>1\\ 2 & else \end{cases}"],
    "sum[k, 1, n](k)": [r"\sum_{k=1}^{n} k"],
    "add(sum[i, 0, 9](pow(i, 2)), 1)": [r"\sum_{i=0}^{9} i^2+1"],
    "sum[k, 1, n](mul(2, k))": [r"\sum^n_{k=1} 2k"],
    "product[k, 1, n](div(k, 2))": [r"\prod\limits_{k=1}^n k/2"],
    "integral[x, 0, 1](x)": [r"\int_0^1 x\,dx"],
    "add(integral[x, 0, 1](add(pow(x, 2), 1)), 2)": [r"\int_{0}^{1} x^2+1\,\mathrm{d}x+2"],
    "integral[x, , ](sin(x))": [r"\int \sin x dx"],
    "integral[y, 0, 1](integral[x, 0, 2](mul(x, y)))": [r"\int_0^1\int_0^2 xy\,dx\,dy"],
    "integral[x, 0, 1](1)": [r"\int_0^1 dx"],
    "limit[x, 0, ](div(sin(x), x))": [r"\lim_{x\to0} \frac{\sin x}{x}"],
    "limit[n, infinity, ](pow(add(1, div(1, n)), n))": [r"\lim_{n\rightarrow\infty}\left(1+\frac1n\right)^n"],
}

READABLE = {**NUMBERS, **ARITHMETIC, **POWERS_AND_ROOTS, **BARS, **FUNCTIONS, **NAMES, **LARGE}


@pytest.mark.parametrize(("tree", "text"), [(tree, text) for tree, spellings in READABLE.items() for text in spellings])
def test_each_spelling_is_read_as_its_tree(tree: str, text: str) -> None:
    assert read(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x=3", "x = 3"),
        (r"0<x\le 1", r"0 < x \le 1"),
        ("y>=2x", r"y \ge mul(2, x)"),
        ("a!=b", r"a \ne b"),
        (r"x \neq 0", r"x \ne 0"),
        ("|x|<=2", r"abs(x) \le 2"),
    ],
)
def test_relations_are_read_as_chains(text: str, tree: str) -> None:
    assert shown_relation(parse_relation(canonical(text))) == tree
