"""What comparisons that hang cost: 100 of them among 10,000 plain ones, beside the same rows without hangs.

    python benchmarks/judge_hangs.py [--rows 10000] [--hangs 100] [--limit 2.0] [--workers 2]

A fault point in the workers makes the marked rows loop for ever. The bound: the time they are waited for, shared by the
workers, and 20 % of the plain rows' time. All rows go to workers; nothing is decided in this process.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence

from klearbench.judging.dispatch import Reply
from klearbench.judging.pool import Pool

MARK = "hangs"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the times and the bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--hangs", type=int, default=100)
    parser.add_argument("--limit", type=float, default=2.0, help="CPU seconds for one row")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args(arguments)
    plain, hanging, replies = measure(asked.rows, asked.hangs, asked.limit, asked.workers)
    waited = asked.hangs * asked.limit / asked.workers
    wrong = faults(replies, asked.hangs)
    print(
        f"{asked.rows} rows on {asked.workers} workers: {plain:.2f} s; {asked.hangs} of them hang for"
        f" {asked.limit:g} s: {hanging:.2f} s, bound {plain * 1.2 + waited:.2f} s; {wrong} replies are not as expected"
    )


def measure(rows: int, hangs: int, limit_s: float, workers: int) -> tuple[float, float, list[Reply]]:
    """Seconds of wall time without and with hangs, and the replies with them. The hanging rows are spread evenly."""
    every = rows // hangs
    plain = [
        {"op": "strict", "gold": rf"{i}\sqrt{{2}}", "answer": rf"\sqrt{{{2 * i * i}}}"} for i in range(1, rows + 1)
    ]
    marked = [{**row, "answer": MARK} if i % every == every // 2 else row for i, row in enumerate(plain)]
    os.environ["KLEAR_FAULT"] = f"judge.compare:={MARK}:hang"
    try:
        with Pool(workers, time_limit_s=limit_s) as pool:
            pool.run_many(plain[: 4 * workers])  # the workers are warm
            start = time.perf_counter()
            pool.run_many(plain)
            middle = time.perf_counter()
            replies = pool.run_many(marked)
            return middle - start, time.perf_counter() - middle, replies
    finally:
        del os.environ["KLEAR_FAULT"]


def faults(replies: Sequence[Reply], hangs: int) -> int:
    """How many replies are not what the rows deserve: a plain row is equal, a marked one a timeout."""
    equal = sum(reply.value is not None and reply.value["equal"] is True for reply in replies)
    lost = sum(reply.error == "timeout" for reply in replies)
    return abs(hangs - lost) + abs(len(replies) - hangs - equal)


if __name__ == "__main__":
    main()
