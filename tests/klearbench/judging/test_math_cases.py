"""Labelled cases of our own, written from the policy without sight of the judge; every one that isn't a convention."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from klearbench.judging.judge import MathJudge
from klearbench.types import Answer, FinishReason, Sample

DATA = Path(__file__).resolve().parents[2] / "data" / "math"


def rows(name: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (DATA / name).read_text().splitlines()]
    return [row for row in found if row["kind"] != "convention"]


@pytest.fixture(scope="module")
def judge() -> Iterator[MathJudge]:
    with MathJudge() as made:
        yield made


def test_final_answers(judge: MathJudge) -> None:
    found = rows("equivalence.jsonl")
    assert len(found) > 400
    wrong = [
        (row["id"], row["gold"], row["answer"])
        for row in found
        if judge.compare(Answer("p", row["gold"], "expression"), row["answer"]).equal is not row["equal"]
    ]
    assert wrong == []


def test_completions(judge: MathJudge) -> None:
    found = rows("extraction.jsonl")
    assert len(found) > 90
    items = [
        (
            Sample("s", row["id"], 0, 0, row["completion"], 0, 0, FinishReason.stop),
            Answer(row["id"], row["gold"], "expression"),
        )
        for row in found
    ]
    names = {"wrong_answer": "wrong"}
    wrong = [
        (row["id"], verdict.status.value, verdict.extracted)
        for row, verdict in zip(found, judge.judge(items), strict=True)
        if names.get(verdict.status.value, verdict.status.value) != row["verdict"]
    ]
    assert wrong == []
