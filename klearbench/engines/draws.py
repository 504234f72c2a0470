"""Drawing tokens: penalty, temperature, min-p, top-k, top-p, then the inverse of the cumulative distribution at a
sample's number. And ending samples at their stop texts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import torch
from transformers import LogitsProcessor, StoppingCriteria

from klearbench.engines.base import Sampling
from klearbench.engines.chat import StopTexts


class SeededSampler(LogitsProcessor):  # type: ignore[misc]
    """Chooses each token itself (generate() only takes the maximum) and keeps its log-probability.

    Order as in vLLM (v1/sample/sampler.py): repetition penalty, temperature, min-p, top-k, top-p; transformers has
    min-p last. Greedy choices know the penalty alone. `logprobs` holds one [B] tensor a position: the natural log of
    the sampled token's probability after all of them. A sample that has used its budget up is ended by `stop`, so that
    a short prompt's context does not depend on the longest one of the batch. `prompts` are needed for the penalty:
    padding is no token that was said before.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        sampling: Sampling,
        prompt_tokens: int,
        budgets: Sequence[int] = (),
        stop: int = 0,
        prompts: Sequence[Sequence[int]] = (),
    ) -> None:
        self._streams = [random.Random(seed) for seed in seeds]
        self._sampling = sampling
        self._prompt_tokens = prompt_tokens
        self._budgets, self._stop = budgets, stop
        self._prompts = prompts
        self._said: torch.Tensor | None = None
        self.logprobs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.Tensor:
        """[B, V] logits in, [B, V] out with 0 at the chosen token and -inf elsewhere."""
        assert input_ids.shape[1] - self._prompt_tokens == len(self.logprobs)
        logits = scores.float()
        if self._sampling.repetition_penalty != 1:
            logits = self._penalize(input_ids, logits)
        logp = torch.log_softmax(_warp(logits, self._sampling), -1)
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

    def _penalize(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """Tokens of the prompt or the completion: positive logits divided by the penalty, negative ones times it."""
        if self._said is None:
            self._said = torch.zeros_like(logits, dtype=torch.bool)
            for row, prompt in enumerate(self._prompts):
                self._said[row, torch.tensor(prompt, device=logits.device)] = True
        else:
            self._said.scatter_(1, input_ids[:, -1:], True)
        penalty = self._sampling.repetition_penalty
        return torch.where(self._said, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


class StopAtTexts(StoppingCriteria):  # type: ignore[misc]
    """Ends each row of a batch at the token that completes one of its stop texts.

    `at` holds, for each row, the index of that token within the completion, or None.
    """

    def __init__(self, tokenizer: Any, stop: Sequence[str], rows: int, ends: AbstractSet[int]) -> None:
        self._watching: list[StopTexts | None] = [StopTexts(tokenizer, stop) for _ in range(rows)]
        self._ends = ends
        self._seen = 0
        self.at: list[int | None] = [None] * rows

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        for row, token in enumerate(input_ids[:, -1].tolist()):
            watch = self._watching[row]
            if watch is None:
                continue
            if token in self._ends:
                self._watching[row] = None
            elif watch.feed(token):
                self.at[row], self._watching[row] = self._seen, None
        self._seen += 1
        return torch.tensor([at is not None for at in self.at], device=input_ids.device)


def inverse_cdf(logp: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """The first token [B, 1] whose cumulative probability exceeds the draw [B, 1]; never one of probability 0."""
    cumulative = logp.double().exp().cumsum(-1)
    found = torch.searchsorted(cumulative, draws * cumulative[:, -1:], right=True)
    last = (logp > -torch.inf).long().cumsum(-1).argmax(-1, keepdim=True)
    return torch.minimum(found, last)


def _warp(scores: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    if sampling.temperature == 0:
        return scores
    scores = scores / sampling.temperature
    if sampling.min_p > 0:
        probabilities = scores.softmax(-1)
        floor = sampling.min_p * probabilities.amax(-1, keepdim=True)
        scores = scores.masked_fill(probabilities < floor, -torch.inf)
    if 0 < sampling.top_k < scores.shape[-1]:
        floor = scores.topk(sampling.top_k, -1).values[:, -1:]
        scores = scores.masked_fill(scores < floor, -torch.inf)
    if sampling.top_p < 1:
        ordered, order = scores.sort(dim=-1, descending=True, stable=True)
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        drop = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, order, before >= sampling.top_p)
        scores = scores.masked_fill(drop, -torch.inf)
    return scores
