"""The records of an evaluation's run folder, read without holding its texts: problems, samples, verdicts.

A run of a thousand long completions is hundreds of megabytes of text, and a key with a few numbers a sample is all that
resuming, scoring and charts need. So records are read one at a time and kept "light": samples without completions,
verdicts without details. Whole ones come one at a time from `whole_records`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from klearbench.errors import DataError
from klearbench.store import JsonlWriter, keep_lines, scan, text_hash
from klearbench.types import FinishReason, Problem, Sample, SampleKey, Status, Verdict, from_row, to_row

SAMPLES, VERDICTS, PROBLEMS = "samples.jsonl", "verdicts.jsonl", "problems.jsonl"
_VOTE_CHARS = 200
META = ("difficulty", "platform", "subject", "level", "title", "topic", "category", "split", "year")
"""What problems.jsonl has of a problem's meta."""


def light_samples(run: Path) -> Iterator[Sample]:
    """The samples of a run without completions, token ids and log-probabilities."""
    for sample in scan(run / SAMPLES, Sample):
        yield replace(
            sample,
            suite=sys.intern(sample.suite),
            problem_id=sys.intern(sample.problem_id),
            completion="",
            token_ids=None,
            logprobs=None,
        )


def light_verdicts(run: Path) -> Iterator[Verdict]:
    """The verdicts of a run without details and programs; a very long answer is kept by its hash (it may vote)."""
    return _light_verdicts(run / VERDICTS)


def _light_verdicts(log: Path) -> Iterator[Verdict]:
    for verdict in scan(log, Verdict):
        shown = None if verdict.total is not None else verdict.extracted
        if shown is not None and len(shown) > _VOTE_CHARS:
            shown = text_hash(shown)
        yield replace(
            verdict,
            suite=sys.intern(verdict.suite),
            problem_id=sys.intern(verdict.problem_id),
            extracted=shown,
            detail="",
        )


def whole_records(run: Path) -> Iterator[tuple[Sample, Verdict | None]]:
    """Every sample of a run with its verdict, in the order of samples.jsonl, one at a time.

    Raises:
        DataError: a corrupt row, by file and line.
    """
    path = run / VERDICTS
    places = _places(path)
    if not places:
        yield from ((sample, None) for sample in scan(run / SAMPLES, Sample))
        return
    with path.open("rb") as handle:
        for sample in scan(run / SAMPLES, Sample):
            place = places.get(sample.key)
            if place is None:
                yield sample, None
                continue
            handle.seek(place)
            yield sample, from_row(Verdict, json.loads(handle.readline()))


def _places(path: Path) -> dict[SampleKey, int]:
    """Where each verdict's line begins. Every row is read once as a record, so that a corrupt one is named here."""
    places: dict[SampleKey, int] = {}
    if not path.exists():
        return places
    verdicts = scan(path, Verdict)
    offset = 0
    with path.open("rb") as handle:
        for raw in handle:
            if raw.strip() and raw.endswith(b"\n"):
                verdict = next(verdicts)
                places[(sys.intern(verdict.suite), sys.intern(verdict.problem_id), verdict.sample_index)] = offset
            offset += len(raw)
    return places


def settle(run: Path) -> tuple[set[SampleKey], set[SampleKey]]:
    """Take back what a rerun is to try again: samples that the engine failed to make, verdicts that were our own fault,
    and verdicts whose sample is gone (a disk may lose one log's last second and not the other's).

    Returns:
        The keys of the samples that stay, and of the verdicts.
    """
    made = {sample.key: sample.finish_reason is not FinishReason.error for sample in light_samples(run)}
    if not all(made.values()):
        keep_lines(run / SAMPLES, [s.finish_reason is not FinishReason.error for s in light_samples(run)])
    kept = {key for key, stays in made.items() if stays}
    return kept, settle_verdicts(run / VERDICTS, kept)


def settle_verdicts(log: Path, wanted: Set[SampleKey]) -> set[SampleKey]:
    """Take back from a log of verdicts those that were our own fault, and those of samples that aren't wanted.

    Returns:
        The keys of the verdicts that stay.
    """
    said = [(v.key, v.status is not Status.judge_error and v.key in wanted) for v in _light_verdicts(log)]
    if not all(stays for _, stays in said):
        keep_lines(log, [stays for _, stays in said])
    return {key for key, stays in said if stays}


def write_problems(run: Path, problems: Iterable[Problem]) -> None:
    """Append to problems.jsonl the problems, as they are asked, that it does not hold yet; answers are not in them.

    Of two rows of one problem the last counts. A run without samples begins anew: another command may have claimed it.
    """
    if not (run / SAMPLES).exists() or (run / SAMPLES).stat().st_size == 0:
        (run / PROBLEMS).unlink(missing_ok=True)
    known = read_problems(run)
    rows = [_plain(to_row(problem)) for problem in problems]
    fresh = [row for row in rows if known.get((row["suite"], row["id"])) != from_row(Problem, row)]
    if fresh:
        with JsonlWriter(run / PROBLEMS) as log:
            log.append(*fresh)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON can hold it (NaN becomes null), of its meta only what is known to hold no answer: a column of a
    user's file may have any name."""
    meta = {key: value for key, value in row["meta"].items() if key in META and isinstance(value, str | int | float)}
    text = json.dumps({**row, "meta": meta}, default=str)
    loaded: dict[str, Any] = json.loads(text, parse_constant=lambda name: None)
    return loaded


def read_problems(run: Path) -> dict[tuple[str, str], Problem]:
    """The problems of a run by suite and id; empty for a folder without the file. Raises DataError: a corrupt row."""
    path = run / PROBLEMS
    found: dict[tuple[str, str], Problem] = {}
    for problem in scan(path, Problem):
        found[problem.suite, problem.id] = problem
    return found


def asked_problems(path: Path, manifest: Mapping[str, object]) -> dict[str, list[str]]:
    """The ids of the problems that a run asked, by suite. Raises DataError where the manifest does not say."""
    about = manifest.get("about")
    problems = about.get("problems") if isinstance(about, Mapping) else None
    if not isinstance(problems, dict) or not all(isinstance(ids, list) for ids in problems.values()):
        raise DataError(path / "manifest.json", "does not name the run's problems (about.problems)")
    return problems
