"""Charts as static HTML and SVG, without a script: how samples ended, problems, lengths, accuracy against length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from klearbench.reports.compare import Paired
from klearbench.scoring.metrics import EvalRun, SuiteScore
from klearbench.scoring.uncertainty import Count, Interval, z_two_sided
from klearbench.types import FinishReason, Status, parquet_text

_BINS = 40
_GROUPS = 10
_FEWEST = 10
"""Bins of lengths; quantiles of lengths at most, and the samples that each should have at least."""
_WIDTH, _HEIGHT, _LEFT, _BELOW, _RIGHT = 640, 150, 44, 22, 26
"""Of a chart with axes, in units of its own: the whole, without what is left and right of the plot and below it."""


def text(value: object) -> str:
    """Any value as HTML text or attribute; what UTF-8 can't hold is replaced."""
    return escape(parquet_text(str(value)))


def split_bar(score: SuiteScore) -> str:
    """A bar of how the samples ended, and its key."""
    ends = {**score.counts, "engine_error": score.engine_errors, "missing": score.missing}
    ends = {name: count for name, count in ends.items() if count}
    total = sum(ends.values())
    bar = "".join(f'<i class="{name}" style="width:{100 * count / total:.3f}%"></i>' for name, count in ends.items())
    key = "".join(
        f'<span><i class="{name}"></i>{name.replace("_", " ")} {count} ({100 * count / total:.1f} %)</span>'
        for name, count in ends.items()
    )
    return f'<div class="bar">{bar}</div><p class="key">{key}</p>'


def heat_map(score: SuiteScore, run: int, suite: int) -> str:
    """One cell a problem, coloured by the share of right samples; `run` and `suite` are places in the data's lists."""
    cells = []
    for row in score.per_problem:
        look = f'style="--share:{100 * row.right / row.judged:.0f}"' if row.judged else 'class="none"'
        title = f"{row.problem_id}: {row.right} of {row.judged} right, {row.truncated} truncated"
        cells.append(_cell(look, run, suite, row.problem_id, title))
    return f'<div class="heat">{"".join(cells)}</div>'


def change_map(pair: Paired, suite: int) -> str:
    """One cell a problem, coloured by the change of its share: worse, the same, better; in full from 60 points on."""
    cells = []
    for change in pair.changes:
        worse, better = (min(100.0, max(0.0, sign * change.points / 0.6)) for sign in (-1, 1))
        title = f"{change.problem_id}: {_of(change.base)} before, {_of(change.candidate)} after"
        look = f'style="--worse:{worse:.0f}%;--better:{better:.0f}%"'
        cells.append(_cell(look, None, suite, change.problem_id, title))
    return f'<div class="heat change">{"".join(cells)}</div>'


def _of(count: Count) -> str:
    return f"{count.right} of {count.judged} right"


def _cell(look: str, run: int | None, suite: int, problem: str, title: str) -> str:
    where = f'data-run="{"" if run is None else run}" data-suite="{suite}" data-problem="{text(problem)}"'
    return f'<button type="button" {look} {where} title="{text(title)}" aria-label="{text(title)}"></button>'


def length_chart(run: EvalRun, suite: str) -> str:
    """A histogram of completion tokens: right below, truncated in the middle, all others on top."""
    right, cut = ({v.key for v in run.verdicts if v.status is s} for s in (Status.correct, Status.truncated))
    samples = [s for s in run.samples if s.suite == suite and s.finish_reason is not FinishReason.error]
    longest = max((s.completion_tokens for s in samples), default=0)
    if not longest:
        return '<p class="note">No token counts.</p>'
    bins = [[0, 0, 0] for _ in range(_BINS)]
    for sample in samples:
        place = min(_BINS - 1, sample.completion_tokens * _BINS // longest)
        bins[place][0 if sample.key in right else 1 if sample.key in cut else 2] += 1
    top = max(sum(counts) for counts in bins)
    label = f"{len(samples)} completions of 0 to {longest} tokens, at most {top} in one of {_BINS} bins"
    axes = _axes(longest, [(0, "0"), (top, f"{top:,}")], top)
    key = '<p class="key"><span><i class="correct"></i>right</span><span><i class="truncated"></i>truncated</span>'
    return f"{_svg(label, axes + _stacks(bins, top))}{key}<span><i></i>others</span></p>"


def _stacks(bins: Sequence[Sequence[int]], top: int) -> str:
    width = (_WIDTH - _LEFT - _RIGHT) / _BINS
    shapes = []
    for place, counts in enumerate(bins):
        y = float(_HEIGHT)
        for name, count in zip(("right", "cut", "wrong"), counts, strict=True):
            height = _HEIGHT * count / top
            y -= height
            if count:
                box = f'x="{_LEFT + place * width:.1f}" y="{y:.1f}" width="{width - 1.5:.1f}" height="{height:.1f}"'
                shapes.append(f'<rect class="{name}" {box}/>')
    return "".join(shapes)


class Bin(NamedTuple):
    """Samples of about one length: tokens from, to and on average; judged and right ones; 95 % interval in points."""

    low: int
    high: int
    mean: float
    judged: int
    right: int
    interval: Interval

    @property
    def points(self) -> float:
        return 100 * self.right / self.judged


def accuracy_by_length(run: EvalRun, suite: str) -> list[Bin]:
    """A suite's judged samples in quantiles of their tokens: ten at most, about ten samples in each at least.

    Samples of equal length are never parted, so bins may differ in size. The intervals (Wilson's) take all samples of a
    bin for draws from one pool, whatever their problems are.
    """
    judged = {v.key: v.status is Status.correct for v in run.verdicts if v.status is not Status.judge_error}
    found = [
        (s.completion_tokens, judged[s.key])
        for s in run.samples
        if s.suite == suite and s.key in judged and s.finish_reason is not FinishReason.error
    ]
    if not found:
        return []
    found.sort(key=lambda row: row[0])
    groups = max(1, min(_GROUPS, len(found) // _FEWEST))
    edges = sorted({found[len(found) * i // groups][0] for i in range(groups)})
    bins = []
    for low, above in zip(edges, [*edges[1:], None], strict=True):
        rows = [row for row in found if low <= row[0] and (above is None or row[0] < above)]
        right = sum(good for _, good in rows)
        mean = sum(tokens for tokens, _ in rows) / len(rows)
        bins.append(Bin(low, rows[-1][0], mean, len(rows), right, wilson(right, len(rows))))
    return bins


def wilson(right: int, judged: int) -> Interval:
    """Wilson's 95 % score interval of a share, in points (Wilson 1927; `judged` is above 0)."""
    z2 = z_two_sided(0.95) ** 2
    share = right / judged
    middle = share + z2 / (2 * judged)
    half = math.sqrt(z2 * (share * (1 - share) + z2 / (4 * judged)) / judged)
    scale = 100 / (1 + z2 / judged)
    return (scale * (middle - half), scale * (middle + half))


def accuracy_chart(run: EvalRun, suite: str) -> str:
    """Accuracy against length: a point a bin with its interval, and the bin's range as a line."""
    bins = accuracy_by_length(run, suite)
    if not bins or not bins[-1].high:
        return '<p class="note">Nothing was judged, or there are no token counts.</p>'
    longest = bins[-1].high
    shapes = [_axes(longest, [(0, "0"), (50, "50"), (100, "100 %")], 100)]
    for row in bins:
        x, y = _x(row.mean, longest), _y(row.points, 100)
        title = f"{row.low:,} to {row.high:,} tokens: {row.right} of {row.judged} right ({row.points:.1f} %)"
        low, high = row.interval
        shapes.append(
            f'<g class="point"><title>{title}</title>'
            f'<path d="M{_x(row.low, longest):.1f} {y:.1f}H{_x(row.high, longest):.1f}'
            f'M{x:.1f} {_y(low, 100):.1f}V{_y(high, 100):.1f}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/></g>'
        )
    label = f"Share of right samples in {len(bins)} bins of length, with 95 % intervals"
    return _svg(label, "".join(shapes)) + _bin_table(bins)


def _bin_table(bins: Sequence[Bin]) -> str:
    def cells(row: Bin) -> str:
        between = f"{row.interval[0]:.1f} to {row.interval[1]:.1f}"
        values = (f"{row.low:,} to {row.high:,}", row.judged, f"{row.points:.1f}", between)
        return "<tr>" + "".join(f"<td>{value}</td>" for value in values) + "</tr>"

    head = "".join(f"<th>{name}</th>" for name in ("Tokens", "samples", "right, %", "95 % interval"))
    body = "".join(map(cells, bins))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<details class="more"><summary>As a table</summary><div class="scroll">{table}</div></details>'


def _x(value: float, longest: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / longest


def _y(value: float, top: float) -> float:
    return _HEIGHT - _HEIGHT * value / top


def _axes(longest: int, marks: Sequence[tuple[float, str]], top: float) -> str:
    """Lines at some heights with their labels, and five marks of tokens below."""
    lines = "".join(
        f'<path class="rule" d="M{_LEFT} {_y(value, top):.1f}H{_WIDTH - _RIGHT}"/>'
        f'<text class="y" x="{_LEFT - 6}" y="{_y(value, top):.1f}">{label}</text>'
        for value, label in marks
    )
    steps = range(5) if longest >= 4 else (0, 4)
    ticks = "".join(
        f'<text class="x" x="{_x(longest * i / 4, longest):.1f}" y="{_HEIGHT + 15}">{longest * i // 4:,}</text>'
        for i in steps
    )
    return lines + ticks


def _svg(label: str, inside: str) -> str:
    box = f"0 -10 {_WIDTH} {_HEIGHT + _BELOW + 10}"
    return f'<svg viewBox="{box}" role="img" aria-label="{label}">{inside}</svg>'
