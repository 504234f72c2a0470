"""Policy losses as pure functions of tensors: GPPO and its relatives, the positive-example LM loss, log-probs.

GPPO is defined in the Klear-Reasoner technical report (arXiv 2508.07629). Per token, with delta = pi / pi_old and the
advantage A, the gradient of what is maximised is w * A * grad(log pi); the weight w is, for bounds `low` = 1 - clip_low
and `high` = 1 + clip_high:

    |       | delta < low | inside | delta > high |
    | A > 0 | delta       | delta  | HIGH         |
    | A < 0 | LOW         | delta  | delta        |

In the two cells in capitals PPO gives 0. The relatives:

    ppo          0 in the two cells; clip_low on both sides (GRPO's clip)
    clip_higher  0 in the two cells (DAPO's clip)
    ce_gppo      LOW times beta_low, HIGH times beta_high, in value and gradient
    cispo        clip(delta, low, high) in all six cells; its value is weight * A * log pi (arXiv 2506.13585)
    gspo         clip_higher on one ratio a sequence, exp of the mean log-ratio; by sequence (arXiv 2507.18071)

No ratio is ever divided by: a weight is a constant, and `exp(logp - logp.detach())`, which is 1, carries the gradient.

Shapes: B sequences, T tokens (prompt or completion, padded), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from klearbench.errors import unknown_name

MAX_LOG_RATIO = 20.0
"""Plain delta cells weigh at most e^20 and at least e^-20. The cells in capitals don't depend on delta."""

NORMALIZE = ("token", "sequence", "constant")


@dataclass(frozen=True, slots=True)
class Terms:
    """What a kind of loss is made of; [B, T] each. All but `carrier` and `logp` are constants for autograd."""

    ratio: Tensor
    """delta, or the sequence's ratio; the log-ratio is clamped to +-MAX_LOG_RATIO."""
    too_low: Tensor
    """bool: A < 0 and delta < low."""
    too_high: Tensor
    """bool: A > 0 and delta > high."""
    low: float
    high: float
    beta_low: float
    beta_high: float
    carrier: Tensor
    """1 everywhere; its gradient is that of log pi."""
    logp: Tensor


def _bounded(t: Terms, low: float, high: float) -> Tensor:
    return t.ratio.masked_fill(t.too_low, low).masked_fill(t.too_high, high)


def _gppo(t: Terms) -> Tensor:
    return _bounded(t, t.low, t.high) * t.carrier


def _ce_gppo(t: Terms) -> Tensor:
    return _bounded(t, t.beta_low * t.low, t.beta_high * t.high) * t.carrier


def _clipped(t: Terms) -> Tensor:
    return _bounded(t, t.low, t.high) * t.carrier.masked_fill(t.too_low | t.too_high, 1.0)


def _cispo(t: Terms) -> Tensor:
    return t.ratio.clamp(t.low, t.high) * t.logp


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of policy loss: what multiplies A, whether clip_low holds on both sides, one ratio a sequence or not."""

    surrogate: Callable[[Terms], Tensor]
    symmetric: bool = False
    sequence: bool = False


KINDS: dict[str, Kind] = {
    "gppo": Kind(_gppo),
    "ppo": Kind(_clipped, symmetric=True),
    "clip_higher": Kind(_clipped),
    "cispo": Kind(_cispo),
    "ce_gppo": Kind(_ce_gppo),
    "gspo": Kind(_clipped, sequence=True),
}


def policy_loss(
    logp: Tensor,
    old_logp: Tensor,
    advantage: Tensor,
    mask: Tensor,
    *,
    kind: str = "gppo",
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    beta_low: float = 1.0,
    beta_high: float = 1.0,
    dual_clip: float | None = None,
    normalize: str = "token",
    denominator: float | Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The policy loss of a micro-batch, to be minimised, and its metrics.

    Args:
        logp: [B, T] log-probs of the sampled tokens under the policy; half precision is computed in float32.
        old_logp: [B, T] the same at sampling time; no gradient flows into it.
        advantage: [B] or [B, T]; no gradient flows into it.
        mask: [B, T] bool, int or float, non-zero at the tokens that count. Whatever stands elsewhere (NaN, inf)
            adds exactly 0 to the loss and to the gradient.
        kind: a name of KINDS.
        clip_low, clip_high: the clip range is 1 - clip_low .. 1 + clip_high.
        beta_low, beta_high: ce_gppo's factors of the cells (A < 0, low) and (A > 0, high).
        dual_clip: c > 1: for A < 0 and delta > c the value is c * A, without a gradient. None: off.
        normalize: "token", the sum over tokens by the number of tokens; "sequence", the sum of each sequence's token
            mean by the number of sequences that have tokens; "constant", the sum by B * T (Dr. GRPO). gspo is
            normalised by sequence unless this is "constant".
        denominator: the number to divide by, counted over all micro-batches and ranks (the sum of `count_units`);
            None counts this micro-batch alone. With 0 the loss is 0.

    Returns:
        The loss (0-d), and detached 0-d float tensors that are sums or counts over tokens: add them over micro-batches
        and ranks, and divide by the summed `tokens` afterwards.

            tokens, sequences           how many count
            high_pos, low_pos           tokens with A > 0 above / below the clip range
            high_neg, low_neg           the same with A < 0
            dual_clipped                tokens that the dual clip cut
            log_ratio, kl               log delta; the k3 estimate delta - 1 - log delta of KL(old || new), clamped
            surrogate                   what is maximised, before any division

    Raises:
        ValueError: an unknown kind or normalize, a shape that doesn't fit, a number out of its range.
    """
    _check_numbers(clip_low, clip_high, dual_clip, denominator)
    rule, unit = _kind(kind), _unit(kind, normalize)
    keep, logp, old_logp, advantage = _masked(logp, old_logp, advantage, mask)
    log_ratio = logp.detach() - old_logp
    level = _sequence_mean(log_ratio, keep) if rule.sequence else log_ratio
    ratio = level.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    low, high = 1.0 - clip_low, 1.0 + (clip_low if rule.symmetric else clip_high)
    below, above, positive, negative = ratio < low, ratio > high, advantage > 0, advantage < 0
    carrier = (logp - logp.detach()).exp()
    terms = Terms(ratio, below & negative, above & positive, low, high, beta_low, beta_high, carrier, logp)
    surrogate = rule.surrogate(terms)
    cut = negative & (ratio > (float("inf") if dual_clip is None else dual_clip))
    surrogate = surrogate.masked_fill(cut, dual_clip or 0.0)
    objective = surrogate * advantage
    loss = _normalized(-objective, keep, unit, denominator)
    small = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    sums = {
        "tokens": keep, "sequences": keep.any(dim=1), "dual_clipped": cut,
        "high_pos": above & positive, "low_pos": below & positive,
        "high_neg": above & negative, "low_neg": below & negative,
        "log_ratio": log_ratio, "kl": small.exp() - 1.0 - small, "surrogate": objective.detach(),
    }  # fmt: skip
    return loss, {name: value.sum(dtype=loss.dtype) for name, value in sums.items()}


def count_units(mask: Tensor, *, kind: str = "gppo", normalize: str = "token") -> Tensor:
    """What a micro-batch (mask [B, T]) adds to the global `denominator` of `policy_loss`; a 0-d float tensor.

    Raises:
        ValueError: an unknown kind or normalize.
    """
    return _units(mask != 0, _unit(kind, normalize))


def lm_loss(logp: Tensor, mask: Tensor, denominator: float | Tensor | None = None) -> Tensor:
    """Negative log-likelihood, a mean over tokens: SFT's loss, and RL's auxiliary loss on right rollouts.

    The report adds 0.1 times this, over the rollouts whose reward is exactly 1, to GPPO's loss.

    Args:
        logp: [B, T] log-probs of the labels.
        mask: [B, T] non-zero at the tokens that count; the others may hold anything.
        denominator: the number of tokens over all micro-batches and ranks; None counts this micro-batch alone.

    Raises:
        ValueError: the shapes differ.
    """
    _check_shape("mask", mask, logp)
    _check_numbers(0.0, 0.0, None, denominator)
    keep = mask != 0
    return _normalized(torch.where(keep, -_wide(logp), 0.0), keep, "token", denominator)


def erc_gate(logp: Tensor, entropy: Tensor, old_entropy: Tensor, *, low: float = 0.95, high: float = 1.05) -> Tensor:
    """`logp` [B, T] without a gradient where the entropy ratio new / old is not within low..high (exclusive).

    Give the result to `policy_loss`: values stay, and the dropped tokens stay in every denominator. Written as
    products, so that an entropy of 0 divides nothing.
    """
    inside = (entropy > low * old_entropy) & (entropy < high * old_entropy)
    return torch.where(inside, logp, logp.detach())


def token_logprobs(logits: Tensor, labels: Tensor, temperature: float = 1.0) -> Tensor:
    """log softmax(logits / temperature) at the labels: [B, T, V], [B, T] -> [B, T] float32 (float64 stays).

    One sequence at a time, without a [B, T, V] table of log-probs. A negative label (-100) gives a number that the
    caller has to mask. The temperature must be the one that the tokens were sampled at, or the ratio is off from 1.

    Raises:
        ValueError: temperature <= 0, or shapes that differ.
    """
    _check_logits(logits, temperature)
    if labels.shape != logits.shape[:-1]:
        raise ValueError(f"labels are {tuple(labels.shape)}, logits {tuple(logits.shape)} ([B, T] and [B, T, V] fit)")
    index = labels.clamp_min(0).unsqueeze(-1)
    rows = (_scaled(row, temperature) for row in logits)
    return torch.stack([r.gather(-1, i).squeeze(-1) - r.logsumexp(-1) for r, i in zip(rows, index, strict=True)])


@torch.no_grad()
def entropy(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Entropy in nats of softmax(logits / temperature): [B, T, V] -> [B, T], without a gradient (metric and gate).

    Raises:
        ValueError: temperature <= 0, or logits that are not [B, T, V].
    """
    _check_logits(logits, temperature)
    return torch.stack([torch.special.entr(_scaled(row, temperature).softmax(-1)).sum(-1) for row in logits])


def _masked(logp: Tensor, old_logp: Tensor, advantage: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The mask as bool and the three others in one dtype, with 0 where it is off.

    This comes before any exp: `torch.where` after it would still let inf * 0 = NaN into the gradient.
    """
    if logp.ndim != 2:
        raise ValueError(f"logp is {tuple(logp.shape)}; [B, T] is expected")
    _check_shape("old_logp", old_logp, logp)
    _check_shape("mask", mask, logp)
    if advantage.shape not in (logp.shape, logp.shape[:1]):
        raise ValueError(
            f"advantage is {tuple(advantage.shape)}; allowed: {tuple(logp.shape[:1])}, {tuple(logp.shape)}"
        )
    keep = mask != 0
    logp = torch.where(keep, _wide(logp), 0.0)
    columns = advantage.detach().to(logp.dtype)
    columns = columns if columns.ndim == 2 else columns.unsqueeze(1)
    return keep, logp, torch.where(keep, old_logp.detach().to(logp.dtype), 0.0), torch.where(keep, columns, 0.0)


def _sequence_mean(values: Tensor, keep: Tensor) -> Tensor:
    """Each sequence's mean over its tokens, at each of them; `values` are 0 elsewhere."""
    count = keep.sum(dim=1, keepdim=True).clamp_min(1)
    return (values.sum(dim=1, keepdim=True) / count).expand_as(values)


def _kind(name: str) -> Kind:
    if name not in KINDS:
        raise ValueError(unknown_name("kind", name, KINDS))
    return KINDS[name]


def _unit(kind: str, normalize: str) -> str:
    if normalize not in NORMALIZE:
        raise ValueError(unknown_name("normalize", normalize, NORMALIZE))
    return "sequence" if normalize == "token" and _kind(kind).sequence else normalize


def _units(keep: Tensor, unit: str) -> Tensor:
    counted = {"token": keep, "sequence": keep.any(dim=-1), "constant": torch.ones_like(keep)}[unit]
    return counted.sum(dtype=torch.float32)


def _normalized(per_token: Tensor, keep: Tensor, unit: str, denominator: float | Tensor | None) -> Tensor:
    """The sum of `per_token` (0 where `keep` is off) by the denominator; 0, with a gradient of 0, when that is 0."""
    if unit == "sequence":
        per_token = per_token / keep.sum(dim=1, keepdim=True).clamp_min(1)
    count = _units(keep, unit) if denominator is None else torch.as_tensor(denominator, device=per_token.device)
    return per_token.sum() / torch.where(count > 0, count.to(per_token.dtype), float("inf"))


def _scaled(logits: Tensor, temperature: float) -> Tensor:
    return _wide(logits) if temperature == 1.0 else _wide(logits) / temperature


def _wide(values: Tensor) -> Tensor:
    return values if values.dtype == torch.float64 else values.float()


def _check_shape(name: str, tensor: Tensor, logp: Tensor) -> None:
    if tensor.shape != logp.shape:
        raise ValueError(f"{name} is {tuple(tensor.shape)}, logp is {tuple(logp.shape)}; they must be equal")


def _check_logits(logits: Tensor, temperature: float) -> None:
    if logits.ndim != 3 or not len(logits):
        raise ValueError(f"logits are {tuple(logits.shape)}; [B, T, V] with B > 0 is expected")
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}; it must be above 0")


def _check_numbers(
    clip_low: float, clip_high: float, dual_clip: float | None, denominator: float | Tensor | None
) -> None:
    if not 0 <= clip_low <= 1:
        raise ValueError(f"clip_low is {clip_low}; allowed: 0..1")
    if not clip_high >= 0:
        raise ValueError(f"clip_high is {clip_high}; it must be 0 or more")
    if dual_clip is not None and not dual_clip > 1:
        raise ValueError(f"dual_clip is {dual_clip}; it must be above 1, or None for off")
    if isinstance(denominator, Tensor) and denominator.ndim:
        raise ValueError(f"denominator has shape {tuple(denominator.shape)}; a number or a 0-d tensor is expected")
    if denominator is not None and not bool(denominator >= 0):
        raise ValueError(f"denominator is {denominator}; it must be 0 or more")
