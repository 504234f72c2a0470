"""Extraction: what a completion commits to, by the policy in the docstring of extract.py."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klearbench.judging.extract import extract


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


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "\\boxed{",
            "}",
            "{",
            "<think>",
            "</think>",
            "answer is ",
            "Answer: ",
            "*",
            "$",
            "#### ",
            "\\boxed{1} ",
            "```\n",
        ),
        *("<answer>", "\n", " ", "\\", "<", "[", "1,", "or ", "A:", "-", "the answer is 1. ", "\\boxed{1}, ", "答案"),
        *("Final answer", "<|im_start|>"),
    ],
)
def test_a_megabyte_of_anything_is_read_in_linear_time(piece: str) -> None:
    """A quadratic reader would take 16 times as long for 4 times the text, and minutes for a megabyte."""

    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        start = time.process_time()
        extract(text)
        extract(text + "\\boxed{")
        extract("\\boxed{1}" + text)
        return time.process_time() - start

    assert seconds(1_000_000) < 8 * seconds(250_000) + 1


@given(st.text(alphabet=list("\\boxed{}<>/thinkansweris 12.:#*\n\ud800\x00"), max_size=200))
def test_any_text_gives_one_of_four_kinds(text: str) -> None:
    assert extract(text).kind in ("answer", "no_answer", "truncated", "hedge")
