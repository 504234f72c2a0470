"""The teacher answers the problems. Nothing here knows an answer: problems and requests are all that comes in.

Responses have fixed places: sample j of problem i stands at `j * problems + i`. Engine calls follow a fixed plan of
batches over these places, and a batch that a kill interrupted is asked for again as a whole, so that neither the seeds
nor the shapes of the batches depend on when the process died. No batch mixes sample indices, so that raising the number
of samples adds batches and changes none.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

from klearbench.curation.recipe import Teacher
from klearbench.engines.base import Engine, Request, Sampling, as_sample, sample_seed
from klearbench.errors import DataError
from klearbench.faults import fault
from klearbench.progress import Progress
from klearbench.store import JsonlWriter, dumps, read_rows
from klearbench.types import FinishReason, Problem, Sample, SampleKey, from_row, to_row

Log = Callable[[str], None]


class Plan:
    """Which responses there must be, each at its place. `len` is their number."""

    def __init__(self, problems: Sequence[Problem], samples: int, seed: int) -> None:
        self.problems, self.samples, self.seed = problems, samples, seed
        self._numbers = {(p.suite, p.id): i for i, p in enumerate(problems)}

    def __len__(self) -> int:
        return len(self.problems) * self.samples

    def problem(self, place: int) -> Problem:
        return self.problems[place % len(self.problems)]

    def places(self, number: int) -> range:
        """Where the responses to a problem (by its number) stand."""
        return range(number, len(self), len(self.problems))

    def place(self, key: SampleKey) -> int | None:
        """Where a response belongs; None when the plan has no such place."""
        number = self._numbers.get(key[:2])
        return None if number is None or not 0 <= key[2] < self.samples else key[2] * len(self.problems) + number

    def request(self, place: int) -> Request:
        problem, index = self.problem(place), place // len(self.problems)
        seed = sample_seed(self.seed, problem.suite, problem.id, index)
        return Request(problem.prompt, seed, (problem.id, index))

    def batches(self, size: int) -> Iterator[range]:
        """The fixed plan of engine calls."""
        for first in range(0, len(self), len(self.problems) or 1):
            for start in range(first, first + len(self.problems), size):
                yield range(start, min(start + size, first + len(self.problems)))


class SampleLog:
    """samples.jsonl with the byte offset of each place's response, so that memory holds no text.

    A response whose engine failed counts as missing; a later line for the same place replaces an earlier one.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self.plan = path, plan
        self._offsets: list[int] = [-1] * len(plan)
        self.failed: set[int] = set()
        self._writer = JsonlWriter(path)
        self._reader = path.open("rb")
        starts = list(itertools.accumulate(map(len, self._reader), initial=0))
        self._end = starts[-1]
        for line, row in read_rows(path):
            self._note(self._sample(row, line), starts[line - 1])

    def _sample(self, row: dict[str, object], line: int | None = None) -> Sample:
        try:
            return from_row(Sample, row)
        except ValueError as error:
            raise DataError(self.path, str(error), line) from None

    def _note(self, sample: Sample, offset: int) -> None:
        place = self.plan.place(sample.key)
        if place is None:
            return
        self._offsets[place] = offset
        self.failed.discard(place)
        if sample.finish_reason is FinishReason.error:
            self.failed.add(place)

    def any_missing(self) -> bool:
        return any(map(self.missing, range(len(self.plan))))

    def missing(self, place: int) -> bool:
        return self._offsets[place] < 0 or place in self.failed

    def append(self, sample: Sample) -> None:
        row = to_row(sample)
        self._writer.append(row)
        self._note(sample, self._end)
        self._end += len(dumps(row)) + 1

    def read(self, place: int) -> Sample:
        """The response at a place that is not empty."""
        self._reader.seek(self._offsets[place])
        return self._sample(json.loads(self._reader.readline()))

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def distill(log: SampleLog, engine: Engine, teacher: Teacher, note: Log) -> int:
    """Ask the teacher for what is missing.

    Args:
        log: where responses are appended, with the plan of all of them.
        engine: the teacher; it is given prompts and seeds, nothing else.
        teacher: the sampling parameters.
        note: a line for the run's log.

    Returns:
        the number of engine calls.
    """
    sampling = Sampling(teacher.temperature, teacher.top_p, teacher.top_k, teacher.max_tokens)
    batches = [batch for batch in log.plan.batches(engine.batch_size) if any(map(log.missing, batch))]
    with Progress("distill", sum(map(len, batches)), unit="responses") as progress:
        for number, batch in enumerate(batches, start=1):
            note(f"engine call batch {number}/{len(batches)}: {len(batch)} requests")
            fault("distill.batch")
            requests = [log.plan.request(place) for place in batch]
            generations = engine.generate(requests, sampling)
            for place, request, generation in zip(batch, requests, generations, strict=True):
                if log.missing(place):
                    log.append(as_sample(log.plan.problem(place).suite, request, generation))
            progress.advance(len(batch))
    return len(batches)
