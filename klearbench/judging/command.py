"""`klearbench judge`: a file of completions and a file of problems in, a file of verdicts out, resumable."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from klearbench.errors import ConfigError, IncompleteError, RunConflict, UsageError, unknown_name
from klearbench.judging.code import CodeJudge
from klearbench.judging.files import Item, check_completions, read_items, read_problems
from klearbench.judging.judge import MODES, MathJudge, check_golds
from klearbench.judging.mixed import Difference, MixedJudge
from klearbench.run import claim_file
from klearbench.store import JsonlWriter, content_hash, dumps, read_records, read_rows, write_atomic
from klearbench.types import Answer, CodeTests, Reference, Status, Verdict, to_row

BATCH = 512
"""Math rows judged together. Code rows are written as they come."""
Progress = Callable[[int, int], None]
"""Called with (rows done, rows in all)."""


@dataclass(frozen=True, slots=True)
class JudgeSummary:
    """What a run of the command came to.

    `counts` is status -> rows over the whole file, `judged` the rows judged this time, `differences` those where the
    two judges differ (mode "both").
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
    sandbox: str = "local",
    mode: str = "strict",
    first_failure: bool = False,
    workers: int = 1,
    time_limit_s: float = 1.5,
    progress: Progress | None = None,
) -> JudgeSummary:
    """Judge a file; verdicts come out in its order, and the same command finishes what is missing.

    Args:
        completions: JSONL rows `{"problem_id", "sample_index", "completion" | "code" | "answer", "finish_reason"?}`.
        problems: JSONL rows `{"id", "kind": "math", "answer", "rule"?}`, or of kind "code" (see `suites.coderows`).
        out: the verdicts; `OUT.manifest.json` beside it says what they were made from.
        math_judge: "strict", "math-verify", or "both": the strict verdicts, and each row where the other differs in
            `OUT.differences.jsonl`.
        sandbox: where programs run, "local" or "docker".
        mode: how programs are judged: "strict", "compat", or "both": as for math, with the cause of each difference.
        first_failure: stop at a program's first failing test.
        workers: judging processes, or slots of the sandbox, at most.
        time_limit_s: CPU seconds a comparison of math may take.
        progress: called whenever verdicts were written.

    Raises:
        UsageError: bad input (file and line are named), a changed input or option, an output in use, a full disk.
        SandboxUnavailable: there are code rows, and no such sandbox on this machine.
        IncompleteError: all rows are written, but some are judge errors; the same command tries these again.
    """
    if math_judge not in (*MODES, "both"):
        raise ConfigError(unknown_name("math judge", math_judge, (*MODES, "both")))
    started = time.monotonic()
    with ExitStack() as stack:
        code = stack.enter_context(CodeJudge(sandbox=sandbox, mode=mode, workers=workers, first_failure=first_failure))
        references = read_problems(problems)
        keys = check_completions(completions, problems, references)
        inputs = {"completions": content_hash(completions), "problems": content_hash(problems)}
        math = [
            stack.enter_context(MathJudge(mode=name, workers=workers, time_limit_s=time_limit_s))
            for name in (MODES if math_judge == "both" else (math_judge,))
        ]
        config = {"math_judge": math_judge, "math_judges": [dict(judge.identity()) for judge in math]}
        has_code = any(isinstance(references[problem_id], CodeTests) for problem_id, _ in keys)
        if has_code:
            config |= _code_config(code)
            code.start()
        stack.enter_context(claim_file(out, config, inputs))
        check_golds((answer for answer in references.values() if isinstance(answer, Answer)), math[0])
        job = _Job(completions, problems.stem, out, references, keys, MixedJudge(math, lambda: code, BATCH), progress)
        job.differing = math_judge == "both" or (has_code and mode == "both")
        judged = job.retry_errors() + job.judge_missing()
        summary = job.summary(judged, time.monotonic() - started)
    _refuse_errors(summary)
    return summary


def _code_config(judge: CodeJudge) -> dict[str, Any]:
    """The code judge's identity for the manifest: its options by the names that the command line has for them."""
    identity = dict(judge.identity())
    options = {name: identity.pop(name) for name in ("mode", "sandbox", "first_failure")}
    return {"code_judge": identity, **options}


def _refuse_errors(summary: JudgeSummary) -> None:
    errors = summary.counts.get(Status.judge_error, 0)
    if errors:
        raise IncompleteError(
            f"{summary.out}: {errors} of {summary.total} rows are judge errors (our fault, they have no score);"
            " the same command tries them again"
        )


class _Job:
    """The rows of one command, some of them perhaps judged before. `differing`: there may be differences to write."""

    differing = False

    def __init__(
        self,
        completions: Path,
        suite: str,
        out: Path,
        references: Mapping[str, Reference],
        keys: Sequence[tuple[str, int]],
        judge: MixedJudge,
        progress: Progress | None,
    ) -> None:
        self.completions, self.suite, self.out = completions, suite, out
        self.references, self.keys, self.judge = references, keys, judge
        self.progress = progress or (lambda done, total: None)
        self.differences_path = out.with_name(f"{out.name}.differences.jsonl")
        self.done = [v for v in read_records(out, Verdict) if isinstance(v, Verdict)]
        for line, (verdict, key) in enumerate(zip(self.done, keys, strict=False), start=1):
            if (verdict.problem_id, verdict.sample_index) != key:
                raise RunConflict(f"{out}:{line}: isn't the verdict of {key[0]!r}, sample {key[1]}; choose another -o")
        if len(self.done) > len(keys):
            raise RunConflict(f"{out} has {len(self.done)} verdicts for {len(keys)} completions; choose another -o")

    def retry_errors(self) -> int:
        """Judge again what ended as a judge error before; the file is replaced as a whole."""
        failed = [i for i, verdict in enumerate(self.done) if verdict.status is Status.judge_error]
        if not failed:
            return 0
        wanted = set(failed)
        items = (item for i, item in enumerate(self._items()) if i in wanted)
        judged = [pair for batch in self.judge.judge(items) for pair in batch]
        for i, (verdict, _) in zip(failed, judged, strict=True):
            self.done[i] = verdict
        again = {verdict.key[1:] for verdict, _ in judged}
        kept = [r for r in self._differences() if (r["problem_id"], r["sample_index"]) not in again]
        self._write_differences([*kept, *(difference for _, difference in judged if difference is not None)])
        write_atomic(self.out, "".join(dumps(to_row(v)) + "\n" for v in self.done))
        return len(failed)

    def judge_missing(self) -> int:
        """Judge and append the rows that have no verdict yet."""
        missing = len(self.keys) - len(self.done)
        if self.differing:  # differences are written before their verdicts; a kill may have left some too many
            judged = {v.key[1:] for v in self.done}
            self._write_differences([r for r in self._differences() if (r["problem_id"], r["sample_index"]) in judged])
        with ExitStack() as stack:
            writer = stack.enter_context(JsonlWriter(self.out))
            differing = stack.enter_context(JsonlWriter(self.differences_path)) if self.differing else None
            for batch in self.judge.judge(islice(self._items(), len(self.done), None)):
                if not batch:
                    continue
                if differing is not None:
                    differing.append(*(difference for _, difference in batch if difference is not None))
                writer.append(*(to_row(verdict) for verdict, _ in batch))
                self.done += [verdict for verdict, _ in batch]
                self.progress(len(self.done), len(self.keys))
        return missing

    def _items(self) -> Iterator[Item]:
        return read_items(self.completions, self.suite, self.references)

    def _differences(self) -> list[Difference]:
        if not self.differences_path.exists():
            return []
        return [row for _, row in read_rows(self.differences_path, ours=True)]

    def _write_differences(self, rows: Sequence[Mapping[str, Any]]) -> None:
        if self.differing:
            write_atomic(self.differences_path, "".join(dumps(row) + "\n" for row in rows))

    def summary(self, judged: int, seconds: float) -> JudgeSummary:
        counts = Counter(str(verdict.status) for verdict in self.done)
        return JudgeSummary(self.out, len(self.done), judged, dict(counts), len(self._differences()), seconds)


__all__ = ["JudgeSummary", "UsageError", "run_judge"]
