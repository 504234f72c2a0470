"""From judged responses to the dataset's files: every row is kept or rejected with a reason, and counted."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.curation import tables
from klearbench.curation.decontaminate import symbols
from klearbench.curation.dedup import Seen
from klearbench.curation.distill import SampleLog
from klearbench.curation.filters import KEEP, Decision, Filter, Trace, keep_wrong, pass_rate
from klearbench.curation.recipe import Output, Recipe
from klearbench.curation.screen import Dropped
from klearbench.curation.sources import Pool, prompt_text
from klearbench.curation.tables import TableWriter
from klearbench.curation.verify import Judged
from klearbench.faults import fault
from klearbench.store import text_hash
from klearbench.types import FinishReason, Problem, Status, parquet_text

Judgement = tuple[str, str]
"""(stage, reason) of a row that is dropped."""

Row = tuple[Problem, dict[str, Any], Judgement | None]
"""A problem, a row made of it, and why the row is dropped (None: it is kept)."""


@dataclass(frozen=True, slots=True)
class Material:
    """All that the files are made from."""

    recipe: Recipe
    pool: Pool
    dropped: Sequence[Dropped]
    log: SampleLog
    judged: Judged


def split_of(problem: Problem, validation_share: float) -> str:
    """ "validation" or "train", by a hash of the problem's words and operators: copies that differ in punctuation or
    mark-up never stand on both sides.

    The hash has a salt of its own: sources, too, are split by hashes (the puzzles' test part is one), and without it
    the two choices would not be independent.
    """
    place = int(text_hash(f"validation\0{' '.join(symbols(prompt_text(problem)))}")[:12], 16) / 16**12
    return "validation" if place < validation_share else "train"


def write_files(material: Material, folder: Path) -> dict[str, Any]:
    """Write all Parquet files below a folder.

    Returns:
        the counts: {"problems", "kinds", "responses", "pass_rates", "outputs"}, as the card shows them.
    """
    recipe = material.recipe
    outputs = {o.name: _write_output(o, ROWS[o.name](material, o), recipe, folder) for o in recipe.outputs}
    plan, judged = material.log.plan, material.judged
    rates = Counter(judged.pass_rate(number) for number in range(len(plan.problems)))
    return {
        "problems": _write_dropped(material, folder),
        "kinds": dict(sorted(Counter(str(problem.kind) for problem in plan.problems).items())),
        "responses": {
            "made": len(plan),
            "engine_errors": len(material.log.failed),
            "statuses": {str(s): n for s in Status if (n := judged.count(s))},
        },
        "pass_rates": {f"{rate:.4g}": rates[rate] for rate in sorted(r for r in rates if r is not None)},
        "outputs": outputs,
    }


def _write_dropped(material: Material, folder: Path) -> dict[str, Any]:
    reasons: Counter[str] = Counter()
    with TableWriter(folder / "rejected" / "problems.parquet", tables.rejected(tables.PROBLEM)) as writer:
        for item in material.dropped:
            why = {"stage": item.stage, "reason": item.reason, "detail": parquet_text(item.detail)}
            writer.append(tables.problem_row(item.problem) | why)
            reasons[f"{item.stage}: {item.reason}"] += 1
    return {
        "read": len(material.pool.problems),
        "rejected": dict(sorted(reasons.items())),
        "kept": len(material.log.plan.problems),
    }


def _write_output(output: Output, rows: Iterator[Row], recipe: Recipe, folder: Path) -> dict[str, Any]:
    schema = tables.SCHEMAS[output.name]
    splits = ["train", "validation"] if recipe.validation_share else ["train"]
    reasons: Counter[str] = Counter()
    with ExitStack() as stack:
        writers = {s: stack.enter_context(TableWriter(folder / data_file(output.name, s), schema)) for s in splits}
        rejected_path = folder / "rejected" / f"{output.name}.parquet"
        out = stack.enter_context(TableWriter(rejected_path, tables.rejected(schema)))
        for problem, row, why in rows:
            if why is None:
                writers[split_of(problem, recipe.validation_share)].append(row)
            else:
                out.append(row | {"stage": why[0], "reason": why[1], "detail": ""})
                reasons[f"{why[0]}: {why[1]}"] += 1
    kept = {split: writer.rows for split, writer in writers.items()}
    return {"rows": sum(kept.values()) + out.rows, "kept": kept, "rejected": dict(sorted(reasons.items()))}


def data_file(output: str, split: str) -> str:
    """Where a split stands in the dataset folder."""
    return f"data/{split}-{output}-00000-of-00001.parquet"


def _sft_rows(material: Material, output: Output) -> Iterator[Row]:
    recipe, plan, judged = material.recipe, material.log.plan, material.judged
    chain = _chain(recipe, output)
    for number, problem in enumerate(plan.problems):
        rate = judged.pass_rate(number)
        for place in plan.places(number):
            trace = Trace(problem, material.log.read(place), judged.status(place), judged.score(place), rate)
            row = tables.sft_row(trace, recipe, material.pool.licences[problem.suite])
            yield problem, row, _first_no(chain, trace)


def _rl_rows(material: Material, output: Output) -> Iterator[Row]:
    low, high = output.pass_rate
    for number, problem in enumerate(material.log.plan.problems):
        rate = material.judged.pass_rate(number)
        reference = material.pool.answers[problem.suite, problem.id]
        row = tables.rl_row(problem, reference, rate, material.pool.licences[problem.suite])
        why: Judgement | None = None
        if rate is None:
            why = ("verify", "judge_error")
        elif not low <= rate <= high:
            why = ("output", "pass_rate_low" if rate < low else "pass_rate_high")
        yield problem, row, why


ROWS: dict[str, Callable[[Material, Output], Iterator[Row]]] = {"sft": _sft_rows, "rl": _rl_rows}


def _chain(recipe: Recipe, output: Output) -> list[tuple[str, Filter]]:
    """All that a response must pass, in order: our own failures first, so that none of them passes for the sample's."""
    chain: list[tuple[str, Filter]] = [
        ("distill", _engine_did_its_work),
        ("verify", _judge_did_its_work),
        ("verify", keep_wrong(recipe.verify.wrong, recipe.verify.easy_above)),
        *(("filters", spec.build()) for spec in recipe.filters),
        ("output", pass_rate(*output.pass_rate)),
    ]
    if recipe.dedup.traces:
        chain.append(("dedup", _new_trace(Seen())))
    return chain


def _first_no(chain: Sequence[tuple[str, Filter]], trace: Trace) -> Judgement | None:
    for stage, decide in chain:
        keep, reason = decide(trace)
        if not keep:
            return stage, reason
    return None


def _engine_did_its_work(trace: Trace) -> Decision:
    return (False, "engine_error") if trace.sample.finish_reason is FinishReason.error else KEEP


def _judge_did_its_work(trace: Trace) -> Decision:
    return (False, "judge_error") if trace.status in (None, Status.judge_error) else KEEP


def _new_trace(seen: Seen) -> Filter:
    def decide(trace: Trace) -> Decision:
        name = f"{trace.problem.suite}/{trace.problem.id}"
        copy = seen.first(name, name, trace.sample.completion)
        return (False, "duplicate_trace") if copy else KEEP

    return decide


def publish(staging: Path, out: Path) -> list[str]:
    """Move the finished files to their places; files of an earlier, smaller run go. Returns their names, sorted."""
    names = sorted(str(p.relative_to(staging)) for p in staging.rglob("*.parquet"))
    for folder in ("data", "rejected"):
        (out / folder).mkdir(exist_ok=True)
        for old in (out / folder).iterdir():
            if f"{folder}/{old.name}" not in names:
                old.unlink()
    for name in names:
        fault("curate.publish")
        with (staging / name).open("rb") as handle:
            os.fsync(handle.fileno())
        (staging / name).replace(out / name)
    return names
