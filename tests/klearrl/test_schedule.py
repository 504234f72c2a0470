"""Learning rates by hand."""

from __future__ import annotations

import math

import pytest

from klearrl.schedule import learning_rate


def series(**options):
    return [learning_rate(step, **options) for step in range(options["total"])]


def test_constant_with_warmup():
    assert series(peak=4.0, warmup=4, total=6) == [1.0, 2.0, 3.0, 4.0, 4.0, 4.0]
    assert series(peak=1e-6, warmup=0, total=3) == [1e-6] * 3
    assert learning_rate(5, peak=1e-6, warmup=0, total=9, floor=5e-7) == 1e-6


def test_linear_goes_down_to_the_floor():
    assert series(peak=1.0, warmup=0, total=4, kind="linear") == [1.0, 0.75, 0.5, 0.25]
    got = series(peak=1.0, warmup=2, total=6, kind="linear", floor=0.2)
    assert got == pytest.approx([0.5, 1.0, 1.0, 0.8, 0.6, 0.4])


def test_cosine_of_the_report_goes_from_8e5_to_4e5():
    options = {"peak": 8e-5, "warmup": 0, "total": 100, "kind": "cosine", "floor": 4e-5}
    assert learning_rate(0, **options) == 8e-5
    assert learning_rate(50, **options) == pytest.approx(6e-5)
    assert learning_rate(25, **options) == pytest.approx(4e-5 + 2e-5 * (1 + math.sqrt(0.5)))
    assert learning_rate(100, **options) == learning_rate(1000, **options) == 4e-5


@pytest.mark.parametrize("kind", ["constant", "linear", "cosine"])
def test_no_step_is_spent_at_zero_and_none_exceeds_the_peak(kind):
    for warmup in (0, 3, 20):
        got = series(peak=2.0, warmup=warmup, total=20, kind=kind)
        assert min(got) > 0
        assert max(got) == 2.0


def test_a_warmup_longer_than_the_stage_only_rises():
    assert series(peak=1.0, warmup=10, total=3, kind="cosine") == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "cosin"}, r"unknown kind 'cosin'; did you mean 'cosine'\? \(allowed: constant, cosine, linear\)"),
        ({"total": 0}, "total 0"),
        ({"warmup": -1}, "warmup -1"),
        ({"floor": 2.0}, "floor is 2.0, peak 1.0"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        learning_rate(0, **({"peak": 1.0, "warmup": 0, "total": 10} | options))
