"""An environment that does not keep the contract."""

from __future__ import annotations

import random
from typing import Any, ClassVar

from archgym.environment.environment import Environment
from archgym.problem.metrics import Metric
from archgym.space import DesignSpace, Integer


class Lazy(Environment):
    """Gives another answer each time."""

    design_space = DesignSpace([Integer("x", 0, 9)])
    metrics: ClassVar = (Metric("time_ns", "ns", "minimize"),)
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"x": 0}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {"time_ns": random.random()}
