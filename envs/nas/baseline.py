"""The baseline designs: the networks of highest accuracy, on the largest chip allowed.

The networks are the best published ones, else the largest; the chip has all 4,096 processing
elements and 64 GB/s (W1 and W2: the chip that NASAIC's table gives for NAS, then ASIC). This is
the result of searching networks first: it breaks the specifications, and a search has to find
designs that do not.
"""

from __future__ import annotations

from typing import Any, Final

from archgym.envs.nas.accuracy.published import ANCHORS
from archgym.envs.nas.families import Architecture, Task
from archgym.envs.nas.hardware.chip import MAX_BANDWIDTH_GBPS, MAX_PES, Chip
from archgym.envs.nas.space import (
    GRIDS,
    ChipForm,
    chip_design,
    largest_architecture,
    name_networks,
    network_design,
)
from archgym.envs.nas.workloads import Workload

__all__ = ["baseline_architecture", "baseline_chip", "baseline_design"]

_HALF: Final = (MAX_PES // 2, MAX_BANDWIDTH_GBPS // 2)
_PUBLISHED: Final = {
    "W1": [("nvdla_ws", 2112, 48), ("shidiannao_os", 1984, 16)],
    "W2": [("nvdla_ws", 2368, 56), ("shidiannao_os", 1728, 8)],
}
"""NASAIC, table 1, NAS then ASIC."""


def baseline_architecture(task: Task) -> Architecture:
    """The best published network of a task, else the largest one."""
    if task.name in ANCHORS:
        return ANCHORS[task.name].best_architecture
    return largest_architecture(task)


def baseline_chip(workload: Workload, form: ChipForm) -> Chip:
    """The largest chip of a form that the totals allow."""
    if form == "single":
        return Chip.of([("nvdla_ws", MAX_PES, MAX_BANDWIDTH_GBPS)])
    if form == "homogeneous":
        return Chip.of([("nvdla_ws", *_HALF)] * 2)
    published = _PUBLISHED.get(workload.name)
    return Chip.of(published or [("nvdla_ws", *_HALF), ("shidiannao_os", *_HALF)])


def baseline_design(workload: Workload, form: ChipForm) -> dict[str, Any]:
    """The baseline of a workload in the space of one form of chip."""
    networks = name_networks(workload.tasks)
    design = network_design(networks, [baseline_architecture(task) for task in workload.tasks])
    if form != "network":
        design |= chip_design(baseline_chip(workload, form), form, GRIDS[workload.mode])
    return design
