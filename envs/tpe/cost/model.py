"""From designs to metrics: counts, calibrated cells, digit statistics and cycles together.

A batch of designs is a table. Values that depend on a few fields only (the compressor tree, the
operand registers, an adder, an edge block, the switching of a signal) are computed once for each
combination of those fields and cached; the rest is arithmetic on columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.cost.batch_energy import EnergyCosts
from archgym.envs.tpe.cost.cells import EdgeCostModel, PECostModel
from archgym.envs.tpe.cost.cycles import workload_cycles
from archgym.envs.tpe.cost.table import ArrayTable
from archgym.envs.tpe.microarchitecture.structure import edge_counts
from archgym.envs.tpe.switching.array_energy import EnergyModel
from archgym.envs.tpe.technology.technology import Technology
from archgym.envs.tpe.workload.workload import Workload
from archgym.errors import SimulationError
from archgym.problem.simulator import SimulationResult
from archgym.space import Designs

__all__ = ["SCOPES", "EngineModel"]

SCOPES = ("array", "pe")
"""What is scored: the whole array with its edge, or one PE alone."""

FloatArray = NDArray[np.float64]


class EngineModel:
    """Metrics of arrays on one workload in one cell library.

    Args:
        technology: the cell library.
        workload: what the arrays run.
        scope: one of `SCOPES`.
    """

    def __init__(self, technology: Technology, workload: Workload, scope: str = "array") -> None:
        self._technology = technology
        self._workload = workload
        self._alone = scope == "pe"
        energies = technology.energies
        self._pes = PECostModel(technology)
        self._edges = EdgeCostModel(
            technology, EnergyModel(energies, workload, edge_counts).event_energy_fj
        )
        self._energy = EnergyCosts(energies, workload)

    def evaluate(self, designs: Designs) -> list[SimulationResult]:
        """Metrics of legal designs, or why there are none: a clock that is too fast."""
        if not len(designs):
            return []
        table = ArrayTable(designs, alone=self._alone)
        pe = self._pes(table)
        edges = [] if self._alone else self._edges(table)
        area, shortest = pe.area_um2 * table.pes, pe.period_ns
        for block in edges:
            area = area + block.counts * block.area_um2
            shortest = np.maximum(shortest, block.period_ns)
        with np.errstate(divide="ignore"):
            asked = np.where(table.clock_mhz > 0, 1e3 / table.clock_mhz, 0.0)
        period = np.maximum(asked, shortest)
        cycles = workload_cycles(table.schedules(), self._workload).sum(axis=1)
        macs = self._workload.macs
        latency = cycles * period
        energy = self._energy.dynamic_pj(table, pe, edges, cycles)
        energy = energy + self._energy.leakage_mw(area) * latency
        tops = 2e-3 * macs / latency
        columns = {
            "area_um2": area,
            "min_period_ns": shortest,
            "power_mw": energy / latency,
            "energy_per_mac_pj": energy / macs,
            "macs_per_cycle_rate": macs / cycles,
            "tops": tops,
            "tops_per_w": 2.0 * macs / energy,
            "tops_per_mm2": tops / area * 1e6,
            "latency_ns": latency,
        }
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        results: list[SimulationResult] = [dict(zip(columns, row, strict=True)) for row in rows]
        # A clock that rounding alone would rule out is met.
        for i in np.flatnonzero((asked > 0) & (asked < shortest * (1 - 1e-9))).tolist():
            results[i] = SimulationError(
                f"clock_mhz: {table.clock_mhz[i]} MHz leaves {asked[i]:.3g} ns, but the slowest "
                f"block needs {shortest[i]:.3g} ns ({1e3 / shortest[i]:.0f} MHz) in "
                f"{self._technology.name}"
            )
        return results
