"""Suites read from files: the rows of a known benchmark, or any JSONL / Parquet file of the user's.

A row is `{"id": .., "problem": .., "answer": ..}` with optional `source`, `date`, `rule`, or, for a program,
`{"id": .., "problem": .., "tests": [{"input": .., "output": ..}]}` with what else `coderows` reads. Other columns are
kept in `meta`, except those that usually hold a solution or an answer, which are dropped. A suite of one's own is such
a file, or a small YAML that maps other column names:

    name: mine
    file: rows.parquet            # relative to the YAML
    fields: {id: uid, problem: question, answer: gold}
    rule: expression
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from klearbench.errors import DataError, UsageError
from klearbench.store import content_hash, read_rows
from klearbench.suites.base import Suite
from klearbench.suites.coderows import read_code_row
from klearbench.types import Answer, Kind, Problem, Reference

_SECRET = (
    *("answer", "answers", "final_answer", "expected_answer", "reference_answer", "reference", "gold", "ground_truth"),
    *("target", "solution", "solutions", "generated_solution", "reward_model", "canonical_solution"),
    *("tests", "test", "test_list", "test_cases", "public_test_cases", "private_test_cases", "input_output", "checker"),
)
"""Columns that hold an answer, or as good as one, in well-known datasets: they never enter a Problem."""
_Column = Literal["id", "problem", "answer", "source", "date", "rule"]
_COLUMNS = get_args(_Column)


def load_problem_file(
    path: Path,
    name: str,
    *,
    rule: str = "expression",
    rules: Mapping[str, str] | None = None,
    fields: Mapping[str, str] | None = None,
    count: int | None = None,
) -> Suite:
    """Read problems, of mathematics or of programming.

    Args:
        path: JSONL or Parquet.
        name: the suite's name.
        rule: how answers are compared, unless the row says otherwise.
        rules: problem id -> rule, for the rows that are compared in another way.
        fields: our column name -> the file's, for `id`, `problem`, `answer`.
        count: how many problems there must be.

    Raises:
        DataError: missing file, corrupt row (its line is named), doubled id, or another count.
    """
    columns = {c: c for c in _COLUMNS} | dict(fields or {})
    problems: dict[str, Problem] = {}
    answers: dict[str, Reference] = {}
    for line, row in _rows(path):
        texts = {c: row.get(columns[c]) for c in _COLUMNS}
        kind = _kind(row, texts)
        for column in ("id", "problem", "answer") if kind is Kind.math else ("id", "problem"):
            if not isinstance(texts[column], str | int) or texts[column] == "":
                raise DataError(path, f"{columns[column]!r} is missing or no text", line)
        key = str(texts["id"])
        if key in problems:
            raise DataError(path, f"id {key!r} stands twice", line)
        problems[key] = _problem(name, key, kind, texts, row, columns)
        if kind is Kind.code:
            answers[key] = read_code_row(path, line, {**row, "id": key})
        else:
            answers[key] = Answer(key, str(texts["answer"]), str(texts["rule"] or (rules or {}).get(key, rule)))
    if count is not None and len(problems) != count:
        raise DataError(path, f"suite {name!r} has {count} problems, the file has {len(problems)}")
    if not problems:
        raise DataError(path, "holds no problem")
    return Suite(name, tuple(problems.values()), answers, content_hash(path))


def _kind(row: Mapping[str, Any], texts: Mapping[str, Any]) -> Kind:
    """A row with tests asks for a program, and so does one that says it does and has no answer."""
    code = row.get("tests") is not None or (row.get("kind") == "code" and texts["answer"] is None)
    return Kind.code if code else Kind.math


def _problem(
    suite: str, key: str, kind: Kind, texts: Mapping[str, Any], row: Mapping[str, Any], columns: Mapping[str, str]
) -> Problem:
    hidden = {*columns.values(), *_SECRET}
    return Problem(
        id=key,
        suite=suite,
        kind=kind,
        prompt=({"role": "user", "content": str(texts["problem"])},),
        source=str(texts["source"] or ""),
        date=None if texts["date"] is None else str(texts["date"]),
        meta={k: v for k, v in row.items() if k not in hidden},
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if path.suffix != ".parquet":
        yield from read_rows(path)
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        raise DataError(path, "no such file") from None
    except (OSError, pa.ArrowException) as error:
        raise DataError(path, f"not a readable Parquet file ({str(error).splitlines()[0]})") from None
    yield from enumerate(table.to_pylist(), start=1)


def load_suite_file(path: Path) -> Suite:
    """A user's own suite: JSONL, Parquet, or a YAML beside them. Raises DataError or ConfigError."""
    if path.suffix in (".yaml", ".yml"):
        from pydantic import Field

        from klearbench.config import Section, load_recipe

        class SuiteFile(Section):
            name: str
            file: str
            fields: dict[_Column, str] = Field(default_factory=dict)
            rule: str = "expression"

        spec = load_recipe(path, SuiteFile)
        return load_problem_file(
            path.parent / spec.file, spec.name, rule=spec.rule, fields={str(k): v for k, v in spec.fields.items()}
        )
    if path.suffix not in (".jsonl", ".parquet"):
        raise UsageError(f"{path}: a suite file ends in .jsonl, .parquet or .yaml")
    return load_problem_file(path, path.stem)
