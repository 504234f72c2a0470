"""Every reference answer of the benchmark files beside itself and 200 others, drawn from a seed, of all suites.

    python benchmarks/math_golds.py [--data ../shared/data] [--sample N] [--seed 0]

Each must equal itself under its suite's rule, and no other, except where both are one value. Prints the references
that don't equal themselves, and each pair that is equal without being one text, for a reader to confirm. Pairs with the
same text, white space and mark-up aside, are only counted.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from klearbench.judging.judge import MathJudge
from klearbench.suites.registry import load_suite
from klearbench.types import Answer, FinishReason, Sample, Status

SUITES = ("aime24", "aime25", "aime26", "hmmt25", "amc23", "math500", "gsm8k", "olympiad")
"""Files of problems that are no suites of their own yet, and their rules."""
OTHERS = 200
_BATCH = 20_000
_MARK_UP = re.compile(r"\\(?:left|right|displaystyle|text|mathrm|dfrac|tfrac|frac|,|;|!|\s)|[\s${}]")
_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)|\.0+(?!\d)|,(?=\d{3}(?!\d))")

_MARKS = re.compile(
    r"\^\{?\\circ\}?|\\%|\\\$|\\mbox\{[^{}]*\}(?:\^\d)?|\\text\{ ?(?:cm|m|inches|feet|degrees)\}(?:\^\d)?"
)
_NAME = re.compile(r"\A\$?\s*[A-Za-z](?:\([a-z]\))?\s*=")


@dataclass
class Found:
    """What was found: how many pairs, ids not equal to themselves, equal pairs of one text, and other equal pairs."""

    pairs: int = 0
    unequal_to_itself: list[str] = field(default_factory=list)
    same_text: int = 0
    equal: list[tuple[Answer, Answer]] = field(default_factory=list)


def golds(data: Path) -> list[Answer]:
    """The references of all suites, in a fixed order."""
    suites = [load_suite(name, data) for name in SUITES]
    return [answer for suite in suites for answer in suite.answers.values() if isinstance(answer, Answer)]


def check(every: Sequence[Answer], sample: int | None, seed: int) -> Found:
    """Compare each of `sample` references (None: all) with itself and with OTHERS others."""
    draw = random.Random(seed)
    chosen = list(every) if sample is None else draw.sample(list(every), sample)
    found = Found()
    with MathJudge(cache=False) as judge:
        batch: list[tuple[Answer, Answer]] = []
        for pair in _pairs(chosen, every, draw):
            batch.append(pair)
            if len(batch) == _BATCH:
                _judge(batch, judge, found)
                batch = []
        _judge(batch, judge, found)
    return found


def _pairs(chosen: Sequence[Answer], every: Sequence[Answer], draw: random.Random) -> Iterator[tuple[Answer, Answer]]:
    for gold in chosen:
        yield gold, gold
        for other in draw.sample(every, OTHERS):
            if other.problem_id != gold.problem_id:
                yield gold, other


def _judge(pairs: Sequence[tuple[Answer, Answer]], judge: MathJudge, found: Found) -> None:
    rows = [
        (Sample("golds", gold.problem_id, i, 0, _written(gold, other), 0, 0, FinishReason.stop), gold, True)
        for i, (gold, other) in enumerate(pairs)
    ]
    found.pairs += len(rows)
    for (gold, other), verdict in zip(pairs, judge.judge_rows(rows), strict=True):
        right = verdict.status is Status.correct
        if gold is other:
            found.unequal_to_itself += [] if right else [gold.problem_id]
        elif right and plain(gold.answer) == plain(other.answer):
            found.same_text += 1
        elif right:
            found.equal.append((gold, other))


def _written(gold: Answer, other: Answer) -> str:
    """The answer's text; a reference beside itself gets a command without meaning, so that the text is really read."""
    return re.sub(r"\A\$?", r"\g<0>\\displaystyle ", other.answer) if gold is other else other.answer


def plain(text: str) -> str:
    """The text without white space, mark-up, leading zeros and separators of thousands."""
    return _ZEROS.sub("", _MARK_UP.sub("", text))


def reason(gold: str, other: str) -> str:
    """Why two references that are written differently are one value, as far as the texts show it; "" if they don't."""
    if plain(_MARKS.sub("", gold)) == plain(_MARKS.sub("", other)):
        return "a unit or mark is left out"
    if plain(_NAME.sub("", gold)) == plain(_NAME.sub("", other)):
        return "a name is left out"
    if plain(gold).strip("()") == plain(other).strip("()") and "," in gold:
        return "a pair's brackets are left out"
    values = [_numeral(text) for text in (gold, other)]
    if None not in values and values[0] == values[1]:
        return "the same number in another base"
    if plain(gold).partition("_")[0] == plain(other) and _numeral(gold) is not None:
        return "the base is left out"
    return ""


def _numeral(text: str) -> int | None:
    """The value of a whole number, its base as an index."""
    match = re.fullmatch(r"(\d+)(?:_\{?(\d+)\}?)?", text.strip("$ "))
    return None if match is None else int(match[1], int(match[2] or 10))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sample", type=int, help="so many references only (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    every, start = golds(asked.data), time.process_time()
    found = check(every, asked.sample, asked.seed)
    print(f"{found.pairs} pairs in {time.process_time() - start:.1f} CPU s; {found.same_text} of them are one text")
    print(f"not equal to themselves: {', '.join(found.unequal_to_itself) or 'none'}")
    for gold, other in found.equal:
        why = reason(gold.answer, other.answer) or "NO REASON KNOWN"
        print(f"equal: {gold.problem_id} {gold.answer!r} = {other.problem_id} {other.answer!r}: {why}")


if __name__ == "__main__":
    main()
