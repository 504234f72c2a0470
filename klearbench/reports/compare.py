"""Runs compared: the first with each other one, suite by suite, paired by problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from klearbench.reports.bundle import Bundle, faults
from klearbench.run import flatten
from klearbench.scoring.differences import Difference, compare_counts
from klearbench.scoring.metrics import EvalRun, SuiteScore
from klearbench.scoring.uncertainty import Count

_OWN = ("command", "suites", "samples", "limit", "seed", "engine.batch_size")
"""Fields of a configuration that say nothing of how a sample is made, or that the comparison looks at by itself."""
MOST_CHANGED = 10


@dataclass(frozen=True, slots=True)
class Change:
    """One problem in two runs."""

    problem_id: str
    base: Count
    candidate: Count

    @property
    def points(self) -> float:
        """The change of the problem's share of right samples, -100..100."""
        return 100 * (self.candidate.share - self.base.share)


@dataclass(frozen=True, slots=True)
class Paired:
    """A suite in two runs. `why_not` is one line where they can't be compared, and then nothing else is known.

    `incomplete`: one of the two scores may not be taken for good, and so may the difference not.
    `changes` are the problems of which both runs have judged samples, in the order of the suite; `left_out` counts the
    others.
    """

    suite: str
    base: str
    candidate: str
    why_not: str = ""
    difference: Difference | None = None
    changes: tuple[Change, ...] = ()
    left_out: int = 0
    incomplete: bool = False

    def most_changed(self) -> list[Change]:
        """The problems that changed most, the largest change first; those that did not change are none of them."""
        changed = [change for change in self.changes if change.points]
        return sorted(changed, key=lambda change: -abs(change.points))[:MOST_CHANGED]


def compare_runs(bundle: Bundle) -> list[Paired]:
    """Every suite that the first run shares with another one. Empty for a single run."""
    base, *others = bundle.runs
    shared = bundle.runs[base].scores
    return [
        _paired(bundle, base, name, suite) for name in others for suite in bundle.runs[name].scores if suite in shared
    ]


def _paired(bundle: Bundle, base: str, name: str, suite: str) -> Paired:
    runs = bundle.runs[base], bundle.runs[name]
    first, second = (run.scores[suite] for run in runs)
    if why_not := _why_not(first, second):
        return Paired(suite, base, name, why_not)
    rows = {row.problem_id: row for row in second.per_problem}
    pairs = [(row, rows[row.problem_id]) for row in first.per_problem]
    changes = tuple(
        Change(a.problem_id, Count(a.right, a.judged), Count(b.right, b.judged))
        for a, b in pairs
        if a.judged and b.judged
    )
    if not changes:
        return Paired(suite, base, name, "no problem has judged samples in both runs")
    difference = compare_counts([change.base for change in changes], [change.candidate for change in changes])
    incomplete = any(faults(run, run.scores[suite]) for run in runs)
    return Paired(suite, base, name, "", difference, changes, len(pairs) - len(changes), incomplete)


def _why_not(first: SuiteScore, second: SuiteScore) -> str:
    if first.k != second.k:
        return f"{first.k} and {second.k} samples a problem"
    ids = [{row.problem_id for row in score.per_problem} for score in (first, second)]
    if ids[0] != ids[1]:
        return f"other problems: {len(ids[0] - ids[1])} only in the first run, {len(ids[1] - ids[0])} only in the other"
    return ""


def differing_settings(base: EvalRun, candidate: EvalRun) -> list[tuple[str, str, str]]:
    """Fields of the two configurations and hashes of their suites that differ: (name, base's, candidate's)."""
    before, after = (_settings(run) for run in (base, candidate))
    names: Sequence[str] = list(dict.fromkeys([*before, *after]))
    return [
        (name, str(before.get(name, "-")), str(after.get(name, "-")))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _settings(run: EvalRun) -> dict[str, object]:
    shared = {f"suite:{suite}" for suite in run.scores}
    inputs = {k: str(v)[:12] for k, v in run.manifest.get("inputs", {}).items() if k in shared}
    own = ("suites.", "samples.")
    config = {k: v for k, v in flatten(run.config).items() if k not in _OWN and not k.startswith(own)}
    return {"model": run.manifest.get("about", {}).get("model"), **config, **inputs}
