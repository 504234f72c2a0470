"""A run as a small file to compare with later: what decides comparability, the scores, and counts of every problem.

    {"format": 1, "kind": "klearbench baseline", "manifest": {...}, "scores": {suite: SuiteScore}, "sha256": "..."}

`sha256` is of everything else, as canonical JSON: an edit by hand, or a file cut short, is found when it is read. It
names the baseline too: a reviewer compares it with the one that a gate's result quotes. It is no signature of a person.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from klearbench.errors import DataError, IncompleteError
from klearbench.scoring.comparable import unfinished
from klearbench.scoring.gate import GateOptions
from klearbench.scoring.groups import ProblemScore
from klearbench.scoring.metrics import EvalRun, SuiteScore, Tokens, read_eval, readable_config
from klearbench.store import write_atomic
from klearbench.types import from_row

KIND = "klearbench baseline"
_ABOUT = ("model", "engine", "preset", "run", "stage", "step")
_SCORE_LEFT_OUT = ("groups",)
_COUNTS = ("k", "problems", "judged", "judge_errors", "engine_errors", "missing")


def write_baseline(run: Path, out: Path, *, max_judge_errors: float = 0.0) -> str:
    """Store a finished run as a baseline; its hash.

    Args:
        run: a run folder of `klearbench eval`.
        out: the file to write; a file that is there is replaced at once or not at all.
        max_judge_errors: percent of a suite's samples that a judge may have failed on.

    Raises:
        DataError: no run of `eval`, or a corrupt file; IncompleteError: the run isn't finished, or has errors.
    """
    found = read_eval(run)
    trouble = unfinished(found, list(found.scores), GateOptions(max_judge_errors=max_judge_errors))
    if trouble:
        raise IncompleteError(f"no baseline of it ({trouble.field}): {trouble.reason}")
    body = baseline_of(found)
    write_atomic(out, json.dumps(body, indent=1) + "\n")
    return str(body["sha256"])


def baseline_of(run: EvalRun) -> dict[str, Any]:
    """The content of a baseline file."""
    about = run.manifest.get("about") or {}
    manifest = {name: run.manifest[name] for name in ("config", "inputs", "versions", "git", "created")
                if name in run.manifest}  # fmt: skip
    manifest["about"] = {name: about[name] for name in _ABOUT if about.get(name) is not None}
    scores = {}
    for suite, score in run.scores.items():
        scores[suite] = {name: value for name, value in asdict(score).items() if name not in _SCORE_LEFT_OUT}
    body = {"format": 1, "kind": KIND, "manifest": manifest, "scores": scores}
    body = json.loads(json.dumps(body))
    return {**body, "sha256": baseline_hash(body)}


def baseline_hash(body: Mapping[str, Any]) -> str:
    """SHA-256 of a baseline's content without its hash."""
    rest = {name: value for name, value in body.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def is_baseline(path: Path) -> bool:
    """Whether a path is meant as a baseline: a file, where a run is a folder."""
    return path.is_file()


def read_baseline(path: Path) -> EvalRun:
    """A baseline in the shape of a run without records; its hash is `manifest["sha256"]`.

    Raises:
        DataError: no baseline, cut short, or changed since it was written.
    """
    try:
        body = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise DataError(path, f"is no baseline, or was cut short ({error})") from None
    if not isinstance(body, dict) or body.get("kind") != KIND or body.get("format") != 1:
        raise DataError(path, "is no baseline of this version (`klearbench baseline RUN -o FILE` writes one)")
    if body.get("sha256") != baseline_hash(body):
        raise DataError(path, f"was changed since it was written: its content has the hash {baseline_hash(body)[:12]},"
                              f" it says {str(body.get('sha256'))[:12]}")  # fmt: skip
    try:
        scores = {suite: read_score(row) for suite, row in body["scores"].items()}
        manifest = {**body["manifest"], "sha256": body["sha256"]}
        if not (readable_config(manifest["config"]) and set(scores) == set(manifest["config"]["suites"])):
            raise ValueError("its config names no suites, or others than its scores")
        if not all(isinstance(manifest.get(part, {}), dict) for part in ("inputs", "about")):
            raise ValueError("its inputs or about are no objects")
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(path, f"is no baseline that can be read ({error})") from None
    return EvalRun(path, manifest, (), (), scores, finished=True, problems={})


def read_score(row: Mapping[str, Any]) -> SuiteScore:
    """A score from the row of a scores.json or of a baseline; groups are left out.

    Raises:
        ValueError, KeyError, TypeError: not such a row.
    """
    plain = {name: value for name, value in row.items() if name not in _SCORE_LEFT_OUT}
    problems = tuple(from_row(ProblemScore, problem) for problem in row["per_problem"])
    if bad := [name for name in _COUNTS if type(row[name]) is not int or row[name] < (name == "k")]:
        raise ValueError(f"{bad[0]} is {row[bad[0]]!r}")
    if bad := [p.problem_id for p in problems if not 0 <= p.right <= p.judged or min(p.truncated, p.sampled) < 0]:
        raise ValueError(f"impossible counts of problem {bad[0]!r}")
    tokens = None if row["tokens"] is None else from_row(Tokens, row["tokens"])
    intervals = {name: None if row[name] is None else (float(row[name][0]), float(row[name][1]))
                 for name in ("interval", "interval_problems")}  # fmt: skip
    return SuiteScore(**{**plain, **intervals, "tokens": tokens, "per_problem": problems})
