"""The gate's decision on counts, worked out by hand."""

from __future__ import annotations

import pytest
from gate_tools import one, row, rows

from klearbench.errors import IncompleteError
from klearbench.scoring.gate import GateOptions, SuitePair, decide
from klearbench.scoring.groups import ProblemScore


def exact(losses: int, problems: int = 12) -> tuple[list[ProblemScore], list[ProblemScore]]:
    """One sample a problem, all right in the base, `losses` wrong now: p = 2^-losses."""
    return rows([1] * problems, 1), rows([0] * losses + [1] * (problems - losses), 1)


def test_suites_and_metrics_share_one_error_rate_by_holm():
    """p of 1/64, 1/32, 1/16: times 3, 2 and 1 these are 3/64, 1/16 and 1/16."""
    pairs = [SuitePair(name, 1, *exact(losses)) for name, losses in (("x", 5), ("y", 6), ("z", 4))]
    tests = decide(pairs, GateOptions())
    assert [t.p_value for t in tests] == [1 / 32, 1 / 64, 1 / 16]
    assert [t.p_adjusted for t in tests] == pytest.approx([1 / 16, 3 / 64, 1 / 16])
    assert [t.status for t in tests] == ["ok", "regressed", "ok"]
    assert [t.status for t in decide(pairs[:1], GateOptions())] == ["regressed"], "alone, 1/32 is enough"
    metrics = decide(pairs[:1], GateOptions(metrics=("avg@k", "truncated")))
    assert [(t.metric, t.p_adjusted, t.status) for t in metrics] == [
        ("avg@k", 1 / 16, "ok"), ("truncated", 1.0, "ok"),
    ]  # fmt: skip


def test_confidence_is_the_level():
    assert one(*exact(5), confidence=0.96).status == "regressed"  # 1/32 = 0.03125
    assert one(*exact(5), confidence=0.97).status == "ok"


def test_prove_passes_what_is_shown_fails_what_is_worse_and_calls_the_rest_undecided():
    base = rows([32] * 40, 64)  # 40 x 64 samples: a standard error of about 1.4 points
    for candidate, plain, proved in ((32, "ok", "ok"), (31, "ok", "undecided"), (26, "regressed", "regressed")):
        after = rows([candidate] * 40, 64)
        assert one(base, after, max_drop={"": 3}).status == plain
        found = one(base, after, max_drop={"": 3}, prove=True)
        assert found.status == proved
        assert (found.p_within < 0.05) is (proved == "ok")
        assert (found.shown < 3) is (proved == "ok")


def test_without_a_margin_prove_asks_for_better():
    base, same, better = rows([32] * 40, 64), rows([32] * 40, 64), rows([36] * 40, 64)
    assert [one(base, after, prove=True).status for after in (same, better)] == ["undecided", "ok"]


def test_proof_has_its_whole_error_rate_in_every_suite():
    """All must be shown, so no share is taken off: three suites with p_within of about 0.03 each pass."""
    base, after = rows([32] * 40, 64), rows([32] * 40, 64)
    options = GateOptions(max_drop={"": 2.7}, prove=True)
    assert 0.02 < one(base, after, max_drop={"": 2.7}).p_within < 0.05
    tests = decide([SuitePair(name, 64, base, after) for name in "xyz"], options)
    assert [t.status for t in tests] == ["ok"] * 3


@pytest.mark.parametrize(
    "problems, k, max_drop, status",
    [
        (4, 1, 0, "too_few"),  # 2^-4 at best
        (5, 1, 0, "ok"),  # 2^-5
        (5, 1, 50, "too_few"),
        (1, 2, 0, "too_few"),
        (1, 16, 0, "ok"),
        (30, 8, 99, "too_few"),  # 1 point is one standard error: sqrt(2) * 1.645 / 240
        (30, 8, 90, "ok"),
    ],
)
def test_too_few_samples_to_show_any_drop(problems, k, max_drop, status):
    good = rows([k] * problems, k)
    assert one(good, good, max_drop={"": max_drop}).status == status


def test_one_problem_with_one_sample_has_too_few_lengths():
    def long(*tokens: int) -> list[ProblemScore]:
        return [row(f"p{i}", 1, 1, sampled=1, tokens=t, tokens_squared=t * t) for i, t in enumerate(tokens)]

    assert one(long(9), long(900), metrics=("length",)).status == "too_few"
    assert one(long(9, 10), long(9, 10), metrics=("length",)).status == "ok"


def test_the_most_special_max_drop_counts():
    options = GateOptions(max_drop={"": 1, "aime": 2, "length": 3, "aime:length": 4, "other:avg@k": 9})
    assert options.allowed("aime", "length") == 4
    assert options.allowed("other", "length") == 3
    assert options.allowed("aime", "avg@k") == 2
    assert options.allowed("other", "truncated") == 1
    assert options.allowed("other", "avg@k") == 9
    assert GateOptions(max_drop={"aime": 2}).allowed("other", "avg@k") == 0


def test_greedy_samples_of_a_problem_count_once():
    """64 equal samples are one: five problems lost of five is 1/32, not the certainty of 320 samples."""
    base, after = rows([64] * 12, 64), rows([0] * 4 + [64] * 8, 64)
    assert one(base, after).status == "regressed"
    found = one(base, after, greedy=True, k=64)
    assert (found.status, found.p_value) == ("ok", 1 / 16)
    assert (found.base, found.candidate) == pytest.approx((100, 100 * 8 / 12))
    assert [(w.base, w.base_samples, w.candidate, w.candidate_samples) for w in found.worst] == [(1, 1, 0, 1)] * 4


def test_greedy_samples_that_are_not_quite_equal_count_as_most_of_them_are():
    base, after = rows([64] * 2, 64), [row("p0", 33, 64), row("p1", 31, 64)]
    found = one(base, after, greedy=True)
    assert (found.candidate, [w.problem_id for w in found.worst]) == (50, ["p1"])


def test_problems_are_paired_by_id_and_those_without_a_judged_sample_left_out():
    base = [row("a", 8, 8), row("b", 0, 8), row("c", 4, 8), row("d", 8, 8)]
    after = [row("d", 0, 0, judge_errors=8), row("c", 4, 8), row("b", 0, 8), row("a", 6, 8)]
    found = one(base, after)
    assert (found.problems, found.left_out) == (3, 1)
    assert (found.base, found.candidate) == pytest.approx((50, 100 * (6 / 8 + 0 + 4 / 8) / 3))
    assert [w.problem_id for w in found.worst] == ["a"]


def test_a_suite_without_any_common_sample_is_an_error_that_names_it():
    with pytest.raises(IncompleteError, match="no problem of s has samples for it in both runs"):
        one([row("a", 1, 1)], [row("a", 0, 0)])


def test_the_worst_problems_come_first_each_with_its_own_exact_p():
    base = [row("a", 4, 4), row("b", 8, 8), row("c", 2, 8), row("d", 8, 8)]
    after = [row("a", 2, 4), row("b", 0, 8), row("c", 3, 8), row("d", 4, 8)]
    b, a, d = one(base, after).worst
    assert (b.problem_id, b.base, b.candidate) == ("b", 8, 0)
    # losses of 100, 50, 50 points; equal ones keep the suite's order
    assert [w.problem_id for w in (a, d)] == ["a", "d"]
    # Fisher by hand: b: 1 / C(16, 8); a: 6 right of 8, at most 2 of the candidate's 4: C(4,2) C(4,4) / C(8,6)
    assert b.p_value == pytest.approx(1 / 12870)
    assert a.p_value == pytest.approx(6 / 28)
    # d: 12 right of 16, at most 4 of the candidate's 8, so exactly 4: C(8,4) C(8,8) / C(16,12)
    assert d.p_value == pytest.approx(70 / 1820)
    # Holm over all 4 problems: 4/12870, then 3 * 0.0385 = 0.115
    assert [w.beyond_noise for w in (b, a, d)] == [True, False, False]


def test_beyond_noise_counts_every_problem_of_the_suite_not_only_those_that_got_worse():
    base = [row("a", 8, 8), *(row(f"p{i}", 0, 8) for i in range(199))]
    after = [row("a", 2, 8), *(row(f"p{i}", 0, 8) for i in range(199))]
    (only,) = one(base, after).worst
    assert only.p_value == pytest.approx(28 / 8008)  # C(8,2) C(8,8) / C(16,10)
    assert only.p_value < 0.05 and only.beyond_noise is False  # times 200
    assert one(base[:5], after[:5]).worst[0].beyond_noise is True  # times 5


def test_truncated_shares_rise_when_they_get_worse():
    base = [row(f"p{i}", 0, 8, truncated=1) for i in range(10)]
    after = [row(f"p{i}", 0, 8, truncated=5) for i in range(10)]
    found = one(base, after, metrics=("truncated",))
    assert (found.base, found.candidate, found.change) == pytest.approx((12.5, 62.5, 50))
    assert found.status == "regressed"
    assert 0 < found.interval[0] < 50 < found.interval[1]
    assert (found.worst[0].base, found.worst[0].candidate, found.unit) == (1, 5, "points")
    back = one(after, base, metrics=("truncated",))
    assert (back.status, back.change, back.worst) == ("ok", pytest.approx(-50), ())
    assert back.interval == pytest.approx((-found.interval[1], -found.interval[0]))


def test_judge_errors_are_a_share_of_all_samples_that_reached_a_judge():
    base = [row(f"p{i}", 8, 8) for i in range(10)]
    after = [row(f"p{i}", 4, 6, judge_errors=2) for i in range(10)]
    found = one(base, after, metrics=("judge-errors",))
    assert (found.base, found.candidate, found.status) == (pytest.approx(0), pytest.approx(25), "regressed")
    assert (found.worst[0].candidate, found.worst[0].candidate_samples) == (2, 8)


def test_lengths_are_compared_in_percent_of_the_base():
    def long(*pairs: tuple[int, int]) -> list[ProblemScore]:
        return [
            row(f"p{i}", 0, 2, sampled=2, tokens=a + b, tokens_squared=a * a + b * b) for i, (a, b) in enumerate(pairs)
        ]

    base, after = long((90, 110), (290, 310)), long((190, 210), (290, 310))
    found = one(base, after, metrics=("length",))
    assert (found.base, found.candidate, found.change, found.unit) == (200, 250, pytest.approx(25), "%")
    assert found.status == "regressed"
    assert one(base, after, metrics=("length",), max_drop={"length": 40}).status == "ok"
    (only,) = found.worst
    assert (only.problem_id, only.base, only.candidate, only.p_value, only.beyond_noise) == ("p0", 100, 200, None, None)
    assert one(after, base, metrics=("length",)).status == "ok", "shorter is no regression"
