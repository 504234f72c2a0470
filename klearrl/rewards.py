"""Rewards: klearbench's judges on rollouts. A judge's own fault gives None, which drops the rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from klearbench.judging.judge import MathJudge
from klearbench.types import Answer, Sample, Verdict, reward


def judge_rollouts(
    samples: Sequence[Sample], answers: Mapping[str, Answer], judge: MathJudge
) -> list[tuple[float | None, Verdict]]:
    """The reward (0..1, or None) and the verdict of each rollout, in order."""
    verdicts = judge.judge([(sample, answers[sample.problem_id]) for sample in samples])
    return [(reward(v, s.finish_reason), v) for s, v in zip(samples, verdicts, strict=True)]
