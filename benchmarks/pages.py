"""The parts of the pages in docs/ that benchmarks write: between two marks, replaced whole."""

from __future__ import annotations

import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def write_part(page: str, name: str, text: str, begin: str | None = None) -> None:
    """Replace what stands between `begin` (`<!-- NAME -->`) and `<!-- end of NAME -->`; exits where one is missing."""
    begin, end = begin or f"<!-- {name} -->", f"<!-- end of {name} -->"
    path = DOCS / page
    part = f"{begin}\n{text.rstrip()}\n{end}"
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    found, count = re.subn(pattern, lambda _: part, path.read_text(), flags=re.DOTALL)
    if count != 1:
        sys.exit(f"{path} lacks the mark {begin!r}")
    path.write_text(found)
