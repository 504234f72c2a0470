"""Extraction: what a completion commits to, by the policy in the docstring of extract.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klearbench.judging.extract import extract
from tests.timing import assert_quick


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("<think>\nsum is 40\n</think>\nThe total is \\boxed{41}.", "41"),
        ("work without tags, so $\\boxed{\\frac{2}{7}}$", "\\frac{2}{7}"),
        ("\\boxed {6}", "6"),
        ("\\fbox{6}", "6"),
        ("\\boxed{\\boxed{6}}", "\\boxed{6}"),
        ("\\boxed{\\{1, 3\\}}", "\\{1, 3\\}"),
        ("\\boxed 6", "6"),
        ("<Thinking>a</Thinking>\\boxed{6}", "6"),
        ("[THINK]\\boxed{5}[/THINK]\\boxed{6}", "6"),
        ("◁think▷\\boxed{5}◁/think▷\\boxed{6}", "6"),
        ("<|channel|>analysis<|message|>\\boxed{5}<|end|><|start|>assistant<|channel|>final<|message|>\\boxed{6}", "6"),
        ("\\boxed{6}<|im_end|>\n<|im_start|>user\nmore?<|im_end|>\n<|im_start|>assistant\n\\boxed{7}", "6"),
        ("<|im_start|>user\nsay \\boxed{1}<|im_end|>\n<|im_start|>assistant\n\\boxed{6}", "6"),
        ("some steps\nA: 18", "18"),
        ("some steps\nA: -200", "-200"),
        ("some steps\n**Final Answer:** $\\frac{1}{2}$", "\\frac{1}{2}"),
        ("## Final Answer\n\n73", "73"),
        ("steps\n#### 1,234", "1,234"),
        ("<answer> 9 </answer>", "9"),
        ("We add. Therefore the final answer is 9. I hope it is correct.", "9"),
        ("答案：12", "12"),
        ("所以答案是12。", "12"),
        ("Ответ: 12", "12"),
        ("```\n\\boxed{5}\n```\nThus \\boxed{6}", "6"),
        ("Write your answer in \\boxed{5} style. The sum gives \\boxed{6}", "6"),
        ("So \\boxed{3}. Wait, I made a mistake. It is \\boxed{4}", "4"),
        ("First \\boxed{3}, so then the next step gives \\boxed{4}", "4"),
        ("\\boxed{6} and again \\boxed{6.0}", "6.0"),
    ],
)
def test_an_answer_is_found(completion: str, text: str) -> None:
    found = extract(completion)
    assert (found.kind, found.text) == ("answer", text)


@pytest.mark.parametrize(
    ("completion", "kind"),
    [
        ("", "no_answer"),
        ("I tried 12 and 13 and then 14.", "no_answer"),
        ("I could not find the answer.", "no_answer"),
        ("The answer is not 12.", "no_answer"),
        ("Put it within \\boxed{}.", "no_answer"),
        ("\\boxed{?}", "no_answer"),
        ("\\boxed{\\text{your answer}}", "no_answer"),
        ("```\nprint('\\boxed{5}')\n```", "no_answer"),
        ("<think>it is \\boxed{5}</think>", "no_answer"),
        ("<think>it is \\boxed{5}", "truncated"),
        ("it is \\boxed{5}\n</thi", "truncated"),
        ("<|channel|>analysis<|message|>it is \\boxed{5}", "truncated"),
        ("so \\boxed{\\frac{1}{2}", "truncated"),
        ("so $\\box", "truncated"),
        ("\\boxed{3} or \\boxed{4}", "hedge"),
        ("\\boxed{3} \\boxed{4}", "hedge"),
        ("Final answer: 3 or 4", "hedge"),
        ("The answer is either 3 or 4.", "hedge"),
    ],
)
def test_other_outcomes(completion: str, kind: str) -> None:
    found = extract(completion)
    assert found.kind == kind
    assert found.text is None or kind == "hedge"


def test_an_unboxed_answer_at_the_very_end_may_be_incomplete() -> None:
    assert not extract("A: 1").complete
    assert extract("A: 18\n").complete
    assert extract("so \\boxed{18}").complete


@given(st.text(alphabet=list("\\boxed{}<>/thinkansweris 12.:#*\n\ud800\x00"), max_size=200))
def test_any_text_gives_one_of_four_kinds(text: str) -> None:
    assert extract(text).kind in ("answer", "no_answer", "truncated", "hedge")


KEPT_FIRST = (
    *(
        "The answer is \\boxed{3} rather than \\boxed{5}",
        "\\boxed{3} instead of \\boxed{5}",
        "\\boxed{3}, not \\boxed{5}",
    ),
    *("\\boxed{3} so it's not \\boxed{5}", "\\boxed{3}; it can't be \\boxed{5}", "\\boxed{3} \\neq \\boxed{5}"),
    *(
        "The answer is \\boxed{3}. \\boxed{5} is wrong.",
        "\\boxed{3}, since \\boxed{5} fails.",
        "\\boxed{3}，而不是\\boxed{5}",
    ),
)
HEDGES = (
    *(
        "\\boxed{3}, but \\boxed{5} is possible",
        "\\boxed{3}, however some would say \\boxed{5}",
        "\\boxed{3} but \\boxed{5}",
    ),
    *("\\boxed{3}. If n is even then \\boxed{5}", "\\boxed{3}. Then \\boxed{5}", "\\boxed{3}. Therefore \\boxed{5}"),
    *("The answer is \\boxed{3}.\n\nThe answer is \\boxed{5}.", "\\boxed{3}. Wait, \\boxed{5} is also possible."),
    *("The final answer is \\boxed{3}. The final answer is \\boxed{5}.", "\\boxed{3}, so maybe \\boxed{5}"),
    *(
        "$x=\\boxed{3}$, then $y=4$ or $\\boxed{5}$",
        "\\boxed{3}" + " \\boxed{5}" * 300,
        "Case 1: \\boxed{3}\nCase 2: \\boxed{5}",
    ),
    *("The answer is 3.\nThe answer is 5.", "Answer: 3\nAnswer: 5", "The answer is 3 or 5."),
)
REPLACED = (
    *("$x=\\boxed{3}$. Next, $y=\\boxed{4}$. So the sum is \\boxed{5}.", "The answer is 5, not 3."),
    *(
        "So \\boxed{3}. Wait, I made a mistake: \\boxed{5}",
        "\\boxed{3}. Actually, it is \\boxed{5}",
        "\\boxed{3} is wrong. \\boxed{5}",
    ),
    *("\\boxed{3} is incorrect; the answer is \\boxed{5}.", "The sum is \\boxed{3}. The final answer is \\boxed{5}."),
    *(
        "\\boxed{3}, so $m+n=2+3=\\boxed{5}$",
        "First \\boxed{3}. Next, doubling gives \\boxed{5}",
        "not \\boxed{3} but \\boxed{5}",
    ),
    *(
        "\\boxed{3}. Hmm, that can't be right. Recomputing: \\boxed{5}",
        "\\boxed{3}, but that is wrong. The answer is 5.",
    ),
    *("The answer is not \\boxed{3}. The answer is 5.", "The answer is 3. Wait, I made an error. The answer is 5."),
)
WITHDRAWN = (
    *(
        "\\boxed{5} is wrong.",
        "\\boxed{5}. Wait, that's wrong. I need to recompute.",
        "\\boxed{5}. Hmm, that can't be right.",
    ),
    *(
        "The answer is not \\boxed{5}.",
        "It can't be \\boxed{5}.",
        "It isn’t \\boxed{5}",
        "$\\boxed{5}$ is an example format.",
    ),
    *(
        "\\boxed{5} (wrong)",
        "\\boxed{5}, which is incorrect.",
        "\\boxed{5}. But this is not the answer.",
        "\\boxed{5}? No wait.",
    ),
    *(
        "$$\\boxed{5}$$\n\nWait, this is wrong.",
        "\\boxed{5} cannot be right.",
        "\\boxed{5}, then \\boxed{5}. Wait, that's wrong.",
    ),
    *("The answer isn't 5.", "The answer is 5. Wait, that's wrong.", "The answer is probably 5."),
)
STANDS = (
    *(
        "\\boxed{5}. I checked that nothing else works.",
        "\\boxed{5}. This is not a coincidence.",
        "\\boxed{5} is correct.",
    ),
    *(
        "\\boxed{5}. Any other value is wrong.",
        "We can't do better, so \\boxed{5}",
        "Not obvious, but \\boxed{5}",
        "\\boxed{5}, not 6",
    ),
    *("It's not hard to see that the answer is \\boxed{5}.", "I was wrong before. \\boxed{5}", "\\boxed{5} " * 300),
    *(
        "The answer is 5, since 2+3=5.",
        "The answer is 5.\n\nLet me double check: 2+3=5. Yes.",
        "答えは5です。",
        "__Answer__: 5",
    ),
    *("The answer is 5.\nSo the answer is 5.", "The answer is 5 because 2 + 3 = 5.", "Answer: 5\nAnswer: 5"),
)


@pytest.mark.parametrize(
    ("completion", "kind", "text"),
    [
        *((c, "hedge", None) for c in HEDGES),
        *((c, "no_answer", None) for c in WITHDRAWN),
        *((c, "answer", "3") for c in KEPT_FIRST),
        *((c, "answer", "5") for c in (*REPLACED, *STANDS)),
    ],
)
def test_withdrawn_denied_and_replaced_answers(completion: str, kind: str, text: str | None) -> None:
    found = extract(completion)
    assert found.kind == kind
    assert kind == "hedge" or found.text == text


@pytest.mark.parametrize(
    ("completion", "complete"),
    [
        ("The answer is $12$", True),
        ("The answer is \\(12\\)", True),
        ("The answer is $12", False),
        ("The answer is 12", False),
        ("The answer is 12.", True),
    ],
)
def test_a_closing_mark_completes_an_answer(completion: str, complete: bool) -> None:
    assert extract(completion).complete is complete


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("$x=\\boxed{5}$. Thus \\boxed{x=5}", "x=5"),
        ("\\boxed{5\\text{ cm}}\n\n\\boxed{5}", "5"),
        ("\\boxed{\\sqrt{8}} = \\boxed{2\\sqrt{2}}", "\\sqrt{8} = 2\\sqrt{2}"),
        ("I write it as `\\boxed{7}`. It is \\boxed{5}", "5"),
        ("````\n```\n\\boxed{7}\n```\n````\n\\boxed{5}", "5"),
        ("- ```\n  \\boxed{7}\n  ```\n- \\boxed{5}", "5"),
        ('{"answer": "\\\\boxed{\\\\frac{1}{2}}"}', "\\frac{1}{2}"),
        ("<think>\nUser: hm\n</think>\\boxed{5}", "5"),
        ("No `<think>` here. \\boxed{5}", "5"),
        ("analysisIt is \\boxed{3}.assistantfinal\\boxed{5}", "5"),
        ("\\boxed{3}. I miscounted; so \\boxed{5}", "5"),
        ("\\boxed{5}</s", "5"),
        ("＼boxed｛5｝", "5"),
        ("#### 5\n\nThat is all.", "5"),
        ("<answer>We add.\nThe answer is 5.</answer>", "5"),
        ("The final answer is:\n\n**5**", "5"),
        ("Answer: 5\nConfidence: 90%", "5"),
        ("Answer: 5 (since 2+3=5) ", "5"),
        ("La respuesta es 5.", "5"),
    ],
)
def test_more_ways_to_state_one_answer(completion: str, text: str) -> None:
    found = extract(completion)
    assert (found.kind, found.text) == ("answer", text)


@pytest.mark.parametrize(
    ("completion", "kind"),
    [
        ("\\boxed{5} or 6.", "hedge"),
        ("either 6 or \\boxed{5}", "hedge"),
        ("First approach gives \\boxed{6}. Second approach gives \\boxed{5}.", "hedge"),
        ("Final: \\boxed{6}. Final: \\boxed{5}.", "hedge"),
        ("\\\\boxed{6} and \\\\boxed{5} or 7.", "hedge"),
        ("<answer>6</answer> <answer>5</answer>", "hedge"),
        ("#### 6\n#### 5", "hedge"),
        ("Answer: 6\n\nThe answer is 5.", "hedge"),
        ("\\boxed{5\\text{ cm}} \\boxed{5\\text{ m}}", "hedge"),
        ("\\boxed{x=5} \\boxed{y=5}", "hedge"),
        ("<answer>5</answer> is wrong.", "no_answer"),
        ("Maybe the answer is 5.", "no_answer"),
        ("The answer is 5?", "no_answer"),
        ("The answer is found on line 5.", "no_answer"),
        ("The answer is the number of edges, which is 5.", "no_answer"),
        ("Answer: I don't know", "no_answer"),
        ("#### Step 4: add 5", "no_answer"),
        ("<|im_end|>\\boxed{5}", "no_answer"),
        ("\\boxed{\\phantom{5}}", "no_answer"),
        ("\\boxed{insert your final answer here}", "no_answer"),
        ("so \\boxed{\\boxed{5}", "truncated"),
        ("<think lang='en'>\\boxed{5}", "truncated"),
        ("<|START_THINKING|>\\boxed{5}", "truncated"),
    ],
)
def test_more_ways_to_state_none(completion: str, kind: str) -> None:
    assert extract(completion).kind == kind


def test_a_megabyte_of_boxes_takes_little_time() -> None:
    text = "\\boxed{1} " * 100_000
    assert extract(text).text == "1"
    hedged = "\\boxed{2} " + text
    assert extract(hedged).kind == "hedge"
    assert_quick(lambda: (extract(text), extract(hedged)), 5)
