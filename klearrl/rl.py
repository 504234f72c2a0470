"""Reinforcement learning from verifiable rewards: the loop, on one page, then the policy update.

sample groups -> reward -> drop groups without a signal, refill -> advantages -> several policy updates
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from klearbench.errors import IncompleteError
from klearbench.progress import Progress
from klearbench.suites.references import JudgeOptions, open_judges
from klearbench.types import FinishReason
from klearrl import distributed
from klearrl.advantages import group_advantages
from klearrl.config import RlStage
from klearrl.context import Context
from klearrl.data import RL_COLUMNS, Order, load_rows, rank_chunks, split_rl_rows
from klearrl.engine import Trainer
from klearrl.evaluating import evaluate_at_end, evaluate_at_start, evaluate_if_due
from klearrl.losses import count_units, entropy, lm_loss, policy_loss, token_logprobs
from klearrl.rollouts.base import Rollout, RolloutBatch, load_batch, save_batch
from klearrl.rollouts.collect import Source, collect, drop_counts

Trained = tuple[Rollout, float]
"""A rollout and its advantage."""


def run_rl(stage: RlStage, context: Context, trainer: Trainer, tokenizer: Any) -> None:
    """Train to `stage.steps` rollout batches, from the newest checkpoint if there is one; bit for bit the same weights
    whether interrupted or not, since rollouts that were already sampled lie on disk and are used again."""
    recipe = context.recipe
    prompts, references = split_rl_rows(load_rows(recipe.dataset_path(stage), stage.data, RL_COLUMNS))
    checkpoints = context.checkpoints(stage)
    start, cursor = checkpoints.last() or 0, 0
    if start:
        cursor = checkpoints.load(start, trainer)["cursor"]
    context.metrics.start(stage.name, start)
    evaluate_at_start(context, stage, start, trainer, tokenizer)
    context.say(_arithmetic(stage, len(prompts)))

    judging = JudgeOptions(sandbox=stage.sandbox, workers=stage.judge_workers)
    with (
        open_judges(references.values(), judging) as judge,
        Progress(stage.name, stage.steps, start, "rollout batches") as progress,
    ):
        order = Order(len(prompts), recipe.seed, stage.name)
        source = Source(prompts, references, order, judge, tokenizer, recipe.seed, context.log)
        for step in range(start, stage.steps):
            began = time.perf_counter()
            batch = _rollouts(stage, context, source, trainer, step, cursor)
            sampled = time.perf_counter()
            numbers = update(stage, context, trainer, tokenizer, batch, step)
            cursor = batch.cursor
            times = {"rollout_seconds": sampled - began, "update_seconds": time.perf_counter() - sampled}
            rewards = _reward_numbers(batch)
            context.metrics.log(stage.name, step + 1, {**rewards, **numbers, **times})
            progress.advance(1, f"reward {rewards['reward']:.3f}")
            if context.save_due(stage, step + 1):
                checkpoints.save(step + 1, trainer, tokenizer, {"cursor": cursor})
            evaluate_if_due(context, stage, step + 1, trainer, tokenizer)
    evaluate_at_end(context, stage, trainer, tokenizer)


def _rollouts(
    stage: RlStage, context: Context, source: Source, trainer: Trainer, step: int, cursor: int
) -> RolloutBatch:
    """The step's rollouts: those that a killed process left on disk, or fresh ones."""
    path = _batch_path(stage, context, step)
    if path.exists():
        return load_batch(path)
    batch = collect(stage, source, trainer.inference_model(), step, cursor)
    distributed.barrier()
    if distributed.is_main():
        save_batch(path, batch)
    distributed.barrier()
    return batch


def _batch_path(stage: RlStage, context: Context, step: int) -> Path:
    return context.stage_path(stage) / "rollouts" / f"step-{step + 1:05d}.parquet"


def update(
    stage: RlStage, context: Context, trainer: Trainer, tokenizer: Any, batch: RolloutBatch, step: int
) -> dict[str, float]:
    """All policy updates of a rollout batch: its prompts, shuffled, in `mini_batches` parts, an optimizer step each."""
    groups = batch.groups()
    random.Random(f"{context.recipe.seed}/{stage.name}/{step}").shuffle(groups)
    size = stage.prompts // stage.mini_batches
    sums: dict[str, float] = defaultdict(float)
    steps: list[dict[str, float]] = []
    for number, first in enumerate(range(0, len(groups), size)):
        mini = with_advantages(groups[first : first + size], stage.advantage)
        part: dict[str, float] = defaultdict(float)
        result = trainer.step(_losses(stage, trainer, tokenizer, mini, part), step * stage.mini_batches + number)
        context.log(f"optimizer step: {stage.name} {step + 1}.{number + 1}")
        numbers = distributed.total({**part, "loss": result["loss"]})
        if number == 0:
            mismatch = numbers["abs_log_ratio"] / numbers["tokens"]
            _refuse_mismatch(stage, mismatch, _batch_path(stage, context, step))
            steps.append({**result, "mismatch": mismatch})
        else:
            steps.append(result)
        for name, value in numbers.items():
            sums[name] += value
    return _update_numbers(sums, steps)


def with_advantages(groups: Sequence[Sequence[Rollout]], kind: str) -> list[Trained]:
    """Every rollout of some groups with its advantage within its group."""
    advantages = group_advantages([[r.reward for r in group] for group in groups], kind=kind)
    return [
        (rollout, advantage)
        for group, values in zip(groups, advantages, strict=True)
        for rollout, advantage in zip(group, values, strict=True)
        if advantage is not None
    ]


def _losses(
    stage: RlStage, trainer: Trainer, tokenizer: Any, mini: Sequence[Trained], sums: dict[str, float]
) -> Iterator[torch.Tensor]:
    """The loss of each of this rank's micro-batches, by counts over the whole mini-batch; adds metrics to `sums`."""
    settings = stage.loss
    denominator = _denominator(stage, mini)
    right_tokens = sum(len(r.token_ids) for r, _ in mini if r.reward == 1.0)
    options = settings.model_dump(exclude={"lm_coef"})
    for indices in rank_chunks(len(mini), distributed.rank(), distributed.world_size(), stage.micro_batch_size):
        t = collate([mini[i] for i in indices], tokenizer.pad_token_id or 0, trainer.device)
        length = t.labels.shape[1]
        out = trainer(
            input_ids=t.ids,
            attention_mask=t.attention,
            position_ids=t.positions,
            use_cache=False,
            logits_to_keep=length + 1,
        )
        logits = out.logits[:, :-1]
        logp = token_logprobs(logits, t.labels, stage.temperature)
        loss, metrics = policy_loss(logp, t.old_logp, t.advantage, t.mask, denominator=denominator, **options)
        if settings.lm_coef and right_tokens:
            loss = loss + settings.lm_coef * lm_loss(logp, t.mask & t.right[:, None], denominator=right_tokens)
        for name, value in metrics.items():
            sums[name] += float(value)
        sums["entropy"] += float(torch.where(t.mask, entropy(logits.detach(), stage.temperature), 0.0).sum())
        sums["abs_log_ratio"] += float(torch.where(t.mask, (logp.detach() - t.old_logp).abs(), 0.0).sum())
        yield loss


def _denominator(stage: RlStage, mini: Sequence[Trained]) -> float:
    """What the loss is divided by, over the whole mini-batch; "constant" counts `max_tokens` a rollout (Dr. GRPO)."""
    if stage.loss.normalize == "constant":
        return float(len(mini) * stage.max_tokens)
    longest = max(len(r.token_ids) for r, _ in mini)
    mask = torch.tensor([[1] * len(r.token_ids) + [0] * (longest - len(r.token_ids)) for r, _ in mini])
    return float(count_units(mask, kind=stage.loss.kind, normalize=stage.loss.normalize))


@dataclass(frozen=True, slots=True)
class Tensors:
    """A micro-batch: prompts padded on the left (P), completions on the right (T); B sequences."""

    ids: torch.Tensor
    """[B, P + T]"""
    attention: torch.Tensor
    """[B, P + T]"""
    positions: torch.Tensor
    """[B, P + T], from 0 at each prompt's first token."""
    labels: torch.Tensor
    """[B, T] the sampled ids."""
    old_logp: torch.Tensor
    """[B, T] the engine's log-probs."""
    mask: torch.Tensor
    """[B, T] bool: sampled tokens, the end-of-turn token among them."""
    advantage: torch.Tensor
    """[B]"""
    right: torch.Tensor
    """[B] bool: reward exactly 1."""


def collate(batch: Sequence[Trained], pad: int, device: torch.device) -> Tensors:
    """Tensors of a micro-batch; of an empty one (a rank that has no rollout left), one row in which nothing counts."""
    prompts = [list(r.prompt_ids) for r, _ in batch] or [[pad]]
    answers = [list(r.token_ids) for r, _ in batch] or [[pad]]
    old = [list(r.logprobs) for r, _ in batch] or [[0.0]]
    counts = [1] * len(batch) or [0]
    p, t = max(map(len, prompts)), max(map(len, answers))
    left = [[0] * (p - len(x)) + [1] * len(x) for x in prompts]
    shown = [[1] * len(x) + [0] * (t - len(x)) for x in answers]
    labels = torch.tensor([x + [pad] * (t - len(x)) for x in answers], device=device)
    attention = torch.tensor([a + b for a, b in zip(left, shown, strict=True)], device=device)
    return Tensors(
        ids=torch.cat([torch.tensor([[pad] * (p - len(x)) + x for x in prompts], device=device), labels], 1),
        attention=attention,
        positions=(attention.cumsum(1) - 1).clamp_min(0),
        labels=labels,
        old_logp=torch.tensor([x + [0.0] * (t - len(x)) for x in old], device=device),
        mask=torch.tensor([[bool(c * s) for s in row] for c, row in zip(counts, shown, strict=True)], device=device),
        advantage=torch.tensor([a for _, a in batch] or [0.0], device=device),
        right=torch.tensor([r.reward == 1.0 for r, _ in batch] or [False], device=device),
    )


def _refuse_mismatch(stage: RlStage, mismatch: float, batch: Path) -> None:
    """The first update of a batch sees the weights that sampled it: another log-probability means other weights."""
    if mismatch > stage.max_mismatch:
        raise IncompleteError(
            f"stage {stage.name!r}: engine and trainer differ by {mismatch:.3f} in mean log-probability on rollouts"
            f" (max_mismatch {stage.max_mismatch}): the engine does not sample from the trained weights;"
            f" {batch} holds those rollouts, to be deleted before the next try"
        )


def _reward_numbers(batch: RolloutBatch) -> dict[str, float]:
    """Over everything that was sampled, kept or not."""
    judged = [r.reward for r in batch.rollouts if r.reward is not None]
    lengths = [len(r.token_ids) for r in batch.rollouts]
    return {
        "reward": sum(judged) / max(1, len(judged)),
        "right": sum(value == 1.0 for value in judged) / max(1, len(judged)),
        "judge_errors": len(batch.rollouts) - len(judged),
        "truncated": sum(r.finish_reason is FinishReason.length for r in batch.rollouts) / max(1, len(lengths)),
        "length_mean": sum(lengths) / max(1, len(lengths)),
        "length_max": max(lengths, default=0),
        "rounds": batch.rounds,
        **drop_counts(batch),
    }


def _update_numbers(sums: dict[str, float], steps: Sequence[dict[str, float]]) -> dict[str, float]:
    if not steps:
        return {"updates": 0}
    tokens = max(1.0, sums["tokens"])
    shares = ("high_pos", "low_pos", "high_neg", "low_neg", "dual_clipped", "kl", "entropy")
    return {
        "updates": len(steps),
        "loss": sums["loss"] / len(steps),
        "grad_norm": sum(s["grad_norm"] for s in steps) / len(steps),
        "lr": steps[-1]["lr"],
        "mismatch": steps[0]["mismatch"],
        "tokens": tokens,
        **{name: sums[name] / tokens for name in shares},
    }


def _arithmetic(stage: RlStage, prompts: int) -> str:
    world = distributed.world_size()
    sequences = stage.prompts * stage.group_size
    mini = sequences // stage.mini_batches
    return (
        f"{stage.name}: {stage.steps} rollout batches x {stage.prompts} prompts x {stage.group_size} rollouts"
        f" = {sequences} sequences, {stage.mini_batches} updates of {mini} sequences each"
        f" ({world} ranks, micro-batches of {stage.micro_batch_size}); {prompts} prompts in the data"
    )
