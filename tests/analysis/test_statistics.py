"""Statistics against values worked out by hand or tabulated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from archgym.analysis.statistics import (
    compare,
    compare_all,
    holm,
    least_p,
    mann_whitney,
    median_interval,
    quantile,
    rank,
    seeds_needed,
    share_interval,
    unit_medians,
)


def test_holm_steps_down_and_never_decreases() -> None:
    # 3 x 0.01; then 2 x 0.03; 0.04 alone would be below the one before it.
    assert holm([0.01, 0.04, 0.03]) == [0.03, 0.06, 0.06]
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_exact_p_of_two_separate_groups_of_four() -> None:
    first, second = np.array([1.0, 2, 3, 4]), np.array([5.0, 6, 7, 8])
    p, superiority = mann_whitney(first, second)
    assert p == pytest.approx(2 / 70)  # two of the 70 ways to choose four of eight
    assert superiority == 1.0  # the smaller scores are the better ones
    assert mann_whitney(second, first)[1] == 0.0


def test_superiority_counts_ties_half() -> None:
    _, superiority = mann_whitney(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    assert superiority == pytest.approx(3.5 / 4)


def test_equal_groups_do_not_differ() -> None:
    assert mann_whitney(np.ones(5), np.ones(5)) == (1.0, 0.5)
    assert mann_whitney(np.full(3, np.inf), np.full(4, np.inf)) == (1.0, 0.5)


def test_a_trial_that_found_nothing_is_worse_than_any_other() -> None:
    p, superiority = mann_whitney(np.full(6, 1e9), np.full(6, np.inf))
    assert superiority == 1.0
    assert p < 0.01


def test_interval_of_a_median_is_between_order_statistics() -> None:
    # Of ten values, the 2nd and the 9th: the sign test's 97.9 % (the next pair has 89.1 %).
    found = median_interval(np.linspace(1, 10, 10))
    assert (found.value, found.low, found.high, found.exact) == (5.5, 2.0, 9.0, True)


def test_few_trials_give_their_range() -> None:
    found = median_interval(np.array([3.0, 1.0, 2.0]))
    assert (found.value, found.low, found.high, found.exact) == (2.0, 1.0, 3.0, False)


def test_quantiles_with_trials_that_found_nothing() -> None:
    values = np.array([1.0, 2.0, np.inf, np.inf])
    assert quantile(values, 0.25) < 2
    assert quantile(values, 0.5) == math.inf
    assert median_interval(np.array([1.0, 2, 3, 4, 5, 6, np.inf, np.inf])).high == math.inf


def test_wilson_interval() -> None:
    # z^2 / (n + z^2) with z = 1.959964 and n = 3 is 0.5615.
    found = share_interval(np.zeros(3, dtype=bool))
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(0.5615, abs=1e-4)


def test_all_pairs_are_corrected_together() -> None:
    groups = [np.linspace(0, 7, 8) + shift for shift in (0, 100, 200)]
    found = compare_all(groups)
    assert [(c.first, c.second) for c in found] == [(0, 1), (0, 2), (1, 2)]
    alone = mann_whitney(groups[0], groups[1])[0]
    assert [c.p for c in found] == pytest.approx([3 * alone] * 3)


def test_ranks_over_problems() -> None:
    groups = [np.full(5, 1.0), np.full(5, 2.0), np.full(5, 3.0)]
    found = rank([groups, groups, groups, groups], np.random.default_rng(0))
    assert [one.value for one in found.ranks] == [1.0, 2.0, 3.0]
    assert all(one.low == one.value == one.high for one in found.ranks)  # nothing varies
    # Friedman: 12 / (4 x 3 x 4) x (16 + 64 + 144) - 3 x 4 x 4 = 8, chi-squared of two degrees.
    assert found.friedman_p == pytest.approx(math.exp(-4))
    # Demsar (2006), table 5: q = 2.343 for three classifiers at 5 %.
    assert found.critical_difference == pytest.approx(2.343 * math.sqrt(3 * 4 / (6 * 4)), abs=1e-3)


def test_equal_medians_share_a_rank() -> None:
    found = rank([[np.ones(3), np.ones(3)]], np.random.default_rng(0))
    assert [one.value for one in found.ranks] == [1.5, 1.5]
    assert math.isnan(found.friedman_p)


SEEDS = np.repeat(np.arange(8), 50)
"""Of 400 trials: 50 sets of hyperparameters with each of eight seeds."""


def test_trials_of_a_unit_are_no_repetitions() -> None:
    # All trials of a seed are alike: 400 trials say no more than eight.
    lucky = np.arange(8, dtype=np.float64)
    other = lucky + 0.5
    p, superiority = compare(np.repeat(lucky, 50), np.repeat(other, 50), (SEEDS, SEEDS))
    assert [p, superiority] == pytest.approx(mann_whitney(lucky, other))
    assert mann_whitney(np.repeat(lucky, 50), np.repeat(other, 50))[0] < 0.05 < p
    pooled, single = median_interval(np.repeat(lucky, 50), SEEDS), median_interval(lucky)
    assert (pooled.low, pooled.high) == (single.low, single.high)


def test_agents_that_mostly_reach_the_optimum_are_told_apart() -> None:
    # All seeds' medians are at the optimum; one agent fails with four sets in ten, one never.
    often, always = np.tile(np.repeat([0.0, 1.0], [30, 20]), 8), np.zeros(400)
    p, superiority = compare(often, always, (SEEDS, SEEDS))
    assert superiority == pytest.approx(0.3)
    assert p < 0.001


def test_luck_shared_by_a_seed_gives_no_false_alarms() -> None:
    rng = np.random.default_rng(3)
    alarms = {"units": 0, "trials": 0}
    few = np.repeat(np.arange(8), 4)
    for _ in range(400):
        one, two = (
            np.repeat(rng.normal(size=8), n) + rng.normal(size=8 * n) for n in (50, 4)
        )  # one agent has more sets of hyperparameters
        alarms["units"] += compare(one, two, (SEEDS, few))[0] < 0.05
        alarms["trials"] += mann_whitney(one, two)[0] < 0.05
    assert alarms["units"] < 0.08 * 400  # 5 % are meant
    assert alarms["trials"] > 0.2 * 400  # what counting trials would do


def test_units_of_one_trial_change_nothing() -> None:
    rng = np.random.default_rng(0)
    one, two, each = rng.normal(size=20), rng.normal(size=20), np.arange(20)
    assert compare(one, two, (each, each)) == mann_whitney(one, two)
    assert median_interval(one, each) == median_interval(one)
    assert share_interval(one > 0, each) == share_interval(one > 0)
    assert unit_medians(one, each).tolist() == one.tolist()


def test_share_of_trials_that_come_in_units() -> None:
    # Half of the seeds succeed with all of their trials: the variance between the seeds' shares
    # is that of 7 independent trials, p (1 - p) / 7 = 8 / 7 x 8 x (50 x 0.5)^2 / 400^2.
    hits = SEEDS < 4
    found = share_interval(hits, SEEDS)
    z2 = 1.959964**2
    assert found.value == 0.5
    half = math.sqrt(0.25 / 7 + z2 / 4 / 49) * math.sqrt(z2) / (1 + z2 / 7)
    assert (found.low, found.high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)
    # None at all: eight seeds without success.
    assert share_interval(SEEDS < 0, SEEDS).high == share_interval(np.zeros(8, dtype=bool)).high


def test_ranks_draw_a_seed_on_every_problem() -> None:
    # Seeds 0 to 3 are good for one group everywhere and the others for the other one: what seeds
    # are drawn decides all problems alike, and more problems do not make it surer.
    luck = np.where(np.arange(8) < 4, 0.0, 1.0)
    found = rank([[luck, 1 - luck]] * 40, np.random.default_rng(0))
    assert (found.ranks[0].low, found.ranks[0].high) == (1.0, 2.0)
    apart = [
        [np.arange(8) + 100 * i, np.arange(8) + 100 * i + 8] for i in range(40)
    ]  # the same seeds by number, other units
    kept = rank([[luck, 1 - luck]] * 40, np.random.default_rng(0), apart)
    assert kept.ranks[0].high - kept.ranks[0].low < 0.6


@pytest.mark.parametrize(
    ("groups", "seeds", "least"),
    [(2, 3, 2 / 20), (2, 4, 2 / 70), (5, 5, 20 / 252), (5, 6, 20 / 924), (1, 9, 1.0), (4, 1, 1.0)],
)
def test_the_least_p_that_groups_can_have(groups: int, seeds: int, least: float) -> None:
    assert least_p([seeds] * groups) == pytest.approx(least)
    if groups > 1 and seeds > 1:
        apart = [np.arange(100.0 * g, 100.0 * g + seeds, dtype=np.float64) for g in range(groups)]
        found = compare_all(apart)
        assert min(one.p for one in found) == pytest.approx(least, rel=1e-6)
        assert (least < 0.05) == (seeds >= seeds_needed(groups))
