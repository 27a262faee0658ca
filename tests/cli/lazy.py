"""Environments for the tests of commands."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, ClassVar

from archgym.environment.environment import Environment
from archgym.problem.metrics import Metric
from archgym.space import DesignSpace, Integer, param


class Lazy(Environment):
    """Gives another answer each time, which the contract forbids."""

    design_space = DesignSpace([Integer("x", 0, 9)])
    metrics: ClassVar = (Metric("time_ns", "ns", "minimize"),)
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"x": 0}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {"time_ns": random.random()}


class Noted(Environment):
    """Leaves a file when it simulates.

    Args:
        file: that is made.
    """

    design_space = DesignSpace(
        [Integer("x", 0, 1), Integer("y", 0, 1, when=param("x") == 1)],
    )
    metrics: ClassVar = (Metric("time_ns", "ns", "minimize"),)
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"x": 0}
    incidental_arguments: ClassVar = ("file",)

    def __init__(self, file: str, **settings: Any) -> None:
        self._file = Path(file)
        super().__init__(**settings)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        self._file.touch()
        return {"time_ns": 1.0 + design["x"]}
