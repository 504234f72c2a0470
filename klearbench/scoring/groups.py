"""Scores of parts of a suite: by difficulty, platform, month and subject, where the problems say so.

A month is that of the problem's date: with a model's training cut-off in mind, a fall of the score from one month to
the next is what contamination looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from klearbench.scoring.uncertainty import Count, Interval, interval_fixed, mean_share
from klearbench.types import Problem


@dataclass(frozen=True, slots=True)
class ProblemScore:
    """One problem's samples, counted.

    Attributes:
        right, judged, truncated: samples with a verdict that is not our fault, and of these the right and cut ones.
        judge_errors: samples whose judge failed; none of `judged`.
        sampled: samples that the engine made; `tokens`, `tokens_squared`: the sum of their lengths and of the squares.
    """

    problem_id: str
    right: int
    judged: int
    truncated: int
    judge_errors: int = 0
    sampled: int = 0
    tokens: int = 0
    tokens_squared: int = 0


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The score of some problems of a suite: `avg` and its 95 % interval (problems fixed) in points, None when nothing
    was judged; `judged` counts samples, `truncated_share` is of these, 0..1."""

    name: str
    problems: int
    judged: int
    avg: float | None
    interval: Interval | None
    truncated_share: float | None


Grouping = Mapping[str, Mapping[str, str]]
"""Dimension -> problem id -> the group's name."""

_ORDER = {name: place for place, name in enumerate(("easy", "medium", "hard"))}


def _month(problem: Problem) -> str | None:
    """The month of an ISO date; another text is no date."""
    if not re.match(r"\d{4}-\d\d-\d\d", problem.date or ""):
        return None
    try:
        return date.fromisoformat(str(problem.date)[:10]).isoformat()[:7]
    except ValueError:
        return None


def _meta(name: str) -> Callable[[Problem], str | None]:
    def value(problem: Problem) -> str | None:
        found = problem.meta.get(name)
        return str(found) if isinstance(found, str | int) and found != "" else None

    return value


DIMENSIONS: Mapping[str, Callable[[Problem], str | None]] = {
    "difficulty": _meta("difficulty"),
    "platform": _meta("platform"),
    "month": _month,
    "subject": _meta("subject"),
}
"""What problems are grouped by -> a problem's group, None for a problem that has none."""


def groups_of(suite: str, ids: Sequence[str], problems: Mapping[tuple[str, str], Problem]) -> Grouping:
    """The groups of a suite's problems. A dimension that tells no problem from another is left out."""
    found: dict[str, dict[str, str]] = {}
    for dimension, name_of in DIMENSIONS.items():
        names = {i: name for i in ids if (p := problems.get((suite, i))) and (name := name_of(p)) is not None}
        if len(set(names.values())) > 1:
            found[dimension] = names
    return found


def score_groups(rows: Sequence[ProblemScore], groups: Grouping) -> dict[str, tuple[GroupScore, ...]]:
    """Every group's score, the groups of a dimension in the order easy, medium, hard, then by name."""
    return {
        dimension: tuple(
            _score(name, [row for row in rows if names.get(row.problem_id) == name])
            for name in sorted(set(names.values()), key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
        )
        for dimension, names in groups.items()
    }


def _score(name: str, rows: Sequence[ProblemScore]) -> GroupScore:
    counts = [Count(row.right, row.judged) for row in rows if row.judged]
    judged = sum(count.judged for count in counts)
    return GroupScore(
        name=name,
        problems=len(rows),
        judged=judged,
        avg=100 * mean_share(counts) if counts else None,
        interval=interval_fixed(counts),
        truncated_share=sum(row.truncated for row in rows) / judged if judged else None,
    )
