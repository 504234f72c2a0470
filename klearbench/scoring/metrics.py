"""From verdicts to scores: pure functions of records; and a run folder read with its scores.

`scores.json` maps a suite to `asdict(SuiteScore)`.

A sample is right when its status is `correct`: a program that passes some of its tests earns no share of a point here.
What is our fault (`judge_error`, an engine's `error`) is left out of the score, counted, and makes it incomplete.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from klearbench.errors import DataError, UsageError
from klearbench.records import asked_problems, light_samples, light_verdicts, read_problems, whole_records
from klearbench.run import read_manifest
from klearbench.scoring.groups import Grouping, GroupScore, ProblemScore, groups_of, score_groups
from klearbench.scoring.uncertainty import Count, Interval, interval_fixed, interval_problems, mean_share
from klearbench.types import FinishReason, Problem, Sample, SampleKey, Status, Verdict, by_problem


@dataclass(frozen=True, slots=True)
class Tokens:
    """Completion lengths in tokens; percentiles by nearest rank."""

    mean: float
    p10: int
    p50: int
    p90: int
    p99: int
    max: int


@dataclass(frozen=True, slots=True)
class SuiteScore:
    """The score of one suite. None stands where there is none: nothing was judged, or the metric does not apply.

    Attributes:
        k, problems: samples asked of each problem; number of problems asked.
        avg, pass_at_k, maj_at_k: points, 0..100. `maj_at_k` is None for code.
        interval: 95 % interval of avg, samples within fixed problems; `interval_problems`: problems resampled.
        counts: samples by status, every status named; samples whose engine failed are in `engine_errors` alone.
        judged: samples with a verdict that is not our fault.
        truncated_share: truncated / judged, 0..1.
        missing: samples asked for without a verdict. `complete`: nothing missing and no error of ours.
        at_limit, limit_but_right: samples that ran into the token limit, and those of them that are right all the same.
        groups: "difficulty", "platform", "month", "subject" -> a score a value, where the problems have one.
    """

    suite: str
    k: int
    problems: int
    avg: float | None
    interval: Interval | None
    interval_problems: Interval | None
    pass_at_k: float | None
    maj_at_k: float | None
    counts: Mapping[str, int]
    judged: int
    truncated_share: float | None
    judge_errors: int
    engine_errors: int
    missing: int
    complete: bool
    at_limit: int
    limit_but_right: int
    tokens: Tokens | None
    per_problem: tuple[ProblemScore, ...]
    groups: Mapping[str, tuple[GroupScore, ...]] = field(default_factory=dict)


def pass_at_k(n: int, right: int, k: int) -> float:
    """Chance that at least one of k samples drawn without repetition from n (`right` of them right) is right, 0..1.

    Unbiased: 1 - C(n - right, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374, eq. 1).

    Raises:
        ValueError: not 1 <= k <= n, or not 0 <= right <= n.
    """
    if not (1 <= k <= n and 0 <= right <= n):
        raise ValueError(f"pass@k of n={n}, right={right}, k={k} (needed: 1 <= k <= n and 0 <= right <= n)")
    return 1 - math.comb(n - right, k) / math.comb(n, k)


def maj_at_k(verdicts: Sequence[Verdict]) -> bool:
    """Whether the majority's answer of one problem is right.

    Samples without an extracted answer do not vote. Answers are compared as stripped text, so two spellings of one
    value are two candidates. A tie goes to the answer that appears first in the order of the sample index.
    """
    votes = Counter(v.extracted.strip() for v in verdicts if v.extracted is not None)
    if not votes:
        return False
    winner = votes.most_common(1)[0][0]  # equal counts keep the order of first appearance
    return next(v for v in verdicts if (v.extracted or "").strip() == winner).status is Status.correct


def samples_of(samples: int | Mapping[str, int], suite: str) -> int:
    """k of a suite, where `samples` (of a configuration) is one number, or one by suite."""
    return samples if isinstance(samples, int) else samples[suite]


def score_suite(
    suite: str,
    samples: Iterable[Sample],
    verdicts: Iterable[Verdict],
    problem_ids: Sequence[str],
    k: int,
    groups: Grouping | None = None,
) -> SuiteScore:
    """The score of one suite; records of other suites, other problems or an index of k and above are ignored.

    Args:
        suite: its name in the records.
        samples, verdicts: records in any order; a verdict without its sample counts as missing.
        problem_ids: every problem that was asked.
        k: samples asked of each problem.
        groups: how the problems are grouped (`groups.groups_of`); None for no groups.

    Raises:
        UsageError: two samples or two verdicts of the same problem and index.
    """
    wanted = {(suite, problem, index) for problem in problem_ids for index in range(k)}
    found = _unique((s for s in samples if s.key in wanted), "sample")
    failed = {key for key, sample in found.items() if sample.finish_reason is FinishReason.error}
    said = _unique((v for v in verdicts if v.key in wanted and v.key not in failed), "verdict")
    judged = {key: v for key, v in said.items() if v.status is not Status.judge_error}
    lengths = _lengths(sample for key, sample in found.items() if key not in failed)
    at_limit = [key for key in judged if key in found and found[key].finish_reason is FinishReason.length]
    by_status = Counter(v.status.value for v in said.values())
    judge_errors = by_status[Status.judge_error]
    missing = len(wanted - (said.keys() & found.keys()) - failed)
    rows = _problem_scores(problem_ids, by_problem(list(said.values())), lengths)
    return SuiteScore(
        suite=suite,
        k=k,
        problems=len(problem_ids),
        **_averages(rows, by_problem(list(judged.values()))),
        counts={status.value: by_status[status.value] for status in Status},
        judged=len(judged),
        truncated_share=by_status[Status.truncated] / len(judged) if judged else None,
        judge_errors=judge_errors,
        engine_errors=len(failed),
        missing=missing,
        complete=bool(judged) and not (missing or judge_errors or failed),
        at_limit=len(at_limit),
        limit_but_right=sum(judged[key].status is Status.correct for key in at_limit),
        tokens=_tokens([length for group in lengths.values() for length in group]),
        groups=score_groups(rows, groups or {}),
    )


def _averages(rows: Sequence[ProblemScore], groups: Mapping[str, Sequence[Verdict]]) -> dict[str, Any]:
    """What is averaged over the problems with judged samples, and the counts of every problem."""
    counts = [Count(row.right, row.judged) for row in rows if row.judged]
    code = any(v.total is not None for group in groups.values() for v in group)
    return {
        "avg": 100 * mean_share(counts) if counts else None,
        "interval": interval_fixed(counts),
        "interval_problems": interval_problems(counts),
        "pass_at_k": _points([pass_at_k(c.judged, c.right, c.judged) for c in counts]),
        "maj_at_k": None if code else _points([float(maj_at_k(group)) for group in groups.values()]),
        "per_problem": tuple(rows),
    }


def _lengths(samples: Iterable[Sample]) -> dict[str, list[int]]:
    """Completion tokens of every sample, by problem."""
    found: dict[str, list[int]] = {}
    for sample in samples:
        found.setdefault(sample.problem_id, []).append(sample.completion_tokens)
    return found


def _problem_scores(
    problem_ids: Sequence[str], said: Mapping[str, Sequence[Verdict]], lengths: Mapping[str, Sequence[int]]
) -> list[ProblemScore]:
    return [_problem_score(problem, said.get(problem, []), lengths.get(problem, [])) for problem in problem_ids]


R = TypeVar("R", Sample, Verdict)


def _unique(records: Iterable[R], what: str) -> dict[SampleKey, R]:
    found: dict[SampleKey, R] = {}
    for record in records:
        if record.key in found:
            suite, problem, index = record.key
            raise UsageError(f"two {what}s of problem {problem!r}, sample {index} in suite {suite!r}; keep one of them")
        found[record.key] = record
    return found


def _problem_score(problem_id: str, said: Sequence[Verdict], lengths: Sequence[int]) -> ProblemScore:
    by_status = Counter(v.status for v in said)
    return ProblemScore(
        problem_id,
        right=by_status[Status.correct],
        judged=len(said) - by_status[Status.judge_error],
        truncated=by_status[Status.truncated],
        judge_errors=by_status[Status.judge_error],
        sampled=len(lengths),
        tokens=sum(lengths),
        tokens_squared=sum(length * length for length in lengths),
    )


def _points(shares: Sequence[float]) -> float | None:
    return 100 * sum(shares) / len(shares) if shares else None


def _tokens(lengths: Sequence[int]) -> Tokens | None:
    if not lengths:
        return None
    ordered = sorted(lengths)

    def rank(percent: int) -> int:
        return ordered[max(0, math.ceil(percent * len(ordered) / 100) - 1)]

    return Tokens(sum(ordered) / len(ordered), rank(10), rank(50), rank(90), rank(99), ordered[-1])


@dataclass(frozen=True, slots=True)
class EvalRun:
    """A run folder of `klearbench eval`, read. `finished`: its scores.json is there and covers what the records hold.

    `scores` (by suite) are worked out again from the records, never copied from scores.json. `problems` (by suite and
    id) may lack some, in folders of an older version. `samples` come without completions, `verdicts` without details:
    whole ones come one at a time from `records`.
    """

    path: Path
    manifest: Mapping[str, Any]
    samples: Sequence[Sample]
    verdicts: Sequence[Verdict]
    scores: Mapping[str, SuiteScore]
    finished: bool
    problems: Mapping[tuple[str, str], Problem]

    @property
    def config(self) -> Mapping[str, Any]:
        config: Mapping[str, Any] = self.manifest["config"]
        return config

    def records(self) -> Iterator[tuple[Sample, Verdict | None]]:
        """Every sample with its verdict, in the order of samples.jsonl. Raises DataError: a corrupt row."""
        return whole_records(self.path)


def read_eval(path: Path) -> EvalRun:
    """Read a run folder and score it. The problems are those of its manifest (of its scores.json, in an older folder)
    and those that the records name.

    Raises:
        DataError: no run folder, not one of `klearbench eval`, or a corrupt file (with its line).
    """
    manifest = read_manifest(path)
    config = manifest["config"]
    if config.get("command") != "eval" or not readable_config(config):
        raise DataError(path, "is no run of `klearbench eval`")
    samples, verdicts = list(light_samples(path)), list(light_verdicts(path))
    problems = read_problems(path)
    written = _written_scores(path / "scores.json")
    named = asked_problems(path, manifest) if "problems" in manifest.get("about", {}) else {}
    seen: dict[str, set[str]] = {suite: set() for suite in config["suites"]}
    for name, problem, _ in (*(s.key for s in samples), *(v.key for v in verdicts)):
        seen.setdefault(name, set()).add(problem)
    scores, finished = {}, True
    for suite in config["suites"]:
        wanted = samples_of(config["samples"], suite)
        k, asked = written.get(suite, (None, []))
        finished = finished and k == wanted and seen[suite] <= set(asked)  # else the run was extended since
        first = named.get(suite, asked)
        ids = [*first, *sorted(seen[suite] - set(first))]
        scores[suite] = score_suite(suite, samples, verdicts, ids, wanted, groups_of(suite, ids, problems))
    return EvalRun(path, manifest, samples, verdicts, scores, finished, problems)


def readable_config(config: Mapping[str, Any]) -> bool:
    """Whether a configuration names suites and how many samples of each, and its sections are such."""
    suites, samples = config.get("suites"), config.get("samples")
    if not isinstance(suites, list) or not suites or not all(isinstance(suite, str) for suite in suites):
        return False
    if not all(isinstance(config.get(name) or {}, dict) for name in ("engine", "sampling", "suite_sampling")):
        return False
    counts = [samples.get(suite) for suite in suites] if isinstance(samples, dict) else [samples]
    return all(isinstance(count, int) and count > 0 for count in counts)


def _written_scores(path: Path) -> dict[str, tuple[int, list[str]]]:
    """From scores.json, by suite: k and the problems. Empty when there is no such file."""
    try:
        loaded = json.loads(path.read_text())
        return {name: (row["k"], [str(p["problem_id"]) for p in row["per_problem"]]) for name, row in loaded.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(path, f"not a scores file ({error}); `klearbench score` writes it again") from None
