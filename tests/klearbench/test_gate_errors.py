"""The gate's error rates: a faster form of benchmarks/gate_errors.py, seeded, and pairs of run folders by command."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_tools import klearbench, write_run

np = pytest.importorskip("numpy")

from benchmarks import gate_cells as sim  # noqa: E402  (it needs numpy)

NULL = {cell.name: cell for cell in sim.null_cells()}
PAIRS = 600


def above(bound: float, pairs: int) -> float:
    """What so many pairs may show of a true rate at the bound: two standard errors more."""
    return bound + 200 * (bound / 100 * (1 - bound / 100) / pairs) ** 0.5


@pytest.mark.parametrize("name", [name for name in NULL if "1319" not in name and "500" not in name])
def test_false_alarms_stay_within_their_rate(name: str) -> None:
    pairs = PAIRS if "279" not in name else PAIRS // 2
    assert sim.alarm_rate(NULL[name], pairs, seed=11) <= above(5.0, pairs)


def test_ties_raise_no_alarm() -> None:
    assert sim.alarm_rate(NULL["ties (p is 0 or 1), 30 x 64"], 100, seed=12) == 0


@pytest.mark.parametrize("number", range(len(sim.edge_cells())), ids=[cell.name for cell in sim.edge_cells()])
def test_a_drop_of_the_margin_is_rarely_called_proven(number: int) -> None:
    assert sim.false_proofs(sim.edge_cells()[number], PAIRS // 2, seed=13) <= above(5.0, PAIRS // 2)


@pytest.mark.parametrize(("noise", "least"), [(0.05, 95), (0.08, 88), (0.11, 80), (0.18, 65)])
def test_a_true_drop_of_three_points_is_caught_and_the_plan_knows(noise: float, least: float) -> None:
    caught = sim.power(noise, 3.0, PAIRS, seed=14)
    assert caught >= least
    assert sim.planned(noise, 3.0) == pytest.approx(caught, abs=2 + 200 * (0.25 / PAIRS) ** 0.5)


@pytest.mark.parametrize("number", range(len(sim.coverage_cells())), ids=[c.name for c, _ in sim.coverage_cells()])
def test_printed_intervals_cover_the_true_change(number: int) -> None:
    cell, truth = sim.coverage_cells()[number]
    pairs = PAIRS // 2
    inside, width, naive, wide = sim.covered(cell, truth, pairs, seed=15)
    assert inside >= 93 - 200 * (0.93 * 0.07 / pairs) ** 0.5
    if "mixed" in cell.name:
        assert wide > width and naive >= inside - 1, "two unpaired heaps know less"


@pytest.mark.parametrize(("n", "k"), [(30, 64), (30, 8), (100, 1)])
def test_intervals_with_problems_resampled_cover_the_pools_change(n: int, k: int) -> None:
    assert sim.covered_problems(n, k, 300, seed=16) >= 93 - 200 * (0.93 * 0.07 / 300) ** 0.5


def test_twenty_pairs_of_run_folders_through_the_command_line(tmp_path: Path) -> None:
    rng, codes = np.random.default_rng(17), []
    for pair in range(20):
        rights = rng.binomial(16, sim.mixed(30), (2, 30)).tolist()
        runs = [
            write_run(tmp_path / f"{pair}-{side}", {"s": {f"p{i}": r for i, r in enumerate(row)}}, 16, seed=side)
            for side, row in enumerate(rights)
        ]
        codes.append(klearbench("regress", *runs).code)
    assert set(codes) <= {0, 1} and sum(codes) <= 3
