"""A return value as text: JSON for plain data, with marks for what JSON does not have.

null, true, false, numbers and strings stand for themselves; a list is an array; a tuple {"t": [..]}; a dict
{"d": [[key, value], ..]}; an integer of 64 bits or more {"i": "-0xff"}; anything else {"x": "name of its type"}.

A value of a subclass counts as what its base class holds: the base class's own methods read it, so an `__eq__`,
`__iter__` or `__repr__` of the program's has no say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

_quote = json.encoder.encode_basestring_ascii  # the C function itself: a program may replace json.dumps
_LIMIT = 1 << 63
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def encode(value: object) -> str:
    """The text of a value. Raises RecursionError for values that are nested too deeply or contain themselves."""
    if value is None or value is True or value is False:
        return "null" if value is None else "true" if value else "false"
    for base, write in _ENCODERS.items():
        if issubclass(type(value), base):
            return write(value)
    scalar = _from_numpy(value)
    if scalar is not None:
        return encode(scalar)
    name: str = type.__dict__["__name__"].__get__(type(value))  # a metaclass may have put another one before it
    return f'{{"x": {_quote(name[:100])}}}'


def _int(value: Any) -> str:
    plain = int.__int__(value)
    if -_LIMIT < plain < _LIMIT:
        return int.__repr__(plain)
    return f'{{"i": "{hex(plain)}"}}'


def _float(value: Any) -> str:
    plain = float.__float__(value)
    text = float.__repr__(plain)
    return _NOT_FINITE.get(text, text)


def _str(value: Any) -> str:
    return _quote(str.__getitem__(value, slice(None)))


def _list(value: Any) -> str:
    return f"[{', '.join([encode(item) for item in list.__iter__(value)])}]"


def _tuple(value: Any) -> str:
    return f'{{"t": [{", ".join([encode(item) for item in tuple.__iter__(value)])}]}}'


def _dict(value: Any) -> str:
    return f'{{"d": [{", ".join([f"[{encode(k)}, {encode(v)}]" for k, v in dict.items(value)])}]}}'


_ENCODERS: dict[type, Callable[[Any], str]] = {
    int: _int, float: _float, str: _str, list: _list, tuple: _tuple, dict: _dict,
}  # fmt: skip


def _from_numpy(value: object) -> object:
    """The Python scalar of a numpy scalar, else None. Told by the module that made its type, not by its looks."""
    numpy = sys.modules.get("numpy")
    generic = getattr(numpy, "generic", None)
    if generic is None or not isinstance(generic, type) or not issubclass(type(value), generic):
        return None
    item = generic.item(value)  # type: ignore[attr-defined]
    return item if type(item) in (bool, int, float, str) else None
