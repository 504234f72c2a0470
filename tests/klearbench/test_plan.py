"""`regress BASE --plan`: the samples that a gate needs, by hand and by simulation through the gate's own decision."""

from __future__ import annotations

import json
import math
from statistics import NormalDist

import pytest
from gate_tools import klearbench, one, rows, write_run

from klearbench.scoring.gate import GateOptions
from klearbench.scoring.metrics import read_eval
from klearbench.scoring.plan import plan


def planned(tmp_path, rights, k, drop=3.0, power=0.8, **options):
    path = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
    run = read_eval(write_run(path, {"s": {f"p{i}": right for i, right in enumerate(rights)}}, k))
    return plan(run, drop, GateOptions(**options), power)


def test_the_samples_needed_by_hand(tmp_path):
    """40 problems, each 4 of 8: p (1 - p) without bias is 4*4/(8*7) = 2/7, but never above that of the mean, 1/4.

    After a drop of 5 points p is .45. Normal theory with the smoothing term, solved for the least k.
    """
    (found,) = planned(tmp_path, [4] * 40, 8, drop=5)
    assert (found.noise, found.k, found.problems, found.between) == (0.25, 8, 40, False)
    z, wanted = 1.6448536, 1.6448536 + 0.8416212

    def enough(k: int) -> bool:
        error = math.sqrt((0.25 + 0.45 * 0.55) / (40 * k) + 2 * (z / (40 * k)) ** 2)
        return 0.05 / error >= wanted

    assert found.samples == next(k for k in range(1, 1000) if enough(k))
    error = math.sqrt((0.25 + 0.45 * 0.55) / 320 + 2 * (z / 320) ** 2)
    assert found.power == pytest.approx(NormalDist().cdf(0.05 / error - z), abs=1e-6)
    drop = found.visible / 100
    after = (0.5 - drop) * (0.5 + drop)
    assert drop == pytest.approx(wanted * math.sqrt((0.25 + after) / 320 + 2 * (z / 320) ** 2), rel=1e-4)


@pytest.mark.parametrize("low, high, drop", [(0.1, 0.9, 4), (0.6, 1.0, 4)])
def test_the_planned_samples_have_the_power_in_the_gate_itself(tmp_path, low, high, drop):
    """Simulated: the base's chances against the same, all lowered in proportion, through `decide`."""
    np = pytest.importorskip("numpy")
    rng = np.random.default_rng(4)
    chances = np.linspace(low, high, 30)
    # A base of many samples, so that what is checked is the plan and not the luck of the base's draw.
    (found,) = planned(tmp_path, (chances * 64).round().astype(int).tolist(), 64, drop=drop)
    k, runs = found.samples, 400
    after = chances * (1 - drop / 100 / chances.mean())
    seen = sum(
        one(rows(a, k), rows(b, k), listing=False).status == "regressed"
        for a, b in zip(
            rng.binomial(k, chances, (runs, 30)).tolist(), rng.binomial(k, after, (runs, 30)).tolist(), strict=True
        )
    )
    assert seen / runs == pytest.approx(0.8, abs=0.03 + 2 * math.sqrt(0.16 / runs))


def test_proof_needs_the_gap_between_the_true_drop_and_the_margin(tmp_path):
    """With no true drop and a margin of 5: as many samples as a drop of 5 at no margin, but for the lower p(1-p)."""
    (found,) = planned(tmp_path, [4] * 40, 8, drop=0, prove=True, max_drop={"": 5})
    z, wanted = 1.6448536, 1.6448536 + 0.8416212
    assert found.samples == next(
        k
        for k in range(1, 1000)
        if 0.05 / math.sqrt(0.5 / (40 * k) + 2 * (z / (40 * k)) ** 2) >= wanted
    )  # fmt: skip
    assert found.visible == pytest.approx(100 * wanted * math.sqrt(0.5 / 320 + 2 * (z / 320) ** 2), rel=1e-4)


def test_several_tests_need_more_and_a_proof_does_not(tmp_path):
    run = read_eval(write_run(tmp_path / "run", {"x": {f"p{i}": 4 for i in range(40)}, "y": {"q": 4, "r": 4}}))
    both, alone = (plan(run, 5, GateOptions(suites=suites)) for suites in ((), ("x",)))
    assert (both[0].suite, both[1].suite) == ("x", "y")
    assert both[0].samples > alone[0].samples
    proofs = [plan(run, 0, GateOptions(suites=s, prove=True, max_drop={"": 5})) for s in ((), ("x",))]
    assert proofs[0][0].samples == proofs[1][0].samples


def test_one_sample_a_problem_bounds_the_noise_and_says_so(tmp_path):
    (found,) = planned(tmp_path, [1] * 30 + [0] * 10, 1)
    assert (found.between, found.noise) == (True, pytest.approx(3 / 16))
    done = klearbench("regress", write_run(tmp_path / "k1", {"s": {f"p{i}": i % 2 for i in range(40)}}, 1), "--plan")
    assert done.code == 0 and "mean p(1-p) 0.250 at most (k = 1 tells no more)" in done.out[0]
    assert done.out[0].startswith("s avg@1: a true drop of 3 points is seen (allowed drop 0) in ")


def test_a_problem_that_is_always_right_needs_few_samples_and_a_hard_suite_can_not_fall(tmp_path):
    easy, mixed = planned(tmp_path, [8] * 40, 8)[0], planned(tmp_path, [4] * 40, 8)[0]
    assert easy.noise == 0 and easy.samples < mixed.samples / 3
    hard = planned(tmp_path, [0] * 40, 8)[0]
    assert math.isfinite(hard.power) and hard.noise == 0


def test_more_than_any_number_of_samples_is_told(tmp_path):
    (found,) = planned(tmp_path, [4], 8, drop=0.001)
    assert found.samples is None
    run = write_run(tmp_path / "one", {"s": {"p": 4}})
    assert "80 % needs more samples than 65,536 a problem" in klearbench("regress", run, "--plan", 0.001).out[0]


@pytest.mark.parametrize(
    "words, message",
    [
        (("--plan", 3, "--max-drop", 3), "a drop of 3 is within --max-drop 3 (s, avg@k) and is never to be seen"),
        (("--plan", 0), "--plan 0: a drop of 0 is within --max-drop 0"),
        (("--plan", 3, "--prove"), "a true drop of 3 can't be shown to be below --max-drop 0 (s, avg@k)"),
        (("--plan", 3, "--prove", "--max-drop", 3), "can't be shown to be below --max-drop 3"),
        (("--plan", 101), "--plan"),
        (("--plan", "nan"), "--plan"),
        (("--plan", 3, "--power", 1), "--power"),
        (("--plan", 3, "--suite", "x"), "has no suite"),
    ],
)
def test_plans_that_make_no_sense_are_refused_in_one_line(tmp_path, words, message):
    done = klearbench("regress", write_run(tmp_path / "run", {"s": {"p": 4, "q": 3}}), *words)
    assert (done.code, len(done.err), done.out) == (2, 1, [])
    assert message in done.err[0]


def test_a_plan_as_json_and_for_every_metric(tmp_path):
    run = write_run(tmp_path / "run", {"s": {f"p{i}": 4 for i in range(20)}}, wrong="truncated")
    metrics = [word for name in ("avg@k", "truncated", "length", "judge-errors") for word in ("--metric", name)]
    done = klearbench("regress", run, "--plan", 4, "--json", *metrics)
    loaded = json.loads("\n".join(done.out))
    assert [p["metric"] for p in loaded["plans"]] == ["avg@k", "truncated", "length", "judge-errors"]
    assert loaded["plans"][0]["samples"] == loaded["plans"][1]["samples"], "half right, half truncated: one noise"
    assert loaded["plans"][2]["samples"] == 1, "lengths without scatter"
