"""One HTML file about one or several evaluation runs: scores, charts, and a viewer of the samples. No network.

Safety: text from models reaches the page in two ways only. Static parts are escaped here; the viewer's rows are JSON
in which `<` is escaped, and the script puts them on the page as text. A Content-Security-Policy with the script's hash
lets no other script run and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from klearbench.errors import UsageError
from klearbench.reports.text import interval, points
from klearbench.run import flatten
from klearbench.scoring.metrics import EvalRun, SuiteScore, read_eval
from klearbench.store import dumps, write_atomic
from klearbench.types import FinishReason, Sample, Status, Verdict, parquet_text

MAX_BYTES = 20_000_000
_BINS = 40
_CLIP = 2_000
_OUTSIDE = ("engine_error", "not_judged")  # how a sample can end without a verdict of its own
_ENDS = (*Status, *_OUTSIDE)


def write_report(runs: Sequence[Path], out: Path, *, max_bytes: int = MAX_BYTES) -> None:
    """Write the report of run folders of `klearbench eval` to one file, whole or not at all.

    Args:
        runs: the folders, at least one; the order is that of the table.
        out: the HTML file.
        max_bytes: the file's size, about. Beyond it the longest completions are left out, then rows of samples; the
            page says how many. Scores and charts always cover all samples.

    Raises:
        UsageError: no run given; DataError: not a run folder of `eval`, or a corrupt file; DiskFull.
    """
    if not runs:
        raise UsageError("a report needs at least one run folder")
    evals = dict(zip(_names(runs), (read_eval(path) for path in runs), strict=True))
    page = _page(evals)
    room = max_bytes - len(page.safe_substitute(data="", left_out="").encode("utf-8", "replace"))
    rows, left_out = _fit(list(_rows(evals)), room)
    suites = list(dict.fromkeys(suite for run in evals.values() for suite in run.scores))
    head = {"runs": list(evals), "suites": suites, "statuses": list(_ENDS)}
    data = f'{_json(head)[:-1]},"rows":[{",".join(rows)}]}}'
    note = f'<p class="note warn">{_text(left_out)}</p>' if left_out else ""
    write_atomic(out, page.substitute(data=data, left_out=note))


def _page(evals: Mapping[str, EvalRun]) -> Template:
    """The page without its samples: `$data` and `$left_out` are still open."""
    parts = {name: _resource(f"report.{name}") for name in ("css", "js")}
    digest = base64.b64encode(hashlib.sha256(parts["js"].encode()).digest()).decode()
    scored = [(name, i, score) for i, (name, run) in enumerate(evals.items()) for score in run.scores.values()]
    suites = list(dict.fromkeys(score.suite for _, _, score in scored))
    closed = {
        "policy": f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "title": _text("Evaluation of " + ", ".join(evals)),
        "css": parts["css"],
        "script": parts["js"],
        "about": "".join(_about(name, run) for name, run in evals.items()),
        "table": _table(scored),
        "split": "".join(_titled(name, score, _split(score)) for name, _, score in scored),
        "heat": "".join(_titled(name, s, _heat(s, i, suites.index(s.suite))) for name, i, s in scored),
        "lengths": "".join(_titled(name, s, _lengths(evals[name], s.suite)) for name, _, s in scored),
    }
    open_ = {"data": "$data", "left_out": "$left_out"}
    escaped = {key: value.replace("$", "$$") for key, value in closed.items()}
    return Template(Template(_resource("template.html")).substitute(escaped, **open_))


def _resource(name: str) -> str:
    return resources.files("klearbench.reports").joinpath(name).read_text(encoding="utf-8")


def _names(runs: Sequence[Path]) -> list[str]:
    """Short names that tell the runs apart: the folder's, with its parent's or a number where two are the same."""
    names = [path.resolve().name for path in runs]
    if len(set(names)) < len(names):
        names = ["/".join(path.resolve().parts[-2:]) for path in runs]
    if len(set(names)) < len(names):
        names = [f"{name} ({i})" for i, name in enumerate(names, start=1)]
    return [parquet_text(name) for name in names]


def _text(value: object) -> str:
    """Any value as HTML text or attribute; what UTF-8 can't hold is replaced."""
    return escape(parquet_text(str(value)))


def _json(value: Any) -> str:
    """JSON that can stand in a script element: ASCII, no `<`."""
    return dumps(value).replace("<", "\\u003c")


def _about(name: str, run: EvalRun) -> str:
    config = run.config
    sampling = ", ".join(f"{k} {v}" for k, v in config.get("sampling", {}).items() if v is not None)
    engine = ", ".join(f"{k} {v}" for k, v in flatten(config.get("engine", {})).items() if v is not None)
    judge = config.get("judge")
    judge = ", ".join(str(v) for v in judge.values()) if isinstance(judge, Mapping) else judge
    rows = {
        "Run": name,
        "Model": run.manifest.get("about", {}).get("model", "-"),
        "Engine": engine,
        "Sampling": f"{config['samples']} a problem, seed {config.get('seed')}, {sampling}",
        "Prompt, judge": f"{config.get('prompt')}, {judge}",
        "Made": run.manifest.get("created", "-"),
    }
    return "<dl>" + "".join(f"<dt>{_text(k)}</dt><dd>{_text(v)}</dd>" for k, v in rows.items()) + "</dl>"


def _table(scored: Sequence[tuple[str, int, SuiteScore]]) -> str:
    header = (
        *("Run", "Suite", "avg@k", "95 % interval", "problems resampled", "pass@k", "maj@k", "k", "problems"),
        *("truncated", "no answer", "at the limit", "of these right"),
        *("judge errors", "engine errors", "missing", "mean tokens", "median", "90 %"),
    )
    head = "".join(f"<th>{_text(name)}</th>" for name in header)
    body = "".join(_table_row(name, score) for name, _, score in scored)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _table_row(name: str, score: SuiteScore) -> str:
    tokens = score.tokens
    mark = "" if score.complete else " (incomplete)"
    share = "-" if score.truncated_share is None else f"{100 * score.truncated_share:.1f} %"
    average = f'<td class="score">{_text(points(score.avg, none="no score") + mark)}</td>'
    cells = (
        *(interval(score.interval), interval(score.interval_problems)),
        *(points(score.pass_at_k), points(score.maj_at_k), score.k, score.problems),
        *(share, score.counts[Status.no_answer], score.at_limit, score.limit_but_right),
        *(score.judge_errors, score.engine_errors, score.missing),
        *((f"{tokens.mean:.0f}", tokens.p50, tokens.p90) if tokens else ("-", "-", "-")),
    )
    rest = "".join(f"<td>{_text(cell)}</td>" for cell in cells)
    return f"<tr><td>{_text(name)}</td><td>{_text(score.suite)}</td>{average}{rest}</tr>"


def _titled(name: str, score: SuiteScore, content: str) -> str:
    return f"<h3>{_text(name)}, {_text(score.suite)}</h3>{content}"


def _split(score: SuiteScore) -> str:
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


def _heat(score: SuiteScore, run: int, suite: int) -> str:
    """One cell a problem, coloured by the share of right samples; `run` and `suite` are places in the data's lists."""
    cells = []
    for row in score.per_problem:
        look = f'style="--share:{100 * row.right / row.judged:.0f}"' if row.judged else 'class="none"'
        where = f'data-run="{run}" data-suite="{suite}" data-problem="{_text(row.problem_id)}"'
        title = _text(f"{row.problem_id}: {row.right} of {row.judged} right, {row.truncated} truncated")
        cells.append(f'<button type="button" {look} {where} title="{title}" aria-label="{title}"></button>')
    return f'<div class="heat">{"".join(cells)}</div>'


def _lengths(run: EvalRun, suite: str) -> str:
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
    shapes = []
    for x, counts in enumerate(bins):
        y = 100.0
        for name, count in zip(("right", "cut", "wrong"), counts, strict=True):
            height = 100 * count / top
            y -= height
            if count:
                shapes.append(f'<rect class="{name}" x="{x}" y="{y:.2f}" width="0.9" height="{height:.2f}"/>')
    label = f"{len(samples)} completions of 0 to {longest} tokens, at most {top} in one of {_BINS} bins"
    svg = f'<svg viewBox="0 0 {_BINS} 100" preserveAspectRatio="none" role="img" aria-label="{label}">'
    key = '<p class="key"><span><i class="correct"></i>right</span><span><i class="truncated"></i>truncated</span>'
    axis = f'<div class="axis"><span>0</span><span>{label}</span><span>{longest}</span></div>'
    return f"{svg}{''.join(shapes)}</svg>{axis}{key}<span><i></i>others</span></p>"


def _rows(evals: Mapping[str, EvalRun]) -> Iterable[list[Any]]:
    """The viewer's rows (their fields are listed in report.js), in the order of run, suite, problem and index."""
    suites = list(dict.fromkeys(suite for run in evals.values() for suite in run.scores))
    for number, run in enumerate(evals.values()):
        verdicts = {v.key: v for v in run.verdicts}
        places = {
            (suite, row.problem_id): (suites.index(suite), place)
            for suite, score in run.scores.items()
            for place, row in enumerate(score.per_problem)
        }
        known = [sample for sample in run.samples if sample.key[:2] in places]
        for sample in sorted(known, key=lambda s: (*places[s.key[:2]], s.sample_index)):
            yield _row(number, places[sample.key[:2]][0], sample, verdicts.get(sample.key))


def _row(run: int, suite: int, sample: Sample, verdict: Verdict | None) -> list[Any]:
    end: str = verdict.status if verdict else "not_judged"
    if sample.finish_reason is FinishReason.error:
        end = "engine_error"
    extracted = None if verdict is None or verdict.extracted is None else verdict.extracted[:_CLIP]
    return [
        *(run, suite, sample.problem_id, sample.sample_index, _ENDS.index(end), sample.completion_tokens),
        int(sample.finish_reason is FinishReason.length),
        *(extracted, verdict.detail[:_CLIP] if verdict else "", sample.completion, len(sample.completion)),
    ]


def _fit(rows: Sequence[list[Any]], room: int) -> tuple[list[str], str]:
    """Rows as JSON within `room` bytes, and one line about what was left out (empty: nothing)."""
    full = [_json(row) for row in rows]
    if sum(map(len, full)) + len(full) <= room:
        return full, ""
    kept, used = [], 0
    for row in rows:
        bare = _json([*row[:9], None, row[10]])
        used += len(bare) + 1
        if used > room:
            used -= len(bare) + 1
            break
        kept.append(bare)
    texts = 0
    for i in sorted(range(len(kept)), key=lambda i: len(full[i])):
        used += len(full[i]) - len(kept[i])
        if used > room:
            break
        kept[i] = full[i]
        texts += 1
    gone = f"{len(kept) - texts} completions, the longest ones"
    if len(kept) < len(rows):
        gone += f", and {len(rows) - len(kept)} whole samples, the last ones"
    return kept, f"To keep this file small, {gone}, are left out here; they are in the run folder's samples.jsonl."
