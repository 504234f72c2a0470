"""Is what a program printed or returned what was expected?

`strict` (ours). Printed text: the whole is stripped and split at line feeds, each line stripped, as many lines wanted;
a line is equal as text or token by token: equal text, or two ASCII decimal numbers. An expected integer wants exactly
its value (with a leading zero: its text); an expected number with a point or an exponent is met within 1e-6, absolute
or relative. Returned values: plain data; tuple = list, 1 = True = 1.0; two floats within 1e-5, absolute or relative.

`compat` follows LiveCodeBench's testing_util: no tolerance; a line is equal as text or, read by `Decimal`, token by
token as exact numbers (so underscores, other scripts' digits and "Infinity" count, and a word beside a number makes
the spacing matter); returned values by Python's `==`, after a tuple at the top became a list. Not covered: objects of
other types that equal plain data in Python (Fraction(2) == 2), since only plain data leaves the sandbox.

Every function is pure, and linear in the length of both texts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any, TypeVar

from klearbench.errors import UsageError, unknown_name
from klearbench.sandbox.values import Opaque, decode

OUTPUT_TOLERANCE = 1e-6
VALUE_TOLERANCE = 1e-5

# Possessive: a long run of digits is read once, however the token ends.
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")
# float() is quick and exact enough for tokens of ordinary length; only near the limit must Decimal decide.
_QUICK = 40
# No two numbers of so few digits, written without an exponent, are the same double.
_INJECTIVE = 15
_PRECISE = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation])
_SHOWN = 60
_VALUE_FACTOR, _VALUE_SPARE = 16, 1 << 16
"""An encoded value may be longer than the JSON that it equals (one character outside of ASCII takes twelve), not
more so than this: small lists by the million would take a gigabyte here."""

Rule = TypeVar("Rule")


@dataclass(frozen=True, slots=True)
class Comparison:
    """`equal`, and if not, in a line of at most a few hundred characters, what differs first."""

    equal: bool
    detail: str = ""


EQUAL = Comparison(True)


def compare_output(expected: str, got: bytes, mode: str = "strict") -> Comparison:
    """Compare what a program printed with the expected text. Output that is not UTF-8 is wrong.

    Raises:
        UsageError: `mode` is neither "strict" nor "compat".
    """
    line_equal = _by_mode(LINE_RULES, mode)
    try:
        printed = got.decode("utf-8")
    except UnicodeDecodeError as error:
        return Comparison(False, f"the output is not UTF-8 (byte {error.start} of {len(got)})")
    if printed == expected:
        return EQUAL
    wanted, printed = expected.strip(), printed.strip()
    if printed == wanted:
        return EQUAL
    if not printed:
        return Comparison(False, f"expected {shorten(wanted)}, got no output")
    return _compare_lines(wanted.split("\n"), printed, line_equal)


def _compare_lines(wanted: list[str], printed: str, line_equal: Callable[[str, str], bool]) -> Comparison:
    lines = printed.count("\n") + 1
    counts = "" if len(wanted) == lines else f"; {len(wanted)} lines expected, {lines} printed"
    # No more pieces than are wanted: a flood of short lines would take ten times its size as a list.
    for number, (want, line) in enumerate(zip(wanted, printed.split("\n", len(wanted)), strict=False), 1):
        if want == line:
            continue
        a, b = want.strip(), line.strip()
        if a != b and not line_equal(a, b):
            return Comparison(False, f"line {number}: expected {shorten(a)}, got {shorten(b)}{counts}")
    return Comparison(False, f"all lines are equal as far as they go{counts}") if counts else EQUAL


def _strict_line(want: str, line: str) -> bool:
    wants = want.split()
    tokens = line.split(None, len(wants))
    if len(wants) != len(tokens):
        return False
    return all(a == b or _strict_token(a, b) for a, b in zip(wants, tokens, strict=True))


def _strict_token(want: str, token: str) -> bool:
    if not (_NUMBER.fullmatch(want) and _NUMBER.fullmatch(token)):
        return False
    if "." in want or "e" in want or "E" in want:
        return close(want, token)
    return not _LEADING_ZERO.match(want) and _same_number(want, token)


def _same_number(want: str, token: str) -> bool:
    if len(want) <= _INJECTIVE >= len(token) and "e" not in token and "E" not in token:
        return float(want) == float(token)
    try:
        return Decimal(want) == Decimal(token)
    except InvalidOperation:  # an exponent beyond any that Decimal can hold
        return False


def is_number(token: str) -> bool:
    """Whether a token is an ASCII decimal number; hexadecimal, underscores, nan and inf are none."""
    return _NUMBER.fullmatch(token) is not None


def close(
    want: str, token: str, absolute: float | None = OUTPUT_TOLERANCE, relative: float | None = OUTPUT_TOLERANCE
) -> bool:
    """Whether one ASCII decimal number meets another within an absolute or a relative error (None: not allowed)."""
    if len(want) <= _QUICK >= len(token):
        a, b = float(want), float(token)
        size = abs(a)
        limit, difference = (relative or 0.0) * size, abs(a - b)
        if absolute is not None and absolute > limit:
            limit = absolute
        # Doubles carry 2e-16 of each number as rounding error.
        slack = 1e-15 * (size + abs(b)) + 1e-300
        if difference + slack < limit < 1e300:
            return True
        if limit + slack < difference < 1e300:
            return False
    try:
        return _close_exactly(Decimal(want), Decimal(token), absolute, relative)
    except InvalidOperation:
        return False


def _close_exactly(want: Decimal, value: Decimal, absolute: float | None, relative: float | None) -> bool:
    if want == value:
        return True
    error = _PRECISE.abs(_PRECISE.subtract(want, value))
    if absolute is not None and error <= Decimal(repr(absolute)):
        return True
    return relative is not None and error <= _PRECISE.multiply(Decimal(repr(relative)), _PRECISE.abs(want))


def _compat_line(want: str, line: str) -> bool:
    wants = want.split()
    try:
        return [Decimal(token) for token in line.split(None, len(wants))] == [Decimal(token) for token in wants]
    except (InvalidOperation, ValueError):  # no number; a signalling NaN; a lone surrogate
        return False


LINE_RULES: dict[str, Callable[[str, str], bool]] = {"strict": _strict_line, "compat": _compat_line}
"""How two stripped lines that differ as text may still be equal."""


def compare_value(expected_json: str, value: bytes, mode: str = "strict") -> Comparison:
    """Compare an encoded return value (see `klearbench.sandbox.values`) with the expected JSON document.

    Raises:
        UsageError: `mode` is neither "strict" nor "compat".
        ValueError: the expected output is no JSON document (a fault of the problem, not of the program).
    """
    rule = _by_mode(VALUE_RULES, mode)
    expected = read_expected(expected_json)
    if len(value) > _VALUE_FACTOR * len(expected_json) + _VALUE_SPARE:
        return Comparison(False, f"the returned value is far longer than the expected one ({len(value)} bytes)")
    try:
        got = decode(value)
    except ValueError as error:
        return Comparison(False, f"the returned value can't be read: {error}"[:200])
    return rule(expected, got)


def read_expected(expected_json: str) -> object:
    """The expected value of a functional test, integers of any length included.

    Raises:
        ValueError: it is not one JSON document.
    """
    try:
        return json.loads(expected_json, parse_int=_any_length)
    except RecursionError:
        raise ValueError("the expected output is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"the expected output {shorten(expected_json)} is no JSON value: {error}") from None


def _any_length(digits: str) -> int:
    return int(digits) if len(digits) <= 4000 else int(Decimal(digits))


def _strict_value(expected: object, got: object) -> Comparison:
    if _python_equal(expected, got):
        return EQUAL
    # One frame a level, so that depth costs no recursion: the pairs still to be compared at this level.
    frames: list[Iterator[tuple[object, Any, Any]]] = [iter([("", expected, got)])]
    path: list[object] = []
    while frames:
        item = next(frames[-1], None)
        if item is None:
            frames.pop()
            if path:
                path.pop()
            continue
        key, want, have = item
        inside = _children(want, have)
        if inside is not None:
            frames.append(inside)
            path.append(key)
        elif not _same_scalar(want, have):
            place = "".join(f"[{shorten(k)}]" for k in [*path[1:], key][-8:]) if path else ""
            where = f"at {place}: " if place else ""
            return Comparison(False, f"{where}expected {shorten(want)}, got {shorten(have)}")
    return EQUAL


def _children(want: Any, have: Any) -> Iterator[tuple[object, Any, Any]] | None:
    """The pairs inside two containers of the same shape; None if they are not that."""
    if type(want) is list and type(have) in (list, tuple) and len(want) == len(have):
        return ((i, a, b) for i, (a, b) in enumerate(zip(want, have, strict=True)))
    if type(want) is dict and type(have) is dict and want.keys() == have.keys():
        return ((key, item, have[key]) for key, item in want.items())
    return None


def _same_scalar(want: Any, have: Any) -> bool:
    if type(want) in (list, dict) or type(have) in (list, tuple, dict, Opaque):
        return False
    if type(want) is float and type(have) is float:
        if math.isnan(want) or math.isnan(have):
            return math.isnan(want) and math.isnan(have)
        difference = abs(want - have)
        return want == have or difference <= VALUE_TOLERANCE * max(1.0, abs(want)) < math.inf
    return bool(want == have)


def _compat_value(expected: object, got: object) -> Comparison:
    if _python_equal(expected, list(got) if type(got) is tuple else got):
        return EQUAL
    strict = _strict_value(expected, got)
    return Comparison(False, strict.detail or f"expected {shorten(expected)} exactly, got {shorten(got)}")


def _python_equal(expected: object, got: object) -> bool:
    try:
        return bool(expected == got)
    except RecursionError:
        return False


VALUE_RULES: dict[str, Callable[[object, object], Comparison]] = {"strict": _strict_value, "compat": _compat_value}
"""How a returned value is compared with the expected one."""


def shorten(value: object) -> str:
    """A value in at most about 100 characters, however large it is."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}... ({len(value)} characters)"
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of {len(value)}" if len(value) else repr(value)
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def _by_mode(rules: Mapping[str, Rule], mode: str) -> Rule:
    if mode not in rules:
        raise UsageError(unknown_name("mode of judging", mode, rules))
    return rules[mode]
