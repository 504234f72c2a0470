"""HMMT February 2025 (algebra, combinatorics, geometry; 30 problems): answers are exact expressions.

Row: `{"id": "hmmt25-01", "problem": "Compute ...", "answer": "103", "source": "HMMT Feb 2025 Algebra/NT #1"}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klearbench.suites.base import Asked, HubSource, Suite, SuiteInfo
from klearbench.suites.files import Reading, known_suite

FILE = "hmmt25.jsonl"
_HOW = Reading(rules={"hmmt25-10": "set"}, count=30)  # both roots of a quadratic: the order does not matter


def _from_hub(number: int, row: Mapping[str, Any]) -> Mapping[str, Any]:
    key = f"hmmt25-{int(row['problem_idx']):02d}"
    return {"id": key, "problem": row["problem"], "answer": row["answer"], "source": "HMMT Feb 2025"}


HUB = HubSource("MathArena/hmmt_feb_2025", _from_hub, split="train")


def _load(asked: Asked) -> Suite:
    return known_suite("hmmt25", FILE, HUB, asked, _HOW)


INFOS = (SuiteInfo("hmmt25", "HMMT February 2025", 30, "Harvard-MIT Math Tournament", "not shipped", FILE, _load, HUB),)
