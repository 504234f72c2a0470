"""`klearbench score RUN --rejudge`: every sample of a run is judged again, and each verdict that changes is listed.

The judge is today's, with the options that the run recorded; the references are those the run was judged by, told by
their suite's hash. With the same judge every change is flakiness, or a machine too slow. The run is only read. All that
is made stands in RUN/rejudge: a log of verdicts a round, changes.jsonl, summary.json.

Covered: kill -9 at any byte (the same command judges what is missing), a run extended since (only what is new is
judged), another judge or other samples since (all is judged anew).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from klearbench.changes import CHANGES, SUMMARY, Rejudged, change_rows, find_changes, judge_errors
from klearbench.errors import DataError, UsageError
from klearbench.evaluate import DIFFERENCES
from klearbench.judgethread import JudgeThread
from klearbench.progress import Progress
from klearbench.records import SAMPLES, VERDICTS, settle_verdicts
from klearbench.rejudgestart import begin, differing, log_path
from klearbench.run import Lock, manifest
from klearbench.sandbox.base import Sandbox
from klearbench.scoring.metrics import EvalRun, read_eval, samples_of, score_suite
from klearbench.store import JsonlWriter, scan, write_atomic
from klearbench.suites.base import Suite
from klearbench.suites.references import Judge, JudgeOptions, OpenJudges, open_judges
from klearbench.suites.registry import SUITES, load_suite
from klearbench.types import FinishReason, Reference, Sample, SampleKey, Verdict

FOLDER = "rejudge"
References = Mapping[tuple[str, str], Reference]
"""By suite and problem."""


def run_rejudge(path: Path, given: Mapping[str, Any], allow_partial: bool) -> None:
    """`klearbench score --rejudge`: judge, print, and end with 3 if anything changed. `given`: arguments of `rejudge`.

    Raises:
        UsageError, SandboxUnavailable: as `rejudge`; IncompleteError: as `Rejudged.refuse_changes`.
    """
    if allow_partial:
        raise UsageError("--allow-partial means nothing with --rejudge, which compares what is there")
    made = rejudge(path, **given, say=lambda remark: click.echo(f"note: {remark}", err=True))
    for line in made.lines:
        click.echo(line)
    made.refuse_changes()


def rejudge(
    path: Path,
    *,
    times: int = 1,
    sandbox: str | Sandbox | None = None,
    workers: int = 1,
    data_dir: Path | None = None,
    suite_files: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Rejudged:
    """Judge the samples of a run again; the same call finishes an interrupted one.

    Args:
        path: the run folder of an evaluation.
        times: rounds, each by a judge that remembers nothing of the others.
        sandbox: where programs run; None: where they ran in the run.
        workers: judge processes, and sandbox slots, at most.
        data_dir: the folder of the benchmarks' files; None: KLEARBENCH_DATA, else the hub.
        suite_files: files of suites of the user's own, found by the suite's name.
        say: takes a remark for the user.

    Raises:
        UsageError: no evaluation's folder, a suite that isn't found or is another one, a folder in use, a full disk.
    """
    run = read_eval(path)
    options = _judge_options(run, sandbox, workers)
    suites = _suites(run, suite_files, data_dir)
    keys = _comparable(run, references := _references(run, suites))
    logs = [log_path(path / FOLDER, number) for number in range(1, times + 1)]
    judged = 0
    with _hold(path):
        for log in logs:
            if log is not logs[0] and not keys - settle_verdicts(log, keys):
                continue
            with open_judges(references.values(), options) as judge:
                if log is logs[0]:
                    today = _manifest(judge, suites)
                    begin(path, path / FOLDER, today, say)
                judged += _judge(judge, path, log, references, keys)
        return _conclude(run, logs, keys, judged, differing(run.manifest, today))


def _manifest(judge: OpenJudges, suites: Sequence[Suite]) -> dict[str, Any]:
    """What decides the verdicts today."""
    code = {"code_judge": dict(judge.code)} if judge.code else {}
    config = {"command": "rejudge", "judge": dict(judge.math), **code}
    return manifest(config, {f"suite:{suite.name}": suite.content_hash for suite in suites})


def _judge_options(run: EvalRun, sandbox: str | Sandbox | None, workers: int) -> JudgeOptions:
    """How the run was judged, by its manifest."""
    math, code = run.config.get("judge"), run.config.get("code_judge", {})
    if not isinstance(math, dict) or not isinstance(code, dict) or "mode" not in math:
        raise DataError(run.path / "manifest.json", "does not say how the run was judged (config.judge)")
    return JudgeOptions(
        math=math["mode"],
        sandbox=sandbox or code.get("sandbox", "local"),
        code=code.get("mode", "strict"),
        first_failure=code.get("first_failure", False),
        workers=workers,
        differences=run.path / FOLDER / DIFFERENCES,
    )


def _suites(run: EvalRun, files: Sequence[str], data_dir: Path | None) -> list[Suite]:
    """The run's suites, with the references that it was judged by."""
    names: list[str] = run.config["suites"]
    load = partial(load_suite, prompt=run.config.get("prompt", "ours"), errata=run.config.get("errata", True))
    given: dict[str, Suite] = {}
    for file in dict.fromkeys(files):
        suite = load(file, data_dir)
        if suite.name not in names or suite.name in given:
            why = "is given twice" if suite.name in given else f"is none of the run's ({', '.join(names)})"
            raise UsageError(f"--suite {file}: the suite {suite.name!r} {why}")
        given[suite.name] = suite
    suites = []
    for name in names:
        if name not in given and name not in SUITES and not name.startswith("lm_eval:"):
            raise UsageError(f"{run.path}: the suite {name!r} came from a file; name the file with --suite FILE")
        suite = given.get(name) or load(name, data_dir)
        hashed = run.manifest.get("inputs", {}).get(f"suite:{name}")
        if suite.content_hash != hashed:
            raise DataError(
                run.path,
                f"the suite {name!r} is not the run's, so its references may not be: its content hash is"
                f" {suite.content_hash[:16]}, the run's {str(hashed)[:16]}; give the file or the --data-dir of the run",
            )
        suites.append(suite)
    return suites


def _references(run: EvalRun, suites: Sequence[Suite]) -> References:
    """The references of the problems that were asked, in the order of the suites."""
    found = {}
    for suite in suites:
        for row in run.scores[suite.name].per_problem:
            if row.problem_id not in suite.answers:
                raise DataError(run.path, f"names a problem {row.problem_id!r}, which the suite {suite.name!r} has not")
            found[suite.name, row.problem_id] = suite.answers[row.problem_id]
    return found


def _comparable(run: EvalRun, references: References) -> set[SampleKey]:
    """The samples that have a verdict to compare with."""
    made = {s.key for s in run.samples if s.finish_reason is not FinishReason.error and s.key[:2] in references}
    keys = made & {verdict.key for verdict in run.verdicts}
    if not keys:
        raise DataError(run.path, "holds no verdict that could change; finish the run first")
    return keys


@contextmanager
def _hold(path: Path) -> Iterator[None]:
    """Nobody writes the run now, and nobody else judges it again meanwhile."""
    Lock(path / ".lock").release()
    lock = Lock(path / FOLDER / ".lock")
    try:
        yield
    finally:
        lock.release()


class _Log(JsonlWriter):
    """A log that tells the progress of each row."""

    def __init__(self, path: Path, progress: Progress) -> None:
        super().__init__(path)
        self._progress = progress

    def append(self, *rows: Mapping[str, Any]) -> None:
        super().append(*rows)
        self._progress.advance(len(rows))


def _judge(judge: Judge, path: Path, log: Path, references: References, keys: Set[SampleKey]) -> int:
    """Judge what is missing of a round, in the order of the samples, which are read as they are judged.

    Returns:
        How many.
    """
    missing = keys - settle_verdicts(log, keys)
    label = f"rejudge {log.stem}"
    with (
        Progress(label, len(keys), len(keys) - len(missing), "samples") as progress,
        _Log(log, progress) as writer,
        JudgeThread(judge, lambda s: references[s.suite, s.problem_id], writer, progress) as judging,
    ):
        for sample in scan(path / SAMPLES, Sample) if missing else ():
            if sample.key in missing:
                judging.put([sample])
    return len(missing)


def _conclude(
    run: EvalRun,
    logs: Sequence[Path],
    keys: Set[SampleKey],
    judged: int,
    differs: Mapping[str, tuple[Any, Any]],
) -> Rejudged:
    """Compare, and write what came of it."""
    scores: dict[str, list[float | None]] = {name: [score.avg] for name, score in run.scores.items()}
    for log in logs:
        said = [replace(v, detail="", extracted=None) for v in scan(log, Verdict) if v.key in keys]
        for name, score in run.scores.items():
            ids = [row.problem_id for row in score.per_problem]
            k = samples_of(run.config["samples"], name)
            scores[name].append(score_suite(name, run.samples, said, ids, k).avg)
    made = Rejudged(
        folder=run.path / FOLDER,
        times=len(logs),
        judged=judged,
        samples={name: sum(key[0] == name for key in keys) for name in run.scores},
        left_out=len(run.samples) - len(keys),
        changes=find_changes(run.path / VERDICTS, logs, keys),
        errors=len(judge_errors(logs, keys)),
        differs=differs,
        scores={name: (before, tuple(after)) for name, (before, *after) in scores.items()},
    )
    write_atomic(made.folder / CHANGES, change_rows(made.changes))
    write_atomic(made.folder / SUMMARY, json.dumps(made.summary, indent=1) + "\n")
    return made
