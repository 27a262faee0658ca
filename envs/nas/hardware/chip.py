"""Chips of one to four sub-accelerators, and what each is for the accelerator model.

>>> chip = Chip.of([("nvdla_ws", 576, 56), ("shidiannao_os", 1792, 8)])
>>> chip.pes, chip.bandwidth_gbps
(2368, 64)
>>> round(area_um2(chip, "paper") / 1e9, 2)
1.9
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from archgym.envs.accelerator.cost.energy import area
from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.technology import technology as technology_of
from archgym.envs.nas.hardware import maestro2019
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = [
    "DEFAULT_TECHNOLOGY",
    "MODES",
    "MAX_BANDWIDTH_GBPS",
    "MAX_PES",
    "MAX_SUB_ACCELERATORS",
    "TEMPLATES",
    "Chip",
    "SubAccelerator",
    "area_um2",
    "array_shape",
    "clock_mhz",
    "hardware",
]

MODES: Final = ("own", "paper")
"""Whose figures: our accelerator model's, or MAESTRO's of 2019, in which NASAIC's tables are."""

TEMPLATES: Final = MappingProxyType({"dla": "nvdla_ws", "shi": "shidiannao_os", "rs": "eyeriss_rs"})
"""Dataflow templates by NASAIC's names."""

MAX_PES: Final = 4096
"""Of a chip (NASAIC, DAC 2020)."""
MAX_BANDWIDTH_GBPS: Final = 64
"""Of a chip, GB/s (NASAIC, DAC 2020)."""
MAX_SUB_ACCELERATORS: Final = 4
"""Of a chip."""

DEFAULT_TECHNOLOGY: Final = "cmos16"
"""Of mode ``own``: 1 GHz, so that 1 GB/s is a byte a cycle."""

_UNLIMITED: Final = 2**30
_CLUSTER: Final = 64
"""PEs of a cluster in MAESTRO's example of NVDLA's dataflow."""
_REGISTER_FILES: Final = MappingProxyType(
    {
        "nvdla_ws": (16, 16, 48),
        "shidiannao_os": (16, 2, 3),
        "eyeriss_rs": (12, 224, 72),
    }
)
"""Bytes of a PE's register files for inputs, weights and partial sums (24 bits each), mode ``own``.

NVDLA (its documentation): room for a 3x3 window, and the 16 outputs of the shortest stripe that its
multipliers work on with the same weights. ShiDianNao (Du et al., ISCA 2015): one output stays in a
PE, its two queues hand inputs to the neighbours, weights are broadcast. Eyeriss (Chen et al., JSSC
2017): 12 inputs, 224 weights, 24 partial sums.
"""


@dataclass(frozen=True, slots=True)
class SubAccelerator:
    """One array of a chip.

    Examples:
        >>> SubAccelerator("nvdla_ws", pes=576, bandwidth_gbps=56).pes
        576
    """

    dataflow: str
    """Dataflow template, one of `TEMPLATES`' values."""
    pes: int
    """Processing elements."""
    bandwidth_gbps: int
    """Bandwidth of its network on chip, gigabytes a second."""
    buffer_kib: int = 128
    """Global buffer of the array, KiB; it limits mappings in mode ``own`` only."""

    def __post_init__(self) -> None:
        if self.dataflow not in _REGISTER_FILES:
            raise UnknownNameError("dataflow template", self.dataflow, _REGISTER_FILES)
        for field, maximum in (
            ("pes", MAX_PES),
            ("bandwidth_gbps", MAX_BANDWIDTH_GBPS),
            ("buffer_kib", _UNLIMITED // 1024),
        ):
            value = getattr(self, field)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or not 0 < value <= maximum:
                raise InvalidValueError(
                    f"{field} is {value!r}; it must be a whole number from 1 to {maximum}"
                )


@dataclass(frozen=True, slots=True)
class Chip:
    """Sub-accelerators that work side by side, within the totals of the design space."""

    sub_accelerators: tuple[SubAccelerator, ...]

    def __post_init__(self) -> None:
        count = len(self.sub_accelerators)
        if not 1 <= count <= MAX_SUB_ACCELERATORS:
            raise InvalidValueError(
                f"a chip of {count} sub-accelerators; it has 1 to {MAX_SUB_ACCELERATORS}"
            )
        for field, maximum, unit in (
            ("pes", MAX_PES, "PEs"),
            ("bandwidth_gbps", MAX_BANDWIDTH_GBPS, "GB/s"),
        ):
            total = getattr(self, field)
            if total > maximum:
                raise InvalidValueError(
                    f"the sub-accelerators have {total} {unit} together; at most {maximum}"
                )

    @classmethod
    def of(cls, parts: Iterable[tuple[Any, ...]]) -> Chip:
        """Return the chip of (dataflow, PEs, GB/s[, KiB]); parts with 0 PEs are left out.

        Raises:
            InvalidValueError: if nothing is left, or for what does not fit a chip.
        """
        return cls(tuple(SubAccelerator(*part) for part in parts if part[1] != 0))

    @property
    def pes(self) -> int:
        """Processing elements of all sub-accelerators."""
        return sum(sub.pes for sub in self.sub_accelerators)

    @property
    def bandwidth_gbps(self) -> int:
        """Network-on-chip bandwidth of all sub-accelerators, GB/s."""
        return sum(sub.bandwidth_gbps for sub in self.sub_accelerators)


def array_shape(dataflow: str, pes: int, mode: str = "own") -> tuple[int, int]:
    """Return rows and columns of a template's array; all of its PEs are used.

    An array is as square as its number of PEs allows, with at most as many rows as columns.
    Examples are ShiDianNao's 8 x 8 (output rows by output columns), and NVDLA's from 8 x 8 to 32 x
    64 (output channels by input channels); Eyeriss's filter rows fold over the whole array,
    whatever its shape. Mode ``paper`` has NVDLA's dataflow as MAESTRO's example does, in clusters
    of 64 input channels, or the largest power of two that divides the PEs.

    >>> array_shape("nvdla_ws", 2048), array_shape("nvdla_ws", 576, "paper")
    ((32, 64), (9, 64))
    """
    if dataflow == "nvdla_ws" and _checked(mode) == "paper":
        columns = math.gcd(pes, _CLUSTER)
        return pes // columns, columns
    rows = max(d for d in range(1, math.isqrt(pes) + 1) if pes % d == 0)
    return rows, pes // rows


@lru_cache(maxsize=65536)
def hardware(
    sub: SubAccelerator, mode: str = "own", technology: str = DEFAULT_TECHNOLOGY
) -> Hardware:
    """Return a sub-accelerator as the accelerator model takes it.

    Mode ``own``: words of 8 bits, partial sums of 24, a double-buffered global buffer. The chip's
    network carries what the array takes from its buffer and what the buffer takes from memory; a
    sub-accelerator has its ``bandwidth_gbps`` for each. Mode ``paper``: MAESTRO's rules with
    unlimited buffers and memory, one element a cycle for each GB/s.

    Raises:
        UnknownNameError: for a mode or technology that does not exist.
    """
    rows, columns = array_shape(sub.dataflow, sub.pes, _checked(mode))
    if mode == "paper":
        return Hardware(
            sub.dataflow,
            rows,
            columns,
            noc_bytes_per_cycle=float(sub.bandwidth_gbps),
            dram_bytes_per_cycle=float(_UNLIMITED),
            buffer_bytes=_UNLIMITED,
            word_bits=8,
            accumulator_bits=8,
            technology="maestro28",
        )
    inputs, weights, sums = _REGISTER_FILES[sub.dataflow]
    link = sub.bandwidth_gbps * 1000 / technology_of(technology).clock_mhz
    return Hardware(
        sub.dataflow,
        rows,
        columns,
        input_rf_bytes=inputs,
        weight_rf_bytes=weights,
        output_rf_bytes=sums,
        buffer_bytes=1024 * sub.buffer_kib,
        noc_bytes_per_cycle=link,
        dram_bytes_per_cycle=link,
        technology=technology,
    )


def clock_mhz(mode: str = "own", technology: str = DEFAULT_TECHNOLOGY) -> float:
    """Return the clock of every sub-accelerator, MHz."""
    if _checked(mode) == "paper":
        return maestro2019.CLOCK_MHZ
    return technology_of(technology).clock_mhz


def area_um2(chip: Chip, mode: str = "own", technology: str = DEFAULT_TECHNOLOGY) -> float:
    """Return the area of a chip, the sum of its sub-accelerators', um2.

    Mode ``own`` leaves out the memory interface: it is the chip's, and all chips have the same.
    Mode ``paper`` gives every array one 32 KiB cell of global buffer, as MAESTRO sizes it for what
    the templates' mappings need.
    """
    return sum(_area_um2(sub, _checked(mode), technology) for sub in chip.sub_accelerators)


@lru_cache(maxsize=65536)
def _area_um2(sub: SubAccelerator, mode: str, technology: str) -> float:
    if mode == "paper":
        return maestro2019.sub_accelerator_area_um2(sub.pes, sub.bandwidth_gbps, 0)
    parts = area(hardware(sub, mode, technology))
    return parts.total_um2 - parts.interface_um2


def _checked(mode: str) -> str:
    if mode not in MODES:
        raise UnknownNameError("mode", mode, MODES)
    return mode
