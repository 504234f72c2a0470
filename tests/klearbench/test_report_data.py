"""The samples inside of a report: nothing lost, nothing leaked, memory flat, long texts beside the page."""

from __future__ import annotations

import json
import random
import tracemalloc

import pytest
from report_tools import ROWS, Page, problem, write_eval

from klearbench.engines.base import Request
from klearbench.evaluate import EvalOptions, evaluate
from klearbench.reports.failing import failing_test
from klearbench.reports.html import write_report
from klearbench.suites.files import load_problem_file

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> $data & \ud800 \udfff\x00 \\x $\\frac{"


@pytest.fixture
def base(tmp_path):
    return write_eval(tmp_path / "base", ROWS, problems=[problem("a", text="Ask a"), problem("b", text="Ask b")])


def test_the_viewer_holds_every_sample_in_the_order_of_the_problems(tmp_path, base):
    write_report([base], tmp_path / "r.html")
    rows = Page(tmp_path / "r.html").samples()
    assert [(row["problem"], row["index"], row["end"]) for row in rows] == [row[:3] for row in ROWS]
    assert [(row["completion"], row["extracted"]) for row in rows] == [row[3:] for row in ROWS]
    assert [row["detail"] for row in rows] == [f"why {row[2]}" for row in ROWS]
    assert [(row["tokens"], row["limit"], row["chars"]) for row in rows] == [
        (2, 0, 4),
        (4, 1, 17),
        (2, 0, 4),
        (1, 0, 2),
    ]
    assert rows[0]["shown"] == "answer 7"


def test_what_was_asked_is_shown_once_a_problem(tmp_path, base):
    other = write_eval(tmp_path / "other", ROWS, problems=[problem("a", text="Ask a"), problem("b", text="Changed")])
    old = write_eval(tmp_path / "old", ROWS)
    write_report([base, other, old], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    asked = [item["messages"] for item in page.data("prompts0")]
    assert asked == [[["user", "Ask a"]], [["user", "Ask b"]], [["user", "Changed"]]]
    numbers = {(row["run"], row["problem"]): row["asked"] for row in page.samples()}
    assert [numbers[key] for key in (("base", "a"), ("base", "b"), ("other", "a"), ("other", "b"))] == [0, 1, 0, 2]
    assert numbers["old", "a"] == -1, "an older folder does not hold it"


def test_text_of_models_comes_back_whole(tmp_path):
    run = write_eval(tmp_path / "r", [(EVIL, 0, "wrong_answer", EVIL, EVIL, {"detail": EVIL})], k=1)
    write_report([run], tmp_path / "r.html")
    (row,) = Page(tmp_path / "r.html").samples()
    assert row["problem"] == row["completion"] == row["extracted"] == row["detail"] == EVIL


def test_samples_without_verdict_and_failed_ones_are_told_apart(tmp_path):
    rows = [("a", 0, "none", "x", None), ("a", 1, "engine_error", "", None)]
    write_report([write_eval(tmp_path / "r", rows)], tmp_path / "r.html")
    found = Page(tmp_path / "r.html").samples()
    assert [row["end"] for row in found] == ["not_judged", "engine_error"]
    assert "detail" not in found[0]


def test_records_in_any_order_come_out_sorted(tmp_path):
    rows = [(f"p{p}", j, "correct", f"text {p} {j}", "1") for j in (2, 0, 1) for p in range(150)]
    run = write_eval(tmp_path / "r", rows, k=3)
    write_report([run], tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    found = page.samples()
    assert [(row["problem"], row["index"]) for row in found] == [(f"p{p}", j) for p in range(150) for j in range(3)]
    assert [row["completion"] for row in found] == [f"text {p} {j}" for p in range(150) for j in range(3)]
    assert sum(name.startswith("texts") for name in page.packed) == 5, "450 samples, 100 a piece"


def code_rows(detail: str) -> list[tuple]:
    verdict = {"detail": detail, "passed": 2, "total": 9, "cpu_s": 0.25, "peak_mb": 31.0}
    return [("c", 0, "wrong_answer", "```python\nprint(5)\n```", "print(5)", verdict)]


def test_a_programs_failing_test_is_read_out_of_its_detail(tmp_path):
    detail = r"test 3 of 9: line 2: expected '4', got '5'; 3 lines expected, 2 printed (input '3\n1 2 3\n') [local-0]"
    write_report([write_eval(tmp_path / "r", code_rows(detail), k=1)], tmp_path / "r.html")
    (row,) = Page(tmp_path / "r.html").samples()
    assert row["test"] == {
        "test": "3", "total": "9", "where": "line 2", "expected": "4", "got": "5", "input": "3\n1 2 3\n",
        "what": "3 lines expected, 2 printed", "slot": "local-0",
    }  # fmt: skip
    assert (row["passed"], row["total"], row["cpu_s"], row["shown"]) == (2, 9, 0.25, "2 of 9 tests")
    assert row["extracted"] == "print(5)"


@pytest.mark.parametrize(
    ("what", "parts"),
    [
        ("expected 'a', got no output (input 'x')", {"expected": "a", "got": "no output", "input": "x"}),
        ("at [0][1]: expected 3, got None (input '[1]')",
         {"where": "at [0][1]", "expected": "3", "got": "None", "input": "[1]"}),
        ("""expected "it's", got ', got \\'4\\' (input 5)' (input 'y')""",
         {"expected": "it's", "got": ", got '4' (input 5)", "input": "y"}),
        ("expected a list of 3, got an integer of 900 bits (input 'z')",
         {"expected": "a list of 3", "got": "an integer of 900 bits", "input": "z"}),
        ("expected 'aaa'... (900 characters), got 'b' (input '1'... (70 characters))",
         {"expected": "aaa... (900 characters)", "got": "b", "input": "1... (70 characters)"}),
        ("the checker refuses the output (input '7')", {"what": "the checker refuses the output", "input": "7"}),
        ("7.20 s of CPU time, the limit is 6 s", {"what": "7.20 s of CPU time, the limit is 6 s"}),
        ("exit code 1: 'boom (input of users)'", {"what": "exit code 1: 'boom (input of users)'"}),
    ],
)  # fmt: skip
def test_every_kind_of_detail_is_read(what, parts):
    assert failing_test(f"test 2 of 3: {what} [docker-1]") == {"test": "2", "total": "3", "slot": "docker-1", **parts}


def test_details_as_the_judge_writes_them_are_read_whatever_the_texts_hold():
    from klearbench.judging.compare import compare_output, shorten

    texts = ["4", "", "'", '"', "\\", "a\nb", "(input 'x')", ", got 5", "x" * 200, "] [local-0", "é\ud800", "…'\"\\'"]
    for expected in (text for text in texts if text.strip()):
        for got in texts:
            found = compare_output(expected, got.encode("utf-8", "surrogatepass"))
            if found.equal or "UTF-8" in found.detail or "all lines" in found.detail:
                continue
            for given in texts:
                read = failing_test(f"test 1 of 2: {found.detail} (input {shorten(given)}) [local-0]")
                want = expected.split("\n")[0] if got.strip() else expected
                assert (read["expected"][:20], read["input"][:20]) == (want[:20], given[:20]), found.detail


def test_a_detail_that_names_no_test_is_none():
    for detail in ("", "9 tests passed [local-0]", "no code block", "test x of y: z"):
        assert failing_test(detail) is None


def test_beyond_the_budget_the_longest_completions_are_files_beside_the_page(tmp_path):
    rows = [("a", i, "correct", f"{i} " + "xyz " * (25_000 if i in (1, 3) else 50), "7") for i in range(6)]
    rows[1] = (*rows[1][:3], "é\ud800" + "".join(random.Random(1).choices("abcdefgh", k=100_000)), "7")
    run = write_eval(tmp_path / "r", rows, k=6)
    write_report([run], tmp_path / "small.html")
    room = (tmp_path / "small.html").stat().st_size
    assert not (tmp_path / "small_files").exists()
    write_report([run], tmp_path / "a report.html", max_bytes=room - 20_000)
    page = Page(tmp_path / "a report.html")
    assert (tmp_path / "a report.html").stat().st_size <= room - 20_000
    found = page.samples()
    assert [row["completion"] is None for row in found] == [False, True, False, False, False, False]
    assert found[1]["chars"] == 100_002 and found[1]["detail"] == "why correct"
    name = found[1]["file"].removeprefix("a%20report_files/")
    linked = (tmp_path / "a report_files" / name).read_bytes()
    assert linked.decode("utf-8-sig", "surrogatepass") == rows[1][3]
    assert "the 1 longest completions are files of their own (0.1 MB) in a report_files/" in page.text
    assert "with 6 samples, 1 of the completions beside it" in page.text


def test_the_size_that_is_stated_is_that_of_the_file(tmp_path, base):
    write_report([base], tmp_path / "r.html")
    size = (tmp_path / "r.html").stat().st_size
    assert f"This file: {size / 1e6:.1f} MB with 4 samples." in Page(tmp_path / "r.html").text


def test_files_of_an_earlier_report_go_and_those_of_others_stay(tmp_path):
    rows = [("a", i, "correct", f"{i} " + "xyz " * 25_000, "7") for i in range(4)]
    run = write_eval(tmp_path / "r", rows, k=4)
    folder = tmp_path / "report_files"
    write_report([run], tmp_path / "report.html", max_bytes=1)
    assert len(list(folder.iterdir())) == 4
    (folder / "picture.png").write_bytes(b"mine")
    (folder / "notes.txt").write_text("mine")
    write_report([run], tmp_path / "report.html")
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "picture.png"]
    assert all(row["completion"] for row in Page(tmp_path / "report.html").samples())


def test_a_page_that_can_not_be_small_enough_is_written_all_the_same(tmp_path):
    rows = [("a", i, "correct", f"{i} short", "7") for i in range(100)]
    write_report([write_eval(tmp_path / "r", rows, k=100)], tmp_path / "r.html", max_bytes=1)
    assert len(Page(tmp_path / "r.html").samples()) == 100
    assert not (tmp_path / "r_files").exists(), "short texts stay"


def test_memory_does_not_grow_with_the_texts(tmp_path):
    def peak(chars: int) -> int:
        line = "".join(chr(97 + i * i * i % 26) for i in range(chars))
        rows = [(f"p{i}", 0, "correct", f"{i} {line}", "7") for i in range(40)]
        run = write_eval(tmp_path / str(chars), rows, k=1)
        del rows
        tracemalloc.start()
        write_report([run], tmp_path / f"{chars}.html", max_bytes=400_000)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(10)
    small, large = peak(10_000), peak(400_000)
    assert large - small < 8_000_000, "of 16 MB of texts a few are held"


class Answers:
    """An engine that says 0, whatever it is asked."""

    batch_size = 4

    def identity(self):
        return {"name": "toy"}

    def generate(self, requests: list[Request], sampling):
        from klearbench.engines.base import Generation
        from klearbench.types import FinishReason

        return [Generation("\\boxed{0}", FinishReason.stop, 1, 1) for _ in requests]

    def close(self):
        pass


def test_no_reference_answer_is_in_the_page_packed_or_not(tmp_path):
    secret = 918273645546372819
    rows = [{"id": f"q{i}", "problem": f"Secret {i}?", "answer": str(secret + i), "rule": "integer"} for i in range(3)]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    evaluate(tmp_path / "run", [load_problem_file(tmp_path / "p.jsonl", "secrets")], Answers(), EvalOptions())
    for suffix in ("html", "md", "json"):
        write_report([tmp_path / "run"], tmp_path / f"r.{suffix}")
        assert str(secret)[:14] not in (tmp_path / f"r.{suffix}").read_text()
    found = Page(tmp_path / "r.html").everything()
    assert str(secret)[:14] not in found
    assert "Secret 2?" in found and "boxed{0}" in found, "the search can find what is packed"
