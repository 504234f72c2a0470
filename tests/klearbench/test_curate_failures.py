from __future__ import annotations

import pytest
from curate_tools import FILE, data, read, run, teach, write

import klearbench.judging.judge as judging
from klearbench.errors import ConfigError, DataError, IncompleteError, RunConflict, UsageError
from klearbench.types import Status, Verdict


def test_a_judge_that_failed_never_makes_a_wrong_row(tmp_path, monkeypatch):
    rows = [{"id": str(i), "problem": f"Riddle {i}?", "answer": "1"} for i in range(3)]
    teach(monkeypatch, lambda prompt, index: f"<think> {index} </think> \\boxed{{{1 + index}}}")
    real, broken = judging.MathJudge.judge, {("0", 0), ("1", 0), ("1", 1)}

    def flaky(self, pairs):
        return [
            Verdict(v.suite, v.problem_id, v.sample_index, Status.judge_error, None)
            if (v.problem_id, v.sample_index) in broken
            else v
            for v in real(self, pairs)
        ]

    monkeypatch.setattr(judging.MathJudge, "judge", flaky)
    recipe = write(tmp_path, FILE, rows)
    with pytest.raises(IncompleteError, match="3 of 6 responses could not be judged"):
        run(recipe, tmp_path / "out")
    sft, rejected = data(tmp_path / "out", "sft"), read(tmp_path / "out" / "rejected" / "sft.parquet")
    assert [r["id"] for r in sft] == ["mine/0/1", "mine/2/0", "mine/2/1"]
    assert [(r["id"], r["reason"], r["score"]) for r in rejected] == [
        (f"mine/{i}/{j}", "judge_error", None) for i, j in ((0, 0), (1, 0), (1, 1))
    ]
    # what could be judged of problem 0 was wrong; nothing is known of problem 1
    assert {r["id"]: r["pass_rate"] for r in data(tmp_path / "out", "rl")} == {"mine/0": 0.0, "mine/2": 0.5}
    assert [(r["id"], r["reason"]) for r in read(tmp_path / "out" / "rejected" / "rl.parquet")] == [
        ("mine/1", "judge_error")
    ]
    broken.clear()
    healed = run(recipe, tmp_path / "out")
    assert healed.engine_calls == 0
    assert healed.files == run(recipe, tmp_path / "fresh").files


def test_a_failed_engine_call_is_told_and_tried_again(tmp_path, monkeypatch):
    rows = [{"id": str(i), "problem": f"Riddle {i}?", "answer": "1"} for i in range(4)]
    down = {"Riddle 2?"}
    teacher = teach(monkeypatch, lambda prompt, index: None if prompt in down else f"{index} \\boxed{{1}}")
    recipe = write(tmp_path, FILE, rows)
    with pytest.raises(IncompleteError, match="2 of 8 responses failed in the engine"):
        run(recipe, tmp_path / "out")
    assert {r["reason"] for r in read(tmp_path / "out" / "rejected" / "sft.parquet")} == {"engine_error"}
    down.clear()
    teacher.seen.clear()
    healed = run(recipe, tmp_path / "out")
    assert healed.counts["outputs"]["sft"]["kept"] == {"train": 8}
    assert healed.files == run(recipe, tmp_path / "fresh").files


def test_an_output_without_a_row_is_incomplete(tmp_path, monkeypatch):
    teach(monkeypatch, lambda prompt, index: "\\boxed{5}")
    recipe = write(
        tmp_path, FILE.replace("wrong: keep", "wrong: drop"), [{"id": "1", "problem": "One?", "answer": "1"}]
    )
    with pytest.raises(IncompleteError, match="output 'sft' has no train row"):
        run(recipe, tmp_path / "out")
    assert [r["reason"] for r in read(tmp_path / "out" / "rejected" / "sft.parquet")] == ["wrong", "wrong"]


def test_a_changed_teacher_is_refused_in_the_middle(tmp_path, monkeypatch):
    rows = [{"id": str(i), "problem": f"Riddle {i}?", "answer": "1"} for i in range(4)]
    teacher = teach(monkeypatch, lambda prompt, index: None if prompt == "Riddle 3?" else f"{index} \\boxed{{1}}")
    recipe = write(tmp_path, FILE, rows)
    with pytest.raises(IncompleteError):
        run(recipe, tmp_path / "out")
    monkeypatch.setattr(teacher, "identity", lambda: {"name": "other"}, raising=False)
    with pytest.raises(RunConflict, match="teacher name = 'toy', now it is 'other'"):
        run(recipe, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (("wrong: keep", "wrong: kepp"), ConfigError, "verify.wrong"),
        (("samples: 2", "sample: 2"), ConfigError, "did you mean 'samples'"),
        (("name: mine, licence", "name: mine, seed: 4, licence"), ConfigError, "'seed' has no meaning for this source"),
        (("{name: rl}", "{name: sft}"), ConfigError, "each output may stand once"),
        (("{name: rl}", "{name: rl, pass_rate: [0.9, 0.1]}"), ConfigError, "the lower one first"),
        (("verify:", "filters: [{name: finishd}]\nverify:"), ConfigError, "did you mean 'finished'"),
        (("verify:", "decontaminate: {against: [aime42]}\nverify:"), UsageError, "aime42"),
        (("wrong: keep", "mode: strikt"), ConfigError, "did you mean 'strict'"),
        (("rows.jsonl", "absent.jsonl"), DataError, "absent.jsonl"),
        (("engine: scripted", "engine: scriptd"), UsageError, "did you mean 'scripted'"),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_line(tmp_path, change, error, message):
    recipe = write(tmp_path, FILE.replace(*change), [{"id": "1", "problem": "3 max 4 = ?", "answer": "4"}])
    with pytest.raises(error) as caught:
        run(recipe, tmp_path / "out")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_reference_answer_that_is_none_is_refused_before_the_teacher_is_asked(tmp_path, monkeypatch):
    teacher = teach(monkeypatch, lambda prompt, index: "\\boxed{1}")
    rows = [{"id": "7", "problem": "One?", "answer": "\\frac{1}{"}, {"id": "8", "problem": "Two?", "answer": "?"}]
    with pytest.raises(DataError, match=r"the reference answer '.*' isn't equal to itself"):
        run(write(tmp_path, FILE, rows), tmp_path / "out")
    assert teacher.seen == []
