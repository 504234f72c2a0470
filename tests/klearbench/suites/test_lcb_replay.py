"""Recorded programs of two real models, judged and scored by the command: the figures that their labels say."""

from __future__ import annotations

import json
from math import sqrt

import pytest
from tools import jsonl, ok, write_jsonl

from klearbench.suites.registry import load_suite

MODELS = {"o1-mini": (131, 74), "o1-preview": (119, 65)}
"""Model -> problems of the dev half on which the label and the official verdict agree (one is left out by the errata:
its official tests are wrong), and how many of these the label counts as solved."""
OURS = {"o1-mini": {"abc375_b"}, "o1-preview": {"abc375_b", "abc367_g", "abc380_g"}}
"""Programs that we accept and the label does not: its judge compares decimals digit by digit, and loses what a thread
prints (docs/code-differences.md lists all of them)."""


def recorded(shared, model: str) -> list[dict]:
    rows = jsonl(shared / "data" / "lcb_v5_solutions_dev.jsonl")
    return [row for row in rows if row["model"].startswith(f"{model}-20") and row["agree"]]


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_models_score_on_the_dev_half_is_the_recorded_one(shared, tmp_path, model):
    rows = recorded(shared, model)
    completions = [
        {"problem_id": row["question_id"], "sample_index": 0, "completion": f"So:\n```python\n{row['code']}\n```\n"}
        for row in rows
    ]
    write_jsonl(tmp_path / "completions.jsonl", completions)
    (tmp_path / "ids.txt").write_text("".join(f"{row['question_id']}\n" for row in rows))
    (tmp_path / "dev.yaml").write_text("name: lcb-v5-dev\nsuite: lcb-v5\nids: ids.txt\n")
    ok(
        "klearbench", "eval", "--suite", tmp_path / "dev.yaml", "--data-dir", shared / "data", "--engine", "replay",
        "--model", tmp_path / "completions.jsonl", "--first-failure", "--workers", 2, "-o", tmp_path / "run",
    )  # fmt: skip
    (score,) = json.loads((tmp_path / "run" / "scores.json").read_text()).values()
    problems, solved = MODELS[model]
    assert (score["problems"], score["judged"], score["complete"]) == (problems, problems, True)
    errata = json.loads((tmp_path / "run" / "manifest.json").read_text())["about"]["errata"]["lcb-v5-dev"]
    assert [(erratum["id"], erratum["action"]) for erratum in errata] == [("arc189_a", "left out")]
    label = {row["question_id"]: row["local_ok"] for row in rows if row["question_id"] != "arc189_a"}
    assert len(label) == problems and sum(label.values()) == solved
    verdicts = {row["problem_id"]: row["status"] == "correct" for row in jsonl(tmp_path / "run" / "verdicts.jsonl")}
    ours = {key for key in label if verdicts[key] is not label[key]}
    assert ours == OURS[model]
    right = (solved + len(ours)) / problems
    assert score["avg"] == pytest.approx(100 * right)
    low, high = score["interval_problems"]
    assert low < score["avg"] < high
    half = (high - low) / 2
    assert half == pytest.approx(196 * sqrt(right * (1 - right) / problems), rel=0.1)


@pytest.mark.shared
def test_the_two_halves_of_the_labels_are_of_the_v5_window(shared):
    window = {problem.id for problem in load_suite("lcb-v5", shared / "data", errata=False).problems}
    for model, (problems, solved) in MODELS.items():
        rows = recorded(shared, model)
        assert {row["question_id"] for row in rows} <= window
        assert (len(rows), sum(row["local_ok"] for row in rows)) == (problems + 1, solved)
