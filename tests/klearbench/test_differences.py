"""The gate's statistics against other implementations, hand algebra and simulation."""

from __future__ import annotations

import math
import random
from statistics import NormalDist, fmean

import pytest
from gate_tools import counts

from klearbench.scoring.differences import Pairs, compare_counts, fisher, holm, tail
from klearbench.scoring.ratios import Lengths, compare_means
from klearbench.scoring.uncertainty import Count


def paired(lost: int, gained: int, kept: int, failed: int) -> tuple[list[Count], list[Count]]:
    """One sample a problem in two runs."""
    table = [(1, 0)] * lost + [(0, 1)] * gained + [(1, 1)] * kept + [(0, 0)] * failed
    return counts([a for a, _ in table], 1), counts([b for _, b in table], 1)


def lengths(*problems: tuple[float, ...]) -> list[Lengths]:
    return [Lengths(len(p), sum(p), sum(x * x for x in p)) for p in problems]


@pytest.mark.parametrize("lost, gained", [(0, 0), (5, 0), (0, 5), (6, 1), (13, 11), (40, 20), (300, 280)])
def test_one_sample_a_problem_is_mcnemars_exact_test(lost, gained):
    stats = pytest.importorskip("scipy.stats")
    wanted = stats.binomtest(lost, lost + gained, 0.5, alternative="greater").pvalue if lost + gained else 1.0
    assert compare_counts(*paired(lost, gained, 7, 3)).p_value == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("seen", [(8, 8, 3, 8), (5, 9, 0, 4), (0, 8, 8, 8), (8, 8, 8, 8), (2, 64, 1, 32)])
def test_one_problem_alone_is_fishers_exact_test(seen):
    stats = pytest.importorskip("scipy.stats")
    right, n, after, m = seen
    table = [[after, m - after], [right, n - right]]
    wanted = stats.fisher_exact(table, alternative="less").pvalue
    assert fisher(Count(right, n), Count(after, m)) == pytest.approx(wanted, rel=1e-9)


def likelihood(gains: float, margin: float, pairs: Pairs) -> float:
    """Of the counts, with a chance `gains` of a gain and `gains + margin` of a loss."""
    cells = (pairs.losses, gains + margin), (pairs.gains, gains), (
        pairs.n - pairs.losses - pairs.gains, 1 - 2 * gains - margin
    )  # fmt: skip
    return sum(seen * math.log(chance) for seen, chance in cells if seen)


@pytest.mark.parametrize(
    "n, losses, gains, margin", [(100, 12, 5, 0.03), (44, 0, 1, 0.1), (30, 10, 2, 0.2), (60, 3, 3, 0.01)]
)
def test_tangos_score_is_that_of_the_constrained_likelihood(n, losses, gains, margin):
    """The chance of a gain that makes the counts likeliest, by a fine grid, gives the variance under the null."""
    pairs, top = Pairs(n, losses, gains), (1 - margin) / 2
    grid = (top * (i + 0.5) / 20_000 for i in range(20_000))
    best = max(grid, key=lambda q: likelihood(q, margin, pairs))
    wanted = (losses - gains - n * margin) / math.sqrt(n * (2 * best + margin - margin**2))
    assert pairs.score(margin, 0) == pytest.approx(wanted, abs=2e-3)


def test_tangos_bound_without_any_differing_pair():
    """Solved by hand, with the 44 pairs of the paper's example.

    With no differing pair the constrained chance of a gain is 0, the score is -n d / sqrt(n d (1 - d)), and the bound
    at z solves n d = z^2 (1 - d): d = z^2 / (n + z^2).
    """
    n, z = 44, 1.959964
    bound = z**2 / (n + z**2)
    assert Pairs(n, 0, 0).score(bound, 0) == pytest.approx(-z, rel=1e-6)


def test_the_correction_is_half_an_observation_towards_the_null():
    pairs = Pairs(100, 12, 5)
    plain = pairs.score(0.03, 0)
    spread = (12 - 5 - 3) / plain
    assert pairs.score(0.03, -0.5) == pytest.approx((12 - 5 - 3 - 0.5) / spread)
    assert pairs.score(0.03, 0.5) == pytest.approx((12 - 5 - 3 + 0.5) / spread)
    found = compare_counts(*paired(12, 5, 60, 23), max_drop=3)
    assert found.p_value == pytest.approx(NormalDist().cdf(-(3.5 / spread)))
    assert found.p_within == pytest.approx(NormalDist().cdf(4.5 / spread))


CASES = {
    "k = 16": (counts([8, 12, 3, 16, 0] * 6, 16), counts([9, 10, 3, 16, 0] * 6, 16)),
    "all right": (counts([16] * 30, 16), counts([16] * 30, 16)),
    "much better": (counts([2] * 30, 16), counts([12] * 30, 16)),
    "much worse": (counts([12] * 30, 16), counts([2] * 30, 16)),
    "k = 1": paired(13, 11, 54, 38),
    "k = 1, no change": paired(0, 0, 20, 20),
    "k = 1, worse": paired(30, 2, 20, 20),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_shown_is_the_margin_at_which_the_proof_begins(case, confidence):
    base, candidate = CASES[case]
    shown = compare_counts(base, candidate, confidence=confidence).shown
    for margin, proved in ((shown * 1.01 + 0.01, True), (shown * 0.99 - 0.01, False)):
        if 0 <= margin < 100:
            found = compare_counts(base, candidate, max_drop=margin, confidence=confidence)
            assert (found.p_within < 1 - confidence) is proved
            assert found.shown == pytest.approx(shown), "it does not depend on the margin that is asked"


@pytest.mark.parametrize("case", CASES)
def test_no_margin_is_both_exceeded_and_shown(case):
    base, candidate = CASES[case]
    last = 1.0
    for margin in (0, 0.5, 1, 2, 5, 10, 20, 50, 99):
        found = compare_counts(base, candidate, max_drop=margin)
        assert found.p_value + found.p_within >= 1 - 1e-6
        assert found.p_within <= last + 1e-12, "a larger margin is easier to show"
        last = found.p_within


def test_by_hand_with_several_samples():
    base, candidate = counts([6, 2], 8), counts([4, 2], 8)
    found = compare_counts(base, candidate, max_drop=5)
    # within: 6*2/(8*7), 2*6/56, 4*4/56, 2*6/56, each over 8 samples and 2^2; the smoothing z / 16 of each run
    variance = (12 + 12 + 16 + 12) / 56 / 8 / 4
    z1, z2 = 1.6448536, 1.9599640
    error1, error2 = (math.sqrt(variance + 2 * (z / 16) ** 2) for z in (z1, z2))
    assert found.change == pytest.approx(-12.5)
    assert found.p_value == pytest.approx(tail((0.125 - 0.05) / error1), rel=1e-6)
    assert found.p_within == pytest.approx(tail((0.05 - 0.125) / error1), rel=1e-6)
    assert found.shown == pytest.approx(100 * (0.125 + z1 * error1), rel=1e-6)
    assert found.interval == pytest.approx((-12.5 - 100 * z2 * error2, -12.5 + 100 * z2 * error2), rel=1e-6)


def test_samples_that_all_agree_never_give_width_zero():
    found = compare_counts(*CASES["all right"])
    half = 100 * math.sqrt(2) * 1.9599640**2 / 480
    assert found.interval == pytest.approx((-half, half), rel=1e-6)
    assert found.p_value == 0.5 and 0 < found.shown < 2
    single = compare_counts(*CASES["k = 1, no change"])
    assert single.interval[1] > 4 and single.p_value == 1


def test_the_naive_interval_takes_all_samples_for_two_heaps():
    """By hand: 24 of 40 and 12 of 40, whatever problems they are of."""
    half = 196 * math.sqrt(0.6 * 0.4 / 40 + 0.3 * 0.7 / 40)
    apart = [4] * 6 + [0] * 4, [4] * 3 + [0] * 7
    alike = [3, 2, 3, 2, 2, 3, 2, 2, 3, 2], [1, 1, 1, 2, 1, 1, 1, 1, 1, 2]
    for base, candidate in (apart, alike):
        found = compare_counts(counts(base, 4), counts(candidate, 4))
        assert found.interval_naive == pytest.approx((-30 - half, -30 + half), rel=1e-3)


def test_pairing_narrows_the_interval_of_single_samples():
    """McNemar's variance by hand: (lost + gained - net^2 / n) / n^2, and z^2 / n^2 of smoothing."""
    found = compare_counts(*paired(13, 11, 54, 38))
    half = 196 * math.sqrt(24 - 4 / 116 + 1.96**2) / 116
    assert found.interval == pytest.approx((-200 / 116 - half, -200 / 116 + half), rel=1e-3)
    assert found.interval_naive[1] - found.interval_naive[0] > 1.2 * 2 * half


def test_resampled_problems_have_the_spread_of_their_own_differences():
    base, candidate = counts([16, 16, 0, 0, 8, 8], 16), counts([16, 8, 0, 8, 8, 4], 16)
    shares = [0, -0.5, 0, 0.5, 0, -0.25]
    middle = fmean(shares)
    spread = math.sqrt(sum((s - middle) ** 2 for s in shares) / 5 / 6)
    low, high = compare_counts(base, candidate).interval_problems
    assert (low + high) / 2 == pytest.approx(100 * middle)
    assert (high - low) / 2 == pytest.approx(100 * 2.5706 * math.hypot(spread, 1.96 / 96), rel=0.005)  # t with 5 df


def test_lengths_by_hand_algebra():
    """The bounds of the ratio solve (after - r before)^2 = t^2 (v_after + r^2 v_before): checked by putting them in."""
    base, candidate = lengths((90, 110, 100), (280, 320, 300)), lengths((150, 170, 160), (290, 310, 330))
    found = compare_means(base, candidate)
    before, after = 200, (160 + 310) / 2
    var_before, var_after = (100 / 3 + 400 / 3) / 4, (100 / 3 + 400 / 3) / 4  # sums of squares over n - 1, over n
    # Satterthwaite: the four parts are as 1, 4, 1, 4, with 2 degrees of freedom each: 10^2 / (34 / 2) = 5.9
    t = 2.5706  # 5 degrees of freedom
    assert (found.base, found.candidate, found.change) == (before, after, pytest.approx(17.5))
    for bound in found.interval:
        ratio = 1 + bound / 100
        left = (after - ratio * before) ** 2
        assert left == pytest.approx(t**2 * (var_after + ratio**2 * var_before), rel=0.01)
    one_sided = (after - before) / math.sqrt(var_before + var_after)  # 3.83 with 5 df: p = 0.0061
    assert one_sided == pytest.approx(3.834, abs=0.001)
    assert found.p_value == pytest.approx(0.0061, rel=0.15)


def test_the_interval_of_a_length_is_that_of_a_bootstrap():
    rng = random.Random(3)
    sides = [[tuple(rng.lognormvariate(5 + p / 10, 0.6) for _ in range(16)) for p in range(20)] for _ in range(2)]
    draws = []
    for _ in range(600):
        means = [fmean(fmean(rng.choices(problem, k=16)) for problem in side) for side in sides]
        draws.append(100 * (means[1] / means[0] - 1))
    draws.sort()
    low, high = compare_means(lengths(*sides[0]), lengths(*sides[1])).interval
    assert high - low == pytest.approx(draws[585] - draws[15], rel=0.2)
    assert (low + high) / 2 == pytest.approx(fmean(draws), abs=1.5)


def test_one_length_a_problem_is_compared_between_the_pairs():
    """Problems that differ tenfold cancel: what is left is how the pairs differ. By hand: t of after - before."""
    before, after = [100, 1000, 200, 500, 700], [110, 1010, 215, 505, 722]
    found = compare_means(lengths(*((x,) for x in before)), lengths(*((x,) for x in after)))
    differences = [b - a for a, b in zip(before, after, strict=True)]
    middle = fmean(differences)
    error = math.sqrt(sum((d - middle) ** 2 for d in differences) / 4 / 5)
    stats = pytest.importorskip("scipy.stats")
    assert found.p_value == pytest.approx(stats.t.sf(middle / error, 4), rel=0.15)
    assert found.interval == found.interval_problems


def test_lengths_without_any_scatter_are_compared_exactly():
    base, longer = lengths((100, 100), (300, 300)), lengths((110, 110), (330, 330))
    same = compare_means(base, base)
    assert (same.change, same.interval, same.p_value, same.shown) == (0, pytest.approx((0, 0)), 0.5, 0)
    more = compare_means(base, longer)
    assert (more.p_value, more.p_within, more.shown) == (0, 1, pytest.approx(10))
    at_the_edge = compare_means(base, longer, max_drop=10)
    assert (at_the_edge.p_value, at_the_edge.p_within) == (0.5, 0.5)
    assert compare_means(base, longer, max_drop=11).p_within == 0


@pytest.mark.parametrize("k", [1, 2, 16])
def test_shown_of_a_length_is_where_its_proof_begins(k):
    rng = random.Random(k)
    sides = [
        lengths(*(tuple(rng.lognormvariate(middle, 0.5) for _ in range(k)) for _ in range(30))) for middle in (5, 5.2)
    ]
    shown = compare_means(*sides).shown
    assert compare_means(*sides, max_drop=shown).p_within == pytest.approx(0.05, abs=0.002)


def test_a_base_that_may_be_zero_long_has_no_interval():
    found = compare_means(lengths((1, 400), (1, 2)), lengths((100, 101), (100, 101)))
    assert found.interval is None and found.shown is None and 0 < found.p_value < 1


def test_holm_keeps_the_order_and_never_falls():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
