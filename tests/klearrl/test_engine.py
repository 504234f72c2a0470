"""The DeepSpeed engine against plain torch, at every ZeRO stage."""

from __future__ import annotations

import pytest
import tiny
import torch

from klearbench.errors import DataError, IncompleteError
from klearrl.losses import lm_loss, token_logprobs
from klearrl.schedule import learning_rate

pytestmark = pytest.mark.train

STAGES = (0, 1, 2, 3)
IDS = torch.randint(4, 12, (8, 9), generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(9) >= torch.tensor([[1, 8, 3, 2, 7, 5, 1, 6]]).T  # 8 down to 1 label tokens a row
TOKENS = int(LABELS[:, 1:].sum())


def losses(forward, size):
    """The batch's loss in micro-batches of `size`, each a sum by the global number of label tokens."""
    for start in range(0, 8, size):
        ids, keep = IDS[start : start + size], LABELS[start : start + size, 1:]
        logits = forward(input_ids=ids, use_cache=False).logits[:, :-1]
        yield lm_loss(token_logprobs(logits, ids[:, 1:]), keep, denominator=TOKENS)


def plain_steps(net, count, adamw=tiny.ADAMW, total=10):
    """The same steps in plain torch with cross_entropy: norms before clipping."""
    optimizer = torch.optim.AdamW(net.parameters(), betas=adamw.betas, weight_decay=adamw.weight_decay)
    norms = []
    for step in range(count):
        floor = adamw.floor * adamw.lr
        lr = learning_rate(
            step, peak=adamw.lr, warmup=adamw.warmup_steps, total=total, kind=adamw.schedule, floor=floor
        )
        optimizer.param_groups[0]["lr"] = lr
        logits = net(input_ids=IDS).logits[:, :-1]
        target = IDS[:, 1:].masked_fill(~LABELS[:, 1:], -100)
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100).backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(net.parameters(), adamw.grad_clip or float("inf"))))
        optimizer.step()
        optimizer.zero_grad()
    return norms


@pytest.mark.parametrize("zero_stage", STAGES)
@pytest.mark.parametrize("size", [8, 4, 2, 1])
def test_micro_batches_don_t_change_the_step(zero_stage, size):
    """Two steps of one batch as 1x8, 2x4, 4x2 and 8x1, against plain torch's AdamW with clipping."""
    plain = tiny.model()
    start = tiny.weights(plain)
    norms = plain_steps(plain, 2)
    trainer = tiny.trainer(tiny.model(), zero_stage)
    results = [trainer.step(losses(trainer, size), step) for step in range(2)]
    assert min(norms) > tiny.ADAMW.grad_clip, "the clip must bite"
    assert [r["grad_norm"] for r in results] == pytest.approx(norms, rel=1e-5), "the norm before clipping"
    got = tiny.weights(trainer.inference_model())
    assert tiny.difference(got, tiny.weights(plain)) < 1e-6 < 1e-3 < tiny.difference(got, start)


@pytest.mark.parametrize("zero_stage", STAGES)
def test_without_a_clip_the_gradient_is_whole(zero_stage):
    adamw = tiny.ADAMW.model_copy(update={"grad_clip": 0.0})
    plain = tiny.model()
    norms = plain_steps(plain, 3, adamw)
    trainer = tiny.trainer(tiny.model(), zero_stage, adamw=adamw)
    got = [trainer.step(losses(trainer, 2), step)["grad_norm"] for step in range(3)]
    assert got == pytest.approx(norms, rel=1e-5)
    assert tiny.difference(tiny.weights(trainer.inference_model()), tiny.weights(plain)) < 1e-6


def test_the_loss_is_the_sum_of_the_micro_batches():
    plain = tiny.model()
    logits = plain(input_ids=IDS).logits[:, :-1]
    target = IDS[:, 1:].masked_fill(~LABELS[:, 1:], -100)
    wanted = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).item()
    trainer = tiny.trainer(tiny.model())
    assert trainer.step(losses(trainer, 2), 0)["loss"] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("zero_stage", STAGES)
def test_the_learning_rate_is_that_of_the_step(zero_stage, size=4):
    """peak * (step + 1) / 3 in the warm-up, then linear to a tenth; whatever the number of micro-batches (two here)."""
    adamw = tiny.ADAMW.model_copy(update={"lr": 0.3, "warmup_steps": 3, "schedule": "linear", "floor": 0.1})
    trainer = tiny.trainer(tiny.model(), zero_stage, adamw=adamw, total=6)
    got = [trainer.step(losses(trainer, size), step)["lr"] for step in range(6)]
    assert got == pytest.approx([0.1, 0.2, 0.3, 0.3, 0.21, 0.12])
    late = tiny.trainer(tiny.model(), zero_stage, adamw=adamw, total=6)
    assert late.step(losses(late, size), 4)["lr"] == pytest.approx(0.21)
    groups = late._engine.optimizer.param_groups
    assert all(group["lr"] == pytest.approx(0.21) for group in groups), "what the optimizer used"


def masters(trainer):
    """The fp32 masters that DeepSpeed keeps, as one flat tensor."""
    optimizer = trainer._engine.optimizer
    flat = getattr(optimizer, "single_partition_of_fp32_groups", None)  # ZeRO 1 and 2
    groups = flat or [p for group in optimizer.fp32_groups for p in group]
    return torch.cat([group.detach().flatten() for group in groups])


@pytest.mark.parametrize("zero_stage", [0, 1, 2])
def test_bf16_keeps_fp32_masters_that_small_updates_move(zero_stage):
    """An update of 1e-6 is lost in bfloat16 (spacing 2^-9 of the weight) and must not be lost in training."""
    adamw = tiny.ADAMW.model_copy(update={"lr": 1e-6, "weight_decay": 0.0})
    trainer = tiny.trainer(tiny.model(), zero_stage, bf16=True, adamw=adamw)
    assert trainer.module.dtype == torch.bfloat16
    before, shown = masters(trainer), tiny.weights(trainer.module)
    results = [trainer.step(losses(trainer, 4), step) for step in range(3)]
    moved = (masters(trainer) - before).abs()
    assert masters(trainer).dtype == torch.float32
    assert 1e-7 < float(moved.max()) < 1e-5
    assert tiny.difference(shown, tiny.weights(trainer.module)) < 1e-2
    assert all(0 < r["grad_norm"] < 100 for r in results)


@pytest.mark.parametrize("zero_stage", STAGES)
def test_bf16_follows_fp32(zero_stage):
    """The masters of six steps stay near those of an fp32 run (gradients are bfloat16: 8 bits)."""
    wide, narrow = tiny.trainer(tiny.model(), zero_stage), tiny.trainer(tiny.model(), zero_stage, bf16=True)
    for step in range(6):
        wanted = wide.step(losses(wide, 2), step)
        got = narrow.step(losses(narrow, 2), step)
        assert got["loss"] == pytest.approx(wanted["loss"], rel=0.03)
        assert got["grad_norm"] == pytest.approx(wanted["grad_norm"], rel=0.1)


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("zero_stage", STAGES)
def test_a_loaded_engine_goes_on_bit_by_bit(zero_stage, bf16, tmp_path):
    straight = tiny.trainer(tiny.model(), zero_stage, bf16)
    for step in range(5):
        straight.step(losses(straight, 2), step)
        if step == 2:
            straight.save(tmp_path)
    resumed = tiny.trainer(tiny.model(seed=9), zero_stage, bf16)
    resumed.load(tmp_path)
    for step in (3, 4):
        resumed.step(losses(resumed, 2), step)
    wanted, got = (tiny.weights(t.inference_model()) for t in (straight, resumed))
    assert tiny.difference(wanted, got) == 0.0


def test_loading_nothing_is_an_error(tmp_path):
    with pytest.raises(DataError, match="holds no DeepSpeed checkpoint"):
        tiny.trainer(tiny.model()).load(tmp_path)


@pytest.mark.parametrize("zero_stage", STAGES)
def test_the_inference_model_follows_the_training(zero_stage):
    trainer = tiny.trainer(tiny.model(), zero_stage)
    for step in range(2):
        trainer.step(losses(trainer, 8), step)
        model = trainer.inference_model()
        with torch.no_grad():
            wanted = trainer(input_ids=IDS, use_cache=False).logits
            assert torch.equal(model(input_ids=IDS).logits, wanted)


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("zero_stage", STAGES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_stops_the_run(zero_stage, bf16, bad):
    """DeepSpeed alone goes on: with NaN weights (fp32, no ZeRO), or by leaving out the step with a line in its log."""
    trainer = tiny.trainer(tiny.model(), zero_stage, bf16)
    trainer.step(losses(trainer, 8), 0)
    with pytest.raises(IncompleteError, match="optimizer step 2: the gradient is not finite"):
        trainer.step((loss * bad for loss in losses(trainer, 4)), 1)
