"""Recorded completions in place of a model."""

from __future__ import annotations

import pytest
from tools import write_jsonl

from klearbench.engines.base import Request, Sampling
from klearbench.engines.replay import ReplayEngine
from klearbench.errors import DataError, UsageError
from klearbench.types import FinishReason

ROWS = [
    {"problem_id": "a", "sample_index": 0, "completion": "\\boxed{1}"},
    {"problem_id": "a", "sample_index": 1, "completion": "cut off", "finish_reason": "length", "completion_tokens": 9},
    {"problem_id": "b", "sample_index": 0, "completion": "two words", "prompt": "ignored"},
]


def ask(engine, *places):
    return engine.generate([Request((), 0, place) for place in places], Sampling())


def test_each_request_gets_the_completion_of_its_place(tmp_path):
    engine = ReplayEngine(str(write_jsonl(tmp_path / "r.jsonl", ROWS)))
    one, two, three = ask(engine, ("b", 0), ("a", 1), ("a", 0))
    assert (one.completion, one.finish_reason, one.completion_tokens) == ("two words", FinishReason.stop, 2)
    assert (two.completion, two.finish_reason, two.completion_tokens) == ("cut off", FinishReason.length, 9)
    assert three.completion == "\\boxed{1}"


def test_the_identity_follows_the_content(tmp_path):
    one = ReplayEngine(str(write_jsonl(tmp_path / "r.jsonl", ROWS))).identity()
    two = ReplayEngine(str(write_jsonl(tmp_path / "r.jsonl", ROWS[:2]))).identity()
    assert one != two


def test_a_sample_that_was_not_recorded_is_named(tmp_path):
    engine = ReplayEngine(str(write_jsonl(tmp_path / "r.jsonl", ROWS)))
    with pytest.raises(UsageError, match="holds no completion of problem 'b', sample 1"):
        ask(engine, ("b", 1))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"problem_id": "c", "sample_index": 0}, "completion"),
        ({"problem_id": "c", "completion": "x"}, "sample_index"),
        ({"sample_index": 0, "completion": "x"}, "problem_id"),
        ({"problem_id": "c", "sample_index": "one", "completion": "x"}, "sample_index"),
        ({"problem_id": "c", "sample_index": True, "completion": "x"}, "sample_index"),
        ({"problem_id": "c", "sample_index": 0, "completion": None}, "completion"),
        ({"problem_id": "c", "sample_index": 0, "completion": "x", "finish_reason": "eos"}, "finish_reason"),
        ({"problem_id": "c", "sample_index": 0, "completion": "x", "completion_tokens": None}, "completion_tokens"),
        ({"problem_id": "a", "sample_index": 1, "completion": "x"}, "stands twice"),
    ],
)
def test_a_wrong_row_is_named_by_file_and_line(tmp_path, row, message):
    path = write_jsonl(tmp_path / "r.jsonl", [*ROWS, row])
    with pytest.raises(DataError) as caught:
        ReplayEngine(str(path))
    assert f"{path}:4: " in str(caught.value) and message in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"absent\.jsonl: no such file"):
        ReplayEngine(str(tmp_path / "absent.jsonl"))
