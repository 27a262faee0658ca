"""From designs to the systems that are simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.soc.blocks.costs import KINDS, blocks
from archgym.envs.soc.graphs.workload import Workload
from archgym.envs.soc.simulation.layout import SystemArrays
from archgym.envs.soc.space import ACCELERATOR, BUSES, CORES, MEMORIES
from archgym.space import Designs

__all__ = ["SMALL_CLOCK_MHZ", "build_systems"]

_CORES: Final = tuple(f"core{core}" for core in range(CORES))
SMALL_CLOCK_MHZ: Final = 800
"""Of memory and bus of the space ``small``."""


def build_systems(workload: Workload, designs: Designs) -> SystemArrays:
    """The systems that designs describe; parameters that a space lacks have fixed values."""
    reader = _Reader(designs)
    tasks = [_task(reader, workload, number) for number in range(len(workload.tasks))]
    columns = [np.stack(column, axis=1) for column in zip(*tasks, strict=True)]
    inputs = _inputs(reader, workload)
    memories = [f"memory{memory}" for memory in range(MEMORIES)]
    buses = [f"bus{bus}" for bus in range(BUSES)]
    kinds = [reader.places(f"{name}_kind", KINDS) for name in memories]
    b = blocks()
    return SystemArrays(
        processor=columns[0].astype(np.int64),
        rate=columns[1],
        energy=columns[2],
        area=columns[3],
        bus=columns[4].astype(np.int64),
        memory=columns[5].astype(np.int64),
        input_memory=np.stack(inputs, axis=1).astype(np.int64),
        memory_dram=_stacked(kinds),
        memory_bus=_stacked([reader.numbers(f"{name}_bus", 0) for name in memories]),
        memory_rate=np.stack([reader.rate(name, b.memory_clock_hz) for name in memories], axis=1),
        bus_parent=_stacked([reader.numbers(f"{name}_parent", 0) for name in buses]),
        bus_rate=np.stack([reader.rate(name, b.bus_clock_hz) for name in buses], axis=1),
    )


class _Reader:
    """Columns of designs, or of a fixed value."""

    def __init__(self, designs: Designs) -> None:
        self._designs = designs
        self._names = set(designs.space.names)

    def numbers(self, name: str, default: float, other: str = "") -> NDArray[np.float64]:
        for one in (name, other):
            if one in self._names:
                return self._designs.values(one, default).astype(np.float64)
        return np.full(len(self._designs), float(default))

    def places(self, name: str, texts: tuple[str, ...]) -> NDArray[np.int64]:
        """Where a parameter's values stand among texts; 0 for a parameter that is not there."""
        if name not in self._names:
            return np.zeros(len(self._designs), np.int64)
        position = self._designs.space.index(name)
        parameter = self._designs.space.parameters[position]
        places = [texts.index(parameter.value(code)) for code in range(parameter.size)]
        return np.array([*places, 0])[self._designs.codes[:, position]]  # -1 where inactive

    def rate(self, name: str, clock_hz: float) -> NDArray[np.float64]:
        """Bytes a second."""
        lowest = blocks().clocks_mhz[0]
        clock = self.numbers(f"{name}_clock_mhz", SMALL_CLOCK_MHZ) / lowest * clock_hz
        return self.numbers(f"{name}_width_b", blocks().widths_b[0]) * clock


def _stacked(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.stack(columns, axis=1).astype(np.int64)


def _inputs(reader: _Reader, workload: Workload) -> list[NDArray[np.float64]]:
    names = [f"{graph.name}_input_memory" for graph in workload.graphs]
    return [reader.numbers(name, 0, "input_memory") for name in names]


def _task(reader: _Reader, workload: Workload, number: int) -> list[NDArray[np.float64]]:
    """Processor, rate, energy, area, bus and memory of a task, each shape (n_designs,)."""
    b = blocks()
    name, task = list(workload.tasks.items())[number]
    on = reader.places(f"{name}_on", (*_CORES, ACCELERATOR))
    there = on == CORES
    core = np.where(there, CORES + number, on)
    bus = np.stack([reader.numbers(f"{one}_bus", 0) for one in (*_CORES, name)])
    bus = np.take_along_axis(bus, on[None], axis=0)[0]
    memory = reader.numbers(f"{name}_memory", 0)
    rate = np.full(len(on), b.core_rate)
    energy = np.full(len(on), b.core_energy_j)
    area = np.full(len(on), b.core_area_m2)
    if task.accelerator is not None:
        a = task.accelerator
        lanes = np.minimum(reader.numbers(f"{name}_lanes", 1, "lanes"), task.iterations)
        speedup = lanes * reader.numbers(f"{name}_clock_mhz", 100, "clock_mhz") / b.clocks_mhz[0]
        rate = np.where(there, speedup * task.operations * b.accelerator_clock_hz / a.cycles, rate)
        once = lanes * a.energy_fj * 1e-15 * b.accelerator_energy_scale / task.operations
        energy = np.where(there, once, energy)
        area = np.where(there, lanes * a.area_um2 * 1e-12 * b.accelerator_area_scale, area)
    return [core, rate, energy, area, bus, memory]
