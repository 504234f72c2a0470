"""HMMT February 2025 (algebra, combinatorics, geometry; 30 problems): answers are exact expressions.

Row: `{"id": "hmmt25-01", "problem": "Compute ...", "answer": "103", "source": "HMMT Feb 2025 Algebra/NT #1"}`.
"""

from __future__ import annotations

from pathlib import Path

from klearbench.suites.base import Suite, SuiteInfo
from klearbench.suites.files import load_problem_file
from klearbench.suites.lookup import data_file

FILE = "hmmt25.jsonl"
_RULES = {"hmmt25-10": "set"}  # both roots of a quadratic: the order does not matter


def _load(data_dir: Path | None) -> Suite:
    return load_problem_file(data_file("hmmt25", FILE, data_dir), "hmmt25", rules=_RULES, count=30)


INFOS = (SuiteInfo("hmmt25", "HMMT February 2025", 30, "Harvard-MIT Math Tournament", "not shipped", FILE, _load),)
