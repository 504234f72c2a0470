"""Trusted checkers, and what passes between the judge and a checker program."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klearbench.errors import ConfigError
from klearbench.judging.checkers import (
    CHECKERS,
    checker_arguments,
    checker_says,
    find_checker,
    is_program,
    run_checker,
    validate_checker,
)
from tests.timing import assert_quick

PROGRAM = "def check(input: str, expected: str, output: str) -> bool:\n    return output == expected\n"


@pytest.mark.parametrize(
    ("name", "expected", "got", "equal"),
    [
        ("exact", "a\n", "a\n", True),
        ("exact", "a\n", "a", False),
        ("tokens", "1 2\n3", "1\n2   3\n", True),
        ("tokens", "1 2", "1 2 3", False),
        ("tokens", "1 2", "1", False),
        ("tokens", "1", "1.0", False),
        ("tokens", "Yes", "YES", False),
        ("tokens_case_insensitive", "Yes a", "YES A", True),
        ("tokens_case_insensitive", "Yes", "No", False),
        ("floats", "0.5 x", "0.5000001\nx", True),
        ("floats", "1000000", "1000001", True),
        ("floats", "1.0", "1.00001", False),
        ("floats", "1.0", "nan", False),
        ("floats", "nan", "nan", True),
        ("floats", "1.0 2.0", "1.0", False),
        ("floats:1e-9", "1.0", "1.0000001", False),
        ("floats:1e-9", "1.0", "1.0000000005", True),
        ("floats:0", "1.0", "1.00", True),
        ("floats:0", "1.0", "1.0000000000000000000000000001", False),
        ("floats_absolute", "1000000", "1000000.5", False),
        ("floats_absolute:0.5", "1000000", "1000000.5", True),
        ("floats_relative", "0", "0.0000001", False),
        ("floats_relative", "1000000", "1000000.5", True),
        ("lines", "1  2\n3", "1 2\n3\n", True),
        ("lines", "1 2\n3", "1\n2 3", False),
        ("unordered_lines", "1 2\n3\n3", "3\n1  2\n3", True),
        ("unordered_lines", "1 2\n3", "2 1\n3", False),
        ("unordered_lines", "3\n3\n1", "3\n1\n1", False),
        ("unordered_lines", "3\n3", "3", False),
        ("unordered_tokens", "1 2 2", "2\n1 2", True),
        ("unordered_tokens", "1 2 2", "1 1 2", False),
        ("unordered_tokens", "1", "1 1", False),
        ("yes_no_case_insensitive", "YES\nNO", "yes No", True),
        ("yes_no_case_insensitive", "YES", "no", False),
        ("yes_no_case_insensitive", "YES", "yes yes", False),
        ("yes_no_case_insensitive", "YES", "y", False),
    ],
)
def test_by_hand(name: str, expected: str, got: str, equal: bool) -> None:
    result = run_checker(name, "", expected, got.encode())
    assert result.equal == equal
    assert bool(result.detail) != equal
    assert find_checker(name)("", expected, got) == result


@given(st.text(), st.sampled_from(sorted(CHECKERS.keys() - {"yes_no_case_insensitive"})))
def test_any_text_equals_itself(text: str, name: str) -> None:
    assert CHECKERS[name]("", text, text).equal


@given(st.text(), st.text(), st.sampled_from(sorted(CHECKERS)))
def test_any_output_is_judged(expected: str, got: str, name: str) -> None:
    result = CHECKERS[name]("", expected, got)
    assert result.equal != bool(result.detail)


@given(st.lists(st.integers()), st.randoms())
def test_order_does_not_matter(numbers: list[int], random: object) -> None:
    shuffled = list(numbers)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    expected, got = ("\n".join(map(str, items)) for items in (numbers, shuffled))
    assert CHECKERS["unordered_lines"]("", expected, got).equal
    assert CHECKERS["unordered_tokens"]("", expected, got).equal
    assert not CHECKERS["unordered_tokens"]("", expected, got + " 1").equal


def test_output_that_is_not_utf8_is_wrong() -> None:
    assert run_checker("tokens", "", "1", b"1 \xff").detail == "the output is not UTF-8 (byte 2 of 3)"


@pytest.mark.parametrize("name", sorted(CHECKERS))
def test_megabytes_are_judged_quickly(name: str) -> None:
    expected, got = "yes\n1.5\n" * 100_000, "yes\n1.50\n" * 100_000
    result = CHECKERS[name]("", expected, got)
    assert_quick(lambda: CHECKERS[name]("", expected, got), 10)
    assert result.equal == name.startswith("floats")
    assert len(result.detail) < 300


@pytest.mark.parametrize(
    ("checker", "message"),
    [
        ("tokenz", "unknown checker 'tokenz'; did you mean 'tokens'"),
        ("", "unknown checker ''"),
        ("tokens:1e-6", "the checker 'tokens' takes no option .*floats, floats_absolute, floats_relative"),
        ("floats:", "the tolerance '' of the checker 'floats' is no number from 0 to 1"),
        ("floats:-1", "the tolerance '-1'"),
        ("floats:2", "the tolerance '2'"),
        ("floats:nan", "the tolerance 'nan'"),
        ("floats:1e-99999", "the tolerance '1e-99999'"),
        ("def verify(a):\n    return True\n", "defines no function check"),
        ("class A:\n    def check(self): ...\n", "defines no function check"),
    ],
)
def test_a_checker_that_cannot_be_used_is_refused(checker: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        validate_checker(checker)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("checker", ["tokens", "floats", "floats:1e-9", "floats_relative:.001", PROGRAM])
def test_usable_checkers_are_taken(checker: str) -> None:
    validate_checker(checker)
    assert is_program(checker) == (checker == PROGRAM)


@given(st.text(), st.text(), st.text())
def test_arguments_are_three_lines_of_json(test_input: str, expected: str, output: str) -> None:
    lines = checker_arguments(test_input, expected, output).decode("ascii").split("\n")
    assert [json.loads(line) for line in lines] == [test_input, expected, output]


def test_what_a_checker_says() -> None:
    assert checker_says(b"true") is True
    assert checker_says(b"false") is False
    for value in (b"1", b"null", b'"yes"', b"[true]", b"", b"tru", b'{"x":"Foo"}'):
        with pytest.raises(ValueError, match=r"."):
            checker_says(value)
    with pytest.raises(ValueError, match="the checker returned None; True or False is expected"):
        checker_says(b"null")
