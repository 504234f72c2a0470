"""AIME 2024 and 2025 (I and II, 30 problems a year): answers are integers from 0 to 999.

Row: `{"id": "aime24-I-01", "problem": "Every morning ...", "answer": "204", "source": "AIME 2024 I #1"}`.
Wrong copies circulate (AIME24 I-12 with 384 for 385; misprinted statements of AIME25 I-14 and II-15): the counts and
the gold self-check can't see a misprint, so take the files from a source that was checked against the contest.
"""

from __future__ import annotations

from pathlib import Path

from klearbench.suites.base import Suite, SuiteInfo
from klearbench.suites.files import load_problem_file
from klearbench.suites.lookup import data_file


def _info(name: str, about: str) -> SuiteInfo:
    file = f"{name}.jsonl"

    def load(data_dir: Path | None) -> Suite:
        return load_problem_file(data_file(name, file, data_dir), name, rule="integer_0_999", count=30)

    return SuiteInfo(name, about, 30, "American Invitational Mathematics Examination", "MAA; not shipped", file, load)


INFOS = (_info("aime24", "AIME 2024 I and II"), _info("aime25", "AIME 2025 I and II"))
