"""Curation of programs: judged by their tests, written so that a trainer's judge reads the same tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from codefakes import ToySandbox
from curate_tools import data, read, run, write

from klearbench.curation import pipeline
from klearbench.suites import puzzles
from klearbench.suites.coderows import read_code_row
from klearbench.suites.references import JudgeOptions

RECIPE = """
name: programs
seed: 3
licence: apache-2.0
sources: [{suite: puzzles, kind: code, split: train, count: 40, seed: 1}]
teacher: {engine: scripted, options: {errors: {min: 0.6, max: 0.3}}, samples: 2, temperature: 1.0, max_tokens: 64}
verify: {wrong: keep}
dedup: {traces: false}
outputs: [{name: sft}, {name: rl, pass_rate: [0.0, 1.0]}]
"""


@pytest.fixture
def sandbox(monkeypatch) -> ToySandbox:
    toy = ToySandbox()
    monkeypatch.setattr(pipeline, "JudgeOptions", lambda *_, **__: JudgeOptions(sandbox=toy))
    return toy


def test_programs_become_rows_with_soft_scores_and_their_tests(tmp_path, sandbox):
    run(write(tmp_path, RECIPE), tmp_path / "out")
    rows = data(tmp_path / "out", "sft")
    scores = {row["score"] for row in rows}
    assert {row["status"] for row in rows} == {"correct", "wrong_answer"}
    assert 1.0 in scores and scores - {0.0, 1.0}, "shares of tests passed"
    assert all((row["score"] == 1.0) == (row["status"] == "correct") for row in rows)
    suite = puzzles.load("code", "train", 40, 1)
    table = data(tmp_path / "out", "rl")
    assert len(table) == 40
    for row in table:
        key = row["id"].partition("/")[2]
        assert (row["kind"], row["answer"], row["rule"]) == ("code", None, None)
        assert read_code_row("rl", 1, {**json.loads(row["tests"]), "id": key}) == suite.answers[key]
        shares = [r["status"] == "correct" for r in rows if r["problem_id"] == key]
        assert row["pass_rate"] == sum(shares) / 2
    assert len(sandbox.seen) == 80 * 8


def test_the_judge_is_pinned_with_its_code_part(tmp_path, sandbox):
    run(write(tmp_path, RECIPE), tmp_path / "out")
    pinned = json.loads((tmp_path / "out" / "work" / "judge.json").read_text())
    assert (pinned["name"], pinned["code"]["name"]) == ("math", "code")
    assert "| judge | code, strict; wrong responses: keep |" in (tmp_path / "out" / "README.md").read_text()


def test_math_and_code_stand_in_one_dataset(tmp_path, sandbox):
    rows = [
        {"id": "m", "problem": "7 max 3 min 4 min 9 = ?", "answer": "4", "rule": "integer"},
        {"id": "c", "problem": "f(a, b): larger b, plus 3, smaller 7 = ?", "mode": "functional", "fn_name": "f",
         "tests": [{"input": "1\n2", "output": "5"}]},
    ]  # fmt: skip
    recipe = RECIPE.replace(
        "{suite: puzzles, kind: code, split: train, count: 40, seed: 1}", "{file: rows.jsonl, name: m}"
    )
    run(write(tmp_path, recipe, rows), tmp_path / "out")
    table = {row["id"]: row for row in data(tmp_path / "out", "rl")}
    assert (table["m/m"]["answer"], table["m/m"]["tests"]) == ("4", None)
    assert table["m/c"]["answer"] is None and json.loads(table["m/c"]["tests"])["fn_name"] == "f"
    card = (tmp_path / "out" / "README.md").read_text()
    assert "code, strict, math, strict" in card
    assert "which tests a program passes" in card and "whether the final answer is right" in card
    assert read(tmp_path / "out" / "rejected" / "problems.parquet") == []


def test_a_problem_without_tests_is_refused_by_name(tmp_path, sandbox):
    rows = [{"id": "c", "problem": "f", "tests": []}]
    recipe = RECIPE.replace("{suite: puzzles, kind: code, split: train, count: 40, seed: 1}", "{file: rows.jsonl}")
    with pytest.raises(Exception, match=r"rows\.jsonl:1: problem 'c': it has no test"):
        run(write(tmp_path, recipe, rows), tmp_path / "out")


def test_the_kept_card_is_the_one_that_the_demo_recipe_makes(tmp_path, sandbox):
    root = Path(__file__).parents[2]
    run(root / "recipes" / "puzzles" / "code-curate.yaml", tmp_path / "out")
    kept = root / "datasets_cards" / "klear-code-puzzles.md"
    assert (tmp_path / "out" / "README.md").read_text() == kept.read_text()
