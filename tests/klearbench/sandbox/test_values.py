"""Reading the values that a hostile process may have written."""

from __future__ import annotations

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klearbench.sandbox.values import Opaque, decode
from tests.timing import assert_quick


def encoded(value: object) -> object:
    """The table of values.py, in the other direction."""
    if isinstance(value, tuple):
        return {"t": [encoded(item) for item in value]}
    if isinstance(value, list):
        return [encoded(item) for item in value]
    if isinstance(value, dict):
        return {"d": [[encoded(key), encoded(item)] for key, item in value.items()]}
    if type(value) is int and abs(value) >= 2**63:
        return {"i": hex(value)}
    return value


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=15,
)


def same(a: object, b: object) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return a == b


@given(PLAIN)
def test_what_was_written_is_read(value: object) -> None:
    assert same(decode(json.dumps(encoded(value)).encode()), value)


@given(st.integers(min_value=2**63) | st.integers(max_value=-(2**63)))
def test_large_integers(number: int) -> None:
    assert decode(json.dumps({"i": hex(number)}).encode()) == number


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" ",
        b"nul",
        b"1 2",
        b"[1,]",
        b"\xff",
        "\u00e9".encode(),
        b'"\xc3\xa9"',
        b"{}",
        b'{"a":1}',
        b'{"t":1}',
        b'{"t":{"t":[]}}',
        b'{"t":[],"t":[]}',
        b'{"t":[],"d":[]}',
        b'{"d":{}}',
        b'{"d":[1]}',
        b'{"d":["ab"]}',
        b'{"d":[["a"]]}',
        b'{"d":[["a",1,2]]}',
        b'{"d":[[["a"],1]]}',
        b'{"d":[["a",1],["a",1]]}',
        b'{"i":5}',
        b'{"i":"0x5"}',
        b'{"i":"ffffffffffffffffff"}',
        b'{"i":"0x"}',
        b'{"i":"0x_ffffffffffffffffffff"}',
        b'{"i":"0xffffffffffffffffffff\\n"}',
        b'{"i":"+0xffffffffffffffffffff"}',
        b'{"x":1}',
        b"9223372036854775808",
        b"-9223372036854775808",
        b"1" * 5000,
        b"0x10",
        b"1_0",
        b"nan",
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"t":[' * 100_000,
        b'{"d":[["a",' * 100_000,
    ],
)
def test_anything_else_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(value)


@given(st.binary() | st.text('[]{}":,tdix0 1e.-naNIfity\\').map(str.encode))
def test_any_bytes_give_a_value_or_a_value_error(value: bytes) -> None:
    with contextlib.suppress(ValueError):
        decode(value)


def test_boundaries_of_plain_integers() -> None:
    assert decode(b"[9223372036854775807,-9223372036854775807]") == [2**63 - 1, -(2**63) + 1]
    assert decode(b'{"i":"-0x8000000000000000"}') == -(2**63)


def test_numbers_as_python_writes_them() -> None:
    values = decode(b"[NaN,Infinity,-Infinity,-0.0,1e-05]")
    assert isinstance(values, list)
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, 0.0, 1e-05]
    assert math.copysign(1, values[3]) == -1
    assert decode(b"[NaN]") != decode(b"[NaN]")


def test_opaque_values_equal_nothing() -> None:
    value = decode(b'{"x":"module.Weird"}')
    assert isinstance(value, Opaque)
    assert value.what == "module.Weird"
    assert value != value
    assert [value] != [decode(b'{"x":"module.Weird"}')]
    assert value != 1
    assert len(repr(decode(b'{"x":"' + b"y" * 100_000 + b'"}'))) < 100
    assert repr(decode(b'{"x":"\\ud800\\n"}')).isascii()


@pytest.mark.parametrize("key", [b"1", b"null", b"1.5", b'{"t":[1,2]}', b'{"x":"A"}'])
def test_a_dict_with_other_keys_than_text_is_opaque(key: bytes) -> None:
    assert isinstance(decode(b'{"d":[["a",1],[' + key + b",2]]}"), Opaque)


@pytest.mark.parametrize(
    "value",
    [
        b'{"i":"0x' + b"f" * 8_000_000 + b'"}',
        b"0." + b"1" * 8_000_000,
        b'"' + b"a" * 8_000_000 + b'"',
        b"[" + b"1" * 8_000_000 + b"]",
        # Tuples of -1 and -2 all have one hash: as keys of a Python dict, these would cost hours.
        json.dumps({"d": [[{"t": [-1 - (i >> k & 1) for k in range(16)]}, 1] for i in range(1 << 16)]}).encode(),
        json.dumps({"d": [[i << 45, 1] for i in range(1 << 17)]}).encode(),
    ],
)
def test_reading_is_linear(value: bytes) -> None:
    def read() -> None:
        with contextlib.suppress(ValueError):
            decode(value)

    assert_quick(read, 10)
