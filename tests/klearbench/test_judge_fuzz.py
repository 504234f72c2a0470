"""Token soup never breaks the judge and never earns credit, whatever kind of reference it is held against."""

from __future__ import annotations

import random

from klearbench.judging.judge import MathJudge
from klearbench.types import Answer, FinishReason, Sample, Status

TOKENS = (
    *(
        r"\frac",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "1",
        "2",
        "x",
        "y",
        "+",
        "-",
        "*",
        "^",
        "_",
        r"\sqrt",
        "=",
        ",",
        "<",
        ">",
    ),
    *(r"\le", r"\cup", r"\pi", r"\infty", "!", "|", r"\text", r"\begin{pmatrix}", r"\end{pmatrix}", "&", "\\\\", "%"),
    *(
        r"\%",
        r"^\circ",
        "0.5",
        "1/2",
        r"\log",
        r"\sin",
        "i",
        "e",
        r"\cdot",
        r"\times",
        ":",
        "a",
        "or",
        "and",
        r"\binom",
    ),
    *(
        r"\sum",
        r"\int",
        r"\lim",
        "'",
        '"',
        "#",
        "$",
        "~",
        "0",
        "999999",
        r"\left",
        r"\right",
        r"\{",
        r"\}",
        "cm",
        "min",
    ),
    *(
        "max",
        r"\pm",
        "mod",
        "10^",
        "1e400",
        r"\in",
        r"\emptyset",
        "none",
        r"\mathbb{R}",
        "_2",
        "\0",
        "\ud800",
        "√",
        "²",
    ),
)
GOLDS = (
    *("8017", r"\frac{13}{7}", "(11,12)", r"\{11,12\}", r"(-\infty, 31)", "x^3+11", "x=31", r"x \in [-12,17]"),
    *(r"\begin{pmatrix}11\\12\end{pmatrix}", r"53\%", r"77\text{ cm}", "1011_2", "3:45", r"\sqrt{17}"),
    r"2^{25} \cdot 26!",
)


def test_token_soup_is_judged_and_earns_nothing() -> None:
    rng = random.Random(7)
    items = []
    for i in range(600):
        glue = rng.choice((" ", ""))
        text = glue.join(rng.choice(TOKENS) for _ in range(rng.randrange(1, 14)))
        sample = Sample("fuzz", str(i), 0, 0, "\\boxed{" + text + "}", 0, 0, FinishReason.stop)
        items.append((sample, Answer(str(i), rng.choice(GOLDS), "expression")))
    with MathJudge() as judge:
        verdicts = judge.judge(items)
    bad = [
        (sample.completion, answer.answer, verdict.status, verdict.detail)
        for (sample, answer), verdict in zip(items, verdicts, strict=True)
        if verdict.status not in (Status.wrong_answer, Status.no_answer, Status.truncated) or verdict.score != 0
    ]
    assert not bad
