"""The report as Markdown: what the page says, without charts and samples."""

from __future__ import annotations

import re
from collections.abc import Iterator

from klearbench.reports import tables
from klearbench.reports.bundle import Bundle, settings
from klearbench.reports.compare import compare_runs, differing_settings
from klearbench.reports.published import SOURCE, WINDOWS
from klearbench.reports.tables import Table
from klearbench.types import parquet_text

_MARKUP = re.compile(r"[\\|`*<>\[\]]|(?<!\w)_|_(?!\w)")


def markdown_report(bundle: Bundle) -> str:
    """Scores first; a score that may not be taken for good is marked, and the reasons stand below the table."""
    return parquet_text("\n".join(_blocks(bundle)))


def _blocks(bundle: Bundle) -> Iterator[str]:
    yield f"# {inline(bundle.title)}\n"
    yield pipe_table(tables.scores(bundle))
    incomplete = tables.incomplete(bundle)
    if incomplete:
        yield "**Not to be taken for good:**\n"
        yield "".join(f"- {inline(line)}\n" for line in incomplete)
    yield "Points of 100; the first interval has the problems fixed, the second takes them as a draw from a pool.\n"
    yield from _compared(bundle)
    yield from _published(bundle)
    for suite in bundle.suites:
        for dimension, table in tables.groups(bundle, suite).items():
            yield f"## {inline(suite)}, by {dimension}\n"
            yield pipe_table(table)
    yield "## Lengths of completions\n"
    yield pipe_table(tables.tokens(bundle))
    yield "## Runs\n"
    for name, run in bundle.runs.items():
        yield pipe_table(Table(("Run", name), tuple(settings(run).items()), 2))


def _compared(bundle: Bundle) -> Iterator[str]:
    if len(bundle.runs) < 2:
        return
    yield "## Runs compared\n"
    yield pipe_table(tables.side_by_side(bundle))
    if compared := compare_runs(bundle):
        yield pipe_table(tables.pairs(compared))
    base, *others = bundle.runs
    for name in others:
        rows = tuple(differing_settings(bundle.runs[base], bundle.runs[name]))
        if rows:
            yield pipe_table(Table(("Setting that differs", base, name), rows, 3))


def _published(bundle: Bundle) -> Iterator[str]:
    for suite in bundle.suites:
        if found := tables.published_figures(bundle, suite):
            yield f"## {inline(suite)}: published figures\n"
            window = f"; {WINDOWS[suite]}" if suite in WINDOWS else ""
            yield f"Source: {SOURCE}{window}.\n"
            yield pipe_table(found.table)
            if found.everywhere:
                yield "".join(f"- Differs from every figure: {inline(line)}\n" for line in found.everywhere)


def pipe_table(table: Table) -> str:
    """A table as Markdown; what could end a cell or begin markup is escaped."""
    rule = ["---" if i < table.words else "---:" for i in range(len(table.head))]
    rows = (tuple(map(inline, table.head)), tuple(rule), *(tuple(map(inline, row)) for row in table.rows))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def inline(text: str) -> str:
    """Text in one line that Markdown takes as it is."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))
