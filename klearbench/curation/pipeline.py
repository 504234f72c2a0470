"""The whole curation on one page: recipe in, dataset folder out.

    sources -> Problem -> screen (dedup, decontaminate) -> distill (teacher) -> Sample -> verify (judge) -> Verdict
            -> pass rates -> filters -> dedup -> Parquet + rejected rows + card + funnel

Problems are screened before the teacher is asked: a response costs more than anything else here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.config import dump_recipe
from klearbench.curation.assemble import Material, publish, write_files
from klearbench.curation.card import render_card, render_funnel
from klearbench.curation.distill import Plan, SampleLog, distill
from klearbench.curation.recipe import EXTENDS, Recipe, load_curation
from klearbench.curation.screen import screen
from klearbench.curation.sources import Pool, benchmarks, load_pool, texts
from klearbench.curation.verify import Judged, to_judge, verify
from klearbench.engines.registry import build_engine
from klearbench.errors import IncompleteError, RunConflict
from klearbench.run import Run, flatten
from klearbench.store import content_hash, dumps, text_hash, write_atomic
from klearbench.suites.references import JudgeOptions, open_judges

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Summary:
    """What came of it: the counts as the card shows them, the engine calls of this process, the data files' hashes.

    `done_before` is true when an earlier run had finished and nothing was done.
    """

    counts: Mapping[str, Any]
    engine_calls: int = 0
    files: Mapping[str, str] | None = None
    done_before: bool = False


def curate(
    recipe_path: Path, out: Path, overrides: Sequence[str] = (), *, dry_run: bool = False, say: Say = print
) -> Summary:
    """Make a dataset. The same command resumes what was interrupted and does nothing when all is done.

    Args:
        recipe_path: a YAML file of the form of `klearbench.curation.recipe.Recipe`.
        out: the dataset folder.
        overrides: `--set` items.
        dry_run: print the resolved recipe and what would be done, and do nothing.
        say: where lines for the user go.

    Raises:
        UsageError: a bad recipe, source or option; a folder made by another recipe.
        IncompleteError: responses failed or could not be judged (the dataset is written without them), or an output
            has no row.
    """
    recipe = load_curation(recipe_path, overrides)
    pool = load_pool(recipe, recipe_path.parent)
    against = benchmarks(recipe, recipe_path.parent)
    inputs = pool.hashes | {f"against.{name}": suite.content_hash for name, suite in against.items()}
    problems, dropped = screen(pool.problems, texts(against), recipe)
    plan = Plan(problems, recipe.teacher.samples, recipe.seed)
    say(f"problems: {len(pool.problems):,} read, {len(dropped):,} dropped as copies, {len(problems):,} to be answered")
    if dry_run:
        say(f"would make {len(plan):,} responses, {recipe.teacher.samples} a problem; the resolved recipe:")
        say(dump_recipe(recipe).rstrip())
        return Summary({"problems": {"read": len(pool.problems), "kept": len(problems)}, "responses": len(plan)})
    with Run(out, recipe.run_config(), inputs, EXTENDS) as run:
        if (before := _finished(run, recipe)) is not None:
            say(f"{out} is complete already: nothing to do ({_rows(before['counts'])})")
            return Summary(before["counts"], files=before["files"], done_before=True)
        with SampleLog(out / "work" / "samples.jsonl", plan) as log:
            judged = Judged(plan, out / "work" / "verdicts.jsonl")
            calls = _answer_and_judge(recipe, pool, log, judged, run)
            summary = _write(Material(recipe, pool, dropped, log, judged), run, calls)
        say(f"{out}: {_rows(summary.counts)}")
        _refuse_if_incomplete(summary.counts, out)
        return summary


def _answer_and_judge(recipe: Recipe, pool: Pool, log: SampleLog, judged: Judged, run: Run) -> int:
    """Finish samples.jsonl and verdicts.jsonl; returns the number of engine calls."""
    if not log.any_missing() and not to_judge(log, judged):
        return 0
    rules = recipe.verify
    differences = run.path / "work" / "math_differences.jsonl"
    how = JudgeOptions(rules.mode, rules.sandbox, rules.code_mode, workers=rules.workers, differences=differences)
    with open_judges((pool.answers[p.suite, p.id] for p in log.plan.problems), how) as judge:
        identity = judge.math if judge.code is None else {**judge.math, "code": judge.code}
        _pin(run.path / "work" / "judge.json", identity, "judge")
        calls = _ask_teacher(recipe, log, run)
        verify(log, judged, pool.answers, judge, run.path / "work" / "verdicts.jsonl")
    return calls


def _ask_teacher(recipe: Recipe, log: SampleLog, run: Run) -> int:
    if not log.any_missing():
        return 0
    engine = build_engine(recipe.teacher.engine, recipe.teacher.options)
    try:
        identity = {**engine.identity(), "batch_size": engine.batch_size}
        _pin(run.path / "work" / "engine.json", identity, "teacher")
        return distill(log, engine, recipe.teacher, run.log)
    finally:
        engine.close()


def _pin(path: Path, identity: Mapping[str, Any], what: str) -> None:
    """Keep what made the first rows; refuse to go on with another (its name is in the message)."""
    now = json.loads(dumps(dict(identity)))
    if not path.exists():
        write_atomic(path, dumps(now) + "\n")
        return
    before = json.loads(path.read_text())
    if before != now:
        old, new = flatten(before), flatten(now)
        name = next(n for n in sorted(old.keys() | new.keys()) if old.get(n) != new.get(n))
        raise RunConflict(
            f"{path.parent.parent} was made with {what} {name} = {old.get(name)!r}, now it is {new.get(name)!r};"
            " use the same, or another -o"
        )


def _write(material: Material, run: Run, calls: int) -> Summary:
    """All files, then the manifest's entry that says they are whole: after a kill before it, all are written again."""
    staging = run.path / "work" / "new"
    shutil.rmtree(staging, ignore_errors=True)
    counts = write_files(material, staging)
    names = publish(staging, run.path)
    shutil.rmtree(staging)
    write_atomic(run.path / "README.md", render_card(material.recipe, counts, content_hash(run.path / "data")))
    write_atomic(run.path / "funnel.html", render_funnel(material.recipe, counts))
    files = {name: content_hash(run.path / name) for name in (*names, "README.md", "funnel.html")}
    entry = {"recipe": _fingerprint(material.recipe), "counts": counts, "files": files, "complete": not _lacks(counts)}
    write_atomic(run.path / "manifest.json", json.dumps({**run.manifest, "dataset": entry}, indent=1) + "\n")
    return Summary(counts, calls, files)


def _fingerprint(recipe: Recipe) -> str:
    return text_hash(dumps(recipe.run_config()))


def _finished(run: Run, recipe: Recipe) -> dict[str, Any] | None:
    """The manifest's entry of an earlier run that ended well, if all its files are there."""
    entry: dict[str, Any] = run.manifest.get("dataset", {})
    whole = entry.get("complete") and entry["recipe"] == _fingerprint(recipe)
    return entry if whole and all((run.path / name).is_file() for name in entry["files"]) else None


def _lacks(counts: Mapping[str, Any]) -> list[str]:
    """What keeps a dataset from being complete, in words."""
    responses = counts["responses"]
    errors = {
        "could not be judged": responses["statuses"].get("judge_error", 0),
        "failed in the engine": responses["engine_errors"],
    }
    lacks = [f"{count:,} of {responses['made']:,} responses {what}" for what, count in errors.items() if count]
    return lacks + [
        f"output {name!r} has no train row" for name, c in counts["outputs"].items() if not c["kept"]["train"]
    ]


def _refuse_if_incomplete(counts: Mapping[str, Any], out: Path) -> None:
    if lacks := _lacks(counts):
        remedy = "the dataset was written without those rows, which stand in rejected/; the same command tries again"
        raise IncompleteError(f"{out}: {'; '.join(lacks)}; {remedy}")


def _rows(counts: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{name}: " + ", ".join(f"{rows:,} {split}" for split, rows in c["kept"].items())
        + f", {sum(c['rejected'].values()):,} rejected"
        for name, c in counts["outputs"].items()
    )  # fmt: skip
