"""The references of the benchmarks: each equals itself under its rule, and no other unless both are one value."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.math_golds import OTHERS, check, golds, reason
from klearbench.judging.judge import MathJudge, check_golds
from klearbench.suites.registry import load_suite
from klearbench.types import Answer
from tests.timing import assert_quick

SAMPLE = 250
"""References compared with OTHERS others each; `benchmarks/math_golds.py` takes all."""


@pytest.mark.shared
@pytest.mark.slow
def test_a_reference_equals_itself_and_no_other_value(shared: Path) -> None:
    every = golds(shared / "data")
    start = time.thread_time()
    found = check(every, SAMPLE, seed=20)
    assert time.thread_time() - start < 120  # 10 s here
    assert found.pairs > SAMPLE * (OTHERS - 1)
    assert found.unequal_to_itself == []
    assert [(g.problem_id, o.problem_id) for g, o in found.equal if not reason(g.answer, o.answer)] == []


@pytest.mark.shared
def test_the_check_at_load_is_quick(shared: Path) -> None:
    answers = [a for a in load_suite("gsm8k", shared / "data").answers.values() if isinstance(a, Answer)]
    assert len(answers) == 1_319

    def checked() -> None:
        with MathJudge() as judge:
            check_golds(answers, judge)

    assert_quick(checked, 10)
