"""Tokenizers and models: made anew, saved, opened by plain transformers."""

from __future__ import annotations

import json

import pytest
import tiny
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from klearbench.errors import ConfigError, UsageError
from klearrl.config import ModelConfig
from klearrl.model import load_model, new_model, save_model, start_model, word_tokenizer

pytestmark = pytest.mark.train


def test_a_word_tokenizer_gives_back_what_it_was_given():
    text = "<think> 7 max 3 = 7 ; </think> \\boxed{7}"
    tokenizer = word_tokenizer([text])
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(ids) == 9 and tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text
    assert tokenizer.unk_token_id not in ids
    assert tokenizer("unheard")["input_ids"] == [tokenizer.unk_token_id]


def test_the_order_of_the_texts_does_not_matter():
    assert word_tokenizer(["b a", "c"]).get_vocab() == word_tokenizer(["c b", "a", "a"]).get_vocab()
    assert word_tokenizer(["a <pad> <|im_end|>"]).get_vocab() == word_tokenizer(["a"]).get_vocab()


def test_the_prompt_ends_where_the_answer_begins():
    tokenizer = tiny.tokenizer()
    text = tokenizer.apply_chat_template(tiny.user("pick 1"), add_generation_prompt=True, tokenize=False)
    assert text.split() == ["<|im_start|>", "user", "pick", "1", "<|im_end|>", "<|im_start|>", "assistant"]


def test_the_same_seed_gives_the_same_weights():
    first, again, other = (tiny.weights(new_model(tiny.SPEC, tiny.tokenizer(), seed)) for seed in (1, 1, 2))
    assert tiny.difference(first, again) == 0.0
    assert tiny.difference(first, other) > 0.01


def test_a_saved_folder_opens_with_plain_transformers(tmp_path):
    model, tokenizer = tiny.model(), tiny.tokenizer()
    model.generation_config.eos_token_id = 0  # a base model's; the trained one must win
    save_model(model, model.state_dict(), tokenizer, tmp_path / "out")
    opened, words = (
        AutoModelForCausalLM.from_pretrained(tmp_path / "out"),
        AutoTokenizer.from_pretrained(tmp_path / "out"),
    )
    ids = torch.tensor([words.apply_chat_template(tiny.user("pick 2"), return_dict=False)])
    assert torch.equal(opened(ids).logits, model.eval()(ids).logits)
    assert words.chat_template == tokenizer.chat_template
    config = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert config["eos_token_id"] == tokenizer.eos_token_id == words.convert_tokens_to_ids("<|im_end|>")
    assert config["pad_token_id"] == tokenizer.pad_token_id


def saved(folder, **changes):
    model, tokenizer = tiny.model(), tiny.tokenizer()
    for name, value in changes.items():
        setattr(tokenizer, name, value)
    save_model(model, model.state_dict(), tokenizer, folder)
    return folder


def test_a_missing_chat_template_is_asked_for_and_can_be_given(tmp_path):
    folder = saved(tmp_path / "m", chat_template=None)
    with pytest.raises(ConfigError, match=r"no chat template: give model\.chat_template a Jinja file"):
        start_model(ModelConfig(path=str(folder)), [], 0)
    with pytest.raises(ConfigError, match=r"none\.jinja: No such file"):
        start_model(ModelConfig(path=str(folder), chat_template=str(tmp_path / "none.jinja")), [], 0)
    (tmp_path / "t.jinja").write_text("{{ messages[0].content }}")
    _, tokenizer = start_model(ModelConfig(path=str(folder), chat_template=str(tmp_path / "t.jinja")), [], 0)
    assert tokenizer.apply_chat_template(tiny.user("pick 1"), tokenize=False) == "pick 1"


def test_a_missing_tokenizer_or_model_is_one_line(tmp_path):
    folder = saved(tmp_path / "m")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).rename(tmp_path / name)
    with pytest.raises(UsageError, match="has no tokenizer"):
        load_model(str(folder), "float32")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).rename(folder / name)
    (folder / "model.safetensors").unlink()
    with pytest.raises(UsageError, match="no model can be loaded") as caught:
        load_model(str(folder), "float32")
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="absent: no such folder"):
        load_model(str(tmp_path / "absent"), "float32")


def test_a_tokenizer_without_an_end_of_turn_token_is_refused(tmp_path):
    folder = saved(tmp_path / "m", eos_token=None)
    with pytest.raises(ConfigError, match="no end-of-turn token"):
        start_model(ModelConfig(path=str(folder)), [], 0)


def test_a_model_is_loaded_in_the_dtype_of_the_recipe(tmp_path):
    folder = saved(tmp_path / "m")
    for dtype in ("float32", "bfloat16"):
        model, _ = start_model(ModelConfig(path=str(folder), dtype=dtype), [], 0)
        assert str(model.dtype) == f"torch.{dtype}"


def test_a_generation_config_that_transformers_would_not_save_is_mended(tmp_path):
    """Some models on the hub have a temperature and no do_sample: found out at the first checkpoint, it costs a run."""
    folder = saved(tmp_path / "m")
    file = folder / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"temperature": 0.6}))
    model, tokenizer = load_model(str(folder), "float32")
    save_model(model, model.state_dict(), tokenizer, tmp_path / "again")
    config = json.loads((tmp_path / "again" / "generation_config.json").read_text())
    assert config["temperature"] == 0.6 and config["do_sample"] is True
