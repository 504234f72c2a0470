"""What the gate writes: Markdown, JUnit XML and JSON, also of names that are out to break them; links that open."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree

import pytest
from gate_tools import BAD, GOOD, klearbench, regress_json, row, write_run

from klearbench.reports.gate import gate_json, gate_junit, gate_markdown, write_gate
from klearbench.scoring.gate import GateOptions, SuitePair, decide
from klearbench.scoring.regress import GateResult

HOSTILE = (
    "a|b", "<script>x</script>", "`code`", "line\nbreak", "](http://evil.example)", "a>b](<x", "*bold* _it_", "\\",
    "&amp;", "nul\0bell\x07", "half \ud800 pair", "\ufffe\uffff", "]]>", '"quoted"', "# head", "ünïcödé 題",
    "../../x", "a b#c&d=e%20",
)  # fmt: skip


def hostile_result(suite: str = "s") -> GateResult:
    """A regression of problems with such names; all have lost, so all are listed."""
    base = [row(name, 8, 8) for name in HOSTILE]
    after = [row(name, 0, 8) for name in HOSTILE]
    options = GateOptions()
    return GateResult("regressed", options, tuple(decide([SuitePair(suite, 8, base, after)], options)))


@pytest.mark.parametrize("suite", ["s", *HOSTILE])
def test_the_markdown_stays_what_it_is_whatever_the_names(suite):
    text = gate_markdown(hostile_result(suite), "report.html")
    lines = text.splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {12}, "a row has its 11 cells"
    assert [line for line in lines if line.startswith("#")] == ["## Regressed: klearbench regress"]
    listed = [line for line in lines if line.startswith("- ")]
    assert len(listed) == 11 and listed[-1].startswith("- and 8 more")
    for line in listed[:-1]:
        assert re.fullmatch(r"- \[.*\]\(<report\.html#[A-Za-z0-9_.~%=&-]*>\): 8/8 -> 0/8, beyond noise by itself", line)
    assert set(re.findall(r"(?<!\\)</?([a-z]+)", text)) <= {"details", "summary", "report"}
    text.encode()  # what no UTF-8 file can hold is gone


def test_junit_holds_every_name_that_xml_can_and_marks_what_it_can_not():
    for suite in ("s", *HOSTILE):
        root = ElementTree.fromstring(gate_junit(hostile_result(suite)).split("\n", 1)[1])
        assert (root.tag, root.get("tests"), root.get("failures"), root.get("errors")) == ("testsuite", "1", "1", "0")
        (case,) = root
        (failure,) = case
        assert (case.get("name"), failure.tag, failure.get("type")) == ("avg@k", "failure", "regressed")
        assert "<script>x</script>: 8/8 -> 0/8" in failure.text
        assert "nul\ufffdbell\ufffd: 8/8 -> 0/8" in failure.text
        assert "half \ufffd pair" in failure.text


def test_the_files_are_written_with_any_name(tmp_path):
    write_gate(tmp_path / "gate", hostile_result(HOSTILE[10]), "report.html")
    loaded = json.loads((tmp_path / "gate" / "regress.json").read_text())
    assert [worse["problem_id"] for worse in loaded["tests"][0]["worst"]] == list(HOSTILE)
    ElementTree.parse(tmp_path / "gate" / "regress.xml")


def test_links_name_the_suite_and_the_problem():
    for worse in gate_json(hostile_result("su|ite &"), "../r/report.html")["tests"][0]["worst"]:
        target, _, fragment = worse["link"].partition("#")
        assert target == "../r/report.html"
        found = parse_qs(fragment, keep_blank_values=True)
        kept = worse["problem_id"].replace("\0", "\ufffd").replace("\ud800", "\ufffd")
        assert found == {"suite": ["su|ite &"], "problem": [kept]}
    assert gate_json(hostile_result())["tests"][0]["worst"][0]["link"] is None, "no report, no link"


def test_links_lead_from_the_gates_folder_to_the_candidates_report(tmp_path):
    good, bad = write_run(tmp_path / "good", GOOD), write_run(tmp_path / "bad one", BAD, seed=5)
    (bad / "report.html").write_text("<p>report</p>")
    folder = tmp_path / "deep" / "er" / "gate"
    assert klearbench("regress", good, bad, "-o", folder).code == 1
    links = re.findall(r"\(<([^>]*)>\)", (folder / "regress.md").read_text())
    assert len(links) == 3, "two problems and the report itself"
    for link in links:
        path = folder / unquote(link.partition("#")[0])
        assert path.read_text() == "<p>report</p>"
    assert parse_qs(links[0].partition("#")[2]) == {"suite": ["puzzles"], "problem": ["p0"]}
    done = klearbench("regress", good, bad, "-o", folder, "--report", "https://ci.example/r.html")
    assert done.code == 1
    assert "(<https://ci.example/r.html#suite=puzzles&problem=p0>)" in (folder / "regress.md").read_text()


KEYS = {"format", "status", "exit_code", "field", "reason", "options", "base", "candidate", "notes", "tests"}
TEST_KEYS = {
    "suite", "metric", "unit", "status", "k", "problems", "left_out", "base", "candidate", "change", "interval",
    "interval_problems", "interval_naive", "max_drop", "shown", "p_value", "p_adjusted", "p_within", "worst",
}  # fmt: skip
WORSE_KEYS = {
    "problem_id", "base", "candidate", "base_samples", "candidate_samples", "p_value", "beyond_noise", "link",
}  # fmt: skip


def test_every_end_has_its_three_files_with_the_same_keys(tmp_path):
    good, bad = write_run(tmp_path / "good", GOOD), write_run(tmp_path / "bad", BAD, seed=5)
    few = write_run(tmp_path / "few", {"puzzles": {"p0": 1}}, k=1)
    also = write_run(tmp_path / "also", {"puzzles": {"p0": 1}}, k=1)
    ends = [
        (bad, good, (), 0, "ok", "Gate passed", ("1", "0", "0")),
        (good, bad, (), 1, "regressed", "Regressed", ("1", "1", "0")),
        (good, tmp_path / "nowhere", (), 2, "error", "Bad input", ("1", "0", "1")),
        (good, few, (), 3, "not_comparable", "Not comparable", ("1", "0", "1")),
        (few, also, (), 3, "not_enough_data", "Not enough data", ("1", "0", "1")),
        (bad, bad, ("--prove",), 3, "not_enough_data", "Not enough data", ("1", "0", "1")),
    ]
    for base, candidate, words, code, status, headline, junit in ends:
        done, loaded = regress_json(base, candidate, *words)
        folder = tmp_path / f"{base.name}-{candidate.name}-gate"
        assert (done.code, loaded["status"], loaded["exit_code"], loaded["format"]) == (code, status, code, 2)
        assert loaded.keys() == KEYS
        for test in loaded["tests"]:
            assert test.keys() == TEST_KEYS
            assert all(worse.keys() == WORSE_KEYS for worse in test["worst"])
        assert (folder / "regress.md").read_text().startswith(f"## {headline}: klearbench regress\n")
        root = ElementTree.parse(folder / "regress.xml").getroot()
        assert tuple(root.get(name) for name in ("tests", "failures", "errors")) == junit
        assert len(root) == 1
        assert (loaded["reason"] is None) is (code < 2)
        if loaded["reason"]:
            assert len([line for line in done.err if not line.startswith("note: ")]) == 1
            assert loaded["reason"] in done.err[-1]
            assert f"**{loaded['field']}" in (folder / "regress.md").read_text()


def test_json_on_stdout_is_one_object_and_the_same_as_the_file(tmp_path):
    good, bad = write_run(tmp_path / "good", GOOD), write_run(tmp_path / "bad", BAD, seed=5)
    other_k = write_run(tmp_path / "other", GOOD, k=2)
    for candidate, words, code in ((bad, (), 1), (other_k, (), 3), (bad, ("--suite", "x"), 2)):
        done, loaded = regress_json(good, candidate, "--json", *words)
        assert (done.code, json.loads("\n".join(done.out))) == (code, loaded)


def test_the_files_of_an_earlier_gate_are_replaced(tmp_path):
    good, bad = write_run(tmp_path / "good", GOOD), write_run(tmp_path / "bad", BAD, seed=5)
    for base, candidate, status in ((good, bad, "regressed"), (bad, good, "ok"), (good, tmp_path / "x", "error")):
        klearbench("regress", base, candidate, "-o", tmp_path / "gate")
        assert json.loads((tmp_path / "gate" / "regress.json").read_text())["status"] == status
        assert len(list((tmp_path / "gate").iterdir())) == 3
