"""GSM8K: the 1,319 grade-school word problems of the test set (Cobbe et al. 2021): answers are integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klearbench.suites.base import Asked, HubSource, Suite, SuiteInfo
from klearbench.suites.files import Reading, known_suite

FILE = "gsm8k_test.jsonl"


def _from_hub(number: int, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer stands after the solution, in a last line `#### 18`."""
    answer = str(row["answer"]).rpartition("####")[2].strip()
    key = f"gsm8k-test-{number:04d}"
    return {"id": key, "problem": row["question"], "answer": answer, "source": "GSM8K test"}


HUB = HubSource("openai/gsm8k", _from_hub, config="main")


def _load(asked: Asked) -> Suite:
    return known_suite("gsm8k", FILE, HUB, asked, Reading(count=1319))


INFOS = (
    SuiteInfo(
        "gsm8k", "grade-school word problems", 1319, "grade-school-math test set", "MIT; not shipped", FILE, _load, HUB
    ),
)
