"""The embedded teacher: it works the puzzles out step by step, and guesses wrongly at a set rate per operator.

A step marked `=` was worked and is right; one marked `~` was guessed and is wrong. A student that imitates the traces
learns both habits, which leaves RL something to sharpen: it need only drop the `~`.

    7 max 3 min 4 min 9 = ?   ->   <think> 7 max 3 = 7 ; 7 min 4 ~ 7 ; 7 min 9 = 7 </think> \\boxed{ 7 }

In a code puzzle it says which operator each step needs, guesses max for min or min for max, and writes what it said:

    f(a, b): larger b, plus 3, smaller 7 = ?   ->   <think> = max = + ~ max </think>
                                                    ```python
                                                    def f(a, b): a = max(a, b); a += 3; a = max(a, 7); return a
                                                    ```
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from klearbench import __version__
from klearbench.engines.base import Generation, Request, Sampling
from klearbench.errors import ConfigError, UsageError
from klearbench.suites import puzzles_code
from klearbench.suites.puzzles import OPERATORS, sorting_parts, steps
from klearbench.types import FinishReason

DEFAULT_ERRORS = {"max": 0.2, "min": 0.6, "+": 0.1, "-": 0.3, "sort": 0.4}


class ScriptedEngine:
    """Works out puzzle prompts. `errors` maps an operator to the probability (0..1) that a step of it is guessed."""

    def __init__(self, errors: Mapping[str, float] | None = None, batch_size: int = 1000) -> None:
        self.errors = DEFAULT_ERRORS | dict(errors or {})
        self.batch_size = batch_size
        for op, rate in self.errors.items():
            if op not in DEFAULT_ERRORS or not isinstance(rate, int | float) or not 0 <= rate <= 1:
                raise ConfigError(f"errors.{op} is {rate!r} (operators {', '.join(DEFAULT_ERRORS)}; rates 0..1)")

    def identity(self) -> Mapping[str, Any]:
        return {"name": "scripted", "version": __version__, "errors": self.errors}

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        return [self._one(request, sampling.max_tokens) for request in requests]

    def close(self) -> None:
        """Nothing is held."""

    def _one(self, request: Request, max_tokens: int) -> Generation:
        question = request.prompt[-1]["content"]
        words = self._trace(question, random.Random(request.seed)).split(" ")
        cut = len(words) > max_tokens
        kept = words[:max_tokens]
        reason = FinishReason.length if cut else FinishReason.stop
        return Generation(" ".join(kept), reason, len(question.split()), len(kept))

    def _trace(self, question: str, rng: random.Random) -> str:
        try:
            if question.startswith("sort "):
                return self._sorting(question, rng)
            if puzzles_code.is_code(question):
                return self._code(question, rng)
            return self._steps(question, rng)
        except (ValueError, KeyError, IndexError):
            raise UsageError(f"the scripted teacher can only work puzzles out, not {question[:60]!r}") from None

    def _steps(self, question: str, rng: random.Random) -> str:
        """Worked or guessed steps; a guess takes the other number (max, min) or is off by one (+, -)."""
        words = []
        value: int | None = None
        for step in steps(question):
            left = step.left if value is None else value
            right = OPERATORS[step.op](left, step.right)
            guessed = rng.random() < self.errors[step.op]
            value = _slip(left, step.op, step.right, right) if guessed else right
            words.append(f"{left} {step.op} {step.right} {'~' if guessed else '='} {value}")
        return f"<think> {' ; '.join(words)} </think> \\boxed{{ {value} }}"

    def _sorting(self, question: str, rng: random.Random) -> str:
        numbers, rank = sorting_parts(question)
        guessed = rng.random() < self.errors["sort"]
        order = numbers if guessed else sorted(numbers)
        working = f"{'~' if guessed else '='} {' '.join(map(str, order))}"
        return f"<think> {working} </think> \\boxed{{ {order[rank - 1]} }}"

    def _code(self, question: str, rng: random.Random) -> str:
        said, steps = [], []
        for right, operand in puzzles_code.parse(question):
            guessed = right in puzzles_code.SWAPPED and rng.random() < self.errors[right]
            op = puzzles_code.SWAPPED[right] if guessed else right
            said.append(f"{'~' if guessed else '='} {op}")
            steps.append((op, operand))
        return f"<think> {' '.join(said)} </think>\n```python\n{puzzles_code.program(steps)}\n```"


def _slip(left: int, op: str, right: int, value: int) -> int:
    return left + right - value if op in ("max", "min") else value + 1
