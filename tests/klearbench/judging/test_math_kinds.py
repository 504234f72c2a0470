"""Every kind of answer by property: a reference, rewritten or broken by construction, is judged as it was built."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds_forms import FORM_KINDS
from kinds_values import VALUE_KINDS, Row

from klearbench.judging.equality import equal
from klearbench.judging.math import RULES

KINDS = VALUE_KINDS | FORM_KINDS
WRAPPERS = ("{}", "${}$", r"\({}\)", r"\[{}\]", "{}.", r"\boxed{{{}}}", "**{}**", " {} ", r"\displaystyle {}", "$${}$$")


def judged(gold: str, answer: str) -> bool:
    """The verdict as the judge comes to it: the exact layer first, then the comparison by kind."""
    quick = RULES["expression"](gold, answer)
    return equal(gold, answer) if quick is None else bool(quick.equal)


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=60)
@given(data=st.data())
def test_an_answer_is_judged_as_it_was_built(kind: str, data: st.DataObject) -> None:
    gold, answer, right = data.draw(KINDS[kind])
    assert judged(gold, answer) is right, (gold, answer)


@settings(max_examples=200)
@given(
    row=st.one_of(*(s for kind, s in KINDS.items() if kind not in ("code", "text"))), wrapper=st.sampled_from(WRAPPERS)
)
def test_wrappers_change_nothing(row: Row, wrapper: str) -> None:
    gold, answer, right = row
    if not ("$" in answer or answer.endswith(".")):
        assert judged(gold, wrapper.format(answer)) is right, (gold, answer)


@settings(max_examples=150)
@given(row=st.one_of(*(s for kind, s in KINDS.items() if kind != "option")), other=st.integers(1001, 1100))
def test_a_second_value_is_a_hedge(row: Row, other: int) -> None:
    gold, answer, _ = row
    for hedge in (rf"{answer} \text{{ or }} {other}", rf"{answer} \text{{ or maybe }} {other}"):
        assert judged(gold, hedge) is False, (gold, hedge)
