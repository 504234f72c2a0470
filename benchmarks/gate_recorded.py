"""The gate on recorded programs of two real models: its paired interval, and the naive unpaired one beside it.

    python benchmarks/gate_recorded.py [--data ../shared/data] [--out runs/gate-recorded]

Programs of o1-mini and o1-preview for problems of LiveCodeBench V5, one each. Both are replayed and judged by
`klearbench eval` on the problems that both have, and compared by `klearbench regress` in both directions; then once
each on all of its own problems, which the gate refuses. Prints the table of docs/gate.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOLUTIONS = "lcb_v5_solutions_dev.jsonl"
MODELS = ("o1-mini", "o1-preview")
HEAD = ("base -> candidate", "problems", "base", "candidate", "lost / gained", "change", "paired interval",
        "naive interval", "problems resampled", "p", "verdict")  # fmt: skip


def main() -> None:
    """Replay, gate both ways, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "gate-recorded")
    arguments = parser.parse_args()
    programs = {model: recorded(arguments.data, model) for model in MODELS}
    both = programs[MODELS[0]].keys() & programs[MODELS[1]].keys()
    common = {model: {key: found[key] for key in found if key in both} for model, found in programs.items()}
    runs = {model: replay(arguments.data, arguments.out / model, common[model]) for model in MODELS}
    own = {model: replay(arguments.data, arguments.out / f"{model}-own", programs[model]) for model in MODELS}
    print(f"| {' | '.join(HEAD)} |\n{'|---' * len(HEAD)}|")
    for base, candidate in (MODELS, MODELS[::-1]):
        print(f"| {' | '.join(row(base, candidate, gate(runs[base], runs[candidate])))} |")
    refused = gate(own[MODELS[0]], own[MODELS[1]])
    print(f"\nEach on its own problems: exit {refused['exit_code']}, {refused['status']} ({refused['field']})")


def recorded(data: Path, model: str) -> dict[str, str]:
    """Problem -> the recorded program, of those whose label and official verdict agree."""
    rows = map(json.loads, (data / SOLUTIONS).read_text().splitlines())
    return {row["question_id"]: row["code"] for row in rows if row["model"].startswith(f"{model}-20") and row["agree"]}


def replay(data: Path, folder: Path, programs: dict[str, str]) -> Path:
    """Judge the programs as a model's answers; the run folder. A finished one is taken as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    completions = (
        {"problem_id": key, "sample_index": 0, "completion": f"```python\n{code}\n```\n"}
        for key, code in programs.items()
    )
    write_lines(folder / "completions.jsonl", map(json.dumps, completions))
    write_lines(folder / "ids.txt", programs)
    write_lines(folder / "dev.yaml", ("name: lcb-v5-dev", "suite: lcb-v5", "ids: ids.txt"))
    klearbench("eval", "--suite", folder / "dev.yaml", "--data-dir", data, "--engine", "replay", "--model",
               folder / "completions.jsonl", "--first-failure", "-o", folder / "run", codes=(0,))  # fmt: skip
    return folder / "run"


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file, a line each."""
    path.write_text("".join(f"{line}\n" for line in lines))


def gate(base: Path, candidate: Path) -> dict[str, Any]:
    """What `klearbench regress` says of two runs."""
    result: dict[str, Any] = json.loads(klearbench("regress", base, candidate, "--json", codes=(0, 1, 3)))
    return result


def klearbench(*words: object, codes: tuple[int, ...]) -> str:
    """The command's output. Exits with its errors when its exit code is none of `codes`."""
    command = [sys.executable, "-m", "klearbench.cli", *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    if done.returncode not in codes:
        sys.exit(done.stderr)
    return done.stdout


def row(base: str, candidate: str, result: dict[str, Any]) -> tuple[str, ...]:
    """One direction, as the cells of the table. One sample a problem: a problem is lost, gained or the same."""
    (test,) = result["tests"]
    lost = len(test["worst"])
    gained = lost + round(test["change"] * test["problems"] / 100)
    return (
        f"{base} -> {candidate}",
        str(test["problems"]),
        f"{test['base']:.1f}",
        f"{test['candidate']:.1f}",
        f"{lost} / {gained}",
        f"{test['change']:+.1f}",
        *(
            f"{test[name][0]:+.1f} to {test[name][1]:+.1f}"
            for name in ("interval", "interval_naive", "interval_problems")
        ),
        f"{test['p_adjusted']:.3f}",
        f"{result['status']} (exit {result['exit_code']})",
    )


if __name__ == "__main__":
    main()
