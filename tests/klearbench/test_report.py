"""The static part of the HTML report as a file, and the text table of the terminal."""

from __future__ import annotations

import base64
import hashlib

import pytest
from report_tools import ROWS, Page, problem, records, write_eval

from klearbench.errors import DataError, UsageError
from klearbench.reports.charts import accuracy_by_length
from klearbench.reports.html import VENDOR, write_report
from klearbench.reports.text import score_lines, score_table
from klearbench.scoring.metrics import SuiteScore, read_eval, score_suite

EVIL = "</script><script>alert(1)</script><!--data--><img src=x onerror=alert(2)> $linked ${css} & \ud800 \x00"


@pytest.fixture
def page(tmp_path) -> Page:
    write_report([write_eval(tmp_path / "base", ROWS)], tmp_path / "report.html")
    return Page(tmp_path / "report.html")


def test_the_table_shows_the_score_and_truncated_apart_from_wrong(page):
    head, row = page.table("Scores")
    found = dict(zip(head, row, strict=True))
    assert (found["Run"], found["Suite"], found["avg@k"], found["pass@k"], found["k"]) == (
        "base", "puzzles", "25.0", "50.0", "2",
    )  # fmt: skip
    assert (found["truncated"], found["no answer"], found["at the limit"]) == ("25.0 %", "1", "1")
    assert "base-model" in page.text
    split = [attrs["class"] for attrs in page.having("i") if "width:25.000%" in (attrs.get("style") or "")]
    assert split == ["correct", "wrong_answer", "no_answer", "truncated"]
    assert "truncated 1 (25.0 %)" in page.text


def test_one_heat_cell_a_problem_with_its_share(page):
    cells = [attrs for attrs in page.having("button") if "data-problem" in attrs]
    assert [(c["data-problem"], c["style"]) for c in cells] == [("a", "--share:50"), ("b", "--share:0")]
    assert cells[0]["title"] == "a: 1 of 2 right, 1 truncated"


def test_the_length_histogram_counts_every_sample(page):
    bars = {kind: page.having("rect", kind) for kind in ("right", "cut", "wrong")}
    assert [len(found) for found in bars.values()] == [1, 1, 2]
    assert page.having("svg")[0]["aria-label"].startswith("4 completions of 0 to 4 tokens")
    assert page.table("Lengths of completions")[1] == ["base", "puzzles", "2", "1", "2", "4", "4", "4"]


def test_accuracy_is_shown_by_length_in_bins_that_part_no_equal_lengths(tmp_path):
    rows = [(f"p{i}", 0, "correct" if i < 15 else "wrong_answer", "x " * (1 + i // 5), "1") for i in range(40)]
    run = read_eval(write_eval(tmp_path / "r", rows, k=1))
    bins = accuracy_by_length(run, "puzzles")
    # 40 samples: four bins from places 0, 10, 20 and 30; the lengths 1 .. 8 stand five times each
    assert [(b.low, b.high, b.judged, b.right) for b in bins] == [
        (1, 2, 10, 10),
        (3, 4, 10, 5),
        (5, 6, 10, 0),
        (7, 8, 10, 0),
    ]
    assert bins[1].points == 50 and bins[1].mean == 3.5
    low, high = bins[1].interval
    assert (round(low, 1), round(high, 1)) == (23.7, 76.3), "Wilson's interval of 5 of 10"
    write_report([tmp_path / "r"], tmp_path / "r.html")
    assert Page(tmp_path / "r.html").table("Accuracy against length")[2] == [
        "3 to 4",
        "10",
        "50.0",
        f"{low:.1f} to {high:.1f}",
    ]


def test_a_group_of_equal_lengths_is_one_bin_however_large(tmp_path):
    rows = [(f"p{i}", 0, "correct", "x y", "1") for i in range(50)] + [("q", 0, "judge_error", "x", None)]
    bins = accuracy_by_length(read_eval(write_eval(tmp_path / "r", rows, k=1)), "puzzles")
    assert [(b.low, b.high, b.judged, b.right) for b in bins] == [(2, 2, 50, 50)]


def test_parts_of_a_suite_have_scores_of_their_own(tmp_path):
    found = [problem("a", date="2024-09-03", meta={"difficulty": "hard"}), problem("b", meta={"difficulty": "easy"})]
    write_report([write_eval(tmp_path / "r", ROWS, problems=found)], tmp_path / "r.html")
    head, easy, hard = Page(tmp_path / "r.html").table("puzzles, by difficulty")
    assert head == ["Difficulty", "problems", "avg@k", "95 % interval", "truncated"]
    assert (easy[:3], easy[4]) == (["easy", "1", "0.0"], "0.0 %")
    assert (hard[:3], hard[4]) == (["hard", "1", "50.0"], "50.0 %")


def test_nothing_is_fetched_and_only_scripts_with_a_named_hash_may_run(page):
    policy = page.having("meta")[-1]["content"]
    for script in (*page.scripts, *(page.unpacked(name.split(".")[0]) for name in VENDOR)):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'") and policy.count("sha256-") == 5
    assert not [attrs for _, attrs in page.elements if "src" in attrs]
    links = [attrs["href"] for _, attrs in page.elements if "href" in attrs]
    assert links[0] == "data:," and all(link.startswith("#") for link in links[1:])
    assert "url(" not in page.raw.replace('url("data:', "").replace("url(%23a)", ""), "no font, no picture"
    assert not [word for word in ("innerHTML", "eval(", "document.write") for script in page.scripts if word in script]


def test_the_licences_of_what_is_vendored_are_in_the_page(page):
    for words in ("Copyright (c) 2020 Ron Kok", "Copyright (c) 2006, Ivan Sagalaev", "temml.min.js", "11.12.0"):
        assert words in page.text


def test_the_vendored_files_are_those_that_are_listed():
    from klearbench.reports.html import resource

    listed = resource("vendor/LICENSES.md")
    for name in (*VENDOR, "temml-local.css"):
        raw = resource(f"vendor/{name}").encode()
        assert f"| {len(raw):,} | {hashlib.sha256(raw).hexdigest()} |" in listed


def test_markup_in_names_is_inert(tmp_path):
    rows = [(EVIL, 0, "wrong_answer", EVIL, EVIL)]
    run = write_eval(tmp_path / "<b>run", rows, k=1, about={"model": EVIL, "errata": {"puzzles": [{"id": EVIL}]}})
    write_report([run], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert len(page.scripts) == 3
    assert not page.having("img") and not page.having("b")
    assert "<script>alert(1)" not in page.raw
    assert "<b>run" in page.text


def test_settings_that_decide_a_score_are_listed(tmp_path):
    errata = {"puzzles": [{"id": "c", "kind": "wrong_tests", "why": "It expects nonsense.", "action": "left out"}]}
    run = write_eval(tmp_path / "r", ROWS, about={"preset": "p-1", "errata": errata}, limit=2, system="Be brief.")
    write_report([run], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    for words in ("temperature 0.6", "only the first 2 of each suite", "'Be brief.'", "p-1", "1 of puzzles"):
        assert words in page.text
    assert page.table("Known faults of the benchmarks")[1] == [
        "puzzles", "c", "wrong_tests", "left out", "It expects nonsense.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "k", "why"),
    [
        ([("a", 0, "judge_error", "x", None)], 2, "1 judge errors, 1 missing, nothing was judged"),
        ([("a", 0, "engine_error", "", None), ("a", 1, "correct", "x", "1")], 2, "1 engine errors"),
        ([("a", 0, "correct", "x", "1"), ("a", 1, "none", "x", None)], 2, "1 missing"),
        ([], 2, "nothing was judged"),
    ],
)
def test_a_score_that_is_not_to_be_trusted_is_marked_with_its_reasons(tmp_path, rows, k, why):
    write_report([write_eval(tmp_path / "r", rows, k=k)], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert page.table("Scores")[1][2].endswith(" (incomplete)")
    assert f"r, puzzles: {why}" in page.text


def test_a_run_that_did_not_finish_is_marked(tmp_path):
    write_report([write_eval(tmp_path / "r", ROWS, scored=False)], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert page.table("Scores")[1][2] == "25.0 (incomplete)"
    assert "the run did not finish" in page.text


def test_an_empty_run_renders(tmp_path):
    write_report([write_eval(tmp_path / "r", [])], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert page.samples() == []
    assert "no score (incomplete)" in page.text and "No token counts." in page.text


def test_the_same_runs_give_the_same_bytes(tmp_path):
    run = write_eval(tmp_path / "r", ROWS, problems=[problem("a"), problem("b")])
    for suffix in ("html", "md", "json"):
        for name in ("one", "two"):
            write_report([run], tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


def test_a_failed_report_leaves_the_old_one(tmp_path):
    run = write_eval(tmp_path / "r", ROWS)
    out = tmp_path / "report.html"
    out.write_text("old")
    (run / "samples.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match=r"samples\.jsonl:1"):
        write_report([run], out)
    assert out.read_text() == "old"
    with pytest.raises(UsageError, match="at least one run"):
        write_report([], out)


def scored(statuses: list[str], suite: str = "puzzles") -> SuiteScore:
    samples, verdicts = records([("a", i, s, "x", None) for i, s in enumerate(statuses)], suite)
    return score_suite(suite, samples, verdicts, ["a"], len(statuses))


def test_the_text_table_is_aligned_markdown():
    table = score_table([("SFT | base", scored(["correct", "truncated"])), ("GPPO", scored(["judge_error"]))])
    lines = table.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split("|")[2:4] == [f"{'avg@k':>22} ", "   k "]
    assert lines[1].split("|")[1:4] == [" " + "-" * 11 + " ", " " + "-" * 20 + ": ", " --: "]
    cells = [[cell.strip() for cell in line.replace("\\|", "/").strip("|").split("|")] for line in lines[2:]]
    assert cells[0] == ["SFT / base", "50.0", "2", "0.0 to 100.0", "50.0 %", "0"]
    assert cells[1] == ["GPPO", "no score (incomplete)", "1", "-", "-", "1"]


def test_the_lines_of_a_run_tell_what_the_limit_did():
    lines = score_lines([scored(["correct", "truncated"])])
    assert lines[-1] == "puzzles: 1 of 2 samples ran into the token limit, 0 of these are right all the same"
    assert len(score_lines([scored(["correct"])])) == 3
