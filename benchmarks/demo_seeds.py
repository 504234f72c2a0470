"""The demo at several seeds: keeps each run's raw metrics under docs/demo/ and writes the table of docs/demo.md.

make seeds
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs" / "demo"
BEGIN, END = "<!-- table: written by benchmarks/demo_seeds.py -->", "<!-- end of table -->"


def main() -> None:
    """Run the demo for each seed (finished runs are only read again) and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        if not (DOCS / f"seed-{seed}.json").exists():
            keep(seed, run_demo(seed))
    rows = [json.loads(path.read_text()) for path in sorted(DOCS.glob("seed-*.json"))]
    page = ROOT / "docs" / "demo.md"
    text = page.read_text()
    page.write_text(re.sub(re.escape(BEGIN) + ".*" + re.escape(END), lambda _: table(rows), text, flags=re.S))
    print(table(rows))


def run_demo(seed: int) -> dict[str, float]:
    """One demo from nothing in a subprocess; its wall time, CPU time (seconds) and largest process (MB)."""
    out = ROOT / "runs" / f"demo-seed{seed}"
    shutil.rmtree(out, ignore_errors=True)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    script = ROOT / "recipes" / "puzzles" / "demo.py"
    subprocess.run([sys.executable, str(script), "--seed", str(seed), "-o", str(out)], check=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(time.monotonic() - began), "cpu_s": round(cpu), "peak_mb": round(after.ru_maxrss / 1024)}


def keep(seed: int, cost: dict[str, float]) -> None:
    """Copy what the table rests on: metrics of every step, and the three scores."""
    DOCS.mkdir(parents=True, exist_ok=True)
    out = ROOT / "runs" / f"demo-seed{seed}"
    shutil.copy(out / "train" / "metrics.jsonl", DOCS / f"seed-{seed}.metrics.jsonl")
    evals = out / "train" / "evals"
    found = {"teacher": [out / "teacher"], "sft": evals.glob("sft-*"), "gppo": evals.glob("gppo-*")}
    scores = {n: json.loads((next(iter(p)) / "scores.json").read_text())["puzzles"] for n, p in found.items()}
    row: dict[str, Any] = {"seed": seed, **cost, "cpus": os.cpu_count(), "scores": scores}
    (DOCS / f"seed-{seed}.json").write_text(json.dumps(row, indent=1) + "\n")


def table(rows: list[dict[str, Any]]) -> str:
    """The Markdown table between its two marks."""
    lines = ["| seed | teacher | SFT | GPPO | wall s | CPU s | peak MB |", "|---|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda r: r["seed"]):
        cells = [_score(row["scores"][name]) for name in ("teacher", "sft", "gppo")]
        lines.append(f"| {row['seed']} | {' | '.join(cells)} | {row['wall_s']} | {row['cpu_s']} | {row['peak_mb']} |")
    return "\n".join([BEGIN, *lines, END])


def _score(score: dict[str, Any]) -> str:
    low, high = score["interval"]
    return f"{score['avg']:.1f} ({low:.1f} to {high:.1f})"


if __name__ == "__main__":
    main()
