"""Runs compared, published figures beside ours, and the report as Markdown and JSON."""

from __future__ import annotations

import json

import pytest
from report_tools import ROWS, SAMPLING, Page, problem, write_eval

from klearbench.errors import UsageError
from klearbench.reports.bundle import read_bundle
from klearbench.reports.compare import compare_runs, differing_settings
from klearbench.reports.html import write_report
from klearbench.reports.published import PUBLISHED, SUITES, differences, published
from klearbench.reports.tables import published_figures


def rows(right: dict[str, int], k: int = 4) -> list[tuple]:
    """k samples of each problem, so many of them right."""
    return [(p, j, "correct" if j < n else "wrong_answer", "x", "1") for p, n in right.items() for j in range(k)]


@pytest.fixture
def two(tmp_path):
    """a: 1 -> 3 of 4, b: 2 -> 2, c: 4 -> 0, d: 0 -> 1: 43.75 -> 37.5."""
    base = write_eval(tmp_path / "base", rows({"a": 1, "b": 2, "c": 4, "d": 0}), k=4)
    other = write_eval(tmp_path / "other", rows({"a": 3, "b": 2, "c": 0, "d": 1}), k=4, sampling={"temperature": 1.0})
    return [base, other]


def test_runs_are_paired_problem_by_problem(two):
    (pair,) = compare_runs(read_bundle(two))
    assert (pair.suite, pair.base, pair.candidate, pair.why_not, pair.left_out) == ("puzzles", "base", "other", "", 0)
    assert (pair.difference.base, pair.difference.candidate, pair.difference.change) == (43.75, 37.5, -6.25)
    assert [change.points for change in pair.changes] == [50, 0, -100, 25]
    assert [change.problem_id for change in pair.most_changed()] == ["c", "a", "d"]


def test_the_page_shows_the_change_and_the_settings_that_differ(tmp_path, two):
    write_report(two, tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    side = page.table("Runs compared")
    assert side[0] == ["Suite", "base", "other"] and side[1][1].startswith("43.8; ")
    found = page.table("Settings that differ: base, other")
    assert ["sampling.temperature", "0.6", "1.0"] in found and ["model", "base-model", "other-model"] in found
    assert "-6.2" in page.text or "-6.3" in page.text
    changed = [attrs["data-problem"] for attrs in page.having("button", "problem")]
    assert changed == ["c", "a", "d"]
    cells = [a["style"] for a in page.having("button") if "--worse" in (a.get("style") or "")]
    assert cells == [
        "--worse:0%;--better:83%",
        "--worse:0%;--better:0%",
        "--worse:100%;--better:0%",
        "--worse:0%;--better:42%",
    ]


@pytest.mark.parametrize(
    ("right", "k", "why"),
    [
        ({"a": 1, "b": 1}, 2, "4 and 2 samples a problem"),
        ({"a": 1, "b": 1, "e": 1}, 4, "other problems: 2 only in the first run, 1 only in the other"),
    ],
)
def test_runs_that_can_not_be_compared_say_why(tmp_path, two, right, k, why):
    other = write_eval(tmp_path / "third", rows(right, k), k=k)
    write_report([two[0], other], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert f"not comparable: {why}" in page.text
    assert not page.having("button", "problem")
    write_report([two[0], other], tmp_path / "r.json")
    (pair,) = json.loads((tmp_path / "r.json").read_text())["compared"]
    assert (pair["comparable"], pair["reason"]) == (False, why)


def test_problems_without_a_judged_sample_are_left_out_of_a_comparison_and_counted(tmp_path, two):
    broken = [
        row if row[0] != "c" else (*row[:2], "judge_error", "x", None) for row in rows({"a": 3, "b": 2, "c": 0, "d": 1})
    ]
    other = write_eval(tmp_path / "broken", broken, k=4)
    (pair,) = compare_runs(read_bundle([two[0], other]))
    assert ([change.problem_id for change in pair.changes], pair.left_out) == (["a", "b", "d"], 1)
    assert pair.difference.base == 25 and pair.incomplete
    write_report([two[0], other], tmp_path / "r.html")
    text = Page(tmp_path / "r.html").text
    assert "1 problems have no judged sample in one of the runs." in text and "(incomplete)" in text


def test_suites_of_one_run_alone_are_not_compared(tmp_path, two):
    other = write_eval(tmp_path / "third", {"sums": rows({"a": 1})}, k=4)
    assert compare_runs(read_bundle([two[0], other])) == []
    write_report([two[0], other], tmp_path / "r.html")
    head, first, second = Page(tmp_path / "r.html").table("Runs compared")
    assert (head, first[0], first[2], second[:2]) == (["Suite", "base", "third"], "puzzles", "-", ["sums", "-"])


def test_the_first_run_is_compared_with_each_other_one(tmp_path, two):
    third = write_eval(tmp_path / "third", rows({"a": 4, "b": 4, "c": 4, "d": 4}), k=4)
    pairs = compare_runs(read_bundle([*two, third]))
    assert [(pair.base, pair.candidate, pair.difference.change) for pair in pairs] == [
        ("base", "other", -6.25), ("base", "third", 56.25),
    ]  # fmt: skip


def test_runs_of_the_same_folder_name_are_told_apart(tmp_path):
    runs = [write_eval(tmp_path / "x" / "eval", ROWS), write_eval(tmp_path / "y" / "eval", ROWS[:2])]
    assert list(read_bundle(runs).runs) == ["x/eval", "y/eval"]
    assert list(read_bundle([runs[0], runs[0]]).runs) == ["x/eval (1)", "x/eval (2)"]


def test_what_a_run_is_extended_by_is_no_differing_setting(tmp_path):
    runs = [
        write_eval(tmp_path / "a", ROWS, seed=1, limit=2, about={"model": "m"}),
        write_eval(tmp_path / "b", ROWS, seed=2, samples={"puzzles": 2}, about={"model": "m"}),
    ]
    bundle = read_bundle(runs)
    assert differing_settings(*bundle.runs.values()) == []


# Published figures


def test_the_published_table_is_whole():
    assert len(PUBLISHED) == 30 and {row.suite for row in PUBLISHED} == set(SUITES)
    by_place = {(row.model, row.suite): row for row in PUBLISHED}
    rl = by_place["Klear-Reasoner-8B, 64K", "aime24"]
    assert (rl.score, rl.k, rl.max_tokens, rl.rope_scaling) == (90.5, 64, 65536, "yarn:2.5")
    code = by_place["Klear-Reasoner-8B, 32K", "lcb-v6"]
    assert (code.score, code.k, code.max_tokens, code.rope_scaling) == (53.1, 8, 32768, None)
    assert [by_place["Qwen3-8B", suite].score for suite in SUITES] == [76.0, 67.3, 44.7, 57.5, 48.4]
    assert published("puzzles") == []


@pytest.mark.shared
def test_the_published_figures_are_those_of_the_design(shared):
    text = (shared / "design" / "klear.md").read_text()
    table = text[text.index("| 8B model |") :].split("\n\n")[0].splitlines()[2:]
    assert len(table) == 6
    models = list(dict.fromkeys(row.model for row in PUBLISHED))
    for line, model in zip(table, models, strict=True):
        name, *figures = [cell.strip() for cell in line.strip("|").split("|")]
        assert [row.score for row in PUBLISHED if row.model == model] == [float(figure) for figure in figures], name


def contest(path, suite="aime24", problems=30, k=64, **config):
    found = [(f"p{i}", j, "correct", "x", "1") for i in range(problems) for j in range(min(k, 2))]
    return write_eval(path, {suite: found}, k=k, **config)


def of(run, suite, model):
    (found,) = read_bundle([run]).runs.values()
    return differences(found, suite, next(row for row in published(suite) if row.model == model))


def test_a_run_with_the_settings_of_a_figure_differs_by_the_judge_alone(tmp_path):
    assert of(contest(tmp_path / "r"), "aime24", "Klear-Reasoner-8B, 32K") == ["judged by ours (strict), not by theirs"]
    code = {"prompt": "official", "code_judge": {"mode": "compat"}}
    assert of(contest(tmp_path / "c", "lcb-v6", 131, 8, **code), "lcb-v6", "Klear-Reasoner-8B, 32K") == []


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ({"k": 8}, "k 8, not 64"),
        ({"sampling": SAMPLING | {"temperature": 1.0}}, "temperature 1.0, not 0.6"),
        ({"sampling": SAMPLING | {"top_p": 1.0}}, "top_p 1.0, not 0.95"),
        ({"sampling": SAMPLING | {"top_k": 0}}, "top_k 0, not 20 (released script)"),
        ({"sampling": SAMPLING | {"repetition_penalty": 1.0}}, "repetition_penalty 1.0, not 1.05 (released script)"),
        ({"sampling": SAMPLING | {"max_tokens": 65536}}, "max_tokens 65536, not 32768"),
        ({"suite_sampling": {"aime24": {"max_tokens": 100}}}, "max_tokens 100, not 32768"),
        ({"engine": {"rope_scaling": "yarn:2.5"}}, "rope scaling yarn:2.5, not none"),
        ({"engine": {"rope_scaling": {"rope_type": "yarn", "factor": 2.5}}}, "rope scaling yarn:2.5, not none"),
        ({"problems": 5, "limit": 5}, "5 problems (limit 5), not 30"),
        ({"system": "Think."}, "a system prompt of your own"),
        ({"about": {"errata": {"aime24": [{"id": "x", "action": "corrected"}]}}}, "errata applied to 1 problems"),
    ],
)  # fmt: skip
def test_each_setting_that_differs_is_told(tmp_path, change, phrase):
    run = contest(tmp_path / "r", **change)
    assert of(run, "aime24", "Klear-Reasoner-8B, 32K") == [phrase, "judged by ours (strict), not by theirs"]


def test_settings_of_code_suites_that_differ_are_told(tmp_path):
    run = contest(tmp_path / "r", "lcb-v5", 279, 8, code_judge={"mode": "strict"}, prompt="ours")
    assert of(run, "lcb-v5", "Qwen3-8B") == [
        "max_tokens 32768 (theirs is not stated)",
        "prompt 'ours', not 'official'",
        "judged by strict rules, not LiveCodeBench's (compat)",
    ]


def test_errata_that_change_nothing_are_no_difference(tmp_path):
    run = contest(tmp_path / "r", about={"errata": {"aime24": [{"id": "x", "action": "listed"}]}})
    assert of(run, "aime24", "Klear-Reasoner-8B, 32K") == ["judged by ours (strict), not by theirs"]


def test_figures_stand_beside_ours_with_what_differs_once(tmp_path):
    runs = [contest(tmp_path / "a", k=2), contest(tmp_path / "b", k=2, sampling=SAMPLING | {"temperature": 1.0})]
    found = published_figures(read_bundle(runs), "aime24")
    assert found.everywhere == [
        "a: k 2, not 64; judged by ours (strict), not by theirs",
        "b: k 2, not 64; temperature 1.0, not 0.6; judged by ours (strict), not by theirs",
    ]
    assert found.table.rows[:2] == (
        ("a (this report)", "100.0", "93.6 to 100.0", "2", ""), ("b (this report)", "100.0", "93.6 to 100.0", "2", ""),
    )  # fmt: skip
    assert found.table.rows[4] == (
        "Klear-Reasoner-8B, 64K", "90.5", "-", "64", "max_tokens 32768, not 65536; rope scaling none, not yarn:2.5",
    )  # fmt: skip
    write_report(runs, tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert [row[:2] for row in page.table("aime24")] == [["Model", "avg@k"], *([r[0], r[1]] for r in found.table.rows)]
    assert "arXiv 2508.07629" in page.text and f"Differs from every figure: {found.everywhere[0]}." in page.text


def test_suites_without_published_figures_have_no_such_section(tmp_path):
    write_report([write_eval(tmp_path / "r", ROWS)], tmp_path / "r.html")
    assert "Published" not in Page(tmp_path / "r.html").text


# Other formats


def test_markdown_has_the_tables(tmp_path, two):
    write_report(two, tmp_path / "r.md")
    lines = (tmp_path / "r.md").read_text().splitlines()
    assert lines[0] == "# Evaluation of base, other"
    scores = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:6]]
    assert scores[0][:3] == ["Run", "Suite", "avg@k"] and set(scores[1]) == {"---", "---:"}
    assert [row[:3] for row in scores[2:]] == [["base", "puzzles", "43.8"], ["other", "puzzles", "37.5"]]
    assert "| sampling.temperature | 0.6 | 1.0 |" in lines
    assert {line.count("|") for line in lines[2:6]} == {17}


def test_markdown_of_hostile_names_keeps_its_cells(tmp_path):
    write_report([write_eval(tmp_path / "a|b_c <b> *x*", ROWS, scored=False)], tmp_path / "r.md")
    lines = (tmp_path / "r.md").read_text().splitlines()
    assert r"| a\|b_c \<b\> \*x\* | puzzles | 25.0 (incomplete) |" in lines[4]
    assert "**Not to be taken for good:**" in lines


def test_json_has_everything_and_says_what_is_not_complete(tmp_path):
    found = [problem("a", meta={"difficulty": "hard"}), problem("b", meta={"difficulty": "easy"})]
    run = write_eval(tmp_path / "r", [*ROWS[:3], ("b", 1, "judge_error", "x", None)], problems=found)
    write_report([run], tmp_path / "r.json")
    whole = json.loads((tmp_path / "r.json").read_text())
    assert (whole["format"], whole["compared"]) == (1, [])
    (row,) = whole["runs"]
    assert (row["name"], row["complete"], row["config"]["seed"]) == ("r", False, 3)
    score = row["scores"]["puzzles"]
    assert (score["complete"], score["reasons"]) == (False, ["1 judge errors"])
    assert (score["avg"], score["judge_errors"], score["counts"]["truncated"]) == (25.0, 1, 1)
    assert [group["name"] for group in score["groups"]["difficulty"]] == ["easy", "hard"]
    counts = {"right": 1, "judged": 2, "truncated": 1, "judge_errors": 0}
    lengths = {"sampled": 2, "tokens": 6, "tokens_squared": 20}  # 2 and 4 tokens
    assert score["per_problem"][0] == {"problem_id": "a", **counts, **lengths}
    assert [b["judged"] for b in score["accuracy_by_length"]] == [3]


def test_json_of_a_pair_has_its_changes(tmp_path, two):
    write_report(two, tmp_path / "r.json")
    whole = json.loads((tmp_path / "r.json").read_text())
    assert [run["complete"] for run in whole["runs"]] == [True, True]
    (pair,) = whole["compared"]
    assert pair["difference"]["points"] == -6.25 and pair["differing_settings"][0]["name"] == "model"
    assert pair["changes"][0] == {
        "problem_id": "a", "base": {"right": 1, "judged": 4}, "candidate": {"right": 3, "judged": 4}, "points": 50.0,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["report.pdf", "report", "report.htm", "report.jsn"])
def test_another_suffix_is_refused_in_one_line(tmp_path, name):
    run = write_eval(tmp_path / "r", ROWS)
    with pytest.raises(UsageError, match=r"unknown format of a report .* \(allowed: \.html, \.json, \.md\)") as error:
        write_report([run], tmp_path / name)
    assert "\n" not in str(error.value)
    assert not (tmp_path / name).exists()


def test_suffixes_may_be_written_large(tmp_path):
    write_report([write_eval(tmp_path / "r", ROWS)], tmp_path / "R.MD")
    assert (tmp_path / "R.MD").read_text().startswith("# Evaluation of r")
