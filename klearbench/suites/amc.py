"""AMC 12 of 2022 and 2023, the 40 problems that have a number as their answer (`amc23` everywhere)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klearbench.suites.base import Asked, HubSource, Suite, SuiteInfo
from klearbench.suites.files import Reading, known_suite

FILE = "amc23.jsonl"


def _from_hub(number: int, row: Mapping[str, Any]) -> Mapping[str, Any]:
    answer = row["answer"]
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    return {"id": f"amc23-{number:02d}", "problem": row["question"], "answer": answer, "source": "AMC 12 2022-2023"}


HUB = HubSource("math-ai/amc23", _from_hub)


def _load(asked: Asked) -> Suite:
    return known_suite("amc23", FILE, HUB, asked, Reading(count=40))


INFOS = (
    SuiteInfo(
        "amc23", "AMC 12 2022 and 2023", 40, "American Mathematics Competitions", "MAA; not shipped", FILE, _load, HUB
    ),
)
