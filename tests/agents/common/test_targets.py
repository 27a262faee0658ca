"""What models learn of costs and limits."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.agents.common.targets import (
    broken_limits,
    cost_forms,
    distance_from_limits,
    limit_targets,
)


def test_an_upper_limit_is_learned_as_the_logarithm_of_the_ratio_to_it() -> None:
    area = np.array([0.5, 2.0, 3.0, 8.0])  # mm2, at most 2
    targets = limit_targets((area - 2.0) / 2.0)
    steps = np.array([-0.1, -0.1, 0.1, 0.1])
    assert targets == pytest.approx(np.log(area / 2.0) + steps)


@pytest.mark.parametrize("least", [0.0, -1e6])
def test_targets_grow_with_the_excess_and_change_sign_at_the_limit(least: float) -> None:
    excess = np.concatenate([[least], np.linspace(-0.9, 5.0, 60), [0.0, 1e9]])
    targets = limit_targets(excess)
    order = excess.argsort()
    assert (np.diff(targets[order]) >= 0).all()
    assert np.array_equal(targets > 0, excess > 0)
    assert np.isfinite(targets).all()


def test_the_distance_from_all_limits_is_zero_where_they_are_kept() -> None:
    far, close, one, kept = distance_from_limits(
        np.array([[2.0, 0.5], [0.02, 0.01], [0.3, -0.4], [-0.9, 0.0]])
    )
    assert far > one > close > kept == 0


@pytest.mark.parametrize(
    ("name", "power"), [("ratio", 1.0), ("cost", 0.0), ("reciprocal", -1.0)], ids=str
)
def test_the_likeliest_form_is_the_one_that_is_normal(name: str, power: float) -> None:
    normal = 6.0 + np.random.default_rng(0).normal(size=400)
    cost = np.log(normal) / power if power else normal
    forms = cost_forms(cost)
    assert max(forms, key=lambda form: forms[form][1]) == name


def test_every_form_keeps_the_order_of_costs_however_far_apart() -> None:
    cost = np.array([-900.0, -899.5, -0.1, 0.0, 3.0, 900.0, 900.5])
    for target, scale in cost_forms(cost).values():
        assert np.isfinite(target).all()
        assert np.isfinite(scale)
        assert (np.diff(target) >= 0).all()
        assert target[-1] > target[0]
    near = np.linspace(0.0, 2.0, 9)
    for target, _ in cost_forms(near).values():
        assert (np.diff(target) > 0).all()


def test_limits_are_learned_once_they_were_broken_or_if_that_is_expected() -> None:
    excess = np.array([[-0.5, 0.1, -0.2], [-0.4, -0.1, -0.1], [-0.3, 0.3, -0.3]])
    sound = np.zeros(3, dtype=np.bool_)
    assert [limit for limit, _, _ in broken_limits(excess, sound)] == [1]
    learned = {limit: target for limit, _, target in broken_limits(excess, sound, expected=[0])}
    assert sorted(learned) == [0, 1]
    assert (learned[0] < 0).all(), "a limit that is kept counts as broken"
