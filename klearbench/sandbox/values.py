"""Return values on their way from the sandbox to the judge (functional mode): the reading half.

| Python value | bytes (ASCII JSON) |
|---|---|
| None, bool, int below 2**63 in size, float, str | null, true, 7, 0.5 (NaN, Infinity), "text" |
| list | an array |
| tuple | {"t": [..]} |
| dict | {"d": [[key, value], ..]} |
| a larger int | {"i": "-0xff.."} (hexadecimal: linear to read, and no limit of digits) |
| anything else | {"x": "its type"} |

The bytes come from a hostile process. Reading them costs time linear in their length; every hash table is keyed by
text alone, since Python's hashes of numbers and tuples collide wherever an attacker wants them to.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SMALL = 1 << 63
_HEX = re.compile(r"-?0x[0-9a-f]+", re.ASCII)
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_KEPT = 60


class Opaque:
    """A value that is no plain data, or a dict with a key other than text. Equal to nothing, itself included."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{ascii(self.what)[1:-1]}>"


def decode(value: bytes) -> object:
    """The value that a run returned: plain data, with `Opaque` in the place of all else.

    A dict with any key other than text is `Opaque` too: no JSON object equals it.

    Raises:
        ValueError: the bytes are not exactly one such document, or nested deeper than Python's recursion limit.
    """
    if not value:
        raise ValueError("no value came back")
    integer = _integer if _LONG_NUMBER.search(value) else None
    try:
        # json shares one NaN object, and containers take identical objects for equal: each is to be one of its own.
        return json.loads(value.decode("ascii"), object_pairs_hook=_tagged, parse_int=integer, parse_constant=float)
    except RecursionError:
        raise ValueError("the value is nested too deeply") from None


def _integer(digits: str) -> int:
    number = int(digits) if len(digits) <= 20 else _SMALL
    if not -_SMALL < number < _SMALL:
        raise ValueError("a large integer that is not written in hexadecimal")
    return number


def _tagged(pairs: list[tuple[str, Any]]) -> object:
    if len(pairs) != 1:
        raise ValueError("an object that is no tagged value")
    tag, content = pairs[0]
    if tag == "t" and type(content) is list:
        return tuple(content)
    if tag == "d" and type(content) is list:
        return _dict(content)
    if tag == "i" and type(content) is str and _HEX.fullmatch(content):
        number = int(content, 16)
        if -_SMALL < number < _SMALL:
            raise ValueError("a small integer in hexadecimal")
        return number
    if tag == "x" and type(content) is str:
        return Opaque(content[:_KEPT])
    raise ValueError("an object that is no tagged value")


def _dict(content: list[Any]) -> object:
    found: dict[str, Any] = {}
    only_text = True
    for pair in content:
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is list:
            raise ValueError("a dict whose items are no pairs")
        if type(pair[0]) is not str:
            only_text = False
        elif pair[0] in found:
            raise ValueError("a dict with one key twice")
        else:
            found[pair[0]] = pair[1]
    return found if only_text else Opaque("dict with keys that are not text")
