"""Rows with tests: what is read, what is refused, and that they come back as they were."""

from __future__ import annotations

import json

import pytest
from tools import write_jsonl

from klearbench.errors import DataError
from klearbench.suites.coderows import CODE_KEYS, code_row, parse_code, read_code_row, refuse_bad_tests
from klearbench.suites.registry import load_suite
from klearbench.types import CodeTests, ExpectedOutputs, Kind
from klearbench.types import TestInputs as Given

PAIR = [{"input": "2\n", "output": "4\n"}]
ADD = {"id": "add", "mode": "functional", "fn_name": "add", "tests": [{"input": "1\n2", "output": "3"}]}


def test_a_short_row_has_the_defaults():
    found = read_code_row("f", 1, {"id": 7, "kind": "code", "tests": PAIR, "problem": "Double it."})
    assert found == CodeTests(Given("7", "stdio", ("2\n",)), ExpectedOutputs("7", ("4\n",)))
    assert (found.inputs.time_limit_s, found.inputs.memory_limit_mb) == (6.0, 4096)


def test_a_full_row_is_read_and_written_back():
    row = ADD | {"time_limit_s": 2, "memory_limit_mb": 256, "preamble": "lcb", "checker": "tokens"}
    found = read_code_row("f", 1, row)
    assert found.inputs == Given("add", "functional", ("1\n2",), "add", "lcb", 2.0, 256)
    assert found.expected == ExpectedOutputs("add", ("3",), "tokens")
    assert {**code_row(found), "id": "add"} == row
    assert set(code_row(found)) <= set(CODE_KEYS)
    odd = read_code_row("f", 1, {"id": "odd", "tests": [{"input": "\ud800\x00", "output": "é"}]})
    assert read_code_row("f", 1, {**json.loads(json.dumps(code_row(odd))), "id": "odd"}) == odd


def test_null_counts_as_absent():
    row = {"id": "a", "tests": PAIR} | dict.fromkeys(("mode", "fn_name", "preamble", "checker", "time_limit_s"))
    assert read_code_row("f", 1, row) == read_code_row("f", 1, {"id": "a", "tests": PAIR})


def test_a_checker_may_be_a_program():
    program = "def check(input, expected, output):\n    return output.split() == expected.split()\n"
    assert read_code_row("f", 1, {"id": "a", "tests": PAIR, "checker": program}).expected.checker == program


def test_integers_of_any_length_and_deep_lists_are_json():
    deep = "[" * 3000 + "]" * 3000
    row = ADD | {"tests": [{"input": f"{'9' * 5000}\n{deep}", "output": "1" * 5000}]}
    assert len(read_code_row("f", 1, row).inputs.inputs) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": ""}, "id is ''"),
        ({"id": None}, "id is None"),
        ({"tests": None}, "problem 'a': tests are missing"),
        ({"tests": []}, "problem 'a': it has no test"),
        ({"tests": "[]"}, "tests is str, a list"),
        ({"tests": [["2", "4"]]}, "test 1 is list"),
        ({"tests": [*PAIR, {"input": "3"}]}, "test 2: output is missing"),
        ({"tests": [*PAIR, {"output": "3"}]}, "test 2: input is missing"),
        ({"tests": [{"input": 2, "output": "4"}]}, "test 1: input is int, a string was expected"),
        ({"tests": [{"input": "2", "ouput": "4"}]}, "unknown key 'ouput'; did you mean 'output'?"),
        ({"mode": "stdin"}, "unknown mode 'stdin'; did you mean 'stdio'? (allowed: functional, stdio)"),
        ({"mode": ["stdio"]}, "unknown mode"),
        ({"preamble": "leetcode"}, "unknown preamble 'leetcode'"),
        ({"checker": "tokns"}, "unknown checker 'tokns'; did you mean 'tokens'?"),
        ({"checker": 5}, "checker is 5"),
        ({"fn_name": "f"}, "fn_name is 'f', but the mode is 'stdio'"),
        ({"mode": "functional"}, "fn_name is None"),
        ({"mode": "functional", "fn_name": "a b"}, "fn_name is 'a b'"),
        ({"mode": "functional", "fn_name": "class"}, "fn_name is 'class'"),
        (
            {"mode": "functional", "fn_name": "f", "tests": [{"input": "1\nx", "output": "1"}]},
            "test 1: its input holds",
        ),
        ({"mode": "functional", "fn_name": "f", "tests": [{"input": "1", "output": ""}]}, "test 1: its output holds"),
        ({"time_limit_s": 0}, "time_limit_s is 0, a positive number"),
        ({"time_limit_s": float("nan")}, "time_limit_s is nan"),
        ({"time_limit_s": True}, "time_limit_s is True"),
        ({"memory_limit_mb": 1.5}, "memory_limit_mb is 1.5, a positive whole number"),
        ({"memory_limit_mb": -1}, "memory_limit_mb is -1"),
    ],
)
def test_what_cannot_be_judged_is_refused_by_file_line_and_name(change, message):
    with pytest.raises(DataError) as caught:
        read_code_row("rows.jsonl", 17, {"id": "a", "tests": PAIR} | change)
    assert str(caught.value).startswith("rows.jsonl:17: ") and message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [((), (), "it has no test"), (("1", "2"), ("1",), "it has 2 inputs and 1 expected outputs")],
)
def test_references_made_elsewhere_are_checked_too(inputs, outputs, message):
    with pytest.raises(DataError, match=message) as caught:
        refuse_bad_tests(CodeTests(Given("q9", "stdio", inputs), ExpectedOutputs("q9", outputs)))
    assert "q9" in str(caught.value)
    with pytest.raises(DataError, match="unknown mode 'batch'"):
        refuse_bad_tests(CodeTests(Given("q9", "batch", ("1",)), ExpectedOutputs("q9", ("1",))))


def test_a_file_holds_math_and_code_side_by_side(tmp_path):
    rows = [
        {"id": "m", "problem": "One plus one?", "answer": "2", "level": 1},
        {"id": "c", "problem": "Double it.", "tests": PAIR, "level": 2, "solution": "print(2 * int(input()))"},
        ADD | {"problem": "Add.", "kind": "code"},
    ]
    suite = load_suite(str(write_jsonl(tmp_path / "both.jsonl", rows)))
    assert [p.kind for p in suite.problems] == [Kind.math, Kind.code, Kind.code]
    assert suite.answers["m"].answer == "2" and suite.answers["c"].expected.outputs == ("4\n",)
    assert suite.problems[1].meta == {"level": 2} and suite.has_code
    assert "tests" not in suite.problems[2].meta


def test_a_parquet_file_holds_tests_as_lists(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"id": "c", "problem": "Double it.", "tests": PAIR, "mode": "stdio", "checker": None}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "code.parquet")
    assert load_suite(str(tmp_path / "code.parquet")).answers["c"] == read_code_row("f", 1, rows[0])


def test_bad_code_rows_of_a_file_are_named(tmp_path):
    good = {"id": "c", "problem": "Double it.", "tests": PAIR}
    for change, message in [
        ({"tests": []}, "code.jsonl:2: problem 'd': it has no test"),
        ({"tests": None, "kind": "code"}, "code.jsonl:2: problem 'd': tests are missing"),
        ({"problem": ""}, "code.jsonl:2: 'problem' is missing"),
    ]:
        path = write_jsonl(tmp_path / "code.jsonl", [good, good | {"id": "d"} | change])
        with pytest.raises(DataError) as caught:
            load_suite(str(path))
        assert message in str(caught.value)


@pytest.mark.shared
def test_every_labelled_problem_is_read(shared):
    for name in ("judging_dev", "attacks_dev"):
        for line, text in enumerate((shared / "cases" / "code" / f"{name}.jsonl").read_text().splitlines(), start=1):
            row = json.loads(text)
            found = read_code_row(name, line, row["problem"] | {"id": row["id"]})
            assert len(found.inputs.inputs) == len(row["problem"]["tests"])


def test_an_argument_may_be_a_python_literal_and_arrives_as_one():
    from klearbench.judging.code import CodeJudge
    from klearbench.types import FinishReason, Sample

    case = {"input": "=(1, 2)\n=[{3}, {4: None}]\n[5]", "output": '["(1, 2)", "[{3}, {4: None}]", "[5]"]'}
    tests = parse_code("p", {"mode": "functional", "fn_name": "f", "tests": [case]})
    program = "```python\ndef f(*given):\n    return [repr(value) for value in given]\n```"
    with CodeJudge() as judge:
        (verdict,) = judge.judge([(Sample("s", "p", 0, 0, program, 0, 0, FinishReason.stop), tests)])
    assert str(verdict.status) == "correct", verdict.detail


@pytest.mark.parametrize("text", ["=(1,", "=f(1)", "=", "=__import__('os')"])
def test_a_line_that_is_no_literal_after_its_mark_is_refused(text):
    row = {"mode": "functional", "fn_name": "f", "tests": [{"input": text, "output": "1"}]}
    with pytest.raises(ValueError, match="test 1: its input holds no JSON value"):
        parse_code("p", row)
