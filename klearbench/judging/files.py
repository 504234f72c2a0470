"""The two files that `klearbench judge` reads: problems and completions, checked whole before anything is judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.errors import DataError, nearest, unknown_name
from klearbench.judging.math import RULES
from klearbench.store import read_rows
from klearbench.suites.coderows import CODE_KEYS, read_code_row
from klearbench.types import Answer, CodeTests, FinishReason, Kind, Reference, Sample

_MATH_KEYS = ("id", "kind", "answer", "rule")
_CODE_KEYS = ("id", "kind", *CODE_KEYS)
_COMPLETION_KEYS = ("problem_id", "sample_index", "completion", "code", "answer", "finish_reason")
_TEXTS = ("completion", "code", "answer")


@dataclass(frozen=True, slots=True)
class Item:
    """A completion with its reference. `final`: it is an answer, or a program, to be taken as it is."""

    sample: Sample
    reference: Reference
    final: bool


def read_problems(path: Path) -> dict[str, Reference]:
    """Problem id -> its reference, in the file's order. Raises DataError (file and line are named)."""
    references: dict[str, Reference] = {}
    reference: Reference
    for line, row in read_rows(path):
        kind = row.get("kind")
        if kind not in list(Kind):
            raise DataError(path, f'kind is {kind!r} (allowed: "math", "code")', line)
        if kind == Kind.code:
            known_keys(path, line, row, _CODE_KEYS)
            tests = read_code_row(path, line, row)
            problem_id, reference = tests.inputs.problem_id, tests
        else:
            answer = _read_answer(path, line, row)
            problem_id, reference = answer.problem_id, answer
        if problem_id in references:
            raise DataError(path, f"id {problem_id!r} stands twice", line)
        references[problem_id] = reference
    if not references:
        raise DataError(path, "holds no problem")
    return references


def _read_answer(path: Path, line: int, row: Mapping[str, Any]) -> Answer:
    known_keys(path, line, row, _MATH_KEYS)
    problem_id, answer, rule = row.get("id"), row.get("answer"), row.get("rule", "expression")
    for name, value in (("id", problem_id), ("answer", answer), ("rule", rule)):
        if not isinstance(value, str):
            raise DataError(path, f"{name} is {value!r}, a string was expected", line)
    if rule not in RULES:
        raise DataError(path, unknown_name("rule", str(rule), RULES), line)
    return Answer(str(problem_id), str(answer), str(rule))


def check_completions(path: Path, problems: Path, references: Mapping[str, Reference]) -> list[tuple[str, int]]:
    """Validate every row before any is judged; (problem id, sample index) of each, in order. Raises DataError."""
    seen: dict[tuple[str, int], int] = {}
    for line, row in read_rows(path):
        known_keys(path, line, row, _COMPLETION_KEYS)
        problem_id, index = row.get("problem_id"), row.get("sample_index")
        if not isinstance(problem_id, str):
            raise DataError(path, f"problem_id is {problem_id!r}, a string was expected", line)
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            raise DataError(path, f"sample_index is {index!r}, an integer from 0 was expected", line)
        if problem_id not in references:
            raise DataError(
                path, f"problem_id {problem_id!r} isn't in {problems}{nearest(problem_id, references)}", line
            )
        _check_text(path, line, row, is_code=isinstance(references[problem_id], CodeTests))
        if (problem_id, index) in seen:
            where = seen[problem_id, index]
            raise DataError(path, f"problem {problem_id!r}, sample {index} stands twice (first in line {where})", line)
        seen[problem_id, index] = line
    if not seen:
        raise DataError(path, "holds no completion")
    return list(seen)


def _check_text(path: Path, line: int, row: Mapping[str, Any], *, is_code: bool) -> None:
    given = [name for name in _TEXTS if name in row]
    if len(given) != 1:
        raise DataError(
            path, f"exactly one of completion, code, answer is needed, found {', '.join(given) or 'none'}", line
        )
    if given[0] == ("answer" if is_code else "code"):
        problem, instead = ("code", "code") if is_code else ("math", "answer")
        raise DataError(path, f'"{given[0]}" row for a {problem} problem; give "completion" or "{instead}"', line)
    if not isinstance(row[given[0]], str):
        raise DataError(path, f"{given[0]} is {type(row[given[0]]).__name__}, a string was expected", line)
    finish = row.get("finish_reason", "stop")
    if finish not in list(FinishReason):
        raise DataError(path, f"finish_reason is {finish!r} (allowed: {', '.join(FinishReason)})", line)


def read_items(path: Path, suite: str, references: Mapping[str, Reference]) -> Iterator[Item]:
    """The completions of a file that was checked, one at a time."""
    for _, row in read_rows(path):
        name = next(name for name in _TEXTS if name in row)
        sample = Sample(
            suite=suite,
            problem_id=row["problem_id"],
            sample_index=row["sample_index"],
            seed=0,
            completion=row[name],
            prompt_tokens=0,
            completion_tokens=0,
            finish_reason=FinishReason(row.get("finish_reason", FinishReason.stop)),
        )
        yield Item(sample, references[sample.problem_id], name != "completion")


def known_keys(path: Path, line: int, row: Mapping[str, Any], allowed: Sequence[str]) -> None:
    """Refuse a row with a key that is not allowed. Raises DataError."""
    for name in row:
        if name not in allowed:
            raise DataError(path, f"unknown key {name!r}{nearest(name, allowed)} (allowed: {', '.join(allowed)})", line)
