"""The transformers engine, on a tiny random model: seeds, log-probabilities, limits, templates, YaRN."""

from __future__ import annotations

import math
import random
import shutil

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tools import CHAINS, tiny  # noqa: E402

from klearbench.engines.base import Request, Sampling, sample_seed  # noqa: E402
from klearbench.engines.draws import SeededSampler, inverse_cdf  # noqa: E402
from klearbench.engines.hf import load_engine  # noqa: E402
from klearbench.errors import ConfigError, UsageError  # noqa: E402
from klearbench.types import FinishReason  # noqa: E402

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("model") / "m")


@pytest.fixture(scope="module")
def engine(folder):
    return load_engine(str(folder), batch_size=8, dtype="float32")


def requests(count: int = 8, start: int = 0) -> list[Request]:
    """Prompts of different lengths, so that the batch is padded."""
    texts = [" ".join(CHAINS[i % 4].split()[: 3 + 2 * (i % 3)]) + " = ?" for i in range(start, start + count)]
    return [Request(({"role": "user", "content": t},), sample_seed(0, t, i), (t, i)) for i, t in enumerate(texts)]


HOT = Sampling(1.3, 1.0, 0, 20)


def test_a_sample_does_not_depend_on_its_neighbours(engine):
    together = engine.generate(requests(), HOT)
    alone = [engine.generate([request], HOT)[0] for request in requests()]
    mixed = engine.generate(requests()[::-1], HOT)[::-1]
    assert len({g.prompt_tokens for g in together}) > 1, "the batch must be padded for this test to say anything"
    assert len({g.token_ids for g in together}) > 4, "the samples must differ for this test to say anything"
    for one, two, three in zip(together, alone, mixed, strict=True):
        assert one.token_ids == two.token_ids == three.token_ids
        assert one.logprobs == pytest.approx(two.logprobs, abs=1e-5)


def test_the_seed_decides_and_nothing_else(engine):
    once, again = engine.generate(requests(), HOT), engine.generate(requests(), HOT)
    assert once == again
    other = [Request(r.prompt, r.seed + 1, r.place) for r in requests()]
    assert [g.token_ids for g in engine.generate(other, HOT)] != [g.token_ids for g in once]
    moved = [Request(r.prompt, r.seed, ("elsewhere", 7)) for r in requests()]
    assert engine.generate(moved, HOT) == once


def test_temperature_0_is_what_transformers_itself_generates(engine):
    made = engine.generate(requests(), Sampling(0.0, 1.0, 0, 15))
    for request, generation in zip(requests(), made, strict=True):
        ids = engine.render(request.prompt)
        plain = engine.model.generate(torch.tensor([ids]), max_new_tokens=15, do_sample=False)[0, len(ids) :].tolist()
        assert list(generation.token_ids) == plain


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
def test_log_probabilities_are_the_trainers(engine, temperature):
    """The trainer runs prompt and completion through the model at once and takes log_softmax(logits / T)."""
    for request, made in zip(requests(), engine.generate(requests(), Sampling(temperature, 1.0, 0, 20)), strict=True):
        prompt, answer = engine.render(request.prompt), list(made.token_ids)
        with torch.no_grad():
            logits = engine.model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
        wanted = torch.log_softmax(logits / temperature, -1)[range(len(answer)), answer]
        assert made.logprobs == pytest.approx(wanted.tolist(), abs=1e-5)


def test_the_penalties_of_a_models_own_generation_config_do_not_count(folder, tmp_path, engine):
    """Qwen2.5-Instruct ships a repetition penalty: a sampling parameter that no manifest would name."""
    shutil.copytree(folder, tmp_path / "m")
    config = transformers.GenerationConfig.from_pretrained(tmp_path / "m")
    config.repetition_penalty, config.no_repeat_ngram_size, config.suppress_tokens = 9.0, 1, [5, 6, 7, 8]
    config.min_new_tokens, config.temperature, config.top_k, config.do_sample = 6, 0.1, 2, True
    config.save_pretrained(tmp_path / "m")
    other = load_engine(str(tmp_path / "m"), dtype="float32")
    assert other.model.generation_config.repetition_penalty == 9.0
    assert other.generate(requests(), HOT) == engine.generate(requests(), HOT)
    assert other.model.generation_config.repetition_penalty == 9.0, "the model is given back as it was"


class OneStep:
    """The sampler at its first position, for given logits [V] and many seeds."""

    def __init__(self, logits, sampling: Sampling) -> None:
        self.logits, self.sampling = logits, sampling

    def draw(self, seeds: list[int]):
        sampler = SeededSampler(seeds, self.sampling, 1)
        out = sampler(torch.zeros(len(seeds), 1, dtype=torch.long), self.logits.expand(len(seeds), -1))
        assert ((out == 0).sum(-1) == 1).all() and (out.isneginf().sum(-1) == out.shape[1] - 1).all()
        return out.argmax(-1), sampler.logprobs[0]


LOGITS = torch.tensor([[2.0, 1.0, 0.5, -0.3, -1.0, -4.0, 0.9, -math.inf]])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_follow_the_distribution(temperature):
    n = 40_000
    chosen, logprobs = OneStep(LOGITS, Sampling(temperature, 1.0, 0, 1)).draw(
        [sample_seed(3, "a", i) for i in range(n)]
    )
    wanted = torch.softmax(LOGITS[0].double() / temperature, -1)
    counts = torch.bincount(chosen, minlength=8).double()
    assert counts[7] == 0
    expected = wanted[:7] * n
    chi2 = float(((counts[:7] - expected) ** 2 / expected).sum())
    assert chi2 < 22.5  # 6 degrees of freedom: exceeded once in a thousand
    assert torch.allclose(logprobs.double(), wanted.log()[chosen], atol=1e-6)


@pytest.mark.parametrize(("top_k", "top_p"), [(3, 1.0), (0, 0.7), (4, 0.9), (1, 1.0), (0, 1e-6), (100, 0.999)])
def test_the_supports_of_top_k_and_top_p_are_those_of_transformers(top_k, top_p):
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    generator = torch.Generator().manual_seed(top_k)
    for _ in range(10):
        logits = torch.randn(1, 12, generator=generator) * 2
        scores = TemperatureLogitsWarper(0.8)(None, logits)
        if top_k:
            scores = TopKLogitsWarper(top_k)(None, scores)
        if top_p < 1:
            scores = TopPLogitsWarper(top_p)(None, scores)
        wanted = torch.log_softmax(scores, -1)[0]
        chosen, logprobs = OneStep(logits, Sampling(0.8, top_p, top_k, 1)).draw(list(range(3000)))
        support = {i for i in range(12) if wanted[i] > -math.inf}
        likely = {i for i in support if wanted[i] > math.log(0.01)}  # missed by 3,000 draws once in 10^13
        assert likely <= set(chosen.tolist()) <= support
        assert torch.allclose(logprobs, wanted[chosen], atol=1e-5)


def test_no_draw_finds_a_token_of_probability_0():
    logp = torch.log_softmax(torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]]), -1)
    below_one = math.nextafter(1.0, 0.0)
    draws = torch.tensor([[0.0], [0.25], [math.nextafter(0.5, 0)], [0.5], [0.75], [below_one]], dtype=torch.float64)
    assert inverse_cdf(logp.expand(6, -1), draws).squeeze(1).tolist() == [1, 1, 1, 3, 3, 3]
    stream = random.Random(0)
    wide = torch.where(torch.rand(1, 5000, generator=torch.Generator().manual_seed(0)) < 0.5, -math.inf, 0.0)
    many = torch.tensor([[stream.random()] for _ in range(999)] + [[below_one]], dtype=torch.float64)
    found = inverse_cdf(torch.log_softmax(wide, -1).expand(1000, -1), many).squeeze(1)
    assert (wide[0, found] == 0).all()


def test_the_cut_of_a_completion(engine):
    """stop ends with the end-of-turn token, which the text lacks; length has used its tokens up."""
    seen = set()
    for made in engine.generate(requests(24), Sampling(1.0, 1.0, 0, 6)):
        seen.add(made.finish_reason)
        assert made.completion_tokens == len(made.token_ids) == len(made.logprobs) <= 6
        ended = made.token_ids[-1] == engine.tokenizer.eos_token_id
        assert ended == (made.finish_reason is FinishReason.stop)
        assert engine.tokenizer.eos_token_id not in made.token_ids[:-1]
        assert "<|im_end|>" not in made.completion
        if not ended:
            assert made.completion_tokens == 6
    assert seen == {FinishReason.stop, FinishReason.length}


@pytest.mark.parametrize("training", [True, False])
def test_the_models_mode_is_given_back(engine, training):
    engine.model.train(training)
    engine.generate(requests(1), HOT)
    assert engine.model.training is training
    with pytest.raises(UsageError):
        engine.generate([Request(({"role": "user", "content": "1 " * 70},), 0)], HOT)
    assert engine.model.training is training
    engine.model.eval()


def test_each_sample_has_the_models_context_for_itself(tmp_path):
    engine = load_engine(str(tiny(tmp_path / "m", context=32)), dtype="float32")
    long = Request(({"role": "user", "content": "7 " * 20},), 1)
    shorts = [Request(({"role": "user", "content": "7 max 3"},), seed) for seed in range(30)]
    free = Sampling(2.0, 1.0, 0, 30)
    alone = engine.generate(shorts, free)
    lasting = [g for g in alone if g.completion_tokens > 7]
    assert lasting and max(g.completion_tokens for g in alone) <= 24
    cut, *together = engine.generate([long, *shorts], free)
    assert [g.token_ids for g in together] == [g.token_ids for g in alone]
    assert [g.finish_reason for g in together] == [g.finish_reason for g in alone]
    assert cut.prompt_tokens == 25 and len(cut.token_ids) == len(cut.logprobs) == cut.completion_tokens <= 7


def test_a_prompt_that_fills_the_context_is_one_line(engine):
    with pytest.raises(UsageError, match=r"^a prompt has \d+ tokens, the model's context is 64$"):
        engine.generate([*requests(1), Request(({"role": "user", "content": "1 " * 60},), 0)], HOT)


def test_yarn_stretches_the_positions(folder, tmp_path, engine):
    """Against a config made by hand."""
    stretched = load_engine(str(folder), rope_scaling="yarn:2.5", dtype="float32")
    config = transformers.AutoConfig.from_pretrained(folder)
    config.rope_parameters = {
        "rope_type": "yarn", "rope_theta": config.rope_parameters["rope_theta"], "factor": 2.5,
        "original_max_position_embeddings": 64,
    }  # fmt: skip
    config.max_position_embeddings = 160
    by_hand = transformers.AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32).eval()
    assert stretched.model.config.max_position_embeddings == 160
    assert stretched.model.config.rope_parameters == by_hand.config.rope_parameters
    ids = torch.randint(4, 20, (1, 120), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        ours, wanted, plain = (m(ids).logits[0] for m in (stretched.model, by_hand, engine.model))
    assert torch.equal(ours, wanted)
    assert (ours[100:] - plain[100:]).abs().max() > 0.1
    assert stretched.identity()["rope_scaling"] == "yarn:2.5" and engine.identity()["rope_scaling"] is None
    longer = Request(({"role": "user", "content": "1 " * 100},), 0)
    assert stretched.generate([longer], Sampling(1.0, 1.0, 0, 3))[0].prompt_tokens > 64


@pytest.mark.parametrize("text", ["yarn", "yarn:1", "yarn:0.5", "yarn:x", "linear:2", "yarn:-2", "2.5"])
def test_a_malformed_rope_scaling_is_one_line(folder, text):
    with pytest.raises(ConfigError, match="write yarn:FACTOR"):
        load_engine(str(folder), rope_scaling=text)


def test_yarn_on_a_model_that_is_stretched_already_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "m")
    config = transformers.AutoConfig.from_pretrained(folder)
    config.rope_parameters = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
    config.save_pretrained(tmp_path / "m")
    with pytest.raises(ConfigError, match="needs a model of plain rotary positions"):
        load_engine(str(tmp_path / "m"), rope_scaling="yarn:2")


def test_templates(folder, tmp_path):
    prompt = ({"role": "system", "content": "max"}, {"role": "user", "content": "7 max 3"})
    own = load_engine(str(folder))
    assert own.tokenizer.decode(own.render(prompt)) == (
        "<|im_start|> system max <|im_end|> <|im_start|> user 7 max 3 <|im_end|> <|im_start|> assistant"
    )
    plain = load_engine(str(folder), chat_template="plain")
    assert plain.tokenizer.decode(plain.render(prompt)) == "max 7 max 3"
    assert (plain.identity()["chat_template"], plain.no_template) == ("plain", False)
    assert (own.identity()["chat_template"], own.no_template) == ("model", False)
    (tmp_path / "t.jinja").write_text("{% for m in messages %}{{ m['content'] }} = {% endfor %}")
    file = load_engine(str(folder), chat_template=str(tmp_path / "t.jinja"))
    assert file.tokenizer.decode(file.render(prompt)) == "max = 7 max 3 ="
    assert len({e.identity()["chat_template"] for e in (own, plain, file)}) == 3
    with pytest.raises(ConfigError, match=r"chat template .*absent"):
        load_engine(str(folder), chat_template=str(tmp_path / "absent"))


def test_a_model_without_a_template_is_asked_in_plain_text_and_says_so(tmp_path):
    engine = load_engine(str(tiny(tmp_path / "m", template=False)))
    assert engine.no_template and engine.identity()["chat_template"] == "plain"
    assert engine.tokenizer.decode(engine.render(({"role": "user", "content": "7 max 3"},))) == "7 max 3"


def test_the_identity_follows_the_weights_and_not_the_place(folder, tmp_path):
    one = load_engine(str(folder)).identity()
    shutil.copytree(folder, tmp_path / "copy")
    assert load_engine(str(tmp_path / "copy")).identity() == one
    assert load_engine(str(tiny(tmp_path / "other", seed=2))).identity()["model_hash"] != one["model_hash"]
    assert load_engine(str(folder), batch_size=3).identity() != one
    assert load_engine(str(folder), dtype="bfloat16").identity()["dtype"] == "bfloat16"


def without(folder, target, *names: str):
    shutil.copytree(folder, target)
    for name in names:
        (target / name).unlink()
    return target


def test_folders_that_lack_something_are_refused_in_one_line(folder, tmp_path):
    wanted = {
        "no-tokenizer": (("tokenizer.json",), "has no tokenizer"),
        "no-config": (("config.json",), "no model"),
        "no-weights": (("model.safetensors",), "no model can be loaded"),
    }
    for name, (files, message) in wanted.items():
        with pytest.raises(UsageError, match=message) as caught:
            load_engine(str(without(folder, tmp_path / name, *files)))
        assert "\n" not in str(caught.value)
    torn = without(folder, tmp_path / "torn")
    (torn / "model.safetensors").write_bytes((torn / "model.safetensors").read_bytes()[:999])
    with pytest.raises(UsageError, match="no model can be loaded"):
        load_engine(str(torn))
    with pytest.raises(ConfigError, match="dtype is 'int4'"):
        load_engine(str(folder), dtype="int4")
