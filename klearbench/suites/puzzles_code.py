"""The code puzzles: tiny functions of two numbers, told in words, each with eight tests.

    f(a, b): larger b, plus 3, smaller 7 = ?

asks for a function that starts with `a`, takes the larger of it and `b`, adds 3, and takes the smaller of that and 7:

    def f(a, b): a = max(a, b); a += 3; a = min(a, 7); return a

The tests are chosen so that every program with max and min taken for each other, in one step or in several, passes some
of them and fails others: the share of tests passed tells how wrong a program is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

from klearbench.types import CodeTests, ExpectedOutputs, TestInputs

TESTS = 8
HEAD = "f(a, b): "
WORDS: dict[str, str] = {"larger": "max", "smaller": "min", "plus": "+"}
"""How a step is told -> the operator that does it."""
SWAPPED = {"max": "min", "min": "max"}
"""What an operator is mistaken for. Addition never is: with it mistaken, hardly a test would pass."""
_RULES: dict[str, Callable[[int, int], int]] = {"max": max, "min": min, "+": lambda a, b: a + b}
_STEPS = 3
_TOLD = ("larger", "larger", "smaller", "smaller", "plus")
_TRIES = 60
_LOWEST, _HIGHEST = -4, 13

Step = tuple[str, str]
"""(operator, operand): the operand is "b" or a digit."""
Pair = tuple[int, int]


def is_code(question: str) -> bool:
    """Whether a puzzle asks for a function."""
    return question.startswith(HEAD)


def parse(question: str) -> list[Step]:
    """The steps of a puzzle. Raises ValueError or KeyError when it is none."""
    if not is_code(question):
        raise ValueError(f"no code puzzle: {question!r}")
    told = [part.split(" ") for part in question.removeprefix(HEAD).removesuffix(" = ?").split(", ")]
    steps = [(WORDS[word], operand) for word, operand in told]
    for _, operand in steps:
        if operand != "b" and not operand.isdigit():
            raise ValueError(f"no operand: {operand!r}")
    return steps


def program(steps: Sequence[Step]) -> str:
    """One line of Python that does the steps."""
    return f"def f(a, b): {' '.join(_statement(*step) for step in steps)} return a"


def _statement(operator: str, operand: str) -> str:
    return f"a += {operand};" if operator == "+" else f"a = {operator}(a, {operand});"


def work(steps: Sequence[Step], a: int, b: int) -> int:
    """What the function returns."""
    for operator, operand in steps:
        a = _RULES[operator](a, b if operand == "b" else int(operand))
    return a


def question(rng: random.Random) -> str:
    """A puzzle whose every mistake can be seen, and isn't all wrong: others are drawn again."""
    while True:
        told = [f"{rng.choice(_TOLD)} {rng.choice('bbb123456789')}" for _ in range(_STEPS)]
        text = f"{HEAD}{', '.join(told)} = ?"
        if _pairs(text):
            return text


def _results(steps: Sequence[Step], a: int, b: int) -> list[int]:
    """What every program returns in which some, all or none of max and min are taken for each other; the right one's
    comes first."""
    found = [a]
    for operator, operand in steps:
        other = b if operand == "b" else int(operand)
        rules = [_RULES[operator]] + ([_RULES[SWAPPED[operator]]] if operator in SWAPPED else [])
        found = [rule(value, other) for rule in rules for value in found]
    return found


@cache
def _pairs(text: str) -> tuple[Pair, ...]:
    """The inputs of a puzzle's tests, drawn by its text alone; none if no such set is found."""
    steps, rng = parse(text), random.Random(text)
    pool = dict.fromkeys((rng.randint(_LOWEST, _HIGHEST), rng.randint(_LOWEST, _HIGHEST)) for _ in range(_TRIES))
    shows = {pair: _shows(_results(steps, *pair)) for pair in pool}
    programs = 2 ** sum(operator in SWAPPED for operator, _ in steps) - 1
    wanted = (1 << 2 * programs) - 1
    chosen: list[Pair] = []
    while wanted and len(chosen) < TESTS:
        best = max(shows, key=lambda pair: (shows[pair] & wanted).bit_count())
        if not shows[best] & wanted:
            return ()
        wanted &= ~shows[best]
        chosen.append(best)
    chosen += [pair for pair in pool if pair not in chosen][: TESTS - len(chosen)]
    return () if wanted or len(chosen) < TESTS or not programs else tuple(chosen)


def _shows(results: Sequence[int]) -> int:
    """Two bits a wrong program: a test on which it agrees with the right one, and one on which it does not."""
    right, *others = results
    return sum((1 if other == right else 2) << 2 * number for number, other in enumerate(others))


def tests(problem_id: str, text: str) -> CodeTests:
    """The tests of a puzzle that `question` has made."""
    steps, pairs = parse(text), _pairs(text)
    inputs = tuple(f"{a}\n{b}" for a, b in pairs)
    given = TestInputs(problem_id, "functional", inputs, fn_name="f", time_limit_s=2.0)
    return CodeTests(given, ExpectedOutputs(problem_id, tuple(str(work(steps, a, b)) for a, b in pairs)))
