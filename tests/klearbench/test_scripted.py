"""The scripted teacher: its error rates, its marks, its seeds."""

from __future__ import annotations

import re

import pytest

from klearbench.engines.base import Request, Sampling, sample_seed
from klearbench.engines.scripted import DEFAULT_ERRORS, ScriptedEngine
from klearbench.errors import ConfigError, UsageError
from klearbench.suites import puzzles
from klearbench.types import FinishReason

SAMPLING = Sampling(1.0, 1.0, 0, 1000)
WORK = {"max": max, "min": min, "+": lambda a, b: a + b, "-": lambda a, b: a - b}


def ask(questions, engine=None, sampling=SAMPLING, seed=0):
    requests = [
        Request(({"role": "user", "content": q},), sample_seed(seed, q, i), (q, i)) for i, q in enumerate(questions)
    ]
    return (engine or ScriptedEngine()).generate(requests, sampling)


def questions(kind: str, count: int) -> list[str]:
    return [p.prompt[-1]["content"] for p in puzzles.load(kind, "train", count, 3).problems]


def worked(text: str) -> list[tuple[int, str, int, str, int]]:
    """(left, operator, right, mark, value) of each step of a trace."""
    body = re.fullmatch(r"<think> (.*) </think> \\boxed\{ (-?\d+) \}", text).group(1)
    steps = [re.fullmatch(r"(-?\d+) (max|min|\+|-) (-?\d+) ([=~]) (-?\d+)", s).groups() for s in body.split(" ; ")]
    return [(int(a), op, int(b), mark, int(v)) for a, op, b, mark, v in steps]


@pytest.mark.parametrize("kind", ["chains", "sums"])
def test_error_rates_are_the_set_ones(kind):
    rates = {"max": 0.2, "min": 0.6, "+": 0.35, "-": 0.05}
    steps = [s for g in ask(questions(kind, 3000), ScriptedEngine(errors=rates)) for s in worked(g.completion)]
    for op in ("max", "min") if kind == "chains" else ("+", "-"):
        marks = [mark for _, o, _, mark, _ in steps if o == op]
        share, spread = marks.count("~") / len(marks), (rates[op] * (1 - rates[op]) / len(marks)) ** 0.5
        assert len(marks) > 4000
        assert abs(share - rates[op]) < 4 * spread, (op, share)


@pytest.mark.parametrize("kind", ["chains", "sums"])
def test_marks_tell_the_truth(kind):
    """A step marked = is right, one marked ~ wrong, unless both numbers of a max or min are equal."""
    asked = questions(kind, 2000)
    for question, generation in zip(asked, ask(asked), strict=True):
        value = None
        words = question.removesuffix(" = ?").split()
        for (left, op, right, mark, result), *expected in zip(
            worked(generation.completion), words[1::2], words[2::2], strict=True
        ):
            assert [op, str(right)] == expected
            assert left == (int(words[0]) if value is None else value), "a step goes on from the one before"
            if mark == "=":
                assert result == WORK[op](left, right)
            elif op in ("max", "min"):
                assert result in (left, right)
                assert (result != WORK[op](left, right)) == (left != right)
            else:
                assert result == WORK[op](left, right) + 1
            value = result
        assert generation.completion.endswith(f"\\boxed{{ {value} }}")
        assert generation.finish_reason is FinishReason.stop


def test_sorting_is_right_when_it_is_worked():
    asked = questions("sorting", 500)
    guessed = 0
    for question, generation in zip(asked, ask(asked), strict=True):
        mark, given = re.fullmatch(r"<think> ([=~]) [\d ]+ </think> \\boxed\{ (\d+) \}", generation.completion).groups()
        guessed += mark == "~"
        if mark == "=":
            assert int(given) == puzzles.solve(question)
    assert 150 < guessed < 250  # 200 expected at a rate of 0.4, standard deviation 11


def test_a_teacher_without_errors_is_always_right_and_one_that_only_guesses_never_works():
    asked = questions("chains", 200)
    for question, g in zip(asked, ask(asked, ScriptedEngine(errors={"max": 0, "min": 0})), strict=True):
        assert g.completion.endswith(f"\\boxed{{ {puzzles.solve(question)} }}") and "~" not in g.completion
    for g in ask(asked, ScriptedEngine(errors={"max": 1, "min": 1})):
        assert " = " not in g.completion


def test_a_trace_by_hand():
    engine = ScriptedEngine(errors={"max": 0, "min": 1})
    assert ask(["7 max 3 min 4 min 9 = ?"], engine)[0].completion == (
        "<think> 7 max 3 = 7 ; 7 min 4 ~ 7 ; 7 min 9 ~ 9 </think> \\boxed{ 9 }"
    )


def test_the_same_seed_gives_the_same_trace_whatever_is_beside_it():
    asked = questions("chains", 50)
    assert ask(asked) == [g for i, q in enumerate(asked) for g in [ask(asked)[i]]]
    engine = ScriptedEngine()
    alone = [
        engine.generate([Request(({"role": "user", "content": q},), sample_seed(0, q, i), ("", 0))], SAMPLING)[0]
        for i, q in enumerate(asked)
    ]
    assert alone == ask(asked)
    assert ask(asked, seed=1) != ask(asked)


def test_a_limit_cuts_the_trace_and_says_so():
    question = ["7 max 3 min 4 min 9 = ?"]
    whole = ask(question)[0]
    cut = ask(question, sampling=Sampling(1.0, 1.0, 0, 9))[0]
    assert cut.finish_reason is FinishReason.length and cut.completion_tokens == 9
    assert whole.completion.startswith(cut.completion + " ") and len(cut.completion.split()) == 9
    exact = ask(question, sampling=Sampling(1.0, 1.0, 0, whole.completion_tokens))[0]
    assert exact == whole


@pytest.mark.parametrize("prompt", ["What is the capital of France?", "", "7 max", "sort ; take 2 = ?", "1 max x = ?"])
def test_what_is_no_puzzle_is_refused_in_one_line(prompt):
    with pytest.raises(UsageError) as caught:
        ask([prompt])
    assert "can only work puzzles out" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("errors", [{"mul": 0.1}, {"min": 1.5}, {"min": -0.1}, {"min": "often"}])
def test_rates_that_are_none_are_refused(errors):
    with pytest.raises(ConfigError, match=r"errors\."):
        ScriptedEngine(errors=errors)


def test_the_rates_are_part_of_the_identity():
    assert ScriptedEngine(errors={"min": 0.5}).identity()["errors"] == DEFAULT_ERRORS | {"min": 0.5}
