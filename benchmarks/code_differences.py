"""Where our code judge, its compat mode and LiveCodeBench's own verdicts differ, and why: docs/code-differences.md.

    python benchmarks/code_differences.py [--data ../shared/data] [--out docs/code-differences.md]

Real programs of two models for problems of the V5 window, with the verdict that LiveCodeBench recorded. Its hidden
tests are not to be had, so a program that passes every test here may still have failed there.

Every difference has one of three causes. Programs that start a thread and do not wait for it are a race in compat, as
they were officially: what the thread prints after the main program's end is lost. So such a program is listed whatever
compat says today, and its compat column reads "race".
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.judging.code import CodeJudge
from klearbench.judging.compare import compare_output
from klearbench.judging.submission import Judged, Row
from klearbench.suites.lcbtests import read_lcb_tests
from klearbench.types import FinishReason, Sample, Status

ROOT = Path(__file__).resolve().parents[1]
PROBLEMS, SOLUTIONS = "lcb_v1_v5.jsonl", "lcb_v5_solutions_dev.jsonl"

TOLERANCE = "float tolerance"
THREADS = "threads"
HIDDEN = "hidden test"
CAUSES = {
    TOLERANCE: "A decimal within 1e-6 of the expected one is right in strict; compat and the official judge compare "
    "decimals digit by digit.",
    THREADS: "The program starts a thread and does not wait for it. A Python process ends with its last thread, so "
    "strict sees the output; compat and the official judge look when the main thread has ended, and lose what a thread "
    'prints later. How much that is is a race: "race" in the compat column.',
    HIDDEN: "Both modes pass every test we have; the official failure was on a hidden test, which is not to be had.",
}
"""What a difference can come from. Nothing else may turn up."""

_STARTS = re.compile(r"Thread\(.*\)\.start\(\)")
_JOINS = re.compile(r"\.join\(\)")
_TWO_LINES = re.compile(r"output_line_idx=\d+: (.+) != (.+)")


@dataclass(frozen=True, slots=True)
class Compared:
    """One recorded program and the three verdicts on it.

    Attributes:
        agree: the label's word: LiveCodeBench's verdict and the label made from the tests here are the same.
        races: it starts a thread and does not wait for it.
        close: the output that LiveCodeBench found wrong is within strict's tolerance of the expected one.
        cause_told: what the mode "both" says.
    """

    question: str
    model: str
    strict: Status
    compat: Status
    official: bool
    agree: bool
    races: bool
    close: bool
    cause_told: str

    @property
    def accepted(self) -> bool:
        return self.strict is Status.correct

    @property
    def differs(self) -> bool:
        """Whether the three don't say the same; of a race what compat could say counts."""
        could = self.races and self.strict in (Status.correct, Status.time_limit)
        return could or self.accepted is not self.official or self.compat is not self.strict

    @property
    def cause(self) -> str:
        """One of CAUSES; anything else is a difference that nobody has explained."""
        if self.accepted and self.compat is Status.wrong_answer and self.close:
            return TOLERANCE
        if self.races:
            return THREADS
        if self.accepted and self.compat is Status.correct and not self.official:
            return HIDDEN
        return f"unexplained ({self.cause_told or 'no cause given'})"

    def row(self) -> str:
        """A line of the table."""
        compat = "race" if self.cause == THREADS else str(self.compat)
        official = "accepted" if self.official else "failed"
        return f"| {self.question} | {self.model} | {self.strict} | {compat} | {official} | {self.cause} |"


def read_rows(data: Path) -> tuple[list[Mapping[str, Any]], list[Row]]:
    """The recorded solutions, and for each what a judge needs."""
    solutions = [json.loads(line) for line in (data / SOLUTIONS).read_text().splitlines()]
    wanted = {row["question_id"] for row in solutions}
    tests = {}
    for number, line in enumerate((data / PROBLEMS).read_text().splitlines(), 1):
        problem = json.loads(line)
        if problem["question_id"] in wanted:
            tests[problem["question_id"]] = read_lcb_tests(data / PROBLEMS, number, problem)
    rows: list[Row] = []
    for index, row in enumerate(solutions):
        given = tests[row["question_id"]]
        assert given is not None, f"{row['question_id']} has no tests"
        sample = Sample("lcb-v5", row["question_id"], index, 0, row["code"], 0, 0, FinishReason.stop)
        rows.append((sample, given, True))
    return solutions, rows


def compare(data: Path, workers: int = 2) -> list[Compared]:
    """Judge every recorded program in both modes at once."""
    solutions, rows = read_rows(data)
    # The first failing test decides a status: a program over its time limit need not show it on each of its tests.
    with CodeJudge(mode="both", workers=workers, first_failure=True) as judge:
        return [
            _compared(solution, judged) for solution, judged in zip(solutions, judge.stream_rows(rows), strict=True)
        ]


def _compared(solution: Mapping[str, Any], judged: Judged) -> Compared:
    assert judged.other is not None
    code = solution["code"]
    return Compared(
        solution["question_id"],
        solution["model"],
        judged.verdict.status,
        judged.other.status,
        bool(solution["passed"]),
        bool(solution["agree"]),
        _STARTS.search(code) is not None and _JOINS.search(code) is None,
        _close(solution["error_message"]),
        judged.cause,
    )


def _close(message: str) -> bool:
    """Whether an official "wrong answer" names two lines that strict finds equal."""
    lines = _TWO_LINES.search(message)
    return lines is not None and compare_output(lines[2], lines[1].encode()).equal


def document(found: Sequence[Compared]) -> str:
    """The page: what the causes mean, how often each comes, and a line a difference."""
    listed = [one for one in found if one.differs]
    return "\n".join([*_head(found, listed), *(one.row() for one in listed), ""])


def _head(found: Sequence[Compared], listed: Sequence[Compared]) -> Iterable[str]:
    counts = Counter(one.cause for one in listed)
    official = sum(one.official for one in found)
    yield "# Code judging: strict, compat and LiveCodeBench's own verdicts"
    yield ""
    yield (
        f"{len(found)} recorded programs of two models for problems of LiveCodeBench V5 (`lcb_v5_solutions_dev.jsonl`, "
        "judged on the tests of `lcb_v1_v5.jsonl`)."
    )
    yield (
        f"All {official} that the official judge accepted are accepted in strict. "
        f"{len(listed)} rows where the verdicts differ, or may differ from run to run:"
    )
    yield ""
    yield "| cause | rows | what it means |"
    yield "|---|---|---|"
    for cause, meaning in CAUSES.items():
        yield f"| {cause} | {counts[cause]} | {meaning} |"
    yield ""
    yield "Made by `python benchmarks/code_differences.py`."
    yield ""
    yield "| question | model | strict | compat | official | cause |"
    yield "|---|---|---|---|---|---|"


def main() -> None:
    """Judge, check that every difference is explained, write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "code-differences.md")
    chosen = parser.parse_args()
    began = time.perf_counter()
    found = compare(chosen.data)
    unexplained = [one.row() for one in found if one.differs and one.cause not in CAUSES]
    refused = [one.row() for one in found if one.official and not one.accepted]
    if unexplained or refused:
        raise SystemExit("\n".join(["unexplained, or refused although officially accepted:", *unexplained, *refused]))
    chosen.out.write_text(document(found))
    print(f"{len(found)} programs in {time.perf_counter() - began:.0f} s -> {chosen.out}")


if __name__ == "__main__":
    main()
