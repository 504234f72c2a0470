"""The demo at several seeds: keeps each run's raw metrics under docs/demo/ and writes the tables of docs/demo.md.

make seeds

The chains and the programs are run, measured and kept apart; what is kept already is only read again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pages import write_part

from klearbench.store import read_records
from klearbench.types import Status, Verdict

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs" / "demo"
CHAINS = "import demo; demo.code = lambda out, seed: {}; demo.main()"
CODE = "import sys, pathlib, demo; demo.code(pathlib.Path(sys.argv[4]), int(sys.argv[2]))"
"""The two parts of the demo, each by itself; arguments as demo.py takes them."""
COSTS = ("wall_s", "cpu_s", "peak_mb")


def main() -> None:
    """Run what is missing of each seed and write both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        out = ROOT / "runs" / f"demo-seed{seed}"
        if not (DOCS / f"seed-{seed}.json").exists():
            shutil.rmtree(out, ignore_errors=True)
            keep(f"seed-{seed}", seed, out / "train", run_part(CHAINS, seed, out), chain_scores)
        if not (DOCS / f"code-seed-{seed}.json").exists():
            for folder in ("code-data", "code-train"):
                shutil.rmtree(out / folder, ignore_errors=True)
            keep(f"code-seed-{seed}", seed, out / "code-train", run_part(CODE, seed, out), code_scores)
    write_table("table", ("teacher", "SFT", "GPPO"), "seed-*.json", _score)
    write_table("programs", ("teacher: tests passed, right", "SFT", "GPPO"), "code-seed-*.json", _shares)


def run_part(part: str, seed: int, out: Path) -> dict[str, float]:
    """One part from nothing in a subprocess; its wall time, CPU time (seconds) and largest process (MB)."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    # As `python recipes/puzzles/demo.py` would be started: its folder is the first to import from.
    command = [sys.executable, "-c", part, "--seed", str(seed), "-o", str(out)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "recipes" / "puzzles")}
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(time.monotonic() - began), "cpu_s": round(cpu), "peak_mb": round(after.ru_maxrss / 1024)}


def keep(name: str, seed: int, run: Path, cost: dict[str, float], scores: Callable[[Path], Any]) -> None:
    """Copy what the table rests on: metrics of every step, and the three scores."""
    DOCS.mkdir(parents=True, exist_ok=True)
    shutil.copy(run / "metrics.jsonl", DOCS / f"{name}.metrics.jsonl")
    row = {"seed": seed, **cost, "cpus": os.cpu_count(), "scores": scores(run)}
    (DOCS / f"{name}.json").write_text(json.dumps(row, indent=1) + "\n")


def chain_scores(run: Path) -> dict[str, Any]:
    """What klearbench says of the teacher and of the model after each stage."""
    found = {"teacher": run.parent / "teacher", **_evaluations(run)}
    return {name: json.loads((path / "scores.json").read_text())["puzzles"] for name, path in found.items()}


def code_scores(run: Path) -> dict[str, Any]:
    """Percent of tests passed and of programs right, over the teacher's own data and the held-out programs."""
    found = {"teacher": run.parent / "code-data" / "work", **_evaluations(run)}
    scores = {}
    for name, path in found.items():
        verdicts = read_records(path / "verdicts.jsonl", Verdict)
        passed = sum(v.score or 0.0 for v in verdicts) / len(verdicts)
        right = sum(v.status is Status.correct for v in verdicts) / len(verdicts)
        scores[name] = {"programs": len(verdicts), "passed": round(100 * passed, 2), "right": round(100 * right, 2)}
    return scores


def _evaluations(run: Path) -> dict[str, Path]:
    return {stage: next((run / "evals").glob(f"{stage}-*")) for stage in ("sft", "gppo")}


def write_table(name: str, heads: tuple[str, ...], kept: str, cell: Callable[[dict[str, Any]], str]) -> None:
    """Write a Markdown table between its two marks in docs/demo.md, and print it."""
    rows = sorted((json.loads(path.read_text()) for path in DOCS.glob(kept)), key=lambda row: row["seed"])
    lines = [f"| seed | {' | '.join(heads)} | wall s | CPU s | peak MB |", "|---" * (len(heads) + 4) + "|"]
    for row in rows:
        cells = [row["seed"], *(cell(row["scores"][n]) for n in ("teacher", "sft", "gppo")), *(row[n] for n in COSTS)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    begin = f"<!-- {name}: written by benchmarks/demo_seeds.py -->"
    write_part("demo.md", name, "\n".join(lines), begin)
    print("\n".join([begin, *lines, f"<!-- end of {name} -->"]))


def _score(score: dict[str, Any]) -> str:
    low, high = score["interval"]
    return f"{score['avg']:.1f} ({low:.1f} to {high:.1f})"


def _shares(score: dict[str, Any]) -> str:
    return f"{score['passed']:.1f} %, {score['right']:.1f} %"


if __name__ == "__main__":
    main()
