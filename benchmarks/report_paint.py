"""How large a report is, how long it takes to write, and how soon a real Chromium shows it.

    python benchmarks/report_paint.py [--samples 20000 --chars 2000] [--random] [--max-bytes N]

Without sizes: 20,000 samples of 2,000 characters, 2,000 of 60,000, and the first again as random characters, which
compress worst. A line each: the file's size, completions beside it, seconds and peak memory of the writing process;
then, in the browser, seconds to the first contentful paint, to the first rows of the viewer, to a sample opened, and of
a search through all texts. Needs Chromium.
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
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import Page, chromium  # noqa: E402

from klearbench.store import JsonlWriter  # noqa: E402
from klearbench.types import FinishReason, Sample, Status, Verdict, to_row  # noqa: E402

K = 20
WORDS = 4000
CASES = ((20_000, 2_000, False), (2_000, 60_000, False), (20_000, 2_000, True))


def texts(chars: int, made_at_random: bool) -> Iterator[str]:
    """Words whose frequencies fall as those of a language, with numbers and formulas between them; or noise."""
    rng = random.Random(7)
    letters = "etaoinshrdlucmfwygpb"
    words = ["".join(rng.choices(letters, range(20, 0, -1), k=rng.randint(2, 9))) for _ in range(WORDS)]
    weights = [1 / (rank + 3) for rank in range(WORDS)]
    noise = [chr(code) for code in range(32, 127)]
    while True:
        if made_at_random:
            yield "".join(rng.choices(noise, k=chars))
            continue
        found = rng.choices(words, weights, k=chars // 5)
        for place in range(0, len(found), 9):
            a, b = rng.randrange(1000), rng.randrange(100)
            found[place] = rng.choice(
                (f"$x_{{{b % 9}}} = {a}^{{{b}}}$", f"\\(\\frac{{{a}}}{{{b}}}\\)", f"{a * b}.\n\n")
            )
        yield " ".join(found)[:chars]


def write_run(path: Path, samples: int, chars: int, made_at_random: bool) -> None:
    path.mkdir()
    config = {"command": "eval", "suites": ["made-up"], "samples": K, "sampling": {}, "engine": {}, "judge": {}}
    (path / "manifest.json").write_text(json.dumps({"format": 1, "config": config, "inputs": {}, "about": {}}))
    rng = random.Random(3)
    made = texts(chars, made_at_random)
    with JsonlWriter(path / "samples.jsonl") as sample_log, JsonlWriter(path / "verdicts.jsonl") as verdict_log:
        for number in range(samples):
            key = ("made-up", f"p{number // K}", number % K)
            text = next(made) if number < samples - 1 else next(made)[:-20] + " needle in the last"
            right = rng.random() < 0.6
            status = Status.correct if right else Status.wrong_answer
            sample_log.append(to_row(Sample(*key, 0, text, 50, chars // 4 + rng.randrange(chars), FinishReason.stop)))
            verdict_log.append(to_row(Verdict(*key, status, float(right), str(rng.randrange(1000)))))


def write_page(run: Path, out: Path, max_bytes: int | None) -> None:
    """What a child process does, so that its peak memory is that of one report."""
    from klearbench.reports.html import MAX_BYTES, write_report

    start = time.perf_counter()
    write_report([run], out, max_bytes=max_bytes or MAX_BYTES)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"written in {time.perf_counter() - start:.1f} s, peak {peak:.0f} MiB", end="; ")


def look(page: Page, out: Path) -> str:
    """Seconds in the browser, and what it complained of."""
    start = time.perf_counter()
    page.open(out)
    page.wait("document.querySelector('#list details')")
    rows = time.perf_counter() - start
    page.wait("performance.getEntriesByName('first-contentful-paint').length")
    paint = page.run("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    start = time.perf_counter()
    page.run("document.querySelector('#list summary').click()")
    page.wait("document.querySelector('#list .body p')")
    opened = time.perf_counter() - start
    start = time.perf_counter()
    page.run("document.querySelector('[name=text]').value = 'needle in the last'")
    page.run("document.querySelector('#filters').dispatchEvent(new Event('input'))")
    page.wait("/^1 of/.test(document.querySelector('#found').textContent)", 120)
    searched = time.perf_counter() - start
    times = f"first paint {paint:.2f} s, rows {rows:.2f} s, a sample {opened:.2f} s, search {searched:.1f} s"
    return f"{times}, complaints {page.complaints()}"


def measure(samples: int, chars: int, made_at_random: bool, max_bytes: int | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = folder / "report.html"
        write_run(folder / "run", samples, chars, made_at_random)
        print(f"{samples} x {chars}{' random' if made_at_random else ''} characters:", end=" ", flush=True)
        subprocess.run([sys.executable, __file__, "--write", str(folder), str(max_bytes or 0)], check=True)
        beside = list((folder / "report_files").glob("*"))
        print(f"{out.stat().st_size / 1e6:.1f} MB, {len(beside)} files beside it", end="; ", flush=True)
        with chromium(folder / "profile") as browser:
            print(look(Page(browser), out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--chars", type=int, default=2_000)
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--max-bytes", type=int)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write_page(Path(given.write[0]) / "run", Path(given.write[0]) / "report.html", int(given.write[1]))
        return
    for case in [(given.samples, given.chars, given.random)] if given.samples else CASES:
        measure(*case, given.max_bytes)


if __name__ == "__main__":
    main()
