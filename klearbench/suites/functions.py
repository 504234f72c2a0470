"""What HumanEval and MBPP share: rows of a Python function with asserts, read from one of several files or the hub."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.errors import DataError, KlearError
from klearbench.store import content_hash, read_rows
from klearbench.suites.base import Asked, Erratum, HubSource, Suite, SuiteInfo
from klearbench.suites.cases import Case, NotExpressible
from klearbench.suites.coderows import parse_code
from klearbench.suites.errata import LEFT_OUT
from klearbench.suites.files import refuse_count
from klearbench.suites.lookup import NumberedRow, Source, absent, find_file, hub_source
from klearbench.types import CodeTests, Kind, Problem

FILE = "humaneval_mbpp.jsonl"
"""Both benchmarks, told apart by the column `source`."""
FENCE = "End with the whole program in one fenced block:\n\n```python\n# the program\n```"

Made = tuple[str, Mapping[str, Any], CodeTests]
"""The prompt, the meta columns and the tests of a problem."""


@dataclass(frozen=True, slots=True)
class Functions:
    """A benchmark of functions, or a part of one.

    Attributes:
        name: the suite's.
        about: the suite, in a few words.
        source: the value of the column `source` of its rows in FILE.
        licence: whose and which.
        official: the benchmark's own file.
        convert: a row of that file, or of the hub -> a row in the format of FILE. KeyError: a column is missing.
        make: (id, row in the format of FILE) -> a problem's parts. Raises NotExpressible, KeyError, ValueError.
        hub: where the rows can be had otherwise.
        count: how many problems there must be, those that can't be expressed included.
        keep: the ids that belong to the suite.
    """

    name: str
    about: str
    source: str
    licence: str
    official: str
    convert: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    make: Callable[[str, Mapping[str, Any]], Made]
    hub: HubSource
    count: int
    keep: Callable[[str], bool] = lambda _: True

    def info(self) -> SuiteInfo:
        """The line of the registry."""

        def load(asked: Asked) -> Suite:
            return load_functions(self, asked)

        def here(folder: Path) -> bool:
            return any((folder / file).is_file() for file in (FILE, self.official))

        return SuiteInfo(self.name, self.about, self.count, self.source, self.licence, FILE, load, self.hub, here)


def load_functions(which: Functions, asked: Asked) -> Suite:
    """A suite of functions. What can't be expressed is left out and listed among the errata, whatever was asked.

    Raises:
        UsageError: no data directory, and the hub can't be read.
        DataError: no such file, a corrupt row, an id that stands twice, or another number of problems.
    """
    found = _find(which, asked.data_dir)
    problems: dict[str, Problem] = {}
    answers: dict[str, CodeTests] = {}
    errata: dict[str, Erratum] = {}
    for line, row in found.rows:
        key = row.get("id")
        if not isinstance(key, str) or not key:
            raise DataError(found.where, f"id is {key!r}, a text was expected", line)
        if not which.keep(key):
            continue
        if key in problems or key in errata:
            raise DataError(found.where, f"id {key!r} stands twice", line)
        try:
            prompt, meta, answers[key] = which.make(key, row)
        except NotExpressible as error:
            errata[key] = Erratum(key, "not_expressible", str(error), LEFT_OUT)
            continue
        except KeyError as error:
            raise DataError(found.where, f"problem {key!r}: {error} is missing", line) from None
        except ValueError as error:
            raise DataError(found.where, f"problem {key!r}: {error}", line) from None
        message = {"role": "user", "content": prompt}
        problems[key] = Problem(key, which.name, Kind.code, (message,), which.source, meta=meta)
    refuse_count(found.where, which.name, len(problems) + len(errata), which.count)
    return Suite(which.name, tuple(problems.values()), answers, found.content_hash, tuple(errata.values()))


def _find(which: Functions, data_dir: Path | None) -> Source:
    path = find_file(FILE, data_dir)
    if path is not None:
        rows = tuple((line, row) for line, row in read_rows(path) if row.get("source") == which.source)
        return Source(path, rows, content_hash(path))
    path = find_file(which.official, data_dir)
    if path is not None:
        return Source(path, tuple(_converted(path, which)), content_hash(path))
    try:
        return hub_source(which.hub)
    except KlearError as error:
        raise absent(which.name, FILE, which.hub, data_dir, error) from None


def _converted(path: Path, which: Functions) -> Iterator[NumberedRow]:
    for line, row in read_rows(path):
        try:
            yield line, which.convert(row)
        except KeyError as error:
            raise DataError(path, f"has no column {error}; it has {', '.join(row)}", line) from None


def functional_tests(key: str, fn_name: str, cases: Sequence[Case]) -> CodeTests:
    """Cases as the tests of a function.

    Raises:
        NotExpressible: a value is none of JSON's, or the tolerances differ (an exact number beside them is none).
    """
    tolerances = {case.tolerance for case in cases if case.tolerance is not None}
    if len(tolerances) > 1 or (tolerances and not all(isinstance(case.expected, int | float) for case in cases)):
        raise NotExpressible("its tests allow different tolerances")
    tolerance = next(iter(tolerances), None)
    row: dict[str, Any] = {"mode": "functional", "fn_name": fn_name, "tests": [case.row() for case in cases]}
    return parse_code(key, row if tolerance is None else {**row, "checker": f"floats_absolute:{tolerance:g}"})
