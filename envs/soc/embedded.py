"""The embedded simulator: designs of a workload's space in, metrics out."""

from __future__ import annotations

from typing import Final

import numpy as np

from archgym.envs.soc.blocks.costs import memory_costs
from archgym.envs.soc.graphs.workload import Workload
from archgym.envs.soc.metrics import metrics_of
from archgym.envs.soc.simulation.layout import LATENCY, new_work
from archgym.envs.soc.space import BUSES, CORES, MEMORIES
from archgym.envs.soc.systems import build_systems
from archgym.space import Designs

__all__ = ["ACCOUNTING", "FARSI", "PLAIN", "simulated"]

PLAIN: Final = "plain"
FARSI: Final = "farsi"
ACCOUNTING: Final = (PLAIN, FARSI)
"""How power and sizes of memories are counted: as the guide says, or as FARSI's program does."""


def simulated(
    workload: Workload, designs: Designs, accounting: str = PLAIN
) -> list[dict[str, float]]:
    """Metrics of designs.

    Args:
        workload: the graphs.
        designs: of a space of the workload.
        accounting: one of :data:`ACCOUNTING`.
    """
    from archgym.envs.soc.simulation.run import run_systems  # numba is slow to import

    tasks, graphs = len(workload.tasks), len(workload.graphs)
    systems = build_systems(workload, designs)
    out = np.zeros((len(designs), LATENCY + graphs))
    work = new_work(tasks, graphs, CORES + tasks, MEMORIES, BUSES)
    run_systems(workload.arrays, systems, memory_costs(), accounting == FARSI, work, out)
    found = metrics_of(workload, out)
    columns = [column.tolist() for column in found.values()]
    return [dict(zip(found, row, strict=True)) for row in zip(*columns, strict=True)]
