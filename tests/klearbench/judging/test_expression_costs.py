"""What expressions cost: hostile trees are stopped early, and threads share the precision of the library safely."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import flint
import pytest

from klearbench.judging.expressions.balls import ball
from klearbench.judging.expressions.bounds import TooLarge
from klearbench.judging.expressions.compare import equal, order
from klearbench.judging.expressions.exact import exact_value
from klearbench.judging.expressions.nodes import Node, Num, Op, Unreadable
from klearbench.judging.expressions.parser import parse_expression
from klearbench.judging.normalize import canonical
from tests.timing import assert_quick


def read(text: str) -> Node:
    return parse_expression(canonical(text))


def nested(step: Callable[[Node], Node], depth: int = 95) -> Node:
    node: Node = Num(Fraction(2))
    for _ in range(depth):
        node = step(node)
    return node


ONE, TWO = Num(Fraction(1)), Num(Fraction(2))
HOSTILE: dict[str, Node] = {
    "roots": nested(lambda n: Op("root", (Op("add", (n, ONE)), TWO))),
    "fractions": nested(lambda n: Op("div", (ONE, Op("add", (n, ONE))))),
    "exponentials": nested(lambda n: Op("exp", (n,))),
    "squares": nested(lambda n: Op("pow", (n, TWO))),
    "tower": nested(lambda n: Op("pow", (TWO, n))),
    "factorials": nested(lambda n: Op("factorial", (Op("add", (n, ONE)),))),
    **{
        text: read(text)
        for text in (
            *("(10^{100})!", "((10!)!)!", "9^{9^9}", "9^{9^{9^9}}", "7^{10^9}", r"\sum_{k=1}^{10^{12}} k^k"),
            *(r"\lfloor 10^{10^9}\pi\rfloor", r"\sum_{k=1}^{20000}\frac1k", r"\sum_{k=1}^{20000}\sqrt k"),
            *(r"\sum_{j=1}^{1000}\sum_{k=1}^{1000} jk^j", r"\binom{10^{50}}{10000}", r"\binom{10^9}{10^8}"),
            *(r"\sin(10^{100000})", r"\log_2(3^{100000})", r"(7^{500000}+1)(3^{500000}+1)(5^{500000}+1)"),
            *("2^{1000000}+\\pi", r"\sqrt{2^{4000000}+1}", r"\phi(10^{60}+7)"),
        )
    },
}


def stopped(call: Callable[[], object]) -> None:
    with contextlib.suppress(Unreadable):
        call()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_trees_are_stopped_before_they_cost(name: str) -> None:
    node = HOSTILE[name]
    calls: tuple[Callable[[], object], ...] = (
        lambda: exact_value(node),
        lambda: ball(node, 128),
        lambda: equal(node, Op("add", (node, ONE))),
        lambda: order(node, ONE),
    )
    for call in calls:
        assert_quick(partial(stopped, call), 1)  # a few ms to 50 ms on an idle machine


def test_too_large_is_not_undefined() -> None:
    with pytest.raises(TooLarge):
        exact_value(read("9^{9^9}"))


def test_threads_do_not_disturb_the_precision_of_each_other() -> None:
    before = flint.ctx.prec
    gold, answer = read(r"\sqrt{10^{100}+1}"), read(r"10^{50}")
    found: list[bool] = []
    threads = [threading.Thread(target=lambda: found.extend(equal(gold, answer) for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [False] * 200
    assert flint.ctx.prec == before
