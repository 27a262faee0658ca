"""How goals are told: units of products of metrics."""

from __future__ import annotations

import pytest

from archgym.experiment.summary import goal_unit
from archgym.metrics import Metric
from archgym.objective import Objective

METRICS = (
    Metric("energy_pj", "pJ", "minimize", "energy"),
    Metric("tops_per_w", "TOPS/W", "maximize", "efficiency"),
    Metric("bandwidth_gb_per_s", "GB/s", "maximize", "bandwidth"),
    Metric("latency_ns", "ns", "minimize", "time"),
    Metric("clock_mhz", "MHz", "maximize", "clock"),
)


@pytest.mark.parametrize(
    ("product", "unit"),
    [
        ({"energy_pj": 1, "latency_ns": 1}, "pJ ns"),
        ({"energy_pj": 1, "tops_per_w": 1}, "pJ W/TOPS"),
        ({"bandwidth_gb_per_s": 1}, "s/GB"),
        ({"clock_mhz": 1}, "1/MHz"),
        ({"latency_ns": 2}, "(ns)^2"),
        ({"tops_per_w": 2}, "(TOPS/W)^-2"),
    ],
)
def test_units_of_a_product(product: dict[str, float], unit: str) -> None:
    """What is maximised is minimised as its reciprocal."""
    (goal,) = Objective.parse({"product": product}).goals
    assert goal_unit(goal, METRICS) == unit
