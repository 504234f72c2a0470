"""Rows of both kinds, judged together and given back in their order.

Code rows go to the code judge as a stream; the math rows between them are judged in batches while its slots work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from klearbench.judging.both import math_difference
from klearbench.judging.code import CodeJudge
from klearbench.judging.files import Item
from klearbench.judging.judge import MathJudge, Row
from klearbench.judging.submission import Row as CodeRow
from klearbench.types import Answer, CodeTests, Verdict

Difference = dict[str, Any]
"""A row of a file of differences: the key, and each side's status, extracted text and detail."""


@dataclass(slots=True)
class _Place:
    """A row that was read, until its turn comes: `item` until it is judged, then `verdict`."""

    item: Item | None
    verdict: Verdict | None = None
    difference: Difference | None = None


class MixedJudge:
    """Judges rows of both kinds.

    Args:
        math: one judge, or two: then each row where they differ is a difference.
        code: made with the first code row.
        batch: math rows judged together.
    """

    def __init__(self, math: Sequence[MathJudge], code: Callable[[], CodeJudge], batch: int) -> None:
        self._math, self._code, self._batch = math, code, batch

    def judge(self, items: Iterable[Item]) -> Iterator[list[tuple[Verdict, Difference | None]]]:
        """Verdicts in the order of the rows, as many at a time as are ready, each with its difference, if any."""
        places: deque[_Place] = deque()
        waiting: list[_Place] = []
        source = iter(items)
        for item in source:
            places.append(_Place(item))
            if isinstance(item.reference, CodeTests):
                yield from self._with_code(places, waiting, source)
                break
            waiting.append(places[-1])
            if len(waiting) >= self._batch:
                self._judge_math(waiting)
                yield _ready(places)
        self._judge_math(waiting)
        yield _ready(places)

    def _with_code(
        self, places: deque[_Place], waiting: list[_Place], source: Iterator[Item]
    ) -> Iterator[list[tuple[Verdict, Difference | None]]]:
        """Judge the code row that `places` ends with, and all rows that follow."""
        running: deque[_Place] = deque()

        def code_rows() -> Iterator[CodeRow]:
            place = places[-1]
            while True:
                item = place.item
                assert item is not None
                if isinstance(item.reference, CodeTests):
                    running.append(place)
                    place.item = None
                    yield item.sample, item.reference, item.final
                else:
                    waiting.append(place)
                    if len(waiting) >= self._batch:
                        self._judge_math(waiting)
                following = next(source, None)
                if following is None:
                    self._judge_math(waiting)
                    return
                place = _Place(following)
                places.append(place)

        with closing(self._code().stream_rows(code_rows())) as stream:
            for judged in stream:
                place = running.popleft()
                place.verdict, place.difference = judged.verdict, judged.difference()
                if places[0].item is not None:
                    self._judge_math(waiting)
                yield _ready(places)

    def _judge_math(self, waiting: list[_Place]) -> None:
        """Judge the math rows that wait, and empty the list."""
        rows: list[Row] = []
        for place in waiting:
            assert place.item is not None and isinstance(place.item.reference, Answer)
            rows.append((place.item.sample, place.item.reference, place.item.final))
        first, *others = [judge.judge_rows(rows) if rows else [] for judge in self._math]
        for place, verdict in zip(waiting, first, strict=True):
            place.item, place.verdict = None, verdict
        for second in others:
            for place, (_, answer, _), ours, theirs in zip(waiting, rows, first, second, strict=True):
                if ours.status is not theirs.status:
                    place.difference = math_difference(ours.suite, answer, ours, theirs)
        waiting.clear()


def _ready(places: deque[_Place]) -> list[tuple[Verdict, Difference | None]]:
    """What can be given back: the places at the front that are judged."""
    ready = []
    while places and places[0].verdict is not None:
        place = places.popleft()
        assert place.verdict is not None
        ready.append((place.verdict, place.difference))
    return ready
