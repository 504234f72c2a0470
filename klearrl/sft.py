"""Supervised fine-tuning: the loop, on one page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from klearbench.progress import Progress
from klearrl import distributed
from klearrl.config import SftStage
from klearrl.context import Context
from klearrl.data import SFT_COLUMNS, Order, SftExample, load_rows, rank_chunks, tokenize_sft
from klearrl.engine import Trainer
from klearrl.evaluating import evaluate_at_end, evaluate_at_start, evaluate_if_due
from klearrl.losses import lm_loss, token_logprobs


def run_sft(stage: SftStage, context: Context, trainer: Trainer, tokenizer: Any) -> None:
    """Train to `stage.steps`, from the newest checkpoint if there is one; a resume ends with the same weights."""
    recipe = context.recipe
    rows = load_rows(recipe.dataset_path(stage), stage.data, SFT_COLUMNS)
    examples, too_long = tokenize_sft(rows, tokenizer, stage.max_length)
    order = Order(len(examples), recipe.seed, stage.name)
    checkpoints = context.checkpoints(stage)
    start = checkpoints.last() or 0
    if start:
        checkpoints.load(start, trainer)
    context.metrics.start(stage.name, start)
    evaluate_at_start(context, stage, start, trainer, tokenizer)
    context.say(_arithmetic(stage, len(examples), too_long))

    with Progress(stage.name, stage.steps, start, "steps") as progress:
        for step in range(start, stage.steps):
            began = time.perf_counter()
            batch = [examples[i] for i in order.take(step * stage.batch_size, stage.batch_size)]
            tokens = sum(example.label_tokens for example in batch)
            result = trainer.step(_losses(stage, trainer, tokenizer, batch, tokens), step)
            result["loss"] = distributed.total({"loss": result["loss"]})["loss"]
            context.log(f"optimizer step: {stage.name} {step + 1}")
            numbers = {**result, "label_tokens": tokens, "seconds": time.perf_counter() - began}
            context.metrics.log(stage.name, step + 1, numbers)
            progress.advance(1, f"loss {result['loss']:.3f}")
            if context.save_due(stage, step + 1):
                checkpoints.save(step + 1, trainer, tokenizer, {})
            evaluate_if_due(context, stage, step + 1, trainer, tokenizer)
    evaluate_at_end(context, stage, trainer, tokenizer)


def _losses(
    stage: SftStage, trainer: Trainer, tokenizer: Any, batch: Sequence[SftExample], tokens: int
) -> Iterator[torch.Tensor]:
    """The loss of each of this rank's micro-batches: a sum over its label tokens, by the global count of them."""
    rank, world = distributed.rank(), distributed.world_size()
    for indices in rank_chunks(len(batch), rank, world, stage.micro_batch_size):
        ids, attention, labels = collate([batch[i] for i in indices], tokenizer.pad_token_id or 0, trainer.device)
        logits = trainer(input_ids=ids, attention_mask=attention, use_cache=False).logits
        logp = token_logprobs(logits[:, :-1], labels[:, 1:])
        yield lm_loss(logp, labels[:, 1:] >= 0, denominator=tokens)


def collate(
    examples: Sequence[SftExample], pad: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Right-padded ids, attention mask and labels, [B, T] each; a label is -100 on prompts and padding.

    Without examples (a rank that has none left) it is one row of padding without a label, so that every rank makes the
    same collective calls.
    """
    longest = max((len(e.ids) for e in examples), default=2)
    ids = torch.full((max(1, len(examples)), longest), pad, device=device)
    attention = torch.zeros_like(ids)
    labels = torch.full_like(ids, -100)
    attention[:, 0] = 1
    for row, example in enumerate(examples):
        length = len(example.ids)
        ids[row, :length] = torch.tensor(example.ids, device=device)
        attention[row, :length] = 1
        labels[row, example.prompt_length : length] = ids[row, example.prompt_length : length]
    return ids, attention, labels


def _arithmetic(stage: SftStage, rows: int, too_long: int) -> str:
    world = distributed.world_size()
    micro = len(list(rank_chunks(stage.batch_size, 0, world, stage.micro_batch_size)))
    epochs = stage.steps * stage.batch_size / rows
    left_out = f", {too_long} rows longer than {stage.max_length} tokens left out" if too_long else ""
    return (
        f"{stage.name}: {stage.steps} optimizer steps x {stage.batch_size} sequences"
        f" ({world} ranks x {micro} micro-batches of {stage.micro_batch_size})"
        f" = {epochs:.2f} epochs of {rows} rows{left_out}"
    )
