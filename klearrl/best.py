"""Which checkpoint of a stage is the best, and how sure that is.

`shown`: the first evaluated checkpoint has the title until a later one is shown to be better, by the statistics of
`klearbench regress`; so noise moves no title. `highest`: the highest mean score over the suites, the earlier on a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from klearbench.scoring.gate import GateOptions, SuitePair, decide
from klearbench.scoring.metrics import SuiteScore

Scores = Mapping[str, SuiteScore]
"""Suite -> the score of one checkpoint."""


def regresses(base: Scores, candidate: Scores, confidence: float, *, greedy: bool = False) -> bool:
    """Whether a candidate is shown to be worse than the base in any suite (avg@k, all suites sharing one error rate).

    Args:
        base, candidate: of the same suites, problems and k.
        confidence: 1 - the share of false alarms.
        greedy: sampled at temperature 0.
    """
    pairs = [
        SuitePair(suite, score.k, score.per_problem, candidate[suite].per_problem, greedy)
        for suite, score in base.items()
    ]
    return any(test.status == "regressed" for test in decide(pairs, GateOptions(confidence=confidence)))


def standing(scores: Scores, best: Scores, confidence: float, *, greedy: bool = False) -> str:
    """What is shown of a checkpoint beside another: better, worse, mixed (suites disagree) or indistinguishable."""
    better = regresses(scores, best, confidence, greedy=greedy)
    worse = regresses(best, scores, confidence, greedy=greedy)
    return {(True, False): "better", (False, True): "worse", (True, True): "mixed"}.get(
        (better, worse), "indistinguishable"
    )


def mean(scores: Scores) -> float:
    """The mean score over the suites, 0 to 100; a suite of which nothing could be judged doesn't count."""
    averages = [score.avg for score in scores.values() if score.avg is not None]
    return sum(averages) / max(1, len(averages))


def _shown(scores: Mapping[int, Scores], confidence: float, greedy: bool) -> int:
    steps = sorted(scores)
    holder = steps[0]
    for step in steps[1:]:
        if standing(scores[step], scores[holder], confidence, greedy=greedy) == "better":
            holder = step
    return holder


def _highest(scores: Mapping[int, Scores], confidence: float, greedy: bool) -> int:
    return max(scores, key=lambda step: (mean(scores[step]), -step))


RULES: Mapping[str, Callable[[Mapping[int, Scores], float, bool], int]] = {"shown": _shown, "highest": _highest}
"""`evaluation.best` -> (step -> scores, confidence, greedy) -> the best step."""


def best_step(
    scores: Mapping[int, Scores], kept: Sequence[int], rule: str, confidence: float, *, greedy: bool = False
) -> int | None:
    """The best of the checkpoints that are still there; None when none of them was evaluated.

    The walk goes over all evaluations, also those whose checkpoint is gone: one that has the title is never dropped, so
    the title is the same however often the run was interrupted. Only after a change of rule, or of files by hand, can
    it fall to a checkpoint that is gone; then those that are left run for it.
    """
    if not scores:
        return None
    found = RULES[rule](scores, confidence, greedy)
    if found in kept:
        return found
    left = {step: scores[step] for step in scores if step in kept}
    return RULES[rule](left, confidence, greedy) if left else None


def best_json(
    scores: Mapping[int, Scores], step: int, rule: str, confidence: float, *, greedy: bool = False
) -> dict[str, Any]:
    """What `best.json` holds: the choice, and each evaluated checkpoint's mean score and standing beside the best."""
    rows = [
        {
            "step": other,
            "mean": mean(scores[other]),
            "beside_best": "best"
            if other == step
            else standing(scores[other], scores[step], confidence, greedy=greedy),
        }
        for other in sorted(scores)
    ]
    return {"format": 1, "step": step, "rule": rule, "confidence": confidence, "checkpoints": rows}
