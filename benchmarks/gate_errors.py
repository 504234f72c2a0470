"""Error rates of `klearbench regress` by simulation, through the function that decides there, `scoring.gate.decide`.

    python benchmarks/gate_errors.py [--pairs 20000] [--write]

Three tables: false alarms on pairs of equal models (and at the edge of an allowed drop), power against true drops, and
coverage of the printed intervals. --write puts them into docs/gate.md. 20,000 pairs take two cores about 20 minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from gate_cells import (
    POWER_DROPS,
    POWER_NOISE,
    alarm_rate,
    coverage_cells,
    covered,
    covered_problems,
    edge_cells,
    false_proofs,
    null_cells,
    planned,
    power,
)
from pages import write_part

BOUND, COVERED = 5.5, 93.0


def tables(pairs: int, jobs: int) -> tuple[list[str], bool]:
    """The lines of the page's part, and whether every bound held. What is beyond the first cells takes fewer pairs."""
    some = max(200, pairs // 5)
    sizes = [pairs] * FIRST + [some] * (len(null_cells()) - FIRST)
    lines = [
        f"By `benchmarks/gate_errors.py`: {pairs:,} pairs a cell of the first {FIRST} lines, {some:,} of all others"
        f" (a rate of 5 % then has a standard error of {100 * (0.05 * 0.95 / some) ** 0.5:.2f} %)."
    ]
    with ProcessPoolExecutor(jobs) as pool:
        alarms = [pool.submit(_alarm, i, size) for i, size in enumerate(sizes)]
        proofs = [pool.submit(_proof, i, some) for i in range(len(edge_cells()))]
        caught = [[pool.submit(power, noise, drop, some, 200 + i) for i, noise in enumerate(POWER_NOISE)]
                  for drop in POWER_DROPS]  # fmt: skip
        told = [[pool.submit(planned, noise, drop) for noise in POWER_NOISE] for drop in POWER_DROPS]
        covers = [pool.submit(_cover, i, some) for i in range(len(coverage_cells()))]
        resampled = [pool.submit(covered_problems, n, k, some, 400 + n) for n, k in POOL_SIZES]

        def row(*cells: str) -> None:
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)

        def section(*head: str) -> None:
            lines.append("")
            row(*head)
            row("---", *["---:"] * (len(head) - 1))

        held = True
        section("Equal models, or a drop that is just allowed", "false alarms")
        for cell, alarm, size in zip(null_cells(), alarms, sizes, strict=True):
            held = held and alarm.result() <= _above(BOUND, size)
            row(cell.name, f"{alarm.result():.1f} %")
        section("The true drop is the margin of `--prove`", "called proven")
        for cell, proof in zip(edge_cells(), proofs, strict=True):
            held = held and proof.result() <= _above(BOUND, some)
            row(cell.name, f"{proof.result():.1f} %")
        section("Caught at 30 x 64, allowed drop 0; mean p(1-p):", *(f"{noise:.2f}" for noise in POWER_NOISE))
        for drop, found, plans in zip(POWER_DROPS, caught, told, strict=True):
            rates = [(one.result(), other.result()) for one, other in zip(found, plans, strict=True)]
            row(f"a true drop of {drop:g}", *(f"{rate:.0f} % ({plan:.0f} %)" for rate, plan in rates))
            held = held and (drop != 3 or min(rate for rate, _ in rates[:3]) >= 80)
        lines.extend(["", "In brackets what `--plan` tells beforehand."])
        section("Interval of the change", "covers", "half-width", "naive unpaired: covers", "half-width")
        for (cell, _), cover in zip(coverage_cells(), covers, strict=True):
            inside, width, naive, wide = cover.result()
            held = held and inside >= COVERED
            other = (f"{naive:.1f} %", f"{wide:.1f}") if wide else ("-", "-")
            row(cell.name.partition(", a ")[0], f"{inside:.1f} %", f"{width:.1f}", *other)
        for (n, k), cover_one in zip(POOL_SIZES, resampled, strict=True):
            held = held and cover_one.result() >= COVERED
            row(f"problems resampled, {n} x {k}", f"{cover_one.result():.1f} %", "", "", "")
    return lines, held


FIRST = 16
"""Cells of the table of false alarms, in its order, that take all pairs."""


def _above(bound: float, pairs: int) -> float:
    """What fewer pairs than 20,000 may show of a rate at the bound."""
    return bound if pairs >= 20_000 else bound + 200 * (bound / 100 * (1 - bound / 100) / pairs) ** 0.5


POOL_SIZES = ((30, 64), (30, 8), (279, 8), (100, 1))


def _alarm(number: int, pairs: int) -> float:
    return alarm_rate(null_cells()[number], pairs, number)


def _proof(number: int, pairs: int) -> float:
    return false_proofs(edge_cells()[number], pairs, 100 + number)


def _cover(number: int, pairs: int) -> tuple[float, float, float, float]:
    cell, truth = coverage_cells()[number]
    return covered(cell, truth, pairs, 300 + number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/gate.md")
    options = parser.parse_args()
    began = time.perf_counter()
    lines, held = tables(options.pairs, options.jobs)
    if options.write:
        write_part("gate.md", "gate_errors", "\n".join(lines))
    print(f"{time.perf_counter() - began:.0f} s; every bound {'held' if held else 'did NOT hold'}")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
