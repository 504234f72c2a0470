"""The whole evaluation path: suite -> problems -> engine -> samples -> judge -> verdicts -> scores -> report.

Sampling follows a fixed plan of batches: sample 0 of every problem, cut into batches of the engine's size, then sample
1, and so on. A batch that was interrupted is redone whole, because floating-point results depend on what else is in the
batch; so a resumed run ends with the same bytes as an undisturbed one. Only what was missing of it is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from klearbench.engines.base import Engine, Request, Sampling, as_sample, sample_seed
from klearbench.errors import DataError, IncompleteError, UsageError
from klearbench.faults import fault
from klearbench.progress import Progress
from klearbench.reports.html import write_report
from klearbench.run import Lock, Run, read_manifest
from klearbench.sandbox.base import Sandbox
from klearbench.scoring.metrics import SuiteScore, score_suite
from klearbench.store import JsonlWriter, dumps, read_records, write_atomic
from klearbench.suites.base import Suite
from klearbench.suites.references import Judge, JudgeOptions, OpenJudges, open_judges
from klearbench.types import FinishReason, Problem, Sample, Status, Verdict, to_row


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What is asked of a run. `limit` keeps the first problems of each suite (None: all); `samples` is k of avg@k.

    `sandbox`, `code_mode` and `first_failure` say how programs are judged; see JudgeOptions.
    """

    samples: int = 1
    limit: int | None = None
    seed: int = 0
    sampling: Sampling = field(default_factory=Sampling)
    prompt: str = "ours"
    math_judge: str = "strict"
    judge_workers: int = 1
    sandbox: str | Sandbox = "local"
    code_mode: str = "strict"
    first_failure: bool = False
    allow_partial: bool = False

    def judging(self, out: Path) -> JudgeOptions:
        """How a run in the folder `out` is judged."""
        return JudgeOptions(
            math=self.math_judge,
            sandbox=self.sandbox,
            code=self.code_mode,
            first_failure=self.first_failure,
            workers=self.judge_workers,
            differences=out / DIFFERENCES,
        )


DIFFERENCES = "math_differences.jsonl"
"""In a run folder: where the two math judges differ, with `math_judge` "both"."""

Planned = tuple[Problem, int]
"""A problem and a sample index."""


def evaluate(
    out: Path, suites: Sequence[Suite], engine: Engine, options: EvalOptions, about: dict[str, Any] | None = None
) -> list[SuiteScore]:
    """Sample, judge and score; the same call finishes an interrupted run and extends one by more samples or problems.

    Args:
        out: the run folder.
        suites: loaded suites.
        engine: the sampler; the caller closes it.
        options: how much, with which sampling and judge.
        about: remarks for the manifest that decide nothing (the model's path); the problems' ids are added.

    Returns:
        One score a suite.

    Raises:
        UsageError: two suites of one name.
        DataError: a reference that can't be judged.
        RunConflict: the folder holds a run of another configuration.
        IncompleteError: judge errors or missing samples, unless `allow_partial`; everything finished is kept.
    """
    _refuse_namesakes(suites)
    suites = [replace(s, problems=s.problems[: options.limit]) for s in suites]
    with open_judges((s.answers[p.id] for s in suites for p in s.problems), options.judging(out)) as judge:
        inputs = {f"suite:{s.name}": s.content_hash for s in suites}
        config = _config(suites, engine, options, judge)
        remarks = {**(about or {}), "problems": {s.name: [p.id for p in s.problems] for s in suites}}
        with Run(out, config, inputs, extends=("samples", "limit"), about=remarks) as run:
            _settle(run.path)
            for suite in suites:
                _sample_and_judge(run, suite, engine, options, judge)
            return _score(run, suites, options)


def _refuse_namesakes(suites: Sequence[Suite]) -> None:
    """Records name their suite by its name alone; two files of one stem would be mixed."""
    names = [suite.name for suite in suites]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"two suites are named {name!r}; rename one of the files, or give it a name in a YAML file"
            )


def _config(suites: Sequence[Suite], engine: Engine, options: EvalOptions, judge: OpenJudges) -> dict[str, Any]:
    config = {
        "command": "eval",
        "suites": [suite.name for suite in suites],
        "samples": options.samples,
        "limit": options.limit,
        "seed": options.seed,
        "sampling": asdict(options.sampling),
        "prompt": options.prompt,
        "engine": dict(engine.identity()),
        "judge": dict(judge.math),
    }
    return config if judge.code is None else {**config, "code_judge": dict(judge.code)}


def plan_batches(suite: Suite, samples: int, size: int) -> Iterator[list[Planned]]:
    """The fixed plan: batches never mix sample indices, so that raising `samples` adds batches and changes none."""
    for index in range(samples):
        for start in range(0, len(suite.problems), size):
            yield [(problem, index) for problem in suite.problems[start : start + size]]


def _sample_and_judge(run: Run, suite: Suite, engine: Engine, options: EvalOptions, judge: Judge) -> None:
    samples = [s for s in read_records(run.path / "samples.jsonl", Sample) if s.suite == suite.name]
    judged = {verdict.key for verdict in read_records(run.path / "verdicts.jsonl", Verdict)}
    have = {sample.key for sample in samples}
    total = len(suite.problems) * options.samples
    with (
        JsonlWriter(run.path / "samples.jsonl") as sample_log,
        JsonlWriter(run.path / "verdicts.jsonl") as verdict_log,
        Progress(f"eval {suite.name}", total, len(have), "samples") as progress,
    ):
        _judge([s for s in samples if s.key not in judged], suite, judge, verdict_log)
        for number, batch in enumerate(plan_batches(suite, options.samples, engine.batch_size), start=1):
            missing = {(suite.name, problem.id, index) for problem, index in batch} - have
            if not missing:
                continue
            (run.path / "scores.json").unlink(missing_ok=True)  # of fewer samples: it must not outlive its manifest
            run.log(f"engine call: {suite.name} batch {number}, {len(batch)} samples, {len(missing)} of them missing")
            fresh = [s for s in _generate(suite.name, batch, engine, options) if s.key in missing]
            sample_log.append(*map(to_row, fresh))
            _judge(fresh, suite, judge, verdict_log)
            progress.advance(len(fresh))


def _settle(run: Path) -> None:
    """Take back what a rerun is to try again: samples that the engine failed to make, verdicts that were our own fault,
    and verdicts whose sample is gone (a disk may lose one log's last second and not the other's)."""
    samples, verdicts = read_records(run / "samples.jsonl", Sample), read_records(run / "verdicts.jsonl", Verdict)
    made = [s for s in samples if s.finish_reason is not FinishReason.error]
    keys = {s.key for s in made}
    settled = [v for v in verdicts if v.status is not Status.judge_error and v.key in keys]
    if len(made) < len(samples):
        write_atomic(run / "samples.jsonl", "".join(dumps(to_row(s)) + "\n" for s in made))
    if len(settled) < len(verdicts):
        write_atomic(run / "verdicts.jsonl", "".join(dumps(to_row(v)) + "\n" for v in settled))


def _generate(suite: str, batch: Sequence[Planned], engine: Engine, options: EvalOptions) -> list[Sample]:
    fault("engine.call")
    seeds = [sample_seed(options.seed, suite, problem.id, index) for problem, index in batch]
    requests = [
        Request(problem.prompt, seed, (problem.id, index)) for (problem, index), seed in zip(batch, seeds, strict=True)
    ]
    made = engine.generate(requests, options.sampling)
    return [as_sample(suite, request, generation) for request, generation in zip(requests, made, strict=True)]


def _judge(samples: Sequence[Sample], suite: Suite, judge: Judge, log: JsonlWriter) -> None:
    made = [sample for sample in samples if sample.finish_reason is not FinishReason.error]
    verdicts = judge.judge([(sample, suite.answers[sample.problem_id]) for sample in made])
    log.append(*map(to_row, verdicts))


def _score(run: Run, suites: Sequence[Suite], options: EvalOptions) -> list[SuiteScore]:
    scores = score_run(run.path, {s.name: [p.id for p in s.problems] for s in suites}, options.samples)
    write_scores(run.path, scores)
    write_report([run.path], run.path / "report.html")
    run.log("scored: " + ", ".join(f"{s.suite} {s.avg}" for s in scores))
    _refuse_incomplete(run.path, scores, options.allow_partial)
    return scores


def _refuse_incomplete(path: Path, scores: Sequence[SuiteScore], allow_partial: bool) -> None:
    broken = [s for s in scores if not s.complete]
    if broken and not allow_partial:
        worst = broken[0]
        raise IncompleteError(
            f"{path} is incomplete: {worst.suite} has {worst.judge_errors} judge errors, {worst.engine_errors} engine"
            f" errors and {worst.missing} missing samples; rerun the same command to finish it, or accept the rest with"
            f" --allow-partial"
        )


def score_run(path: Path, problems: dict[str, list[str]], samples: int) -> list[SuiteScore]:
    """The scores of a run folder from its samples and verdicts, one a suite."""
    all_samples = read_records(path / "samples.jsonl", Sample)
    all_verdicts = read_records(path / "verdicts.jsonl", Verdict)
    return [
        score_suite(
            name,
            [s for s in all_samples if s.suite == name],
            [v for v in all_verdicts if v.suite == name],
            ids,
            samples,
        )
        for name, ids in problems.items()
    ]


def write_scores(path: Path, scores: Sequence[SuiteScore]) -> None:
    """scores.json: suite -> its score and everything that was counted."""
    write_atomic(path / "scores.json", json.dumps({s.suite: asdict(s) for s in scores}, indent=1) + "\n")


def rescore(path: Path, *, allow_partial: bool = False) -> list[SuiteScore]:
    """Scores, scores.json and the report of a finished or interrupted run, again, from its records alone.

    Raises:
        DataError: no run folder, or a corrupt record.
        IncompleteError: as `evaluate`.
    """
    manifest = read_manifest(path)
    config = manifest["config"]
    if config.get("command") != "eval":
        raise DataError(path, f"is a run of {config.get('command')!r}, an evaluation was expected")
    lock = Lock(path / ".lock")
    try:
        scores = score_run(path, _asked(path, manifest), config["samples"])
        write_scores(path, scores)
        write_report([path], path / "report.html")
    finally:
        lock.release()
    _refuse_incomplete(path, scores, allow_partial)
    return scores


def _asked(path: Path, manifest: Mapping[str, Any]) -> dict[str, list[str]]:
    """The problems that a run asked, by suite. Raises DataError where the manifest does not say."""
    problems = manifest.get("about", {}).get("problems")
    if not isinstance(problems, dict):
        raise DataError(path / "manifest.json", "does not name the run's problems (about.problems)")
    return problems
