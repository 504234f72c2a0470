"""Suites described by a YAML: where the rows are, which of them, how they are read; and every way to get it wrong."""

from __future__ import annotations

import json

import pytest
from lcbfiles import lcb_row, release_rows
from tools import write_jsonl

from klearbench.errors import ConfigError, DataError, UsageError
from klearbench.suites.files import _SECRET
from klearbench.suites.registry import load_suite
from klearbench.types import Kind

ROWS = [
    {
        "uid": n,
        "q": f"What is {n} + 1?",
        "a": f"Clearly #### {n + 1}",
        "level": ("easy", "hard")[n % 2],
        "year": 2024 + n,
    }
    for n in range(6)
]
FIELDS = 'fields: {id: uid, problem: q, answer: a}\nanswer_after: "####"\n'


def yaml(folder, text, rows=ROWS):
    if rows is not None:
        write_jsonl(folder / "rows.jsonl", rows)
    (folder / "mine.yaml").write_text(f"name: mine\n{text}")
    return str(folder / "mine.yaml")


def ids(suite) -> list[str]:
    return [problem.id for problem in suite.problems]


def test_rows_are_chosen_by_equality_and_the_answer_is_cut_out(tmp_path):
    suite = load_suite(yaml(tmp_path, f"file: rows.jsonl\n{FIELDS}where: {{level: hard}}\nrule: integer\ncount: 3\n"))
    assert ids(suite) == ["1", "3", "5"] and {p.suite for p in suite.problems} == {"mine"}
    assert [(a.answer, a.rule) for a in suite.answers.values()] == [
        ("2", "integer"),
        ("4", "integer"),
        ("6", "integer"),
    ]
    assert [p.meta for p in suite.problems] == [{"level": "hard", "year": year} for year in (2025, 2027, 2029)]
    both = load_suite(yaml(tmp_path, f"file: rows.jsonl\n{FIELDS}where: {{level: hard, year: 2027}}\n"))
    assert ids(both) == ["3"]


@pytest.mark.parametrize("how", ["list", "file"])
def test_problems_are_chosen_by_their_ids_in_the_suites_order(tmp_path, how):
    (tmp_path / "ids.txt").write_text("4\n\n1\n")
    chosen = "ids: ['4', '1']" if how == "list" else "ids: ids.txt"
    suite = load_suite(yaml(tmp_path, f"file: rows.jsonl\n{FIELDS}count: 6\n{chosen}\n"))
    assert ids(suite) == ["1", "4"] and set(suite.answers) == {"1", "4"}
    whole = load_suite(yaml(tmp_path, f"file: rows.jsonl\n{FIELDS}"))
    other = load_suite(yaml(tmp_path, f"file: rows.jsonl\n{FIELDS}ids: ['1']\n"))
    assert len({suite.content_hash, whole.content_hash, other.content_hash}) == 3
    again = load_suite(yaml(tmp_path, f"file: rows.jsonl\n{FIELDS}ids: ['1', '4', '4']\n"))
    assert again.content_hash == suite.content_hash


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "folder"])
def test_the_same_rows_give_the_same_problems_from_every_kind_of_place(tmp_path, kind):
    if kind == "jsonl":
        text = "file: rows.jsonl"
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pytest.importorskip("datasets")
        (tmp_path / "data").mkdir()
        pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "data" / "test-00000-of-00001.parquet")
        text = "file: data/test-00000-of-00001.parquet" if kind == "parquet" else "hub: data"
    suite = load_suite(yaml(tmp_path, f"{text}\n{FIELDS}"))
    assert ids(suite) == ["0", "1", "2", "3", "4", "5"]
    assert [p.prompt[0]["content"] for p in suite.problems] == [row["q"] for row in ROWS]
    assert [a.answer for a in suite.answers.values()] == ["1", "2", "3", "4", "5", "6"]
    assert suite.problems[1].meta == {"level": "hard", "year": 2025}


def test_the_hash_of_a_dataset_folder_covers_its_rows(tmp_path):
    pytest.importorskip("datasets")
    hashes = []
    for rows in (ROWS, ROWS, [*ROWS[:5], {**ROWS[5], "a": "#### 7"}]):
        (tmp_path / "data").mkdir(exist_ok=True)
        write_jsonl(tmp_path / "data" / "test.jsonl", rows)
        hashes.append(load_suite(yaml(tmp_path, f"hub: data\n{FIELDS}", None)).content_hash)
    assert hashes[0] == hashes[1] != hashes[2]


def test_columns_that_hold_answers_stay_out_of_meta_whatever_the_fields_say(tmp_path):
    row = {**ROWS[0], "level": "easy"} | dict.fromkeys(_SECRET, "secret")
    row.pop("tests")
    suite = load_suite(yaml(tmp_path, f"file: rows.jsonl\n{FIELDS}", [row]))
    assert suite.problems[0].meta == {"level": "easy", "year": 2024}
    assert "secret" not in json.dumps([p.prompt for p in suite.problems])


def test_the_kind_may_be_fixed(tmp_path):
    rows = [{"id": "a", "problem": "Which?", "answer": "5", "tests": ["some", "column"]}]
    assert load_suite(yaml(tmp_path, "file: rows.jsonl\nkind: math\n", rows)).problems[0].kind is Kind.math
    with pytest.raises(DataError, match=r"rows\.jsonl:1: problem 'a': test 1 is str"):
        load_suite(yaml(tmp_path, "file: rows.jsonl\n", rows))
    rows = [{"id": "a", "problem": "Which?", "answer": "5"}]
    with pytest.raises(DataError, match=r"rows\.jsonl:1: problem 'a': tests are missing"):
        load_suite(yaml(tmp_path, "file: rows.jsonl\nkind: code\n", rows))


def test_rows_in_livecodebenchs_format_are_a_suite(tmp_path):
    rows = [lcb_row(n, "2031-01-01") for n in range(6)]
    suite = load_suite(yaml(tmp_path, "file: rows.jsonl\nformat: lcb\nwhere: {difficulty: hard}\ncount: 2\n", rows))
    assert ids(suite) == ["q2", "q5"] and suite.problems[0].meta["difficulty"] == "hard"
    assert suite.answers["q2"].inputs.inputs == ("2", "3")


def lcb(folder):
    rows = release_rows()[:880]
    rows[650]["question_id"] = "arc189_a"
    write_jsonl(folder / "lcb_v1_v5.jsonl", rows)


def test_a_known_suite_gives_a_part_under_a_name_of_its_own(tmp_path):
    lcb(tmp_path)
    path = yaml(tmp_path, "suite: lcb-v5\nids: [q700, q651, arc189_a]\n", None)
    suite = load_suite(path, tmp_path)
    assert ids(suite) == ["q651", "q700"] and {p.suite for p in suite.problems} == {"mine"} and suite.name == "mine"
    assert [(e.id, e.action) for e in suite.errata] == [("arc189_a", "left out")]
    assert ids(load_suite(path, tmp_path, errata=False)) == ["arc189_a", "q651", "q700"]
    whole = load_suite(yaml(tmp_path, "suite: lcb-v5\ncount: 278\n", None), tmp_path)
    assert len(whole.problems) == 278 and whole.content_hash == load_suite("lcb-v5", tmp_path).content_hash


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "give one of file, hub and suite; given: none"),
        ("file: rows.jsonl\nhub: org/x\n", "give one of file, hub and suite; given: file, hub"),
        ("file: rows.jsonl\nsplit: train\n", "'split' means nothing here, where the problems come from 'file'"),
        ("suite: lcb-v5\nrule: set\n", "'rule' means nothing here, where the problems come from 'suite'"),
        ("file: rows.jsonl\nformat: lcb\nfields: {id: uid}\n", "'fields' means nothing here"),
        ("file: rows.jsonl\nformat: lbc\n", "did you mean 'lcb'"),
        ("file: rows.jsonl\nanswerafter: x\n", "unknown key 'answerafter'; did you mean 'answer_after'"),
        ("file: rows.jsonl\nfields: {idd: uid}\n", "mine.yaml:3"),
        ("file: rows.jsonl\nkind: maths\n", "kind"),
        (f"file: rows.jsonl\n{FIELDS}where: {{lvl: hard}}\n", "where: no column 'lvl'; did you mean 'level'"),
        (f"file: rows.jsonl\n{FIELDS}where: {{level: medium}}\n", "holds no problem"),
        (f"file: rows.jsonl\n{FIELDS}count: 7\n", "suite 'mine' has 7 problems, the file has 6"),
        (f"file: rows.jsonl\n{FIELDS}ids: ['1', '66']\n", "ids: 'mine' has no problem '66'"),
        (f"file: rows.jsonl\n{FIELDS}ids: []\n", "ids: no problem is left"),
        (f"file: rows.jsonl\n{FIELDS}ids: absent.txt\n", "absent.txt: no such file (ids: one a line)"),
        ('file: rows.jsonl\nfields: {id: uid, problem: q, answer: a}\nanswer_after: "@@"\n', "'a' has no '@@'"),
        ("file: absent.jsonl\n", "absent.jsonl: no such file"),
        ("file: rows.jsonl\nfields: {id: uid, problem: q, answer: b}\n", "rows.jsonl:1: 'b' is missing"),
        ("suite: lcb-v9\n", "unknown suite 'lcb-v9'; did you mean 'lcb-v"),
    ],
)
def test_what_is_wrong_in_a_yaml_is_one_line(tmp_path, text, message):
    with pytest.raises((ConfigError, DataError, UsageError)) as caught:
        load_suite(yaml(tmp_path, text))
    assert message in str(caught.value) and "\n" not in str(caught.value), str(caught.value)


@pytest.mark.parametrize(("hub", "split"), [("some/dataset", "test"), ("data", "tset")])
def test_a_dataset_that_can_not_be_had_is_one_line(tmp_path, hub, split):
    pytest.importorskip("datasets")
    (tmp_path / "data").mkdir()
    write_jsonl(tmp_path / "data" / "test.jsonl", ROWS)
    with pytest.raises(DataError) as caught:
        load_suite(yaml(tmp_path, f"hub: {hub}\nsplit: {split}\n{FIELDS}", None))
    assert f"({split}): can't be read from the hub: " in str(caught.value) and "\n" not in str(caught.value)


def test_a_known_suites_name_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("name: aime24\nsuite: puzzles\n")
    with pytest.raises(ConfigError, match="name is 'aime24', a known suite"):
        load_suite(str(path))


def test_a_suite_file_may_name_another_beside_it_and_not_itself(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "problem": "1?", "answer": "1"}\n')
    (tmp_path / "inner.yaml").write_text("name: inner\nfile: rows.jsonl\n")
    (tmp_path / "outer.yaml").write_text("name: outer\nsuite: inner.yaml\n")
    assert [p.suite for p in load_suite(str(tmp_path / "outer.yaml")).problems] == ["outer"]
    (tmp_path / "self.yaml").write_text("name: mine\nsuite: self.yaml\n")
    with pytest.raises(ConfigError, match="names the file itself"):
        load_suite(str(tmp_path / "self.yaml"))
