"""Records: round trips through JSONL, refused rows, the reward of a verdict."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klearbench.store import dumps
from klearbench.types import (
    Answer,
    ExpectedOutputs,
    FinishReason,
    Kind,
    Problem,
    Sample,
    Status,
    Verdict,
    by_problem,
    from_row,
    parquet_text,
    reward,
    to_row,
)
from klearbench.types import TestInputs as CodeInputs

ODD = "a\x00b\ud800\U0001f600\n\x85é"

RECORDS = [
    Problem("p", "s", Kind.math, ({"role": "user", "content": ODD},), "src", "2024-01-31", {"a": [1, None], "b": {}}),
    Answer("p", ODD, "integer_0_999"),
    CodeInputs("p", "stdio", ("1 2\n", ODD)),
    ExpectedOutputs("p", ("3",), None),
    Sample("s", "p", 3, 2**63 - 1, ODD, 5, 7, FinishReason.length),
    Sample("s", "p", 0, 1, "", 5, 2, FinishReason.stop, (1, 2), (-0.5, -1.0)),
    Verdict("s", "p", 3, Status.wrong_answer, 0.0, ODD, 0, 1, "no", 0.1, 0.2, 3.0),
    Verdict("s", "p", 3, Status.judge_error, None),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_a_record_comes_back_from_one_ascii_line(record):
    line = dumps(to_row(record))
    assert line.isascii() and "\n" not in line
    assert from_row(type(record), json.loads(line)) == record


@given(st.text(st.characters(codec=None)))
def test_any_text_comes_back_from_one_line(text):
    sample = Sample("s", "p", 0, 1, text, 1, 1, FinishReason.stop)
    assert from_row(Sample, json.loads(dumps(to_row(sample)))).completion == text


def test_field_names_are_the_public_contract():
    names = {cls.__name__: " ".join(f.name for f in fields(cls)) for cls in {type(r) for r in RECORDS}}
    assert names == {
        "Problem": "id suite kind prompt source date meta",
        "Answer": "problem_id answer rule",
        "TestInputs": "problem_id mode inputs fn_name preamble time_limit_s memory_limit_mb",
        "ExpectedOutputs": "problem_id outputs checker",
        "Sample": "suite problem_id sample_index seed completion prompt_tokens completion_tokens finish_reason"
        " token_ids logprobs",
        "Verdict": "suite problem_id sample_index status score extracted passed total detail cpu_s wall_s peak_mb",
    }


def test_records_are_frozen():
    with pytest.raises(FrozenInstanceError):
        RECORDS[0].id = "q"


def test_token_ids_stay_out_of_the_row_when_there_are_none():
    assert "token_ids" not in to_row(RECORDS[4]) and to_row(RECORDS[5])["token_ids"] == (1, 2)
    assert to_row(RECORDS[7])["score"] is None


GOOD = {"suite": "s", "problem_id": "p", "sample_index": 0, "status": "correct", "score": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scor": 1.0}, "unknown field 'scor'; did you mean 'score'?"),
        ({"status": "right"}, "status is 'right' (allowed: correct, wrong_answer,"),
        ({"status": None}, "status is None"),
        ({"score": "1"}, "score is '1' (str); float | None is expected"),
        ({"score": True}, "score is True (bool)"),
        ({"sample_index": 1.5}, "sample_index is 1.5 (float); int is expected"),
        ({"problem_id": 7}, "problem_id is 7 (int); str is expected"),
        ({"detail": ["x"]}, "detail is ['x'] (list); str is expected"),
    ],
)
def test_a_wrong_field_is_named(change, message):
    with pytest.raises(ValueError) as caught:
        from_row(Verdict, GOOD | change)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_missing_field_is_named():
    with pytest.raises(ValueError, match="score"):
        from_row(Verdict, {k: v for k, v in GOOD.items() if k != "score"})


def test_list_items_are_checked():
    with pytest.raises(ValueError, match="outputs is"):
        from_row(ExpectedOutputs, {"problem_id": "p", "outputs": ["1", 2]})
    with pytest.raises(ValueError, match="prompt is"):
        from_row(Problem, {"id": "p", "suite": "s", "kind": "math", "prompt": "a bare string"})


@pytest.mark.parametrize(
    ("status", "score", "finish", "expected"),
    [
        (Status.correct, 1.0, FinishReason.stop, 1.0),
        (Status.correct, 1.0, FinishReason.length, 0.0),
        (Status.wrong_answer, 0.75, FinishReason.stop, 0.75),
        (Status.time_limit, 0.75, FinishReason.length, 0.0),
        (Status.truncated, 0.0, FinishReason.length, 0.0),
        (Status.judge_error, None, FinishReason.stop, None),
        (Status.judge_error, None, FinishReason.length, None),
    ],
)
def test_reward(status, score, finish, expected):
    assert reward(Verdict("s", "p", 0, status, score), finish) == expected


def test_parquet_text_replaces_what_utf8_cannot_hold():
    assert parquet_text(ODD) == "a\ufffdb\ufffd\U0001f600\n\x85é"
    parquet_text(ODD).encode()


def test_by_problem_orders_each_group():
    made = [Verdict("s", p, i, Status.correct, 1.0) for p, i in (("b", 1), ("a", 2), ("b", 0))]
    assert {k: [v.sample_index for v in g] for k, g in by_problem(made).items()} == {"b": [0, 1], "a": [2]}
