"""The score table for a terminal; it is Markdown as well."""

from __future__ import annotations

from collections.abc import Sequence

from klearbench.scoring.metrics import SuiteScore


def score_table(rows: Sequence[tuple[str, SuiteScore]]) -> str:
    """A pipe table with one line per (name, score): avg@k in points, its 95 % interval, truncated share, judge errors.

    A score of an incomplete run is marked; a suite of which nothing was judged has no score.
    """
    header = ("", "avg@k", "k", "95 % interval", "truncated", "judge errors")
    body = [(name.replace("|", "\\|"), *_cells(score)) for name, score in rows]
    widths = [max(3, *(len(line[i]) for line in (header, *body))) for i in range(len(header))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [_line(header, widths), "| " + " | ".join(rule) + " |", *(_line(cells, widths) for cells in body)]
    return "\n".join(lines)


def score_lines(scores: Sequence[SuiteScore]) -> list[str]:
    """What `klearbench eval` and `score` print: the table, and what the token limit did."""
    lines = score_table([(score.suite, score) for score in scores]).splitlines()
    for score in scores:
        if score.at_limit:
            hit = f"{score.at_limit} of {score.judged} samples ran into the token limit"
            lines.append(f"{score.suite}: {hit}, {score.limit_but_right} of these are right all the same")
    return lines


def _cells(score: SuiteScore) -> tuple[str, ...]:
    mark = "" if score.complete else " (incomplete)"
    truncated = "-" if score.truncated_share is None else f"{100 * score.truncated_share:.1f} %"
    return (points(score.avg, none="no score") + mark, str(score.k), interval(score.interval), truncated,
            str(score.judge_errors))  # fmt: skip


def points(value: float | None, none: str = "-") -> str:
    """A score with one decimal."""
    return none if value is None else f"{value:.1f}"


def interval(value: tuple[float, float] | None) -> str:
    """`40.1 to 44.9`."""
    return "-" if value is None else f"{value[0]:.1f} to {value[1]:.1f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = cells
    numbers = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
    return "| " + " | ".join([first.ljust(widths[0]), *numbers]) + " |"
