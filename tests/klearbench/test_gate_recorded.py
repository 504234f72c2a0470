"""Recorded programs of two real models, one a problem: the gate's paired interval, and the naive unpaired one."""

from __future__ import annotations

import json
from math import comb, sqrt

import pytest
from gate_tools import klearbench, refused, write_run
from tools import jsonl

WRONG_TESTS = "arc189_a"
"""Left out by the errata."""
OURS = {"o1-mini": {"abc375_b"}, "o1-preview": {"abc375_b", "abc367_g", "abc380_g"}}
"""Right by our judge and not by the label: suites/test_lcb_replay.py judges all of the programs, and finds these."""
MODELS = tuple(OURS)


@pytest.fixture
def right(shared):
    """Model -> problem -> is its program right by our judge? Those on which label and official verdict agree."""
    rows = jsonl(shared / "data" / "lcb_v5_solutions_dev.jsonl")
    return {
        model: {
            row["question_id"]: row["local_ok"] or row["question_id"] in ours
            for row in rows
            if row["model"].startswith(f"{model}-20") and row["agree"] and row["question_id"] != WRONG_TESTS
        }
        for model, ours in OURS.items()
    }


def run_of(path, right, keys):
    return write_run(path, {"lcb-v5": {key: int(right[key]) for key in keys}}, 1)


@pytest.mark.shared
def test_two_models_that_tie_pass_both_ways_and_pairing_narrows_the_interval(right, tmp_path):
    both = sorted(right[MODELS[0]].keys() & right[MODELS[1]].keys())
    mini, preview = (run_of(tmp_path / model, right[model], both) for model in MODELS)
    assert len(both) == 115
    for base, candidate in ((mini, preview), (preview, mini)):
        done = klearbench("regress", base, candidate, "--json")
        loaded = json.loads("\n".join(done.out))
        (test,) = loaded["tests"]
        assert (done.code, loaded["status"]) == (0, "ok")
        assert (test["base"], test["candidate"]) == pytest.approx((100 * 68 / 115, 100 * 68 / 115))
        assert len(test["worst"]) == 13, "as many as are gained"
        assert test["p_value"] == pytest.approx(sum(comb(26, i) for i in range(13, 27)) / 2**26)
        paired = 196 * sqrt(26 + 1.96**2) / 115
        naive = 196 * sqrt(2 * 68 * 47 / 115**3)
        assert test["interval"] == pytest.approx((-paired, paired), rel=1e-3)
        assert test["interval_naive"] == pytest.approx((-naive, naive), rel=1e-3)
        assert (round(paired, 1), round(naive, 1)) == (9.3, 12.7)


@pytest.mark.shared
def test_each_on_its_own_problems_is_refused(right, tmp_path):
    mini, preview = (run_of(tmp_path / model, right[model], sorted(right[model])) for model in MODELS)
    found = refused(mini, preview)
    assert found["field"] == "problems" and "of lcb-v5 is in" in found["reason"]
