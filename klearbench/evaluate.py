"""The whole evaluation path: suite -> problems -> engine -> samples -> judge -> verdicts -> scores -> report.

Samples are made by a fixed plan (`sampling`), judged in a thread beside it (`judgethread`), and both are written as
they come. The same call finishes an interrupted run and makes only what is missing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from klearbench.engines.base import LOG, Engine, Sampling
from klearbench.errors import DataError, IncompleteError, UsageError
from klearbench.integrations.lm_eval import refuse_choices
from klearbench.judgethread import JudgeThread
from klearbench.progress import Progress
from klearbench.records import (
    SAMPLES,
    VERDICTS,
    asked_problems,
    light_samples,
    light_verdicts,
    read_problems,
    settle,
    write_problems,
)
from klearbench.reports.html import write_report
from klearbench.run import Lock, Run, read_manifest
from klearbench.sampling import Place, Plan, missing_samples, with_system
from klearbench.sandbox.base import Sandbox
from klearbench.scoring.groups import groups_of
from klearbench.scoring.metrics import SuiteScore, samples_of, score_suite
from klearbench.store import JsonlWriter, scan, write_atomic
from klearbench.suites.base import Suite
from klearbench.suites.references import Judge, JudgeOptions, OpenJudges, open_judges
from klearbench.types import Sample, SampleKey, to_row


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What is asked of a run.

    Attributes:
        samples: k of avg@k, for all suites or by suite.
        limit: keeps the first problems of each suite (None: all).
        seed: every sample's own seed is a hash of this and the sample's place.
        prompt: whose prompts the suites were loaded with, "ours" or "official"; recorded.
        system: a system prompt in place of the suites' own; "" takes theirs away, None leaves it.
        errata: whether the suites were loaded with their errata applied; recorded.
        math_judge, judge_workers, sandbox, code_mode, first_failure: how is judged; see JudgeOptions.
        allow_partial: accept judge errors, engine errors and missing samples.
    """

    samples: int | Mapping[str, int] = 1
    limit: int | None = None
    seed: int = 0
    sampling: Sampling = field(default_factory=Sampling)
    prompt: str = "ours"
    system: str | None = None
    errata: bool = True
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


def evaluate(
    out: Path, suites: Sequence[Suite], engine: Engine, options: EvalOptions, about: dict[str, Any] | None = None
) -> list[SuiteScore]:
    """Sample, judge and score; the same call finishes an interrupted run and extends one by more samples or problems.

    Args:
        out: the run folder.
        suites: loaded suites.
        engine: the sampler; the caller closes it.
        options: how much, with which sampling and judge.
        about: remarks for the manifest that decide nothing (the model's path); the problems' ids and the errata that
            were applied are added.

    Returns:
        One score a suite.

    Raises:
        UsageError: two suites of one name.
        DataError: a reference that can't be judged.
        RunConflict: the folder holds a run of another configuration.
        EngineDown: the engine can make nothing more; everything finished is kept.
        IncompleteError: judge errors or missing samples, unless `allow_partial`; everything finished is kept.
    """
    _refuse_namesakes(suites)
    refuse_choices(suites, engine)
    suites = [_asked(suite, options) for suite in suites]
    with open_judges((s.answers[p.id] for s in suites for p in s.problems), options.judging(out)) as judge:
        inputs = {f"suite:{s.name}": s.content_hash for s in suites}
        config = _config(suites, engine, options, judge)
        with Run(out, config, inputs, extends=("samples", "samples.*", "limit"), about=_about(suites, about)) as run:
            made, judged = settle(run.path)
            write_problems(run.path, (problem for suite in suites for problem in suite.problems))
            with _engine_log(run):
                _sample_and_judge(run, suites, engine, options, judge, made, made - judged)
            return _score(run, suites, options)


def _asked(suite: Suite, options: EvalOptions) -> Suite:
    """A suite with the problems that are asked. Of a part of them only the errata of these are told."""
    problems = with_system(suite, options.system)
    if options.limit is None or options.limit >= len(problems):
        return replace(suite, problems=problems)
    asked = problems[: options.limit]
    ids = {problem.id for problem in asked}
    return replace(suite, problems=asked, errata=tuple(e for e in suite.errata if e.id in ids))


def _refuse_namesakes(suites: Sequence[Suite]) -> None:
    """Records name their suite by its name alone; two files of one stem would be mixed."""
    names = [suite.name for suite in suites]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"two suites are named {name!r}; rename one of the files, or give it a name in a YAML file"
            )


def _config(suites: Sequence[Suite], engine: Engine, options: EvalOptions, judge: OpenJudges) -> dict[str, Any]:
    counts = {suite.name: samples_of(options.samples, suite.name) for suite in suites}
    config = {
        "command": "eval",
        "suites": [suite.name for suite in suites],
        "samples": counts if len(set(counts.values())) > 1 else next(iter(counts.values()), 1),
        "limit": options.limit,
        "seed": options.seed,
        "sampling": asdict(options.sampling),
        "prompt": options.prompt,
        "system": options.system,
        "errata": options.errata,
        "engine": dict(engine.identity()),
        "judge": dict(judge.math),
    }
    own = {suite.name: dict(suite.sampling) for suite in suites if suite.sampling}
    return config | ({"suite_sampling": own} if own else {}) | ({"code_judge": dict(judge.code)} if judge.code else {})


def _about(suites: Sequence[Suite], about: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        **(about or {}),
        "problems": {suite.name: [problem.id for problem in suite.problems] for suite in suites},
        "errata": {suite.name: [asdict(erratum) for erratum in suite.errata] for suite in suites if suite.errata},
    }


@contextmanager
def _engine_log(run: Run) -> Iterator[None]:
    """What engines tell goes to the run's log.txt."""
    handler = logging.Handler()
    handler.emit = lambda record: run.log(f"engine: {record.getMessage()}")  # type: ignore[method-assign]
    LOG.addHandler(handler)
    try:
        yield
    finally:
        LOG.removeHandler(handler)


def _sample_and_judge(
    run: Run,
    suites: Sequence[Suite],
    engine: Engine,
    options: EvalOptions,
    judge: Judge,
    made: Set[SampleKey],
    unjudged: Set[SampleKey],
) -> None:
    """Make what is missing beside `made`, and judge it and the samples of `unjudged`, which an interrupted run left."""
    by_name = {suite.name: suite for suite in suites}
    have: dict[str, set[Place]] = {suite.name: set() for suite in suites}
    for name, problem, index in made:
        have.setdefault(name, set()).add((problem, index))
    plans = [_plan(suite, options) for suite in suites]
    total = sum(plan.samples * len(plan.suite.problems) for plan in plans)
    done = sum(len(have[suite.name]) for suite in suites)
    with (
        JsonlWriter(run.path / SAMPLES) as sample_log,
        JsonlWriter(run.path / VERDICTS) as verdict_log,
        Progress(f"eval {', '.join(by_name)}", total, done, "samples") as progress,
        JudgeThread(judge, lambda s: by_name[s.suite].answers[s.problem_id], verdict_log, progress) as judging,
    ):
        for sample in scan(run.path / SAMPLES, Sample) if unjudged else ():
            if sample.key in unjudged and sample.suite in by_name:
                judging.put([sample])
        for plan in plans:
            for fresh in missing_samples(plan, engine, have[plan.suite.name], run.log):
                # Scores of fewer samples must not outlive the first one that is added to them.
                (run.path / "scores.json").unlink(missing_ok=True)
                sample_log.append(*map(to_row, fresh))
                judging.put(fresh)
                progress.advance(len(fresh), judging.note)


def _plan(suite: Suite, options: EvalOptions) -> Plan:
    sampling = replace(options.sampling, **suite.sampling)
    return Plan(suite, samples_of(options.samples, suite.name), options.seed, sampling)


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


def score_run(path: Path, problems: Mapping[str, Sequence[str]], samples: int | Mapping[str, int]) -> list[SuiteScore]:
    """The scores of a run folder from its records, one a suite; `samples` is k, for all suites or by suite."""
    made, said = list(light_samples(path)), list(light_verdicts(path))
    known = read_problems(path)
    return [
        score_suite(
            name,
            (s for s in made if s.suite == name),
            (v for v in said if v.suite == name),
            ids,
            samples_of(samples, name),
            groups_of(name, ids, known),
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
        scores = score_run(path, asked_problems(path, manifest), config["samples"])
        write_scores(path, scores)
        write_report([path], path / "report.html")
    finally:
        lock.release()
    _refuse_incomplete(path, scores, allow_partial)
    return scores
