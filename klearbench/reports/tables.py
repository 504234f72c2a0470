"""Tables of scores as rows of text: the HTML page, the Markdown and the terminal show the same ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from klearbench.reports.bundle import Bundle, Scored, faults
from klearbench.reports.compare import Paired
from klearbench.reports.published import differences, published
from klearbench.reports.text import interval, points
from klearbench.types import Status


@dataclass(frozen=True, slots=True)
class Table:
    """A head and rows of as many cells; `words` counts the columns on the left that hold words, not numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


def score_with_mark(bundle: Bundle, scored: Scored) -> str:
    """avg@k, marked where the score may not be taken for good."""
    mark = " (incomplete)" if faults(bundle.runs[scored.name], scored.score) else ""
    return points(scored.score.avg, none="no score") + mark


def scores(bundle: Bundle) -> Table:
    """Every score of every run."""
    head = (
        *("Run", "Suite", "avg@k", "95 % interval", "problems resampled", "pass@k", "maj@k", "k", "problems"),
        *("truncated", "no answer", "at the limit", "of these right", "judge errors", "engine errors", "missing"),
    )
    return Table(head, tuple(_score_row(bundle, scored) for scored in bundle.scored()), 2)


def _score_row(bundle: Bundle, scored: Scored) -> tuple[str, ...]:
    score = scored.score
    cells = (
        *(scored.name, score.suite, score_with_mark(bundle, scored)),
        *(interval(score.interval), interval(score.interval_problems)),
        *(points(score.pass_at_k), points(score.maj_at_k), score.k, score.problems, share(score.truncated_share)),
        *(score.counts[Status.no_answer], score.at_limit, score.limit_but_right),
        *(score.judge_errors, score.engine_errors, score.missing),
    )
    return tuple(map(str, cells))


def share(value: float | None) -> str:
    """A share of 0..1 in percent."""
    return "-" if value is None else f"{100 * value:.1f} %"


def tokens(bundle: Bundle) -> Table:
    """Lengths of completions."""
    head = ("Run", "Suite", "mean tokens", "10 %", "median", "90 %", "99 %", "longest")
    rows = []
    for name, _, score in bundle.scored():
        found = score.tokens
        cells = (f"{found.mean:.0f}", found.p10, found.p50, found.p90, found.p99, found.max) if found else ("-",) * 6
        rows.append((name, score.suite, *map(str, cells)))
    return Table(head, tuple(rows), 2)


def side_by_side(bundle: Bundle) -> Table:
    """One row a suite, one column a run."""
    rows = []
    for suite in bundle.suites:
        by_run = {scored.name: scored for scored in bundle.scored(suite)}
        cells = (f"{score_with_mark(bundle, s)}; {interval(s.score.interval)}" for s in by_run.values())
        found = dict(zip(by_run, cells, strict=True))
        rows.append((suite, *(found.get(name, "-") for name in bundle.runs)))
    return Table(("Suite", *bundle.runs), tuple(rows))


def pairs(compared: Sequence[Paired]) -> Table:
    """What changed from the first run to each other one, or why that can't be said."""
    head = ("Suite", "Runs", "before", "after", "change", "95 % interval", "problems resampled")
    return Table((*head, "better", "worse", "same"), tuple(_pair_row(pair) for pair in compared), 2)


def _pair_row(pair: Paired) -> tuple[str, ...]:
    runs = f"{pair.base} to {pair.candidate}"
    if pair.difference is None:
        return (pair.suite, runs, *("-",) * 2, f"not comparable: {pair.why_not}", *("-",) * 5)
    found = pair.difference
    mark = " (incomplete)" if pair.incomplete else ""
    changes = [change.points for change in pair.changes]
    counts = (sum(c > 0 for c in changes), sum(c < 0 for c in changes), sum(c == 0 for c in changes))
    return (
        *(pair.suite, runs, f"{found.base:.1f}", f"{found.candidate:.1f}", f"{found.change:+.1f}{mark}"),
        *(signed(found.interval), signed(found.interval_problems), *map(str, counts)),
    )


def signed(value: tuple[float, float] | None) -> str:
    """An interval of a change: `-2.2 to +3.9`."""
    return "-" if value is None else f"{value[0]:+.1f} to {value[1]:+.1f}"


def groups(bundle: Bundle, suite: str) -> dict[str, Table]:
    """The parts of a suite by dimension ("difficulty", "month", ...), three columns a run."""
    scored = list(bundle.scored(suite))
    dimensions = list(dict.fromkeys(name for s in scored for name in s.score.groups))
    return {dimension: _group_table(dimension, scored) for dimension in dimensions}


def _group_table(dimension: str, scored: Sequence[Scored]) -> Table:
    by_run = [{group.name: group for group in s.score.groups.get(dimension, ())} for s in scored]
    names = list(dict.fromkeys(name for found in by_run for name in found))
    rows = []
    for name in names:
        cells: list[str] = [name, str(next(found[name] for found in by_run if name in found).problems)]
        for found in by_run:
            group = found.get(name)
            cells += [points(group.avg), interval(group.interval), share(group.truncated_share)] if group else ["-"] * 3
        rows.append(tuple(cells))
    of = [f"{s.name}: " if len(scored) > 1 else "" for s in scored]
    heads = (f"{name}{what}" for name in of for what in ("avg@k", "95 % interval", "truncated"))
    return Table((dimension.capitalize(), "problems", *heads), tuple(rows))


class Figures(NamedTuple):
    """A suite's scores here and those published; `everywhere`: a line a run of what differs from every figure."""

    table: Table
    everywhere: list[str]


def published_figures(bundle: Bundle, suite: str) -> Figures | None:
    """What others published for a suite, with what differs in settings. None: nothing is published."""
    theirs = published(suite)
    if not theirs:
        return None
    scored = list(bundle.scored(suite))
    unlike = {s.name: [differences(bundle.runs[s.name], suite, row) for row in theirs] for s in scored}
    common = {
        name: [phrase for phrase in found[0] if all(phrase in f for f in found)] for name, found in unlike.items()
    }
    ours = [
        (f"{s.name} (this report)", score_with_mark(bundle, s), interval(s.score.interval), str(s.score.k), "")
        for s in scored
    ]
    rows = [(row.model, f"{row.score:.1f}", "-", str(row.k), _else(unlike, common, i)) for i, row in enumerate(theirs)]
    table = Table(("Model", "avg@k", "95 % interval", "k", "What else differs"), (*ours, *rows))
    return Figures(table, [f"{name}: {'; '.join(phrases)}" for name, phrases in common.items() if phrases])


def _else(unlike: Mapping[str, list[list[str]]], common: Mapping[str, list[str]], place: int) -> str:
    """What differs from one figure besides what differs from all of them; the runs are named where they disagree."""
    said = {name: "; ".join(p for p in found[place] if p not in common[name]) for name, found in unlike.items()}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return ". ".join(f"{name}: {text or 'nothing'}" for name, text in said.items())


def incomplete(bundle: Bundle) -> list[str]:
    """A line a score that may not be taken for good, with the reasons."""
    return [
        f"{scored.name}, {scored.score.suite}: {', '.join(why)}"
        for scored in bundle.scored()
        if (why := faults(bundle.runs[scored.name], scored.score))
    ]
