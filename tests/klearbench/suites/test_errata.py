"""Known faults of the benchmarks: the table is LiveCodeBench's own, wrong copies are corrected, misprints are told."""

from __future__ import annotations

import json
import re

import pytest
from tools import jsonl, write_jsonl

from klearbench.suites.errata import COPIES, LCB, lcb_erratum, statement_hash
from klearbench.suites.registry import load_suite


@pytest.mark.shared
def test_the_table_is_livecodebenchs_own(shared):
    theirs = json.loads((shared / "data" / "lcb_errata.json").read_text())
    assert {kind: set(ids) for kind, ids in LCB.items()} == {k: set(v) for k, v in theirs.items() if k != "source"}
    assert sum(map(len, LCB.values())) == 17


@pytest.mark.shared
def test_every_fault_of_the_table_is_found_among_the_problems(shared):
    rows = jsonl(shared / "data" / "lcb_v1_v5.jsonl")
    found = [erratum for erratum in (lcb_erratum(row, {}) for row in rows) if erratum is not None]
    assert len(found) == 17 and {erratum.action for erratum in found} == {"left out"}
    kinds = [erratum.kind for erratum in found]
    assert {kind: kinds.count(kind) for kind in LCB} == {kind: len(ids) for kind, ids in LCB.items()}


@pytest.mark.parametrize("title", ["find-the-peaks", "Find the Peaks", " Find The Peaks! "])
def test_a_leetcode_problem_goes_by_its_slug_however_the_title_is_written(title):
    erratum = lcb_erratum({"question_id": "3221", "question_title": title}, {})
    assert (erratum.id, erratum.kind) == ("3221", "multiple_answers")
    assert lcb_erratum({"question_id": "3221", "question_title": "Peaks"}, {}) is None


def copy_of(shared, folder, name, change):
    """The suite's file with one row changed; `change` takes the row whose label it is asked for."""
    rows = [change(dict(row)) for row in jsonl(shared / "data" / f"{name}.jsonl")]
    write_jsonl(folder / f"{name}.jsonl", rows)
    return folder


@pytest.mark.shared
@pytest.mark.parametrize("name", ["aime24", "aime25", "aime26", "hmmt25", "amc23", "math500", "gsm8k", "olympiad"])
def test_the_checked_copies_have_no_known_fault(shared, name):
    assert load_suite(name, shared / "data").errata == ()


@pytest.mark.shared
def test_the_circulating_wrong_answer_is_corrected_and_listed(shared, tmp_path):
    def change(row):
        return {**row, "answer": "384"} if row["id"] == "aime24-I-12" else row

    suite = load_suite("aime24", copy_of(shared, tmp_path, "aime24", change))
    (erratum,) = suite.errata
    assert (erratum.id, erratum.kind, erratum.action) == ("aime24-I-12", "wrong_answer", "corrected")
    assert suite.answers["aime24-I-12"].answer == "385" and suite.answers["aime24-I-12"].rule == "integer_0_999"
    assert suite.answers == load_suite("aime24", shared / "data").answers
    plain = load_suite("aime24", tmp_path, errata=False)
    assert plain.errata == () and plain.answers["aime24-I-12"].answer == "384"


@pytest.mark.shared
def test_the_wrong_answer_is_found_by_the_words_under_another_id_and_layout(shared, tmp_path):
    def change(row):
        text = re.sub(r"\s+", "\n ", row["problem"]).replace("$", r"\( ")
        return {**row, "id": "x" + row["id"][-5:], "problem": text, "answer": row["answer"].replace("385", "384")}

    suite = load_suite("aime24", copy_of(shared, tmp_path, "aime24", change))
    assert [(e.id, e.action) for e in suite.errata] == [("x-I-12", "corrected")]
    assert suite.answers["x-I-12"].answer == "385"


@pytest.mark.shared
def test_another_384_is_nobodys_fault(shared, tmp_path):
    def change(row):
        return {**row, "answer": "384"} if row["id"] == "aime24-I-11" else row

    suite = load_suite("aime24", copy_of(shared, tmp_path, "aime24", change))
    assert suite.errata == () and suite.answers["aime24-I-11"].answer == "384"


@pytest.mark.shared
@pytest.mark.parametrize("key", ["aime25-I-14", "aime25-II-15"])
@pytest.mark.parametrize(
    "misprint", [lambda text: re.sub(r"\d", "7", text, count=1), lambda text: text.replace("positive", "negative", 1)]
)
def test_a_statement_that_differs_from_the_checked_copy_is_told(shared, tmp_path, key, misprint):
    def change(row):
        return {**row, "problem": misprint(row["problem"])} if row["id"] == key else row

    folder = copy_of(shared, tmp_path, "aime25", change)
    assert jsonl(folder / "aime25.jsonl") != jsonl(shared / "data" / "aime25.jsonl")
    (erratum,) = load_suite("aime25", folder).errata
    assert (erratum.id, erratum.kind, erratum.action) == (key, "wrong_statement", "listed")
    assert "differs from the checked copy" in erratum.why
    assert len(load_suite("aime25", folder).problems) == 30


@pytest.mark.shared
@pytest.mark.parametrize("key", ["aime25-I-14", "aime25-II-15"])
def test_another_layout_of_the_same_statement_is_no_misprint(shared, tmp_path, key):
    def change(row):
        text = row["problem"].replace("$$", "\n\\[").replace("$", " $ ").replace(r"\frac", r"\dfrac")
        return {**row, "problem": text.replace(" ", "  ")} if row["id"] == key else row

    assert load_suite("aime25", copy_of(shared, tmp_path, "aime25", change)).errata == ()


def test_a_hash_of_a_statement_overlooks_layout_and_nothing_else():
    one = statement_hash(r"Let $AB = \frac{1}{2}$. Find $x+1$.")
    assert one == statement_hash("Let \\(AB=\\dfrac{1}{2}\\).\nFind  \\displaystyle{x + 1}.")
    others = [r"Let $AB = \frac{1}{3}$. Find $x+1$.", r"Let $AB = \frac{1}{2}$. Find $x-1$.", "Let AB = 1/2. Find x+1."]
    assert one not in map(statement_hash, others)


def test_the_table_of_copies_holds_no_text():
    for known in COPIES:
        assert all(re.fullmatch("[0-9a-f]{8}", word) for word in known.words) and len(known.words) >= 7
        assert known.statement is None or re.fullmatch("[0-9a-f]{16}", known.statement)
