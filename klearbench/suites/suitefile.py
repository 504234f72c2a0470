"""A suite of one's own: a JSONL or Parquet file of problems, or a small YAML.

    name: mine
    file: rows.parquet            # relative to the YAML; or `hub: org/name`, or `suite: lcb-v5`
    fields: {id: uid, problem: question, answer: gold}
    rule: expression
    where: {level: hard}          # only rows with these values
    ids: hard-ones.txt            # only these problems: a list, or a file with one id a line

docs/suites.md has every key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from klearbench.config import Section, load_recipe
from klearbench.errors import ConfigError, DataError, UsageError, nearest
from klearbench.store import content_hash, text_hash
from klearbench.suites.base import Asked, Suite
from klearbench.suites.files import Column, Reading, file_rows, load_problem_file, suite_of_rows
from klearbench.suites.hub import hub_rows, rows_hash
from klearbench.suites.livecodebench import load_rows as load_lcb_rows
from klearbench.suites.lookup import NumberedRow
from klearbench.suites.registry import SUITES, load_suite
from klearbench.types import Kind

_OF_HUB: tuple[str, ...] = ("config", "split", "revision")
_OF_ROWS = ("fields", "where", "rule", "kind", "answer_after", "numbered", "format")


class SuiteFile(Section):
    """The keys of a suite's YAML. One of `file`, `hub` and `suite` says where the problems are."""

    name: str
    file: str | None = None
    """JSONL or Parquet, relative to the YAML."""
    hub: str | None = None
    """A dataset's id on the hub, or a local dataset folder, relative to the YAML."""
    suite: str | None = None
    """A suite by its name, of which `ids` chooses some."""
    config: str | None = None
    """Configuration of the hub's dataset."""
    split: str = "test"
    """Split of the hub's dataset."""
    revision: str | None = None
    """Commit, tag or branch of the hub's dataset."""
    format: Literal["rows", "lcb"] = "rows"
    """`lcb`: rows in LiveCodeBench's format, all of them, in place of rows that name their columns."""
    fields: dict[Column, str] = Field(default_factory=dict)
    """Our column name: the rows'."""
    rule: str = "expression"
    """How answers are compared."""
    kind: Kind | None = None
    """`math` or `code` for all rows; left out: rows with tests ask for programs."""
    answer_after: str | None = None
    """The mark after which the answer stands in its column, such as "####"."""
    numbered: bool = False
    """Rows that have no id are named by their line, from 0; those that `where` leaves out count."""
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Column: value; other rows are left out."""
    ids: list[str] | str | None = None
    """The problems to keep: a list, or a text file with one id a line, relative to the YAML. Each must exist."""
    count: int | None = None
    """How many problems there must be, before `ids` chooses some."""

    @model_validator(mode="after")
    def _one_place(self) -> SuiteFile:
        given = [key for key in ("file", "hub", "suite") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of file, hub and suite; given: {', '.join(given) or 'none'}")
        lost: list[str] = [key for key in _OF_HUB if key in self.model_fields_set and self.hub is None]
        if self.suite is not None:
            lost += [key for key in _OF_ROWS if key in self.model_fields_set]
        if self.format == "lcb":
            lost += [key for key in _OF_ROWS[:-1] if key in self.model_fields_set and key != "where"]
        if lost:
            raise ValueError(f"{lost[0]!r} means nothing here, where the problems come from {given[0]!r}")
        return self


def load_suite_file(path: Path, asked: Asked | None = None) -> Suite:
    """A user's own suite: JSONL, Parquet, or a YAML.

    Raises:
        UsageError: another kind of file.
        ConfigError: a key or value of the YAML.
        DataError: a file is missing, or a row is corrupt.
    """
    if path.suffix in (".jsonl", ".parquet"):
        return load_problem_file(path, path.stem)
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(f"{path}: a suite file ends in .jsonl, .parquet or .yaml")
    spec = load_recipe(path, SuiteFile)
    if spec.name in SUITES:
        raise ConfigError(
            f"{path}: name is {spec.name!r}, a known suite whose figures would stand beside yours; rename it"
        )
    suite = _whole(path, spec, asked or Asked())
    return suite if spec.ids is None else _chosen(suite, path, spec.ids)


def _whole(path: Path, spec: SuiteFile, asked: Asked) -> Suite:
    if spec.suite is not None:
        return _renamed(path, spec, asked)
    where, rows, hashed = _rows(path, spec)
    if spec.format == "lcb":
        suite = load_lcb_rows(where, _matching(rows, spec), spec.name, asked)
        if spec.count is not None and len(suite.problems) != spec.count:
            raise DataError(where, f"suite {spec.name!r} has {spec.count} problems, found {len(suite.problems)}")
        return suite
    how = Reading(
        rule=spec.rule,
        fields={str(ours): theirs for ours, theirs in spec.fields.items()},
        count=spec.count,
        kind=spec.kind,
        answer_after=spec.answer_after,
        numbered=spec.numbered,
    )
    return suite_of_rows(_matching(rows, spec), where, spec.name, how, hashed)


def _rows(path: Path, spec: SuiteFile) -> tuple[object, Iterable[NumberedRow], Callable[[], str]]:
    """Where the rows are, the rows, and how they are hashed."""
    if spec.file is not None:
        file = path.parent / spec.file
        return file, file_rows(file), lambda: content_hash(file)
    local = path.parent / str(spec.hub)
    dataset = str(local) if local.is_dir() else str(spec.hub)
    rows = hub_rows(dataset, spec.config, spec.split, spec.revision)
    return f"{spec.hub} ({spec.split})", list(enumerate(rows, start=1)), lambda: rows_hash(rows)


def _matching(rows: Iterable[NumberedRow], spec: SuiteFile) -> Iterator[NumberedRow]:
    """The rows with the values of `where`."""
    for line, row in rows:
        for column in spec.where:
            if column not in row:
                raise DataError(
                    spec.file or spec.hub,
                    f"where: no column {column!r}{nearest(column, row)} (allowed: {', '.join(row)})",
                    line,
                )
        if all(row[column] == value for column, value in spec.where.items()):
            yield line, row


def _renamed(path: Path, spec: SuiteFile, asked: Asked) -> Suite:
    """A known suite under the file's own name, so that no record of a part is taken for one of the whole."""
    name = str(spec.suite)
    if Path(name).suffix in (".jsonl", ".parquet", ".yaml", ".yml"):
        name = str(path.parent / name)
        if Path(name).resolve() == path.resolve():
            raise ConfigError(f"{path}: suite names the file itself")
    known = load_suite(name, asked.data_dir, prompt=asked.prompt, errata=asked.errata)
    if spec.count is not None and len(known.problems) != spec.count:
        raise DataError(path, f"count is {spec.count}, but {spec.suite!r} has {len(known.problems)} problems")
    return replace(known, name=spec.name, problems=tuple(replace(p, suite=spec.name) for p in known.problems))


def _chosen(suite: Suite, path: Path, ids: list[str] | str) -> Suite:
    """The problems that `ids` names, in the suite's order; those that errata left out stay out, and listed."""
    wanted = ids if isinstance(ids, list) else _id_file(path.parent / ids)
    known = {problem.id for problem in suite.problems} | {erratum.id for erratum in suite.errata}
    for key in wanted:
        if key not in known:
            raise DataError(path, f"ids: {suite.name!r} has no problem {key!r}{nearest(key, known)}")
    keep = set(wanted)
    problems = tuple(problem for problem in suite.problems if problem.id in keep)
    if not problems:
        raise DataError(path, "ids: no problem is left")
    return replace(
        suite,
        problems=problems,
        answers={problem.id: suite.answers[problem.id] for problem in problems},
        content_hash=text_hash("\n".join([suite.content_hash, *sorted(keep)])),
        errata=tuple(erratum for erratum in suite.errata if erratum.id in keep),
    )


def _id_file(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except FileNotFoundError:
        raise DataError(path, "no such file (ids: one a line)") from None
    except UnicodeDecodeError as error:
        raise DataError(path, f"not UTF-8 ({error.reason} at byte {error.start})") from None
