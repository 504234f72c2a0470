"""What a suite is: questions on one side, answers on the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from klearbench.types import CodeTests, Problem, Reference


@dataclass(frozen=True, slots=True)
class Suite:
    """A loaded benchmark. `problems` may go anywhere; `answers` (by problem id) go to a judge and nowhere else."""

    name: str
    problems: tuple[Problem, ...]
    answers: Mapping[str, Reference]
    content_hash: str

    @property
    def has_code(self) -> bool:
        """Whether any problem asks for a program."""
        return any(isinstance(self.answers[problem.id], CodeTests) for problem in self.problems)


@dataclass(frozen=True, slots=True)
class SuiteInfo:
    """One line of `klearbench suites`.

    `file` is the name looked for in the data directory, None for an embedded suite; `count` the number of problems.
    """

    name: str
    about: str
    count: int
    source: str
    licence: str
    file: str | None
    load: Callable[[Path | None], Suite]
