"""Group advantages and the zero-variance filter, by hand and against the statistics module."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klearrl.advantages import group_advantages, no_signal


def test_advantages_by_hand():
    # mean 1/2; squared deviations 4 * 1/4 over 3: std 1/sqrt(3)
    scale = 0.5 / (1 / math.sqrt(3) + 1e-6)
    assert group_advantages([[1, 0, 0, 1], [0.0, 1.0]]) == [
        pytest.approx([scale, -scale, -scale, scale], rel=1e-12),
        pytest.approx([-0.5 / (math.sqrt(0.5) + 1e-6), 0.5 / (math.sqrt(0.5) + 1e-6)], rel=1e-12),
    ]


def test_dr_grpo_leaves_the_std_out():
    assert group_advantages([[1, 0, 0, 1], [0.25, 0.75]], kind="dr_grpo") == [[0.5, -0.5, -0.5, 0.5], [-0.25, 0.25]]


@pytest.mark.parametrize("kind", ["grpo", "dr_grpo"])
@pytest.mark.parametrize("rewards", [[0.95] * 8, [1.0], [0.0] * 4, [0.3], [0.1 + 0.2] * 5])
def test_a_group_without_a_difference_gets_zeros(kind, rewards):
    assert group_advantages([rewards], kind=kind) == [[0.0] * len(rewards)]


def test_one_low_reward_among_equals_stays_small():
    # std of [0] + [.95] * 7 is .95 / sqrt(8)
    (got,) = group_advantages([[0.0] + [0.95] * 7])
    std = 0.95 / math.sqrt(8) + 1e-6
    assert got == pytest.approx([-0.95 * 7 / 8 / std] + [0.95 / 8 / std] * 7, rel=1e-9)


def test_none_is_dropped_from_the_mean_and_stays_none():
    assert group_advantages([[1.0, None, 0.0], [None, None], [None, 0.5], []]) == [
        [pytest.approx(0.5 / (math.sqrt(0.5) + 1e-6)), None, pytest.approx(-0.5 / (math.sqrt(0.5) + 1e-6))],
        [None, None],
        [None, 0.0],
        [],
    ]


groups = st.lists(st.none() | st.floats(0, 1), max_size=16)


@given(groups)
def test_advantages_are_bounded_and_centred(rewards):
    (got,) = group_advantages([rewards])
    values = [a for a in got if a is not None]
    assert [a is None for a in got] == [r is None for r in rewards]
    assert all(abs(a) <= (len(values) - 1) / math.sqrt(len(values)) + 1e-9 for a in values)
    assert math.fsum(values) == pytest.approx(0, abs=1e-9)
    assert (no_signal(rewards) is None) == any(a != 0 for a in values)


@pytest.mark.parametrize(
    ("rewards", "reason"),
    [
        ([1.0, 1, 1.0], "all_right"),
        ([1.0, None], "all_right"),
        ([0.0, 0], "all_wrong"),
        ([0.95] * 8, "all_equal"),
        ([None, None], "no_rewards"),
        ([], "no_rewards"),
        ([0.5, 0.5 + 1e-9], None),
        ([0.0] + [0.95] * 7, None),
        ([0.0, 1.0, None], None),
    ],
)
def test_reasons_to_drop_a_group(rewards, reason):
    assert no_signal(rewards) == reason


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_reward_that_is_no_number_is_refused(bad):
    with pytest.raises(ValueError, match="a rollout that could not be judged has the reward None"):
        group_advantages([[0.0, bad]])
    with pytest.raises(ValueError, match="a reward is"):
        no_signal([bad, bad])


def test_an_unknown_kind_is_named():
    with pytest.raises(ValueError, match=r"unknown kind 'grop'; did you mean 'grpo'\? \(allowed: dr_grpo, grpo\)"):
        group_advantages([[1.0]], kind="grop")
