"""Rows to tokens: labels byte for byte, what is left out, and an order that a resume can't shift."""

from __future__ import annotations

import json
from collections import Counter

import pytest
import tiny
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.decoders import ByteLevel
from transformers import PreTrainedTokenizerFast

from klearbench.errors import ConfigError, DataError
from klearrl.config import DataConfig
from klearrl.data import RL_COLUMNS, SFT_COLUMNS, Order, load_rows, rank_chunks, split_rl_rows, tokenize_sft
from klearrl.sft import collate

pytestmark = pytest.mark.train

STRIPS_THINKING = (
    "{% for m in messages %}<s>{{ m.role }}:{{ m.content.split('</think>')[-1].strip() }}{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant:{% endif %}"
)


def byte_tokenizer(pad: str = "<e>", template: str = STRIPS_THINKING) -> PreTrainedTokenizerFast:
    """Every byte is a token; the template cuts the thinking out of what it is given, as many do."""
    names = ["<e>", "<s>", "<p>", *pre_tokenizers.ByteLevel.alphabet()]
    core = Tokenizer(models.BPE({name: i for i, name in enumerate(sorted(names))}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token=pad, eos_token="<e>", chat_template=template)


def chat(question: str, answer: str) -> dict:
    return {"messages": [*tiny.user(question), {"role": "assistant", "content": answer}]}


ANSWERS = [
    "<think>\nWell: 2 + 2.\n\n</think>\n\nIt is \\boxed{4}.",
    "  leading and trailing blanks \n\n",
    "<think>unclosed",
    "tabs\t, é, 日本, \u200b and \r\n line ends",
    "<think></think> twice <think>x</think>",
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_label_tokens_spell_the_answer_byte_for_byte(answer):
    tokenizer = byte_tokenizer()
    [example], _ = tokenize_sft([chat("2+2?", answer)], tokenizer, 1000)
    *labels, end = example.ids[example.prompt_length :]
    assert tokenizer.decode(labels, clean_up_tokenization_spaces=False) == answer
    assert end == tokenizer.eos_token_id
    prompt = tokenizer.decode(example.ids[: example.prompt_length])
    assert prompt == "<s>user:2+2?<s>assistant:"
    assert example.label_tokens == len(answer.encode()) + 1


@pytest.mark.parametrize("pad", ["<e>", "<p>"])
def test_the_last_label_is_the_end_of_turn_even_when_it_is_padding_too(pad):
    tokenizer = byte_tokenizer(pad)
    examples, _ = tokenize_sft([chat("a", "bc"), chat("a", "bcdefgh")], tokenizer, 1000)
    ids, attention, labels = collate(examples, tokenizer.pad_token_id, "cpu")
    for row, example in enumerate(examples):
        n, p = len(example.ids), example.prompt_length
        assert ids[row, :n].tolist() == list(example.ids)
        assert labels[row].tolist() == [-100] * p + list(example.ids[p:]) + [-100] * (ids.shape[1] - n)
        assert labels[row, n - 1] == tokenizer.eos_token_id
        assert attention[row].tolist() == [1] * n + [0] * (ids.shape[1] - n)


def test_an_empty_micro_batch_has_no_label():
    ids, attention, labels = collate([], 7, "cpu")
    assert ids.shape == labels.shape and attention.sum() == 1 and (labels == -100).all()


def test_rows_that_are_too_long_are_counted_and_never_cut():
    rows = [chat("q", "x" * n) for n in (1, 5, 9, 20)]
    tokenizer = byte_tokenizer()
    lengths = [len(tokenize_sft([row], tokenizer, 1000)[0][0].ids) for row in rows]
    kept, too_long = tokenize_sft(rows, tokenizer, lengths[1])
    assert [len(e.ids) for e in kept] == lengths[:2] and too_long == 2
    with pytest.raises(ConfigError, match=r"no SFT row has 3 tokens or fewer \(max_length\)"):
        tokenize_sft(rows, tokenizer, 3)


@pytest.mark.parametrize("row", [{}, {"messages": []}, {"messages": tiny.user("a")}])
def test_rows_without_an_answer_are_named(row):
    with pytest.raises(DataError, match=r"SFT data:2: needs `messages` that end with the assistant's"):
        tokenize_sft([chat("a", "b"), row], byte_tokenizer(), 100)


def test_a_chat_of_the_assistant_alone_is_refused():
    with pytest.raises(DataError, match="SFT data:1: has no message before the assistant's"):
        tokenize_sft([{"messages": [{"role": "assistant", "content": "a"}]}], byte_tokenizer(), 100)


def test_an_epoch_is_a_permutation_and_epochs_differ():
    order = Order(10, 3, "sft")
    epochs = [order.take(10 * e, 10) for e in range(4)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    assert Order(10, 3, "rl").take(0, 10) != epochs[0] != Order(10, 4, "sft").take(0, 10)


@pytest.mark.parametrize("cut", [1, 2, 5, 9])
def test_straight_and_resumed_read_the_same_rows(cut):
    """23 rows in batches of 7 over 9 steps: 2 epochs and 17 rows more, wherever it was interrupted."""
    straight = [i for step in range(9) for i in Order(23, 0, "x").take(step * 7, 7)]
    before = [i for step in range(cut) for i in Order(23, 0, "x").take(step * 7, 7)]
    after = [i for step in range(cut, 9) for i in Order(23, 0, "x").take(step * 7, 7)]
    assert before + after == straight
    assert set(Counter(straight).values()) == {2, 3} and Counter(straight)[straight[-1]] == 3


@pytest.mark.parametrize(("count", "world", "size"), [(8, 1, 3), (8, 3, 2), (1, 4, 2), (7, 2, 4), (64, 8, 8)])
def test_rank_chunks_cover_all_once_in_the_same_number_of_micro_batches(count, world, size):
    chunks = [list(rank_chunks(count, rank, world, size)) for rank in range(world)]
    assert sorted(i for parts in chunks for part in parts for i in part) == list(range(count))
    assert len({len(parts) for parts in chunks}) == 1
    assert max(len(part) for parts in chunks for part in parts) <= size


def test_a_dataset_made_anew_in_the_same_folder_is_read_anew(tmp_path):
    data, config = tmp_path / "data", DataConfig(config="sft")
    for word in ("old", "new"):  # same row count, same card: datasets alone would serve the old rows
        tiny.write_dataset(data, sft=[chat("q", word)])
        assert [r["messages"][-1]["content"] for r in load_rows(str(data), config, SFT_COLUMNS)] == [word]


def test_more_than_a_thousand_rows_come_in_order(tmp_path):
    data = tiny.write_dataset(tmp_path, rl=[{"id": str(i), "answer": "1", "other": 0} for i in range(2500)])
    rows = list(load_rows(str(data), DataConfig(config="rl"), RL_COLUMNS))
    assert rows == [{"id": str(i), "answer": "1"} for i in range(2500)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"config": "sftt"}, "no dataset can be loaded .*sftt"),
        ({"config": "sft", "split": "test"}, "no dataset can be loaded .*test"),
    ],
)
def test_a_dataset_that_does_not_open_is_one_clear_line(tmp_path, options, message):
    data = tiny.write_dataset(tmp_path / "data")
    with pytest.raises(DataError, match=message) as caught:
        list(load_rows(str(data), DataConfig(**options), SFT_COLUMNS))
    assert "\n" not in str(caught.value)


def test_no_dataset_at_all_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(DataError, match="make it by `klearbench curate`"):
        list(load_rows(str(tmp_path / "absent"), DataConfig(), SFT_COLUMNS))


@pytest.mark.parametrize("where", ["everywhere", "in the pages"])
def test_a_corrupt_file_is_the_users_error(tmp_path, where):
    data = tiny.write_dataset(tmp_path / "data")
    file = data / "data" / "train-sft.parquet"
    raw = file.read_bytes()
    file.write_bytes(b"PAR1 no parquet" if where == "everywhere" else raw[:4] + bytes(300) + raw[304:])
    with pytest.raises(DataError, match="no dataset can be loaded"):
        list(load_rows(str(data), DataConfig(config="sft"), SFT_COLUMNS))


def test_a_dataset_without_our_columns_says_which_it_has(tmp_path):
    data = tiny.write_dataset(tmp_path / "data", sft=[{"text": "a", "label": 1}])
    with pytest.raises(DataError, match=r"has none of the columns messages \(it has text, label\)"):
        list(load_rows(str(data), DataConfig(config="sft"), SFT_COLUMNS))


def test_rl_rows_are_split_into_prompts_and_answers():
    prompts, answers = split_rl_rows([{**row, "answer": f"canary{i}"} for i, row in enumerate(tiny.RL_ROWS)])
    assert [p.id for p in prompts] == list(answers) == [f"p{i}" for i in range(12)]
    assert answers["p3"].answer == "canary3" and answers["p3"].rule == "expression"
    assert "canary" not in repr(prompts)


def test_rows_of_both_kinds_are_split():
    tests = {"mode": "stdio", "tests": [{"input": "1", "output": "canary"}], "time_limit_s": 2}
    code = {"id": "c", "prompt": tiny.RL_ROWS[0]["prompt"], "kind": "code", "answer": None, "tests": json.dumps(tests)}
    prompts, references = split_rl_rows([tiny.RL_ROWS[0] | {"tests": None}, code])
    assert [p.id for p in prompts] == ["p0", "c"] and "canary" not in repr(prompts)
    assert references["p0"].rule == "expression"
    assert (references["c"].expected.outputs, references["c"].inputs.time_limit_s) == (("canary",), 2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "p0"}, "RL data:2: id 'p0' stands twice"),
        ({"kind": "prose"}, "RL data:2: unknown kind 'prose'"),
        ({"answer": None}, "RL data:2: a row of kind 'math' needs `answer`"),
        ({"kind": "code"}, "RL data:2: a row of kind 'code' needs `tests`"),
        ({"kind": "code", "tests": "{"}, "RL data:2: `tests` is not valid JSON"),
        ({"kind": "code", "tests": '{"tests": []}'}, "RL data:2: problem 'p1': it has no test"),
        ({"kind": "code", "tests": '{"mode": "stdin"}'}, "RL data:2: problem 'p1': unknown mode 'stdin'"),
        ({"prompt": []}, "RL data:2: needs `prompt`"),
    ],
)
def test_bad_rl_rows_are_named(change, message):
    with pytest.raises(DataError, match=message):
        split_rl_rows([tiny.RL_ROWS[0], tiny.RL_ROWS[1] | change])
