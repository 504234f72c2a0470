"""A gate's result for people and machines: lines, JSON, Markdown for a pull request, JUnit XML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from klearbench.reports.links import report_link
from klearbench.reports.markdown import inline, pipe_table
from klearbench.reports.tables import Table, signed
from klearbench.scoring.gate import SuiteGate, Worse
from klearbench.scoring.measures import METRICS
from klearbench.scoring.plan import Plan
from klearbench.scoring.regress import GateResult
from klearbench.store import write_atomic
from klearbench.types import parquet_text

WORST_SHOWN = 10
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEADLINES = {
    "ok": "Gate passed",
    "regressed": "Regressed",
    "not_comparable": "Not comparable",
    "not_enough_data": "Not enough data",
    "error": "Bad input",
}
FILES = ("regress.json", "regress.md", "regress.xml")


def write_gate(folder: Path, result: GateResult, report: str | None = None) -> None:
    """Write FILES into a folder; each is replaced whole.

    Args:
        folder: made if it isn't there.
        result: the gate's.
        report: the candidate's report, as a link from that folder (a relative path or an address); None for no links.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = (json.dumps(gate_json(result, report), indent=1) + "\n", gate_markdown(result, report), gate_junit(result))
    for name, text in zip(FILES, texts, strict=True):
        write_atomic(folder / name, text)


def gate_json(result: GateResult, report: str | None = None) -> dict[str, Any]:
    """The whole result as plain values."""
    options, sides = result.options, result.sides or {}
    return {
        "format": 2,
        "status": result.status,
        "exit_code": result.exit_code,
        "field": result.field,
        "reason": result.reason,
        "options": {**asdict(options), "max_drop": dict(options.max_drop)},
        "base": dict(sides.get("base", {})),
        "candidate": dict(sides.get("candidate", {})),
        "notes": list(result.notes),
        "tests": [_test_json(test, report) for test in result.tests],
    }


def _test_json(test: SuiteGate, report: str | None) -> dict[str, Any]:
    row = asdict(test)
    for worse in row["worst"]:
        worse["link"] = report_link(report, test.suite, worse["problem_id"]) if report else None
    return row


def gate_lines(result: GateResult) -> Iterator[str]:
    """One line a test; of a test that regressed the problems that got worse."""
    for test in result.tests:
        yield test_line(test, result.options.confidence)
        if test.status == "regressed":
            for worse in test.worst[:WORST_SHOWN]:
                mark = " (beyond noise)" if worse.beyond_noise else ""
                yield f"    {worse.problem_id}: {_before_after(test, worse)}{mark}"
            if len(test.worst) > WORST_SHOWN:
                yield f"    and {len(test.worst) - WORST_SHOWN} more problems"


def test_line(test: SuiteGate, confidence: float) -> str:
    """One test in one line."""
    unit = "points" if test.unit == "points" else "%"
    ruled_out = "" if test.shown is None else f"; a drop of {test.shown:.1f} or more is ruled out"
    title = METRICS[test.metric].title.format(k=test.k)
    return (
        f"{test.suite} {title}: {test.base:.1f} -> {test.candidate:.1f} ({test.change:+.1f} {unit},"
        f" {100 * confidence:g} % interval {signed(test.interval)}, problems resampled"
        f" {signed(test.interval_problems)}): {test.status.replace('_', ' ')} (allowed drop {test.max_drop:g},"
        f" {_p(test.p_adjusted)}{ruled_out})"
    )


def _before_after(test: SuiteGate, worse: Worse) -> str:
    if test.unit == "%":
        return f"{worse.base:.0f} -> {worse.candidate:.0f} tokens"
    return f"{worse.base:g}/{worse.base_samples} -> {worse.candidate:g}/{worse.candidate_samples}"


def _p(value: float) -> str:
    return f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"


def plan_line(plan: Plan, *, prove: bool, confidence: float) -> str:
    """A plan in one line."""
    unit = "points" if plan.unit == "points" else "%"
    needs = f"k = {plan.samples}" if plan.samples is not None else "more samples than 65,536 a problem"
    title = METRICS[plan.metric].title.format(k=plan.k)
    bound = " at most (k = 1 tells no more)" if plan.between else ""
    noise = f"{plan.noise:.3f}{bound}"
    spread = f"mean p(1-p) {noise}" if plan.unit == "points" else f"scatter {noise} of the mean"
    what = (
        f"a true drop of {plan.drop:g} {unit} is shown to be below {plan.max_drop:g}"
        if prove
        else f"a true drop of {plan.drop:g} {unit} is seen (allowed drop {plan.max_drop:g})"
    )
    least = (
        f"the least margin shown in {100 * plan.power_asked:g} % of cases" if prove else "the least drop seen so often"
    )
    return (
        f"{plan.suite} {title}: {what} in {100 * plan.power:.0f} % of cases at {100 * confidence:g} % confidence with"
        f" {plan.problems} x {plan.k} samples; {100 * plan.power_asked:g} % needs {needs}; at k = {plan.k} {least} is"
        f" {plan.visible:.1f} {unit} ({spread})"
    )


def gate_markdown(result: GateResult, report: str | None = None) -> str:
    """A summary for a pull request."""
    return parquet_text("\n".join(_blocks(result, report)))


def _blocks(result: GateResult, report: str | None) -> Iterator[str]:
    yield f"## {_HEADLINES[result.status]}: klearbench regress\n"
    if result.reason:
        yield f"**{inline(f'{result.field}: {result.reason}')}**\n"
    if result.tests:
        yield pipe_table(_table(result))
        yield (
            f"Paired by problem, one-sided, {100 * result.options.confidence:g} % confidence"
            f"{', the allowed drop has to be shown' if result.options.prove else ''}; intervals of the change:"
            " problems fixed, then problems resampled.\n"
        )
    for test in result.tests:
        yield from _worse_block(test, report)
    if sides := result.sides:
        yield pipe_table(_sides(sides))
    if result.notes:
        yield "".join(f"- Note: {inline(note)}\n" for note in result.notes)
    if report:
        yield f"[The candidate's report](<{report_link(report)}>)\n"


def _table(result: GateResult) -> Table:
    head = ("Suite", "Metric", "Base", "Candidate", "Change", "Interval", "Problems resampled", "Allowed drop",
            "Ruled out from", "p", "Result")  # fmt: skip
    rows = tuple(
        (
            test.suite,
            METRICS[test.metric].title.format(k=test.k),
            f"{test.base:.1f}",
            f"{test.candidate:.1f}",
            f"{test.change:+.1f}{' %' if test.unit == '%' else ''}",
            signed(test.interval),
            signed(test.interval_problems),
            f"{test.max_drop:g}",
            "-" if test.shown is None else f"{test.shown:.1f}",
            _p(test.p_adjusted).removeprefix("p ").removeprefix("= "),
            test.status.replace("_", " "),
        )
        for test in result.tests
    )
    return Table(head, rows, 2)


def _worse_block(test: SuiteGate, report: str | None) -> Iterator[str]:
    """The problems that got worse, with links; folded, unless the test failed."""
    if not test.worst:
        return
    title = f"{test.suite}, {METRICS[test.metric].title.format(k=test.k)}"
    opened = " open" if test.status == "regressed" else ""
    head = f"{_html(title)}: {len(test.worst)} of {test.problems} problems got worse"
    yield f"<details{opened}><summary>{head}</summary>\n"
    for worse in test.worst[:WORST_SHOWN]:
        name = inline(worse.problem_id)
        link = f"[{name}](<{report_link(report, test.suite, worse.problem_id)}>)" if report else name
        yield f"- {link}: {_before_after(test, worse)}{', beyond noise by itself' * bool(worse.beyond_noise)}"
    if len(test.worst) > WORST_SHOWN:
        yield f"- and {len(test.worst) - WORST_SHOWN} more (regress.json has all)"
    yield "\n</details>\n"


def _html(text: str) -> str:
    return inline(text).replace("&", "&amp;").replace("\\<", "&lt;").replace("\\>", "&gt;")


def _sides(sides: Mapping[str, Mapping[str, Any]]) -> Table:
    names = [name for name in sides["base"] if any(side.get(name) is not None for side in sides.values())]
    cells = [
        (name.replace("_", " "), *(_cell(sides[side].get(name)) for side in ("base", "candidate"))) for name in names
    ]
    return Table(("", "Base", "Candidate"), tuple(cells), 3)


def _cell(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text[:16] if re.fullmatch("[0-9a-f]{64}", text) else text


def gate_junit(result: GateResult) -> str:
    """JUnit XML: a case a test; what can't be decided is an error, a regression a failure."""
    faults = {"regressed": "failures", "too_few": "errors", "undecided": "errors"}
    statuses = [faults.get(test.status) for test in result.tests]
    whole = result.reason is not None and not any(statuses)
    counts = {name: str(statuses.count(name) + (whole if name == "errors" else 0)) for name in ("failures", "errors")}
    suite = ElementTree.Element(
        "testsuite", {"name": "klearbench regress", "tests": str(len(statuses) + whole), **counts}
    )
    for test in result.tests:
        case = ElementTree.SubElement(suite, "testcase", classname=_xml(test.suite), name=test.metric)
        line = _xml(test_line(test, result.options.confidence))
        if fault := faults.get(test.status):
            element = ElementTree.SubElement(case, fault.removesuffix("s"), message=line, type=test.status)
            element.text = "\n".join(_xml(f"{w.problem_id}: {_before_after(test, w)}") for w in test.worst)
        else:
            ElementTree.SubElement(case, "system-out").text = line
    if whole:
        case = ElementTree.SubElement(suite, "testcase", classname="regress", name="comparable")
        ElementTree.SubElement(case, "error", message=_xml(str(result.reason)), type=_xml(str(result.field)))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Text without what no XML may hold."""
    return _NOT_XML.sub("\ufffd", text)
