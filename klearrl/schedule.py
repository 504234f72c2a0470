"""Learning rates as a pure function of the optimizer step, so that a resume, the number of ranks and gradient
accumulation can't shift them."""

from __future__ import annotations

import math
from collections.abc import Callable

from klearbench.errors import unknown_name


def _constant(progress: float) -> float:
    return 1.0


def _linear(progress: float) -> float:
    return 1.0 - progress


def _cosine(progress: float) -> float:
    return 0.5 * (1.0 + math.cos(math.pi * progress))


SHAPES: dict[str, Callable[[float], float]] = {"constant": _constant, "cosine": _cosine, "linear": _linear}
"""Progress after the warm-up, 0..1, to the share of the way from floor to peak, 1..0."""


def learning_rate(
    step: int, *, peak: float, warmup: int, total: int, kind: str = "constant", floor: float = 0.0
) -> float:
    """The learning rate used for optimizer step `step` (counted from 0).

    Warm-up is linear, peak * (step + 1) / warmup for step < warmup, so that no step is spent at 0. From step `warmup`
    on, with progress = (step - warmup) / (total - warmup): cosine and linear go from `peak` to `floor`, which step
    `total`, the first that is not made, would reach; later steps stay there.

    Args:
        step: >= 0.
        peak: the highest learning rate.
        warmup: optimizer steps of warm-up, 0 for none.
        total: optimizer steps of the whole stage.
        kind: a name of SHAPES.
        floor: the learning rate at the end; not used by "constant".

    Raises:
        ValueError: an unknown kind, or a number out of its range.
    """
    if kind not in SHAPES:
        raise ValueError(unknown_name("kind", kind, SHAPES))
    if step < 0 or warmup < 0 or total < 1:
        raise ValueError(f"step {step}, warmup {warmup}, total {total}: step and warmup must be >= 0, total >= 1")
    if not 0 <= floor <= peak:
        raise ValueError(f"floor is {floor}, peak {peak}; allowed: 0 <= floor <= peak")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1.0, (step - warmup) / max(1, total - warmup))
    share = SHAPES[kind](progress)
    return share * peak + (1.0 - share) * floor
