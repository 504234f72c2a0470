"""The embedded puzzles: right answers, disjoint parts, the same ones for the same seed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klearbench.errors import UsageError
from klearbench.suites import puzzles
from klearbench.types import Kind

KINDS = ("chains", "sums", "sorting")


def text(problem) -> str:
    return problem.prompt[-1]["content"]


def answer_by_hand(question: str) -> int:
    """Another way to work a puzzle out: a chain is folded as an expression by Python itself."""
    body = question.removesuffix(" = ?")
    if body.startswith("sort "):
        numbers, rank = body.removeprefix("sort ").split(" ; take ")
        below = lambda n: sum(int(m) < int(n) for m in numbers.split())  # noqa: E731
        return next(int(n) for n in numbers.split() if below(n) == int(rank) - 1)
    if "+" in body or "-" in body:
        return eval(body)
    value, *rest = body.split()
    expression = value
    for op, number in zip(rest[::2], rest[1::2], strict=True):
        expression = f"{op}({expression}, {number})"
    return eval(expression)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_agree_with_another_way_of_working_them_out(kind):
    for split in ("train", "test"):
        suite = puzzles.load(kind, split, 300, seed=5)
        for problem in suite.problems:
            answer = suite.answers[problem.id]
            assert (answer.answer, answer.rule) == (str(answer_by_hand(text(problem))), "integer"), text(problem)
            assert answer.problem_id == problem.id


def test_three_puzzles_by_hand():
    assert puzzles.solve("7 max 3 min 4 min 9 = ?") == 4
    assert puzzles.solve("3 - 5 - 2 + 1 = ?") == -3
    assert puzzles.solve("sort 5 2 9 1 ; take 2 = ?") == 2


def test_steps_of_a_chain_by_hand():
    found = [(s.left, s.op, s.right, s.value) for s in puzzles.steps("7 max 3 min 4 min 9 = ?")]
    assert found == [(7, "max", 3, 7), (7, "min", 4, 4), (4, "min", 9, 4)]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 2**40), st.integers(0, 2**40))
def test_train_and_test_are_disjoint_whatever_the_seeds(kind, train_seed, test_seed):
    train = puzzles.load(kind, "train", 400, train_seed)
    test = puzzles.load(kind, "test", 100, test_seed)
    assert {text(p) for p in train.problems}.isdisjoint(text(p) for p in test.problems)
    assert {p.id for p in train.problems}.isdisjoint(p.id for p in test.problems)


@pytest.mark.parametrize("kind", KINDS)
def test_the_held_out_suite_has_200_different_puzzles_of_its_kind(kind):
    suite = puzzles.load(kind)
    assert len({text(p) for p in suite.problems}) == len({p.id for p in suite.problems}) == len(suite.problems) == 200
    assert {(p.kind, p.meta["puzzle"], p.meta["split"], p.suite) for p in suite.problems} == {
        (Kind.math, kind, "test", suite.name)
    }
    assert set(suite.answers) == {p.id for p in suite.problems}


def test_about_one_puzzle_in_ten_is_held_out():
    chains = [f"{a} max {b} min {c} max {d} = ?" for a in range(10) for b in range(10) for c in range(10) for d in (3,)]
    held = sum(puzzles.part_of(question) == "test" for question in chains)
    assert 70 <= held <= 135  # 26 of 256 hash values: 101.6 expected, 3.3 standard deviations each way


def test_the_same_seed_gives_the_same_puzzles_in_another_process():
    code = (
        "import json; from klearbench.suites import puzzles as p;"
        "s = p.load('chains', 'train', 50, 9);"
        "print(json.dumps([[x.prompt[-1]['content'] for x in s.problems], s.content_hash]))"
    )
    here = puzzles.load("chains", "train", 50, 9)
    there = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert there == [[text(p) for p in here.problems], here.content_hash]
    other = puzzles.load("chains", "train", 50, 10)
    assert [text(p) for p in other.problems] != there[0] and other.content_hash != there[1]


def test_more_puzzles_begin_with_the_same_ones():
    few, many = puzzles.load("sums", "train", 20, 3), puzzles.load("sums", "train", 60, 3)
    assert many.problems[:20] == few.problems


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("chain", "test", 1), "did you mean 'chains'"),
        (("chains", "tset", 1), "did you mean 'test'"),
        (("sorting", "test", 19_000), "there are about"),
    ],
)
def test_what_there_is_not_is_refused_in_one_line(arguments, message):
    with pytest.raises(UsageError) as caught:
        puzzles.load(*arguments, seed=1)
    assert message in str(caught.value) and "\n" not in str(caught.value)
