"""Reading expressions: malformed and hostile texts, and random trees written in several spellings and read back."""

from __future__ import annotations

import contextlib
import inspect
import random
import sys
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klearbench.judging.expressions.nodes import ARITY, Big, Const, Node, Num, Op, Sym, Unreadable
from klearbench.judging.expressions.parser import MAX_CHARS, parse_expression, parse_relation
from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN, canonical
from tests.timing import assert_quick

UNREADABLE = [
    *("", " ", "()", "{}", "+", "1+", r"\cdot2", r"2\cdot", "2^", "^2", "1/", "/2", "2**+", "x_", "x_{}", "\\frac{1}"),
    *("\\frac{}{2}3", "(1", "1)", "(1]", "[1)", "{1", "1}", "|x", "x|", "\\lfloor x", "\\sqrt{2", "((1)", "(1))"),
    *("\\|x\\|", "\\{x\\}", "2 3", "1 234", "x2", "x 2", r"\pi 2", "2^3 4", "3!2", "1{2}", "{1}{2}", "{1}2", "2{}3"),
    *("1..2", "1.2.3", "...", "1,23", "1,2345", "12,34,567", "0,123", "1, 234", "3,14", "(1,2)", "1;2", "1:2", "5#"),
    *("a@b", "10%", "a&b", "$5", r"2\frac32", r"2\frac33", "1 3/2", "1 1/0", r"1\frac12^2", r"1\frac12!", "2^3!"),
    *("x^2!", "n!!!", "foo(3)", "ab(3)", "system(1)", "solution", "abcde", "none of these", "print", "__import__(1)"),
    *("import os", "eval(1)", "lambda x", "lambda x: x", "def", "x=>y", "'a'", '"a"', r"\def\x", r"\newcommand{a}"),
    *(r"\input{a}", "2;3", "open", "log2(8)", "log10(100)", "max 1", "floor x", r"\max", r"\sin", r"\sin+"),
    *(r"\sin_2 x", r"\ln^{-1} x", r"\log", r"\overline{12}", r"\overline{ab}", r"\overline{3}", r"\text{5 cm} x"),
    *(r"3\text{ cm}", r"x \text{ or } y", "101_2", "5'", r"\infty_1", r"x\pm 1", r"\frac{dy}{dx}", r"\frac{d}{dx}x"),
    *(r"\mathbb{R}", r"x \in A", r"\vec{a}", r"\begin{Vmatrix}1\end{Vmatrix}", r"\begin{pmatrix}1&2\\3\end{pmatrix}"),
    *(r"\begin{pmatrix}1", r"\begin{pmatrix}&\end{pmatrix}", r"\begin{cases}\end{cases}"),
    *(r"\begin{cases}1 & x\end{cases}", r"\begin{pmatrix}1\end{bmatrix}", r"\det 3", r"\det A", r"\sum k"),
    *(r"\sum_{k=1} k", r"\sum_{k\ge1}^3 k", r"\sum_{k=1}^10 k", r"\int_0^1 x", r"\int_0 x dx", r"\lim_{x\to0^+}x"),
    *(r"1+5 \bmod 3", "P(5,2)", "C(5,2,3)", "x=3", "x<3", "_5P_2", "a->b", "0x10", "1e5.5", "²", "é", "\x00"),
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_malformed_texts_code_and_prose_are_unreadable(text: str) -> None:
    with pytest.raises(Unreadable) as refused:
        parse_expression(canonical(text))
    assert 0 < len(str(refused.value)) < 80


@pytest.mark.parametrize("text", ["x", "x=", "=x", "x=>y", "x==y", "x<>y", "x=3,y=4", "x=3 or x=4", ""])
def test_texts_that_state_no_single_chain_are_no_relations(text: str) -> None:
    with pytest.raises(Unreadable):
        parse_relation(canonical(text))


def test_the_words_of_text_marks_are_no_products() -> None:
    assert parse_expression(f"{TEXT_OPEN}x{TEXT_CLOSE}y") == Op("mul", (Sym("x"), Sym("y")))
    with pytest.raises(Unreadable):
        parse_expression(f"3{TEXT_OPEN}xy{TEXT_CLOSE}")


def test_thirty_nested_brackets_are_read_and_a_thousand_are_not() -> None:
    assert parse_expression("(" * 30 + "5" + ")" * 30) == Num(Fraction(5))
    assert isinstance(parse_expression("2^{" * 30 + "5" + "}" * 30), Op)
    with pytest.raises(Unreadable):
        parse_expression("(" * 900 + "5" + ")" * 900)


def test_long_texts_are_unreadable_but_a_long_integer_is_a_number() -> None:
    assert parse_expression("-" + "9" * 20_000) == Num(Fraction(1 - 10**20_000))
    assert parse_expression("1+" * 50 + "1") == Op("add", (Num(Fraction(1)),) * 51)
    for text in ("9" * 20_001, "x+" * MAX_CHARS + "x", "1." + "0" * MAX_CHARS):
        with pytest.raises(Unreadable):
            parse_expression(text)


def test_the_variable_of_a_sum_may_be_called_i_or_e() -> None:
    tree = parse_expression(canonical(r"\sum_{i=1}^{3} i + i"))
    assert tree == Op("add", (Big("sum", "i", Num(Fraction(1)), Num(Fraction(3)), Sym("i")), Const("i")))


# Random trees, written in several spellings and read back.

_LEAVES = st.one_of(
    st.integers(0, 10**6).map(lambda n: Num(Fraction(n))),
    st.sampled_from(
        [Const("pi"), Const("e"), Const("i"), Sym("x"), Sym("y"), Sym("theta"), Sym("a_1"), Sym("x_{n+1}")]
    ),
)
_FUNCTIONS = ("sin", "cos", "arctan", "ln", "exp", "re", "cosh")


def _larger(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    pairs, several = st.tuples(children, children), st.lists(children, min_size=2, max_size=4).map(tuple)
    return st.one_of(
        st.builds(Op, st.sampled_from(["add", "mul"]), several),
        st.builds(Op, st.sampled_from(["div", "pow", "root", "log", "binomial"]), pairs),
        st.builds(Op, st.sampled_from([*_FUNCTIONS, "abs", "floor", "factorial"]), st.tuples(children)),
        st.builds(Op, st.just("gcd"), several),
    )


TREES = st.recursive(_LEAVES, _larger, max_leaves=20)


class Writer:
    """A tree as text, the spelling chosen by a random source; each argument of an operation in brackets."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def write(self, node: Node) -> str:
        if isinstance(node, Num):
            return f"{node.value.numerator:,}" if self.random.random() < 0.3 else str(node.value)
        if isinstance(node, Const | Sym):
            return self.either(f"\\{node.name} ", node.name) if node.name in ("pi", "theta") else node.name
        assert isinstance(node, Op)
        least, most = ARITY[node.name]
        assert len(node.args) >= least and (most is None or len(node.args) <= most)
        a, *rest = (
            str(arg.value) if node.name == "gcd" and isinstance(arg, Num) else self.write(arg) for arg in node.args
        )
        b = rest[0] if rest else ""
        bracketed = [self.group(arg) for arg in (a, *rest)]
        spelled = {
            "add": [" + ".join(bracketed)],
            "mul": [self.either(r" \cdot ", "*", r"\times ", "").join(bracketed)],
            "div": [rf"\frac{{{a}}}{{{b}}}", f"{bracketed[0]}/{{{bracketed[-1]}}}", rf"{{{a}\over {b}}}"],
            "pow": [f"{bracketed[0]}^{{{b}}}", f"{bracketed[0]}**({b})", rf"{bracketed[0]} ^ {{ {b} }}"],
            "root": [rf"\sqrt[{b}]{{{a}}}", rf"sqrt[{b}]({a})"],
            "log": [rf"\log_{{{a}}}({b})", rf"\log_{{{a}}}{{{b}}}"],
            "binomial": [rf"\binom{{{a}}}{{{b}}}", rf"{{{a}\choose {b}}}"],
            "abs": [f"|{self.group(a)}|", rf"\left|{self.group(a)}\right|"],
            "floor": [rf"\lfloor {a}\rfloor ", f"floor({a})"],
            "factorial": [f"{self.group(a)}!"],
            "gcd": [rf"\gcd({', '.join((a, *rest))})", rf"\text{{gcd}}({', '.join((a, *rest))})"],
            "re": [rf"\Re({a})", rf"\operatorname{{Re}}({a})"],
        }
        return self.either(
            *spelled.get(node.name, [rf"\{node.name}({a})", f"{node.name}({a})", rf"\{node.name}{{{a}}}"])
        )

    def group(self, text: str) -> str:
        return self.either(f"({text})", rf"\left( {text}\right)", f"[{text}]")

    def either(self, *spellings: str) -> str:
        return self.random.choice(spellings)


@settings(max_examples=300, deadline=None)
@given(TREES, st.integers(0, 2**32))
def test_a_written_tree_is_read_back(tree: Node, seed: int) -> None:
    text = Writer(seed).write(tree)
    if len(text) > 1500:
        return
    assert parse_expression(canonical(text)) == tree


_PIECES = [
    *("(", ")", "()", "[", "{", "}", "{}", "|", "||", "|x", "(x", "x(", "(1,", "{|", r"\left|", r"\ln|", r"\lfloor"),
    *("C(", "C_", "C^", "C_{", "_5C", "{}_5C_2", r"\frac", r"\frac{", r"\frac1", r"\frac12", r"\binom", r"1\frac12"),
    *("1 1/2", r"\sqrt", r"\sqrt2", r"\sqrt[", "sqrt", "^", "2^", "-2^", "x^", "x^{", "^\\circ", "^\\prime", "_"),
    *("x_", "x_{", "x_{1", "'", "x'", "a", "ab", "xy ", "sin", r"\sin ", r"\sin^", r"\log_", r"\log_2", "log ", "pi"),
    *("e", "inf", "lambda ", "!", "!!", "2!", "-", "+", "1+", "1,", "1,000", "1,234,", ".", "1.", "9", "0.(3)"),
    *("0.\\dot{1}", r"\overline{", "1e9 ", "1e99999*", "1e-9999+", r"\begin{cases}", r"\begin{pmatrix}"),
    *(r"\begin{array}{", r"\begin{pmatrix}1\end{pmatrix}", r"\end{cases}", "&", r"\\", r"\sum_{k=1}^n", r"\int"),
    *(r"\int_0^1", "dx", r"\lim_{x\to0}", "1/", "a/", r"\over", r"{1\over", r"\bmod2", "=", "x<", TEXT_OPEN),
    *(TEXT_CLOSE, f"{TEXT_OPEN}if{TEXT_CLOSE}", r"\max(1,", r"\{", "\\", "  ", r"\,", "~", "$", "%", "phi(", r"\text"),
]


def _read(text: str) -> None:
    with contextlib.suppress(Unreadable):
        parse_expression(text)


@pytest.mark.parametrize("piece", _PIECES)
def test_hostile_texts_take_milliseconds(piece: str) -> None:
    text = (piece * MAX_CHARS)[:MAX_CHARS]
    assert_quick(lambda: _read(text), 0.5)


def test_random_hostile_texts_end_in_a_tree_or_a_refusal() -> None:
    source = random.Random(7)
    for _ in range(300):
        some = source.sample(_PIECES, source.randint(2, 12))
        text = "".join(source.choice(some) for _ in range(source.choice((5, 20, 600))))[:MAX_CHARS]
        assert_quick(partial(_read, text), 1)


_NESTING = [
    *(("(", ")"), ("{", "}"), ("|-", "|"), (r"\sqrt{", "}"), (r"\frac{", "}{2}"), ("2^{", "}"), ("2^", "")),
    *((r"\sin ", ""), (r"\sin(", ")"), (r"\max(", ")"), (r"\sqrt", ""), ("x_{", "}"), (r"\log_{", "}2")),
    *((r"\sum_{k=1}^n", ""), ("C(1,", ")"), (r"\begin{pmatrix}", r"\end{pmatrix}")),
    *((r"\begin{cases}", r"\end{cases}"), (r"\overline{", "}"), (r"\int ", " dx"), ("-", "")),
    *((r"\begin{cases}1&", r"=1\end{cases}"), (r"\lim_{x\to", "}x"), ("1/(", ")"), ("1-", ""), ("1/", "")),
    *(("{}_{", "}C_2"),),
]


@pytest.mark.parametrize(("before", "after"), _NESTING)
def test_deep_nesting_never_overflows_the_stack(before: str, after: str) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 750)
    try:
        for depth in (20, 29, 31, 40, 61, 63, 64, 65, 66, 100, 300):
            with contextlib.suppress(Unreadable):
                parse_expression((before * depth + "x" + after * depth)[:MAX_CHARS])
    finally:
        sys.setrecursionlimit(limit)
