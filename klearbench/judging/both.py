"""Two math judges beside each other: our verdicts count, and each row where math-verify's differs is written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from klearbench.judging.judge import MathJudge
from klearbench.judging.submission import difference_row
from klearbench.store import JsonlWriter, read_rows
from klearbench.types import Answer, Sample, Status, Verdict

SHOWN = ("status", "extracted", "detail")


class BothMath:
    """The strict judge, with math-verify's word on every row. Use it as a context manager.

    Args:
        strict: whose verdicts are given.
        other: the judge in mode "math-verify".
        differences: a JSONL file to append to; rows that our own judge failed on come when they are judged again.
    """

    def __init__(self, strict: MathJudge, other: MathJudge, differences: Path) -> None:
        self._strict, self._other, self._differences = strict, other, differences

    def identity(self) -> Mapping[str, Any]:
        """The strict judge's, with the mode "both"."""
        return {**self._strict.identity(), "mode": "both"}

    def judge(self, items: Sequence[tuple[Sample, Answer]]) -> list[Verdict]:
        """The strict verdicts, in order."""
        verdicts = self._strict.judge(items)
        rows = [
            math_difference(sample.suite, answer, ours, theirs)
            for (sample, answer), ours, theirs in zip(items, verdicts, self._other.judge(items), strict=True)
            if ours.status is not theirs.status and ours.status is not Status.judge_error
        ]
        if rows:
            with JsonlWriter(self._differences) as writer:
                writer.append(*rows)
        return verdicts

    def close(self) -> None:
        """End the workers of both."""
        self._strict.close()
        self._other.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def math_difference(suite: str, answer: Answer, ours: Verdict, theirs: Verdict) -> dict[str, Any]:
    """One row: the sample's key, the reference, and both verdicts with the answers they found."""
    row = difference_row(ours, theirs, "math-verify", SHOWN)
    return {"suite": suite, **row, "gold": answer.answer}


def count_differences(path: Path) -> int | None:
    """How many samples a file of differences names; a sample that an interrupted run wrote twice counts once.

    None where there is no such file. Raises DataError: a corrupt row.
    """
    if not path.exists():
        return None
    rows = (row for _, row in read_rows(path, ours=True))
    return len({(row["suite"], row["problem_id"], row["sample_index"]) for row in rows})
