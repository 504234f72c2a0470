"""The math judge beside math-verify, in checks a CPU second, on rows that are made from a seed.

Integers, and a mix as RL sees it: 60 % AIME integers, 30 % fractions and radicals, 10 % structured answers (sets,
intervals, tuples, equations, matrices, percent, units); right, wrong and malformed in equal parts. All rows differ and
our cache is off, except for one figure. Our CPU time counts the workers' too; math-verify parses and verifies in this
process, as its users do. Each of its rows that an alarm would have to end counts as the second it takes.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

Row = tuple[str, str]
"""A reference and a final answer."""
_PROSE = "The sum of the terms is 12 times the last one, so we divide by 7 and add 3. "


def main() -> None:
    """Print one line a figure."""
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    logging.getLogger("latex2sympy2_extended").setLevel(logging.ERROR)
    integers, mix = rows("integers", 3_000), rows("mix", 3_000)
    for name, some in (("integers", integers), ("mix", mix)):
        for whole in (False, True):
            print(beside(name, some, whole), flush=True)
    print(repeated(mix[:300]), flush=True)


def rows(kind: str, count: int, seed: int = 0) -> list[Row]:
    """Rows that all differ: `kind` is "integers" or "mix"."""
    draw = random.Random(f"{kind} {seed}")
    found: dict[Row, None] = {}
    while len(found) < count:
        part = draw.random() if kind == "mix" else 0.0
        make = _integer if part < 0.6 else _radical if part < 0.9 else draw.choice(_STRUCTURED)
        gold, right, wrong = make(draw)
        found[gold, draw.choice((right, wrong, _malformed(draw, right)))] = None
    return list(found)


def _malformed(draw: random.Random, text: str) -> str:
    """A text that a model cut off, doubled or wrote around."""
    return draw.choice((
        text + draw.choice("}{)(^"), "\\frac{" + text, f"{text}{text[:1]}\\", f"about {text}", f"{text} or so, or not",
        text.replace("{", "", 1) + "}", f"\\boxed{{{text}", f"({text}", f"{text}^", f"= = {text}",
    ))  # fmt: skip


def _integer(draw: random.Random) -> tuple[str, str, str]:
    gold = draw.randrange(1_000)
    dressed = draw.choice(("{}", "{}", "{}", "{:03d}", "{}.0", "\\text{{{}}}", "{}^\\circ", "n = {}", "${}$", "+{}"))
    return str(gold), dressed.format(gold), dressed.format((gold + draw.randrange(1, 999)) % 1_000)


def _radical(draw: random.Random) -> tuple[str, str, str]:
    """A fraction, or a multiple of a root, plain and rewritten."""
    p, q, r = draw.randrange(1, 60), draw.randrange(2, 60), draw.choice((2, 3, 5, 6, 7, 10, 11))
    if draw.random() < 0.5:
        k = draw.randrange(1, 5)
        form = draw.choice(("\\frac{{{}}}{{{}}}", "{}/{}", "\\dfrac{{{}}}{{{}}}", "\\frac {{{}}} {{{}}}"))
        return f"\\frac{{{p}}}{{{q}}}", form.format(k * p, k * q), form.format(k * p + 1, k * q)
    right = draw.choice((f"\\sqrt{{{r * p * p}}}/{q}", f"\\frac{{{p}}}{{{q}}}\\sqrt{{{r}}}", f"{p}*sqrt({r})/{q}"))
    return f"\\frac{{{p}\\sqrt{{{r}}}}}{{{q}}}", right, right.replace(str(q), str(q + 1))


def _set(draw: random.Random) -> tuple[str, str, str]:
    a, b, c = draw.sample(range(100), 3)
    return f"\\{{{a}, {b}, {c}\\}}", f"\\{{{c},{a},{b}\\}}", f"\\{{{c},{a},{b + 100}\\}}"


def _interval(draw: random.Random) -> tuple[str, str, str]:
    a, b = sorted(draw.sample(range(-50, 50), 2))
    return f"({a}, {b}]", f"{a} < x \\le {b}", f"[{a}, {b}]"


def _tuple(draw: random.Random) -> tuple[str, str, str]:
    a, b = draw.randrange(100), draw.randrange(1, 100)
    return f"({a}, \\frac{{\\pi}}{{{b}}})", f"\\left({a},\\pi/{b}\\right)", f"({a + 1},\\pi/{b})"


def _equation(draw: random.Random) -> tuple[str, str, str]:
    a, b = draw.randrange(2, 50), draw.randrange(1, 100)
    return f"y = {a}x + {b}", f"{a}x - y = -{b}", f"{a}x + y = {b}"


def _matrix(draw: random.Random) -> tuple[str, str, str]:
    a, b, c, d = (draw.randrange(30) for _ in range(4))
    begin, end = "\\begin{pmatrix}", "\\end{pmatrix}"
    gold = f"{begin} {a} & {b} \\\\ {c} & {d} {end}"
    return gold, f"{begin}{a}&{b}\\\\{c}&{d}{end}", f"{begin}{a}&{b}\\\\{c}&{d + 1}{end}"


def _percent(draw: random.Random) -> tuple[str, str, str]:
    a = draw.randrange(1, 100)
    return f"{a}\\%", f"0.{a:02d}", f"0.0{a:02d}"


def _unit(draw: random.Random) -> tuple[str, str, str]:
    a, unit = draw.randrange(1, 500), draw.choice(("cm", "kg", "m^2", "hours"))
    return f"{a} \\text{{ {unit}}}", draw.choice((f"{a}", f"{a}\\,\\mathrm{{{unit}}}")), f"{a + 1} {unit}"


_STRUCTURED: tuple[Callable[[random.Random], tuple[str, str, str]], ...] = (
    _set, _interval, _tuple, _equation, _matrix, _percent, _unit,
)  # fmt: skip


def completion(answer: str, number: int) -> str:
    """A whole response that ends in a box."""
    return f"<think>\n{_PROSE * 8}{number}\n</think>\n{_PROSE * 2}\nThe answer is $\\boxed{{{answer}}}$."


def cpu_s() -> float:
    """CPU seconds of this process and of the children that have ended."""
    return sum(os.times()[:4])


def ours(some: Sequence[Row], whole: bool, **options: Any) -> float:
    """CPU seconds a row, the workers' start and end included."""
    from klearbench.judging.judge import MathJudge
    from klearbench.types import Answer, FinishReason, Sample

    stop = FinishReason.stop
    items = [
        (Sample("b", str(i), 0, 0, completion(a, i) if whole else a, 0, 0, stop), Answer(str(i), gold), not whole)
        for i, (gold, a) in enumerate(some)
    ]
    gc.collect()
    before = cpu_s()
    with MathJudge(**options) as judge:
        judge.judge_rows(items)
    return (cpu_s() - before) / len(some)


def theirs(some: Sequence[Row], whole: bool) -> float:
    """CPU seconds a row of math-verify's parse and verify."""
    from math_verify import parse, verify

    before = time.process_time()
    for i, (gold, answer) in enumerate(some):
        text = completion(answer, i).rpartition("</think>")[2] if whole else f"${answer}$"
        verify(parse(f"${gold}$"), parse(text))
    return (time.process_time() - before) / len(some)


def beside(name: str, some: Sequence[Row], whole: bool) -> str:
    """One line: both, and how many times as many checks ours makes. math-verify gets a tenth of the rows."""
    fast = min(ours(some, whole, cache=False) for _ in range(2))
    slow = theirs(some[::10], whole)
    what = "whole completions" if whole else "final answers"
    return (
        f"math judge, {name}, {what}: ours {1 / fast:,.0f} a CPU s, math-verify {1 / slow:,.0f},"
        f" ratio {slow / fast:.1f}"
    )


def repeated(some: Sequence[Row], times: int = 16) -> str:
    """One line: the cache on, and each row given 16 times, as a group of rollouts repeats its answers."""
    fast, slow = ours(list(some) * times, True), theirs(some, True)
    return f"math judge, mix, {times} times each, cache on: ours {1 / fast:,.0f} a CPU s, ratio {slow / fast:.1f}"


if __name__ == "__main__":
    main()
