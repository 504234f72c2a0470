"""The code puzzles: right tests, mistakes that pass some of them, programs that the teacher writes."""

from __future__ import annotations

import itertools
import re

import pytest

from klearbench.engines.base import Request, Sampling, sample_seed
from klearbench.engines.scripted import ScriptedEngine
from klearbench.errors import UsageError
from klearbench.suites import puzzles, puzzles_code
from klearbench.suites.registry import load_suite
from klearbench.types import CodeTests, Kind

BY_HAND = {
    "f(a, b): larger b, plus 3, smaller 7 = ?": {(0, 0): 3, (9, 1): 7, (1, 2): 5, (-4, -2): 1},
    "f(a, b): smaller 2, smaller b, plus b = ?": {(5, 1): 2, (5, 9): 11, (-3, -4): -8},
}
SIGNS = {"larger": ">", "smaller": "<"}


def text(problem) -> str:
    return problem.prompt[-1]["content"]


def another_way(question: str, a: int, b: int, wrong: tuple[bool, ...] = (False,) * 3) -> int:
    """Works a puzzle out by comparing, without the suite's code; `wrong` says which steps compare the other way."""
    for (word, operand), swapped in zip(re.findall(r"(larger|smaller|plus) (b|\d)", question), wrong, strict=True):
        other = b if operand == "b" else int(operand)
        if word == "plus":
            a += other
        elif (other > a) == ((word == "larger") != swapped):
            a = other
    return a


@pytest.mark.parametrize("question", BY_HAND)
def test_two_puzzles_by_hand(question):
    for (a, b), value in BY_HAND[question].items():
        assert puzzles_code.work(puzzles_code.parse(question), a, b) == another_way(question, a, b) == value


def test_the_held_out_suite_has_200_functions_with_eight_tests_each():
    suite = load_suite("puzzles-code")
    assert suite.name == "puzzles-code" and suite.has_code
    assert len({text(p) for p in suite.problems}) == len({p.id for p in suite.problems}) == 200
    assert {p.kind for p in suite.problems} == {Kind.code}
    for problem in suite.problems:
        tests = suite.answers[problem.id]
        assert isinstance(tests, CodeTests)
        assert (tests.inputs.mode, tests.inputs.fn_name, tests.inputs.problem_id) == ("functional", "f", problem.id)
        assert len(set(tests.inputs.inputs)) == len(tests.expected.outputs) == 8
        for given, expected in zip(tests.inputs.inputs, tests.expected.outputs, strict=True):
            a, b = map(int, given.split("\n"))
            assert another_way(text(problem), a, b) == int(expected)


def test_every_mistake_passes_some_tests_and_fails_others():
    suite = puzzles.load("code", "train", 300, seed=2)
    mistakes = 0
    for problem in suite.problems:
        words = re.findall(r"(larger|smaller|plus) ", text(problem))
        tests = suite.answers[problem.id]
        for wrong in itertools.product(*[(False, True) if word in SIGNS else (False,) for word in words]):
            passed = sum(
                another_way(text(problem), *map(int, given.split("\n")), wrong) == int(expected)
                for given, expected in zip(tests.inputs.inputs, tests.expected.outputs, strict=True)
            )
            assert passed == 8 if not any(wrong) else 0 < passed < 8, (text(problem), wrong)
            mistakes += any(wrong)
    assert mistakes > 900


def test_parts_are_disjoint_and_the_same_seed_gives_the_same_tests():
    train, test = puzzles.load("code", "train", 400, 1), puzzles.load("code", "test", 100, 2)
    assert {text(p) for p in train.problems}.isdisjoint(text(p) for p in test.problems)
    puzzles_code._pairs.cache_clear()
    again = puzzles.load("code", "train", 400, 1)
    assert again.answers == train.answers and again.content_hash == train.content_hash
    assert puzzles.load("code", "train", 400, 3).content_hash != train.content_hash


@pytest.mark.parametrize("question", ["f(a, b): = ?", "f(a, b): bigger 3 = ?", "f(a, b): larger c = ?"])
def test_what_is_no_puzzle_is_refused(question):
    with pytest.raises(UsageError, match="can only work puzzles out"):
        ask(question)


def ask(question: str, seed: int = 0, **errors: float):
    request = Request(({"role": "user", "content": question},), sample_seed(seed, question), (question, 0))
    return ScriptedEngine(errors=errors).generate([request], Sampling(1.0, 1.0, 0, 100))[0]


def test_a_program_by_hand():
    question = "f(a, b): larger b, plus 3, smaller 7 = ?"
    assert ask(question, max=0, min=1).completion == (
        "<think> = max = + ~ max </think>\n```python\ndef f(a, b): a = max(a, b); a += 3; a = max(a, 7); return a\n```"
    )


def test_the_teacher_writes_what_it_says_and_errs_at_the_set_rates():
    problems = puzzles.load("code", "train", 600, 4).problems
    marks: dict[str, list[str]] = {"max": [], "min": []}
    for problem in problems:
        generation = ask(text(problem), max=0.3, min=0.6)
        said = re.match(r"<think> (.*) </think>\n```python\n(def f.*)\n```$", generation.completion)
        names: dict = {}
        exec(said[2], names)  # our own teacher's program
        thought = re.findall(r"([=~]) (max|min|\+)", said[1])
        words = re.findall(r"(larger|smaller|plus) ", text(problem))
        wrong = tuple(mark == "~" for mark, _ in thought)
        assert all(names["f"](a, b) == another_way(text(problem), a, b, wrong) for a in (-3, 4, 9) for b in (-1, 5))
        for (mark, _), word in zip(thought, words, strict=True):
            marks.setdefault(puzzles_code.WORDS[word], []).append(mark)
        assert generation.completion_tokens == len(generation.completion.split(" ")) <= 25
    for operator, rate in (("max", 0.3), ("min", 0.6)):
        count = len(marks[operator])
        assert abs(marks[operator].count("~") / count - rate) < 4 * (rate * (1 - rate) / count) ** 0.5
    assert set(marks["+"]) == {"="}


@pytest.mark.train
def test_programs_survive_the_tokenizer_of_whole_words():
    from klearrl.model import word_tokenizer

    texts = [ask(text(p)).completion for p in puzzles.load("code", "train", 50, 4).problems]
    tokenizer = word_tokenizer(texts)
    for completion in texts:
        ids = tokenizer(completion, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids) == completion and len(ids) == len(completion.split(" "))
    assert tokenizer("zz  yy", add_special_tokens=False)["input_ids"] == [tokenizer.unk_token_id] * 2
