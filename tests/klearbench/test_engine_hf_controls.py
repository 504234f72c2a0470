"""min-p, the repetition penalty and stop texts of the transformers engine, against transformers' own processors."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from test_engine_hf import engine, folder, requests  # noqa: E402, F401
from vllmtools import by_transformers  # noqa: E402

from klearbench.engines.base import Sampling  # noqa: E402
from klearbench.engines.draws import SeededSampler  # noqa: E402
from klearbench.types import FinishReason  # noqa: E402

pytestmark = pytest.mark.train

FILTERS = [
    Sampling(0.8, 1.0, 0, 1, min_p=0.1),
    Sampling(1.5, 1.0, 0, 1, min_p=0.4),
    Sampling(0.8, 0.7, 6, 1, min_p=0.02),
    Sampling(0.6, 0.95, 20, 1, min_p=0.05, repetition_penalty=1.3),
    Sampling(1.0, 1.0, 0, 1, repetition_penalty=0.8),
    Sampling(1.0, 1.0, 0, 1, min_p=1.0),
]


@pytest.mark.parametrize("sampling", FILTERS, ids=str)
def test_min_p_and_the_penalty_are_those_of_transformers(sampling):
    generator = torch.Generator().manual_seed(3)
    for _ in range(10):
        logits = torch.randn(1, 12, generator=generator) * 2
        prompt = torch.randint(0, 12, (4,), generator=generator).tolist()
        wanted = by_transformers(sampling, torch.tensor([prompt]), logits)
        sampler = SeededSampler(list(range(2000)), sampling, 6, prompts=[prompt] * 2000)
        padded = torch.tensor([[11, 11, *prompt]]).expand(2000, -1)  # padding was never said
        chosen = sampler(padded, logits.expand(2000, -1)).argmax(-1)
        support = {i for i in range(12) if wanted[i] > -math.inf}
        assert {i for i in support if wanted[i] > math.log(0.02)} <= set(chosen.tolist()) <= support
        assert torch.allclose(sampler.logprobs[0], wanted[chosen], atol=1e-5)


def test_the_penalty_follows_each_sample_and_knows_no_padding(engine):  # noqa: F811
    """Against one forward pass a token, each sample alone, by transformers' processors."""
    sampling = Sampling(0.9, 1.0, 0, 16, min_p=0.02, repetition_penalty=1.4)
    unpenalized = engine.generate(requests(), Sampling(0.9, 1.0, 0, 16, min_p=0.02))
    made = engine.generate(requests(), sampling)
    assert [g.token_ids for g in made] != [g.token_ids for g in unpenalized]
    for one in made:
        ids = [*one.prompt_ids, *one.token_ids]
        with torch.no_grad():
            logits = engine.model(torch.tensor([ids])).logits[0].float()
        for at, (token, logprob) in enumerate(zip(one.token_ids, one.logprobs, strict=True), len(one.prompt_ids)):
            wanted = by_transformers(sampling, torch.tensor([ids[:at]]), logits[at - 1 : at])
            assert logprob == pytest.approx(float(wanted[token]), abs=1e-4)


def test_greedy_choices_know_the_penalty_alone(engine):  # noqa: F811
    plain = engine.generate(requests(), Sampling(0.0, 1.0, 0, 15))
    assert engine.generate(requests(), Sampling(0.0, 0.3, 2, 15, min_p=0.9)) == plain
    made = engine.generate(requests(), Sampling(0.0, 1.0, 0, 15, repetition_penalty=1.5))
    assert [g.token_ids for g in made] != [g.token_ids for g in plain]
    for request, generation in zip(requests(), made, strict=True):
        ids = engine.render(request.prompt)
        wanted = engine.model.generate(torch.tensor([ids]), max_new_tokens=15, do_sample=False, repetition_penalty=1.5)[
            0, len(ids) :
        ].tolist()
        assert list(generation.token_ids) == wanted


def test_a_stop_text_ends_its_own_sample_and_leaves_the_others_alone(engine):  # noqa: F811
    free = Sampling(1.3, 1.0, 0, 20)
    whole = engine.generate(requests(24), free)
    words = Counter(w for g in whole for w in g.completion.split())
    stop = tuple(word for word, count in words.most_common() if 4 <= count <= 8)[:3]
    assert stop
    made = engine.generate(requests(24), replace(free, stop=stop))
    stopped = 0
    for one, full in zip(made, whole, strict=True):
        at = min((i for text in stop if (i := full.completion.find(text)) >= 0), default=None)
        assert one.completion == full.completion[:at]
        assert one.token_ids == full.token_ids[: len(one.token_ids)]
        assert one.logprobs == full.logprobs[: len(one.logprobs)]
        assert len(one.token_ids) == len(one.logprobs) == one.completion_tokens
        if at is None:
            assert one == full
        else:
            stopped += 1
            assert one.finish_reason is FinishReason.stop
            assert engine.tokenizer.decode(one.token_ids[-1]).strip() in stop
    assert 2 < stopped < 22, "some must stop and some not for this test to say anything"
