"""Comparing returned values, by the rules in the docstring of compare.py."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from klearbench.errors import UsageError
from klearbench.judging.compare import compare_value


@pytest.mark.parametrize(
    ("expected", "value", "strict", "compat"),
    [
        ("3", b"3", True, True),
        ("3", b'"3"', False, False),
        ("1", b"true", True, True),
        ("1", b"1.0", True, True),
        ("true", b"1", True, True),
        ("2.0", b"2", True, True),
        ("null", b"null", True, True),
        ("null", b"0", False, False),
        ("null", b"false", False, False),
        ("0", b'""', False, False),
        ("[]", b"null", False, False),
        ("[]", b"{}", False, False),
        ("[]", b'{"t":[]}', True, True),
        ("[]", b'{"d":[]}', False, False),
        ("{}", b'{"d":[]}', True, True),
        ("{}", b"[]", False, False),
        ("[1, 2]", b'{"t":[1,2]}', True, True),
        ("[[1, 2], [3, 4]]", b'[{"t":[1,2]},{"t":[3,4]}]', True, False),
        ("[[1, 2]]", b'{"t":[{"t":[1,2]}]}', True, False),
        ("[1, 2]", b"[2,1]", False, False),
        ("[1, 2]", b"[1,2,3]", False, False),
        ("[[[]]]", b"[[[]]]", True, True),
        ("2.33333", b"2.3333333333333335", True, False),
        ("[0.1, 0.3]", b"[0.1,0.30000000000000004]", True, False),
        ("1.0", b"1.000009", True, False),
        ("1.0", b"1.00002", False, False),
        ("1000000.0", b"1000009.0", True, False),
        ("1000000.0", b"1000020.0", False, False),
        ("3", b"3.0000001", False, False),
        ("3.0000001", b"3", False, False),
        ("NaN", b"NaN", True, False),
        ("[NaN]", b"[NaN]", True, False),
        ("1.5", b"NaN", False, False),
        ("NaN", b"1.5", False, False),
        ("Infinity", b"Infinity", True, True),
        ("Infinity", b"1e300", False, False),
        ("1e300", b"Infinity", False, False),
        ("-Infinity", b"Infinity", False, False),
        ("9007199254740993", b"9007199254740992.0", False, False),
        ("18446744073709551616", b'{"i":"0x10000000000000000"}', True, True),
        ("18446744073709551616", b"1.8446744073709552e+19", True, True),
        ('{"a": 2, "b": [1]}', b'{"d":[["b",[1]],["a",2]]}', True, True),
        ('{"a": 2}', b'{"d":[["a",2],["b",1]]}', False, False),
        ('{"1": 2}', b'{"d":[[1,2]]}', False, False),
        ('{"a": 0.3}', b'{"d":[["a",0.30000000000000004]]}', True, False),
        ("1", b'{"x":"AlwaysEqual"}', False, False),
        ("[1]", b'[{"x":"AlwaysEqual"}]', False, False),
        ('"\\ud800"', b'"\\ud800"', True, True),
        ('"a"', b'"a\\u0000"', False, False),
        ("1", b"", False, False),
        ("1", b"\xff", False, False),
        ("1", b"1 2", False, False),
        ("[1]", b"[" * 100_000, False, False),
    ],
)
def test_values_by_hand(expected: str, value: bytes, strict: bool, compat: bool) -> None:
    results = [compare_value(expected, value, mode) for mode in ("strict", "compat")]
    assert [result.equal for result in results] == [strict, compat]
    assert all(result.equal != bool(result.detail) for result in results)


@pytest.mark.parametrize(
    ("expected", "value", "detail"),
    [
        ("3", b'"3"', "expected 3, got '3'"),
        ('[1, {"k": [5, 6]}]', b'[1,{"d":[["k",[5,7]]]}]', "at [1]['k'][1]: expected 6, got 7"),
        ("[1, [2]]", b"[1,[2,3]]", "at [1]: expected a list of 1, got a list of 2"),
        ("1", b'{"x":"Foo"}', "expected 1, got <Foo>"),
        ("1", b'{"i":"0x' + b"f" * 1000 + b'"}', "expected 1, got an integer of 4000 bits"),
        ("1", b"", "the returned value can't be read: no value came back"),
    ],
)
def test_detail_of_values(expected: str, value: bytes, detail: str) -> None:
    assert compare_value(expected, value).detail == detail


def test_deeply_nested_values_are_compared_without_recursion() -> None:
    deep = "[" * 300 + "0.5" + "]" * 300
    other = "[" * 300 + "0.500001" + "]" * 300
    assert compare_value(deep, other.encode()).equal
    assert len(compare_value(deep, deep.replace("0.5", "7").encode()).detail) < 200


def test_expected_output_must_be_json() -> None:
    with pytest.raises(ValueError, match="the expected output 'yes' is no JSON value"):
        compare_value("yes", b"1")


def test_integers_of_thousands_of_digits() -> None:
    number = 7**9000
    digits = str(Decimal(number))
    assert len(digits) > 4300
    assert compare_value(digits, json.dumps({"i": hex(number)}).encode()).equal
    assert not compare_value(digits, json.dumps({"i": hex(number + 1)}).encode()).equal


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_any_value_equals_itself(value: object) -> None:
    text = json.dumps(value)
    for mode in ("strict", "compat"):
        assert compare_value(text, text.encode(), mode).equal


@given(JSON_VALUES, JSON_VALUES)
def test_compat_values_are_pythons_equality(expected: object, got: object) -> None:
    texts = json.dumps(expected), json.dumps(got).encode()
    assert compare_value(*texts, "compat").equal == (expected == got)
    if expected == got:
        assert compare_value(*texts, "strict").equal


@given(st.floats(-1e6, 1e6), st.floats(-3, 3))
def test_value_tolerance_is_1e5(want: float, share: float) -> None:
    assume(abs(abs(share) - 1) > 1e-6)
    got = want + share * 1e-5 * max(1.0, abs(want))
    assert compare_value(json.dumps([want]), json.dumps([got]).encode()).equal == (math.fabs(share) < 1)


def test_unknown_mode() -> None:
    with pytest.raises(UsageError, match="unknown mode of judging 'both'"):
        compare_value("1", b"1", "both")
