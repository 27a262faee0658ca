"""Designs that the embedded simulator of an environment likes best."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from archgym import Environment, Metric
from archgym.errors import InvalidValueError, SimulationError
from archgym.space import DesignSpace, Ordinal


class WithoutSimulator(Environment):
    """Whose simulators are all others."""

    name: ClassVar = "WithoutSimulator-v0"
    version: ClassVar = "1"
    metrics: ClassVar = (Metric("stall_count", "", "minimize", "stalls"),)
    default_objective: ClassVar = "minimize stall_count"
    baseline: ClassVar = {"ways": 1}
    design_space = DesignSpace([Ordinal("ways", [1, 2, 3])])


class Unfinished(WithoutSimulator):
    """Whose own simulator ends with the error of a part that is missing."""

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        raise NotImplementedError("three ways")


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        (WithoutSimulator, InvalidValueError, "has no embedded simulator"),
        (Unfinished, SimulationError, "three ways"),
    ],
)
def test_a_missing_simulator_is_told_from_one_that_fails(
    kind: type[Environment], error: type[Exception], said: str
) -> None:
    env = kind()
    env.simulator = SimpleNamespace(name="another")
    with pytest.raises(error, match=said):
        env.predicted_designs()
