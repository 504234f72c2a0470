"""What the harness costs beside the model: sample, judge, score and report with an engine that answers at once.

    python benchmarks/harness_overhead.py            30 problems x 64 samples of 2,000 tokens (8,000 characters)
    python benchmarks/harness_overhead.py --times 10 and ten times as many samples, for the memory

Each size runs in a process of its own; peak memory is that process's. The completions are reasoning-like text, thinking
closed, every one different, with integers, fractions, roots and tuples as answers, two thirds of them right.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROBLEMS, TOKENS, CHARS_A_TOKEN = 30, 2000, 4
TEXT = (
    "so we get the value of $x^2 + \\frac{1}{2}$ and then consider each case modulo 7 because the sum of all terms is"
    " $\\sqrt{3}$ times the area , therefore let us check n = 12 , wait , that gives 48 and not 36 ; try again with k"
)
WORDS = TEXT.split(" ")
ANSWERS = ("{n}", "\\frac{{{n}}}{{7}}", "{n}\\sqrt{{3}}", "({n}, {n})", "{n}\\pi")


def answer(problem: int, shift: int = 0) -> str:
    return ANSWERS[problem % len(ANSWERS)].format(n=problem * 8 + 3 + shift)


class Instant:
    """Answers at once."""

    batch_size = 256

    def identity(self) -> Mapping[str, Any]:
        return {"name": "instant"}

    def generate(self, requests: Sequence[Any], sampling: Any) -> list[Any]:
        return [self._one(request) for request in requests]

    def _one(self, request: Any) -> Any:
        from klearbench.engines.base import Generation
        from klearbench.types import FinishReason

        rng = random.Random(request.seed)
        problem = int(request.place[0][1:])
        room = TOKENS * CHARS_A_TOKEN
        words = rng.choices(WORDS, k=room // 5)
        text = " ".join(words)[: room - 60]
        final = answer(problem, rng.choice((0, 0, 1)))
        return Generation(f"<think>{text}</think> It is \\boxed{{{final}}}.", FinishReason.stop, 100, TOKENS)

    def close(self) -> None:
        """Nothing is held."""


def one_run(samples: int, workers: int) -> dict[str, float]:
    from klearbench.evaluate import EvalOptions, evaluate
    from klearbench.suites.files import load_problem_file

    with tempfile.TemporaryDirectory() as folder:
        rows = [{"id": f"q{n}", "problem": f"Problem {n}?", "answer": answer(n)} for n in range(PROBLEMS)]
        path = Path(folder) / "made.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        suite = load_problem_file(path, "made")
        start = time.perf_counter()
        (score,) = evaluate(
            Path(folder) / "run", [suite], Instant(), EvalOptions(samples=samples, judge_workers=workers)
        )
        wall = time.perf_counter() - start
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        report = (Path(folder) / "run" / "report.html").stat().st_size
    assert score.complete
    return {
        "samples": PROBLEMS * samples,
        "wall_s": wall,
        "cpu_s": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        "peak_mb": own.ru_maxrss / 1024,
        "report_mb": report / 1e6,
        "avg": score.avg or 0.0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--times", type=int, default=1, help="run this many times as many samples too")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one_run(arguments.samples, arguments.workers)))
        return
    for times in sorted({1, arguments.times}):
        words = ["--one", "--samples", str(arguments.samples * times), "--workers", str(arguments.workers)]
        done = subprocess.run([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        print(
            f"{found['samples']:.0f} samples of {TOKENS} tokens: {found['wall_s']:.1f} s wall,"
            f" {found['cpu_s']:.1f} CPU s, peak {found['peak_mb']:.0f} MiB, report {found['report_mb']:.1f} MB,"
            f" avg {found['avg']:.1f}"
        )


if __name__ == "__main__":
    main()
