"""The static parts of the page, one function a section."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from klearbench.reports import charts, tables
from klearbench.reports.bundle import Bundle, Scored, errata_of, settings
from klearbench.reports.charts import text
from klearbench.reports.compare import Paired, compare_runs, differing_settings
from klearbench.reports.published import SOURCE, WINDOWS
from klearbench.reports.tables import Table


class Section(NamedTuple):
    """A part of the page. `body` is HTML; `note` is plain text about it."""

    anchor: str
    title: str
    body: str
    note: str = ""

    def html(self) -> str:
        note = f'<p class="note">{text(self.note)}</p>' if self.note else ""
        return f'<section id="{self.anchor}">\n<h2>{self.title}</h2>\n{note}{self.body}\n</section>\n'


def sections(bundle: Bundle) -> list[Section]:
    """Every section that has something to show, in the page's order."""
    compared = compare_runs(bundle)
    return [
        part
        for part in (
            Section("scores", "Scores", _warnings(bundle) + html_table(tables.scores(bundle)), _SCORES),
            Section("runs", "Settings", "".join(_run(bundle, name) for name in bundle.runs)),
            Section("compared", "Runs compared", _compared(bundle, compared), _COMPARED if compared else ""),
            Section("published", "Published figures", _published(bundle), _PUBLISHED),
            Section("groups", "Parts of the suites", _groups(bundle), _GROUPS),
            Section("ends", "How samples ended", _per_score(bundle, lambda s: charts.split_bar(s.score))),
            Section("problems", "Problems", _problems(bundle), _PROBLEMS),
            Section("lengths", "Lengths of completions", _lengths(bundle)),
            Section("by-length", "Accuracy against length", _by_length(bundle), _BY_LENGTH),
        )
        if part.body
    ]


_SCORES = (
    "Points of 100. The first interval has the problems fixed and only the sampling of completions random; the second"
    " takes the problems as a draw from a larger pool. Judge and engine errors are left out of every score and make a"
    " run incomplete. A complete answer counts even if the text then ran into the token limit."
)
_COMPARED = (
    "Change in points, the same problems in both runs. An interval that holds 0 shows no change; of many comparisons"
    " one in twenty leaves it out by chance."
)
_PUBLISHED = (
    f"As printed in the {SOURCE}. A difference of settings or of the judge can be worth more than that of two models;"
    " what differs from your run is listed beside each figure."
)
_GROUPS = "Problems by what is known of them. Months are those of the problems' dates."
_PROBLEMS = (
    "One cell a problem, in the order of the suite: from 0 (red) to all samples right (green); grey: nothing judged."
    " Click a cell to see its samples; the address is then a link to them."
)
_BY_LENGTH = (
    "Samples in bins of as many each, by tokens. A fall to the right is usual: hard problems take long; a cliff at the"
    " right end is the token limit."
)


def html_table(table: Table) -> str:
    """A table; the columns of words are on the left, numbers are aligned on the right."""
    head = "".join(f'<th{_look(table, i)} scope="col">{text(name)}</th>' for i, name in enumerate(table.head))
    rows = "".join(
        "<tr>" + "".join(f"<td{_look(table, i)}>{text(cell)}</td>" for i, cell in enumerate(row)) + "</tr>"
        for row in table.rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _look(table: Table, column: int) -> str:
    if column < table.words or table.head[column].startswith("What"):
        return ' class="word"'
    return ' class="score"' if table.head[column] == "avg@k" else ""


def _titled(title: str, content: str) -> str:
    return f"<h3>{text(title)}</h3>{content}"


def _run(bundle: Bundle, name: str) -> str:
    run = bundle.runs[name]
    rows = "".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in {"Run": name, **settings(run)}.items())
    errata = [
        (suite, row.get("id", ""), row.get("kind", ""), row.get("action", ""), row.get("why", ""))
        for suite in run.scores
        for row in errata_of(run, suite)
    ]
    if not errata:
        return f"<dl>{rows}</dl>"
    table = html_table(Table(("Suite", "Problem", "kind", "done", "why"), tuple(errata), 5))
    return f'<dl>{rows}</dl><details class="more"><summary>Known faults of the benchmarks</summary>{table}</details>'


def _warnings(bundle: Bundle) -> str:
    lines = "".join(f"<li>{text(line)}</li>" for line in tables.incomplete(bundle))
    return f'<div class="note warn" role="alert">Not to be taken for good:<ul>{lines}</ul></div>' if lines else ""


def _compared(bundle: Bundle, compared: Sequence[Paired]) -> str:
    if len(bundle.runs) < 2:
        return ""
    parts = [html_table(tables.side_by_side(bundle))]
    if compared:
        parts.append(html_table(tables.pairs(compared)))
    base, *others = bundle.runs
    for name in others:
        rows = tuple(differing_settings(bundle.runs[base], bundle.runs[name]))
        table = html_table(Table(("Setting", base, name), rows, 3)) if rows else '<p class="note">None.</p>'
        parts.append(_titled(f"Settings that differ: {base}, {name}", table))
    for pair in compared:
        if pair.changes:
            suite = bundle.suites.index(pair.suite)
            title = f"{pair.suite}: {pair.base} to {pair.candidate}, problem by problem"
            left = f'<p class="note">{pair.left_out} problems have no judged sample in one of the runs.</p>'
            changed = charts.change_map(pair, suite) + (left if pair.left_out else "") + _most_changed(pair, suite)
            parts.append(_titled(title, changed))
    return "".join(parts)


def _most_changed(pair: Paired, suite: int) -> str:
    rows = "".join(
        f'<tr><td class="word"><button type="button" class="problem" data-run="" data-suite="{suite}"'
        f' data-problem="{text(change.problem_id)}">{text(change.problem_id)}</button></td>'
        f"<td>{change.base.right}/{change.base.judged}</td><td>{change.candidate.right}/{change.candidate.judged}</td>"
        f"<td>{change.points:+.0f}</td></tr>"
        for change in pair.most_changed()
    )
    if not rows:
        return '<p class="note">No problem changed.</p>'
    head = '<tr><th class="word">Most changed</th><th>before</th><th>after</th><th>points</th></tr>'
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _published(bundle: Bundle) -> str:
    parts = []
    for suite in bundle.suites:
        if found := tables.published_figures(bundle, suite):
            lines = [WINDOWS[suite]] if suite in WINDOWS else []
            lines += [f"Differs from every figure: {line}" for line in found.everywhere]
            notes = "".join(f'<p class="note">{text(line)}.</p>' for line in lines)
            parts.append(_titled(suite, notes + html_table(found.table)))
    return "".join(parts)


def _groups(bundle: Bundle) -> str:
    return "".join(
        _titled(f"{suite}, by {dimension}", html_table(table))
        for suite in bundle.suites
        for dimension, table in tables.groups(bundle, suite).items()
    )


def _per_score(bundle: Bundle, content: Callable[[Scored], str]) -> str:
    return "".join(_titled(f"{scored.name}, {scored.score.suite}", content(scored)) for scored in bundle.scored())


def _problems(bundle: Bundle) -> str:
    suites = bundle.suites
    return _per_score(bundle, lambda s: charts.heat_map(s.score, s.run, suites.index(s.score.suite)))


def _lengths(bundle: Bundle) -> str:
    def chart(scored: Scored) -> str:
        return charts.length_chart(bundle.runs[scored.name], scored.score.suite)

    return html_table(tables.tokens(bundle)) + _per_score(bundle, chart)


def _by_length(bundle: Bundle) -> str:
    return _per_score(bundle, lambda s: charts.accuracy_chart(bundle.runs[s.name], s.score.suite))
