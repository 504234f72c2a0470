"""The gate on the demo's checkpoints: halves of one evaluation, which are alike, and the stages against each other.

    python benchmarks/gate_demo.py runs/demo-seed0 [--splits 2000] [--write]

Halves: each problem's samples fall at random into two runs, which `scoring.gate.decide` compares, again and again. The
stages go through `scoring.regress`, as by the command. --write puts the tables into docs/gate.md. Half a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from pages import write_part

from klearbench.reports.markdown import pipe_table
from klearbench.reports.tables import Table
from klearbench.scoring.gate import GateOptions, SuiteGate, SuitePair, decide
from klearbench.scoring.groups import ProblemScore
from klearbench.scoring.metrics import read_eval
from klearbench.scoring.regress import EXIT_CODES, regress
from klearbench.types import Status

SUITE, METRICS, LEVEL = "puzzles", ("avg@k", "truncated", "length"), 0.05


def samples(run: Path) -> tuple[list[str], np.ndarray]:
    """Of an evaluation: the problems, and [problem, sample, (right, truncated, tokens)]."""
    found = read_eval(run)
    tokens = {sample.key: sample.completion_tokens for sample in found.samples}
    rows: dict[str, list[tuple[int, int, int]]] = {}
    for v in sorted(found.verdicts, key=lambda v: v.key):
        facts = (int(v.status is Status.correct), int(v.status is Status.truncated), tokens[v.key])
        rows.setdefault(v.problem_id, []).append(facts)
    return list(rows), np.array(list(rows.values()), dtype=np.int64)


def halves(run: Path, splits: int, seed: int = 0) -> Iterator[list[SuiteGate]]:
    """The gate's results on pairs of halves, a result for each of METRICS."""
    problems, facts = samples(run)
    rng, k = np.random.default_rng(seed), facts.shape[1] // 2
    options = GateOptions(metrics=METRICS)
    for _ in range(splits):
        mixed = rng.permuted(np.broadcast_to(np.arange(facts.shape[1]), facts.shape[:2]), axis=1)[:, :, None]
        drawn = np.take_along_axis(facts, mixed, axis=1)
        pair = SuitePair(SUITE, k, half(problems, drawn[:, :k]), half(problems, drawn[:, k : 2 * k]))
        yield decide([pair], options, listing=False)


def half(problems: Sequence[str], facts: np.ndarray) -> list[ProblemScore]:
    """Counts of some samples of each problem."""
    k, sums, squares = facts.shape[1], facts.sum(1).tolist(), (facts[:, :, 2] ** 2).sum(1).tolist()
    return [
        ProblemScore(problem, right, k, cut, 0, k, tokens, squared)
        for problem, (right, cut, tokens), squared in zip(problems, sums, squares, strict=True)
    ]


def alarms(run: Path, splits: int) -> list[float]:
    """Percent of the splits that regress: in each metric asked by itself, and in any of them asked together."""
    counts = [0] * (len(METRICS) + 1)
    for tests in halves(run, splits):
        for i, test in enumerate(tests):
            counts[i] += test.p_value < LEVEL  # of one test alone the p-value isn't shared
        counts[-1] += any(test.status == "regressed" for test in tests)
    return [100 * count / splits for count in counts]


def stages(run: Path) -> dict[str, Path]:
    """The demo's evaluations of one suite and one set of parameters."""
    trained = {s.upper(): next((run / "train" / "evals").glob(f"{s}-*")) for s in ("sft", "gppo")}
    return {"teacher": run / "teacher", **trained}


def compared(base: str, candidate: str, runs: dict[str, Path]) -> tuple[str, ...]:
    """A line of the second table: what `klearbench regress` says at its defaults."""
    result = regress(runs[base], runs[candidate])
    name = f"{base} -> {candidate}"
    if not result.tests:
        return (name, "", "", "", "", "", f"{result.status} ({result.field}), exit {result.exit_code}")
    (test,) = result.tests
    spans = (f"{low:+.1f} to {high:+.1f}" for low, high in filter(None, (test.interval, test.interval_naive)))
    p = "< 0.001" if test.p_value < 0.001 else f"{test.p_value:.3f}"
    verdict = f"{result.status}, exit {EXIT_CODES[result.status]}"
    return (name, f"{test.base:.1f} -> {test.candidate:.1f}", f"{test.change:+.1f}", *spans, p, verdict)


def tables(run: Path, splits: int) -> str:
    """Both tables as Markdown."""
    runs = stages(run)
    rates = tuple((name, *(f"{rate:.1f} %" for rate in alarms(path, splits))) for name, path in runs.items())
    split = Table(("Halves of one evaluation: alarms", *METRICS, "any of the three (Holm)"), rates, 1)
    pairs = (("SFT", "GPPO"), ("GPPO", "SFT"), ("teacher", "SFT"), ("SFT", "teacher"))
    head = ("Base -> candidate", "score", "change", "paired interval", "naive unpaired", "p", "verdict")
    lines = tuple(compared(base, candidate, runs) for base, candidate in pairs)
    error = 200 * (LEVEL * (1 - LEVEL) / splits) ** 0.5
    said = (
        f"By `benchmarks/gate_demo.py`: real samples, of the demo at seed 0. Each evaluation was split {splits:,} times"
        f" into halves of equal models; so many splits tell a rate of 5 % to within ±{error:.1f}."
    )
    return f"{said}\n\n{pipe_table(split)}\n{pipe_table(Table(head, lines, 1))}"


def main() -> None:
    """Print the tables, and with --write put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a folder of `make demo`")
    parser.add_argument("--splits", type=int, default=2000)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/gate.md")
    options = parser.parse_args()
    text = tables(options.run, options.splits)
    print(text)
    if options.write:
        write_part("gate.md", "gate_demo", text)


if __name__ == "__main__":
    main()
