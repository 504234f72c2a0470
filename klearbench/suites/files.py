"""Suites made of rows: those of a known benchmark, or any JSONL / Parquet file of the user's.

A row is `{"id": .., "problem": .., "answer": ..}` with optional `source`, `date`, `rule`, or, for a program,
`{"id": .., "problem": .., "tests": [{"input": .., "output": ..}]}` with what else `coderows` reads. Other columns are
kept in `meta`, except those that usually hold a solution or an answer, which are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from klearbench.errors import DataError, unknown_name
from klearbench.store import content_hash, read_rows
from klearbench.suites.base import Asked, HubSource, Suite
from klearbench.suites.coderows import read_code_row
from klearbench.suites.lookup import NumberedRow, find_source
from klearbench.types import Answer, Kind, Problem, Reference

_SECRET = (
    *("answer", "answers", "final_answer", "expected_answer", "reference_answer", "reference", "gold", "ground_truth"),
    *("target", "solution", "solutions", "generated_solution", "reward_model", "canonical_solution", "canonical"),
    *("code", "tests", "test", "test_list", "challenge_test_list", "test_cases", "public_test_cases"),
    *("private_test_cases", "input_output", "checker"),
)
"""Columns that hold an answer, or as good as one, in well-known datasets: they never enter a Problem."""
Column = Literal["id", "problem", "answer", "source", "date", "rule"]
_COLUMNS = get_args(Column)


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows are read.

    Attributes:
        rule: how answers are compared, unless the row says otherwise.
        rules: problem id -> rule, for the rows that are compared in another way.
        fields: our column name -> the rows', for `id`, `problem`, `answer`, ...
        count: how many problems there must be.
        kind: "math" or "code" for all rows; None: a row with tests asks for a program.
        answer_after: the answer is what follows the last of these marks in its column ("####" in GSM8K).
        numbered: rows without an id column are named by their line, from 0.
    """

    rule: str = "expression"
    rules: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    count: int | None = None
    kind: Kind | None = None
    answer_after: str | None = None
    numbered: bool = False


def load_problem_file(
    path: Path,
    name: str,
    *,
    rule: str = "expression",
    rules: Mapping[str, str] | None = None,
    fields: Mapping[str, str] | None = None,
    count: int | None = None,
) -> Suite:
    """Read problems, of mathematics or of programming, from a JSONL or Parquet file; the rest as in `Reading`.

    Raises:
        DataError: missing file, corrupt row (its line is named), doubled id, or another count.
    """
    how = Reading(rule=rule, rules=rules or {}, fields=fields or {}, count=count)
    return suite_of_rows(file_rows(path), path, name, how, lambda: content_hash(path))


def known_suite(name: str, file: str, hub: HubSource, asked: Asked, how: Reading) -> Suite:
    """A benchmark from its file in the data directory, else from the hub; `how.count` is the file's.

    Raises:
        UsageError, DataError: as `find_source` and `suite_of_rows`.
    """
    source = find_source(name, file, hub, asked.data_dir)
    count = hub.count if source.hub and hub.count is not None else how.count
    how = Reading(rule=how.rule, rules=how.rules, count=count)
    return suite_of_rows(source.rows, source.where, name, how, lambda: source.content_hash)


def suite_of_rows(
    rows: Iterable[NumberedRow], where: object, name: str, how: Reading, hashed: Callable[[], str]
) -> Suite:
    """Problems and their references from rows with their lines; `where` they come from is for messages.

    Raises:
        DataError: a corrupt row (its line is named), doubled id, no row, or another count.
    """
    columns = {c: c for c in _COLUMNS} | dict(how.fields)
    problems: dict[str, Problem] = {}
    answers: dict[str, Reference] = {}
    for line, row in rows:
        texts = {c: row.get(columns[c]) for c in _COLUMNS}
        if how.numbered and "id" not in how.fields and texts["id"] is None:
            texts["id"] = line - 1
        kind = how.kind or _kind(row, texts)
        if how.answer_after is not None and kind is Kind.math:
            texts["answer"] = _after(how.answer_after, texts["answer"], where, columns["answer"], line)
        for column in ("id", "problem", "answer") if kind is Kind.math else ("id", "problem"):
            if not is_text(texts[column]):
                raise DataError(where, f"{columns[column]!r} is missing or no text", line)
        key = str(texts["id"])
        if key in problems:
            raise DataError(where, f"id {key!r} stands twice", line)
        problems[key] = _problem(name, key, kind, texts, row, columns)
        if kind is Kind.code:
            answers[key] = read_code_row(where, line, {**row, "id": key})
        else:
            rule = _known_rule(str(texts["rule"] or how.rules.get(key, how.rule)), where, line)
            answers[key] = Answer(key, str(texts["answer"]), rule)
    refuse_count(where, name, len(problems), how.count)
    return Suite(name, tuple(problems.values()), answers, hashed())


def _known_rule(rule: str, where: object, line: int) -> str:
    from klearbench.judging.math import RULES

    if rule not in RULES:
        raise DataError(where, unknown_name("rule", rule, RULES), line)
    return rule


def is_text(value: Any) -> bool:
    """Whether a column's value will do as an id, a problem or an answer: a text or a number, not empty."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def refuse_count(where: object, name: str, found: int, wanted: int | None) -> None:
    """Refuse a suite without problems, or with another number of them. Raises DataError."""
    if not found and not wanted:
        raise DataError(where, "holds no problem")
    if wanted is not None and found != wanted:
        raise DataError(where, f"suite {name!r} has {wanted} problems, the file has {found}")


def _after(mark: str, answer: Any, where: object, column: str, line: int) -> str:
    _, found, rest = str(answer).rpartition(mark)
    if not found:
        raise DataError(where, f"{column!r} has no {mark!r}, after which the answer stands", line)
    return rest.strip()


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


def file_rows(path: Path) -> Iterator[NumberedRow]:
    """The rows of a JSONL or Parquet file with their lines. Raises DataError."""
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
