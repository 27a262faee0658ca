"""The conformance environment: a made-up prefetching cache with a closed-form cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from archgym.environment.environment import Environment
from archgym.errors import SimulationError
from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.simulator import SimulationResult, simulate_each
from archgym.space import (
    Boolean,
    Categorical,
    Designs,
    DesignSpace,
    Integer,
    Ordinal,
    Real,
    Rule,
    param,
)

__all__ = ["ConformanceEnvironment"]

_PARAMETERS = (
    Categorical("replacement", ["lru", "fifo", "random"], doc="replacement policy", group="cache"),
    Ordinal("size_kb", [1, 2, 4, 8, 16, 32, 64], unit="kB", doc="capacity", group="cache"),
    Integer("ways", 1, 16, doc="associativity", group="cache"),
    Boolean("prefetch", doc="whether the next lines are fetched ahead", group="prefetcher"),
    Integer(
        "distance",
        1,
        8,
        doc="lines fetched ahead",
        when=param("prefetch").isin([True]),
        group="prefetcher",
    ),
)
_RULES = (
    Rule(
        "way_holds_a_line",
        param("size_kb") * 4 >= param("ways"),
        "each way must hold at least 256 bytes",
    ),
)


class ConformanceEnvironment(Environment):
    """A made-up cache: it models no real one, but its metrics trade off like those of a real one.

    The space ``default`` has a real parameter, ``finite`` has none. Prefetching 8 lines ahead
    with random replacement fails, so that failures are met. Below full fidelity the cache is
    still cold: large ones look worse than they are.
    """

    design_spaces: ClassVar = {
        "default": DesignSpace(
            [*_PARAMETERS, Real("voltage", 0.6, 1.1, unit="V", doc="supply voltage")], _RULES
        ),
        "finite": DesignSpace(_PARAMETERS, _RULES),
    }
    metrics: ClassVar = (
        Metric("access_ns", "ns", "minimize", "mean access time"),
        Metric("energy_pj", "pJ", "minimize", "energy of an access"),
        Metric("hit_rate", "", "maximize", "share of accesses that hit"),
        Metric("area_mm2", "mm2", "minimize", "silicon area"),
    )
    default_objective: ClassVar = "minimize access_ns"
    baseline: ClassVar = {
        "replacement": "lru",
        "size_kb": 8,
        "ways": 4,
        "prefetch": False,
        "voltage": 0.9,
    }
    fidelities: tuple[Fidelity, ...] = (
        Fidelity(0.1, 0.1, "a tenth of the accesses"),
        Fidelity(0.3, 0.3, "three tenths of the accesses"),
        FULL,
    )

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        """Closed forms, chosen for their shape only."""
        policy = {"lru": 1.0, "fifo": 0.93, "random": 0.9}[design["replacement"]]
        ahead = design.get("distance", 0)
        if ahead == 8 and design["replacement"] == "random":
            raise SimulationError("prefetching 8 lines ahead evicts them under random replacement")
        ways, size, voltage = design["ways"], design["size_kb"], design.get("voltage", 0.9)
        reach = math.log2(1 + size) * policy * (1 + 0.1 * math.log2(ways))
        hit = 1 - math.exp(-0.4 * reach - 0.05 * ahead * (4.5 - 0.5 * ahead))
        cycle = (0.3 + 0.02 * ways + 0.05 * math.log2(size)) / voltage
        return {
            "access_ns": cycle + (1 - hit) * 60.0,
            "energy_pj": voltage**2 * (2.0 + 0.4 * ways + 0.1 * size + 1.5 * ahead),
            "hit_rate": hit,
            "area_mm2": 0.01 * size * (1 + 0.03 * ways) + 0.002 * ahead,
        }

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        """The closed forms; at lower fidelity, cold misses weigh more."""
        results = simulate_each(self, designs)
        if fidelity == 1.0:
            return results
        return [
            (_cold(result, design, fidelity) if isinstance(result, Mapping) else result, seconds)
            for design, (result, seconds) in zip(designs, results, strict=True)
        ]


def _cold(
    warm: Mapping[str, float], design: Mapping[str, Any], fidelity: float
) -> SimulationResult:
    """Metrics at a fidelity from the full ones: each line of the cache misses once."""
    lost = warm["hit_rate"] * 0.0005 * design["size_kb"] * (1.0 / fidelity - 1.0)
    return {
        **warm,
        "hit_rate": warm["hit_rate"] - lost,
        "access_ns": warm["access_ns"] + 60.0 * lost,
    }
