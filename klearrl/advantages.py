"""Advantages of a prompt's group of rollouts, and the filter for groups that carry no signal.

A = (r - mean) / (std + 1e-6) with the unbiased std over the group (Klear-Reasoner, arXiv 2508.07629); Dr. GRPO
(arXiv 2503.20783) leaves the division out. A reward of None means that our judge failed: that rollout is dropped, it
has no part in the mean, and its advantage is None.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from enum import StrEnum

from klearbench.errors import unknown_name

EPSILON = 1e-6

Rewards = Sequence[float | None]


def _grpo(values: list[float]) -> list[float]:
    mean, std = statistics.fmean(values), statistics.stdev(values)
    return [(value - mean) / (std + EPSILON) for value in values]


def _dr_grpo(values: list[float]) -> list[float]:
    mean = statistics.fmean(values)
    return [value - mean for value in values]


KINDS: dict[str, Callable[[list[float]], list[float]]] = {"grpo": _grpo, "dr_grpo": _dr_grpo}


class NoSignal(StrEnum):
    """Why a group teaches nothing: every reward is 1, every one is 0, all are equal, or none was judged."""

    all_right = "all_right"
    all_wrong = "all_wrong"
    all_equal = "all_equal"
    no_rewards = "no_rewards"


def group_advantages(rewards: Sequence[Rewards], *, kind: str = "grpo") -> list[list[float | None]]:
    """One advantage a rollout, group by group, in the shape of `rewards`.

    Args:
        rewards: one sequence a prompt; None drops a rollout.
        kind: a name of KINDS.

    Returns:
        Advantages; None where the reward is None; all 0 in a group without a difference (one rollout is such a group).

    Raises:
        ValueError: an unknown kind, or a reward that is NaN or infinite.
    """
    if kind not in KINDS:
        raise ValueError(unknown_name("kind", kind, KINDS))
    return [_one_group(group, KINDS[kind]) for group in rewards]


def no_signal(rewards: Rewards) -> NoSignal | None:
    """Why a whole group is to be dropped, or None for a group that has something to teach.

    Decided by max == min over the judged rollouts: a threshold on the std could drop a small but real difference, or
    keep equal rewards whose std is above 0 by rounding.

    Raises:
        ValueError: a reward is NaN or infinite.
    """
    values = _judged(rewards)
    if not values:
        return NoSignal.no_rewards
    if max(values) != min(values):
        return None
    return {1.0: NoSignal.all_right, 0.0: NoSignal.all_wrong}.get(values[0], NoSignal.all_equal)


def _one_group(rewards: Rewards, compute: Callable[[list[float]], list[float]]) -> list[float | None]:
    values = _judged(rewards)
    flat = not values or max(values) == min(values)
    computed = iter([0.0] * len(values) if flat else compute(values))
    return [None if reward is None else next(computed) for reward in rewards]


def _judged(rewards: Rewards) -> list[float]:
    values = [float(reward) for reward in rewards if reward is not None]
    for value in values:
        if not math.isfinite(value):
            raise ValueError(f"a reward is {value}; a rollout that could not be judged has the reward None")
    return values
