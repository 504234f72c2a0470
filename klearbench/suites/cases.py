"""One call of a function and what comes back, as a functional test of `coderows`: JSON (or literals) in, JSON out."""

from __future__ import annotations

import ast
import json
import math
from dataclasses import dataclass
from typing import Any


class NotExpressible(Exception):
    """Tests that can't be told as inputs and outputs; the text says why."""


@dataclass(frozen=True, slots=True)
class Case:
    """One assert: the arguments, the expected value, and how far a number may be from it (None: equal)."""

    arguments: tuple[Any, ...]
    expected: Any
    tolerance: float | None = None

    def row(self) -> dict[str, str]:
        """The case as a test of `coderows`. Raises NotExpressible for a value that JSON does not have."""
        lines = [_argument(argument) for argument in self.arguments]
        return {"input": "\n".join(lines), "output": _json(self.expected, "a result", tuples=True)}


def _argument(value: Any) -> str:
    """JSON where it can be, else "=" and a Python literal."""
    try:
        return _json(value, "an argument")
    except NotExpressible:
        text = repr(value)
    try:
        same = ast.literal_eval(text) == value
    except (ValueError, SyntaxError):
        same = False
    if not same:
        raise NotExpressible(f"an argument is, or holds, something that is no literal ({type(value).__name__})")
    return f"={text}"


def _json(value: Any, what: str, *, tuples: bool = False) -> str:
    """A value as JSON; `tuples` may be written as lists."""
    _refuse(value, what, tuples)
    return json.dumps(value, ensure_ascii=False)


def _refuse(value: Any, what: str, tuples: bool) -> None:
    if isinstance(value, list) or (tuples and isinstance(value, tuple)):
        for item in value:
            _refuse(item, what, tuples)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotExpressible(f"{what} is a dict with a key other than text, which JSON does not have")
            _refuse(item, what, tuples)
    elif not (
        value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
    ):
        raise NotExpressible(f"{what} is, or holds, a {type(value).__name__}, which JSON does not have")
