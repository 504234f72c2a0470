"""The embedded suite: small reasoning puzzles, generated from a seed, usable with no download.

    chains   `7 max 3 min 4 min 9 = ?`      worked left to right, one max or min a step; 80,000 of them
    sums     `3 + 5 - 2 + 9 = ?`            running totals of single digits
    sorting  `sort 5 2 9 1 ; take 2 = ?`    the second smallest
    code     `f(a, b): larger b, plus 3, smaller 7 = ?`    a function, with tests: see `puzzles_code`

A puzzle belongs to the test part when a hash of its text says so (one in ten), so train and test are disjoint by
construction, whatever seeds they are drawn with.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from klearbench.errors import UsageError, unknown_name
from klearbench.store import dumps, text_hash
from klearbench.suites import puzzles_code
from klearbench.suites.base import Asked, Suite, SuiteInfo
from klearbench.suites.coderows import code_row
from klearbench.types import Answer, CodeTests, Kind, Problem, Reference

TEST_SEED = 20250812
TEST_COUNT = 200
OPERATORS: dict[str, Callable[[int, int], int]] = {
    "max": max,
    "min": min,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One worked step of a chain: `left op right` is `value`."""

    left: int
    op: str
    right: int
    value: int


def steps(question: str) -> Iterator[Step]:
    """Work a chain or a sum out, left to right. `question` is like "7 max 3 min 4 = ?"."""
    words = question.removesuffix(" = ?").split()
    value = int(words[0])
    for op, right in zip(words[1::2], map(int, words[2::2]), strict=True):
        result = OPERATORS[op](value, right)
        yield Step(value, op, right, result)
        value = result


def sorting_parts(question: str) -> tuple[list[int], int]:
    """The numbers and the 1-based rank of "sort 5 2 9 1 ; take 2 = ?"."""
    head, _, tail = question.removesuffix(" = ?").partition(" ; take ")
    return [int(word) for word in head.removeprefix("sort ").split()], int(tail)


def solve(question: str) -> int:
    """The right answer of any puzzle that has a number for an answer."""
    if question.startswith("sort "):
        numbers, rank = sorting_parts(question)
        return sorted(numbers)[rank - 1]
    *_, last = steps(question)
    return last.value


def _chain(rng: random.Random, operators: tuple[str, str]) -> str:
    words = [str(rng.randrange(10))]
    for _ in range(3):
        words += [rng.choice(operators), str(rng.randrange(10))]
    return " ".join([*words, "= ?"])


def _sorting(rng: random.Random) -> str:
    numbers = rng.sample(range(10), 4)
    return f"sort {' '.join(map(str, numbers))} ; take {rng.randrange(1, 5)} = ?"


KINDS: dict[str, Callable[[random.Random], str]] = {
    "chains": lambda rng: _chain(rng, ("max", "min")),
    "sums": lambda rng: _chain(rng, ("+", "-")),
    "sorting": _sorting,
    "code": puzzles_code.question,
}


def part_of(question: str) -> str:
    """ "test" for one puzzle in ten, chosen by a hash of the text; "train" for the others."""
    return "test" if hashlib.sha256(question.encode()).digest()[0] * 10 < 256 else "train"


def load(kind: str = "chains", split: str = "test", count: int = TEST_COUNT, seed: int = TEST_SEED) -> Suite:
    """`count` different puzzles of one kind and part, drawn with `seed`.

    Raises:
        UsageError: an unknown kind or part, or more puzzles than there are.
    """
    if kind not in KINDS:
        raise UsageError(unknown_name("puzzle kind", kind, KINDS))
    if split not in ("train", "test"):
        raise UsageError(unknown_name("split", split, ("train", "test")))
    name = "puzzles" if kind == "chains" else f"puzzles-{kind}"
    questions = _draw(kind, split, count, seed)
    problems = tuple(_problem(name, kind, split, question) for question in questions)
    answers = {p.id: _reference(p.id, q) for p, q in zip(problems, questions, strict=True)}
    tests = [dumps(code_row(answer)) for answer in answers.values() if isinstance(answer, CodeTests)]
    return Suite(name, problems, answers, text_hash("\n".join(questions + tests)))


def _reference(problem_id: str, question: str) -> Reference:
    if puzzles_code.is_code(question):
        return puzzles_code.tests(problem_id, question)
    return Answer(problem_id, str(solve(question)), "integer")


def _draw(kind: str, split: str, count: int, seed: int) -> list[str]:
    rng = random.Random(f"{seed}/{kind}/{split}")
    found: dict[str, None] = {}
    misses = 0
    while len(found) < count:
        question = KINDS[kind](rng)
        fresh = part_of(question) == split and question not in found
        misses = 0 if fresh else misses + 1
        if fresh:
            found[question] = None
        elif misses > 20_000:
            raise UsageError(
                f"there are about {len(found)} puzzles of kind {kind!r} in {split!r}, {count} were asked for"
            )
    return list(found)


def _problem(suite: str, kind: str, split: str, question: str) -> Problem:
    code = puzzles_code.is_code(question)
    asked = question.removesuffix(" = ?").removeprefix(puzzles_code.HEAD)
    return Problem(
        id=f"{kind}-{asked.replace(' ', '')}",
        suite=suite,
        kind=Kind.code if code else Kind.math,
        prompt=({"role": "user", "content": question},),
        source="generated by klearbench",
        meta={"puzzle": kind, "split": split},
    )


def _info(kind: str, about: str) -> SuiteInfo:
    def load_test(_: Asked) -> Suite:
        return load(kind)

    name = "puzzles" if kind == "chains" else f"puzzles-{kind}"
    return SuiteInfo(name, about, TEST_COUNT, "embedded, generated", "Apache-2.0", None, load_test)


INFOS = (
    _info("chains", "chains of max and min steps, held-out part"),
    _info("sums", "running sums of digits, held-out part"),
    _info("sorting", "ranks in a sorted list, held-out part"),
    _info("code", "functions of two numbers with 8 tests each, held-out part"),
)
