"""What MAESTRO's first public version says of an accelerator's area and energy (paper mode).

NASAIC (Jiang et al., DAC 2020) evaluated its chips with it. Constants: ``DSE_cost-database.hpp``,
``DSE_scaling-coefficients.hpp`` and ``BASE_constants.hpp`` of MAESTRO (Kwon et al., MICRO 2019) at
its version of 2019; the structure: ``DSE_hardware_modules.hpp``. They are a 28 nm synthesis, but
for the energy of a multiply-accumulate, which that file marks as taken from elsewhere. It is some
four thousand times that of later versions; NASAIC's energies (joules for an inference) are in it.
"""

from __future__ import annotations

import math
from typing import Final

__all__ = ["CLOCK_MHZ", "ENERGY_UNIT_NJ", "L1_BYTES", "sub_accelerator_area_um2"]

ENERGY_UNIT_NJ: Final = 0.904
"""A multiply-accumulate, nJ; a PE buffer access is 1.68 of them, a global buffer access 18.61."""

CLOCK_MHZ: Final = 1000.0
"""MAESTRO counts cycles; its bandwidth of one element a cycle is 1 GB/s of bytes at this clock."""

L1_BYTES: Final = 64
"""Buffer of a PE, bytes: one cell, the smallest that MAESTRO builds."""

_MAC_UM2: Final = 4470.9014
_L1_CELL_UM2, _L1_CELL_BYTES = 4505.1889, 64
_L2_CELL_UM2, _L2_CELL_BYTES = 4161.536, 32768
_BUS_UM2: Final = 101.7938
_BUS_SCALE: Final = (28.895, 14.662)
_ARBITER_UM2: Final = 395.473
_ARBITER_SCALE: Final = (-23.711, 5.5814, 1.2886)


def sub_accelerator_area_um2(pes: int, bandwidth: float, buffer_bytes: int) -> float:
    """Return the area of one array with its buffers and its network on chip, um2.

    A PE is a multiplier with a cell of buffer; the network is a bus as wide as its bandwidth and a
    matrix arbiter, whose area grows with the square of the PEs that it serves.

    Args:
        pes: processing elements.
        bandwidth: of the bus, elements a cycle.
        buffer_bytes: global buffer, bytes; rounded up to whole cells.
    """
    l1_cells = math.ceil(L1_BYTES / _L1_CELL_BYTES)
    array = pes * (_MAC_UM2 + l1_cells * _L1_CELL_UM2)
    buffer = max(1, math.ceil(buffer_bytes / _L2_CELL_BYTES)) * _L2_CELL_UM2
    bus = _BUS_UM2 * (_BUS_SCALE[0] + _BUS_SCALE[1] * pes) * bandwidth
    scale = _ARBITER_SCALE[0] + _ARBITER_SCALE[1] * pes + _ARBITER_SCALE[2] * pes**2
    return array + buffer + bus + _ARBITER_UM2 * max(1.0, scale)
