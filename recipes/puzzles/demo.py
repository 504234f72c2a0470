"""The whole loop in one command: curate -> SFT -> GPPO -> eval -> regress, on puzzles, on a CPU, in minutes.

First on chains, whose answers are right or wrong; then on small programs, which earn the share of tests they pass.

    python recipes/puzzles/demo.py --seed 0 -o runs/demo-seed0

Every step is a command that a user would type, and is shown before it runs. Each resumes, so the demo does too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from klearbench.reports.text import interval, points
from klearbench.store import read_records
from klearbench.types import Status, Verdict
from klearrl.config import load_train_recipe

HERE = Path(os.path.relpath(Path(__file__).parent))
STORY = """
What RL did here: the teacher works a step out (`=`) or guesses it wrongly (`~`), and SFT taught the model both habits.
GPPO rewards right answers only, so the model drops the guessing. It gains no new skill: it picks among behaviours that
SFT taught."""


def main() -> None:
    """Parse, run the steps, print both tables; exits with the code of a step that failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="seed of the data, the weights, the rollouts, the samples")
    parser.add_argument("-o", "--out", type=Path, help="folder (default: runs/demo-seedN)")
    arguments = parser.parse_args()
    seed, out = arguments.seed, arguments.out or Path("runs") / f"demo-seed{arguments.seed}"
    began = time.monotonic()

    data, teacher, run = out / "data", out / "teacher", out / "train"
    sft, gppo = (run / "evals" / f"{s.name}-{s.steps}" for s in load_train_recipe(HERE / "train.yaml").stages)
    curate = [str(HERE / "curate.yaml"), "-o", str(data), "--set", f"seed={seed}", "--set", f"sources.0.seed={seed}"]
    step("1/7 curate: the teacher's traces, judged, filtered, as two datasets", "klearbench", "curate", *curate)
    asked = ["--samples", "8", "--temperature", "1", "--top-p", "1", "--max-tokens", "26", "--seed", str(seed)]
    step(
        "2/7 eval: the teacher on held-out puzzles",
        *("klearbench", "eval", "--suite", "puzzles", "--engine", "scripted", *asked, "-o", str(teacher)),
    )
    train = [str(HERE / "train.yaml"), "-o", str(run), "--set", f"data={data}", "--set", f"seed={seed}"]
    step("3/7 train: SFT, then GPPO, each evaluated at its end", "klearrl", "train", *train)
    report = out / "report.html"
    runs = [str(teacher), str(sft), str(gppo)]
    step("4/7 report: the three side by side", "klearbench", "report", *runs, "-o", str(report))
    step("5/7 regress: may GPPO replace SFT? (exit 0)", "klearbench", "regress", str(sft), str(gppo))
    step("    and SFT replace GPPO? (exit 1)", "klearbench", "regress", str(gppo), str(sft), expect=1)

    print("\nHeld-out puzzles, seed", seed)
    print(table({"teacher": teacher, "SFT": sft, "GPPO": gppo}))
    print(STORY)
    programs = code(out, seed)
    print("\nHeld-out programs: the soft reward (share of tests passed), and how many pass them all")
    print(code_table(programs))
    print(f"\nmodel:  {run / 'model'}\nreport: {report}\ntime:   {time.monotonic() - began:.0f} s")


def code(out: Path, seed: int) -> dict[str, Path]:
    """Curate and train on programs, judged in the local sandbox; the runs that are to be compared."""
    data, run = out / "code-data", out / "code-train"
    seeds = ["--set", f"seed={seed}", "--set", f"sources.0.seed={seed}"]
    curate = [str(HERE / "code-curate.yaml"), "-o", str(data), *seeds]
    step("6/7 curate programs: the teacher's, each run on its tests in a sandbox", "klearbench", "curate", *curate)
    train = [str(HERE / "code-train.yaml"), "-o", str(run), "--set", f"data={data}", "--set", f"seed={seed}"]
    step("7/7 train on programs: SFT, then GPPO with soft rewards", "klearrl", "train", *train)
    sft, gppo = (run / "evals" / f"{s.name}-{s.steps}" for s in load_train_recipe(HERE / "code-train.yaml").stages)
    return {"teacher": data / "work", "SFT": sft, "GPPO": gppo}


def code_table(runs: dict[str, Path]) -> str:
    """Means over the verdicts of several runs, one line each."""
    lines: list[Sequence[str]] = [("", "tests passed", "programs right")]
    for name, path in runs.items():
        verdicts = read_records(path / "verdicts.jsonl", Verdict)
        share = sum(v.score or 0.0 for v in verdicts) / len(verdicts)
        right = sum(v.status is Status.correct for v in verdicts) / len(verdicts)
        lines.append((name, f"{100 * share:.1f} %", f"{100 * right:.1f} %"))
    return "\n".join(f"  {a:<8} {b:>12}   {c:>14}" for a, b, c in lines)


def step(title: str, *command: str, expect: int = 0) -> None:
    """Show a command and run it; end the demo with its exit code unless that is the expected one."""
    print(f"\n== {title}\n$ {' '.join(command)}", flush=True)
    program = Path(sys.executable).parent / command[0]
    try:
        code = subprocess.run([str(program), *command[1:]], check=False).returncode
    except KeyboardInterrupt:
        sys.exit(130)
    if code != expect:
        print(f"demo: this command ended with {code}, {expect} was expected", file=sys.stderr)
        sys.exit(code or 1)


def table(runs: dict[str, Path]) -> str:
    """The scores of several runs of the puzzles suite, one line each."""
    lines: list[Sequence[str]] = [("", "avg@8", "95 % interval")]
    for name, path in runs.items():
        score = json.loads((path / "scores.json").read_text())["puzzles"]
        lines.append((name, points(score["avg"]), interval(tuple(score["interval"]))))
    return "\n".join(f"  {a:<8} {b:>6}   {c}" for a, b, c in lines)


if __name__ == "__main__":
    main()
