"""Computes the specifications of the workloads that NASAIC did not define.

Run as ``python -m archgym.envs.nas.specs --out envs/nas/specs.json``; nothing is random. The rule,
written before any search was run:

1. The networks are the most accurate ones of the tables, for each task.
2. Latency: 0.7 of the lowest latency that any chip gives them. Energy: likewise.
3. Area does not depend on networks, and 0.7 of the smallest chip would admit none: it is 0.7 of
   the area of the chip with the lowest latency.

So no chip meets the specifications with the most accurate networks. "Any chip" stands for the best
that a search by coordinates finds (:func:`best_chip`) among one to four sub-accelerators.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from archgym.envs.accelerator.workload.layer import Network
from archgym.envs.nas.accuracy.choice import accuracy_source
from archgym.envs.nas.families import Architecture, Task
from archgym.envs.nas.hardware.chip import (
    MAX_BANDWIDTH_GBPS,
    MAX_PES,
    MAX_SUB_ACCELERATORS,
    Chip,
    SubAccelerator,
    area_um2,
)
from archgym.envs.nas.hardware.hardware_side import HardwareSide
from archgym.envs.nas.reward import Specs
from archgym.envs.nas.space import (
    DATAFLOWS,
    GRIDS,
    Grid,
    name_networks,
)
from archgym.envs.nas.tasks import distinct_architectures, family_of, task_of
from archgym.envs.nas.workloads import WORKLOADS

__all__ = ["SHARE", "best_chip", "compute", "most_accurate"]

SHARE: Final = 0.7
_FASTEST: Final = 1e-9
"""A limit of latency that no schedule meets: the scheduler then gives the fastest it finds."""
_STARTS: Final = 2
"""Homogeneous chips of each number of sub-accelerators from which the search goes on."""


def compute(name: str) -> dict[str, Any]:
    """The entry of a workload: networks, best values with their chips, specifications."""
    entry = WORKLOADS[name]
    tasks = [task_of(task) for task in entry.tasks]
    chosen = [most_accurate(task)[0] for task in tasks]
    players = name_networks(tasks)
    networks = tuple(
        family_of(task).layers(task, architecture)
        for task, architecture in zip(tasks, chosen, strict=True)
    )
    grid = GRIDS[entry.mode]
    fastest, latency = best_chip(networks, "latency_cycles", grid, entry.mode)
    frugal, energy = best_chip(networks, "energy_nj", grid, entry.mode)
    area = area_um2(fastest, entry.mode)
    best: dict[str, dict[str, Any]] = {
        "latency_cycles": {"value": latency, "chip": _chip_json(fastest)},
        "energy_nj": {"value": energy, "chip": _chip_json(frugal)},
        "area_um2": {"value": area, "chip": _chip_json(fastest)},
    }
    return {
        "networks": {p.name: dict(a) for p, a in zip(players, chosen, strict=True)},
        "best": best,
        "specs": {metric: _rounded(SHARE * entry["value"]) for metric, entry in best.items()},
    }


def most_accurate(task: Task) -> tuple[Architecture, float]:
    """The network with the highest tabulated accuracy (the first of several), and that accuracy."""
    architectures = list(distinct_architectures(task).values())
    source = accuracy_source("tabulated", {}, [task])
    values = source.accuracies(task, architectures, source.epochs[-1])
    best = int(np.nanargmax(values))
    return architectures[best], float(values[best])


def best_chip(
    networks: Sequence[Network], metric: str, grid: Grid, mode: str
) -> tuple[Chip, float]:
    """The chip with the least latency or energy for some networks, and that value.

    From the best homogeneous chips of each number of sub-accelerators, one sub-accelerator at a
    time is replaced by the best of all that keep the totals, until none is better; of
    equally good chips the smallest is taken.

    Args:
        networks: what the chip runs at the same time.
        metric: ``latency_cycles`` or ``energy_nj``.
        grid: sizes of sub-accelerators.
        mode: ``own`` or ``paper``.
    """
    subs = [
        SubAccelerator(dataflow, pes, bandwidth, *buffer)
        for dataflow in DATAFLOWS
        for pes in grid.pes
        for bandwidth in grid.bandwidths_gbps
        for buffer in _buffers(grid)
    ]
    best: tuple[tuple[float, float], Chip] | None = None
    for count in range(1, MAX_SUB_ACCELERATORS + 1):
        ranked = _ranked(
            networks, [chip for s in subs if (chip := _legal([s] * count))], metric, mode
        )
        for start in ranked[:_STARTS]:
            here = start
            position = unchanged = 0
            while unchanged < count and count > 1:
                others = list(here[1].sub_accelerators)
                tried = []
                for sub in subs:
                    others[position] = sub
                    if chip := _legal(others):
                        tried.append(chip)
                there = _ranked(networks, tried, metric, mode)[0]
                unchanged = 0 if there[0] < here[0] else unchanged + 1
                here = min(here, there, key=lambda pair: pair[0])
                position = (position + 1) % count
            if best is None or here[0] < best[0]:
                best = here
    assert best is not None
    return best[1], best[0][0]


def _buffers(grid: Grid) -> list[tuple[int, ...]]:
    """Further arguments of a sub-accelerator: its buffer, where the grid has one."""
    return [(size,) for size in grid.buffers_kib] or [()]


def _ranked(
    networks: Sequence[Network], chips: Sequence[Chip], metric: str, mode: str
) -> list[tuple[tuple[float, float], Chip]]:
    """Chips by the metric and then by area, the best first; those that do not fit left out."""
    columns = _metrics(networks, chips, metric, mode)
    pairs = zip(columns[metric], columns["area_um2"], strict=True)
    ranked = [(pair, chip) for pair, chip in zip(pairs, chips, strict=True) if pair[0] == pair[0]]
    return sorted(ranked, key=lambda entry: entry[0])


def _metrics(
    networks: Sequence[Network], chips: Sequence[Chip], metric: str, mode: str
) -> dict[str, list[float]]:
    limit = _FASTEST if metric == "latency_cycles" else None
    side = _hardware_side(mode)
    costs = side.evaluate([tuple(networks)] * len(chips), chips, latency_limit=limit)
    return {name: getattr(costs, name).tolist() for name in asdict(Specs(1, 1, 1))}


@cache
def _hardware_side(mode: str) -> HardwareSide:
    return HardwareSide(mode)


def _legal(subs: Sequence[SubAccelerator]) -> Chip | None:
    """The chip, if its sub-accelerators keep the totals."""
    if sum(sub.pes for sub in subs) > MAX_PES:
        return None
    if sum(sub.bandwidth_gbps for sub in subs) > MAX_BANDWIDTH_GBPS:
        return None
    return Chip(tuple(subs))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _chip_json(chip: Chip) -> list[Mapping[str, Any]]:
    return [asdict(sub) for sub in chip.sub_accelerators]


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description="Specifications of the NAS workloads")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="workloads to compute anew; all if left out")
    arguments = parser.parse_args()
    data: dict[str, Any] = {"workloads": {}}
    if arguments.only and arguments.out.exists():
        data = json.loads(arguments.out.read_text(encoding="utf-8"))
    data["made_by"] = "python -m archgym.envs.nas.specs, whose text has the rule"
    for name, entry in WORKLOADS.items():
        if entry.limited and entry.specs is None and (not arguments.only or name in arguments.only):
            data["workloads"][name] = compute(name)
    arguments.out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
