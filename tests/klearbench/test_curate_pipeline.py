from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from curate_tools import FILE, PUZZLES, data, read, run, teach, write

import klearbench.judging.judge as judging
from klearbench.curation import pipeline
from klearbench.errors import RunConflict


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curate")
    out = folder / "data"
    return out, run(write(folder, PUZZLES), out)


def test_every_row_is_kept_or_rejected(made):
    out, summary = made
    counts = summary.counts
    assert counts["problems"] == {"read": 60, "rejected": {}, "kept": 60}
    assert counts["responses"]["made"] == 240
    assert sum(counts["responses"]["statuses"].values()) == 240
    for name, rows in (("sft", 240), ("rl", 60)):
        kept = [*data(out, name), *data(out, name, "validation")]
        dropped = read(out / "rejected" / f"{name}.parquet")
        assert len(kept) + len(dropped) == rows == counts["outputs"][name]["rows"]
        assert len({row["id"] for row in kept + dropped}) == rows
        reasons = Counter(f"{row['stage']}: {row['reason']}" for row in dropped)
        assert reasons == counts["outputs"][name]["rejected"]
        assert all(row["stage"] and row["reason"] for row in dropped)


def test_pass_rates_are_those_of_the_verdicts_and_decide_what_stays(made):
    out, _ = made
    verdicts = [json.loads(line) for line in (out / "work" / "verdicts.jsonl").open()]
    right = Counter(v["problem_id"] for v in verdicts if v["status"] == "correct")
    sft = [*data(out, "sft"), *data(out, "sft", "validation"), *read(out / "rejected" / "sft.parquet")]
    assert all(row["pass_rate"] == right[row["problem_id"]] / 4 for row in sft)
    for row in data(out, "sft"):
        assert row["status"] == "correct" or row["pass_rate"] <= 0.5
    for row in read(out / "rejected" / "sft.parquet"):
        if row["reason"] == "wrong_on_easy":
            assert row["status"] != "correct"
            assert row["pass_rate"] == 0.75
    assert {row["pass_rate"] for row in data(out, "rl")} <= {0.25, 0.5, 0.75}


def test_no_problem_stands_in_train_and_validation(made):
    out, _ = made
    for name, column in (("sft", "problem_id"), ("rl", "id")):
        train = {row[column] for row in data(out, name)}
        validation = {row[column] for row in data(out, name, "validation")}
        assert train
        assert validation
        assert not train & validation


def test_rows_carry_their_provenance(made):
    out, _ = made
    row = data(out, "sft")[0]
    assert [m["role"] for m in row["messages"]] == ["user", "assistant"]
    assert row["messages"][0]["content"].endswith("= ?")
    assert "boxed" in row["messages"][1]["content"]
    wanted = {"suite": "puzzles", "licence": "apache-2.0", "teacher": "scripted", "temperature": 1.0, "top_p": 0.95}
    assert {key: row[key] for key in wanted} == wanted
    assert len(row["content_hash"]) == 64
    rl = data(out, "rl")[0]
    assert [m["role"] for m in rl["prompt"]] == ["user"]
    assert (rl["kind"], rl["rule"]) == ("math", "integer")
    assert rl["answer"].isdigit()


def test_a_finished_dataset_is_left_alone_and_says_so(made):
    out, summary = made
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*.parquet")}
    lines: list[str] = []
    again = pipeline.curate(out.parent / "recipe.yaml", out, say=lines.append)
    assert again.done_before
    assert again.engine_calls == 0
    assert again.counts == summary.counts
    assert "complete already" in lines[-1]
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*.parquet")} == before


def test_another_recipe_is_refused_by_the_fields_name(made):
    out, _ = made
    with pytest.raises(RunConflict, match=r"teacher\.temperature = 1\.0, this command has 0\.5"):
        run(out.parent / "recipe.yaml", out, "teacher.temperature=0.5")
    run(out.parent / "recipe.yaml", out, "verify.workers=2")  # decides nothing


def test_more_samples_extend_a_dataset(tmp_path):
    recipe = write(tmp_path, PUZZLES.replace("samples: 4", "samples: 2"))
    run(recipe, tmp_path / "grown")
    grown = run(recipe, tmp_path / "grown", "teacher.samples=4")
    whole = run(recipe, tmp_path / "whole", "teacher.samples=4")
    assert grown.files == whole.files
    assert grown.engine_calls == whole.engine_calls // 2


def test_the_card_and_the_funnel_tell_the_counts(made):
    out, summary = made
    card = (out / "README.md").read_text()
    for count in (
        c for o in summary.counts["outputs"].values() for c in (*o["kept"].values(), *o["rejected"].values())
    ):
        assert f"| {count} |" in card
    funnel = (out / "funnel.html").read_text()
    assert "wrong_on_easy" in card and "wrong_on_easy" in funnel
    assert "http" not in funnel
    assert "$" not in card.split("## Use")[0]


@pytest.mark.train
def test_load_dataset_opens_both_configurations(made, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset

    out, summary = made
    for name, arguments in (("sft", ()), ("rl", ("rl",))):
        loaded = load_dataset(str(out), *arguments, cache_dir=str(tmp_path))
        assert {split: len(rows) for split, rows in loaded.items()} == summary.counts["outputs"][name]["kept"]
    assert loaded["train"][0]["prompt"][0]["role"] == "user"


def test_no_answer_reaches_the_teacher(tmp_path, monkeypatch):
    rows = [
        {"id": f"p{i}", "problem": f"Riddle {i}?", "answer": f"{7_000_000_007 + i}", "solution": "x"} for i in range(7)
    ]
    judged = []
    real = judging.MathJudge.judge
    monkeypatch.setattr(judging.MathJudge, "judge", lambda self, pairs: judged.extend(pairs) or real(self, pairs))
    teacher = teach(monkeypatch, lambda prompt, index: f"<think> hm </think> \\boxed{{{index}}}")
    run(write(tmp_path, FILE, rows), tmp_path / "out")
    assert len(teacher.seen) == 14
    assert "70000000" not in repr(teacher.seen)
    assert "70000000" not in (tmp_path / "out" / "work" / "samples.jsonl").read_text()
    assert "70000000" not in json.dumps(data(tmp_path / "out", "sft"))
    assert {answer.answer for _, answer in judged} == {row["answer"] for row in rows}
    assert {row["answer"] for row in data(tmp_path / "out", "rl")} == {row["answer"] for row in rows}


def test_copies_are_dropped_before_the_teacher_is_asked(tmp_path, monkeypatch):
    rows = [
        {"id": "a", "problem": "What is the sum of two and two?", "answer": "4"},
        {"id": "b", "problem": "what is the  sum of\ntwo and two?", "answer": "4"},
        {"id": "c", "problem": "7 MAX 3\nmin 4 min 9 = ?", "answer": "4"},
        {"id": "d", "problem": "7 max 3 min 4 min 8 = ?", "answer": "4"},
    ]
    (tmp_path / "bench.jsonl").write_text('{"id": "q1", "problem": "7 max 3 min 4 min 9 = ?", "answer": "4"}\n')
    teacher = teach(monkeypatch, lambda prompt, index: "\\boxed{4}")
    recipe = write(tmp_path, FILE + "decontaminate: {against: [bench.jsonl]}\n", rows)
    summary = run(recipe, tmp_path / "out")
    dropped = read(tmp_path / "out" / "rejected" / "problems.parquet")
    assert [(r["id"], r["stage"], r["reason"], r["detail"]) for r in dropped] == [
        ("mine/b", "dedup", "duplicate_problem", "copy of mine/a"),
        ("mine/c", "decontaminate", "contaminated_exact", "exact copy of bench.jsonl/q1"),
    ]
    assert summary.counts["problems"]["kept"] == 2
    assert {request.place[0] for request, _ in teacher.seen} == {"a", "d"}
    # both responses to a problem are equal: the second is a duplicate
    assert summary.counts["outputs"]["sft"]["rejected"] == {"dedup: duplicate_trace": 2}


def test_text_that_parquet_cannot_hold_is_replaced(tmp_path, monkeypatch):
    teach(monkeypatch, lambda prompt, index: f"{index} \ud800\x00 \\boxed{{1}}")
    run(write(tmp_path, FILE, [{"id": "1", "problem": "One?", "answer": "1"}]), tmp_path / "out")
    assert data(tmp_path / "out", "sft")[0]["messages"][1]["content"] == "0 \ufffd\ufffd \\boxed{1}"


def test_a_dry_run_prints_the_resolved_recipe_and_does_nothing(tmp_path):
    lines: list[str] = []
    summary = pipeline.curate(write(tmp_path, PUZZLES), tmp_path / "out", ["seed=9"], dry_run=True, say=lines.append)
    assert summary.counts == {"problems": {"read": 60, "kept": 60}, "responses": 240}
    text = "\n".join(lines)
    assert "240 responses" in text
    assert "seed: 9" in text and "ngram: 9" in text
    assert not (tmp_path / "out").exists()


def test_the_demo_recipe_is_what_the_demo_needs():
    from klearbench.curation.recipe import load_curation

    recipe = load_curation(Path(__file__).parents[2] / "recipes" / "puzzles" / "curate.yaml")
    assert recipe.sources[0].count == 8000
    assert recipe.teacher.samples == 2
    assert recipe.decontaminate.against == ("puzzles",)
    assert recipe.verify.wrong == "keep"
    assert [output.name for output in recipe.outputs] == ["sft", "rl"]


def test_the_kept_card_is_the_one_that_the_demo_recipe_makes(tmp_path):
    root = Path(__file__).parents[2]
    run(root / "recipes" / "puzzles" / "curate.yaml", tmp_path / "out")
    assert (tmp_path / "out" / "README.md").read_text() == (root / "datasets_cards" / "klear-puzzles.md").read_text()


def test_both_math_judges_in_curation_take_the_strict_verdict_and_list_what_differs(tmp_path, monkeypatch):
    rows = [{"id": "b", "problem": "Write eleven in base two.", "answer": "1011_2"}]
    teach(monkeypatch, lambda prompt, index: "\\boxed{1011_2}" if index else "\\boxed{1011_3}")
    run(write(tmp_path, FILE.replace("wrong: keep", "wrong: keep, mode: both"), rows), tmp_path / "out")
    verdicts = [json.loads(line) for line in (tmp_path / "out/work/verdicts.jsonl").open()]
    assert [v["status"] for v in sorted(verdicts, key=lambda v: v["sample_index"])] == ["wrong_answer", "correct"]
    (row,) = [json.loads(line) for line in (tmp_path / "out/work/math_differences.jsonl").open()]
    assert (row["problem_id"], row["sample_index"], row["gold"]) == ("b", 0, "1011_2")
    assert (row["strict"]["status"], row["math-verify"]["status"]) == ("wrong_answer", "correct")
