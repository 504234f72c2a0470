"""`klearbench judge`: a file of completions and a file of problems in, a file of verdicts out, resumable."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.errors import ConfigError, DataError, IncompleteError, RunConflict, UsageError, nearest, unknown_name
from klearbench.judging.judge import MODES, MathJudge, Row, check_golds
from klearbench.judging.math import RULES
from klearbench.run import claim_file
from klearbench.store import JsonlWriter, content_hash, dumps, read_records, read_rows, write_atomic
from klearbench.types import Answer, FinishReason, Sample, Status, Verdict, to_row

BATCH = 512
Progress = Callable[[int, int], None]
"""Called with (rows done, rows in all)."""

_MATH_KEYS = ("id", "kind", "answer", "rule")
_CODE_KEYS = ("mode", "fn_name", "tests", "time_limit_s", "memory_limit_mb", "preamble", "checker")
_COMPLETION_KEYS = ("problem_id", "sample_index", "completion", "code", "answer", "finish_reason")
_TEXTS = ("completion", "code", "answer")


@dataclass(frozen=True, slots=True)
class JudgeSummary:
    """What a run of the command came to.

    `counts` is status -> rows over the whole file, `judged` the rows judged this time, `differences` those where the
    two math judges differ (mode "both").
    """

    out: Path
    total: int
    judged: int
    counts: Mapping[str, int]
    differences: int
    seconds: float

    def __str__(self) -> str:
        """Two lines for a terminal: how much was done, and how it ended."""
        rows = f"{self.judged} of {self.total} rows judged in {self.seconds:.1f} s -> {self.out}"
        ended = ", ".join(f"{name} {self.counts[name]}" for name in Status if name in self.counts)
        differing = f"; the two judges differ in {self.differences} rows" if self.differences else ""
        return f"{rows}\n{ended}{differing}"


def run_judge(
    completions: Path,
    problems: Path,
    out: Path,
    *,
    math_judge: str = "strict",
    workers: int = 1,
    time_limit_s: float = 2.0,
    progress: Progress | None = None,
) -> JudgeSummary:
    """Judge a file; verdicts come out in its order, and the same command finishes what is missing.

    Args:
        completions: JSONL rows `{"problem_id", "sample_index", "completion" | "answer", "finish_reason"?}`.
        problems: JSONL rows `{"id", "kind": "math", "answer", "rule"?}`.
        out: the verdicts; `OUT.manifest.json` beside it says what they were made from.
        math_judge: "strict", "math-verify", or "both": the strict verdicts, and each row where the other differs in
            `OUT.differences.jsonl`.
        workers: judging processes at most.
        time_limit_s: CPU seconds a comparison may take.
        progress: called after each batch.

    Raises:
        UsageError: bad input (file and line are named), a changed input or option, an output in use, a full disk.
        IncompleteError: all rows are written, but some are judge errors; the same command tries these again.
    """
    if math_judge not in (*MODES, "both"):
        raise ConfigError(unknown_name("math judge", math_judge, (*MODES, "both")))
    started = time.monotonic()
    answers = _read_problems(problems)
    keys = _check_completions(completions, problems, answers)
    inputs = {"completions": content_hash(completions), "problems": content_hash(problems)}
    with ExitStack() as stack:
        modes = ("strict", "math-verify") if math_judge == "both" else (math_judge,)
        judges = [
            stack.enter_context(MathJudge(mode=mode, workers=workers, time_limit_s=time_limit_s)) for mode in modes
        ]
        config = {"math_judge": math_judge, "math_judges": [dict(judge.identity()) for judge in judges]}
        stack.enter_context(claim_file(out, config, inputs))
        check_golds(answers.values(), judges[0])
        job = _Job(completions, problems, out, answers, keys, judges, progress)
        judged = job.retry_errors() + job.judge_missing()
        summary = job.summary(judged, time.monotonic() - started)
    _refuse_errors(summary)
    return summary


def _refuse_errors(summary: JudgeSummary) -> None:
    errors = summary.counts.get(Status.judge_error, 0)
    if errors:
        raise IncompleteError(
            f"{summary.out}: {errors} of {summary.total} rows are judge errors (our fault, they have no score);"
            " the same command tries them again"
        )


class _Job:
    """The rows of one command, some of them perhaps judged before."""

    def __init__(
        self,
        completions: Path,
        problems: Path,
        out: Path,
        answers: Mapping[str, Answer],
        keys: Sequence[tuple[str, int]],
        judges: Sequence[MathJudge],
        progress: Progress | None,
    ) -> None:
        self.completions, self.suite, self.out = completions, problems.stem, out
        self.answers, self.keys, self.judges = answers, keys, judges
        self.progress = progress or (lambda done, total: None)
        self.differences_path = out.with_name(f"{out.name}.differences.jsonl")
        self.done = [v for v in read_records(out, Verdict) if isinstance(v, Verdict)]
        for line, (verdict, key) in enumerate(zip(self.done, keys, strict=False), start=1):
            if (verdict.problem_id, verdict.sample_index) != key:
                raise RunConflict(f"{out}:{line}: isn't the verdict of {key[0]!r}, sample {key[1]}; choose another -o")
        if len(self.done) > len(keys):
            raise RunConflict(f"{out} has {len(self.done)} verdicts for {len(keys)} completions; choose another -o")

    def _rows(self) -> Iterator[Row]:
        for _, row in read_rows(self.completions):
            final = "answer" in row
            sample = Sample(
                suite=self.suite,
                problem_id=row["problem_id"],
                sample_index=row["sample_index"],
                seed=0,
                completion=row["answer"] if final else row["completion"],
                prompt_tokens=0,
                completion_tokens=0,
                finish_reason=FinishReason(row.get("finish_reason", FinishReason.stop)),
            )
            yield sample, self.answers[sample.problem_id], final

    def _judge(self, rows: Sequence[Row]) -> tuple[list[Verdict], list[dict[str, Any]]]:
        """The verdicts of the first judge, and a row for each sample where the second one differs."""
        first, *others = [judge.judge_rows(rows) for judge in self.judges]
        differences = []
        for second in others:
            for ours, theirs in zip(first, second, strict=True):
                if ours.status is not theirs.status:
                    differences.append(_difference(ours, theirs))
        return first, differences

    def retry_errors(self) -> int:
        """Judge again what ended as a judge error before; the file is replaced as a whole."""
        failed = {i for i, verdict in enumerate(self.done) if verdict.status is Status.judge_error}
        if not failed:
            return 0
        rows = [row for i, row in enumerate(self._rows()) if i in failed]
        verdicts, differences = self._judge(rows)
        for i, verdict in zip(sorted(failed), verdicts, strict=True):
            self.done[i] = verdict
        again = {v.key[1:] for v in verdicts}
        kept = [r for r in self._differences() if (r["problem_id"], r["sample_index"]) not in again]
        self._write_differences(kept + differences)
        write_atomic(self.out, "".join(dumps(to_row(v)) + "\n" for v in self.done))
        return len(failed)

    def judge_missing(self) -> int:
        """Judge and append the rows that have no verdict yet."""
        missing = len(self.keys) - len(self.done)
        if len(self.judges) > 1:  # differences are written before their verdicts; a kill may have left some too many
            judged = {v.key[1:] for v in self.done}
            self._write_differences([r for r in self._differences() if (r["problem_id"], r["sample_index"]) in judged])
        with ExitStack() as stack:
            writer = stack.enter_context(JsonlWriter(self.out))
            differing = stack.enter_context(JsonlWriter(self.differences_path)) if len(self.judges) > 1 else None
            for batch in _batches(self._rows(), skip=len(self.done)):
                verdicts, differences = self._judge(batch)
                if differing is not None:
                    differing.append(*differences)
                writer.append(*(to_row(verdict) for verdict in verdicts))
                self.done += verdicts
                self.progress(len(self.done), len(self.keys))
        return missing

    def _differences(self) -> list[dict[str, Any]]:
        if not self.differences_path.exists():
            return []
        return [row for _, row in read_rows(self.differences_path, ours=True)]

    def _write_differences(self, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(self.judges) > 1:
            write_atomic(self.differences_path, "".join(dumps(row) + "\n" for row in rows))

    def summary(self, judged: int, seconds: float) -> JudgeSummary:
        counts = Counter(str(verdict.status) for verdict in self.done)
        return JudgeSummary(self.out, len(self.done), judged, dict(counts), len(self._differences()), seconds)


def _difference(ours: Verdict, theirs: Verdict) -> dict[str, Any]:
    def short(v: Verdict) -> dict[str, Any]:
        return {"status": v.status, "extracted": v.extracted, "detail": v.detail}

    key = {"problem_id": ours.problem_id, "sample_index": ours.sample_index}
    return {**key, "strict": short(ours), "math-verify": short(theirs)}


def _batches(rows: Iterator[Row], skip: int) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for index, row in enumerate(rows):
        if index < skip:
            continue
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _read_problems(path: Path) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for line, row in read_rows(path):
        kind = row.get("kind")
        if kind == "code":
            raise DataError(
                path, 'a problem of kind "code": this version judges math only; leave the code rows out', line
            )
        if kind != "math":
            raise DataError(path, f'kind is {kind!r} (allowed: "math")', line)
        _known_keys(path, line, row, _MATH_KEYS)
        problem_id, answer, rule = row.get("id"), row.get("answer"), row.get("rule", "expression")
        for name, value in (("id", problem_id), ("answer", answer), ("rule", rule)):
            if not isinstance(value, str):
                raise DataError(path, f"{name} is {value!r}, a string was expected", line)
        if rule not in RULES:
            raise DataError(path, unknown_name("rule", str(rule), RULES), line)
        if problem_id in answers:
            raise DataError(path, f"id {problem_id!r} stands twice", line)
        answers[str(problem_id)] = Answer(str(problem_id), str(answer), str(rule))
    if not answers:
        raise DataError(path, "holds no problem")
    return answers


def _check_completions(path: Path, problems: Path, answers: Mapping[str, Answer]) -> list[tuple[str, int]]:
    """Validate every row before any is judged; the keys in order."""
    seen: dict[tuple[str, int], int] = {}
    for line, row in read_rows(path):
        _known_keys(path, line, row, _COMPLETION_KEYS)
        problem_id, index = row.get("problem_id"), row.get("sample_index")
        if not isinstance(problem_id, str):
            raise DataError(path, f"problem_id is {problem_id!r}, a string was expected", line)
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            raise DataError(path, f"sample_index is {index!r}, an integer from 0 was expected", line)
        if problem_id not in answers:
            raise DataError(path, f"problem_id {problem_id!r} isn't in {problems}{nearest(problem_id, answers)}", line)
        _check_text(path, line, row)
        if (problem_id, index) in seen:
            where = seen[problem_id, index]
            raise DataError(path, f"problem {problem_id!r}, sample {index} stands twice (first in line {where})", line)
        seen[problem_id, index] = line
    if not seen:
        raise DataError(path, "holds no completion")
    return list(seen)


def _check_text(path: Path, line: int, row: Mapping[str, Any]) -> None:
    given = [name for name in _TEXTS if name in row]
    if len(given) != 1:
        raise DataError(
            path, f"exactly one of completion, code, answer is needed, found {', '.join(given) or 'none'}", line
        )
    if given[0] == "code":
        raise DataError(path, 'a "code" row for a math problem; give "completion" or "answer"', line)
    if not isinstance(row[given[0]], str):
        raise DataError(path, f"{given[0]} is {type(row[given[0]]).__name__}, a string was expected", line)
    finish = row.get("finish_reason", "stop")
    if finish not in list(FinishReason):
        raise DataError(path, f"finish_reason is {finish!r} (allowed: {', '.join(FinishReason)})", line)


def _known_keys(path: Path, line: int, row: Mapping[str, Any], allowed: Sequence[str]) -> None:
    for name in row:
        if name not in allowed:
            raise DataError(path, f"unknown key {name!r}{nearest(name, allowed)} (allowed: {', '.join(allowed)})", line)


__all__ = ["JudgeSummary", "UsageError", "run_judge"]
