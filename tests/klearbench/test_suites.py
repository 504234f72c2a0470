"""Suites read from files: counts, ids, rules, and no answer on the question's side."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict

import pytest
from tools import ROOT, write_jsonl

from klearbench.errors import ConfigError, DataError, UsageError
from klearbench.suites.registry import SUITES, load_suite
from klearbench.suites.suitefile import load_suite_file
from klearbench.types import Kind

COUNTS = {
    "aime24": 30, "aime25": 30, "aime26": 30, "hmmt25": 30, "amc23": 40, "math500": 500, "gsm8k": 1319, "olympiad": 675,
}  # fmt: skip
FILES = {name: f"{name}.jsonl" for name in COUNTS} | {"gsm8k": "gsm8k_test.jsonl", "olympiad": "olympiadbench.jsonl"}


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    """As in the folder `suites`: no test asks the real hub."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("KLEARBENCH_DATA", raising=False)
    for module in ("huggingface_hub.constants", "datasets.config"):
        if module in sys.modules:
            monkeypatch.setattr(f"{module}.HF_HUB_OFFLINE", True)


@pytest.mark.shared
@pytest.mark.parametrize("name", COUNTS)
def test_a_benchmark_has_its_problems_ids_and_rules(shared, name):
    suite = load_suite(name, shared / "data")
    rows = [json.loads(line) for line in (shared / "data" / FILES[name]).read_text().splitlines()]
    assert len(suite.problems) == COUNTS[name] == SUITES[name].count
    assert [p.id for p in suite.problems] == [row["id"] for row in rows]
    assert [p.prompt for p in suite.problems] == [({"role": "user", "content": row["problem"]},) for row in rows]
    assert {key: a.answer for key, a in suite.answers.items()} == {row["id"]: str(row["answer"]) for row in rows}
    assert {p.kind for p in suite.problems} == {Kind.math} and {p.suite for p in suite.problems} == {name}
    rules = {a.rule for key, a in suite.answers.items() if key != "hmmt25-10"}
    assert rules == {"integer_0_999" if name.startswith("aime") else "expression"}


@pytest.mark.shared
def test_the_answer_whose_order_is_free_is_compared_as_a_set(shared):
    assert load_suite("hmmt25", shared / "data").answers["hmmt25-10"].rule == "set"


@pytest.mark.shared
@pytest.mark.parametrize("name", COUNTS)
def test_no_answer_and_no_solution_stands_in_a_problem(shared, name):
    rows = {}
    for line in (shared / "data" / FILES[name]).read_text().splitlines():
        rows[json.loads(line)["id"]] = json.loads(line)
    for problem in load_suite(name, shared / "data").problems:
        assert set(problem.meta) == set(rows[problem.id]) - {"id", "problem", "answer", "source", "date", "solution"}
        solution = rows[problem.id].get("solution")
        assert solution is None or solution not in json.dumps(asdict(problem))


@pytest.mark.shared
@pytest.mark.parametrize("name", COUNTS)
def test_the_gold_of_a_suite_is_accepted_by_its_own_judge(shared, name):
    from klearbench.judging.judge import MathJudge, check_golds

    with MathJudge() as judge:
        check_golds(load_suite(name, shared / "data").answers.values(), judge)


def aime_rows(count: int = 30) -> list[dict]:
    return [{"id": f"p-{i}", "problem": f"Find {i}.", "answer": str(i), "source": "made up"} for i in range(count)]


def broken(folder, line: int, text: str):
    path = write_jsonl(folder / "aime24.jsonl", aime_rows())
    lines = path.read_text().splitlines()
    lines[line - 1] = text
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "p-16", "problem": "Find', "not valid JSON"),
        ("[1, 2]", "a JSON object was expected, found list"),
        ('{"id": "p-16", "problem": "Find 16."}', "'answer' is missing"),
        ('{"id": "p-16", "problem": "", "answer": "1"}', "'problem' is missing"),
        ('{"id": "p-16", "problem": "Find 16.", "answer": NaN}', "NaN"),
        ('{"id": "p-3", "problem": "Find 16.", "answer": "1"}', "id 'p-3' stands twice"),
    ],
)
def test_a_corrupt_line_17_is_named(tmp_path, text, message):
    path = broken(tmp_path, 17, text)
    with pytest.raises(DataError) as caught:
        load_suite("aime24", tmp_path)
    assert f"{path}:17: " in str(caught.value) and message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("count", [29, 31])
def test_another_number_of_problems_is_refused(tmp_path, count):
    write_jsonl(tmp_path / "aime24.jsonl", aime_rows(count))
    with pytest.raises(DataError, match=f"'aime24' has 30 problems, the file has {count}"):
        load_suite("aime24", tmp_path)


def test_a_missing_file_and_a_missing_folder_say_where_data_is_looked_for(tmp_path):
    with pytest.raises(DataError, match=r"aime24\.jsonl: no such file; .*--data-dir"):
        load_suite("aime24", tmp_path)
    with pytest.raises(UsageError, match=r"needs aime24\.jsonl: name its folder"):
        load_suite("aime24")


def test_the_environment_names_the_folder(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "aime24.jsonl", aime_rows())
    monkeypatch.setenv("KLEARBENCH_DATA", str(tmp_path))
    assert len(load_suite("aime24").problems) == 30


def test_an_unknown_suite_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match=r"unknown suite 'amie24'; did you mean 'aime24'\?.*\.jsonl"):
        load_suite("amie24")


ROWS = [
    {"uid": 7, "question": "One plus one?", "gold": 2, "level": "easy", "solution": "It is 2.", "answer": "2"},
    {"uid": "x", "question": "A third?", "gold": "1/3", "level": "hard", "solution": "...", "answer": "1/3"},
]
YAML = "name: mine\nfile: {file}\nfields: {{id: uid, problem: question, answer: gold}}\nrule: expression\n"


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_suite_of_ones_own_with_other_column_names(tmp_path, kind):
    if kind == "jsonl":
        write_jsonl(tmp_path / "rows.jsonl", ROWS)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = [{**row, "uid": str(row["uid"]), "gold": str(row["gold"])} for row in ROWS]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    (tmp_path / "mine.yaml").write_text(YAML.format(file=f"rows.{kind}"))
    suite = load_suite(str(tmp_path / "mine.yaml"))
    assert suite.name == "mine" and [p.id for p in suite.problems] == ["7", "x"]
    assert [p.prompt[0]["content"] for p in suite.problems] == ["One plus one?", "A third?"]
    assert [suite.answers[key].answer for key in ("7", "x")] == ["2", "1/3"]
    assert [p.meta for p in suite.problems] == [{"level": "easy"}, {"level": "hard"}]


def test_a_plain_file_is_a_suite_named_by_its_stem(tmp_path):
    row = {"id": "a", "problem": "Which?", "answer": "5", "rule": "integer", "date": "2025-02-06", "source": "s"}
    suite = load_suite(str(write_jsonl(tmp_path / "own.jsonl", [row])))
    problem = suite.problems[0]
    assert (suite.name, problem.source, problem.date, suite.answers["a"].rule) == ("own", "s", "2025-02-06", "integer")


COLUMNS_OF_ANSWERS = (
    "solution", "solutions", "answers", "gold", "final_answer", "expected_answer", "ground_truth", "reference",
    "reference_answer", "target", "generated_solution", "reward_model",
)  # fmt: skip


def test_no_column_that_usually_holds_an_answer_comes_along(tmp_path):
    row = {"id": "a", "problem": "Which?", "answer": "5", "level": 3} | dict.fromkeys(COLUMNS_OF_ANSWERS, "5")
    suite = load_suite(str(write_jsonl(tmp_path / "own.jsonl", [row])))
    assert suite.problems[0].meta == {"level": 3}


def test_another_content_is_another_hash(tmp_path):
    path = write_jsonl(tmp_path / "own.jsonl", aime_rows(2))
    one = load_suite(str(path)).content_hash
    write_jsonl(path, aime_rows(3))
    assert load_suite(str(path)).content_hash != one


def refused(path) -> str:
    with pytest.raises((DataError, ConfigError, UsageError)) as caught:
        load_suite_file(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_wrong_suite_files_are_refused_in_one_line(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n")
    assert "holds no problem" in refused(tmp_path / "empty.jsonl")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 nothing")
    assert "not a readable Parquet file" in refused(tmp_path / "torn.parquet")
    assert "absent.parquet: no such file" in refused(tmp_path / "absent.parquet")
    assert "ends in .jsonl, .parquet or .yaml" in refused(tmp_path / "rows.csv")
    (tmp_path / "a.yaml").write_text("name: a\nfile: b.jsonl\nfeilds: {id: uid}\n")
    assert "did you mean 'fields'" in refused(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_text("name: a\nfile: b.jsonl\nfields: {idd: uid}\n")
    assert "b.yaml:3" in refused(tmp_path / "b.yaml")
    write_jsonl(tmp_path / "b.jsonl", ROWS)
    (tmp_path / "c.yaml").write_text(YAML.format(file="b.jsonl").replace("gold", "glod"))
    assert "b.jsonl:1: 'glod' is missing" in refused(tmp_path / "c.yaml")
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist([*aime_rows(2), aime_rows(1)[0]]), tmp_path / "twice.parquet")
    assert "twice.parquet:3: id 'p-0' stands twice" in refused(tmp_path / "twice.parquet")


def test_the_page_on_suites_has_every_one_with_its_count_and_where_to_get_it():
    rows = [line for line in (ROOT / "docs" / "suites.md").read_text().splitlines() if line.startswith("| `")]
    told = {name: row.split("|") for row in reversed(rows) for name in re.findall("`([^`]+)`", row.split("|")[1])}
    for name, info in SUITES.items():
        assert told[name][2].strip().removesuffix(" each") == str(info.count), name
        assert info.file is None or info.file in told[name][4] or told[name][4].strip() == "the same"
        assert info.hub is None or info.hub.dataset in told[name][5] or told[name][5].strip().startswith("the same")
