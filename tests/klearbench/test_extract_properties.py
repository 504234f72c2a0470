"""Extraction as laws: what may stand around one commitment, what never changes it, and what it costs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from klearbench.judging import extract as module
from klearbench.judging.choice import same_value
from klearbench.judging.extract import extract
from tests.timing import assert_linear

VALUES = st.one_of(
    st.integers(-999_999, 999_999).map(str),
    st.builds(r"\frac{{{}}}{{{}}}".format, st.integers(1, 99), st.integers(2, 99)),
    st.builds(r"{}\sqrt{{{}}}".format, st.integers(2, 9), st.integers(2, 99)),
    st.builds("({}, {})".format, st.integers(-9, 9), st.integers(-9, 9)),
    st.builds(r"\{{{}, {}\}}".format, st.integers(-9, 9), st.integers(10, 99)),
)
BOXED = st.sampled_from(
    (
        *("<box>", "The answer is $<box>$.", "**Final Answer**\n\\[ <box> \\]", "### Answer\n\n$$\n<box>\n$$\n"),
        *(
            "So \\(<box>\\)",
            "因此，答案是 $<box>$。",
            "정답은 <box>입니다.",
            "La réponse finale est $<box>$.",
            "> - **<box>**",
        ),
        *(
            "<answer><box></answer>",
            "| Result | $<box>$ |",
            "{\\large <box>}",
            "<box>\n\nI hope it is correct.",
            "<box> ✅",
        ),
        *(
            "Put it in \\boxed{}.\n\nThe sum is <box>",
            "```\nprint(1)\n```\nThus <box>",
            "<box>\n\nCheck: $5 + 7 = 12$.",
        ),
    )
)
UNBOXED = st.sampled_from(
    (
        *(
            "Answer: <x>",
            "A: <x>\n",
            "**Final Answer:** $<x>$",
            "## Final Answer\n\n$<x>$",
            "#### <x>",
            "<answer><x></answer>",
        ),
        *(
            "The final answer is $<x>$.",
            "The answer is $<x>$. I hope it is correct.",
            "答案：<x>",
            "答えは$<x>$です。",
            "Ответ: <x>",
        ),
        *(
            "Réponse : <x>",
            "Antwort: $<x>$",
            "La respuesta es $<x>$.",
            "정답: <x>",
            "__Answer__: <x>",
            "Answer:\n\n\\[\n<x>\n\\]",
        ),
    )
)
THINKING = st.sampled_from(
    (
        *("<think>{}</think>", "<Thinking>\n{}\n</Thinking>\n", "[THINK]{}[/THINK]", "◁think▷{}◁/think▷", "{}</think>"),
        *("<reasoning>{}</reasoning>", "<|begin_of_thought|>{}<|end_of_thought|>", "<seed:think>{}</seed:think>"),
        "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
        "<think>\nUser: hello\n{}\n</think>",
    )
)
TURN_ENDS = st.sampled_from(
    (
        "<|im_end|>",
        "<|eot_id|>",
        "</s>",
        "<end_of_turn>",
        "<|endoftext|>",
        "<｜end▁of▁sentence｜>",
        "\n\nUser: sure?\n\nA: ",
    )
)
INVISIBLE = st.sampled_from(("\u200b", "\u2060", "\ufeff", "\u200f", "\u00ad", "\x00", "\x1b[1m", "\udc80"))
FEW = settings(max_examples=60, deadline=None)


def _boxed(frame: str, value: str) -> str:
    return frame.replace("<box>", f"\\boxed{{{value}}}")


def _text(completion: str) -> str | None:
    found = extract(completion)
    return found.text if found.kind == "answer" else None


@FEW
@given(UNBOXED, VALUES)
def test_one_commitment_in_any_wrapper_is_found(frame: str, value: str) -> None:
    assert _text(frame.replace("<x>", value)) == value


@FEW
@given(BOXED, VALUES)
def test_a_box_in_any_wrapper_holds_its_value(frame: str, value: str) -> None:
    assert _text(_boxed(frame, value)) == value


@FEW
@given(THINKING, BOXED, VALUES, VALUES)
def test_boxes_in_the_thinking_change_nothing(thinking: str, frame: str, value: str, other: str) -> None:
    answer = _boxed(frame, value)
    assert extract(thinking.replace("{}", f"maybe \\boxed{{{other}}}") + answer) == extract(answer)


@FEW
@given(TURN_ENDS, BOXED, VALUES, VALUES)
def test_text_after_the_end_of_the_turn_changes_nothing(end: str, frame: str, value: str, other: str) -> None:
    assert _text(f"{_boxed(frame, value)}{end}Wait, it is \\boxed{{{other}}}") == value


@FEW
@given(st.sampled_from(("<think>", "[THINK]", "◁think▷", "<seed:think>", "<|begin_of_thought|>")), BOXED, VALUES)
def test_thinking_that_is_not_closed_is_truncated(opening: str, frame: str, value: str) -> None:
    assert extract(opening + _boxed(frame, value)).kind == "truncated"


@FEW
@given(VALUES, VALUES, st.data())
def test_a_cut_in_the_last_box_is_truncated(first: str, value: str, data: st.DataObject) -> None:
    text = f"So \\boxed{{{first}}}. Thus the answer is \\boxed{{{value}}}"
    start = text.rindex("\\boxed")
    cut = data.draw(st.integers(start + 2, len(text) - 1))
    assert extract(text[:cut]).kind == "truncated"


@FEW
@given(VALUES, VALUES, st.sampled_from((" ", "\n\n", " or ", ". ", ". The answer is ", ". Alternatively, ", " (b) ")))
def test_two_values_without_a_correction_earn_nothing(one: str, other: str, between: str) -> None:
    assume(not same_value(one, other))
    assert extract(f"The answer is \\boxed{{{one}}}{between}\\boxed{{{other}}}").kind == "hedge"


@FEW
@given(UNBOXED, UNBOXED, VALUES, VALUES)
def test_two_commitments_without_a_correction_earn_nothing(first: str, last: str, one: str, other: str) -> None:
    assume(not same_value(one, other))
    completion = f"{first.replace('<x>', one)}\n\n{last.replace('<x>', other)}"
    assert extract(completion).kind in ("hedge", "no_answer")


@FEW
@given(st.one_of(BOXED, UNBOXED), VALUES, INVISIBLE, st.data())
def test_invisible_characters_change_nothing(frame: str, value: str, mark: str, data: st.DataObject) -> None:
    completion = f"<think>\\boxed{{1}}</think>{_boxed(frame.replace('<x>', value), value)}"
    at = data.draw(st.integers(0, len(completion)))
    assert extract(completion[:at] + mark + completion[at:]) == extract(completion)


PIECES = st.sampled_from(
    (
        *(
            "\\boxed{",
            "}",
            "{",
            "5",
            "12",
            "\\boxed{7}",
            "\\\\boxed{7}",
            " or ",
            "not ",
            "Wait, ",
            "</think>",
            "<think>",
        ),
        *(
            "Answer: ",
            "\n",
            "#### ",
            "<answer>",
            "</answer>",
            "the answer is ",
            ".",
            "?",
            "$",
            "`",
            "```",
            "<|im_end|>",
            "[",
        ),
        *(
            "either ",
            "format ",
            "\nQ: ",
            "\x00",
            "\ud800",
            "答案是",
            "Final answer",
            " is wrong",
            "so ",
            "=",
            "&lt;",
            "１",
        ),
    )
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=16), st.sampled_from(("", "\\boxed{5}", "$\\boxed{5}$.")))
def test_any_text_is_read_and_the_quick_way_agrees(pieces: list[str], end: str) -> None:
    completion = "".join(pieces) + end
    found = extract(completion)
    assert found.kind in ("answer", "no_answer", "truncated", "hedge")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_quick", lambda _: None)
        assert extract(completion) == found


@FEW
@given(st.text(max_size=60), st.text(max_size=60))
def test_arbitrary_text_never_raises(before: str, after: str) -> None:
    extract(f"{before}\\boxed{{{after}}}")


HOSTILE = (
    *(
        "\\boxed{",
        "\\boxed{1}",
        "\\boxed{1} wait ",
        "the answer is ",
        "the answer is 1. ",
        "<think>",
        "</think>",
        "Answer:",
    ),
    *(
        "Answer: 1\n",
        "####",
        "#### 1\n",
        " ",
        "\n",
        "[",
        "wait ",
        "\\",
        "{",
        "}",
        "```\n",
        "```",
        "\nQ:",
        "\nUser:",
    ),
    *(
        "<answer>",
        "<answer>1",
        "<|channel|>",
        "<|im_start|>",
        "&lt;",
        "`",
        "1. ",
        "1=",
        "\\frac{",
        "\\boxed 1 ",
        "not ",
    ),
    *(
        "your ",
        "not \\boxed{1} ",
        "\\boxed{1} is wrong. ",
        "答案是",
        "１",
        "\u200b",
        "<think ",
        "is ",
        "either 1 or ",
    ),
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_costs_linear_time(piece: str) -> None:
    """A quadratic step would need minutes for this length."""

    def reading(length: int) -> Callable[[], object]:
        text = piece * (length // len(piece))
        texts = (text, text + "\\boxed{", f"\\boxed{{1}}{text}\\boxed{{2}}", f"The answer is {text}\nA: 3")
        return lambda: [extract(completion) for completion in texts]

    assert_linear(reading, 200_000)
