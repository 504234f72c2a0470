"""The math judge: statuses, rules, exact paths, the shared labelled cases and golds."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from klearbench.errors import ConfigError, DataError
from klearbench.judging.judge import MathJudge, check_golds
from klearbench.judging.math import RULES
from klearbench.judging.numbers import exact_number
from klearbench.types import Answer, FinishReason, Sample, Status
from tests.timing import assert_quick


def sample(completion: str, finish: FinishReason = FinishReason.stop, index: int = 0) -> Sample:
    return Sample("suite", "p", index, 0, completion, 1, 1, finish)


@pytest.fixture(scope="module")
def judge() -> MathJudge:
    with MathJudge() as made:
        yield made


@pytest.mark.parametrize(
    ("completion", "finish", "status", "score"),
    [
        ("so \\boxed{7}", "stop", Status.correct, 1.0),
        ("so \\boxed{7} and on", "length", Status.correct, 1.0),
        ("so \\boxed{8}", "stop", Status.wrong_answer, 0.0),
        ("\\boxed{7} or \\boxed{8}", "stop", Status.wrong_answer, 0.0),
        ("no idea", "stop", Status.no_answer, 0.0),
        ("no idea", "length", Status.truncated, 0.0),
        ("A: 7", "stop", Status.correct, 1.0),
        ("A: 7", "length", Status.truncated, 0.0),
        ("<think> \\boxed{7}", "stop", Status.truncated, 0.0),
    ],
)
def test_status_and_score(judge: MathJudge, completion: str, finish: str, status: Status, score: float) -> None:
    [verdict] = judge.judge([(sample(completion, FinishReason(finish)), Answer("p", "7", "integer"))])
    assert (verdict.status, verdict.score) == (status, score)
    assert verdict.cpu_s is not None and verdict.wall_s is not None


@pytest.mark.parametrize(
    ("rule", "gold", "answer", "equal"),
    [
        ("integer_0_999", "33", "033", True),
        ("integer_0_999", "33", "34", False),
        ("integer_0_999", "33", "33.0", True),
        ("integer_0_999", "33", "x = 33", True),
        ("integer_0_999", "33", "\\text{33}", True),
        ("integer_0_999", "1000", "1000", None),
        ("integer_0_999", "-1", "-1", None),
        ("integer_0_999", "1/2", "1/2", None),
        ("integer", "-12", "-12", True),
        ("integer", "-12", "12", False),
        ("integer", "1234", "1,234", True),
        ("expression", "\\frac{1}{2}", "0.5", True),
        ("expression", "\\frac{1}{3}", "0.333333333333", False),
        ("expression", "\\frac{\\sqrt{3}}{3}", "1/sqrt(3)", True),
        ("expression", "18", "$18.00", True),
        ("expression", "", "", None),
        ("set", "1, 2, 3", "3, 1, 2", True),
        ("set", "1, 2, 3", "1, 2", False),
        ("set", "1,234", "234, 1", False),
        ("nonsense", "1", "1", None),
    ],
)
def test_rules(judge: MathJudge, rule: str, gold: str, answer: str, equal: bool | None) -> None:
    assert judge.compare(Answer("p", gold, rule), answer).equal is equal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("007", "7"),
        ("-12", "-12"),
        ("1,234,567", "1234567"),
        ("12,34", None),
        ("1.50", "3/2"),
        (".5", "1/2"),
        ("\\frac{3}{4}", "3/4"),
        ("\\frac34", "3/4"),
        ("3/4", "3/4"),
        ("1\\frac{1}{2}", "3/2"),
        ("-1 1/2", "-3/2"),
        ("1/0", None),
        ("6.02e2", "602"),
        ("5\\times 10^{-2}", "1/20"),
        ("0.\\overline{3}", "1/3"),
        ("0.1\\overline{6}", "1/6"),
        ("1e999999999", None),
        ("9" * 5000, None),
        ("2x", None),
    ],
)
def test_exact_numbers(text: str, value: str | None) -> None:
    found = exact_number(text)
    assert (None if found is None else str(found)) == value


def test_code_in_an_answer_is_never_run(judge: MathJudge, tmp_path: Path) -> None:
    target = tmp_path / "made"
    for text in (f"__import__('pathlib').Path('{target}').touch()", f"open('{target}','w')", "exec('5')"):
        assert judge.compare(Answer("p", "5"), text).equal is False
    assert not target.exists()


@pytest.mark.parametrize(
    "answer",
    [
        "9^{9^{9^{9}}}",
        "(10^{50})!",
        "((2^{999})^{999})^{999}",
        "10^{-10^{12}}",
        "(" * 300 + "5" + ")" * 299,
        "\\sqrt{" * 500,
        "9" * 100_000,
    ],
)
def test_huge_answers_are_wrong_and_quick(judge: MathJudge, answer: str) -> None:
    judge.compare(Answer("p", "x+1"), "x+2")  # the worker is warm
    start = time.perf_counter()
    [verdict] = judge.judge([(sample(f"\\boxed{{{answer}}}"), Answer("p", "5"))])
    assert verdict.status in (Status.wrong_answer, Status.truncated)
    assert time.perf_counter() - start < 40


def test_equal_answers_are_asked_once(judge: MathJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = judge._pool.run_many
    monkeypatch.setattr(judge._pool, "run_many", lambda requests: asked.append(len(requests)) or real(requests))
    rows = [(sample("\\boxed{\\int_0^1 2x dx}", index=i), Answer("p", "1")) for i in range(5)]  # needs a worker
    assert [v.status for v in judge.judge(rows)] == [Status.correct] * 5
    assert [v.status for v in judge.judge(rows)] == [Status.correct] * 5
    assert asked == [1, 0]


def test_plain_integers_need_no_worker_and_little_time() -> None:
    rows = [
        (
            sample(f"<think>\n7 then max 9 gives 9 .\n</think>\nThe answer is \\boxed{{{i % 10}}}.", index=i),
            Answer("p", "7", "integer"),
        )
        for i in range(20_000)
    ]
    with MathJudge(cache=False) as judge:
        verdicts = judge.judge(rows)
        assert_quick(lambda: judge.judge(rows), 10)  # measured 0.3 s; the target is 1 s on an idle machine
        assert all(worker is None for worker in judge._pool._idle.queue)
    assert sum(v.status is Status.correct for v in verdicts) == 2_000


def test_math_verify_mode_reads_the_text_after_the_thinking() -> None:
    rows = [
        (sample("<think>\\boxed{5}</think> so \\boxed{\\frac{14}{2}}"), Answer("p", "7")),
        (sample("<think>\\boxed{7}</think> so \\boxed{5}"), Answer("p", "7")),
        (sample("<think>\\boxed{7}"), Answer("p", "7")),
        (sample("nothing"), Answer("p", "7")),
        (sample("nothing", FinishReason.length), Answer("p", "7")),
    ]
    with MathJudge(mode="math-verify") as judge:
        statuses = [v.status for v in judge.judge(rows)]
        assert judge.identity()["mode"] == "math-verify"
    assert statuses == ["correct", "wrong_answer", "truncated", "no_answer", "truncated"]


def test_a_judge_works_from_a_thread(judge: MathJudge) -> None:
    out: list[Status] = []
    rows = [(sample("\\boxed{x(x+3)}"), Answer("p", "x^2+3x"))]
    thread = threading.Thread(target=lambda: out.extend(v.status for v in judge.judge(rows)))
    thread.start()
    thread.join()
    assert out == [Status.correct]


def test_golds_are_checked(judge: MathJudge) -> None:
    check_golds([Answer("a", "5", "integer_0_999"), Answer("b", "\\frac{1}{2}")], judge)
    with pytest.raises(DataError, match=r"'1000'.*0 to 999"):
        check_golds([Answer("a", "5"), Answer("b", "1000", "integer_0_999")], judge)
    with pytest.raises(DataError, match="b: "):
        check_golds([Answer("a", "5"), Answer("b", "")], judge)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="strict"):
        MathJudge(mode="strikt")
    with pytest.raises(ConfigError):
        MathJudge(workers=0)


def test_rules_are_named() -> None:
    assert set(RULES) == {"integer_0_999", "integer", "expression", "set"}


def rows_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.shared
def test_the_labelled_completions(shared: Path) -> None:
    rows = rows_of(shared / "cases/math/extraction_dev.jsonl")
    items = [(sample(str(r["completion"])), Answer("p", str(r["gold"]))) for r in rows]
    with MathJudge(workers=2) as judge:
        verdicts = judge.judge(items)
    names = {"wrong": "wrong_answer"}
    wrong = [
        r["id"] for r, v in zip(rows, verdicts, strict=True) if v.status != names.get(str(r["verdict"]), r["verdict"])
    ]
    credited = [
        r["id"] for r, v in zip(rows, verdicts, strict=True) if v.status is Status.correct and r["verdict"] != "correct"
    ]
    assert len(wrong) <= 0.015 * len(rows), wrong
    assert credited == []


@pytest.mark.shared
def test_the_labelled_answers(shared: Path) -> None:
    rows = rows_of(shared / "cases/math/equivalence_dev.jsonl")
    with MathJudge(workers=2) as judge:
        results = [judge.compare(Answer("p", str(r["gold"])), str(r["answer"])) for r in rows]
    settled = [(r, c) for r, c in zip(rows, results, strict=True) if r["kind"] != "convention"]
    wrong = [r["id"] for r, c in settled if c.equal is not r["equal"]]
    assert len(wrong) <= 0.02 * len(settled), wrong
    assert [r["id"] for r, c in settled if c.equal and not r["equal"]] == []
    assert [r["id"] for r, c in zip(rows, results, strict=True) if "within" in c.detail] == []


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *(("aime24", "integer_0_999"), ("aime25", "integer_0_999"), ("hmmt25", "expression")),
        *(("math500", "expression"), ("gsm8k_test", "expression")),
    ],
)
def test_every_gold_equals_itself_written_otherwise(shared: Path, name: str, rule: str) -> None:
    rows = rows_of(shared / f"data/{name}.jsonl")
    with MathJudge(workers=2) as judge:
        check_golds([Answer(str(r["id"]), str(r["answer"]), rule) for r in rows], judge)
        # A trailing blank command defeats the comparison of equal strings, so that the text is really read.
        items = [
            (sample(f"so \\boxed{{\\displaystyle {r['answer']}}}"), Answer("p", str(r["answer"]), rule)) for r in rows
        ]
        statuses = [v.status for v in judge.judge(items)]
    assert [r["id"] for r, s in zip(rows, statuses, strict=True) if s is not Status.correct] == []
