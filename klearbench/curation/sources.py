"""Problems in, with their answers on the other side of the wall: only `problems` ever goes to the teacher."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from klearbench.curation.recipe import Recipe, Source
from klearbench.errors import UsageError
from klearbench.suites import puzzles
from klearbench.suites.base import Suite
from klearbench.suites.files import load_problem_file
from klearbench.suites.registry import load_suite
from klearbench.types import Problem, Reference

ProblemKey = tuple[str, str]
"""(suite, problem id)."""


@dataclass(frozen=True, slots=True)
class Pool:
    """All problems of a recipe. `answers` goes to the judge and into RL rows; `hashes` names each input's content."""

    problems: tuple[Problem, ...]
    answers: dict[ProblemKey, Reference]
    licences: dict[str, str]
    hashes: dict[str, str]


def load_pool(recipe: Recipe, home: Path) -> Pool:
    """The problems of all sources, in the recipe's order.

    Args:
        recipe: the checked recipe.
        home: the recipe's folder; its relative paths start there.

    Raises:
        UsageError: an unknown suite, or one id twice in a suite.
        DataError: a file is missing or has a bad row.
    """
    problems: dict[ProblemKey, Problem] = {}
    answers: dict[ProblemKey, Reference] = {}
    licences: dict[str, str] = {}
    hashes: dict[str, str] = {}
    for number, source in enumerate(recipe.sources):
        suite = _load(source, recipe, home)
        hashes[f"sources.{number}"] = suite.content_hash
        licences[suite.name] = source.licence or recipe.licence
        for problem in suite.problems[: source.count]:
            key = (problem.suite, problem.id)
            if key in problems:
                raise UsageError(f"sources.{number}: problem {problem.id!r} of {problem.suite!r} came before already")
            problems[key] = problem
            answers[key] = suite.answers[problem.id]
    return Pool(tuple(problems.values()), answers, licences, hashes)


def _load(source: Source, recipe: Recipe, home: Path) -> Suite:
    if source.file is not None:
        path = home / source.file
        fields = {str(ours): theirs for ours, theirs in source.fields.items()}
        return load_problem_file(path, source.name or path.stem, rule=source.rule, fields=fields)
    if source.suite == "puzzles" and source.count is not None:
        return puzzles.load(source.kind, source.split, source.count, source.seed)
    return _by_name(str(source.suite), recipe, home)


def _by_name(name: str, recipe: Recipe, home: Path) -> Suite:
    where = str(home / name) if Path(name).suffix else name
    return load_suite(where, None if recipe.data_dir is None else home / recipe.data_dir)


def benchmarks(recipe: Recipe, home: Path) -> dict[str, Suite]:
    """The suites that the data must not contain, by name. Raises as `load_pool` does."""
    return {name: _by_name(name, recipe, home) for name in recipe.decontaminate.against}


def texts(suites: dict[str, Suite]) -> Iterator[tuple[str, str, str]]:
    """(suite, problem id, text) of every benchmark problem."""
    for name, suite in suites.items():
        for problem in suite.problems:
            yield name, problem.id, prompt_text(problem)


def prompt_text(problem: Problem) -> str:
    """What is compared between problems: the contents of all messages."""
    return "\n".join(message["content"] for message in problem.prompt)
