"""Figures that others published for the suites here, and the settings in which a run differs from theirs.

Source: the Klear-Reasoner report (arXiv 2508.07629), its table of 8B models. It gives avg@64 on the contests and avg@8
on LiveCodeBench, temperature 0.6, top_p 0.95. Of its own RL model it names the lengths, 32K tokens, or 64K with YaRN
2.5; of the other rows it does not. Its released script has top_k 20 and a repetition penalty of 1.05.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from klearbench.reports.bundle import errata_of
from klearbench.scoring.metrics import EvalRun

SOURCE = "Klear-Reasoner report, arXiv 2508.07629"
SUITES = ("aime24", "aime25", "hmmt25", "lcb-v5", "lcb-v6")
WINDOWS = {
    "lcb-v5": "contests of 2024-08-01 to 2025-02-01, 279 problems of release_v5",
    "lcb-v6": "contests of 2025-02-01 to 2025-05-01, 131 problems of release_v6",
}
"""Which problems the figures of a suite are of, where its name does not say."""
_PROBLEMS = {"aime24": 30, "aime25": 30, "hmmt25": 30, "lcb-v5": 279, "lcb-v6": 131}
_CODE = ("lcb-v5", "lcb-v6")
_NOT_STATED = "{} {} (theirs is not stated)"


@dataclass(frozen=True, slots=True)
class Published:
    """One published figure.

    Attributes:
        score: avg@k in points.
        max_tokens: new tokens a sample, None where the source does not say.
        rope_scaling: as `--rope-scaling` has it; None for none, or where `max_tokens` is not known.
    """

    model: str
    suite: str
    score: float
    k: int
    max_tokens: int | None = None
    rope_scaling: str | None = None


_ROWS: dict[str, tuple[tuple[float, ...], int | None, str | None]] = {
    "Klear-Reasoner-8B SFT": ((75.6, 70.1, 57.6, 58.5, 49.6), None, None),
    "Klear-Reasoner-8B, 32K": ((83.2, 75.6, 60.3, 61.6, 53.1), 32768, None),
    "Klear-Reasoner-8B, 64K": ((90.5, 83.2, 70.8, 66.0, 58.1), 65536, "yarn:2.5"),
    "Qwen3-8B": ((76.0, 67.3, 44.7, 57.5, 48.4), None, None),
    "R1-0528-Distill-8B": ((86.0, 76.3, 61.5, 61.0, 51.6), None, None),
    "OpenReasoning-7B": ((84.7, 78.2, 63.5, 65.6, 56.3), None, None),
}
"""Model -> its scores in the order of SUITES, the limit of tokens, the stretch of the context."""

PUBLISHED: tuple[Published, ...] = tuple(
    Published(model, suite, score, 8 if suite in _CODE else 64, max_tokens, rope)
    for model, (scores, max_tokens, rope) in _ROWS.items()
    for suite, score in zip(SUITES, scores, strict=True)
)


def published(suite: str) -> list[Published]:
    """The published figures of a suite, in the order of the source; empty where there are none."""
    return [row for row in PUBLISHED if row.suite == suite]


def differences(run: EvalRun, suite: str, row: Published) -> list[str]:
    """What of a run's settings differs from those of a published figure, a phrase each: "temperature 1.0, not 0.6"."""
    found = [check(run, suite, row) for check in CHECKS.values()]
    return [phrase for phrase in found if phrase]


def _unlike(name: str, ours: Any, theirs: Any) -> str:
    return "" if ours == theirs else f"{name} {ours}, not {theirs}"


def _of(run: EvalRun, suite: str, name: str) -> Any:
    """A field of the sampling that a suite really had: its own where it fixes it."""
    own: Mapping[str, Any] = run.config.get("suite_sampling", {}).get(suite, {})
    return own.get(name, run.config.get("sampling", {}).get(name))


def _sampling(name: str, theirs: float, source: str = "") -> Callable[[EvalRun, str, Published], str]:
    def check(run: EvalRun, suite: str, row: Published) -> str:
        ours = _of(run, suite, name)
        return "" if ours == theirs else f"{name} {ours}, not {theirs:g}{source}"

    return check


def _max_tokens(run: EvalRun, suite: str, row: Published) -> str:
    ours = _of(run, suite, "max_tokens")
    if row.max_tokens is None:
        return _NOT_STATED.format("max_tokens", ours)
    return _unlike("max_tokens", ours, row.max_tokens)


def _rope(run: EvalRun, suite: str, row: Published) -> str:
    ours = run.config.get("engine", {}).get("rope_scaling")
    if row.max_tokens is None:
        return "" if ours is None else _NOT_STATED.format("rope scaling", _rope_text(ours))
    return _unlike("rope scaling", _rope_text(ours), _rope_text(row.rope_scaling))


def _rope_text(value: Any) -> str:
    """A stretch of the context as text, however an engine records it."""
    if isinstance(value, Mapping):
        return f"{value.get('rope_type', value.get('type', '?'))}:{value.get('factor', 0):g}"
    return "none" if value is None else str(value)


def _prompt(run: EvalRun, suite: str, row: Published) -> str:
    system = run.config.get("system")
    extra = "" if system is None else "a system prompt of your own"
    ours = run.config.get("prompt", "ours")
    if suite not in _CODE:  # a contest's official prompt is the bare problem, as ours
        return extra
    return ", ".join(filter(None, [_unlike("prompt", repr(ours), repr("official")), extra]))


def _errata(run: EvalRun, suite: str, row: Published) -> str:
    acted = [erratum for erratum in errata_of(run, suite) if erratum.get("action") != "listed"]
    return f"errata applied to {len(acted)} problems" if acted else ""


def _problems(run: EvalRun, suite: str, row: Published) -> str:
    count = run.scores[suite].problems
    limit = "" if run.config.get("limit") is None else f" (limit {run.config['limit']})"
    return "" if count == _PROBLEMS[suite] else f"{count} problems{limit}, not {_PROBLEMS[suite]}"


def _judge(run: EvalRun, suite: str, row: Published) -> str:
    judge = run.config.get("code_judge" if suite in _CODE else "judge") or {}
    mode = judge.get("mode", "?") if isinstance(judge, Mapping) else judge
    if suite in _CODE:
        return "" if mode == "compat" else f"judged by {mode} rules, not LiveCodeBench's (compat)"
    return f"judged by ours ({mode}), not by theirs"


CHECKS: dict[str, Callable[[EvalRun, str, Published], str]] = {
    "k": lambda run, suite, row: _unlike("k", run.scores[suite].k, row.k),
    "temperature": _sampling("temperature", 0.6),
    "top_p": _sampling("top_p", 0.95),
    "top_k": _sampling("top_k", 20, " (released script)"),
    "repetition_penalty": _sampling("repetition_penalty", 1.05, " (released script)"),
    "max_tokens": _max_tokens,
    "rope_scaling": _rope,
    "prompt": _prompt,
    "errata": _errata,
    "problems": _problems,
    "judge": _judge,
}
"""Setting -> a phrase where a run's differs from the published one's, else an empty text."""
