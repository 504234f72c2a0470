"""The policy losses against the table of the report: cases worked out by hand, and a plain Python implementation."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from klearrl.losses import KINDS, count_units, entropy, erc_gate, lm_loss, policy_loss, token_logprobs

LOW, HIGH = 0.8, 1.28  # the bounds of the default clip range
LOGP = -1.5
INF, NAN = math.inf, math.nan
TINY, HUGE = math.exp(-20), math.exp(20)  # what the clamp of the log-ratio leaves of a plain delta


def one_token(delta=None, advantage=1.0, *, log_ratio=None, **options):
    """(value, weight) of one token: what is maximised, and w in the gradient w * A * grad(log pi)."""
    logp = torch.tensor([[LOGP]], dtype=torch.float64, requires_grad=True)
    log_ratio = math.log(delta) if log_ratio is None else log_ratio
    old = logp.detach() - log_ratio
    loss, _ = policy_loss(logp, old, torch.tensor([advantage], dtype=torch.float64), torch.ones(1, 1), **options)
    loss.backward()
    return -loss.item(), -logp.grad.item() / advantage


# A, delta, value, weight: the six cells of the table, worked out by hand
GPPO_CELLS = [
    (2.0, 0.5, 1.0, 0.5),
    (2.0, 1.1, 2.2, 1.1),
    (2.0, 3.0, 2.56, 1.28),
    (-2.0, 0.5, -1.6, 0.8),
    (-2.0, 1.1, -2.2, 1.1),
    (-2.0, 3.0, -6.0, 3.0),
]
CELLS = {
    "gppo": GPPO_CELLS,
    "clip_higher": [
        (a, d, v, 0.0 if (a, d) in ((2.0, 3.0), (-2.0, 0.5)) else w) for a, d, v, w in GPPO_CELLS
    ],
    "ppo": [
        (2.0, 0.5, 1.0, 0.5),
        (2.0, 1.1, 2.2, 1.1),
        (2.0, 1.25, 2.4, 0.0),  # above 1 + clip_low, below 1 + clip_high: clip_low holds on both sides
        (2.0, 3.0, 2.4, 0.0),
        (-2.0, 0.5, -1.6, 0.0),
        (-2.0, 1.1, -2.2, 1.1),
        (-2.0, 3.0, -6.0, 3.0),
    ],
    "cispo": [
        (2.0, 0.5, 2 * 0.8 * LOGP, 0.8),
        (2.0, 1.1, 2 * 1.1 * LOGP, 1.1),
        (2.0, 3.0, 2 * 1.28 * LOGP, 1.28),
        (-2.0, 0.5, -2 * 0.8 * LOGP, 0.8),
        (-2.0, 1.1, -2 * 1.1 * LOGP, 1.1),
        (-2.0, 3.0, -2 * 1.28 * LOGP, 1.28),
    ],
    "ce_gppo": [  # beta_low 0.25, beta_high 0.5
        (2.0, 0.5, 1.0, 0.5),
        (2.0, 1.1, 2.2, 1.1),
        (2.0, 3.0, 1.28, 0.64),
        (-2.0, 0.5, -0.4, 0.2),
        (-2.0, 1.1, -2.2, 1.1),
        (-2.0, 3.0, -6.0, 3.0),
    ],
    "gspo": [  # one token: the sequence's ratio is the token's
        (2.0, 0.5, 1.0, 0.5),
        (2.0, 1.1, 2.2, 1.1),
        (2.0, 3.0, 2.56, 0.0),
        (-2.0, 0.5, -1.6, 0.0),
        (-2.0, 1.1, -2.2, 1.1),
        (-2.0, 3.0, -6.0, 3.0),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "advantage", "delta", "value", "weight"), [(k, *cell) for k, cells in CELLS.items() for cell in cells]
)
def test_value_and_weight_of_every_cell(kind, advantage, delta, value, weight):
    got = one_token(delta, advantage, kind=kind, beta_low=0.25, beta_high=0.5)
    assert got == pytest.approx((value, weight), abs=1e-12)


# log-ratio, A, value / A, weight
EXTREME = {
    "gppo": [(120, 1.0, HIGH, HIGH), (-120, -1.0, LOW, LOW), (120, -1.0, HUGE, HUGE), (-120, 1.0, TINY, TINY)],
    "clip_higher": [(120, 1.0, HIGH, 0), (-120, -1.0, LOW, 0), (120, -1.0, HUGE, HUGE), (-120, 1.0, TINY, TINY)],
    "ppo": [(120, 1.0, 1.2, 0), (-120, -1.0, LOW, 0), (120, -1.0, HUGE, HUGE), (-120, 1.0, TINY, TINY)],
    "cispo": [(lr, a, w * LOGP, w) for lr, w in ((120, HIGH), (-120, LOW)) for a in (1.0, -1.0)],
    "ce_gppo": [(120, 1.0, HIGH / 2, HIGH / 2), (-120, -1.0, LOW / 4, LOW / 4), (120, -1.0, HUGE, HUGE)],
    "gspo": [(120, 1.0, HIGH, 0), (-120, -1.0, LOW, 0), (120, -1.0, HUGE, HUGE), (-120, 1.0, TINY, TINY)],
}


@pytest.mark.parametrize(
    ("kind", "log_ratio", "advantage", "value", "weight"), [(k, *c) for k, cells in EXTREME.items() for c in cells]
)
def test_log_ratios_of_120_are_finite_and_keep_their_cell(kind, log_ratio, advantage, value, weight):
    got = one_token(log_ratio=log_ratio, advantage=advantage, kind=kind, beta_low=0.25, beta_high=0.5)
    assert got == pytest.approx((value * advantage, weight), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_ratios_of_120_are_finite_in_low_precision(kind, dtype):
    logp = torch.tensor([[-0.5, -120.5, -0.5, -120.5]], dtype=dtype, requires_grad=True)
    old = torch.tensor([[-120.5, -0.5, -120.5, -0.5]], dtype=dtype)
    advantage = torch.tensor([[1.0, 1.0, -1.0, -1.0]], dtype=dtype)
    loss, metrics = policy_loss(logp, old, advantage, torch.ones(1, 4), kind=kind)
    loss.backward()
    assert loss.dtype == torch.float32
    assert loss.isfinite() and logp.grad.isfinite().all()
    assert all(value.isfinite() for value in metrics.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", ["token", "sequence", "constant"])
@pytest.mark.parametrize("garbage", [200.0, -200.0, INF, -INF, NAN])
def test_padding_adds_exactly_nothing(kind, normalize, garbage):
    options = {"kind": kind, "normalize": normalize, "dual_clip": 3.0}
    short = torch.tensor([[-1.0, -2.0], [-0.5, -1.0]], requires_grad=True)
    old, advantage = torch.tensor([[-1.5, -1.0], [-3.0, -0.5]]), torch.tensor([1.0, -1.0])
    expected, _ = policy_loss(short, old, advantage, torch.ones(2, 2), denominator=2.0, **options)
    expected.backward()

    bad = torch.full((2, 1), garbage)
    logp = torch.cat([short.detach(), bad], 1).requires_grad_()
    mask = torch.tensor([[1, 1, 0], [1, 1, 0]])
    advantages = torch.cat([advantage[:, None].expand(2, 2), bad], 1)
    loss, metrics = policy_loss(logp, torch.cat([old, -bad], 1), advantages, mask, denominator=2.0, **options)
    loss.backward()
    assert loss.item() == expected.item()
    assert torch.equal(logp.grad[:, :2], short.grad)
    assert (logp.grad[:, 2] == 0).all()
    assert all(value.isfinite() for value in metrics.values())
    assert metrics["tokens"] == 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", ["token", "sequence", "constant"])
def test_an_all_masked_row_counts_nowhere(kind, normalize):
    logp = torch.tensor([[-1.0, -2.0], [NAN, INF]], requires_grad=True)
    old, mask = torch.tensor([[-1.5, -1.0], [-INF, NAN]]), torch.tensor([[True, True], [False, False]])
    options = {"kind": kind, "normalize": normalize}
    loss, metrics = policy_loss(logp, old, torch.tensor([1.0, NAN]), mask, **options)
    loss.backward()
    alone, _ = policy_loss(logp[:1].detach(), old[:1], torch.tensor([1.0]), mask[:1], **options)
    # "constant" divides by B * T, and B counts the empty row
    assert loss.item() == pytest.approx(alone.item() / (2 if normalize == "constant" else 1))
    assert (logp.grad[1] == 0).all() and logp.grad.isfinite().all()
    assert (metrics["sequences"], metrics["tokens"]) == (1, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", ["token", "sequence", "constant"])
@pytest.mark.parametrize("denominator", [None, 0, 0.0, torch.tensor(0.0), 7])
def test_an_all_masked_batch_gives_zero_and_a_zero_gradient(kind, normalize, denominator):
    logp = torch.full((2, 3), NAN, requires_grad=True)
    loss, metrics = policy_loss(
        logp, torch.full((2, 3), INF), torch.full((2,), NAN), torch.zeros(2, 3),
        kind=kind, normalize=normalize, denominator=denominator,
    )  # fmt: skip
    loss.backward()
    assert loss.item() == 0.0
    assert (logp.grad == 0).all()
    assert all(value == 0 for value in metrics.values())


def reference(kind, logp, old, advantages, clip_low, clip_high, betas, dual):
    """(value, weight on grad log pi) of each token of one sequence, from the table, without tensors."""
    ratios = [lp - o for lp, o in zip(logp, old, strict=True)]
    if kind == "gspo":
        ratios = [math.fsum(ratios) / len(ratios)] * len(ratios)
    low, high = 1 - clip_low, 1 + (clip_low if kind == "ppo" else clip_high)
    out = []
    for r, a, lp in zip(ratios, advantages, logp, strict=True):
        delta = math.exp(max(-20.0, min(20.0, r)))
        if dual is not None and a < 0 and delta > dual:
            out.append((dual * a, 0.0))
        elif kind == "cispo":
            w = max(low, min(high, delta))
            out.append((w * a * lp, w * a))
        elif (a > 0 and delta > high) or (a < 0 and delta < low):
            bound, beta = (high, betas[1]) if a > 0 else (low, betas[0])
            keeps = {"gppo": 1.0, "ce_gppo": beta}.get(kind, 0.0)
            out.append((bound * a * (beta if kind == "ce_gppo" else 1.0), bound * a * keeps))
        else:
            out.append((delta * a, delta * a))
    return out


numbers = st.floats(-30, 0, width=32)
token = st.tuples(numbers, numbers, st.sampled_from([-2.0, -0.5, 0.0, 0.5, 2.0]), st.booleans())
batches = st.integers(1, 4).flatmap(lambda t: st.lists(st.lists(token, min_size=t, max_size=t), min_size=1, max_size=3))


@settings(max_examples=60, deadline=None)
@given(
    batch=batches,
    kind=st.sampled_from(sorted(KINDS)),
    normalize=st.sampled_from(["token", "sequence", "constant"]),
    clips=st.tuples(st.floats(0, 0.9), st.floats(0, 2)),
    betas=st.tuples(st.floats(0, 1), st.floats(0, 2)),
    dual=st.none() | st.floats(1.5, 20),
)
def test_equals_a_plain_python_implementation(batch, kind, normalize, clips, betas, dual):
    logp, old, advantages, keep = (torch.tensor([[t[i] for t in row] for row in batch]) for i in range(4))
    logp = logp.double().requires_grad_()
    loss, _ = policy_loss(
        logp, old.double(), advantages.double(), keep, kind=kind, clip_low=clips[0], clip_high=clips[1],
        beta_low=betas[0], beta_high=betas[1], dual_clip=dual, normalize=normalize,
    )  # fmt: skip
    loss.backward()

    unit = "sequence" if kind == "gspo" and normalize == "token" else normalize
    kept = [[t for t in row if t[3]] for row in batch]
    count = {
        "token": sum(map(len, kept)),
        "sequence": sum(bool(row) for row in kept),
        "constant": len(batch) * len(batch[0]),
    }[unit]
    total, gradient = 0.0, []
    for row, whole in zip(kept, batch, strict=True):
        scale = 1 / (count * (len(row) if unit == "sequence" else 1)) if row else 0.0
        cells = iter(reference(kind, *zip(*(t[:3] for t in row), strict=True), *clips, betas, dual) if row else ())
        per_token = [next(cells) if t[3] else (0.0, 0.0) for t in whole]
        total -= math.fsum(value for value, _ in per_token) * scale
        gradient.append([-weight * scale for _, weight in per_token])
    assert loss.item() == pytest.approx(total, rel=1e-9, abs=1e-12)
    torch.testing.assert_close(logp.grad, torch.tensor(gradient, dtype=torch.float64), rtol=1e-9, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(batch=batches, clips=st.tuples(st.floats(0, 0.9), st.floats(0, 2)))
def test_gppo_has_the_forward_value_of_clip_higher(batch, clips):
    logp, old, advantages, keep = (torch.tensor([[t[i] for t in row] for row in batch]) for i in range(4))
    losses = [
        policy_loss(logp, old, advantages, keep, kind=kind, clip_low=clips[0], clip_high=clips[1])[0]
        for kind in ("gppo", "clip_higher", "ce_gppo")
    ]
    assert losses[0] == losses[1] == losses[2]


def test_gspo_takes_the_geometric_mean_of_a_sequence():
    logp = torch.tensor([[-1.0, -2.0, -9.0], [-1.0, -1.0, -1.0]], dtype=torch.float64, requires_grad=True)
    change = torch.tensor([[0.1, 0.3, 99.0], [0.4, 0.5, 0.6]], dtype=torch.float64)
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    loss, metrics = policy_loss(logp, logp.detach() - change, torch.tensor([1.0, 1.0]), mask, kind="gspo")
    loss.backward()
    ratio = math.exp(0.2)  # inside; the other sequence, e^0.5, is above 1.28
    assert loss.item() == pytest.approx(-(ratio + HIGH) / 2)
    assert logp.grad.tolist() == [pytest.approx([-ratio / 4, -ratio / 4, 0]), [0, 0, 0]]
    assert metrics["high_pos"] == 3


@pytest.mark.parametrize("kind", KINDS)
def test_dual_clip_cuts_negative_advantages_far_above_the_range(kind):
    assert one_token(5.0, -2.0, kind=kind, dual_clip=3.0) == (pytest.approx(-6.0), 0.0)
    assert one_token(log_ratio=120, advantage=-2.0, kind=kind, dual_clip=3.0) == (pytest.approx(-6.0), 0.0)
    for delta, advantage in ((2.9, -2.0), (5.0, 2.0), (0.5, -2.0)):
        assert one_token(delta, advantage, kind=kind, dual_clip=3.0) == one_token(delta, advantage, kind=kind)


def test_dual_clip_is_off_by_default_and_its_tokens_are_counted():
    logp, advantage, mask = torch.zeros(1, 3), torch.tensor([[-1.0, -1.0, 1.0]]), torch.ones(1, 3)
    old = torch.tensor([[-2.0, -0.5, -2.0]])  # deltas e^2, e^0.5, e^2
    loss, metrics = policy_loss(logp, old, advantage, mask, dual_clip=3.0)
    assert metrics["dual_clipped"] == 1
    assert loss.item() == pytest.approx((3.0 + math.exp(0.5) - HIGH) / 3)
    assert policy_loss(logp, old, advantage, mask)[1]["dual_clipped"] == 0


def random_batch(seed=0, rows=8, length=6):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, length, 11, generator=generator, dtype=torch.float64)
    labels = torch.randint(11, (rows, length), generator=generator)
    lengths = torch.tensor([6, 1, 3, 5, 2, 6, 4, 1])[:rows]
    mask = torch.arange(length) < lengths[:, None]
    old = token_logprobs(logits + torch.randn(logits.shape, generator=generator), labels)
    return logits, labels, old, torch.randn(rows, generator=generator), mask


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", ["token", "sequence", "constant"])
def test_micro_batches_with_a_global_denominator_equal_the_whole_batch(kind, normalize):
    logits, labels, old, advantage, mask = random_batch()
    options = {"kind": kind, "normalize": normalize}
    results = []
    for size in (8, 4, 2, 1):
        leaf = logits.clone().requires_grad_()
        cuts = [slice(i, i + size) for i in range(0, 8, size)]
        denominator = sum(count_units(mask[cut], **options) for cut in cuts)
        total, sums = 0.0, {}
        for cut in cuts:
            logp = token_logprobs(leaf[cut], labels[cut])
            loss, metrics = policy_loss(
                logp, old[cut], advantage[cut], mask[cut], denominator=denominator, **options
            )  # fmt: skip
            loss.backward()
            total += loss.item()
            sums = {name: sums.get(name, 0.0) + value.item() for name, value in metrics.items()}
        results.append((total, leaf.grad, sums))
    whole, _ = policy_loss(token_logprobs(logits, labels), old, advantage, mask, **options)
    for total, gradient, sums in results:
        assert total == pytest.approx(whole.item(), rel=1e-9)
        torch.testing.assert_close(gradient, results[0][1], rtol=1e-9, atol=1e-12)
        assert sums == pytest.approx(results[0][2])
    assert results[0][1].abs().max() > 0


def test_advantages_a_sequence_and_a_token_are_the_same():
    logits, labels, old, advantage, mask = random_batch()
    logp = token_logprobs(logits, labels)
    assert torch.equal(
        policy_loss(logp, old, advantage, mask)[0],
        policy_loss(logp, old, advantage[:, None].expand(8, 6), mask.float())[0],
    )


def test_no_gradient_flows_into_old_logp_or_the_advantage():
    logp, old, advantage = (torch.full((1, 2), x, requires_grad=True) for x in (-1.0, -1.1, 0.5))
    loss, metrics = policy_loss(logp, old, advantage, torch.ones(1, 2))
    loss.backward()
    assert old.grad is None and advantage.grad is None
    assert not any(value.requires_grad for value in metrics.values())


def test_metrics_are_sums_over_tokens():
    deltas = [3.0, 0.5, 1.0, 3.0, 0.5, 0.5]
    advantage = torch.tensor([[1.0, 1.0, 1.0, -1.0, -1.0, 0.0]])
    logp, mask = torch.full((1, 6), LOGP), torch.ones(1, 6)
    _, metrics = policy_loss(logp, logp - torch.tensor([deltas]).log(), advantage, mask)
    counts = {name: metrics[name].item() for name in ("high_pos", "low_pos", "high_neg", "low_neg", "tokens")}
    assert counts == {"high_pos": 1, "low_pos": 1, "high_neg": 1, "low_neg": 1, "tokens": 6}
    assert metrics["log_ratio"].item() == pytest.approx(sum(map(math.log, deltas)), abs=1e-5)
    assert metrics["kl"].item() == pytest.approx(sum(d - 1 - math.log(d) for d in deltas), abs=1e-5)
    assert metrics["surrogate"].item() == pytest.approx(1.28 + 0.5 + 1.0 - 3.0 - 0.8, abs=1e-5)
    assert all(value.shape == () and value.is_floating_point() for value in metrics.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "gppoo"}, "unknown kind 'gppoo'; did you mean 'gppo'?.*ce_gppo, cispo, clip_higher, gppo, gspo, ppo"),
        ({"normalize": "tokens"}, "unknown normalize 'tokens'; did you mean 'token'?.*constant, sequence, token"),
        ({"clip_low": 1.5}, "clip_low is 1.5; allowed: 0..1"),
        ({"clip_high": -0.1}, "clip_high is -0.1"),
        ({"dual_clip": 1.0}, "dual_clip is 1.0; it must be above 1"),
        ({"denominator": -1}, "denominator is -1"),
        ({"old_logp": torch.zeros(2, 4)}, r"old_logp is \(2, 4\), logp is \(2, 3\)"),
        ({"mask": torch.ones(2)}, r"mask is \(2,\)"),
        ({"advantage": torch.zeros(3)}, r"advantage is \(3,\); allowed: \(2,\), \(2, 3\)"),
        ({"logp": torch.zeros(6)}, r"logp is \(6,\); \[B, T\] is expected"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(options, message):
    given_ = {"logp": torch.zeros(2, 3), "old_logp": torch.zeros(2, 3), "advantage": torch.zeros(2)}
    with pytest.raises(ValueError, match=message):
        policy_loss(**(given_ | {"mask": torch.ones(2, 3)} | options))


def test_lm_loss_is_the_token_mean_with_a_global_denominator():
    logp = torch.tensor([[-1.0, -3.0, NAN], [-2.0, INF, -INF]], requires_grad=True)
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    loss = lm_loss(logp, mask)
    loss.backward()
    assert loss.item() == 2.0
    assert logp.grad.tolist() == [pytest.approx([-1 / 3, -1 / 3, 0]), pytest.approx([-1 / 3, 0, 0])]
    assert lm_loss(logp, mask, denominator=12).item() == 0.5
    empty = lm_loss(logp, torch.zeros(2, 3))
    assert empty.item() == 0.0


def test_token_logprobs_match_log_softmax_in_value_and_gradient():
    logits = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(1), requires_grad=True)
    labels = torch.tensor([[0, 6, 3], [2, 2, -100]])
    got = token_logprobs(logits, labels, temperature=0.6)
    expected = (logits / 0.6).log_softmax(-1).gather(-1, labels.clamp_min(0)[..., None])[..., 0]
    torch.testing.assert_close(got, expected)
    weights = torch.arange(6.0).view(2, 3)
    (mine,) = torch.autograd.grad((got * weights).sum(), logits)
    (theirs,) = torch.autograd.grad((expected * weights).sum(), logits)
    torch.testing.assert_close(mine, theirs)


def test_token_logprobs_at_a_temperature_by_hand():
    logits = torch.tensor([[[0.0, math.log(3.0)]]])
    assert token_logprobs(logits, torch.tensor([[1]])).item() == pytest.approx(math.log(3 / 4))
    assert token_logprobs(logits, torch.tensor([[1]]), temperature=0.5).item() == pytest.approx(math.log(9 / 10))


def test_bfloat16_logits_give_float32_log_probs():
    logits = torch.randn(1, 4, 9, generator=torch.Generator().manual_seed(2)).bfloat16()
    got = token_logprobs(logits, torch.tensor([[1, 2, 3, 4]]))
    assert got.dtype == torch.float32
    expected = logits.double().log_softmax(-1)[0, range(4), range(1, 5)]
    torch.testing.assert_close(got[0].double(), expected, rtol=1e-5, atol=1e-6)


def test_entropy_by_hand():
    logits = torch.tensor([[[0.0, 0.0, -INF], [0.0, -INF, -INF], [0.0, math.log(3.0), -INF]]])
    quarter = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert entropy(logits)[0].tolist() == pytest.approx([math.log(2), 0.0, quarter])
    tenth = -(0.1 * math.log(0.1) + 0.9 * math.log(0.9))
    assert entropy(logits, temperature=0.5)[0, 2].item() == pytest.approx(tenth)


@pytest.mark.parametrize("function", [lambda x, t: token_logprobs(x, torch.zeros(1, 2, dtype=torch.long), t), entropy])
def test_a_temperature_of_zero_is_refused(function):
    with pytest.raises(ValueError, match="temperature is 0"):
        function(torch.zeros(1, 2, 3), 0)
    with pytest.raises(ValueError, match="B, T, V"):
        function(torch.zeros(2, 3), 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_entropy_gate_drops_gradients_and_keeps_values(kind):
    logp = torch.full((1, 4), LOGP, requires_grad=True)
    old_entropy = torch.ones(1, 4)
    new_entropy = torch.tensor([[0.94, 0.96, 1.04, 1.06]])
    advantage, mask = torch.tensor([1.0]), torch.ones(1, 4)
    plain, _ = policy_loss(logp, logp.detach(), advantage, mask, kind=kind)
    gated, _ = policy_loss(erc_gate(logp, new_entropy, old_entropy), logp.detach(), advantage, mask, kind=kind)
    gated.backward()
    assert gated.item() == plain.item()
    assert logp.grad[0].tolist() == pytest.approx([0.0, -0.25, -0.25, 0.0])


@pytest.mark.parametrize("denominator", [-1, torch.tensor(-1.0), torch.tensor(float("nan")), torch.tensor([1.0, 2.0])])
def test_a_denominator_that_is_none_is_refused(denominator):
    zeros = torch.zeros(1, 2)
    with pytest.raises(ValueError, match="denominator"):
        policy_loss(zeros, zeros, torch.ones(1), torch.ones(1, 2), denominator=denominator)
