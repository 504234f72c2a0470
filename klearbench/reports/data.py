"""The samples inside of a report: rows of numbers in one piece, texts in pieces that are opened when they are wanted.

A piece is JSON, deflated, in base64, in a `<script type="application/json">` of its own. Rows come in the order of run,
suite, problem and index; texts in the order of the records, so that they are read once, one at a time, and never held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from klearbench.reports.bundle import Bundle
from klearbench.reports.failing import failing_test
from klearbench.reports.pieces import PIECE_ITEMS, Linked, Pieces, piece
from klearbench.store import dumps
from klearbench.types import FinishReason, Problem, Sample, Status, Verdict

LINK_FROM = 1_000
"""Texts of fewer characters are never linked out: a file of its own costs more than it."""
_SHOWN = 80
_SHOWN_META = ("difficulty", "platform", "subject", "title", "level")
_ROW_BYTES = 12
"""What a row of numbers takes in the page, about."""
_MARGIN = 0.95
ENDS = (*Status, "engine_error", "not_judged")
"""How a sample can end: by its verdict, or without one."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """What goes into the page: its elements, and the texts that were linked out of it."""

    elements: list[bytes]
    samples: int
    linked: Linked


def embed(bundle: Bundle, folder: Path, room: float) -> Embedded:
    """The pieces of all samples; beyond `room` bytes the longest completions are written into `folder`.

    Raises:
        DataError: a corrupt record; DiskFull.
    """
    prompts = Prompts(bundle)
    room -= prompts.pieces.size
    out: set[int] = set()
    margin = _MARGIN
    while True:
        packing = Packing(bundle, Linked(folder), out, room)
        packing.run()
        if not packing.over:
            break
        long = _long(packing.lengths)
        if out.issuperset(long):
            room = inf  # what is left is too short to be linked out: the page is as large as it has to be
        else:
            out = _longest(packing.lengths, long, packing.chars - margin * room / packing.rate)
            margin *= _MARGIN
    head = {
        "runs": list(bundle.runs),
        "suites": bundle.suites,
        "ends": list(ENDS),
        "problems": packing.places.problems,
        "prompts": prompts.of(packing.places.problems),
        "a_piece": PIECE_ITEMS,
        "columns": packing.columns(),
    }
    elements = [piece("rows", head), *prompts.pieces.done, *packing.texts.done]
    return Embedded(elements, len(packing.rows), packing.linked)


def _long(lengths: Sequence[int]) -> list[int]:
    """The samples whose completions may be linked out, the longest first."""
    return sorted((i for i, n in enumerate(lengths) if n >= LINK_FROM), key=lambda i: -lengths[i])


def _longest(lengths: Sequence[int], long: Sequence[int], excess: float) -> set[int]:
    """Of `long` as many, from its start, as hold `excess` characters together."""
    out: set[int] = set()
    for i in long:
        if excess <= 0:
            break
        out.add(i)
        excess -= lengths[i]
    return out


class Places:
    """Where a suite and a problem stand in the data's lists; the problems of all runs, the first run's first."""

    def __init__(self, bundle: Bundle) -> None:
        self.suites = {suite: i for i, suite in enumerate(bundle.suites)}
        self.problems: list[list[str]] = [
            list(dict.fromkeys(row.problem_id for s in bundle.scored(suite) for row in s.score.per_problem))
            for suite in bundle.suites
        ]
        self._places = [{problem: i for i, problem in enumerate(ids)} for ids in self.problems]

    def of(self, sample: Sample) -> tuple[int, int] | None:
        """None for a sample of a suite or a problem that no score knows."""
        suite = self.suites.get(sample.suite)
        place = None if suite is None else self._places[suite].get(sample.problem_id)
        return None if suite is None or place is None else (suite, place)


class Prompts:
    """What the models were asked, each text once."""

    def __init__(self, bundle: Bundle) -> None:
        self.pieces = Pieces("prompts", inf)
        self._bundle = bundle
        self._known: dict[str, int] = {}
        self._numbers = [
            {key: self._number(problem) for key, problem in run.problems.items() if key[0] in run.scores}
            for run in bundle.runs.values()
        ]
        self.pieces.close()

    def _number(self, problem: Problem) -> int:
        shown = {name: problem.meta[name] for name in _SHOWN_META if isinstance(problem.meta.get(name), str | int)}
        messages = [[message.get("role", ""), message.get("content", "")] for message in problem.prompt]
        facts = {"source": problem.source, "date": problem.date, **shown}
        row = {"kind": problem.kind, "facts": facts, "messages": messages}
        text = dumps(row)
        if text not in self._known:
            number, place = self.pieces.add(row, len(text))
            self._known[text] = number * PIECE_ITEMS + place
        return self._known[text]

    def of(self, problems: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """Run, suite, problem -> piece * PIECE_ITEMS + place of its prompt; -1 where the run folder does not say."""
        suites = list(zip(self._bundle.suites, problems, strict=True))
        return [[[numbers.get((suite, i), -1) for i in ids] for suite, ids in suites] for numbers in self._numbers]


Row = tuple[int, int, int, int, int, int, int, int, int, int, str]
COLUMNS = ("run", "suite", "problem", "index", "end", "tokens", "limit", "chars", "piece", "place", "shown")
"""A sample's numbers: `problem` is a place in the suite's list, `end` one in ENDS, `limit` 1 at the token limit,
`chars` the completion's length; its texts are item `place` of piece `texts<piece>`; `shown` its answer's start."""


class Packing:
    """One try to pack all samples: those of `out` (numbers in the order of the records) are linked out."""

    def __init__(self, bundle: Bundle, linked: Linked, out: set[int], room: float) -> None:
        self.linked, self.out, self.room = linked, out, room
        self.places = Places(bundle)
        self.texts = Pieces("texts", room)
        self.rows: list[Row] = []
        self.lengths: list[int] = []
        self.chars = 0
        self._bundle = bundle

    def run(self) -> None:
        """Read every record once. After the room is filled texts are only counted."""
        for number, run in enumerate(self._bundle.runs.values()):
            for sample, verdict in run.records():
                place = self.places.of(sample)
                if place is not None:
                    self._add(number, place, sample, verdict)
        self.texts.close()
        self.rows.sort()

    def _add(self, run: int, place: tuple[int, int], sample: Sample, verdict: Verdict | None) -> None:
        item = texts_of(sample, verdict)
        chars = sum(len(value) for value in item.values() if isinstance(value, str))
        self.chars += chars
        self.lengths.append(len(sample.completion))
        if len(self.lengths) - 1 in self.out:
            item = {**item, "completion": None, "file": self.linked.add(sample.completion)}
            chars -= len(sample.completion)
        where = (0, 0) if self.texts.full else self.texts.add(item, chars)
        numbers = (sample.completion_tokens, int(sample.finish_reason is FinishReason.length), len(sample.completion))
        shown = _shown(verdict)
        self.rows.append((run, *place, sample.sample_index, ENDS.index(_end(sample, verdict)), *numbers, *where, shown))

    @property
    def over(self) -> bool:
        """Whether this was too much for the room."""
        return self.texts.size + _ROW_BYTES * len(self.rows) > self.room

    @property
    def rate(self) -> float:
        """Bytes a character of what was packed."""
        return max(1, self.texts.size) / max(1, self.texts.chars)

    def columns(self) -> dict[str, list[Any]]:
        return {name: [row[i] for row in self.rows] for i, name in enumerate(COLUMNS)}


def texts_of(sample: Sample, verdict: Verdict | None) -> dict[str, Any]:
    """What the viewer shows of a sample besides its numbers. A program's failing test is read out of the detail."""
    item: dict[str, Any] = {"completion": sample.completion}
    if verdict is not None:
        item |= {"extracted": verdict.extracted, "detail": verdict.detail}
        if verdict.total is not None:
            item |= {"passed": verdict.passed, "total": verdict.total, "test": failing_test(verdict.detail)}
            item |= {"cpu_s": verdict.cpu_s, "peak_mb": verdict.peak_mb}
    return item


def _shown(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    if verdict.total is not None:
        return "" if verdict.passed is None else f"{verdict.passed} of {verdict.total} tests"
    return "" if verdict.extracted is None else f"answer {verdict.extracted[:_SHOWN]}"


def _end(sample: Sample, verdict: Verdict | None) -> str:
    if sample.finish_reason is FinishReason.error:
        return "engine_error"
    return "not_judged" if verdict is None else verdict.status
