"""Verdicts that are not what they were: each sample's recorded verdict beside those of one or several new rounds.

Two verdicts are the same if status, score, tests passed, tests in all and the extracted answer are. Times, memory and
the detail (it names a test's output) may differ from run to run.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.errors import IncompleteError
from klearbench.judging.compare import shorten
from klearbench.reports.text import points
from klearbench.store import dumps, scan
from klearbench.types import SampleKey, Status, Verdict, to_row

SHOWN = 20
"""Changes that a terminal gets; the file has all."""
CHANGES, SUMMARY = "changes.jsonl", "summary.json"
_BLAME = ", so it is not steady, or this machine is too slow"
_KEY = ("suite", "problem_id", "sample_index")


@dataclass(frozen=True, slots=True)
class Change:
    """One sample: the verdict that was recorded, and one a round since, of which at least one differs from it."""

    before: Verdict
    after: tuple[Verdict, ...]

    @property
    def steady(self) -> bool:
        """Whether all rounds say the same."""
        return len({_word(verdict) for verdict in self.after}) == 1

    @property
    def transition(self) -> str:
        """`wrong_answer -> correct`; statuses of several rounds are joined: `correct -> correct | time_limit`."""
        return f"{self.before.status} -> {' | '.join(sorted({str(v.status) for v in self.after}))}"

    def row(self) -> dict[str, Any]:
        """Its line in changes.jsonl: the key, `before`, and the list `after`, all fields of each verdict."""
        key = {name: getattr(self.before, name) for name in _KEY}
        return {**key, "before": _fields(self.before), "after": [_fields(verdict) for verdict in self.after]}

    def __str__(self) -> str:
        """`SUITE PROBLEM sample 3: wrong_answer 3/8 -> correct 8/8`, with several rounds how many of them said what."""
        said = (self.before, *self.after)
        brief = len({_brief(v) for v in said}) == len({_word(v) for v in said})
        show = _brief if brief else _in_full
        counts = Counter(map(show, self.after))
        rounds = len(self.after)
        after = ", ".join(counts if rounds == 1 else (f"{text} ({n} of {rounds})" for text, n in counts.items()))
        suite, problem, index = self.before.key
        return f"{_printable(suite)} {_printable(problem)} sample {index}: {show(self.before)} -> {after}"


@dataclass(frozen=True, slots=True)
class Rejudged:
    """What judging again came to.

    Attributes:
        folder: RUN/rejudge.
        times: rounds; `judged`: verdicts given by this call, in all rounds.
        samples: samples compared, by suite.
        left_out: samples that were not: the engine failed, or they had no verdict yet.
        changes: the samples whose verdict changed in any round.
        errors: samples that the judge failed on in any round.
        differs: what decides verdicts and is not what it was -> (in the run, today).
        scores: avg@k by suite, in points: what the run has, and a figure a round.
    """

    folder: Path
    times: int
    judged: int
    samples: Mapping[str, int]
    left_out: int
    changes: Sequence[Change]
    errors: int
    differs: Mapping[str, tuple[Any, Any]]
    scores: Mapping[str, tuple[float | None, tuple[float | None, ...]]]

    @property
    def lines(self) -> list[str]:
        """For a terminal: the changes, at most twenty, and how it ended."""
        total, rounds = sum(self.samples.values()), f", {self.times} times" if self.times > 1 else ""
        counts = ", ".join(f"{name} ({n})" for name, n in transitions(self.changes).items())
        uneven = sum(not change.steady for change in self.changes)
        parts = [f"{total} samples judged again{rounds} ({self.judged} verdicts now)"]
        parts.append(f"{len(self.changes)} changed: {counts}" if counts else "none changed")
        parts += [f"{uneven} differ between rounds"] if uneven else []
        parts += [f"{self.left_out} samples without a verdict left out"] if self.left_out else []
        told = ", ".join(f"{name} {was} -> {now}" for name, (was, now) in self.differs.items())
        parts.append(f"another judge ({told})" if told else "the same judge" + _BLAME * bool(self.changes))
        moved = [
            f"{name} {points(was, 'none')} -> {', '.join(points(value, 'none') for value in now)} points"
            for name, (was, now) in self.scores.items()
            if any(value != was for value in now)
        ]
        return [*change_lines(self.changes, self.folder / CHANGES), "; ".join([*parts, *moved])]

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json."""
        changed = {name: sum(c.before.suite == name for c in self.changes) for name in self.samples}
        return {
            "times": self.times,
            "samples": sum(self.samples.values()),
            "left_out": self.left_out,
            "changed": len(self.changes),
            "differ_between_rounds": sum(not change.steady for change in self.changes),
            "judge_errors": self.errors,
            "transitions": transitions(self.changes),
            "suites": {
                name: {"samples": n, "changed": changed[name], "before": self.scores[name][0],
                       "after": list(self.scores[name][1])}
                for name, n in self.samples.items()
            },
            "same_judge": not self.differs,
            "judge_differs": {name: {"before": was, "after": now} for name, (was, now) in self.differs.items()},
        }  # fmt: skip

    def refuse_changes(self) -> None:
        """Raises IncompleteError: a verdict changed, or the judge failed on a sample."""
        total = sum(self.samples.values())
        if self.errors:
            raise IncompleteError(
                f"{self.errors} of {total} samples are judge errors (our fault), {len(self.changes)} verdicts changed"
                f" ({self.folder / CHANGES}); the same command tries the errors again"
            )
        if self.changes:
            raise IncompleteError(f"{len(self.changes)} of {total} verdicts changed: {self.folder / CHANGES}")


def find_changes(recorded: Path, rounds: Sequence[Path], keys: Set[SampleKey]) -> list[Change]:
    """The samples of `keys` whose verdict in any round is not the recorded one, in the order of the recorded ones.

    What is held of the others is a few bytes each.

    Args:
        recorded: verdicts.jsonl of a run, with a verdict for each key.
        rounds: as many files, each with a verdict for each key.
        keys: the samples that are compared.
    """
    words = {v.key: _word(v) for v in scan(recorded, Verdict) if v.key in keys}
    changed = {v.key for path in rounds for v in scan(path, Verdict) if v.key in keys and _word(v) != words[v.key]}
    after: dict[SampleKey, list[Verdict]] = {key: [] for key in changed}
    for path in rounds:
        for verdict in scan(path, Verdict):
            if verdict.key in changed:
                after[verdict.key].append(verdict)
    return [Change(v, tuple(after[v.key])) for v in scan(recorded, Verdict) if v.key in changed]


def change_lines(changes: Sequence[Change], path: Path) -> list[str]:
    """A line a change, at most SHOWN; `path` is the file with all of them."""
    lines = [str(change) for change in changes[:SHOWN]]
    more = len(changes) - SHOWN
    return [*lines, f"... and {more} more: {path}"] if more > 0 else lines


def change_rows(changes: Sequence[Change]) -> str:
    """changes.jsonl."""
    return "".join(dumps(change.row()) + "\n" for change in changes)


def transitions(changes: Sequence[Change]) -> dict[str, int]:
    """Before and after -> how many samples, the most frequent first."""
    return dict(Counter(change.transition for change in changes).most_common())


def judge_errors(rounds: Sequence[Path], keys: Set[SampleKey]) -> set[SampleKey]:
    """The samples of `keys` that the judge failed on in any round."""
    broken = (v.key for path in rounds for v in scan(path, Verdict) if v.status is Status.judge_error)
    return {key for key in broken if key in keys}


def _word(verdict: Verdict) -> bytes:
    """What is compared of a verdict, as a hash."""
    score = None if verdict.score is None else float(verdict.score)
    said = [verdict.status, score, verdict.passed, verdict.total, verdict.extracted]
    return hashlib.blake2b(dumps(said).encode(), digest_size=16).digest()


def _fields(verdict: Verdict) -> Mapping[str, Any]:
    return {name: value for name, value in to_row(verdict).items() if name not in _KEY}


def _brief(verdict: Verdict) -> str:
    return str(verdict.status) if verdict.total is None else f"{verdict.status} {verdict.passed}/{verdict.total}"


def _in_full(verdict: Verdict) -> str:
    return f"{_brief(verdict)}, score {verdict.score}, extracted {shorten(verdict.extracted)}"


def _printable(text: str) -> str:
    """A user's own name, which may hold anything, for one line of a terminal."""
    return text if text.isprintable() else ascii(text)
