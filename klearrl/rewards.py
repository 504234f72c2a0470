"""Rewards: klearbench's judges on rollouts. A judge's own fault gives None, which drops the rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from klearbench.suites.references import Judge
from klearbench.types import FinishReason, Reference, Sample, Verdict, reward


def judge_rollouts(
    samples: Sequence[Sample], references: Mapping[str, Reference], judge: Judge, kind: str = "soft"
) -> list[tuple[float | None, Verdict]]:
    """The reward (0..1, or None) and the verdict of each rollout, in order.

    Rollouts of one prompt that are equal to the letter are judged once: a sharpened policy writes few different ones.

    Args:
        samples: the rollouts.
        references: answer or tests by problem id.
        judge: of both kinds.
        kind: "soft" (a program earns the share of tests it passes) or "hard" (1 for all of them, else 0).
    """
    keys = [(s.problem_id, s.completion, s.finish_reason) for s in samples]
    firsts = dict(zip(reversed(keys), reversed(samples), strict=True))
    order = list(dict.fromkeys(keys))
    found = judge.judge([(firsts[key], references[firsts[key].problem_id]) for key in order])
    by_key = dict(zip(order, found, strict=True))
    verdicts = [replace(by_key[key], sample_index=s.sample_index) for key, s in zip(keys, samples, strict=True)]
    return [(REWARDS[kind](v, s.finish_reason), v) for s, v in zip(samples, verdicts, strict=True)]


def hard_reward(verdict: Verdict, finish_reason: FinishReason) -> float | None:
    """Like `reward`, without partial credit: only the whole score counts."""
    value = reward(verdict, finish_reason)
    return None if value is None else float(value == 1.0)


REWARDS = {"soft": reward, "hard": hard_reward}
