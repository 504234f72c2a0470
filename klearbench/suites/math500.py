"""MATH-500: 500 problems of the MATH test set (Hendrycks et al. 2021, chosen by Lightman et al. 2023)."""

from __future__ import annotations

from pathlib import Path

from klearbench.suites.base import Suite, SuiteInfo
from klearbench.suites.files import load_problem_file
from klearbench.suites.lookup import data_file


def _load(data_dir: Path | None) -> Suite:
    return load_problem_file(data_file("math500", "math500.jsonl", data_dir), "math500", count=500)


INFOS = (SuiteInfo("math500", "500 problems of MATH", 500, "MATH test set", "not shipped", "math500.jsonl", _load),)
