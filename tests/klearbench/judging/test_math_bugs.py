"""What graders are known to get wrong, one kind a test; worked out by hand. The bugs are put back in tests/mutants."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import cast

import pytest

from klearbench.judging import worker
from klearbench.judging.expressions.compare import equal
from klearbench.judging.expressions.exact import exact_value
from klearbench.judging.expressions.nodes import Unreadable
from klearbench.judging.expressions.parser import parse_expression
from klearbench.judging.judge import MathJudge
from klearbench.judging.normalize import canonical
from klearbench.judging.numbers import exact_number
from klearbench.judging.rewards import judge_rollouts
from klearbench.types import Answer, FinishReason, Sample
from tests.timing import assert_quick


@pytest.fixture(scope="module")
def judge() -> Iterator[MathJudge]:
    with MathJudge() as made:
        yield made


def says(judge: MathJudge, gold: str, answer: str) -> bool | None:
    return judge.compare(Answer("p", gold), answer).equal


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("100000000000000001", "100000000000000002.0"),
        (r"\frac{100000000000000001}{3}", r"\frac{100000000000000002}{3}"),
        ("0.1000000000000000000001", "0.1"),
    ],
)
def test_exact_numbers_differ_in_their_last_digit(judge: MathJudge, gold: str, answer: str) -> None:
    assert says(judge, gold, answer) is False
    assert says(judge, gold, gold) is True


def test_a_pair_is_no_number_with_a_separator(judge: MathJudge) -> None:
    assert exact_number("(1,200)") is None
    assert exact_number("(1200)") == 1200
    assert says(judge, "(1,200)", "1200") is False
    assert says(judge, "(1,200)", "(1, 200)") is True


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("0.5", r"0.5\%", False),
        ("0.5", r"50\%", True),
        (r"\frac12", r"0.5\%", False),
        (r"0.5\%", "0.005", True),
        (r"0.5\%", r"50\%", False),
        ("0.05", "5", False),
    ],
)
def test_percents(judge: MathJudge, gold: str, answer: str, right: bool) -> None:
    assert says(judge, gold, answer) is right


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        (r"5\text{ cm}", r"5\text{ m}", False),
        (r"5\text{ cm}", r"5\text{ kg}", False),
        (r"5\text{ cm}^2", r"5\text{ cm}", False),
        (r"90\text{ minutes}", r"90\text{ hours}", False),
        (r"5\text{ cm}", "5", True),
        (r"5\text{ cm}", "5 centimeters", True),
    ],
)
def test_units(judge: MathJudge, gold: str, answer: str, right: bool) -> None:
    assert says(judge, gold, answer) is right


@pytest.mark.parametrize("answer", ["5, 6", "6, 5", r"5\text{ or }6", r"\{5,6\}", "5; 6", "4, 5, 6"])
def test_a_list_of_guesses_is_no_answer(judge: MathJudge, answer: str) -> None:
    assert says(judge, "5", answer) is False


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (r"\begin{bmatrix}1&2\\3&4\end{bmatrix}", True),
        (r"\begin{pmatrix}1&3\\2&4\end{pmatrix}", False),
        (r"\begin{pmatrix}3&4\\1&2\end{pmatrix}", False),
        (r"\begin{pmatrix}1&2\end{pmatrix}", False),
    ],
)
def test_matrices(judge: MathJudge, answer: str, right: bool) -> None:
    assert says(judge, r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", answer) is right


@pytest.mark.timeout(60)
def test_a_tower_is_refused_before_it_is_computed() -> None:
    node = parse_expression(canonical("3^{3^{16}}"))  # 68 million bits; some seconds of work

    def compared() -> None:
        with contextlib.suppress(Unreadable):
            exact_value(node)
        assert not equal(node, parse_expression("7"))

    assert_quick(compared, 0.5)


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        (r"\sin 20^\circ", r"\sin\frac{\pi}{9}", True),
        (r"\sin 20^\circ", r"\sin 20", False),
        (r"\cos 30^\circ", r"\frac{\sqrt3}{2}", True),
        (r"10\tan 36^\circ", r"10\tan\frac{\pi}{5}", True),
    ],
)
def test_degrees_inside_functions(judge: MathJudge, gold: str, answer: str, right: bool) -> None:
    assert says(judge, gold, answer) is right


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        (r"2\pm\sqrt{3\mp 1}", r"2+\sqrt2, 2-\sqrt4", True),
        (r"2\pm\sqrt{3\mp 1}", r"2+\sqrt2, 2+\sqrt4, 2-\sqrt2, 2-\sqrt4", False),
        (r"1\pm\sqrt2", r"1+\sqrt2, 1-\sqrt2", True),
        (r"1\pm\sqrt2", r"1+\sqrt2", False),
    ],
)
def test_signs_that_are_tied(judge: MathJudge, gold: str, answer: str, right: bool) -> None:
    assert says(judge, gold, answer) is right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (r"\frac{\pi}{3}+n\pi, n\in\mathbb{Z}", True),
        (r"\frac{4\pi}{3}+k\pi, k\in\mathbb{Z}", True),
        (r"x=\frac{\pi}{3}+2k\pi, x=\frac{4\pi}{3}+2k\pi, k\in\mathbb{Z}", True),
        (r"\frac{\pi}{6}+k\pi, k\in\mathbb{Z}", False),
        (r"\frac{\pi}{3}+2k\pi, k\in\mathbb{Z}", False),
        (r"-\frac{\pi}{3}+k\pi, k\in\mathbb{Z}", False),
    ],
)
def test_general_solutions(judge: MathJudge, answer: str, right: bool) -> None:
    assert says(judge, r"x=\frac{\pi}{3}+k\pi, k\in\mathbb{Z}", answer) is right


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("101_2", "101_3", False),
        ("101_2", "101_{2}", True),
        ("101_2", "12_3", True),
        ("101_2", "101", True),
        ("25_7", "25_8", False),
    ],
)
def test_numerals(judge: MathJudge, gold: str, answer: str, right: bool) -> None:
    assert says(judge, gold, answer) is right


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("2:3", "3:2", False),
        ("3:2", "2:3", False),
        ("2:3", "4:6", True),
        ("1:2:3", "3:2:1", False),
        ("3:2:1", "6:4:2", True),
    ],
)
def test_ratios(judge: MathJudge, gold: str, answer: str, right: bool) -> None:
    assert says(judge, gold, answer) is right


@pytest.mark.parametrize("minus", ["\u2212", "\u2013", "\uff0d", "-"])
def test_signs_of_unicode(judge: MathJudge, minus: str) -> None:
    assert says(judge, "-5", f"{minus}5") is True
    assert says(judge, "5", f"{minus}5") is False
    assert says(judge, "x-5", f"x{minus}5") is True


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [("(2,5)", "]2,5[", True), ("(2,5]", "]2,5[", False), ("[2,5)", "[2,5[", True), ("(2,5]", "]2,5]", True)],
)
def test_intervals_with_turned_brackets(judge: MathJudge, gold: str, answer: str, right: bool) -> None:
    assert says(judge, gold, answer) is right


def test_one_completion_for_two_prompts_is_judged_twice(judge: MathJudge) -> None:
    texts = [("a", 0), ("b", 0), ("a", 1)]
    samples = [Sample("rl", p, i, 0, r"\boxed{4}", 1, 1, FinishReason.stop) for p, i in texts]
    found = judge_rollouts(samples, {"a": Answer("a", "4"), "b": Answer("b", "5")}, judge)
    assert [value for value, _ in found] == [1.0, 0.0, 1.0]
    assert [verdict.key for _, verdict in found] == [sample.key for sample in samples]


def test_a_reference_that_raises_is_our_fault() -> None:
    def reply(gold: str | None, answer: str | None) -> bool | None:
        return cast(bool | None, worker._answer({"op": "strict", "gold": gold, "answer": answer})["equal"])

    assert reply("7", "7") is True
    assert reply(None, "7") is None  # anything that makes the comparison raise
    assert reply("7", None) is False
