"""LiveCodeBench (Jain et al. 2024): problems of programming contests, chosen by date. Release and window are pinned.

    lcb-v5   release_v5 (880 problems), 2024-08-01 to 2025-02-01, both days included: 279
    lcb-v6   release_v6 (1,055 problems), 2025-02-01 to 2025-05-01, both days included: 131

Read from `lcb_v1_v5.jsonl` or `lcb_v1_v6.jsonl`, or from the official test.jsonl, test2.jsonl, ... test6.jsonl (the
first 5, or all 6, of them), row by row: what lies outside the window is counted and let go of, its tests unread.
A row of the window without readable tests ends it all, since a score over fewer problems would be another score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from klearbench.errors import DataError
from klearbench.store import read_rows
from klearbench.suites.base import Asked, Erratum, HubSource, Suite, SuiteInfo
from klearbench.suites.errata import LEFT_OUT, lcb_erratum
from klearbench.suites.files import refuse_count
from klearbench.suites.hub import RowsHash
from klearbench.suites.lcbprompts import ask_in_our_words, official_prompt
from klearbench.suites.lcbtests import read_lcb_tests
from klearbench.suites.lookup import data_dir_or_env, hub_files
from klearbench.types import CodeTests, Kind, Message, Problem

_FILES = ("test.jsonl", *(f"test{number}.jsonl" for number in range(2, 7)))
_FOLDERS = ("", "code_generation_lite", "livecodebench", "lcb")
"""Where in the data directory the official files may lie."""
_DATASET = "livecodebench/code_generation_lite"
_META = {"question_title": "title", "difficulty": "difficulty", "platform": "platform", "starter_code": "starter_code"}

_TRIPLE = '''
def check(input, expected, output):
    """Any three positions, in rising order, whose values have the wanted sum; -1 if there are none."""
    count, wanted, *values = [int(word) for word in input.split()]
    words = output.split()
    if words == ["-1"]:
        return expected.split() == ["-1"]
    if len(words) != 3 or not all(word.isascii() and word.isdecimal() and len(word) < 10 for word in words):
        return False
    i, j, k = [int(word) for word in words]
    return 1 <= i < j < k <= count and values[i - 1] + values[j - 1] + values[k - 1] == wanted
'''
CHECKERS = {"arc185_c": _TRIPLE}
"""Question id -> the checker of a problem with several right outputs."""


@dataclass(frozen=True, slots=True)
class Window:
    """A release and the days that are chosen from it, both included.

    `parts` official files make the release up, or the one named `file`; it has `rows` problems, the window `count`.
    """

    release: str
    file: str
    parts: int
    rows: int
    first: date
    last: date
    count: int

    def holds(self, day: date) -> bool:
        return self.first <= day <= self.last


WINDOWS = {
    "lcb-v5": Window("release_v5", "lcb_v1_v5.jsonl", 5, 880, date(2024, 8, 1), date(2025, 2, 1), 279),
    "lcb-v6": Window("release_v6", "lcb_v1_v6.jsonl", 6, 1055, date(2025, 2, 1), date(2025, 5, 1), 131),
}

Placed = tuple[object, int, Mapping[str, Any]]
"""A row, its file and its line."""


def load_window(name: str, asked: Asked) -> Suite:
    """One of WINDOWS, its errata applied as asked.

    Raises:
        UsageError: no data directory, and the hub can't be read.
        DataError: no such files; a row of the window is corrupt or has no tests (file, line and id named); the release
            or the window has another number of problems.
    """
    window = WINDOWS[name]
    files = _files(name, window, asked.data_dir)
    seen = 0

    def inside() -> Iterator[Placed]:
        nonlocal seen
        for path in files:
            for line, row in read_rows(path):
                seen += 1
                if window.holds(_day(path, line, row)):
                    yield path, line, row

    suite = _suite(inside(), name, asked)
    where = files[0] if len(files) == 1 else files[0].parent
    if seen != window.rows:
        raise DataError(where, f"{window.release} has {window.rows} problems, found {seen} in {_told(files)}")
    found = len(suite.problems) + sum(erratum.action == LEFT_OUT for erratum in suite.errata)
    if found != window.count:
        days = f"from {window.first} to {window.last}"
        raise DataError(where, f"suite {name!r} has {window.count} problems {days}, found {found}")
    return suite


def load_rows(where: object, rows: Iterable[tuple[int, Mapping[str, Any]]], name: str, asked: Asked) -> Suite:
    """All rows of any one file in LiveCodeBench's format. Raises DataError, as `load_window`."""
    suite = _suite(((where, line, row) for line, row in rows), name, asked)
    refuse_count(where, name, len(suite.problems), None)
    return suite


def _suite(rows: Iterable[Placed], name: str, asked: Asked) -> Suite:
    prompt = _prompts(asked)
    problems: dict[str, Problem] = {}
    answers: dict[str, CodeTests] = {}
    errata: list[Erratum] = []
    digest = RowsHash()
    for path, line, row in rows:
        tests = read_lcb_tests(path, line, row)
        key = str(row["question_id"])
        if tests is None:
            raise DataError(path, f"problem {key!r} has no tests, so that no program could fail it", line)
        if key in problems:
            raise DataError(path, f"question_id {key!r} stands twice", line)
        erratum = lcb_erratum(row, CHECKERS) if asked.errata else None
        if erratum is not None:
            errata.append(erratum)
        problems[key] = _problem(name, path, line, row, prompt)
        answers[key] = tests if erratum is None else _by_checker(tests)
        digest.add(row)
    gone = {erratum.id for erratum in errata if erratum.action == LEFT_OUT}
    kept = tuple(problem for key, problem in problems.items() if key not in gone)
    return Suite(name, kept, {p.id: answers[p.id] for p in kept}, digest.hexdigest(), tuple(errata))


def _by_checker(tests: CodeTests) -> CodeTests:
    """The tests of a faulty problem, with the checker that we have for it, if any."""
    checker = CHECKERS.get(tests.inputs.problem_id)
    return replace(tests, expected=replace(tests.expected, checker=checker))


def _problem(
    suite: str, path: object, line: int, row: Mapping[str, Any], prompt: Callable[[str, str], tuple[Message, ...]]
) -> Problem:
    question, starter = row.get("question_content"), row.get("starter_code") or ""
    if not isinstance(question, str) or not question.strip() or not isinstance(starter, str):
        raise DataError(path, f"problem {row['question_id']!r}: question_content or starter_code is no text", line)
    return Problem(
        id=str(row["question_id"]),
        suite=suite,
        kind=Kind.code,
        prompt=prompt(question, starter),
        source=f"LiveCodeBench, {row.get('platform')} {row.get('contest_id')}",
        date=_day(path, line, row).isoformat(),
        meta={ours: row[theirs] for theirs, ours in _META.items() if row.get(theirs)},
    )


def _prompts(asked: Asked) -> Callable[[str, str], tuple[Message, ...]]:
    if asked.prompt == "official":
        return official_prompt(data_dir_or_env(asked.data_dir))
    return ask_in_our_words


def _day(path: object, line: int, row: Mapping[str, Any]) -> date:
    text = row.get("contest_date")
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        key = row.get("question_id")
        raise DataError(path, f"problem {key!r}: contest_date is {text!r}, a date was expected", line) from None


def _files(name: str, window: Window, data_dir: Path | None) -> list[Path]:
    """The files of a release: ours, or the official ones in a folder, or the hub's."""
    folder = data_dir_or_env(data_dir)
    found = None if folder is None else local_files(window, folder)
    return found or hub_files(name, _hub(window), window.file, data_dir)


def local_files(window: Window, folder: Path) -> list[Path] | None:
    """The files of a release below the data directory, None if they aren't there."""
    if (folder / window.file).is_file():
        return [folder / window.file]
    for below in _FOLDERS:
        files = [folder / below / name for name in _FILES[: window.parts]]
        if all(file.is_file() for file in files):
            return files
    return None


def _hub(window: Window) -> HubSource:
    return HubSource(_DATASET, files=_FILES[: window.parts])


def _told(files: list[Path]) -> str:
    return ", ".join(file.name for file in files)


def _info(name: str, window: Window) -> SuiteInfo:
    def load(asked: Asked) -> Suite:
        return load_window(name, asked)

    def here(folder: Path) -> bool:
        return local_files(window, folder) is not None

    about = f"LiveCodeBench {window.release}, {window.first} to {window.last}"
    return SuiteInfo(
        name, about, window.count, "LiveCodeBench", "MIT; not shipped", window.file, load, _hub(window), here
    )


INFOS = tuple(_info(name, window) for name, window in WINDOWS.items())
