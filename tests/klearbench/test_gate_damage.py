"""Runs that are not whole, and baselines likewise: never a verdict, never a crash, always the file or field by name."""

from __future__ import annotations

import json
import shutil

import pytest
from gate_tools import klearbench, refused, regress_json, write_run
from tools import jsonl, write_jsonl

RIGHTS = {"puzzles": {f"p{i}": 3 for i in range(6)}}
LOGS = ("samples.jsonl", "verdicts.jsonl")
WHOLE = ("manifest.json", "scores.json")
GARBAGE = {
    "nothing": b"", "null": b"null", "a list": b"[]", "a text": b'"x"', "no UTF-8": b"\xff\xfe\x00", "zeros": bytes(40),
    "brackets": b"[" * 100_000, "digits": b"1" * 5000, "NaN": b"NaN",
}  # fmt: skip


@pytest.fixture
def a(tmp_path):
    return write_run(tmp_path / "a", RIGHTS, 4)


@pytest.fixture
def b(tmp_path):
    return write_run(tmp_path / "b", RIGHTS, 4)


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_file_cut_at_any_byte_is_named(a, b, name):
    raw = (b / name).read_bytes()
    for size in (0, 1, len(raw) // 3, len(raw) // 2, len(raw) - 1):
        (b / name).write_bytes(raw[:size])
        found = refused(a, b)
        assert found["field"] == name
        assert str(b / name) in found["reason"]
    assert refused(b, a)["field"] == name, "whichever side it is on"


@pytest.mark.parametrize("name", LOGS)
def test_a_log_cut_at_any_byte_lacks_what_was_cut(a, b, name):
    raw = (b / name).read_bytes()
    lines = raw.splitlines(keepends=True)
    for size in (0, 1, len(lines[0]) - 1, len(raw) // 2, len(raw) - len(lines[-1]), len(raw) - 1):
        (b / name).write_bytes(raw[:size])
        lost = len(lines) - raw[:size].count(b"\n")
        found = refused(a, b)
        assert (found["field"], found["reason"].split(": ")[0]) == ("missing", f"{b} lacks {lost} verdicts of puzzles")


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_is_named_by_its_file_whatever_file_it_is_in(a, b, garbage):
    for name in (*WHOLE, *LOGS):
        raw = (b / name).read_bytes()
        (b / name).write_bytes(GARBAGE[garbage] + b"\n")
        assert refused(a, b)["field"] == ("missing" if garbage == "nothing" and name in LOGS else name)
        (b / name).write_bytes(raw)


def test_a_row_in_the_middle_of_a_log_is_named_with_its_line(a, b):
    for name in LOGS:
        raw = (b / name).read_bytes()
        lines = raw.splitlines(keepends=True)
        for bad in (lines[16][:-5] + b"\n", b'{"suite": 3}\n'):
            (b / name).write_bytes(b"".join([*lines[:16], bad, *lines[17:]]))
            found = refused(a, b)
            assert found["field"] == name and f"{b / name}:17: " in found["reason"]
        (b / name).write_bytes(raw)


@pytest.mark.parametrize("section", ["engine", "sampling", "suite_sampling", "suites", "samples"])
def test_a_manifest_whose_sections_are_of_another_kind_is_no_run(a, b, section):
    manifest = json.loads((b / "manifest.json").read_text())
    for value in (3, "x", [1], True, [["a"]]):
        if (section, value) in (("samples", 3), ("samples", True)):
            continue
        manifest["config"][section] = value
        (b / "manifest.json").write_text(json.dumps(manifest))
        for words in ((a, b), (b, a), (b, b)):
            done = klearbench("regress", *words)
            assert done.code == 2 and len(done.err) == 1 and "is no run of `klearbench eval`" in done.err[0]


def test_a_run_of_no_suites_at_all_does_not_pass(a, b):
    manifest = json.loads((b / "manifest.json").read_text())
    manifest["config"]["suites"] = []
    (b / "manifest.json").write_text(json.dumps(manifest))
    assert klearbench("regress", b, b).code == 2


def test_unfinished_runs_are_not_comparable(a, b):
    scores = (b / "scores.json").read_text()
    (b / "scores.json").unlink()
    assert refused(a, b)["field"] == "scores"
    loaded = json.loads(scores)
    loaded["puzzles"]["per_problem"] = loaded["puzzles"]["per_problem"][:3]  # extended since it was written
    (b / "scores.json").write_text(json.dumps(loaded))
    found = refused(b, a)
    assert found["field"] == "scores" and "did not finish" in found["reason"] and "rerun" in found["reason"]


def test_samples_that_the_engine_failed_to_make_are_engine_errors(a, b):
    rows = jsonl(b / "samples.jsonl")
    for row in rows[:2]:
        row["finish_reason"] = "error"
    write_jsonl(b / "samples.jsonl", rows)
    found = refused(a, b)
    assert (found["field"], found["reason"].split(":")[0]) == ("engine_errors", f"{b} has 2 engine errors in puzzles")


def test_judge_errors_above_the_bound_are_refused_and_below_it_left_out(tmp_path, a):
    rights = {"puzzles": RIGHTS["puzzles"] | {"p0": 2}}  # the others are judge errors: 7 of 24 samples
    broken = write_run(tmp_path / "broken", rights, 4, wrong="judge_error")
    found = refused(a, broken)
    assert found["field"] == "judge_errors"
    assert "has 7 judge errors in puzzles (29 %, allowed 0 %: --max-judge-errors)" in found["reason"]
    assert refused(broken, a, "--max-judge-errors", 29)["field"] == "judge_errors"
    done, loaded = regress_json(a, broken, "--max-judge-errors", 29.2)
    assert (done.code, loaded["tests"][0]["candidate"]) == (0, 100)


def test_judge_errors_as_the_metric_have_max_drop_for_a_bound(tmp_path, a):
    broken = write_run(tmp_path / "broken", RIGHTS, 4, wrong="judge_error")  # 6 of 24
    done, loaded = regress_json(a, broken, "--metric", "judge-errors")
    (test,) = loaded["tests"]
    assert (done.code, test["status"], test["base"], test["candidate"]) == (1, "regressed", 0, 25)
    assert klearbench("regress", a, broken, "--metric", "judge-errors", "--max-drop", 25).code == 0
    both = refused(a, broken, "--metric", "judge-errors", "--metric", "avg@k")
    assert both["field"] == "judge_errors", "beside another metric the errors would bias that one"


def test_a_baseline_cut_at_any_byte_is_named(tmp_path, a, b):
    file = tmp_path / "base.json"
    assert klearbench("baseline", a, "-o", file).code == 0
    raw = file.read_bytes()
    for size in (0, 1, 80, len(raw) // 3, len(raw) // 2, len(raw) - 90, len(raw) - 3):
        file.write_bytes(raw[:size])
        for base, candidate in ((file, b), (b, file)):
            found = refused(base, candidate)
            assert found["field"] == "base.json" and str(file) in found["reason"]
        assert klearbench("regress", file, "--plan").code == 3
    for garbage in GARBAGE.values():
        file.write_bytes(garbage)
        assert refused(file, b)["field"] == "base.json"
    shutil.copy(a / "scores.json", file)
    assert refused(file, b)["field"] == "base.json", "another file of ours is no baseline"
