"""What can be said of a problem before any teacher is asked: is it a copy of another, does a benchmark hold it?

These two come first because a teacher's responses cost far more than all else here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from klearbench.curation.decontaminate import Index
from klearbench.curation.dedup import Seen
from klearbench.curation.recipe import Recipe
from klearbench.curation.sources import prompt_text
from klearbench.types import Problem


@dataclass(frozen=True, slots=True)
class Dropped:
    """A problem that goes no further: `stage` and `reason` are names, `detail` says which text it is a copy of."""

    problem: Problem
    stage: str
    reason: str
    detail: str


def screen(
    problems: Iterable[Problem], benchmark_texts: Iterable[tuple[str, str, str]], recipe: Recipe
) -> tuple[list[Problem], list[Dropped]]:
    """Split problems into those that go on and those that don't, each in the order they came."""
    rules = recipe.decontaminate
    index = Index(benchmark_texts, rules.ngram, rules.exact, rules.containment, rules.common)
    seen = Seen()
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    for problem in problems:
        text = prompt_text(problem)
        name = f"{problem.suite}/{problem.id}"
        if recipe.dedup.problems and (first := seen.first(name, text)):
            dropped.append(Dropped(problem, "dedup", "duplicate_problem", f"copy of {first}"))
        elif match := index.find(text):
            dropped.append(Dropped(problem, "decontaminate", f"contaminated_{match.how}", str(match)))
        else:
            kept.append(problem)
    return kept, dropped
