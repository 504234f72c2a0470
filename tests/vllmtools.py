"""What the vLLM tests share: a small model that was trained a little, its requests, one engine for all tests."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from klearbench.engines.base import Request, Sampling, sample_seed
from klearbench.engines.scripted import ScriptedEngine
from klearbench.suites import puzzles

STEPS = 120
LONG = 14
"""Steps of the long chains, whose worked traces have about 90 tokens."""

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")


def chain(rng: random.Random, steps: int) -> str:
    words = [str(rng.randrange(10))]
    for _ in range(steps):
        words += [rng.choice(("max", "min")), str(rng.randrange(10))]
    return " ".join([*words, "= ?"])


def long_requests(count: int, seed: int = 7) -> list[Request]:
    rng = random.Random(seed)
    texts = [chain(rng, LONG + i % 3) for i in range(count)]
    return [
        Request(({"role": "user", "content": t},), sample_seed(seed, t, i), (f"q{i}", 0)) for i, t in enumerate(texts)
    ]


def trained(folder: Path, seed: int = 1) -> Path:
    """A Qwen3 of 70,000 parameters that has seen worked chains, short and long: it writes traces, and errs."""
    import torch

    from klearrl.config import NewModel
    from klearrl.model import new_model, save_model, word_tokenizer

    torch.set_num_threads(1)
    rng = random.Random(seed)
    questions = [p.prompt[-1]["content"] for p in puzzles.load("chains", "train", 300, seed).problems]
    questions += [chain(rng, LONG + rng.randrange(3)) for _ in range(300)]
    asked = [Request(({"role": "user", "content": q},), i) for i, q in enumerate(questions)]
    traces = ScriptedEngine(errors={"max": 0.1, "min": 0.1}).generate(asked, Sampling(max_tokens=999))
    texts = [f"{q} {t.completion}" for q, t in zip(questions, traces, strict=True)]
    tokenizer = word_tokenizer(texts)
    spec = NewModel(
        hidden_size=64, layers=2, heads=2, kv_heads=1, head_dim=32, intermediate_size=128, context=256, init_std=0.1
    )  # fmt: skip
    model = new_model(spec, tokenizer, seed)
    rows = [
        tokenizer(f"<|im_start|> user {q} <|im_end|> <|im_start|> assistant {t.completion} <|im_end|>")["input_ids"]
        for q, t in zip(questions, traces, strict=True)
    ]
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for step in range(STEPS):
        batch = rng.sample(rows[300:] if step % 2 else rows[:300], 16)
        longest = max(map(len, batch))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in batch])
        labels = ids.masked_fill(ids == 0, -100)
        loss = model(ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    save_model(model, model.state_dict(), tokenizer, folder)
    return folder


def by_transformers(sampling: Sampling, seen: Any, logits: Any) -> Any:
    """[V] log-probabilities of logits [1, V] after tokens [1, T], by transformers' own processors in vLLM's order."""
    import torch
    import transformers as theirs

    steps = [theirs.RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty)]
    steps += [theirs.TemperatureLogitsWarper(sampling.temperature)]
    steps += [theirs.MinPLogitsWarper(sampling.min_p)]
    steps += [theirs.TopKLogitsWarper(sampling.top_k)] if sampling.top_k else []
    steps += [theirs.TopPLogitsWarper(sampling.top_p)] if sampling.top_p < 1 else []
    for step in steps:
        logits = step(seen, logits)
    return torch.log_softmax(logits, -1)[0]


@pytest.fixture(scope="session")
def vllm_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("vllm") / "model")


@pytest.fixture(scope="session")
def vllm_engine(vllm_model: Path) -> Iterator[object]:
    """One engine for the session; its replica starts at the first request."""
    from klearbench.engines.vllm import load_engine

    engine = load_engine(str(vllm_model), dtype="float32", max_num_seqs=32)
    yield engine
    engine.close()
