"""`klearbench regress` and `baseline`: their flags, and what they print and write."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from klearbench.clitools import Finite
from klearbench.errors import EXIT_OK, IncompleteError, UsageError

F = TypeVar("F", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)
_METRICS = ("avg@k", "truncated", "length", "judge-errors")

_FLAGS: Sequence[Callable[[F], F]] = (
    click.option(
        "--max-drop",
        "max_drops",
        multiple=True,
        metavar="[NAME=]POINTS",
        help="Drop that is allowed, in points (lengths: a rise in percent); NAME is a suite, a metric or SUITE:METRIC;"
        " repeatable.  [default: 0]",
    ),
    click.option(
        "--confidence",
        default=0.95,
        show_default=True,
        type=Finite(0.5, 1, max_open=True),
        help="1 - the share of false alarms.",
    ),
    click.option(
        "--metric",
        "metrics",
        multiple=True,
        type=click.Choice(_METRICS),
        help="What is compared; repeatable.  [default: avg@k]",
    ),
    click.option("--suite", "suites", multiple=True, help="Only this suite; repeatable.  [default: all]"),
    click.option("--prove", is_flag=True, help="Pass only if the drop is shown to be below --max-drop; else exit 3."),
    click.option(
        "--max-judge-errors",
        default=0.0,
        show_default=True,
        type=Finite(0, 100),
        help="Percent of a suite's samples that a judge may have failed on.",
    ),
    click.option(
        "--plan",
        is_flag=False,
        flag_value=3.0,
        type=Finite(0, 100),
        help="Of BASE alone: how many samples see a true drop of so many points (3 if no number follows).",
    ),
    click.option(
        "--power", default=0.8, show_default=True, type=Finite(0, 1, min_open=True, max_open=True), help="Of --plan."
    ),
    click.option("--report", help="The candidate's report, to link to (default: its report.html)."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    click.option(
        "-o", "--out", type=_PATH, help="Folder for regress.json, regress.md (Markdown), regress.xml (JUnit)."
    ),
)


def flags(command: F) -> F:
    """All flags of `klearbench regress`."""
    for flag in reversed(_FLAGS):
        command = flag(command)
    return command


def run_regress(base: Path, candidate: Path | None, given: Mapping[str, Any]) -> int:
    """Gate a run, or plan one; print a line a test (or one JSON object), write the files, and return the exit code.

    Raises:
        UsageError: bad input; IncompleteError: not comparable, or not enough data (exit 3). The files are written
        before, whatever the result is.
    """
    from klearbench.scoring.gate import GateOptions

    options = GateOptions(
        metrics=given["metrics"] or ("avg@k",),
        max_drop=dict(map(_allowed, given["max_drops"])),
        confidence=given["confidence"],
        prove=given["prove"],
        max_judge_errors=given["max_judge_errors"],
        suites=tuple(dict.fromkeys(given["suites"])),
    )
    if given["plan"] is not None:
        return _plan(base, given["plan"], options, given)
    if candidate is None:
        raise UsageError("regress needs BASE and CANDIDATE (--plan needs BASE alone)")
    return _gate(base, candidate, options, given)


def _allowed(text: str) -> tuple[str, float]:
    """A value of --max-drop: the name it is for ("" for all) and the points."""
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise UsageError(
            f"--max-drop {text!r}: write points, or NAME=POINTS with a suite, a metric or SUITE:METRIC as the name,"
            f" e.g. --max-drop 1 --max-drop lcb-v5=2"
        ) from None


def _gate(base: Path, candidate: Path, options: Any, given: Mapping[str, Any]) -> int:
    from klearbench.reports.gate import gate_json, gate_lines, write_gate
    from klearbench.scoring.regress import GateResult, regress, usage_error

    folder, report = given["out"], given["report"]
    if report is None and (candidate / "report.html").is_file():
        report = Path(os.path.relpath(candidate / "report.html", folder or Path())).as_posix()

    def tell(result: GateResult) -> None:
        if folder is not None:
            write_gate(folder, result, report)
        if given["as_json"]:
            click.echo(json.dumps(gate_json(result, report), indent=1))

    try:
        result = regress(base, candidate, options)
        suites = {test.suite for test in result.tests}
        if suites and (unknown := options.unknown_drop(suites)):  # where nothing was tested, names can't be told
            raise UsageError(f"--max-drop {unknown}")
    except UsageError as error:
        tell(usage_error(error, options))
        raise
    tell(result)
    for note in result.notes:
        click.echo(f"note: {note}", err=True)
    for line in () if given["as_json"] else gate_lines(result):
        click.echo(line)
    if result.reason is not None:
        raise IncompleteError(f"{result.status.replace('_', ' ')} ({result.field}): {result.reason}")
    return result.exit_code


def _plan(base: Path, drop: float, options: Any, given: Mapping[str, Any]) -> int:
    from dataclasses import asdict

    from klearbench.reports.gate import plan_line
    from klearbench.scoring.comparable import Mismatch
    from klearbench.scoring.plan import plan
    from klearbench.scoring.regress import read_side

    run = read_side(base)
    if isinstance(run, Mismatch):
        raise IncompleteError(f"not comparable ({run.field}): {run.reason}")
    plans = plan(run, drop, options, given["power"])
    if given["as_json"]:
        click.echo(json.dumps({"format": 1, "base": str(base), "plans": [asdict(p) for p in plans]}, indent=1))
    for found in () if given["as_json"] else plans:
        click.echo(plan_line(found, prove=options.prove, confidence=options.confidence))
    return EXIT_OK


def run_baseline(run: Path, out: Path, max_judge_errors: float) -> None:
    """Store a run as a baseline and print its hash."""
    from klearbench.scoring.baseline import write_baseline

    if out.is_dir():
        raise UsageError(f"{out} is a folder; -o needs a file, e.g. {out / 'baseline.json'}")
    click.echo(f"baseline: {out} (sha256 {write_baseline(run, out, max_judge_errors=max_judge_errors)})")
