"""The metrics of a system, from what the simulation gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.soc.blocks.costs import blocks
from archgym.envs.soc.graphs.task_graph import shipped_graphs
from archgym.envs.soc.graphs.workload import Workload
from archgym.envs.soc.simulation.layout import AREA, ENERGY, LATENCY, POWER, UTILISATION
from archgym.problem.metrics import Metric

__all__ = ["METRICS", "budget_metrics", "graph_metrics", "metrics_of"]

METRICS: Final[tuple[Metric, ...]] = (
    Metric("latency_ms", "ms", "minimize", "from the start of all graphs to their last task"),
    *(
        Metric(f"{name}_latency_ms", "ms", "minimize", f"until the last task of {name}")
        for name in shipped_graphs()
    ),
    Metric("power_mw", "mW", "minimize", "highest mean of phases that last over 10 ms together"),
    Metric("energy_mj", "mJ", "minimize", "of all tasks, with reads and writes of memories"),
    Metric("area_mm2", "mm2", "minimize", "of cores, accelerators and memories that are used"),
    Metric(
        "budget_distance_share",
        "",
        "minimize",
        "sum of what latency, power and area are above their budgets, as shares of these; 0: met",
    ),
    Metric("latency_budget_share", "", "minimize", "highest latency of a graph by its budget"),
    Metric("processor_utilisation_share", "", "maximize", "of the time, mean of processors in use"),
    Metric("memory_utilisation_share", "", "maximize", "of the busiest memory, in one direction"),
    Metric("bus_utilisation_share", "", "maximize", "of the busiest bus, in one direction"),
)


def graph_metrics(workload: Workload) -> tuple[str, ...]:
    """Names of the metrics of a workload: latencies only of its own graphs."""
    own = {f"{graph.name}_latency_ms" for graph in workload.graphs}
    other = {f"{name}_latency_ms" for name in shipped_graphs()} - own
    return tuple(metric.name for metric in METRICS if metric.name not in other)


def metrics_of(workload: Workload, out: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """The metrics by name, each of shape (n_designs,).

    Args:
        workload: the graphs.
        out: what the simulation gave, shape (n_designs, columns).
    """
    latency = 1e3 * out[:, LATENCY:]
    power, area = 1e3 * out[:, POWER], 1e6 * out[:, AREA]
    budgets = np.array([graph.latency_budget_ms for graph in workload.graphs])
    by_budget = (latency / budgets).max(axis=1)
    found = {
        "latency_ms": latency.max(axis=1),
        "power_mw": power,
        "energy_mj": 1e3 * out[:, ENERGY],
        "area_mm2": area,
        "budget_distance_share": _distance(by_budget, power, area),
        "latency_budget_share": by_budget,
        "processor_utilisation_share": out[:, UTILISATION],
        "memory_utilisation_share": out[:, UTILISATION + 1],
        "bus_utilisation_share": out[:, UTILISATION + 2],
    }
    for number, graph in enumerate(workload.graphs):
        found[f"{graph.name}_latency_ms"] = latency[:, number]
    return {name: np.asarray(found[name]) for name in graph_metrics(workload)}


def budget_metrics(workload: Workload, figures: Mapping[str, float]) -> dict[str, float]:
    """How far one system of one graph is from its budgets.

    Args:
        workload: with one graph.
        figures: its ``latency_ms``, ``power_mw`` and ``area_mm2``.
    """
    by_budget = figures["latency_ms"] / workload.graphs[0].latency_budget_ms
    distance = _distance(by_budget, figures["power_mw"], figures["area_mm2"])
    return {"latency_budget_share": by_budget, "budget_distance_share": float(distance)}


def _distance(latency_share: Any, power_mw: Any, area_mm2: Any) -> Any:
    """City-block distance to the budgets; what is met does not count."""
    limits = blocks()
    shares = (latency_share, power_mw / limits.power_mw, area_mm2 / limits.area_mm2)
    return sum(np.maximum(share - 1, 0.0) for share in shares)
