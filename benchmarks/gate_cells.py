"""Settings in which the gate's error rates are simulated, and the rates: what gate_errors.py prints and a test checks.

A cell is two models with known chances. Its pairs of runs are drawn from these and go through `scoring.gate.decide`,
the function that decides in the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from klearbench.scoring.gate import GateOptions, SuiteGate, SuitePair, decide
from klearbench.scoring.groups import ProblemScore
from klearbench.scoring.metrics import EvalRun, score_suite
from klearbench.scoring.plan import plan

Chances = np.ndarray
Rng = np.random.Generator


def mixed(n: int) -> Chances:
    """Many easy, many hard, some between: quantiles of beta(0.4, 0.4); the mean p (1 - p) is .11."""
    return np.sort(np.random.default_rng(1).beta(0.4, 0.4, 4000))[np.linspace(40, 3959, n).astype(int)]


def strong(n: int) -> Chances:
    """A model at about 90 points: two thirds nearly always right, a few hard ones."""
    return np.concatenate([np.linspace(0.96, 1, n - n // 3), np.linspace(0.35, 0.95, n // 3)])


def even(n: int, noise: float) -> Chances:
    """Half the problems at p, half at 1 - p, with p (1 - p) = noise."""
    p = 0.5 + np.sqrt(0.25 - noise)
    return np.where(np.arange(n) % 2 == 0, p, 1 - p)


def ties(n: int) -> Chances:
    """Every problem always right or always wrong."""
    return (np.arange(n) % 3 > 0).astype(float)


def lowered(chances: Chances, points: float) -> Chances:
    """Every chance lowered in proportion, so that the score falls by so many points."""
    return chances * (1 - points / 100 / chances.mean())


def shares(rng: Rng, chances: Chances, k: int, pairs: int, faults: bool = False) -> Iterator[list[ProblemScore]]:
    """Rows of so many runs; with `faults` what is not good is truncated."""
    names = [f"p{i}" for i in range(len(chances))]
    for rights in rng.binomial(k, chances, (pairs, len(chances))).tolist():
        yield [ProblemScore(n, r, k, (k - r) if faults else 0, 0, k) for n, r in zip(names, rights, strict=True)]


def lengths(rng: Rng, n: int, k: int, pairs: int, longer: float = 1.0) -> Iterator[list[ProblemScore]]:
    """Lognormal lengths with a scatter of 0.8; the problems' means differ tenfold."""
    means = np.geomspace(1500, 15000, n)[:, None] * longer
    for _ in range(pairs):
        drawn = np.rint(means * rng.lognormal(-0.32, 0.8, (n, k))).astype(np.int64)
        sums, squares = drawn.sum(1).tolist(), (drawn**2).sum(1).tolist()
        yield [ProblemScore(f"p{i}", 0, k, 0, 0, k, sums[i], squares[i]) for i in range(n)]


@dataclass(frozen=True, slots=True)
class Cell:
    """One line of the table of false alarms. `base` and `candidate` draw rows: (rng, pairs) -> rows of each run."""

    name: str
    k: int
    base: Callable[[Rng, int], Iterator[list[ProblemScore]]]
    candidate: Callable[[Rng, int], Iterator[list[ProblemScore]]]
    options: GateOptions = field(default_factory=GateOptions)
    suites: int = 1

    def results(self, pairs: int, seed: int) -> Iterator[list[SuiteGate]]:
        """The gate's results, pair by pair."""
        rng = np.random.default_rng(seed)
        sides = [self.base(rng, pairs * self.suites), self.candidate(rng, pairs * self.suites)]
        for _ in range(pairs):
            suites = [SuitePair(f"s{i}", self.k, next(sides[0]), next(sides[1])) for i in range(self.suites)]
            yield decide(suites, self.options, listing=False)


def alike(name: str, chances: Chances, k: int, drop: float = 0.0, **options: object) -> Cell:
    """Two models of the same chances, or the second `drop` points below, which is just what is allowed."""
    gate = GateOptions(max_drop={"": drop}, **options)  # type: ignore[arg-type]
    faults = gate.metrics == ("truncated",)
    second = lowered(chances, drop) if drop else chances
    return Cell(
        name, k, lambda r, n: shares(r, chances, k, n, faults), lambda r, n: shares(r, second, k, n, faults), gate
    )


def of_lengths(n: int, k: int, rise: float = 0.0) -> Cell:
    gate = GateOptions(metrics=("length",), max_drop={"": rise})
    name = f"lengths, {n} x {k}" + (f", a rise of {rise:g} % allowed and there" if rise else "")
    return Cell(name, k, lambda r, m: lengths(r, n, k, m), lambda r, m: lengths(r, n, k, m, 1 + rise / 100), gate)


def null_cells() -> list[Cell]:
    """Pairs of models that are no worse than allowed."""
    cells = [
        alike(f"{what}, {n} x {k}", make(n), k)
        for what, make in (("mixed", mixed), ("strong (90 points)", strong))
        for n, k in ((30, 64), (30, 16), (279, 8))
    ]
    cells += [alike(f"all easy (p = .995), {n} x {k}", np.full(n, 0.995), k) for n, k in ((30, 64), (30, 16), (279, 8))]
    cells += [alike(f"all hard (p = .01), {n} x {k}", np.full(n, 0.01), k) for n, k in ((30, 64), (30, 16), (279, 8))]
    cells += [alike(f"ties (p is 0 or 1), {n} x {k}", ties(n), k) for n, k in ((30, 64), (279, 8))]
    cells += [alike(f"mixed, k = 1, {n} problems", mixed(n), 1) for n in (30, 279)]
    cells.append(alike("mixed, k = 1, 1319 problems", mixed(1319), 1))
    cells += [alike(f"mixed, {n} x {k}", mixed(n), k) for n, k in ((30, 2), (30, 4), (10, 4))]
    cells.append(
        Cell("five suites, mixed, 30 x 16 (any alarm)", 16, *[lambda r, n: shares(r, mixed(30), 16, n)] * 2, suites=5)
    )
    cells += [
        alike("mixed, 30 x 64, a drop of 2 allowed and there", mixed(30), 64, 2.0),
        alike("mixed, 279 x 8, a drop of 1 allowed and there", mixed(279), 8, 1.0),
        alike("mixed, k = 1, 279 problems, a drop of 3 allowed and there", mixed(279), 1, 3.0),
        alike("strong, k = 1, 500 problems, a drop of 1 allowed and there", strong(500), 1, 1.0),
        alike("truncated, p = .05, 30 x 64", np.full(30, 0.95), 64, metrics=("truncated",)),
        of_lengths(30, 64), of_lengths(30, 4), of_lengths(100, 1), of_lengths(30, 16, 10.0),
    ]  # fmt: skip
    return cells


def share_of(found: Iterator[bool]) -> float:
    """Percent of True."""
    values = list(found)
    return 100 * sum(values) / len(values)


def alarm_rate(cell: Cell, pairs: int, seed: int) -> float:
    """Percent of the pairs on which the gate regresses."""
    return share_of(any(t.status == "regressed" for t in tests) for tests in cell.results(pairs, seed))


def false_proofs(cell: Cell, pairs: int, seed: int) -> float:
    """Percent of the pairs, whose drop is just the margin, on which the drop is said to be below it."""
    return share_of(tests[0].p_within < 0.05 for tests in cell.results(pairs, seed))


POWER_NOISE = (0.05, 0.08, 0.11, 0.14, 0.18, 0.22)
POWER_DROPS = (1.0, 2.0, 3.0, 5.0)


def power(noise: float, drop: float, pairs: int, seed: int, n: int = 30, k: int = 64) -> float:
    """Percent of the pairs on which a true drop is caught; mean p (1 - p) of the base is `noise`."""
    chances = even(n, noise)
    cell = Cell("power", k, lambda r, m: shares(r, chances, k, m), lambda r, m: shares(r, lowered(chances, drop), k, m))
    return alarm_rate(cell, pairs, seed)


def planned(noise: float, drop: float, n: int = 30, k: int = 64) -> float:
    """The power in percent that `regress --plan` tells, from a run that has just these difficulties."""
    rng, found = np.random.default_rng(3), []
    for rows in shares(rng, even(n, noise), k, 20):
        score = replace(score_suite("s", (), (), [], k), per_problem=tuple(rows), problems=len(rows))
        run = EvalRun(Path("run"), {"config": {"samples": k}}, (), (), {"s": score}, True, {})
        found.append(plan(run, drop, GateOptions())[0].power)
    return 100 * float(np.mean(found))


def covered(cell: Cell, truth: float, pairs: int, seed: int) -> tuple[float, float, float, float]:
    """Percent of the pairs whose interval holds the true change, and its mean half-width: problems fixed, and naive."""
    inside, widths, count = [0, 0], [0.0, 0.0], 0
    for tests in cell.results(pairs, seed):
        count += 1
        for i, interval in enumerate((tests[0].interval, tests[0].interval_naive)):
            if interval is not None:
                inside[i] += interval[0] - 1e-9 <= truth <= interval[1] + 1e-9
                widths[i] += (interval[1] - interval[0]) / 2
    return (100 * inside[0] / count, widths[0] / count, 100 * inside[1] / count, widths[1] / count)


def covered_problems(n: int, k: int, pairs: int, seed: int) -> float:
    """Percent of the pairs whose interval with problems resampled holds the change of the pool: each problem's chances
    are drawn anew, beta(0.6, 0.6), and the second model's logit is 0.3 lower on average, with a scatter of 1."""
    rng = np.random.default_rng(seed)

    def pool(size: int) -> tuple[Chances, Chances]:
        p = np.clip(rng.beta(0.6, 0.6, size), 1e-6, 1 - 1e-6)
        return p, 1 / (1 + np.exp(-(np.log(p / (1 - p)) - 0.3 + rng.normal(0, 1, size))))

    before, after = pool(4_000_000)
    truth, inside = 100 * float((after - before).mean()), 0
    for _ in range(pairs):
        chances = pool(n)
        base, candidate = (next(shares(rng, p, k, 1)) for p in chances)
        interval = decide([SuitePair("s", k, base, candidate)], GateOptions(), listing=False)[0].interval_problems
        assert interval is not None
        inside += interval[0] <= truth <= interval[1]
    return 100 * inside / pairs


def coverage_cells() -> list[tuple[Cell, float]]:
    """Pairs with their true change."""
    cells = [(alike(f"mixed, {n} x {k}", mixed(n), k, 3.0), -3.0) for n, k in ((30, 64), (30, 16), (279, 8), (30, 2))]
    extremes = {"all easy (p = .995)": np.full(30, 0.995), "all hard (p = .01)": np.full(30, 0.01), "ties": ties(30)}
    cells += [(alike(f"{what}, 30 x 16", chances, 16), 0.0) for what, chances in extremes.items()]
    cells += [(alike(f"mixed, k = 1, {n} problems", mixed(n), 1, 3.0), -3.0) for n in (30, 279)]
    return [*cells, (of_lengths(30, 16, 10.0), 10.0), (of_lengths(100, 1, 10.0), 10.0)]


def edge_cells() -> list[Cell]:
    """Pairs whose true drop is the margin: what --prove may not call proven."""
    return [
        alike("mixed, 30 x 64, margin 2", mixed(30), 64, 2.0),
        alike("mixed, 279 x 8, margin 1", mixed(279), 8, 1.0),
        alike("strong, 30 x 16, margin 3", strong(30), 16, 3.0),
        alike("mixed, k = 1, 279 problems, margin 3", mixed(279), 1, 3.0),
        alike("strong, k = 1, 30 problems, margin 5", strong(30), 1, 5.0),
        of_lengths(30, 16, 10.0),
    ]
