"""Drawing tokens: temperature, top-k, top-p, then the inverse of the cumulative distribution at a sample's number."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from transformers import LogitsProcessor

from klearbench.engines.base import Sampling


class SeededSampler(LogitsProcessor):  # type: ignore[misc]
    """Chooses each token itself (generate() only takes the maximum) and keeps its log-probability.

    Order as in transformers and vLLM: temperature, top-k, top-p. `logprobs` holds one [B] tensor a position: the
    natural log of the sampled token's probability after all three. A sample that has used its budget up is ended by
    `stop`, so that a short prompt's context does not depend on the longest one of the batch.
    """

    def __init__(
        self, seeds: Sequence[int], sampling: Sampling, prompt_tokens: int, budgets: Sequence[int] = (), stop: int = 0
    ) -> None:
        self._streams = [random.Random(seed) for seed in seeds]
        self._sampling = sampling
        self._prompt_tokens = prompt_tokens
        self._budgets, self._stop = budgets, stop
        self.logprobs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.Tensor:
        """[B, V] logits in, [B, V] out with 0 at the chosen token and -inf elsewhere."""
        assert input_ids.shape[1] - self._prompt_tokens == len(self.logprobs)
        logp = torch.log_softmax(_warp(scores.float(), self._sampling), -1)
        if self._sampling.temperature == 0:
            chosen = logp.argmax(-1, keepdim=True)
        else:
            draws = torch.tensor([[s.random()] for s in self._streams], dtype=torch.float64, device=scores.device)
            chosen = inverse_cdf(logp, draws)
        self.logprobs.append(logp.gather(1, chosen).squeeze(1).cpu())
        for row, budget in enumerate(self._budgets):
            if len(self.logprobs) > budget:
                chosen[row] = self._stop
        return torch.full_like(logp, -torch.inf).scatter_(1, chosen, 0.0)


def inverse_cdf(logp: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """The first token [B, 1] whose cumulative probability exceeds the draw [B, 1]; never one of probability 0."""
    cumulative = logp.double().exp().cumsum(-1)
    found = torch.searchsorted(cumulative, draws * cumulative[:, -1:], right=True)
    last = (logp > -torch.inf).long().cumsum(-1).argmax(-1, keepdim=True)
    return torch.minimum(found, last)


def _warp(scores: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    if sampling.temperature > 0:
        scores = scores / sampling.temperature
    if 0 < sampling.top_k < scores.shape[-1]:
        floor = scores.topk(sampling.top_k, -1).values[:, -1:]
        scores = scores.masked_fill(scores < floor, -torch.inf)
    if sampling.top_p < 1:
        ordered, order = scores.sort(dim=-1, descending=True, stable=True)
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        drop = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, order, before >= sampling.top_p)
        scores = scores.masked_fill(drop, -torch.inf)
    return scores
