"""HumanEval and MBPP: how many are expressed, every canonical solution passes, every broken one fails."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace

import pytest
from tools import jsonl, write_jsonl

from klearbench.errors import DataError
from klearbench.judging.code import CodeJudge
from klearbench.suites.registry import load_suite
from klearbench.types import FinishReason, Kind, Sample, Status

FILE = "humaneval_mbpp.jsonl"
BROKEN = """

_right = {name}


def {name}(*given):
    found = _right(*given)
    if isinstance(found, bool):
        return not found
    if isinstance(found, (int, float)):
        return found + 1
    if isinstance(found, str):
        return found + "x"
    return [found, 0]
"""
"""What makes any function wrong on every input."""


@pytest.fixture(scope="module")
def rows(shared):
    return {row["id"]: row for row in jsonl(shared / "data" / FILE)}


def canonical(row) -> str:
    return row["canonical"] if row["source"] == "MBPP" else row["prompt"] + row["canonical"]


def unhurried(tests):
    """The tests with ten times the CPU time: some canonical solutions need seconds, and more on a busy machine."""
    return replace(tests, inputs=replace(tests.inputs, time_limit_s=10 * tests.inputs.time_limit_s))


def judged(suite, programs, workers=2) -> list[tuple[str, Status]]:
    """Problem ids and statuses of programs taken as they are; `programs` are pairs of an id and a source."""
    items = [
        (Sample(suite.name, key, index, 0, code, 0, 0, FinishReason.stop), unhurried(suite.answers[key]), True)
        for index, (key, code) in enumerate(programs)
    ]
    with CodeJudge(workers=workers) as judge:
        return [(row.verdict.problem_id, row.verdict.status) for row in judge.stream_rows(items)]


@pytest.mark.shared
def test_how_many_are_expressed(shared):
    counts = {}
    for name in ("humaneval", "mbpp", "mbpp-test"):
        suite = load_suite(name, shared / "data")
        counts[name] = (len(suite.problems), len(suite.errata))
        assert {p.kind for p in suite.problems} == {Kind.code} and {p.suite for p in suite.problems} == {name}
        assert {(e.kind, e.action) for e in suite.errata} <= {("not_expressible", "left out")}
        assert set(suite.answers) == {p.id for p in suite.problems}
        assert load_suite(name, shared / "data", errata=False).errata == suite.errata
    assert counts == {"humaneval": (164, 0), "mbpp": (953, 21), "mbpp-test": (493, 7)}


@pytest.mark.shared
def test_how_humanevals_are_expressed(shared):
    suite = load_suite("humaneval", shared / "data")
    kinds = Counter(
        "asserts" if tests.expected.checker is None else tests.expected.checker.partition(":")[0].split()[0]
        for tests in suite.answers.values()
    )
    assert kinds == {"asserts": 161, "floats_absolute": 2, "import": 1}


@pytest.mark.shared
def test_neither_solutions_nor_tests_stand_in_a_problem(shared, rows):
    for name in ("humaneval", "mbpp"):
        for problem in load_suite(name, shared / "data").problems:
            row = rows[problem.id]
            assert set(problem.meta) == {"entry_point"}
            text = problem.prompt[0]["content"]
            assert row["prompt"].strip() in text and row["canonical"].strip() not in text
            assert "assert" not in text.replace(row["prompt"].strip(), "")


@pytest.mark.shared
def test_mbpps_prompt_shows_a_call_and_not_its_value(shared):
    prompts = {p.id: p.prompt[0]["content"] for p in load_suite("mbpp", shared / "data").problems}
    assert "Name the function `min_cost`." in prompts["MBPP/1"]
    assert (
        "`min_cost([[1, 2, 3], [4, 8, 2], [1, 5, 3]], 2, 2)`" in prompts["MBPP/1"] and "== 8" not in prompts["MBPP/1"]
    )


@pytest.mark.shared
@pytest.mark.parametrize(("name", "step"), [("humaneval", 2), ("mbpp", 12)])
def test_canonical_solutions_pass_and_broken_ones_fail(shared, rows, name, step):
    suite = load_suite(name, shared / "data")
    chosen = [p for p in suite.problems if p.id in ("HumanEval/32", "HumanEval/38", "HumanEval/50")]
    chosen += [p for p in suite.problems[::step] if p not in chosen]
    right = [(p.id, canonical(rows[p.id])) for p in chosen]
    wrong = [(p.id, canonical(rows[p.id]) + BROKEN.format(name=p.meta["entry_point"])) for p in chosen]
    statuses = judged(suite, right + wrong)
    assert [key for key, status in statuses[: len(right)] if status is not Status.correct] == []
    failed = (Status.wrong_answer, Status.runtime_error)  # the latter where the function calls itself
    assert [key for key, status in statuses[len(right) :] if status not in failed] == []


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
def test_every_canonical_solution_passes(shared, rows, name):
    suite = load_suite(name, shared / "data")
    statuses = judged(suite, [(p.id, canonical(rows[p.id])) for p in suite.problems])
    assert [key for key, status in statuses if status is not Status.correct] == []


@pytest.mark.shared
def test_a_root_is_checked_by_its_polynomial(shared):
    suite = load_suite("humaneval", shared / "data")
    tests = suite.answers["HumanEval/32"]
    assert len(tests.inputs.inputs) == 40 and set(tests.expected.outputs) == {""}
    tries = ("float('nan')", "float('inf')", "1e308", "'0'", "None", "[0]", "10**400", "True", "0")
    programs = [("HumanEval/32", f"def find_zero(xs):\n    return {answer}") for answer in tries]
    assert {status for _, status in judged(suite, programs, workers=1)} == {Status.wrong_answer}


def official(source: str, number: int) -> dict:
    if source == "HumanEval":
        return {
            "task_id": f"HumanEval/{number}",
            "prompt": f"def f{number}(x):\n    'Add {number}.'\n",
            "entry_point": f"f{number}",
            "canonical_solution": f"    return x + {number}\n",
            "test": f"def check(candidate):\n    assert candidate(1) == {number + 1}\n",
        }
    return {
        "task_id": number,
        "text": f"Write a function to add {number}.",
        "code": f"def f{number}(x):\n    return x + {number}",
        "test_list": [f"assert f{number}(1) == {number + 1}", f"assert f{number}(2) == {number + 2}"],
        "test_setup_code": "",
        "challenge_test_list": [],
    }


def test_the_benchmarks_own_files_are_read(tmp_path):
    write_jsonl(tmp_path / "HumanEval.jsonl", [official("HumanEval", n) for n in range(164) if n not in (32, 38, 50)])
    write_jsonl(tmp_path / "mbpp.jsonl", [official("MBPP", n) for n in range(1, 975)])
    with pytest.raises(DataError, match=r"'humaneval' has 164 problems, the file has 161"):
        load_suite("humaneval", tmp_path)
    write_jsonl(tmp_path / "HumanEval.jsonl", [official("HumanEval", n) for n in range(164)])
    humaneval, mbpp = load_suite("humaneval", tmp_path), load_suite("mbpp", tmp_path)
    part = load_suite("mbpp-test", tmp_path)
    assert (len(humaneval.problems), len(mbpp.problems), len(part.problems)) == (164, 974, 500)
    assert (part.problems[0].id, part.problems[-1].id) == ("MBPP/11", "MBPP/510")
    assert humaneval.answers["HumanEval/7"].expected.outputs == ("8",)
    assert mbpp.answers["MBPP/7"].inputs.inputs == ("1", "2") and mbpp.answers["MBPP/7"].expected.outputs == ("8", "9")
    for problem in (*humaneval.problems, *mbpp.problems):
        assert "return x +" not in json.dumps(asdict(problem))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test_list": None}, "has no column 'test_list'; it has task_id, text, code"),
        ({"task_id": 8}, "id 'MBPP/8' stands twice"),
    ],
)
def test_a_corrupt_row_is_named(tmp_path, change, message):
    rows = [official("MBPP", n) for n in range(1, 975)]
    rows[8] = {k: v for k, v in {**rows[8], **change}.items() if v is not None}
    path = write_jsonl(tmp_path / "mbpp.jsonl", rows)
    with pytest.raises(DataError) as caught:
        load_suite("mbpp", tmp_path)
    assert str(caught.value).startswith(f"{path}:9: ") and message in str(caught.value)


def test_a_row_of_the_joint_file_without_a_column_is_named(tmp_path):
    path = write_jsonl(
        tmp_path / FILE, [{"id": "HumanEval/0", "source": "HumanEval", "prompt": "def f(): ...", "test": ""}]
    )
    with pytest.raises(DataError, match=f"{path}:1: problem 'HumanEval/0': 'entry_point' is missing"):
        load_suite("humaneval", tmp_path)
