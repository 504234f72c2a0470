"""The runs of a report: read, under short names that tell them apart, with what is wrong with each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from klearbench.errors import UsageError
from klearbench.run import flatten
from klearbench.scoring.metrics import EvalRun, SuiteScore, read_eval
from klearbench.types import parquet_text


class Scored(NamedTuple):
    """A run's name, its place among the runs, and one of its scores."""

    name: str
    run: int
    score: SuiteScore


@dataclass(frozen=True, slots=True)
class Bundle:
    """Runs by name, in the order in which they were given."""

    runs: Mapping[str, EvalRun]

    @property
    def suites(self) -> list[str]:
        """Every suite of any run, in the order in which they are met."""
        return list(dict.fromkeys(suite for run in self.runs.values() for suite in run.scores))

    def scored(self, suite: str | None = None) -> Iterator[Scored]:
        """The scores of all runs, or those of one suite."""
        for number, (name, run) in enumerate(self.runs.items()):
            for score in run.scores.values():
                if suite in (None, score.suite):
                    yield Scored(name, number, score)

    @property
    def title(self) -> str:
        return "Evaluation of " + ", ".join(self.runs)


def read_bundle(paths: Sequence[Path]) -> Bundle:
    """Read run folders of `klearbench eval`.

    Raises:
        UsageError: none given; DataError: not a run folder of `eval`, or a corrupt file.
    """
    if not paths:
        raise UsageError("a report needs at least one run folder")
    return Bundle(dict(zip(_names(paths), (read_eval(path) for path in paths), strict=True)))


def _names(runs: Sequence[Path]) -> list[str]:
    """Short names that tell the runs apart: the folder's, with its parent's or a number where two are the same."""
    names = [path.resolve().name for path in runs]
    if len(set(names)) < len(names):
        names = ["/".join(path.resolve().parts[-2:]) for path in runs]
    if len(set(names)) < len(names):
        names = [f"{name} ({i})" for i, name in enumerate(names, start=1)]
    return [parquet_text(name) for name in names]


def faults(run: EvalRun, score: SuiteScore) -> list[str]:
    """Why a score may not be taken for good; empty for a complete one of a finished run."""
    counts = {"judge errors": score.judge_errors, "engine errors": score.engine_errors, "missing": score.missing}
    found = [f"{count} {what}" for what, count in counts.items() if count]
    if not score.judged:
        found.append("nothing was judged")
    if not run.finished:
        found.append("the run did not finish (no scores.json of all its records)")
    return found


def settings(run: EvalRun) -> dict[str, str]:
    """What a run's scores were made with, a line each: title -> text."""
    config, about = run.config, run.manifest.get("about", {})
    k = config["samples"]
    samples = ", ".join(f"{n} of {suite}" for suite, n in k.items()) if isinstance(k, Mapping) else str(k)
    lines = {
        "Model": about.get("model") or "-",
        "Preset": about.get("preset"),
        "Engine": _listed(config.get("engine")),
        "Sampling": f"{samples} a problem, seed {config.get('seed')}, {_listed(config.get('sampling'))}",
        "Of the suites alone": _listed(config.get("suite_sampling")),
        "Problems": None if config.get("limit") is None else f"only the first {config['limit']} of each suite",
        "Prompt": config.get("prompt"),
        "System prompt": repr(config["system"]) if config.get("system") is not None else None,
        "Errata": "not applied" if config.get("errata") is False else _errata(about.get("errata")),
        "Judge": _listed(config.get("judge")),
        "Code judge": _listed(config.get("code_judge")),
        "Made": run.manifest.get("created", "-"),
    }
    return {title: str(text) for title, text in lines.items() if text}


def _listed(value: Any) -> str:
    """`temperature 0.6, top_p 0.95`: a mapping of any depth in one line, without what is not set."""
    return ", ".join(f"{k} {v}".strip() for k, v in flatten(value).items() if v not in (None, [], ())) if value else ""


def _errata(errata: Any) -> str:
    counts = {suite: len(rows) for suite, rows in (errata or {}).items() if rows}
    return ", ".join(f"{count} of {suite}" for suite, count in counts.items())


def errata_of(run: EvalRun, suite: str) -> list[Mapping[str, str]]:
    """The known faults that a run met in a suite: rows of id, kind, why, action."""
    return list((run.manifest.get("about", {}).get("errata") or {}).get(suite, ()))
