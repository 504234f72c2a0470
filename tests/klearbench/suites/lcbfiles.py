"""Made-up rows in LiveCodeBench's format, and whole releases of them with the official counts."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from tools import write_jsonl

PARTS = (400, 111, 101, 101, 167, 175)
"""Problems in test.jsonl, test2.jsonl, ... test6.jsonl: 880 in the first five, 1,055 in all."""


def encode(value: object) -> str:
    """As LiveCodeBench's private tests are packed."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(value)))).decode()


def case(given: str, out: str, kind: str = "stdin") -> dict[str, str]:
    return {"input": given, "output": out, "testtype": kind}


def lcb_row(number: int, day: str, **more: Any) -> dict[str, Any]:
    """A problem that asks for the double of a number; every third asks for a function."""
    functional = number % 3 == 0
    kind = "functional" if functional else "stdin"
    return {
        "question_id": f"q{number}",
        "question_title": f"Double {number}",
        "question_content": f"Double it ({number}). Not to be filled in: {{starter_code}} {{x}}",
        "platform": ("leetcode", "atcoder")[number % 2],
        "contest_id": "c1",
        "contest_date": f"{day}T00:00:00",
        "difficulty": ("easy", "medium", "hard")[number % 3],
        "starter_code": "class Solution:\n    def double(self, x: int) -> int:\n        " if functional else "",
        "public_test_cases": json.dumps([case("2", "4", kind)]),
        "private_test_cases": encode([case("3", "6", kind)]),
        "metadata": json.dumps({"func_name": "double"} if functional else {}),
        **more,
    }


def days(first: date, last: date, count: int) -> list[str]:
    """Days from the first to the last, both among them."""
    span = (last - first).days
    return [(first + timedelta(days=i * span // (count - 1))).isoformat() for i in range(count)]


def release_rows() -> list[dict[str, Any]]:
    """1,055 rows. V5: 279 of the first 880, with both edges. V6: 131, the first one on the edge that both share."""
    before = days(date(2023, 5, 7), date(2024, 7, 31), 880 - 279)
    v5 = [*days(date(2024, 8, 1), date(2025, 1, 31), 278), "2025-02-01"]
    outside = days(date(2025, 1, 4), date(2025, 1, 31), 30) + ["2025-05-02"] * 15
    v6 = days(date(2025, 2, 1), date(2025, 5, 1), 130)
    order = [*before, *v5, *outside, *v6]
    return [lcb_row(number, day) for number, day in enumerate(order)]


def write_parts(folder: Path, rows: Sequence[dict[str, Any]], parts: int = 6) -> list[Path]:
    """The rows as the official files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths, start = [], 0
    for number, count in enumerate(PARTS[:parts], start=1):
        path = folder / f"test{'' if number == 1 else number}.jsonl"
        paths.append(write_jsonl(path, rows[start : start + count]))
        start += count
    return paths
