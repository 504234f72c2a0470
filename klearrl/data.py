"""Rows to tokens: SFT examples with a loss mask, RL prompts and their references, and the order of reading both."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from klearbench.engines.hf import render_chat
from klearbench.errors import ConfigError, DataError, unknown_name
from klearbench.store import content_hash
from klearbench.suites.coderows import read_code_row
from klearbench.types import Answer, CodeTests, Message, Reference
from klearrl.config import DataConfig


@dataclass(frozen=True, slots=True)
class SftExample:
    """Token ids of a whole chat; those from `prompt_length` on are trained (the answer and its end-of-turn token)."""

    ids: tuple[int, ...]
    prompt_length: int

    @property
    def label_tokens(self) -> int:
        return len(self.ids) - self.prompt_length


@dataclass(frozen=True, slots=True)
class RlPrompt:
    """What a rollout is asked, and nothing else: the reference answers are kept apart, for the judge."""

    id: str
    prompt: tuple[Message, ...]


def load_rows(path: str, data: DataConfig, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows of a dataset folder or hub dataset, cut to `columns`.

    Raises:
        DataError: it can't be opened, or has none of the columns.
    """

    from datasets import config, disable_progress_bars, load_dataset
    from datasets.exceptions import DatasetsError

    disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(
        logging.ERROR
    )  # its retries are many lines; what came of them is ours to say
    if path.startswith(("/", ".", "~")) and not Path(path).exists():
        raise DataError(path, "no such dataset folder; make it by `klearbench curate`")
    # datasets would serve a folder that was made anew from its cache: the key leaves the rows out. Ours is their hash.
    folder = Path(path)
    cache = str(Path(config.HF_DATASETS_CACHE) / f"klear-{content_hash(folder)[:16]}") if folder.is_dir() else None
    try:
        dataset = load_dataset(path, data.config, split=data.split, cache_dir=cache)
    except (OSError, ValueError, DatasetsError) as error:
        hint = "" if Path(path).exists() else "; make it by `klearbench curate`"
        raise DataError(path, f"no dataset can be loaded ({str(error).strip().splitlines()[0][:200]}){hint}") from None
    found = [c for c in columns if c in dataset.column_names]
    if not found:
        raise DataError(
            path, f"has none of the columns {', '.join(columns)} (it has {', '.join(dataset.column_names)})"
        )
    return _rows(dataset.select_columns(found))


def _rows(dataset: Any) -> Iterator[dict[str, Any]]:
    """Row by row, decoded a thousand at a time: one at a time costs ten times as much."""
    for start in range(0, len(dataset), 1000):
        columns = dataset[start : start + 1000]
        yield from (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def tokenize_sft(rows: Iterable[dict[str, Any]], tokenizer: Any, max_length: int) -> tuple[list[SftExample], int]:
    """All rows as examples, and how many were left out for having more than `max_length` tokens.

    The answer's tokens are those of its own text, byte for byte: a chat template that strips or re-wraps the thinking
    never touches them. The last label is the end-of-turn token, even where it doubles as padding.

    Raises:
        DataError: a row without `messages`, or whose last message is not the assistant's.
    """
    examples = []
    too_long = 0
    for number, row in enumerate(rows, start=1):
        messages = row.get("messages")
        if not messages or messages[-1]["role"] != "assistant":
            raise DataError("SFT data", "needs `messages` that end with the assistant's", number)
        if len(messages) < 2:
            raise DataError("SFT data", "has no message before the assistant's", number)
        prompt = render_chat(tokenizer, messages[:-1])
        answer = tokenizer(messages[-1]["content"], add_special_tokens=False)["input_ids"]
        example = SftExample((*prompt, *answer, tokenizer.eos_token_id), len(prompt))
        if len(example.ids) > max_length:
            too_long += 1
        else:
            examples.append(example)
    if not examples:
        raise ConfigError(f"no SFT row has {max_length} tokens or fewer (max_length)")
    return examples, too_long


def split_rl_rows(rows: Iterable[dict[str, Any]]) -> tuple[list[RlPrompt], dict[str, Reference]]:
    """Prompts on one side, references by prompt id on the other: an answer (math), or tests (code).

    Raises:
        DataError: a row lacks `prompt`, `answer` (math) or `tests` (code), has tests that can't be judged or another
            `kind`, or an id stands twice.
    """
    prompts: list[RlPrompt] = []
    references: dict[str, Reference] = {}
    for number, row in enumerate(rows, start=1):
        if not row.get("prompt"):
            raise DataError("RL data", "needs `prompt` (chat messages)", number)
        kind = str(row.get("kind") or "math")
        if kind not in _REFERENCES:
            raise DataError("RL data", unknown_name("kind", kind, _REFERENCES), number)
        key = str(row.get("id", number))
        if key in references:
            raise DataError("RL data", f"id {key!r} stands twice", number)
        prompts.append(RlPrompt(key, tuple(dict(m) for m in row["prompt"])))
        references[key] = _REFERENCES[kind](key, row, number)
    if not prompts:
        raise DataError("RL data", "holds no row")
    return prompts, references


def _answer(key: str, row: dict[str, Any], number: int) -> Answer:
    if row.get("answer") is None:
        raise DataError("RL data", "a row of kind 'math' needs `answer`", number)
    return Answer(key, str(row["answer"]), row.get("rule") or "expression")


def _tests(key: str, row: dict[str, Any], number: int) -> CodeTests:
    """The tests of a row: `tests` is the JSON object that curation writes, or that object itself."""
    tests = row.get("tests")
    try:
        tests = json.loads(tests) if isinstance(tests, str) else tests
    except ValueError as error:
        raise DataError("RL data", f"`tests` is not valid JSON ({error})", number) from None
    if not isinstance(tests, dict):
        raise DataError("RL data", "a row of kind 'code' needs `tests` (a JSON object)", number)
    return read_code_row("RL data", number, {**tests, "id": key})


_REFERENCES: dict[str, Callable[[str, dict[str, Any], int], Reference]] = {"math": _answer, "code": _tests}


SFT_COLUMNS = ("messages",)
RL_COLUMNS = ("id", "prompt", "kind", "answer", "rule", "tests")


class Order:
    """An endless order over `size` items: epoch after epoch, each shuffled by (seed, epoch) alone.

    Position `i` is a pure function, so a resumed run repeats and skips nothing.
    """

    def __init__(self, size: int, seed: int, label: str) -> None:
        self._size, self._seed, self._label = size, seed, label
        self._epoch = lru_cache(maxsize=2)(self._shuffled)

    def _shuffled(self, epoch: int) -> list[int]:
        items = list(range(self._size))
        random.Random(f"{self._seed}/{self._label}/{epoch}").shuffle(items)
        return items

    def take(self, start: int, count: int) -> list[int]:
        """The items at positions start .. start + count - 1."""
        return [self._epoch(i // self._size)[i % self._size] for i in range(start, start + count)]


def rank_chunks(count: int, rank: int, world: int, size: int) -> Iterator[list[int]]:
    """This rank's share of `count` items in micro-batches of at most `size`.

    Every rank gets the same number of micro-batches, the last ones perhaps empty, since each is a collective call.
    """
    mine = list(range(rank, count, world))
    largest = -(-count // world)
    for start in range(0, largest, size):
        yield mine[start : start + size]
