"""Scores of small sets of records, worked out by hand."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict

import pytest

from klearbench.errors import DataError, UsageError
from klearbench.scoring.metrics import SuiteScore, maj_at_k, pass_at_k, read_eval, score_suite
from klearbench.types import FinishReason, Sample, Status, Verdict

STOP, LENGTH, ERROR = FinishReason.stop, FinishReason.length, FinishReason.error


def sample(problem: str, index: int, *, tokens: int = 10, finish: FinishReason = STOP, suite: str = "s") -> Sample:
    return Sample(suite, problem, index, 0, "text", 5, tokens, finish)


def verdict(problem: str, index: int, status: str = "correct", *, extracted: str | None = None, **more) -> Verdict:
    score = None if status == "judge_error" else float(status == "correct")
    return Verdict("s", problem, index, Status(status), score, extracted, **more)


def score_of(statuses: dict[str, list[str]], k: int, finish: FinishReason = STOP) -> SuiteScore:
    places = [(p, i, s) for p, row in statuses.items() for i, s in enumerate(row)]
    samples = [sample(p, i, finish=finish) for p, i, _ in places]
    return score_suite("s", samples, [verdict(p, i, s) for p, i, s in places], list(statuses), k)


def test_pass_at_k_equals_the_share_of_subsets_with_a_right_sample():
    for n in range(1, 7):
        for right, k in itertools.product(range(n + 1), range(1, n + 1)):
            subsets = list(itertools.combinations(range(n), k))
            share = sum(any(x < right for x in subset) for subset in subsets) / len(subsets)
            assert pass_at_k(n, right, k) == pytest.approx(share)


@pytest.mark.parametrize("n, right, k", [(4, 5, 1), (4, -1, 1), (4, 2, 5), (4, 2, 0)])
def test_pass_at_k_refuses_impossible_counts(n, right, k):
    with pytest.raises(ValueError, match="needed: 1 <= k <= n"):
        pass_at_k(n, right, k)


def test_majority_counts_votes_and_a_tie_goes_to_the_answer_seen_first():
    def group(*answers):
        right = [a is not None and a.strip() == "7" for a in answers]
        rows = enumerate(zip(answers, right, strict=True))
        return [verdict("p", i, "correct" if ok else "wrong_answer", extracted=a) for i, (a, ok) in rows]

    assert maj_at_k(group("8", "7", " 7 ")) is True
    assert maj_at_k(group("8", "7", "8")) is False
    assert maj_at_k(group("7", "8")) is True
    assert maj_at_k(group("8", "7")) is False
    assert maj_at_k(group(None, None, None, "7")) is True, "a sample without an answer does not vote"
    assert maj_at_k(group(None, None)) is False


def test_average_is_over_problems_in_points():
    score = score_of({"a": ["correct", "correct"], "b": ["correct", "wrong_answer"]}, k=2)
    assert (score.avg, score.k, score.problems, score.judged) == (75.0, 2, 2, 4)
    assert score.pass_at_k == 100.0
    assert score.complete and score.missing == 0
    assert score.interval[0] < 75 < score.interval[1] <= 100


def test_statuses_are_counted_apart():
    score = score_of({"a": ["truncated", "no_answer", "wrong_answer", "correct"]}, k=4)
    counted = {name: count for name, count in score.counts.items() if count}
    assert counted == {"truncated": 1, "no_answer": 1, "wrong_answer": 1, "correct": 1}
    assert set(score.counts) == {s.value for s in Status}
    assert score.truncated_share == 0.25
    assert score.avg == 25.0


def test_judge_errors_are_left_out_of_the_score_and_make_it_incomplete():
    score = score_of({"a": ["correct", "judge_error"], "b": ["correct", "correct"]}, k=2)
    assert score.avg == 100.0
    assert (score.judge_errors, score.judged, score.missing, score.complete) == (1, 3, 0, False)


def test_engine_errors_are_ours_whatever_the_verdict_says():
    samples = [sample("a", 0), sample("a", 1, finish=ERROR), sample("a", 2, finish=ERROR)]
    score = score_suite("s", samples, [verdict("a", 0), verdict("a", 1, "no_answer")], ["a"], 3)
    assert (score.avg, score.engine_errors, score.missing, score.complete) == (100.0, 2, 0, False)
    assert score.counts["no_answer"] == 0
    assert score.tokens.max == 10


def test_missing_verdicts_and_missing_problems_are_counted():
    score = score_suite("s", [sample("a", 0), sample("a", 1)], [verdict("a", 0)], ["a", "b"], 2)
    assert (score.missing, score.complete, score.problems) == (3, False, 2)
    assert [(row.problem_id, row.judged) for row in score.per_problem] == [("a", 1), ("b", 0)]
    assert score.avg == 100.0


@pytest.mark.parametrize("statuses", [{}, {"a": []}, {"a": ["judge_error", "judge_error"]}])
def test_a_run_in_which_nothing_was_judged_has_no_score(statuses):
    score = score_of(statuses, k=2)
    nothing = (score.avg, score.interval, score.interval_problems, score.pass_at_k, score.maj_at_k)
    assert nothing == (None,) * 5
    assert score.truncated_share is None
    assert score.complete is False
    assert json.loads(json.dumps(asdict(score), allow_nan=False))["avg"] is None


def test_all_wrong_is_a_score_of_zero():
    score = score_of({"a": ["wrong_answer"] * 4}, k=4)
    assert score.avg == 0.0
    assert score.complete


def test_complete_answers_at_the_limit_count_and_are_told():
    score = score_of({"a": ["correct", "truncated", "wrong_answer"]}, k=3, finish=LENGTH)
    assert (score.at_limit, score.limit_but_right) == (3, 1)
    assert score.avg == pytest.approx(100 / 3)


def test_token_percentiles_are_nearest_ranks():
    lengths = list(range(1, 101))
    samples = [sample("a", i, tokens=n) for i, n in enumerate(reversed(lengths))]
    tokens = score_suite("s", samples, [], ["a"], 100).tokens
    assert (tokens.mean, tokens.p10, tokens.p50, tokens.p90, tokens.p99, tokens.max) == (50.5, 10, 50, 90, 99, 100)


def test_code_has_no_majority():
    verdicts = [verdict("a", 0, extracted="print(1)", passed=2, total=2)]
    assert score_suite("s", [], verdicts, ["a"], 1).maj_at_k is None


def test_other_suites_problems_and_indices_are_ignored():
    other = Verdict("t", "a", 0, Status.wrong_answer, 0.0)
    verdicts = [verdict("a", 0), other, verdict("a", 5, "wrong_answer"), verdict("z", 0, "wrong_answer")]
    assert score_suite("s", [sample("a", 0, suite="t")], verdicts, ["a"], 1).avg == 100.0


def test_a_repeated_record_is_refused_by_name():
    with pytest.raises(UsageError, match="two verdicts of problem 'a', sample 0 in suite 's'"):
        score_suite("s", [], [verdict("a", 0), verdict("a", 0)], ["a"], 1)


def test_the_score_does_not_depend_on_the_order_of_records():
    verdicts = [verdict(p, i, s, extracted=str(i)) for p in "ab" for i, s in enumerate(["correct", "wrong_answer"])]
    samples = [sample(p, i) for p in "ab" for i in range(2)]
    assert score_suite("s", samples, verdicts, ["a", "b"], 2) == score_suite(
        "s", samples[::-1], verdicts[::-1], ["a", "b"], 2
    )


def test_reading_another_commands_folder_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text('{"config": {"command": "train"}}')
    with pytest.raises(DataError, match="is no run of `klearbench eval`"):
        read_eval(tmp_path)
