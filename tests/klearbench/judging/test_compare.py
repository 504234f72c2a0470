"""Comparing printed outputs, by the rules in the docstring of compare.py."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klearbench.errors import UsageError
from klearbench.judging.compare import compare_output
from tests.timing import assert_quick


@pytest.mark.parametrize(
    ("expected", "got", "strict", "compat"),
    [
        ("6\n", b"6", True, True),
        ("6", b"\n\n  6 \r\n\n", True, True),
        ("5\r\n7\r\n", b"5\n7\n", True, True),
        ("", b"", True, True),
        ("", b" \n\n", True, True),
        ("", b"0", False, False),
        ("0", b"", False, False),
        ("3\n7", b"3\n\n7", False, False),
        ("3\n7", b"3 7", False, False),
        ("3\n7", b"7\n3", False, False),
        ("3\n7", b"3", False, False),
        ("a b", b"a  b", True, False),
        ("1 2", b"1   2", True, True),
        ("a\x0cb", b"a\x0cb", True, True),
        ("1\u20282", b"1 2", True, True),
        ("YES", b"yes", False, False),
        ("\u00e9", "e\u0301".encode(), False, False),
        ("\u00e9", "\u00e9".encode(), True, True),
        ("\u00e9", b"\xe9", False, False),
        ("\ud800", b"\xed\xa0\x80", False, False),
        ("\ud800 1", b"? 1.0", False, False),
        ("6", b"\xef\xbb\xbf6", False, False),
        ("6", b"6\x00", False, False),
        # integers: exact
        ("0", b"-0", True, True),
        ("0", b"-0.0", True, True),
        ("0", b"0e1", True, True),
        ("5", b"5.0", True, True),
        ("5", b"+5", True, True),
        ("5", b"05", True, True),
        ("-5", b"5", False, False),
        ("100000", b"1e5", True, True),
        ("1000000", b"1000000.0000001", False, False),
        ("9007199254740993", b"9007199254740992", False, False),
        ("9007199254740993", b"9007199254740993.0", True, True),
        ("100000000000000000", b"1e17", True, True),
        ("1000000", b"1_000_000", False, True),
        ("12", "\u0661\u0662".encode(), False, True),
        ("0", b"0x0", False, False),
        ("007", b"7", False, True),
        ("007", b"007", True, True),
        ("-01", b"-1", False, True),
        ("5", b"1e999999999", False, False),
        ("5", b"5e-999999999999999999999999", False, False),
        ("0", b"0e999999999999999999999999", False, False),
        # decimals: within 1e-6
        ("0.5", b"0.5000001", True, False),
        ("0.0", b"1e-12", True, False),
        ("0.0", b"0.000001", True, False),
        ("0.0", b"0.0000010000000000000000000000000000001", False, False),
        ("1.0", b"1.000001", True, False),
        ("1.0", b"0.999999", True, False),
        ("2.0000000", b"2.000005", False, False),
        ("2000000.0", b"2000001", True, False),
        ("-5.5", b"5.5", False, False),
        ("2.0", b"2", True, True),
        ("2.", b"2", True, True),
        (".5", b"0.50", True, True),
        ("1E3", b"1000.0001", True, False),
        ("1e308", b"inf", False, False),
        ("1e400", b"10e399", True, True),
        ("1e400", b"1.0000001e400", True, False),
        ("1e400", b"1e401", False, False),
        ("0.3", b"nan", False, False),
        ("nan", b"nan", True, True),
        ("nan", b"NaN", False, False),
        ("inf", b"Infinity", False, True),
        ("1 sNaN", b"1.0 sNaN", True, False),
        ("YES 0.5000", b"YES 0.5", True, False),
        ("YES 0.5000", b"NO 0.5", False, False),
        ("0.5 1.5", b"0.5", False, False),
        ("0.5", b"0.5 0.5", False, False),
    ],
)
def test_outputs_by_hand(expected: str, got: bytes, strict: bool, compat: bool) -> None:
    result = compare_output(expected, got, "strict")
    assert (result.equal, compare_output(expected, got, "compat").equal) == (strict, compat)
    assert bool(result.detail) != result.equal


@pytest.mark.parametrize(
    ("expected", "got", "detail"),
    [
        ("3\n7", b"3\n8", "line 2: expected '7', got '8'"),
        ("3\n7", b"3", "all lines are equal as far as they go; 2 lines expected, 1 printed"),
        ("3\n7", b"4\n7\n1", "line 1: expected '3', got '4'; 2 lines expected, 3 printed"),
        ("3", b" ", "expected '3', got no output"),
        ("3", b"3\xff", "the output is not UTF-8 (byte 1 of 2)"),
    ],
)
def test_detail_names_the_first_difference(expected: str, got: bytes, detail: str) -> None:
    assert compare_output(expected, got).detail == detail


@pytest.mark.parametrize("mode", ["strict", "compat"])
@pytest.mark.parametrize("got", [b"7" * 3_000_000, b"\xff" * 3_000_000, b"7\n" * 1_000_000, b"\x00" * 3_000_000])
def test_detail_is_short(mode: str, got: bytes) -> None:
    result = compare_output("8" * 1_000_000, got, mode)
    assert not result.equal
    assert 0 < len(result.detail) < 800
    assert "\n" not in result.detail


@pytest.mark.parametrize("mode", ["strict", "compat"])
@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ("\n".join(map(str, range(100_000))), "\n".join(map(str, range(100_000))) + "\n"),
        ("\n".join(map(str, range(100_000))), " \n".join(map(str, range(100_000)))),
        ("\n".join(map(str, range(100_000))), ".0\n".join(map(str, range(100_000)))),
        ("9" * 5000, "9" * 5000 + ".0"),
        ("9" * 1_000_000, "9" * 1_000_000 + ".0"),
        ("1e1000000", "1" + "0" * 1_000_000),
    ],
)
def test_large_outputs_are_equal_and_fast(mode: str, expected: str, got: str) -> None:
    assert compare_output(expected, got.encode(), mode).equal
    assert_quick(lambda: compare_output(expected, got.encode(), mode), 10)


@pytest.mark.parametrize("mode", ["strict", "compat"])
@pytest.mark.parametrize(
    "got", [b"1e999999999", b"1e" + b"9" * 100_000, b"1_" * 300_000, b" " * 1_000_000 + b"x", b"1." * 500_000]
)
def test_hostile_tokens_are_wrong_and_fast(mode: str, got: bytes) -> None:
    def compared() -> None:
        for expected in ("7", "7.5", "7 8"):
            assert not compare_output(expected, got, mode).equal

    assert_quick(compared, 5)


@pytest.mark.parametrize("mode", ["", "both", "STRICT"])
def test_unknown_mode(mode: str) -> None:
    with pytest.raises(UsageError, match=r"unknown mode of judging .*allowed: compat, strict"):
        compare_output("1", b"1", mode)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, st.sampled_from(["strict", "compat"]))
def test_any_text_equals_itself(text: str, mode: str) -> None:
    assert compare_output(text, text.encode(), mode).equal
    assert compare_output(text, b"\n " + text.encode() + b"\t\n", mode).equal


@given(st.text(), st.binary())
def test_any_output_is_judged(expected: str, got: bytes) -> None:
    for mode in ("strict", "compat"):
        assert compare_output(expected, got, mode).equal in (True, False)


@given(st.integers(), st.data())
def test_one_digit_more_or_less_is_wrong(number: int, data: st.DataObject) -> None:
    text = str(number)
    place = data.draw(st.integers(1 if number < 0 else 0, len(text) - 1))
    digit = data.draw(st.sampled_from([d for d in "0123456789" if d != text[place]]))
    changed = text[:place] + digit + text[place + 1 :]
    for mode in ("strict", "compat"):
        assert not compare_output(f"1 {text} 2", f"1 {changed} 2".encode(), mode).equal


DECIMALS = st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False, places=9)


@given(DECIMALS, st.fractions(-3, 3))
def test_tolerance_is_exactly_1e6(want: Decimal, share: Fraction) -> None:
    limit = max(Fraction(1), abs(Fraction(want))) * Fraction(1, 10**6)
    error = round(limit * share, 18)
    got = Fraction(want) + error
    sign, units = ("-" if got < 0 else ""), abs(int(got * 10**18))
    token = f"{sign}{units // 10**18}.{units % 10**18:018d}"
    assert compare_output(f"{want:.9f}", token.encode()).equal == (abs(error) <= limit)


def official(expected: str, got: str) -> bool:
    """LiveCodeBench's rule, written again from its description."""

    def numbers(line: str) -> list[Decimal] | None:
        try:
            return [Decimal(token) for token in line.split()]
        except Exception:
            return None

    wanted, printed = ([line.strip() for line in text.strip().split("\n")] for text in (expected, got))
    if len(wanted) != len(printed):
        return False
    for want, line in zip(wanted, printed, strict=True):
        if want != line:
            a, b = numbers(line), numbers(want)
            try:
                if a is None or b is None or a != b:
                    return False
            except Exception:  # a signalling NaN fails the official run as well
                return False
    return True


TOKENS = st.sampled_from(
    ["1", "1.0", "01", "1_0", "10", "1e1", "nan", "sNaN", "inf", "Infinity", "-0", "0", "x", "x ", " ", "\n", "\u0661"]
)


@given(st.lists(TOKENS, max_size=6), st.lists(TOKENS, max_size=6), st.sampled_from(["", " ", "\n"]))
def test_compat_is_the_official_rule(wants: list[str], tokens: list[str], gap: str) -> None:
    expected, got = (gap or " ").join(wants), (gap or " ").join(tokens)
    assert compare_output(expected, got.encode(), "compat").equal == official(expected, got)


def test_a_long_run_of_digits_is_read_once() -> None:
    def compared() -> None:
        for text in ("1" * 12_000 + "x", "1." + "1" * 12_000 + "x", "1e" + "1" * 12_000 + "x"):
            assert not compare_output("5\n", text.encode()).equal
            assert not compare_output("5.0\n", text.encode()).equal

    assert_quick(compared, 1)  # quadratic time would be many seconds


def test_a_flood_of_short_lines_or_words_is_not_held_as_a_list() -> None:
    import tracemalloc

    for flood in (b"a\n" * 2_000_000, b"12 " * 2_000_000):
        tracemalloc.start()
        assert not compare_output("1\n2\n", flood).equal
        assert not compare_output("1 2\n", flood, "compat").equal
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * len(flood)
