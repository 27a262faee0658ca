"""How goals are told: values, directions and units of products of metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from archgym.problem.goals import direction, goal_label, goal_unit, natural
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective

METRICS = (
    Metric("energy_pj", "pJ", "minimize", "energy"),
    Metric("tops_per_w", "TOPS/W", "maximize", "efficiency"),
    Metric("bandwidth_gb_per_s", "GB/s", "maximize", "bandwidth"),
    Metric("latency_ns", "ns", "minimize", "time"),
    Metric("clock_mhz", "MHz", "maximize", "clock"),
)


@pytest.mark.parametrize(
    ("product", "label"),
    [
        ({"energy_pj": 1, "latency_ns": 1}, "energy_pj*latency_ns [pJ ns]"),
        ({"energy_pj": 1, "tops_per_w": 1}, "energy_pj*tops_per_w^-1 [pJ W/TOPS]"),
        ({"energy_pj": 1, "clock_mhz": 1}, "energy_pj*clock_mhz^-1 [pJ 1/MHz]"),
        ({"energy_pj": 1, "tops_per_w": 2}, "energy_pj*tops_per_w^-2 [pJ (TOPS/W)^-2]"),
        ({"bandwidth_gb_per_s": 1}, "bandwidth_gb_per_s [GB/s]"),
        ({"latency_ns": 2}, "latency_ns^2 [(ns)^2]"),
        ({"tops_per_w": 1, "clock_mhz": 0.5}, "tops_per_w*clock_mhz^0.5 [TOPS/W (MHz)^0.5]"),
    ],
)
def test_labels_of_a_product(product: dict[str, float], label: str) -> None:
    """Powers are those in which metrics stand in the value, in the name and in the unit."""
    (goal,) = Objective.parse({"product": product}).goals
    assert goal_label(goal, METRICS) == label
    assert f"[{goal_unit(goal, METRICS)}]" in label


@pytest.mark.parametrize(
    ("objective", "way", "minimised", "told"),
    [
        ("minimize latency_ns", "minimize", 4.0, 4.0),
        ("maximize tops_per_w", "maximize", -4.0, 4.0),
        ({"product": {"energy_pj": 1, "latency_ns": 1}}, "minimize", 4.0, 4.0),
        ({"product": {"energy_pj": 1, "tops_per_w": 1}}, "minimize", 4.0, 4.0),
        ({"product": {"tops_per_w": 1, "clock_mhz": 1}}, "maximize", 0.25, 4.0),
        ({"target": {"latency_ns": 9}}, "minimize", 4.0, 4.0),
    ],
)
def test_what_is_only_maximised_is_told_as_it_is(
    objective: str | dict[str, object], way: str, minimised: float, told: float
) -> None:
    """The larger the better, also in arrays; nothing found stays the worst there is."""
    (goal,) = Objective.parse(objective).goals
    assert direction(goal, METRICS) == way
    assert natural(goal, METRICS, minimised) == told
    worst = math.inf if way == "minimize" else -math.inf
    assert natural(goal, METRICS, math.inf) == worst
    assert natural(goal, METRICS, np.array([minimised, math.inf])).tolist() == [told, worst]
