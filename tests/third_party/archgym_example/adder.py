"""A third-party environment: a carry-select adder."""

from __future__ import annotations

from typing import Any, ClassVar

import archgym
from archgym.space import DesignSpace, Integer, Ordinal


class Adder(archgym.Environment):
    """How to cut a 64-bit adder into blocks."""

    design_space = DesignSpace(
        [Ordinal("block_bits", [2, 4, 8, 16, 32], unit="bits"), Integer("stages", 1, 8)]
    )
    metrics: ClassVar = (
        archgym.Metric("delay_ns", "ns", "minimize", "from operands to sum"),
        archgym.Metric("area_um2", "um2", "minimize", "cells"),
    )
    default_objective: ClassVar = {"product": {"delay_ns": 1, "area_um2": 1}}
    baseline: ClassVar = {"block_bits": 8, "stages": 2}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        blocks = 64 / design["block_bits"]
        return {
            "delay_ns": (0.05 * design["block_bits"] + 0.08 * blocks) / design["stages"] + 0.1,
            "area_um2": 64 * 9.0 + blocks * 30.0 + design["stages"] * 64 * 4.5,
        }
