"""LiveCodeBench: the pinned windows and their counts, prompts, errata, and what a corrupt row does where."""

from __future__ import annotations

import base64
import json
import os
import pickle
import tracemalloc
import zlib
from collections import Counter
from dataclasses import asdict

import pytest
from lcbfiles import case, encode, lcb_row, release_rows, write_parts
from tools import jsonl, write_jsonl

from klearbench.errors import DataError, UsageError
from klearbench.suites.livecodebench import CHECKERS
from klearbench.suites.registry import load_suite
from klearbench.types import FinishReason, Kind, Sample


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A folder with the official files of release_v6, made up."""
    folder = tmp_path_factory.mktemp("lcb")
    write_parts(folder, release_rows())
    return folder


@pytest.mark.shared
def test_the_v5_window_of_the_shared_file_has_the_official_counts(shared):
    suite = load_suite("lcb-v5", shared / "data", errata=False)
    assert len(suite.problems) == 279 and suite.errata == ()
    assert Counter(suite.answers[p.id].inputs.mode for p in suite.problems) == {"stdio": 175, "functional": 104}
    assert Counter(p.meta["difficulty"] for p in suite.problems) == {"easy": 67, "medium": 89, "hard": 123}
    rows = {row["question_id"]: row for row in jsonl(shared / "data" / "lcb_v1_v5.jsonl")}
    for problem in suite.problems:
        row = rows[problem.id]
        assert problem.date == row["contest_date"][:10] and "2024-08-01" <= problem.date <= "2025-02-01"
        assert (problem.suite, problem.kind) == ("lcb-v5", Kind.code)
        assert problem.meta["platform"] == row["platform"] and problem.meta["title"] == row["question_title"]
        assert problem.meta.get("starter_code", "") == row["starter_code"]
        assert row["question_content"].strip() in problem.prompt[0]["content"]


@pytest.mark.shared
def test_no_test_of_the_judges_stands_on_the_question_side(shared):
    for problem in load_suite("lcb-v5", shared / "data").problems:
        assert set(problem.meta) <= {"title", "difficulty", "platform", "starter_code"}


def test_the_v6_window_has_131_problems_with_both_edges(release):
    suite = load_suite("lcb-v6", release)
    dates = [problem.date for problem in suite.problems]
    assert len(dates) == 131 and (min(dates), max(dates)) == ("2025-02-01", "2025-05-01")
    assert suite.problems[0].id == load_suite("lcb-v5", release).problems[-1].id, "2025-02-01 is in both windows"
    assert {p.suite for p in suite.problems} == {"lcb-v6"}


def test_release_v5_is_the_first_five_files_and_its_window_279_with_both_edges(release):
    suite = load_suite("lcb-v5", release)
    dates = [problem.date for problem in suite.problems]
    assert len(dates) == 279 and dates[0] == "2024-08-01" and dates[-1] == "2025-02-01"


def test_one_file_of_all_rows_and_a_folder_of_the_official_ones_give_the_same_suite(release, tmp_path):
    write_parts(tmp_path / "below" / "code_generation_lite", release_rows())
    write_jsonl(tmp_path / "lcb_v1_v6.jsonl", release_rows())
    side = load_suite("lcb-v6", release)
    below, one = load_suite("lcb-v6", tmp_path / "below"), load_suite("lcb-v6", tmp_path)
    assert side.content_hash == below.content_hash == one.content_hash
    assert side.problems == below.problems == one.problems


def test_the_hash_covers_the_window_and_nothing_else(tmp_path):
    rows = release_rows()
    write_jsonl(tmp_path / "lcb_v1_v5.jsonl", rows[:880])
    first = load_suite("lcb-v5", tmp_path).content_hash
    rows[0]["question_content"] = "another, outside"
    write_jsonl(tmp_path / "lcb_v1_v5.jsonl", rows[:880])
    assert load_suite("lcb-v5", tmp_path).content_hash == first
    rows[879]["private_test_cases"] = encode([case("5", "10", "functional")])
    write_jsonl(tmp_path / "lcb_v1_v5.jsonl", rows[:880])
    assert load_suite("lcb-v5", tmp_path).content_hash != first


def test_private_tests_are_read_after_the_public_ones(release):
    suite = load_suite("lcb-v5", release)
    stdio, functional = suite.answers["q601"], suite.answers["q603"]
    assert stdio.inputs.inputs == ("2", "3") and stdio.expected.outputs == ("4", "6")
    assert (stdio.inputs.mode, stdio.inputs.preamble) == ("stdio", "lcb")
    assert (functional.inputs.mode, functional.inputs.fn_name) == ("functional", "double")


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("lcb-v5", 879, "release_v5 has 880 problems, found 879 in lcb_v1_v5.jsonl"),
        ("lcb-v5", 881, "release_v5 has 880 problems, found 881 in lcb_v1_v5.jsonl"),
        ("lcb-v6", 1054, "release_v6 has 1055 problems, found 1054 in lcb_v1_v6.jsonl"),
    ],
)
def test_another_number_of_rows_in_the_release_is_refused(tmp_path, name, count, message):
    write_jsonl(tmp_path / f"lcb_v1_{name[-2:]}.jsonl", release_rows()[:count])
    with pytest.raises(DataError) as caught:
        load_suite(name, tmp_path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("number", "day", "found"), [(700, "2024-07-31", 278), (700, "2025-02-02", 278), (0, "2024-08-01", 280)]
)
def test_another_number_of_problems_in_the_window_is_refused(tmp_path, number, day, found):
    rows = release_rows()[:880]
    rows[number]["contest_date"] = day
    write_jsonl(tmp_path / "lcb_v1_v5.jsonl", rows)
    with pytest.raises(DataError, match=f"279 problems from 2024-08-01 to 2025-02-01, found {found}$"):
        load_suite("lcb-v5", tmp_path)


class Calls:
    """Pickles into a call."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


INSIDE = 700
"""The index of a row of the V5 window (line 701, problem q700)."""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"private_test_cases": encode([case("3", "6")])[:-9]}, "private_test_cases: "),
        ({"private_test_cases": "@@"}, "private_test_cases: neither JSON nor base64"),
        ({"public_test_cases": "[]", "private_test_cases": encode([])}, "has no tests"),
        ({"public_test_cases": "", "private_test_cases": ""}, "has no tests"),
        ({"question_content": " "}, "question_content or starter_code is no text"),
        ({"question_content": None}, "question_content or starter_code is no text"),
    ],
)
def test_a_corrupt_row_in_the_window_ends_it_and_is_named(tmp_path, change, message):
    rows = release_rows()
    rows[INSIDE] |= change
    write_parts(tmp_path, rows)
    with pytest.raises(DataError) as caught:
        load_suite("lcb-v5", tmp_path)
    line = INSIDE + 1 - (400 + 111 + 101)  # in test4.jsonl
    assert str(caught.value).startswith(f"{tmp_path / 'test4.jsonl'}:{line}: problem 'q{INSIDE}'")
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_problem_that_stands_twice_in_the_window_is_refused(tmp_path):
    rows = release_rows()[:880]
    rows[INSIDE]["question_id"] = rows[INSIDE + 1]["question_id"]
    path = write_jsonl(tmp_path / "lcb_v1_v5.jsonl", rows)
    with pytest.raises(DataError, match=f"{path}:{INSIDE + 2}: question_id 'q{INSIDE + 1}' stands twice"):
        load_suite("lcb-v5", tmp_path)


@pytest.mark.parametrize("day", [None, "", "yesterday", "2024-13-01", 7])
def test_a_row_that_can_be_placed_in_no_window_is_refused(tmp_path, day):
    rows = release_rows()[:880]
    rows[3]["contest_date"] = day
    path = write_jsonl(tmp_path / "lcb_v1_v5.jsonl", rows)
    with pytest.raises(DataError) as caught:
        load_suite("lcb-v5", tmp_path)
    assert str(caught.value) == f"{path}:4: problem 'q3': contest_date is {day!r}, a date was expected"


def test_a_hostile_pickle_in_the_window_is_refused_and_runs_nothing(tmp_path):
    rows = release_rows()[:880]
    target = tmp_path / "made"
    rows[INSIDE]["private_test_cases"] = base64.b64encode(zlib.compress(pickle.dumps(Calls(target)))).decode()
    write_jsonl(tmp_path / "lcb_v1_v5.jsonl", rows)
    with pytest.raises(DataError, match=f"problem 'q{INSIDE}': private_test_cases: a pickle of something other"):
        load_suite("lcb-v5", tmp_path)
    assert not target.exists()


def test_what_lies_outside_the_window_is_neither_decoded_nor_held(tmp_path):
    """60 MB of tests that can't be read; 5 MB and one row at a time are needed."""
    rows = release_rows()[:880]
    for row in rows[100:130]:
        row["private_test_cases"] = "@" * 2_000_000
    write_jsonl(tmp_path / "lcb_v1_v5.jsonl", rows)
    del rows
    tracemalloc.start()
    try:
        suite = load_suite("lcb-v5", tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(suite.problems) == 279
    assert peak < 20_000_000


def test_our_prompt_has_the_question_the_form_and_the_starter_code_where_there_is_one(release):
    prompts = {p.id: p.prompt for p in load_suite("lcb-v5", release).problems}
    for (message,) in prompts.values():
        assert message["role"] == "user" and message["content"].count("```python") >= 1
    stdio, functional = prompts["q601"][0]["content"], prompts["q603"][0]["content"]
    assert stdio.startswith("Double it (601).") and "standard input" in stdio and "class Solution" not in stdio
    assert "class Solution:\n    def double(self, x: int) -> int:" in functional and "standard input" not in functional


TEMPLATE = {
    "system": "Be good.",
    "with_starter_code": "WITH",
    "without_starter_code": "WITHOUT {starter_code}",
    "user_with_starter_code": "### Q:\n{question}\n\n### F: {with_starter_code}\n{starter_code}\n\n### A\n\n",
    "user_without_starter_code": "### Q:\n{question}\n\n### F: {without_starter_code}\n# HERE\n\n### A\n\n",
}


def test_the_official_template_is_filled_in_one_pass(tmp_path):
    write_jsonl(tmp_path / "lcb_v1_v5.jsonl", release_rows()[:880])
    (tmp_path / "lcb_prompt.json").write_text(json.dumps(TEMPLATE))
    prompts = {p.id: p.prompt for p in load_suite("lcb-v5", tmp_path, prompt="official").problems}
    system = {"role": "system", "content": "Be good."}
    question = "Double it ({}). Not to be filled in: {{starter_code}} {{x}}"
    starter = "class Solution:\n    def double(self, x: int) -> int:\n        "
    assert prompts["q603"] == (
        system,
        {"role": "user", "content": f"### Q:\n{question.format(603)}\n\n### F: WITH\n{starter}\n\n### A\n\n"},
    )
    assert prompts["q601"] == (
        system,
        {
            "role": "user",
            "content": f"### Q:\n{question.format(601)}\n\n### F: WITHOUT {{starter_code}}\n# HERE\n\n### A\n\n",
        },
    )


def official_runner(row: dict, texts: dict) -> str:
    """get_generic_question_template_answer of LiveCodeBench's code_generation.py (28fef95), written down again."""
    prompt = f"### Question:\n{row['question_content']}\n\n"
    if row["starter_code"]:
        prompt += f"### Format: {texts['with_starter_code']}\n"
        prompt += f"```python\n{row['starter_code']}\n```\n\n"
    else:
        prompt += f"### Format: {texts['without_starter_code']}\n"
        prompt += "```python\n# YOUR CODE HERE\n```\n\n"
    return prompt + "### Answer: (use the provided format with backticks)\n\n"


@pytest.mark.shared
def test_the_official_prompt_of_every_v5_problem_is_the_official_runners(shared):
    texts = json.loads((shared / "data" / "lcb_prompt.json").read_text())
    rows = {row["question_id"]: row for row in jsonl(shared / "data" / "lcb_v1_v5.jsonl")}
    problems = load_suite("lcb-v5", shared / "data", prompt="official", errata=False).problems
    assert len(problems) == 279
    for problem in problems:
        system, user = problem.prompt
        assert (system["role"], system["content"], user["role"]) == ("system", texts["system"], "user")
        assert user["content"] == official_runner(rows[problem.id], texts)


def test_a_missing_or_broken_template_is_one_line(tmp_path):
    write_jsonl(tmp_path / "lcb_v1_v5.jsonl", release_rows()[:880])
    with pytest.raises(DataError, match=r"lcb_prompt\.json: no such file; --prompt official reads"):
        load_suite("lcb-v5", tmp_path, prompt="official")
    for text, message in (("{", "not valid JSON"), ("[]", "'system' is missing"), ('{"system": "x"}', "'with_starter")):
        (tmp_path / "lcb_prompt.json").write_text(text)
        with pytest.raises(DataError, match=message):
            load_suite("lcb-v5", tmp_path, prompt="official")


def test_an_unknown_prompt_is_refused_with_the_allowed_ones():
    with pytest.raises(UsageError, match=r"unknown prompt 'offical'; did you mean 'official'\?"):
        load_suite("puzzles", prompt="offical")


def with_faults(folder):
    rows = release_rows()[:880]
    rows[650] |= {"question_id": "arc189_a"}
    rows[651] |= {"question_id": "arc185_c"}
    rows[652] |= {"question_title": "Find the Peaks"}
    rows[10] |= {"question_id": "abc350_c"}  # outside the window
    write_jsonl(folder / "lcb_v1_v5.jsonl", rows)
    return rows


def test_known_faults_are_left_out_or_judged_by_a_checker_and_listed(tmp_path):
    with_faults(tmp_path)
    suite = load_suite("lcb-v5", tmp_path)
    assert [(e.id, e.kind, e.action) for e in suite.errata] == [
        ("arc189_a", "wrong_tests", "left out"),
        ("arc185_c", "multiple_answers", "judged by a checker"),
        ("q652", "multiple_answers", "left out"),
    ]
    assert len(suite.problems) == 277 and set(suite.answers) == {p.id for p in suite.problems}
    assert "arc189_a" not in suite.answers and suite.answers["arc185_c"].expected.checker == CHECKERS["arc185_c"]


def test_without_errata_all_are_there_as_they_were(tmp_path):
    with_faults(tmp_path)
    suite = load_suite("lcb-v5", tmp_path, errata=False)
    assert len(suite.problems) == 279 and suite.errata == ()
    assert {reference.expected.checker for reference in suite.answers.values()} == {None}
    assert suite.content_hash == load_suite("lcb-v5", tmp_path).content_hash


def triple(given: str, expected: str, output: str) -> bool:
    names: dict = {}
    exec(CHECKERS["arc185_c"], names)
    return names["check"](given, expected, output)


@pytest.mark.parametrize(
    ("expected", "output", "right"),
    [
        ("1 2 3", "1 2 3\n", True),
        ("1 2 3", "2 3 5", True),  # 2 + 3 + 1
        ("1 2 3", "3 2 1", False),  # not in rising order
        ("1 2 3", "1 2 4", False),  # 1 + 2 + 9
        ("1 2 3", "1 1 3", False),
        ("1 2 3", "-1", False),
        ("-1", "-1", True),
        ("-1", "1 2 3", True),  # shown to be wrong
        ("1 2 3", "", False),
        ("1 2 3", "0 2 3", False),
        ("1 2 3", "1 2 3 4", False),
        ("1 2 3", "1 2 ³", False),
        ("1 2 3", "1 2 99999999999999999999", False),
        ("1 2 3", "a b c", False),
    ],
)
def test_the_checker_takes_any_triple_of_the_wanted_sum(expected, output, right):
    assert triple("5 6\n1 2 3 9 1\n", expected, output) is right


def test_the_checker_runs_in_the_judge(tmp_path):
    from klearbench.judging.code import CodeJudge

    with_faults(tmp_path)
    rows = [lcb_row(1, "2024-10-13", question_id="arc185_c")]
    rows[0] |= {"public_test_cases": json.dumps([case("5 6\n1 2 3 9 1\n", "1 2 3\n")]), "private_test_cases": "[]"}
    (tmp_path / "one.yaml").write_text("name: one\nfile: one.jsonl\nformat: lcb\n")
    write_jsonl(tmp_path / "one.jsonl", rows)
    tests = load_suite(str(tmp_path / "one.yaml")).answers["arc185_c"]
    programs = ["print(2, 3, 5)", "print(3, 2, 1)"]
    items = [
        (Sample("one", "arc185_c", i, 0, f"```python\n{p}\n```", 0, 0, FinishReason.stop), tests)
        for i, p in enumerate(programs)
    ]
    with CodeJudge() as judge:
        assert [str(v.status) for v in judge.judge(items)] == ["correct", "wrong_answer"]


def test_a_release_that_is_nowhere_is_one_line_with_both_remedies(tmp_path):
    write_parts(tmp_path, release_rows(), parts=5)
    with pytest.raises(DataError) as caught:
        load_suite("lcb-v6", tmp_path)
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'lcb_v1_v6.jsonl'}: no such file; suite 'lcb-v6'") and "\n" not in text
    assert "--data-dir" in text and "livecodebench/code_generation_lite (test.jsonl, " in text
    assert len(load_suite("lcb-v5", tmp_path).problems) == 279


def test_a_suite_survives_a_round_trip_as_json(release):
    """Everything on the question side is plain data: a run keeps it in problems.jsonl."""
    for problem in load_suite("lcb-v6", release).problems:
        assert json.loads(json.dumps(asdict(problem)))["date"] == problem.date
