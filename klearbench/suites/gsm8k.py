"""GSM8K: the 1,319 grade-school word problems of the test set (Cobbe et al. 2021): answers are integers."""

from __future__ import annotations

from pathlib import Path

from klearbench.suites.base import Suite, SuiteInfo
from klearbench.suites.files import load_problem_file
from klearbench.suites.lookup import data_file

FILE = "gsm8k_test.jsonl"


def _load(data_dir: Path | None) -> Suite:
    return load_problem_file(data_file("gsm8k", FILE, data_dir), "gsm8k", count=1319)


INFOS = (
    SuiteInfo(
        "gsm8k", "grade-school word problems", 1319, "grade-school-math test set", "MIT; not shipped", FILE, _load
    ),
)
