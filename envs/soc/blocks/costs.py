"""Costs of cores, accelerators, memories and buses: FARSI's published tables.

The figures are those of FARSI (Boroujerdian et al., "FARSI: An Early-stage Design Space Exploration
Framework to Tame the Domain-specific System-on-Chip Complexity", ACM Trans. Embed. Comput. Syst.
22 (2023)), in ``data/blocks.json``. Memories are as CACTI gives them for FARSI's settings
(``data/memory.csv``); buses cost nothing, as in FARSI with CACTI.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

import numpy as np

from archgym.envs.soc.simulation.layout import MemoryCosts

__all__ = ["KINDS", "SOURCE", "Blocks", "blocks", "largest_memory_b", "memory_costs"]

KINDS: Final = ("sram", "dram")
SOURCE: Final = (
    "block costs of FARSI (facebookresearch/Project_FARSI, commit ce59c96, MIT); memories by CACTI "
    "with FARSI's settings (oss-arch-gym, commit 53f745a, cacti_for_FARSI/farsi_gen.cfg)"
)
_LARGEST: Final = 1 << 14
"""Blocks of a memory of which figures are worked out: 4 GB."""


@dataclass(frozen=True)
class Blocks:
    """What blocks can be, and what they cost.

    Attributes:
        core_rate: operations a second of a core.
        core_energy_j: J an operation.
        core_area_m2: m2.
        accelerator_clock_hz: clock for which cycles of accelerators are given.
        accelerator_energy_scale: from the table's energies to those of the technology.
        accelerator_area_scale: likewise, areas.
        memory_clock_hz, bus_clock_hz: lowest clocks.
        widths_b: bytes a cycle of memories and buses.
        clocks_mhz: of accelerators, memories and buses.
        burst_b: size of a burst, bytes.
        power_mw, area_mm2: the budgets.
    """

    core_rate: float
    core_energy_j: float
    core_area_m2: float
    accelerator_clock_hz: float
    accelerator_energy_scale: float
    accelerator_area_scale: float
    memory_clock_hz: float
    bus_clock_hz: float
    widths_b: tuple[int, ...]
    clocks_mhz: tuple[int, ...]
    burst_b: int
    power_mw: float
    area_mm2: float


@cache
def blocks() -> Blocks:
    """The shipped costs."""
    data = _data()
    core, accelerator = data["core"], data["accelerator"]
    return Blocks(
        core["operations_per_s"],
        1 / core["operations_per_j"],
        core["area_m2"],
        accelerator["clock_hz"],
        accelerator["energy_scale"],
        accelerator["area_scale"],
        data["memory"]["clock_hz"],
        data["bus"]["clock_hz"],
        tuple(data["widths_b"]),
        tuple(data["clocks_mhz"]),
        data["burst_b"],
        data["budget"]["power_mw"],
        data["budget"]["area_mm2"],
    )


@cache
def memory_costs() -> MemoryCosts:
    """Energy and area of memories by size.

    Sizes between those of the table are interpolated, and beyond it extended, on logarithmic
    scales.
    """
    memory = _data()["memory"]
    sizes = np.log(np.arange(1, _LARGEST + 1))
    tables = np.empty((3, len(KINDS), _LARGEST))
    for row, kind in enumerate(KINDS):
        lines = [line for line in _rows() if line["kind"] == kind]
        known = np.log([float(line["blocks"]) for line in lines])
        for number, column in enumerate(("read_nj", "write_nj", "area_mm2")):
            values = np.log([float(line[column]) for line in lines])
            slope = (values[-1] - values[-2]) / (known[-1] - known[-2])
            beyond = values[-1] + slope * (sizes - known[-1])
            inside = np.interp(sizes, known, values)
            tables[number, row] = np.exp(np.where(sizes > known[-1], beyond, inside))
    energy = 1e-9 * memory["energy_scale"] / memory["access_b"]
    area = 1e-6 * memory["area_scale"]
    return MemoryCosts(memory["block_b"], tables[0] * energy, tables[1] * energy, tables[2] * area)


def largest_memory_b() -> float:
    """Size of the largest memory of which :func:`memory_costs` are known, bytes."""
    return float(_data()["memory"]["block_b"] * _LARGEST)


@cache
def _data() -> Any:
    return json.loads(_text("blocks.json"))


def _rows() -> list[dict[str, str]]:
    lines = [line for line in _text("memory.csv").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def _text(name: str) -> str:
    return resources.files("archgym.envs.soc.blocks").joinpath("data", name).read_text("utf-8")
