"""Intervals: values by hand, and coverage by simulation."""

from __future__ import annotations

import math
from statistics import NormalDist, fmean

import pytest

from klearbench.scoring.differences import compare_counts, holm
from klearbench.scoring.uncertainty import (
    Count,
    interval_fixed,
    interval_problems,
    standard_error_problems,
    t_quantile,
    variance_fixed,
    z_two_sided,
)


def counts(*rights: int, k: int) -> list[Count]:
    return [Count(right, k) for right in rights]


def test_variance_with_problems_fixed_by_hand():
    # p(1-p) without bias: 2*2/(4*3) = 1/3 and 1*3/(4*3) = 1/4; over k = 4 samples and n^2 = 4: 7/12 / 16
    assert variance_fixed(counts(2, 1, k=4)) == pytest.approx(7 / 12 / 16)


def test_variance_is_unbiased_over_all_outcomes():
    """The mean of the estimate over every outcome of two problems equals the true variance, by enumeration."""
    p, k = (0.3, 0.9), 3

    def chance(right: int, i: int) -> float:
        return math.comb(k, right) * p[i] ** right * (1 - p[i]) ** (k - right)

    expected = sum(
        chance(a, 0) * chance(b, 1) * variance_fixed(counts(a, b, k=k)) for a in range(k + 1) for b in range(k + 1)
    )
    assert expected == pytest.approx(sum(x * (1 - x) / k for x in p) / 4)


def test_one_sample_a_problem_falls_back_on_the_variance_between_problems():
    # 3 of 4 right: variance of 0/1 values is 4/3 * 3/16 = 1/4; over n = 4
    assert variance_fixed(counts(1, 1, 1, 0, k=1)) == pytest.approx(1 / 16)
    mixed = [*counts(2, k=4), Count(1, 1)]  # the single sample takes the other problem's 1/3
    assert variance_fixed(mixed) == pytest.approx((1 / 12 + 1 / 3) / 4)


@pytest.mark.parametrize("right", [0, 8])
@pytest.mark.parametrize("k", [1, 8])
def test_agreement_of_all_samples_never_gives_width_zero(right, k):
    rows = counts(*[min(right, k)] * 30, k=k)
    low, high = interval_fixed(rows)
    assert 0 <= low <= high <= 100
    assert high - low == pytest.approx(100 * z_two_sided(0.95) ** 2 / (30 * k))  # z^2 samples, one-sided at the edge


def test_interval_of_a_large_run_is_the_textbook_one():
    rows = counts(*[32] * 30, k=64)
    low, high = interval_fixed(rows)
    assert (low + high) / 2 == pytest.approx(50)
    assert (high - low) / 2 == pytest.approx(100 * 1.96 * math.sqrt(0.25 / (64 * 30)), rel=0.02)


def test_nothing_judged_has_no_interval_and_one_problem_no_resampling():
    assert interval_fixed([]) is None
    assert interval_problems([]) is None
    assert interval_problems(counts(3, k=4)) is None


def test_resampling_problems_is_wider_and_is_the_standard_error_of_their_mean():
    rows = counts(0, 64, 32, 64, 10, k=64)
    fixed, wide = interval_fixed(rows), interval_problems(rows)
    assert wide[0] < fixed[0] < fixed[1] < wide[1]
    shares = [c.share for c in rows]
    plain = math.sqrt(sum((s - fmean(shares)) ** 2 for s in shares) / 4 / 5)
    assert standard_error_problems(rows, 1.96) == pytest.approx(plain, rel=0.001)


@pytest.mark.parametrize("df, table", [(3, 3.1824), (4, 2.7764), (10, 2.2281), (29, 2.0452), (278, 1.9685)])
def test_t_quantiles_match_the_printed_tables(df, table):
    assert t_quantile(z_two_sided(0.95), df) == pytest.approx(table, rel=0.01)


def test_exact_paired_test_by_hand():
    base = counts(1, 1, 1, 1, 1, 1, 0, 1, k=1)
    candidate = counts(0, 0, 0, 0, 0, 0, 1, 1, k=1)  # 6 losses, 1 gain: P(X >= 6 of 7) = (7 + 1) / 128
    assert compare_counts(base, candidate).p_value == pytest.approx(8 / 128)
    assert compare_counts(base, base).p_value == 1.0


def test_exact_test_survives_thousands_of_differences():
    base, candidate = [1] * 2600 + [0] * 2400, [0] * 2600 + [1] * 2400
    p = compare_counts(counts(*base, k=1), counts(*candidate, k=1)).p_value
    z = (2599.5 - 2500) / math.sqrt(1250)  # normal approximation with continuity correction
    assert p == pytest.approx(0.5 * math.erfc(z / math.sqrt(2)), rel=0.02)


def test_an_allowed_drop_raises_the_p_value():
    rng_free = counts(*[40] * 30, k=64), counts(*[36] * 30, k=64)
    strict, loose = (compare_counts(*rng_free, max_drop=m) for m in (0.0, 6.25))
    assert strict.change == pytest.approx(-6.25)
    assert strict.p_value < 0.001
    assert loose.p_value == pytest.approx(0.5)
    single = counts(*[1] * 40, k=1), counts(*[0] * 8, *[1] * 32, k=1)
    assert compare_counts(*single).p_value == pytest.approx(2**-8)
    # Tango's score by hand: 8 lost of 40 is the margin itself, with half a loss less; under the null no gain is likely
    wanted = NormalDist().cdf(0.5 / math.sqrt(40 * 0.2 * 0.8))
    assert compare_counts(*single, max_drop=20).p_value == pytest.approx(wanted)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9]) == [0.9]
    assert holm([]) == []


def test_printed_intervals_cover_the_truth():
    """Seeded; 30 problems: a mixture of difficulties, nearly all right, nearly all wrong, at several k."""
    np = pytest.importorskip("numpy")
    rng = np.random.default_rng(20)
    mixed = rng.beta(0.6, 0.6, 30)
    worst = 1.0
    for chances, k in ((mixed, 16), (mixed, 2), (mixed, 1), (np.full(30, 0.998), 16), (np.full(30, 0.02), 4)):
        truth, runs = 100 * chances.mean(), 600
        inside = 0
        for row in rng.binomial(k, chances, (runs, 30)).tolist():
            low, high = interval_fixed(counts(*row, k=k))
            inside += low - 1e-9 <= truth <= high + 1e-9
        worst = min(worst, inside / runs)
    assert worst >= 0.93


def test_problem_intervals_cover_the_mean_of_the_pool():
    np = pytest.importorskip("numpy")
    rng = np.random.default_rng(21)
    runs, inside = 1000, 0
    for _ in range(runs):
        rights = rng.binomial(8, rng.beta(2, 2, 30)).tolist()
        low, high = interval_problems(counts(*rights, k=8))
        inside += low <= 50 <= high
    assert inside / runs >= 0.93


@pytest.mark.parametrize(("df", "wanted"), [(1, 12.706), (2, 4.303), (10, 2.228), (199, 1.972)])
def test_students_quantiles_are_those_of_the_tables(df: int, wanted: float) -> None:
    assert t_quantile(NormalDist().inv_cdf(0.975), df) == pytest.approx(wanted, abs=2e-3)
