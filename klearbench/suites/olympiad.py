"""OlympiadBench (He et al. 2024), its English text-only mathematics problems with a final answer: 675 of them.

Row: `{"id": "olympiadbench-1606", "problem": "Xenia ...", "answer": "2", "answer_type": "Numerical",
"is_multiple_answer": false}`. The authors' own copy on the hub has 674.

All are compared by the rule "expression", which reads the kind off the reference: a list in any order, a pair in its
own. `is_multiple_answer` can't choose the rule "set": it is also true of some ordered pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klearbench.suites.base import Asked, HubSource, Suite, SuiteInfo
from klearbench.suites.files import Reading, known_suite

FILE = "olympiadbench.jsonl"


def _from_hub(number: int, row: Mapping[str, Any]) -> Mapping[str, Any]:
    given = row["final_answer"]
    about = {key: row[key] for key in ("answer_type", "is_multiple_answer", "subfield") if key in row}
    return {
        "id": f"olympiadbench-{row['id']}",
        "problem": row["question"],
        "answer": given if isinstance(given, str) else ",".join(given),
        "source": "OlympiadBench OE_TO_maths_en_COMP",
        **about,
    }


HUB = HubSource("Hothan/OlympiadBench", _from_hub, config="OE_TO_maths_en_COMP", split="train", count=674)


def _load(asked: Asked) -> Suite:
    return known_suite("olympiad", FILE, HUB, asked, Reading(count=675))


INFOS = (
    SuiteInfo(
        "olympiad",
        "olympiad problems with a final answer",
        675,
        "OlympiadBench",
        "Apache-2.0; not shipped",
        FILE,
        _load,
        HUB,
    ),
)
