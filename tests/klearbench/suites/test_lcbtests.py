"""LiveCodeBench's tests: encoded in the official way, hostile, damaged; and all rows of the public problems."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib

import pytest

from klearbench.errors import DataError
from klearbench.suites import lcbtests
from klearbench.suites.lcbtests import decode_tests, read_lcb_tests, unpickle_text


def encode(value: object, protocol: int = pickle.DEFAULT_PROTOCOL) -> str:
    """As LiveCodeBench's files are made: `value` is the JSON text."""
    return packed(pickle.dumps(value, protocol))


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def case(given: str, out: str, kind: str = "stdin") -> dict:
    return {"input": given, "output": out, "testtype": kind}


def row(public, private, **more) -> dict:
    return {"question_id": "q1", "public_test_cases": public, "private_test_cases": private, "metadata": "{}"} | more


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_officially_encoded_row_is_read_public_tests_first(protocol):
    hidden = [case("3\n", "9"), case("naïve \u2028 \x00", "ok"), case("x" * 100_000, "long")]
    tests = read_lcb_tests("f", 1, row(json.dumps([case("2\n", "4")]), encode(json.dumps(hidden), protocol)))
    assert tests.inputs.inputs == ("2\n", "3\n", "naïve \u2028 \x00", "x" * 100_000)
    assert tests.expected.outputs == ("4", "9", "ok", "long")
    given = tests.inputs
    assert (given.mode, given.fn_name, given.preamble) == ("stdio", None, "lcb")
    assert (given.time_limit_s, given.memory_limit_mb, given.problem_id) == (6.0, 4096, "q1")


def test_a_functional_row_names_its_function():
    public = json.dumps([case("[1]\n2", "3", "functional")])
    tests = read_lcb_tests("f", 1, row(public, "[]", metadata='{"func_name": "add"}'))
    assert (tests.inputs.mode, tests.inputs.fn_name, tests.inputs.preamble) == ("functional", "add", "lcb")


def test_a_row_without_any_test_has_none():
    assert read_lcb_tests("f", 1, row("[]", "")) is None
    assert read_lcb_tests("f", 1, row("[]", encode("[]"))) is None


class Calls:
    """Pickles into a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


MARK = "executed"
HOSTILE = {
    "os.system": lambda path: Calls(os.system, f"touch {path}"),
    "builtins.eval": lambda path: Calls(eval, f"open({str(path)!r}, 'w')"),
    "builtins.open": lambda path: Calls(open, str(path), "w"),
    "nested": lambda path: ["[]", {"a": (Calls(os.system, f"touch {path}"),)}],
    "a list": lambda path: [{"input": "1", "output": "1", "testtype": "stdin"}],
    "bytes": lambda path: b"[]",
    "a number": lambda path: 7,
    "two strings": lambda path: ("[]", "[]"),
}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", HOSTILE)
def test_a_pickle_of_anything_but_a_string_is_refused_and_nothing_is_executed(tmp_path, name, protocol):
    target = tmp_path / MARK
    field = encode(HOSTILE[name](target), protocol)
    with pytest.raises(DataError) as caught:
        read_lcb_tests("lcb.jsonl", 5, row("[]", field))
    assert "lcb.jsonl:5: problem 'q1': private_test_cases: a pickle of something other" in str(caught.value)
    assert not target.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"cos\nsystem\n(S'true'\ntR.",  # protocol 0, written by hand
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",  # STACK_GLOBAL on two strings
        b"Pos.system\n.",  # a persistent id
        b"\x80\x02\x82\x01.",  # an extension code
        pickle.dumps("[]") + b"more",
        b"\x96\xff\xff\xff\xff\xff\xff\xff\x7f",  # a bytearray of 2**63 bytes
        b"X\xff\xff\xff\x7fabc",  # a string of 2 GiB, cut off
        b"",
        b"\x80",
    ],
)
def test_pickles_made_by_hand_are_refused(data):
    with pytest.raises(ValueError, match="pickle") as caught:
        unpickle_text(data)
    assert "\n" not in str(caught.value)


def test_damaged_fields_are_refused_by_name():
    whole = encode(json.dumps([case("1", "1")]))
    damaged = {
        whole[:-3]: "base64",
        whole[: len(whole) // 8 * 4]: "cut off",
        base64.b64encode(b"no zlib at all").decode(): "not zlib data",
        packed(b"\x80\x04nonsense"): "pickle",
        encode("{"): "not valid JSON",
        encode('{"a": 1}'): "a list of tests was expected, found dict",
        "@@@": "neither JSON nor base64",
        "[1, 2": "not valid JSON",
    }
    for field, message in damaged.items():
        with pytest.raises(DataError) as caught:
            read_lcb_tests("lcb.jsonl", 9, row("[]", field))
        assert str(caught.value).startswith("lcb.jsonl:9: problem 'q1': private_test_cases: ")
        assert message in str(caught.value) and "\n" not in str(caught.value), (field, str(caught.value))


def test_corrupt_bytes_in_the_middle_are_noticed():
    raw = bytearray(base64.b64decode(encode(json.dumps([case("1 2 3 4 5", "15")] * 20))))
    raw[len(raw) // 2] ^= 0xFF
    with pytest.raises(ValueError, match=r"zlib|pickle|JSON"):
        decode_tests(base64.b64encode(bytes(raw)).decode())


def test_a_zip_bomb_is_refused_without_being_inflated():
    bomb = packed(b"\x00" * 50_000_000)
    assert len(bomb) < 100_000
    with pytest.raises(ValueError, match="more than 1,000,000 bytes when inflated"):
        decode_tests(bomb, max_bytes=1_000_000)
    assert decode_tests(encode("[]"), max_bytes=100) == []
    assert lcbtests.MAX_BYTES <= 1 << 30


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question_id": None}, "question_id is None"),
        ({"private_test_cases": None}, "private_test_cases is missing"),
        ({"public_test_cases": json.dumps([case("1", "1", "batch")])}, "found batch"),
        ({"private_test_cases": json.dumps([case("1", "1", "functional")])}, "found functional, stdin"),
        ({"private_test_cases": json.dumps([{"input": "1", "testtype": "stdin"}])}, "test 2: output is"),
        ({"private_test_cases": "[7]"}, "test 2 is int"),
        ({"metadata": "{"}, "metadata: not valid JSON"),
        ({"metadata": "[1]"}, "metadata is list"),
        ({"public_test_cases": json.dumps([case("1", "1", "functional")])}, "needs a function's name"),
    ],
)
def test_rows_of_another_format_are_refused_in_one_line(change, message):
    with pytest.raises(DataError) as caught:
        read_lcb_tests("lcb.jsonl", 3, row(json.dumps([case("1", "1")]), "[]") | change)
    assert str(caught.value).startswith("lcb.jsonl:3: ") and message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.shared
def test_every_public_problem_is_read(shared):
    counts = {"stdio": 0, "functional": 0, "none": 0, "tests": 0}
    for line, text in enumerate((shared / "data" / "lcb_v1_v5.jsonl").read_text().splitlines(), start=1):
        parsed = json.loads(text)
        tests = read_lcb_tests("lcb", line, parsed)
        hidden = json.loads(parsed["public_test_cases"]) + json.loads(parsed["private_test_cases"])
        counts[tests.inputs.mode if tests else "none"] += 1
        counts["tests"] += len(hidden)
        if tests:
            assert list(zip(tests.inputs.inputs, tests.expected.outputs, strict=True)) == [
                (test["input"], test["output"]) for test in hidden
            ]
    assert counts == {"stdio": 492, "functional": 381, "none": 7, "tests": 2401}
