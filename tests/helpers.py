"""Small environments that tests drive."""

from __future__ import annotations

from typing import Any, ClassVar

import archgym
from archgym.errors import NotCoveredError, SimulationError
from archgym.space import Categorical, Designs, DesignSpace, Integer, Rule, param

__all__ = ["Adder", "Batched", "Grumpy"]


class Adder(archgym.Environment):
    """Two numbers and a mode, or a scaled mode: 72 of 75 canonical designs are legal."""

    design_space = DesignSpace(
        [
            Integer("x", 0, 4),
            Integer("y", 0, 4),
            Categorical("mode", ["plain", "scaled"]),
            Integer("scale", 1, 2, when=param("mode") == "scaled"),
        ],
        [Rule("not_both", param("x") + param("y") < 8, "x + y stays below 8")],
    )
    metrics: ClassVar = (
        archgym.Metric("total_ns", "ns"),
        archgym.Metric("speed_rate", "", "maximize"),
    )
    default_objective = "minimize total_ns"
    baseline: ClassVar = {"x": 2, "y": 2, "mode": "plain"}

    def __init__(self, **kwargs: Any) -> None:
        self.simulated: list[dict[str, Any]] = []
        super().__init__(**kwargs)
        self.simulate_baseline()
        self.simulated.clear()

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        self.simulated.append(design)
        total = design["x"] + design["y"] * design.get("scale", 1)
        return {"total_ns": 1.0 + total, "speed_rate": 1.0 / (1.0 + total)}


class Grumpy(Adder):
    """Fails in every way, by the value of x."""

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        metrics = super().simulate(design)
        match design["x"]:
            case 0:
                raise SimulationError("no x")
            case 1:
                raise TimeoutError("after 3 s")
            case 3:
                raise NotCoveredError("x = 3 is not modelled")
            case 4:
                return {"total_ns": 1 / design["y"], "speed_rate": float("nan")}
        return metrics


class Batched(Adder):
    """Simulates many designs at once."""

    def simulate_batch(self, designs: Designs) -> list[tuple[Any, float]]:
        scale = designs.values("scale", inactive=1)
        total = designs.values("x") + designs.values("y") * scale
        return [({"total_ns": 1.0 + t, "speed_rate": 1.0 / (1.0 + t)}, 0.0) for t in total]
