"""Prompts and completions as tokens: templates, the thinking switch, stop texts; and what else is read of a folder."""

from __future__ import annotations

import json
import shutil

import pytest

transformers = pytest.importorskip("transformers")

from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from tools import tiny  # noqa: E402

from klearbench.engines.chat import StopTexts, chat_of, completion_text, load_chat  # noqa: E402
from klearbench.engines.checkpoint import budget, context_of, load_config, load_stop_tokens  # noqa: E402
from klearbench.errors import ConfigError, UsageError  # noqa: E402
from klearbench.store import text_hash  # noqa: E402

pytestmark = pytest.mark.train

PROMPT = ({"role": "user", "content": "7 max 3"},)
SWITCH = (
    "{% for m in messages %}{{ m['content'] + ' ' }}{% endfor %}"
    "{{ '<think>' if enable_thinking is not defined or enable_thinking else '</think>' }}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("model") / "m")


@pytest.fixture
def byte_level():
    """Every byte a token, 256 in all, as at the bottom of the vocabularies of GPT-2 and Qwen."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core)


def test_the_thinking_switch_reaches_the_template(folder, tmp_path):
    file = tmp_path / "switch.jinja"
    file.write_text(SWITCH)
    texts, identities = [], []
    for thinking in (None, True, False):
        chat = load_chat(str(folder), str(file), thinking)
        texts.append(chat.tokenizer.decode(chat.render(PROMPT)))
        identities.append(chat.identity())
    assert texts == ["7 max 3 <think>", "7 max 3 <think>", "7 max 3 </think>"]
    named = {"chat_template": "switch.jinja", "chat_template_hash": text_hash(SWITCH)}
    assert identities == [named, named | {"thinking": True}, named | {"thinking": False}]


@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize("template", [None, "plain"])
def test_a_switch_that_the_template_lacks_is_refused_in_one_line(folder, template, thinking):
    with pytest.raises(ConfigError, match="has no such switch") as caught:
        load_chat(str(folder), template, thinking)
    assert "\n" not in str(caught.value) and f"thinking is {thinking}" in str(caught.value)


def test_the_name_of_a_template_is_that_of_its_file_wherever_it_lies(folder, tmp_path):
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "t.jinja").write_text(SWITCH)
    one, other = (load_chat(str(folder), str(tmp_path / place / "t.jinja")).identity() for place in ("a", "b"))
    assert one == other
    (tmp_path / "b" / "t.jinja").write_text(SWITCH + " ")
    changed = load_chat(str(folder), str(tmp_path / "b" / "t.jinja")).identity()
    assert changed["chat_template"] == "t.jinja" and changed["chat_template_hash"] != one["chat_template_hash"]
    assert load_chat(str(folder)).identity()["chat_template"] == "model"
    assert load_chat(str(folder), "plain").identity()["chat_template"] == "plain"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for m in messages %}{{ m['content'] }}", "Unexpected end of template"),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[0]['content'].nothing.more }}", "nothing"),
    ],
)
def test_a_template_that_fails_is_one_line(folder, tmp_path, template, said):
    (tmp_path / "bad.jinja").write_text(template)
    with pytest.raises(UsageError, match=rf"the chat template 'bad.jinja' can't render a prompt \(.*{said}") as caught:
        load_chat(str(folder), str(tmp_path / "bad.jinja")).render(PROMPT)
    assert "\n" not in str(caught.value)


def test_a_template_file_that_is_no_text_is_refused(folder, tmp_path):
    (tmp_path / "t.jinja").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="no UTF-8 text"):
        load_chat(str(folder), str(tmp_path / "t.jinja"))


def test_a_tokenizer_without_a_template_is_plain_and_says_so(folder):
    tokenizer = load_chat(str(folder)).tokenizer
    assert not chat_of(tokenizer).absent
    tokenizer.chat_template = None
    chat = chat_of(tokenizer)
    assert (chat.template, chat.absent) == ("plain", True)
    assert chat.identity() == chat_of(tokenizer, "plain").identity()
    assert tokenizer.decode(chat.render([*PROMPT, *PROMPT])) == "7 max 3 7 max 3"


def stops_at(tokenizer, text: str, *stop: str) -> int | None:
    """The index of the token at which a watch over a text's tokens strikes."""
    watch = StopTexts(tokenizer, stop)
    return next((i for i, token in enumerate(tokenizer(text)["input_ids"]) if watch.feed(token)), None)


@pytest.mark.parametrize(
    ("text", "stop", "at"),
    [
        ("7 max 3 = 7 ; 4", ("= 7",), 4),
        ("7 max 3 = 7 ; 4", ("x 3",), 2),  # a part of a word, and the next
        ("7 max 3 = 7 ; 4", ("7", "max"), 0),
        ("7 max 3 = 7 ; 4", ("max", "7"), 0),
        ("7 max 3 = 7 ; 4", (" 7",), 4),  # a completion begins without a space
        ("7 max 3 = 7 ; 4", ("8", "7 ; 5"), None),
        ("7 max 3 = 7 ; 4", ("3 = 7 ; 4",), 6),
    ],
)
def test_a_watch_strikes_at_the_token_that_completes_a_stop_text(folder, text, stop, at):
    assert stops_at(load_chat(str(folder)).tokenizer, text, *stop) == at


def test_stop_texts_of_many_bytes(byte_level):
    """`é` has two bytes and `∎` three: a byte is a token here."""
    assert stops_at(byte_level, "aé∎b", "é") == 2
    assert stops_at(byte_level, "aé∎b", "∎") == 5
    assert stops_at(byte_level, "aé∎b", "é∎b") == 6
    assert stops_at(byte_level, "aé∎b", "\ufffd") is None


def test_the_text_of_a_completion(folder):
    tokenizer = load_chat(str(folder)).tokenizer
    end = tokenizer.eos_token_id
    tokens = tokenizer("7 max 3 = 7 <|im_start|>")["input_ids"]
    assert completion_text(tokenizer, [*tokens, end], {end}) == "7 max 3 = 7 <|im_start|>"
    assert completion_text(tokenizer, tokens, {end}) == "7 max 3 = 7 <|im_start|>"
    assert completion_text(tokenizer, [*tokens, end], {end}, ("= 7", "max")) == "7 "
    assert completion_text(tokenizer, [end], {end}) == completion_text(tokenizer, [], {end}) == ""


def test_stop_texts_without_a_fast_tokenizer_are_refused():
    with pytest.raises(UsageError, match="stop texts need a fast tokenizer"):
        StopTexts(object(), ("x",))


def test_end_of_turn_tokens_are_those_of_the_generation_config_and_the_tokenizer(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "m")
    tokenizer = load_chat(str(folder)).tokenizer
    config = load_config(str(folder))
    for said, wanted in ((7, [7, 1]), ([5, 1, 6], [5, 1, 6]), (None, [1])):
        (tmp_path / "m" / "generation_config.json").write_text(json.dumps({"eos_token_id": said}))
        assert load_stop_tokens(str(tmp_path / "m"), config, tokenizer) == wanted
    (tmp_path / "m" / "generation_config.json").unlink()
    config.eos_token_id = 9
    assert load_stop_tokens(str(tmp_path / "m"), config, tokenizer) == [9, 1]
    config.eos_token_id = tokenizer.eos_token = None
    with pytest.raises(UsageError, match="no end-of-turn token"):
        load_stop_tokens(str(tmp_path / "m"), config, tokenizer)


def test_a_samples_budget_is_what_the_context_leaves(folder):
    assert context_of(load_config(str(folder))) == 64
    assert context_of(load_config(str(folder), "yarn:2.5")) == 160
    assert [budget(n, 30, 64) for n in (1, 33, 34, 35, 63)] == [30, 30, 30, 29, 1]
    assert budget(1000, 30, None) == 30
    with pytest.raises(UsageError, match="a prompt has 64 tokens, the model's context is 64"):
        budget(64, 30, 64)
