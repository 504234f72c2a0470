"""The gate on run folders: what it says of them, and every difference for which it refuses to compare them."""

from __future__ import annotations

import json
import shutil

import pytest
from gate_tools import BAD, GOOD, SAMPLING, klearbench, refused, regress_json, write_run

from klearbench.errors import UsageError
from klearbench.scoring.gate import GateOptions
from klearbench.scoring.regress import regress

JUDGE = {"name": "math", "mode": "strict", "version": 1}
YARN = {"rope_type": "yarn", "factor": 2.0}


def test_a_better_or_equal_candidate_passes_and_a_worse_one_fails(tmp_path):
    good, bad = write_run(tmp_path / "good", GOOD), write_run(tmp_path / "bad", BAD, seed=5)
    assert regress_json(bad, good)[0].code == 0
    assert regress_json(good, good)[0].code == 0
    done, loaded = regress_json(good, bad)
    assert (done.code, done.err, loaded["status"], loaded["reason"]) == (1, [], "regressed", None)
    assert done.out[0].startswith("puzzles avg@8: 87.5 -> 78.8 (-8.8 points, 95 % interval ")
    assert ": regressed (allowed drop 0, p " in done.out[0]
    # one problem by itself: C(9, 8) / C(16, 8) = 9 / 12870, times 20 problems
    assert done.out[1:] == ["    p0: 7/8 -> 0/8 (beyond noise)", "    p19: 7/8 -> 0/8 (beyond noise)"]


def test_the_result_holds_scores_change_and_intervals(tmp_path):
    (suite,) = regress(write_run(tmp_path / "a", GOOD), write_run(tmp_path / "b", BAD)).tests
    assert (suite.status, suite.k, suite.problems, suite.left_out) == ("regressed", 8, 20, 0)
    assert (suite.base, suite.candidate, suite.change) == pytest.approx((87.5, 78.75, -8.75))
    assert suite.interval[0] < -8.75 < suite.interval[1] < 0
    assert suite.interval_problems[0] < suite.interval[0]
    # by hand: 20 and 18 problems with 7*1/(8*7) each, over 8 samples and 20^2; z^2 of 160 samples added to both
    z = 1.959964
    error = ((20 + 18) / 8 / 8 / 400 + 2 * (z / 160) ** 2) ** 0.5
    assert suite.interval[1] - suite.interval[0] == pytest.approx(200 * z * error, rel=1e-6)


def test_problems_are_paired_by_name_not_by_order(tmp_path):
    rows = {f"p{i}": i % 9 for i in range(12)}
    a = write_run(tmp_path / "a", {"puzzles": rows})
    b = write_run(tmp_path / "b", {"puzzles": dict(reversed(rows.items()))})
    (suite,) = regress(a, b).tests
    assert (suite.change, suite.worst) == (0, ())


def test_an_allowed_drop_is_allowed(tmp_path):
    a, b = write_run(tmp_path / "a", GOOD), write_run(tmp_path / "b", BAD)
    assert klearbench("regress", a, b, "--max-drop", 10).code == 0
    assert klearbench("regress", a, b, "--max-drop", 0.5).code == 1
    assert klearbench("regress", a, b, "--max-drop", 0.5, "--max-drop", "puzzles=10").code == 0
    assert klearbench("regress", a, b, "--max-drop", 10, "--max-drop", "puzzles:avg@k=0").code == 1


def test_one_sample_a_problem_uses_the_exact_test(tmp_path):
    a = write_run(tmp_path / "a", {"puzzles": {f"p{i}": 1 for i in range(10)}}, k=1)
    b = write_run(tmp_path / "b", {"puzzles": {f"p{i}": int(i > 4) for i in range(10)}}, k=1)
    c = write_run(tmp_path / "c", {"puzzles": {f"p{i}": int(i > 3) for i in range(10)}}, k=1)
    assert regress(a, b).tests[0].p_value == pytest.approx(1 / 32)
    assert [regress(a, run).status for run in (b, c)] == ["regressed", "ok"]  # 1/32 and 1/16


def test_a_rise_of_the_truncated_share_is_a_regression_of_that_metric(tmp_path):
    a, b = write_run(tmp_path / "a", GOOD), write_run(tmp_path / "b", BAD, wrong="truncated")
    c = write_run(tmp_path / "c", BAD)
    done, loaded = regress_json(a, b, "--metric", "truncated")
    assert (done.code, loaded["tests"][0]["base"], loaded["tests"][0]["candidate"]) == (1, 0, 21.25)
    assert klearbench("regress", a, c, "--metric", "truncated").code == 0


def suite_file_changed(run):
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["inputs"]["suite:puzzles"] = "bb"
    (run / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "change, field",
    [
        ({"sampling": SAMPLING | {"temperature": 0.8}}, "sampling.temperature"),
        ({"sampling": SAMPLING | {"max_tokens": 32}}, "sampling.max_tokens"),
        ({"sampling": SAMPLING | {"min_p": 0.1}}, "sampling.min_p"),
        ({"suite_sampling": {"puzzles": {"max_tokens": 99}}}, "suite_sampling.puzzles.max_tokens"),
        ({"prompt": "official"}, "prompt"),
        ({"system": "Be brief."}, "system"),
        ({"judge": JUDGE | {"version": 2}}, "judge.version"),
        ({"judge": JUDGE | {"mode": "math-verify"}}, "judge.mode"),
        ({"code_judge": {"version": 1}}, "code_judge.version"),
        ({"errata": False}, "errata"),
        ({"engine": {"name": "vllm", "rope_scaling": YARN}}, "engine.rope_scaling.rope_type"),
        ({"engine": {"name": "vllm", "thinking": True}}, "engine.thinking"),
        ({"engine": {"name": "openai", "extra_body": {"reasoning": "low"}}}, "engine.extra_body.reasoning"),
        ({"k": 4}, "samples"),
        ({"samples": {"puzzles": 4}}, "samples"),
    ],
)
def test_runs_of_other_parameters_are_not_comparable_and_the_field_is_named(tmp_path, change, field):
    a, b = write_run(tmp_path / "a", GOOD), write_run(tmp_path / "b", GOOD, **change)
    for base, candidate in ((a, b), (b, a)):
        found = refused(base, candidate)
        assert found["field"] == field
        assert found["reason"].startswith(f"{field} is ")
        assert str(a) in found["reason"] and str(b) in found["reason"]


def test_seed_engine_limit_and_what_is_off_may_differ(tmp_path):
    a = write_run(tmp_path / "a", GOOD)
    b = write_run(tmp_path / "b", GOOD, seed=9, limit=20, engine={"name": "hf", "dtype": "float32", "thinking": None})
    done, loaded = regress_json(a, b)
    assert (done.code, loaded["status"]) == (0, "ok")
    assert loaded["notes"] == [
        "engine.name is 'scripted' in the base and 'hf' in the candidate",
        "engine.dtype is None in the base and 'float32' in the candidate",
    ]
    assert done.err == [f"note: {note}" for note in loaded["notes"]]


def test_two_runs_that_may_hold_the_same_samples_are_told(tmp_path):
    a = write_run(tmp_path / "a", GOOD)
    b = write_run(tmp_path / "b", GOOD, engine={"name": "scripted", "model_hash": "a"})
    assert regress(a, b).notes == ("both runs have the same engine, model and seed: they may hold the same samples",)


def test_other_problems_or_content_are_not_comparable(tmp_path):
    a = write_run(tmp_path / "a", GOOD)
    fewer = write_run(tmp_path / "b", {"puzzles": {f"p{i}": 7 for i in range(18)}})
    found = refused(a, fewer)
    assert found["field"] == "problems"
    assert found["reason"] == (f"problem 'p18' of puzzles is in {a} and not in {fewer} (and 1 more that one run lacks)")
    assert refused(fewer, a)["reason"] == found["reason"]
    content = write_run(tmp_path / "d", GOOD)
    suite_file_changed(content)
    assert refused(a, content)["field"] == "inputs.suite:puzzles"


def test_other_suites_are_refused_and_the_common_ones_can_be_chosen(tmp_path):
    a = write_run(tmp_path / "a", GOOD | {"aime": {"q": 4, "r": 4}})
    b = write_run(tmp_path / "b", BAD)
    found = refused(a, b)
    assert (found["field"], found["reason"]) == (
        "suites", f"suites is 'aime, puzzles' in {a} and 'puzzles' in {b}; --suite NAME compares one"
    )  # fmt: skip
    done, loaded = regress_json(a, b, "--suite", "puzzles", "--suite", "puzzles")
    assert (done.code, [test["suite"] for test in loaded["tests"]]) == (1, ["puzzles"])
    assert refused(a, b, "--suite", "aime")["field"] == "suites"
    done, loaded = regress_json(a, b, "--suite", "puzles")
    assert (done.code, loaded["status"], loaded["field"]) == (2, "error", "input")
    assert "did you mean 'puzzles'" in done.err[0] and len(done.err) == 1


def test_a_chosen_suites_k_alone_is_compared(tmp_path):
    both = GOOD | {"aime": {"q": 1, "r": 1}}
    a = write_run(tmp_path / "a", both, {"puzzles": 8, "aime": 8})
    b = write_run(tmp_path / "b", both, {"puzzles": 8, "aime": 4})
    found = refused(a, b)
    assert found["reason"].startswith("samples.aime is 8 in ") or found["reason"].startswith("samples is 8 in ")
    assert klearbench("regress", a, b, "--suite", "puzzles").code == 0


@pytest.mark.parametrize(
    "options, message",
    [
        ({"metrics": ["avgk"]}, "unknown metric 'avgk'; did you mean 'avg@k'"),
        ({"metrics": []}, "--metric: name each metric once"),
        ({"metrics": ["length", "length"]}, "--metric: name each metric once"),
        ({"max_drop": {"": -1}}, "--max-drop is -1"),
        ({"max_drop": {"aime": 100}}, "--max-drop is aime=100"),
        ({"max_drop": {"": float("nan")}}, "--max-drop is nan"),
        ({"confidence": 95}, "--confidence is 95"),
        ({"confidence": float("nan")}, "--confidence is nan"),
        ({"max_judge_errors": -1}, "--max-judge-errors is -1"),
    ],
)
def test_values_that_are_not_allowed(options, message):
    with pytest.raises(UsageError, match=message):
        GateOptions(**options)


@pytest.mark.parametrize(
    "words, message",
    [
        (("--max-drop", "much"), "--max-drop 'much': write points, or NAME=POINTS"),
        (("--max-drop", "puzles=1"), "did you mean 'puzzles'"),
        (("--max-drop", "inf"), "--max-drop is inf"),
        (("--confidence", "1"), "--confidence"),
        (("--confidence", "nan"), "--confidence"),
        (("--metric", "avg"), "--metric"),
        (("--max-judge-errors", "101"), "--max-judge-errors"),
    ],
)
def test_flags_that_are_not_allowed_give_one_line_and_exit_2(tmp_path, words, message):
    a = write_run(tmp_path / "a", GOOD)
    done = klearbench("regress", a, a, *words)
    assert (done.code, len(done.err)) == (2, 1)
    assert message in done.err[0]


def test_a_path_that_is_no_run_is_bad_input(tmp_path):
    a, empty = write_run(tmp_path / "a", GOOD), tmp_path / "empty"
    empty.mkdir()
    train = write_run(tmp_path / "train", GOOD, command="train")
    for path in (tmp_path / "nowhere", empty, train):
        for base, candidate in ((a, path), (path, a)):
            done, loaded = regress_json(base, candidate)
            shutil.rmtree(tmp_path / f"{base.name}-{candidate.name}-gate")
            assert (done.code, loaded["status"], loaded["field"]) == (2, "error", "input")
            assert len(done.err) == 1 and str(path) in done.err[0]
    assert klearbench("regress", a).code == 2, "one side alone"
