"""Links into an HTML report: its script opens the viewer at the sample that the address names."""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

from klearbench.types import parquet_text

_ADDRESS = re.compile("(https?|file)://", re.IGNORECASE)
_AS_IT_IS = "%/:?=&;,@!$'()*+~[]"  # an address is encoded already; only what can't stand in one is


def report_link(
    report: str,
    suite: str | None = None,
    problem_id: str | None = None,
    sample_index: int | None = None,
    run: str | None = None,
) -> str:
    """A link that opens a report at a problem: `report.html#suite=aime24&problem=aime24-2024-II-3`.

    Args:
        report: a path relative to where the link will stand, as the file is called; or an http, https or file URL,
            which is taken as encoded, its own fragment left out.
        suite: the suite's name; without any name the link is the report's own.
        problem_id: the problem's id. Here and in the other names a lone surrogate or NUL, which no address can hold,
            becomes U+FFFD; the page does the same before it compares.
        sample_index: of the sample to be opened; without it the problem's first.
        run: the run's name in a report of several; without it the samples of all runs are shown.

    Returns:
        ASCII. In the fragment all is percent-encoded but letters, digits and `_.-~`.
    """
    names = {"suite": suite, "problem": problem_id, "run": run, "sample": sample_index}
    given = {name: parquet_text(str(value)) for name, value in names.items() if value is not None}
    fragment = urlencode(given, quote_via=quote, safe="")
    return f"{_target(report)}#{fragment}" if fragment else _target(report)


def _target(report: str) -> str:
    if _ADDRESS.match(report):
        return quote(report.partition("#")[0], safe=_AS_IT_IS)
    return quote(report, errors="surrogateescape")  # a file's name of bytes that are no UTF-8 keeps them
