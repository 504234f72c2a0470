"""AIME 2024, 2025 and 2026 (I and II, 30 problems a year): answers are integers from 0 to 999.

Row: `{"id": "aime24-I-01", "problem": "Every morning ...", "answer": "204", "source": "AIME 2024 I #1"}`.
Wrong copies circulate; `errata.py` corrects or lists what is known of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from klearbench.suites.base import Asked, HubSource, Suite, SuiteInfo
from klearbench.suites.errata import check_copy
from klearbench.suites.files import Reading, known_suite

_HOW = Reading(rule="integer_0_999", count=30)
_PLACE = re.compile(r"2024_AIME_(II?)_Problems/Problem_(\d+)")


def _by_url(number: int, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row that says by its link which problem it is."""
    place = _PLACE.search(str(row["url"]))
    key = f"aime24-{place[1]}-{int(place[2]):02d}" if place else f"aime24-{number:02d}"
    return {"id": key, "problem": row["problem"], "answer": row["answer"], "source": "AIME 2024"}


def _by_index(number: int, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row with the problem's number in the year: 1 to 15 are AIME I, 16 to 30 are AIME II."""
    test, place = divmod(int(row["problem_idx"]) - 1, 15)
    key = f"aime25-{'I' * (test + 1)}-{place + 1:02d}"
    return {"id": key, "problem": row["problem"], "answer": row["answer"], "source": "AIME 2025"}


def _plain_index(number: int, row: Mapping[str, Any]) -> Mapping[str, Any]:
    key = f"aime26-{int(row['problem_idx']):02d}"
    return {"id": key, "problem": row["problem"], "answer": row["answer"], "source": "AIME 2026"}


_HUBS = {
    "aime24": HubSource("HuggingFaceH4/aime_2024", _by_url, split="train"),
    "aime25": HubSource("MathArena/aime_2025", _by_index, split="train"),
    "aime26": HubSource("MathArena/aime_2026", _plain_index, split="train"),
}


def _info(name: str, about: str) -> SuiteInfo:
    file, hub = f"{name}.jsonl", _HUBS[name]

    def load(asked: Asked) -> Suite:
        return check_copy(known_suite(name, file, hub, asked, _HOW), applied=asked.errata)

    return SuiteInfo(
        name, about, 30, "American Invitational Mathematics Examination", "MAA; not shipped", file, load, hub
    )


INFOS = tuple(_info(f"aime{year}", f"AIME 20{year} I and II") for year in (24, 25, 26))
