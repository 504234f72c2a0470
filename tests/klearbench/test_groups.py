"""Scores by difficulty, platform, month and subject, worked out by hand."""

from __future__ import annotations

from klearbench.scoring.groups import ProblemScore, groups_of, score_groups
from klearbench.types import Kind, Problem


def problem(key: str, date: str | None = None, **meta) -> Problem:
    return Problem(key, "s", Kind.code, (), date=date, meta=meta)


PROBLEMS = {
    ("s", p.id): p
    for p in (
        problem("a", "2024-08-03", difficulty="hard", platform="atcoder"),
        problem("b", "2024-08-31T12:00", difficulty="easy", platform="atcoder"),
        problem("c", "2024-09-01", difficulty="easy", platform="atcoder"),
        problem("d"),
    )
}
ROWS = [ProblemScore("a", 1, 4, 2), ProblemScore("b", 4, 4, 0), ProblemScore("c", 2, 4, 0), ProblemScore("d", 0, 0, 0)]


def test_problems_are_grouped_by_what_tells_them_apart():
    groups = groups_of("s", ["a", "b", "c", "d", "unknown"], PROBLEMS)
    assert groups == {
        "difficulty": {"a": "hard", "b": "easy", "c": "easy"},
        "month": {"a": "2024-08", "b": "2024-08", "c": "2024-09"},
    }, "one platform for all is no group"


def test_scores_of_groups():
    scores = score_groups(ROWS, groups_of("s", ["a", "b", "c", "d"], PROBLEMS))
    easy, hard = scores["difficulty"]
    assert (easy.name, easy.problems, easy.judged, easy.avg, easy.truncated_share) == ("easy", 2, 8, 75.0, 0.0)
    assert (hard.name, hard.problems, hard.avg, hard.truncated_share) == ("hard", 1, 25.0, 0.5)
    assert [group.name for group in scores["month"]] == ["2024-08", "2024-09"]
    assert easy.interval[0] < 75.0 < easy.interval[1]


def test_a_group_of_which_nothing_was_judged_has_no_score():
    names = {"difficulty": {"a": "hard", "d": "easy"}}
    easy, _ = score_groups(ROWS, names)["difficulty"]
    assert (easy.avg, easy.interval, easy.truncated_share, easy.judged) == (None, None, None, 0)


def test_only_iso_dates_have_a_month():
    dates = {"a": "January 5, 2024", "b": "20240801", "c": "2024-13-45", "d": "2024-08-01"}
    problems = {("s", key): problem(key, date) for key, date in dates.items()}
    assert groups_of("s", list(dates), problems | {("s", "e"): problem("e", "2024-09-30T08:00")}) == {}
    both = groups_of("s", [*dates, "e"], problems | {("s", "e"): problem("e", "2024-09-30T08:00")})
    assert both == {"month": {"d": "2024-08", "e": "2024-09"}}
