"""The report as JSON: `{"format": 1, "runs": [...], "compared": [...]}`, for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from klearbench.reports.bundle import Bundle, faults
from klearbench.reports.charts import accuracy_by_length
from klearbench.reports.compare import Paired, compare_runs, differing_settings
from klearbench.reports.published import SOURCE, differences, published
from klearbench.scoring.metrics import EvalRun, SuiteScore


def json_report(bundle: Bundle) -> str:
    """Each run with its configuration and scores, `complete` false with `reasons` where they may not be taken for good;
    the first run compared with each other one, `comparable` false with `reason` where that can't be."""
    runs = [_run(name, run) for name, run in bundle.runs.items()]
    base = next(iter(bundle.runs.values()))
    compared = [_pair(pair, base, bundle.runs[pair.candidate]) for pair in compare_runs(bundle)]
    whole = {"format": 1, "runs": runs, "compared": compared}
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def _run(name: str, run: EvalRun) -> dict[str, Any]:
    about = {k: v for k, v in run.manifest.get("about", {}).items() if k != "problems"}
    scores = {suite: _score(run, score) for suite, score in run.scores.items()}
    return {
        "name": name,
        "complete": all(score["complete"] for score in scores.values()),
        "config": run.config,
        "about": about,
        "scores": scores,
    }


def _score(run: EvalRun, score: SuiteScore) -> dict[str, Any]:
    why = faults(run, score)
    theirs = [
        {**asdict(row), "source": SOURCE, "differences": differences(run, score.suite, row)}
        for row in published(score.suite)
    ]
    return {
        **asdict(score),
        "complete": not why,
        "reasons": why,
        "accuracy_by_length": [{**row._asdict(), "points": row.points} for row in accuracy_by_length(run, score.suite)],
        "published": theirs,
    }


def _pair(pair: Paired, base: EvalRun, candidate: EvalRun) -> dict[str, Any]:
    row: dict[str, Any] = {
        "suite": pair.suite,
        "base": pair.base,
        "candidate": pair.candidate,
        "comparable": pair.difference is not None,
        "differing_settings": [
            {"name": name, "base": a, "candidate": b} for name, a, b in differing_settings(base, candidate)
        ],
    }
    if pair.difference is None:
        return {**row, "reason": pair.why_not}
    changes = [
        {"problem_id": c.problem_id, "base": c.base._asdict(), "candidate": c.candidate._asdict(), "points": c.points}
        for c in pair.changes
    ]
    difference = {**asdict(pair.difference), "points": pair.difference.change}
    row["complete"] = not pair.incomplete
    return {**row, "difference": difference, "left_out": pair.left_out, "changes": changes}
