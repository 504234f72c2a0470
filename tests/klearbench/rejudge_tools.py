"""A small run of sums, edited and judged again: what the tests of `klearbench score --rejudge` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tools import ToyEngine, jsonl, write_jsonl

from klearbench.changes import Rejudged
from klearbench.engines.base import Request
from klearbench.evaluate import EvalOptions, evaluate
from klearbench.rejudge import rejudge
from klearbench.suites.base import Suite
from klearbench.suites.registry import load_suite

MATH = [{"id": f"q{i}", "problem": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(6)]


def right_if_even(request: Request) -> str:
    number = int(request.place[0][1:])
    return f"So \\boxed{{{number + 1 if number % 2 == 0 else 99}}}"


def sums(tmp_path: Path, rows: Iterable[dict[str, Any]] = MATH) -> Suite:
    return load_suite(str(write_jsonl(tmp_path / "sums.jsonl", rows)))


def make(tmp_path: Path) -> Path:
    """A run of 6 problems, 2 samples each: those of q0, q2 and q4 are right, so it scores 50."""
    evaluate(tmp_path / "run", [sums(tmp_path)], ToyEngine(right_if_even), EvalOptions(samples=2))
    return tmp_path / "run"


def again(path: Path, **more: Any) -> Rejudged:
    """Judge a run of the suite above again."""
    return rejudge(path, suite_files=[str(path.parent / "sums.jsonl")], **more)


def edit(path: Path, change: Callable[[int, dict[str, Any]], None], name: str = "verdicts.jsonl") -> None:
    rows = jsonl(path / name)
    for number, row in enumerate(rows):
        change(number, row)
    write_jsonl(path / name, rows)


def edit_first(**fields: Any) -> Callable[[int, dict[str, Any]], None]:
    return lambda number, row: row.update(fields) if number == 0 else None
