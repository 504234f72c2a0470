"""The failing test of a program, read out of the line that the code judge writes about it (a verdict's `detail`)."""

from __future__ import annotations

import ast
import re

_QUOTED = r"""(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")(?:\.\.\. \(\d+ characters\))?"""
_VALUE = rf"(?:{_QUOTED}|[^'\"].*?)"
_TEST = re.compile(r"test (?P<test>\d+) of (?P<total>\d+): (?P<what>.*?)(?: \[(?P<slot>[^\[\]]*)\])?", re.DOTALL)
_WRONG = re.compile(
    rf"(?:(?P<where>(?:line \d+|at .*?)): )?expected (?P<expected>{_VALUE}), got (?P<got>{_VALUE})"
    rf"(?:; (?P<what>\d+ lines expected, \d+ printed))? \(input (?P<input>{_VALUE})\)",
    re.DOTALL,
)
_INPUT = re.compile(rf"(?P<what>.*?) \(input (?P<input>{_VALUE})\)", re.DOTALL)
_PLAIN = ("where", "what")
_CUT = re.compile(r"(.*?)(\.\.\. \(\d+ characters\))?", re.DOTALL)


def failing_test(detail: str) -> dict[str, str] | None:
    """What a detail says of the first failing test, None for one that names no test.

    Returns:
        `test` and `total` (numbers from 1), and where they are known `where`, `expected`, `got`, `input`, `slot`;
        `what` holds what is said besides. Texts that the judge cut are followed by their length.
    """
    found = _TEST.fullmatch(detail)
    if found is None:
        return None
    row = {name: value for name, value in found.groupdict().items() if value}
    what = row.pop("what")
    for pattern in (_WRONG, _INPUT):
        if match := pattern.fullmatch(what):
            parts = {name: value for name, value in match.groupdict().items() if value}
            return row | {name: value if name in _PLAIN else _unquoted(value) for name, value in parts.items()}
    return {**row, "what": what}


def _unquoted(value: str) -> str:
    """A text as it was before the judge wrote it in quotes; a value that is no text stays."""
    match = _CUT.fullmatch(value)
    if match is None or match[1][:1] not in ("'", '"'):
        return value
    try:
        return str(ast.literal_eval(match[1])) + (match[2] or "")
    except (ValueError, SyntaxError):  # a quote inside of something that is no text
        return value
