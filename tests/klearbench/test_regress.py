"""The gate: verdicts on run folders, what it refuses to compare, and its error rates by simulation."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from klearbench.errors import DataError, IncompleteError, UsageError
from klearbench.scoring.metrics import score_suite
from klearbench.scoring.regress import regress, run_regress
from klearbench.scoring.uncertainty import Count, compare_counts
from klearbench.store import JsonlWriter
from klearbench.types import FinishReason, Sample, Status, Verdict, to_row


def write_run(
    path: Path, rights: dict[str, dict[str, int]], k: int = 8, *, wrong: str = "wrong_answer", **config
) -> Path:
    """A finished run folder: suite -> problem -> how many of k samples are right; the others are `wrong`."""
    path.mkdir(parents=True)
    config = {
        "command": "eval", "suites": list(rights), "samples": k, "limit": None, "seed": 0,
        "sampling": {"temperature": 0.6, "top_p": 0.95, "max_tokens": 64}, "prompt": "ours",
        "engine": {"name": "scripted", "model_hash": path.name},
        "judge": {"name": "math", "mode": "strict", "version": 1}, **config,
    }  # fmt: skip
    manifest = {"format": 1, "config": config, "inputs": {f"suite:{name}": "aa" for name in rights}}
    (path / "manifest.json").write_text(json.dumps(manifest))
    places = [(s, p, i, i < right) for s, rows in rights.items() for p, right in rows.items() for i in range(k)]
    samples = [Sample(s, p, i, i, "text", 5, 9, FinishReason.stop) for s, p, i, _ in places]
    verdicts = [
        Verdict(s, p, i, Status.correct, 1.0)
        if ok
        else Verdict(s, p, i, Status(wrong), None if "error" in wrong else 0.0)
        for s, p, i, ok in places
    ]
    for name, rows in (("samples", samples), ("verdicts", verdicts)):
        with JsonlWriter(path / f"{name}.jsonl") as log:
            log.append(*map(to_row, rows))
    scores = {s: asdict(score_suite(s, samples, verdicts, list(rows), k)) for s, rows in rights.items()}
    (path / "scores.json").write_text(json.dumps(scores))
    return path


GOOD = {"puzzles": {f"p{i}": 7 for i in range(20)}}
BAD = {"puzzles": {f"p{i}": 7 if i else 0 for i in range(19)} | {"p19": 0}}


def gate(base: Path, candidate: Path, **options) -> tuple[int, list[str]]:
    lines: list[str] = []
    return run_regress(base, candidate, echo=lines.append, **options), lines


def test_a_better_or_equal_candidate_passes_and_a_worse_one_fails(tmp_path):
    good, bad = write_run(tmp_path / "good", GOOD), write_run(tmp_path / "bad", BAD, seed=5)
    assert gate(bad, good)[0] == 0
    assert gate(good, good)[0] == 0
    code, lines = gate(good, bad)
    assert code == 1
    assert lines[0].startswith("puzzles avg@8: 87.5 -> 78.8 (-8.8 points, 95 % interval ")
    assert ": regressed (allowed drop 0, p " in lines[0]
    assert lines[1:] == ["    p0: 7/8 -> 0/8", "    p19: 7/8 -> 0/8"]


def test_the_result_holds_scores_difference_and_both_intervals(tmp_path):
    result = regress(write_run(tmp_path / "a", GOOD), write_run(tmp_path / "b", BAD))
    suite = result.suites[0]
    assert (result.status, suite.k, suite.problems) == ("regressed", 8, 20)
    assert (suite.base, suite.candidate, suite.difference) == pytest.approx((87.5, 78.75, -8.75))
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
    suite = regress(a, b).suites[0]
    assert (suite.difference, suite.worst) == (0, ())


def test_an_allowed_drop_is_allowed(tmp_path):
    a, b = write_run(tmp_path / "a", GOOD), write_run(tmp_path / "b", BAD)
    assert gate(a, b, max_drop=10)[0] == 0
    assert gate(a, b, max_drop=0.5)[0] == 1


def test_one_sample_a_problem_uses_the_exact_test(tmp_path):
    a = write_run(tmp_path / "a", {"puzzles": {f"p{i}": 1 for i in range(10)}}, k=1)
    b = write_run(tmp_path / "b", {"puzzles": {f"p{i}": int(i > 4) for i in range(10)}}, k=1)
    c = write_run(tmp_path / "c", {"puzzles": {f"p{i}": int(i > 3) for i in range(10)}}, k=1)
    assert regress(a, b).suites[0].p_value == pytest.approx(1 / 32)
    assert [regress(a, run).status for run in (b, c)] == ["regressed", "ok"]  # 1/32 and 1/16


def test_several_suites_share_the_error_rate(tmp_path):
    one = {"x": {f"p{i}": 1 for i in range(10)}}
    drop = {"x": {f"p{i}": int(i > 4) for i in range(10)}}
    still = {"y": {"q0": 1, "q1": 0}}
    alone = regress(write_run(tmp_path / "a", one, 1), write_run(tmp_path / "b", drop, 1))
    both = regress(write_run(tmp_path / "c", one | still, 1), write_run(tmp_path / "d", still | drop, 1))
    assert (alone.status, both.status) == ("regressed", "ok")
    assert both.suites[0].p_adjusted == pytest.approx(2 / 32)


def test_a_rise_of_the_truncated_share_is_a_regression_of_that_metric(tmp_path):
    a, b = write_run(tmp_path / "a", GOOD), write_run(tmp_path / "b", BAD, wrong="truncated")
    result = regress(a, b, metric="truncated")
    assert result.status == "regressed"
    assert result.suites[0].base == 100
    assert regress(a, write_run(tmp_path / "c", BAD), metric="truncated").status == "ok"


@pytest.mark.parametrize(
    "change, field",
    [
        ({"sampling": {"temperature": 0.8, "top_p": 0.95, "max_tokens": 64}}, "sampling.temperature"),
        ({"sampling": {"temperature": 0.6, "top_p": 0.95, "max_tokens": 32}}, "sampling.max_tokens"),
        ({"sampling": {"temperature": 0.6, "top_p": 0.95, "max_tokens": 64, "min_p": 0.1}}, "sampling.min_p"),
        ({"prompt": "official"}, "prompt"),
        ({"judge": {"name": "math", "mode": "strict", "version": 2}}, "judge.version"),
        ({"judge": {"name": "math", "mode": "math-verify", "version": 1}}, "judge.mode"),
        ({"k": 4}, "samples"),
    ],
)
def test_runs_of_other_parameters_are_not_comparable(tmp_path, change, field):
    a, b = write_run(tmp_path / "a", GOOD), write_run(tmp_path / "b", GOOD, **change)
    with pytest.raises(IncompleteError, match=rf"^not comparable \({field}\): {field} is ") as caught:
        gate(a, b)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)


def test_seed_engine_and_limit_may_differ(tmp_path):
    a = write_run(tmp_path / "a", GOOD)
    b = write_run(tmp_path / "b", GOOD, seed=9, limit=20, engine={"name": "hf", "dtype": "float32"})
    assert regress(a, b).status == "ok"


def test_other_suites_problems_or_content_are_not_comparable(tmp_path):
    a = write_run(tmp_path / "a", GOOD)
    fewer = write_run(tmp_path / "b", {"puzzles": {f"p{i}": 7 for i in range(19)}})
    other = write_run(tmp_path / "c", {"aime24": GOOD["puzzles"]})
    content = write_run(tmp_path / "d", GOOD)
    manifest = json.loads((content / "manifest.json").read_text())
    manifest["inputs"]["suite:puzzles"] = "bb"
    (content / "manifest.json").write_text(json.dumps(manifest))
    results = [regress(a, run) for run in (fewer, other, content)]
    assert {r.status for r in results} == {"not_comparable"}
    assert [r.field for r in results] == ["problems", "suites", "inputs.suite:puzzles"]
    assert "problem 'p19' of puzzles is in" in results[0].reason


def test_incomplete_runs_are_not_comparable(tmp_path):
    a = write_run(tmp_path / "a", GOOD)
    broken = write_run(tmp_path / "b", GOOD, wrong="judge_error")
    cut = write_run(tmp_path / "c", GOOD)
    lines = (cut / "verdicts.jsonl").read_text().splitlines(keepends=True)
    (cut / "verdicts.jsonl").write_text("".join(lines[:-3]) + lines[-3][:20])
    unscored = write_run(tmp_path / "d", GOOD)
    (unscored / "scores.json").unlink()
    results = [regress(a, run) for run in (broken, cut, unscored)]
    assert [r.field for r in results] == ["judge_errors", "missing", "scores"]
    assert "20 judge errors in puzzles" in results[0].reason
    assert "lacks 3 verdicts of puzzles" in results[1].reason
    assert regress(cut, a).status == "not_comparable", "whichever side it is on"


def test_a_run_that_was_extended_and_not_finished_is_not_comparable(tmp_path):
    """More problems than scores.json knows, each with all its samples: only the old scores.json tells."""
    a, grown = write_run(tmp_path / "a", GOOD), write_run(tmp_path / "b", GOOD)
    scores = json.loads((grown / "scores.json").read_text())
    scores["puzzles"]["per_problem"] = scores["puzzles"]["per_problem"][:10]
    (grown / "scores.json").write_text(json.dumps(scores))
    assert regress(a, grown).field == "scores"


def test_a_corrupt_row_is_bad_input_with_its_line(tmp_path):
    a, b = write_run(tmp_path / "a", GOOD), write_run(tmp_path / "b", GOOD)
    lines = (b / "verdicts.jsonl").read_text().splitlines()
    lines[16] = lines[16][:-5]
    (b / "verdicts.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"verdicts\.jsonl:17: not valid JSON"):
        regress(a, b)
    with pytest.raises(DataError, match="is no run folder"):
        regress(a, tmp_path / "nowhere")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"metric": "avgk"}, "unknown metric 'avgk'; did you mean 'avg@k'"),
        ({"max_drop": -1}, "--max-drop is -1"),
        ({"max_drop": float("nan")}, "--max-drop is nan"),
        ({"confidence": 95}, "--confidence is 95"),
    ],
)
def test_values_that_are_not_allowed(tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        regress(tmp_path, tmp_path, **options)


def test_json_output_is_one_object_also_when_not_comparable(tmp_path):
    a, b = write_run(tmp_path / "a", GOOD), write_run(tmp_path / "b", BAD)
    code, lines = gate(a, b, as_json=True)
    loaded = json.loads("\n".join(lines))
    assert (code, loaded["status"], loaded["format"]) == (1, "regressed", 1)
    assert loaded["suites"][0]["worst"][0] == {"problem_id": "p0", "base": 7, "candidate": 0}
    printed: list[str] = []
    with pytest.raises(IncompleteError):
        run_regress(a, write_run(tmp_path / "c", GOOD, k=2), as_json=True, echo=printed.append)
    assert json.loads(printed[0])["field"] == "samples"


def rejections(chances, other, k: int, runs: int, rng, **options) -> float:
    """The share of simulated pairs that the gate's own function calls regressed at 95 %."""
    pairs = zip(*(rng.binomial(k, p, (runs, len(p))).tolist() for p in (chances, other)), strict=True)
    found = 0
    for base, candidate in pairs:
        rows = [[Count(right, k) for right in side] for side in (base, candidate)]
        found += compare_counts(*rows, **options).p_value < 0.05
    return found / runs


def test_false_alarms_stay_below_their_rate():
    """A/A pairs, seeded: mixed difficulties at k = 64, 16, 2 and 1; nearly all right; nearly all wrong; ties only."""
    np = pytest.importorskip("numpy")
    rng = np.random.default_rng(6)
    mixed = rng.beta(0.6, 0.6, 30)
    cases = {
        "30 x 64": (mixed, 64), "30 x 16": (mixed, 16), "30 x 2": (mixed, 2), "k = 1": (mixed, 1),
        "easy": (np.full(30, 0.995), 16), "hard": (np.full(30, 0.01), 16), "ties": (np.ones(30), 16),
        "easy, k = 1": (np.full(100, 0.97), 1),
    }  # fmt: skip
    rates = {name: rejections(p, p, k, 2000, rng) for name, (p, k) in cases.items()}
    assert max(rates.values()) <= 0.055, rates
    assert rates["ties"] == 0


def test_false_alarms_at_the_edge_of_an_allowed_drop():
    np = pytest.importorskip("numpy")
    rng = np.random.default_rng(7)
    base = rng.uniform(0.1, 0.9, 60)
    assert rejections(base, base - 0.05, 16, 1500, rng, max_drop=5) <= 0.055
    assert rejections(base, base - 0.05, 1, 1500, rng, max_drop=5) <= 0.055


def test_a_true_drop_of_three_points_is_caught():
    """30 x 64 with a mean p (1 - p) of about 0.10: the normal theory says 89 %."""
    np = pytest.importorskip("numpy")
    rng = np.random.default_rng(8)
    base = np.where(np.arange(30) < 15, 0.9, 0.15)
    assert rejections(base, base - 0.03, 64, 500, rng) >= 0.8
