"""MATH-500: 500 problems of the MATH test set (Hendrycks et al. 2021, chosen by Lightman et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klearbench.suites.base import Asked, HubSource, Suite, SuiteInfo
from klearbench.suites.files import Reading, known_suite

FILE = "math500.jsonl"


def _from_hub(number: int, row: Mapping[str, Any]) -> Mapping[str, Any]:
    about = {"subject": row["subject"], "difficulty": f"level {row['level']}", "unique_id": row["unique_id"]}
    key = f"math500-{number:03d}"
    return {"id": key, "problem": row["problem"], "answer": row["answer"], "source": "MATH-500", **about}


HUB = HubSource("HuggingFaceH4/MATH-500", _from_hub)


def _load(asked: Asked) -> Suite:
    return known_suite("math500", FILE, HUB, asked, Reading(count=500))


INFOS = (SuiteInfo("math500", "500 problems of MATH", 500, "MATH test set", "MIT; not shipped", FILE, _load, HUB),)
