"""Checkers, for problems where several outputs are right.

A trusted checker is named, with an option after a colon ("floats:1e-9"); the names cover what the standard validators
of Kattis and DOMjudge (case, spacing, float tolerance) and the common ones of Codeforces' testlib offer:

| name | output is right if | theirs |
|---|---|---|
| exact | equal, character by character | space_change_sensitive case_sensitive |
| tokens | equal tokens, however they are spaced | case_sensitive, wcmp |
| tokens_case_insensitive | the same, upper case = lower case | Kattis's default |
| floats[:1e-6] | equal tokens; numbers within an absolute or relative error | float_tolerance, rcmp6 |
| floats_absolute[:1e-6], floats_relative[:1e-6] | the same, one kind of error | float_absolute_tolerance, .. |
| lines | equal lines, tokens compared | lcmp |
| unordered_lines | the same lines in any order | |
| unordered_tokens | the same tokens in any order | uncmp |
| yes_no_case_insensitive | the same YES and NO, nothing else | nyesno |

A checker program is Python source that defines `check(input: str, expected: str, output: str) -> bool`. It is run in
functional mode, with `fn_name` "check", in a slot of its own that no submission ever enters.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence

from klearbench.errors import ConfigError, unknown_name
from klearbench.judging.compare import EQUAL, OUTPUT_TOLERANCE, Comparison, close, is_number, shorten
from klearbench.sandbox.values import decode

Checker = Callable[[str, str, str], Comparison]
"""Takes the test's input, the expected output and the output."""

FUNCTION = "check"
"""The name of a checker program's function."""

_PROGRAM = re.compile(r"^def[ \t]+check[ \t]*\(", re.MULTILINE)
_OPTION = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


def _exact(_: str, expected: str, got: str) -> Comparison:
    if expected == got:
        return EQUAL
    return Comparison(False, f"expected {shorten(expected)}, got {shorten(got)} (every character counts)")


def _tokens(_: str, expected: str, got: str) -> Comparison:
    return _in_order(expected.split(), got.split(), lambda want, token: want == token)


def _tokens_any_case(_: str, expected: str, got: str) -> Comparison:
    return _in_order(expected.split(), got.split(), lambda want, token: want.casefold() == token.casefold())


def _lines(_: str, expected: str, got: str) -> Comparison:
    return _in_order(_split_lines(expected), _split_lines(got), lambda want, line: want == line, "line")


def _unordered_lines(_: str, expected: str, got: str) -> Comparison:
    return _any_order(_split_lines(expected), _split_lines(got), "line")


def _unordered_tokens(_: str, expected: str, got: str) -> Comparison:
    return _any_order(expected.split(), got.split(), "token")


def _yes_no(_: str, expected: str, got: str) -> Comparison:
    tokens = got.lower().split()
    for number, token in enumerate(tokens, 1):
        if token not in ("yes", "no"):
            return Comparison(False, f"token {number} is {shorten(token)}, neither yes nor no")
    return _in_order(expected.lower().split(), tokens, lambda want, token: want == token)


def _floats(absolute: float | None, relative: float | None) -> Checker:
    def equal(want: str, token: str) -> bool:
        return want == token or (is_number(want) and is_number(token) and close(want, token, absolute, relative))

    return lambda _, expected, got: _in_order(expected.split(), got.split(), equal)


def _in_order(
    wants: Sequence[str], parts: Sequence[str], equal: Callable[[str, str], bool], what: str = "token"
) -> Comparison:
    for number, (want, part) in enumerate(zip(wants, parts, strict=False), 1):
        if not equal(want, part):
            return Comparison(False, f"{what} {number}: expected {shorten(want)}, got {shorten(part)}")
    if len(wants) != len(parts):
        return Comparison(False, f"{len(wants)} {what}s expected, {len(parts)} printed")
    return EQUAL


def _any_order(wants: Sequence[str], parts: Sequence[str], what: str) -> Comparison:
    left = Counter(wants)
    for number, part in enumerate(parts, 1):
        if not left[part]:
            return Comparison(False, f"{what} {number}, {shorten(part)}, is not expected, or not so often")
        left[part] -= 1
    missing = next((want for want, count in left.items() if count), None)
    return EQUAL if missing is None else Comparison(False, f"the {what} {shorten(missing)} is missing")


def _split_lines(text: str) -> list[str]:
    """The lines of the stripped text, white space within a line made one space."""
    return [" ".join(line.split()) for line in text.strip().split("\n")]


CHECKERS: dict[str, Checker] = {
    "exact": _exact,
    "tokens": _tokens,
    "tokens_case_insensitive": _tokens_any_case,
    "floats": _floats(OUTPUT_TOLERANCE, OUTPUT_TOLERANCE),
    "floats_absolute": _floats(OUTPUT_TOLERANCE, None),
    "floats_relative": _floats(None, OUTPUT_TOLERANCE),
    "lines": _lines,
    "unordered_lines": _unordered_lines,
    "unordered_tokens": _unordered_tokens,
    "yes_no_case_insensitive": _yes_no,
}
"""The trusted checkers by name."""

WITH_TOLERANCE: dict[str, Callable[[float], Checker]] = {
    "floats": lambda tolerance: _floats(tolerance, tolerance),
    "floats_absolute": lambda tolerance: _floats(tolerance, None),
    "floats_relative": lambda tolerance: _floats(None, tolerance),
}
"""Those that take a tolerance after a colon."""


def find_checker(name: str) -> Checker:
    """The trusted checker of a name such as "tokens" or "floats:1e-9".

    Raises:
        ConfigError: no checker has this name, or its option is no tolerance between 0 and 1.
    """
    base, colon, option = name.partition(":")
    if base not in CHECKERS:
        allowed = [other + ("[:1e-6]" if other in WITH_TOLERANCE else "") for other in CHECKERS]
        raise ConfigError(f"{unknown_name('checker', name[:60], allowed)}, or Python source with a function {FUNCTION}")
    if not colon:
        return CHECKERS[base]
    if base not in WITH_TOLERANCE:
        raise ConfigError(f"the checker {base!r} takes no option (those that do: {', '.join(WITH_TOLERANCE)})")
    if not _OPTION.fullmatch(option) or float(option) > 1:
        raise ConfigError(
            f"the tolerance {option[:60]!r} of the checker {base!r} is no number from 0 to 1, such as 1e-9"
        )
    return WITH_TOLERANCE[base](float(option))


def run_checker(name: str, test_input: str, expected: str, got: bytes) -> Comparison:
    """Judge an output by a trusted checker. Output that is not UTF-8 is wrong.

    Raises:
        ConfigError: as `find_checker`.
    """
    checker = find_checker(name)
    try:
        printed = got.decode("utf-8")
    except UnicodeDecodeError as error:
        return Comparison(False, f"the output is not UTF-8 (byte {error.start} of {len(got)})")
    return checker(test_input, expected, printed)


def is_program(checker: str) -> bool:
    """Whether a problem's checker is a program (else the name of a trusted one)."""
    return "\n" in checker or _PROGRAM.search(checker) is not None


def validate_checker(checker: str) -> None:
    """Refuse a checker that could not be used.

    Raises:
        ConfigError: neither the name of a trusted checker nor Python source with a function `check`.
    """
    if not is_program(checker):
        find_checker(checker)
    elif _PROGRAM.search(checker) is None:
        raise ConfigError(
            f"the checker program starting {shorten(checker)} defines no function"
            f" {FUNCTION}(input, expected, output) at its top level"
        )


def checker_arguments(test_input: str, expected: str, output: str) -> bytes:
    """The input of a checker program's run in functional mode: three JSON strings, one a line (ASCII)."""
    return "\n".join(json.dumps(text) for text in (test_input, expected, output)).encode("ascii")


def checker_says(value: bytes) -> bool:
    """What a checker program returned.

    Raises:
        ValueError: it returned something other than True or False: the checker's fault, not the submission's.
    """
    verdict = decode(value)
    if not isinstance(verdict, bool):
        raise ValueError(f"the checker returned {shorten(verdict)}; True or False is expected")
    return verdict
