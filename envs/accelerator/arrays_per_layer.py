"""Chips with one array for each layer, as the space ``per_layer`` describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archgym.envs.accelerator.cost.energy import area, clock_mhz
from archgym.envs.accelerator.cost.layer_costs import unmapped_error
from archgym.envs.accelerator.cost.model import Costs, evaluate
from archgym.envs.accelerator.spaces import per_layer as space_per_layer
from archgym.envs.accelerator.workload.layer import LayerTable, Network
from archgym.problem.simulator import SimulationResult

__all__ = ["costs_of_layers", "simulations"]


def costs_of_layers(
    network: Network,
    designs: Sequence[Mapping[str, Any]],
    fixed: Mapping[str, Any],
    mapper: str,
) -> list[Costs]:
    """For each layer its costs on the designs' arrays for it.

    Args:
        network: what the designs run.
        designs: canonical.
        fixed: fields of the hardware that are not searched.
        mapper: as in :func:`archgym.envs.accelerator.cost.model.evaluate`.
    """
    found: list[Costs] = []
    for i, pair in enumerate(zip(network.layers, network.counts, strict=True)):
        arrays = [space_per_layer.hardware(design, i, **fixed) for design in designs]
        found.append(evaluate(LayerTable.of([pair]), arrays, mapper=mapper))
    return found


def simulations(layers: Sequence[Costs]) -> list[SimulationResult]:
    """Metrics of each design: layers run one after another, and all arrays are on the chip.

    Args:
        layers: from `costs_of_layers`.
    """
    return [_simulation(layers, i) for i in range(len(layers[0].hardware))]


def _simulation(layers: Sequence[Costs], design: int) -> SimulationResult:
    if missing := [name for costs in layers for name in costs.unmapped(design)]:
        return unmapped_error(layers[0].hardware[design], missing)

    def total(column: str) -> float:
        return sum(float(costs.total(column)[design]) for costs in layers)

    arrays = [costs.hardware[design] for costs in layers]
    cycles, energy = total("cycles"), total("energy_pj")
    latency = cycles * 1000 / clock_mhz(arrays[0])
    areas = [area(array) for array in arrays]
    # The arrays share one buffer and one memory interface.
    shared = areas[0].buffer_um2 + areas[0].interface_um2
    own = sum(a.macs_um2 + a.register_files_um2 + a.noc_um2 for a in areas)
    peak = sum(array.macs_per_cycle for array in arrays)
    return {
        "latency_cycles": cycles,
        "latency_ns": latency,
        "energy_pj": energy,
        "area_um2": own + shared,
        "power_mw": energy / latency,
        "utilisation_rate": total("macs") / (cycles * peak),
        "dram_bytes": total("dram_bytes"),
        "edp_js": energy * latency * 1e-21,
    }
