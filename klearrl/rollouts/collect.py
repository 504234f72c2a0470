"""One rollout batch: sample groups, judge them, drop those without a signal, refill until there are enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from klearbench.engines.base import Request, Sampling, as_sample, sample_seed
from klearbench.engines.hf import HfEngine
from klearbench.judging.rewards import judge_rollouts
from klearbench.suites.references import Judge
from klearbench.types import FinishReason, Reference, Sample
from klearrl import distributed
from klearrl.advantages import no_signal
from klearrl.config import RlStage
from klearrl.data import Order, RlPrompt
from klearrl.rollouts.base import Rollout, RolloutBatch
from klearrl.rollouts.hf import sample


@dataclass(frozen=True, slots=True)
class Source:
    """What rollouts are made from. The references go to the judge alone."""

    prompts: Sequence[RlPrompt]
    references: Mapping[str, Reference]
    order: Order
    judge: Judge
    tokenizer: Any
    seed: int
    log: Callable[[str], None]


def collect(stage: RlStage, source: Source, model: Any, step: int, cursor: int) -> RolloutBatch:
    """Sample until `stage.prompts` groups carry a signal, or `stage.max_rounds` rounds are over (all ranks call it).

    Args:
        stage: how much to sample.
        source: prompts, references, judge.
        model: the policy, whole on every rank.
        step: the rollout batch, from 0: it enters every sample's seed.
        cursor: how many prompts of the order earlier batches have read.
    """
    engine = HfEngine(model, source.tokenizer, {}, batch_size=stage.rollout_batch_size)
    rollouts: list[Rollout] = []
    kept = rounds = 0
    while kept < stage.prompts and rounds < stage.max_rounds:
        count = stage.sample_prompts or stage.prompts
        prompts = [source.prompts[i] for i in source.order.take(cursor, count)]
        fresh = _round(stage, source, engine, prompts, step, rounds * count)
        for group in _by_group(fresh):
            screened = screen(group)
            has_signal = any(not r.dropped for r in screened)
            if has_signal and kept == stage.prompts:
                screened = [replace(r, dropped=r.dropped or "surplus") for r in screened]
            kept += has_signal and kept < stage.prompts
            rollouts += screened
        cursor += count
        rounds += 1
    return RolloutBatch(tuple(rollouts), cursor, rounds)


def screen(group: Sequence[Rollout]) -> list[Rollout]:
    """Mark what is not to be trained on: rollouts without a reward, and whole groups whose rewards are all equal."""
    reason = no_signal([None if r.dropped else r.reward for r in group])
    if reason is not None:
        return [replace(r, dropped=r.dropped or str(reason)) for r in group]
    return list(group)


def drop_counts(batch: RolloutBatch) -> dict[str, int]:
    """Groups sampled, kept, and dropped for each reason."""
    reasons: Counter[str] = Counter()
    for group in _by_group(batch.rollouts):
        why = [r.dropped for r in group if r.dropped not in ("judge_error", "truncated")]
        reasons["kept" if "" in why else why[0] if why else "no_rewards"] += 1
    names = ("kept", "all_right", "all_wrong", "all_equal", "no_rewards", "surplus")
    return {f"groups_{name}": reasons[name] for name in names}


def _by_group(rollouts: Sequence[Rollout]) -> list[list[Rollout]]:
    groups: dict[int, list[Rollout]] = {}
    for rollout in rollouts:
        groups.setdefault(rollout.group, []).append(rollout)
    return list(groups.values())


def _round(
    stage: RlStage, source: Source, engine: HfEngine, prompts: Sequence[RlPrompt], step: int, first_group: int
) -> list[Rollout]:
    """`group_size` judged rollouts of each prompt; every rank samples and judges its share and gets them all."""
    jobs = [(first_group + g, p, i) for g, p in enumerate(prompts) for i in range(stage.group_size)]
    rank, world = distributed.rank(), distributed.world_size()
    parts = distributed.gather(_sample_and_judge(stage, source, engine, jobs[rank::world], step))
    return [parts[i % world][i // world] for i in range(len(jobs))]


def _sample_and_judge(
    stage: RlStage, source: Source, engine: HfEngine, jobs: Sequence[tuple[int, RlPrompt, int]], step: int
) -> list[Rollout]:
    requests = [
        Request(p.prompt, sample_seed(source.seed, stage.name, step, group, p.id, i), (p.id, i)) for group, p, i in jobs
    ]
    made = sample(engine, requests, Sampling(stage.temperature, 1.0, 0, stage.max_tokens), source.log)
    samples = [as_sample(stage.name, request, g, tokens=True) for request, g in zip(requests, made, strict=True)]
    judged = judge_rollouts(samples, source.references, source.judge, stage.reward)
    return [
        Rollout(
            prompt_id=p.id,
            group=group,
            prompt_ids=g.prompt_ids or (),
            token_ids=s.token_ids or (),
            logprobs=s.logprobs or (),
            completion=s.completion,
            finish_reason=s.finish_reason,
            status=verdict.status,
            reward=reward,
            dropped=_why_dropped(stage, s, reward),
        )
        for (group, p, _), g, s, (reward, verdict) in zip(jobs, made, samples, judged, strict=True)
    ]


def _why_dropped(stage: RlStage, sample: Sample, reward: float | None) -> str:
    if reward is None:
        return "judge_error"
    if stage.mask_truncated and sample.finish_reason is FinishReason.length:
        return "truncated"
    return ""
