"""Energy of a multiply-accumulate and of accesses, area and static figures of a design."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.technology import Technology, technology

__all__ = ["PORT_BYTES", "Accesses", "Area", "accesses", "area", "clock_mhz", "maestro_power_mw"]

PORT_BYTES = 8
"""What a bank of the global buffer reads or writes a cycle, bytes."""

_SRAM_BYTES = 8192.0
"""Size at which `Technology.sram_pj` holds."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """Energies, pJ: of a multiply-accumulate, of a word in a register file, of a byte elsewhere."""

    mac_pj: float
    input_rf_pj: float
    weight_rf_pj: float
    output_rf_pj: float
    buffer_pj: float
    noc_pj: float
    dram_pj: float


@dataclass(frozen=True, slots=True)
class Area:
    """Areas of a design's parts, um2."""

    macs_um2: float
    register_files_um2: float
    buffer_um2: float
    noc_um2: float
    interface_um2: float

    @property
    def total_um2(self) -> float:
        """Sum of the parts."""
        return (
            self.macs_um2
            + self.register_files_um2
            + self.buffer_um2
            + self.noc_um2
            + self.interface_um2
        )


def clock_mhz(hardware: Hardware) -> float:
    """Return the clock, MHz: the design's, or its technology's."""
    return hardware.clock_mhz or technology(hardware.technology).clock_mhz


@lru_cache(maxsize=4096)
def accesses(hardware: Hardware) -> Accesses:
    """Return what a design's operations and accesses cost.

    A product grows with the square of the word, a sum with the width of the accumulator. A bit of
    a register file costs a constant and a part for each word of depth. An access to the buffer is
    one to a bank, over half a side of the buffer; a word crosses half a side of the array between
    buffer and PE.
    """
    table = technology(hardware.technology)
    if table.name == "maestro28":
        unit = table.multiply_pj
        word = hardware.word_bytes
        near = table.latch_base_pj * 8
        return Accesses(unit, near, near, near, table.sram_pj / 8 / word, 0.0, 0.0)
    parts = area(hardware)
    side_mm = math.sqrt(parts.macs_um2 + parts.register_files_um2) / 1000
    buffer_mm = math.sqrt(parts.buffer_um2) / 1000
    bits = hardware.word_bits
    multiply = table.multiply_pj * (bits / 8) ** 2
    add = table.add_pj * hardware.accumulator_bits / 32
    files = hardware.memory_classes
    buffer = _sram_pj(table, hardware.buffer_bytes / hardware.banks)
    if files[3].startswith("smartbuffer"):
        buffer += table.add_pj / PORT_BYTES
    return Accesses(
        mac_pj=multiply + add,
        input_rf_pj=_file_pj(table, files[0], hardware.input_rf_bytes, bits),
        weight_rf_pj=_file_pj(table, files[1], hardware.weight_rf_bytes, bits),
        output_rf_pj=_file_pj(table, files[2], hardware.output_rf_bytes, hardware.accumulator_bits),
        buffer_pj=buffer + table.wire_pj * 8 * buffer_mm / 2,
        noc_pj=table.wire_pj * 8 * side_mm / 2,
        dram_pj=table.dram_pj * 8,
    )


@lru_cache(maxsize=4096)
def area(hardware: Hardware) -> Area:
    """Return the areas of a design's parts.

    With ``maestro28`` they are MAESTRO's closed forms: a bus for each unit of bandwidth and an
    arbiter that grows with the square of the number of PEs.
    """
    table = technology(hardware.technology)
    pes = hardware.pes + hardware.spare_pes
    files = (hardware.input_rf_bytes, hardware.weight_rf_bytes, hardware.output_rf_bytes)
    if table.name == "maestro28":
        words = hardware.noc_bytes_per_cycle / hardware.word_bytes
        return Area(
            macs_um2=pes * table.multiply_um2 * hardware.lanes,
            register_files_um2=pes * 8 * table.latch_um2 * sum(files),
            buffer_um2=8 * table.sram_um2 * hardware.buffer_bytes,
            noc_um2=101.7938 * _bus_size(pes) * words + 395.473 * _arbiter_size(pes),
            interface_um2=0.0,
        )
    multiply = table.multiply_um2 * (hardware.word_bits / 8) ** 2
    add = table.add_um2 * hardware.accumulator_bits / 32
    registers = sum(
        _memory_um2(table, kind, size)
        for kind, size in zip(hardware.memory_classes, files, strict=False)
    )
    buffer = 8 * hardware.buffer_bytes * table.sram_um2 + hardware.banks * table.bank_um2
    if hardware.memory_classes[3] in ("regfile", "smartbuffer_RF"):
        buffer = 8 * hardware.buffer_bytes * table.latch_um2
    if hardware.memory_classes[3].startswith("smartbuffer"):
        buffer += 2 * hardware.banks * table.add_um2
    lines = 8 * hardware.noc_bytes_per_cycle * (hardware.rows + hardware.columns)
    gigabytes = hardware.dram_bytes_per_cycle * clock_mhz(hardware) / 1000
    return Area(
        macs_um2=pes * hardware.lanes * (multiply + add),
        register_files_um2=pes * registers + 8 * hardware.unused_bytes * table.sram_um2,
        buffer_um2=buffer,
        noc_um2=lines * table.flip_flop_um2,
        interface_um2=gigabytes * table.interface_um2,
    )


def maestro_power_mw(hardware: Hardware) -> float:
    """Return MAESTRO's power of a design, mW: a figure of its parts, whatever they do."""
    pes = hardware.pes + hardware.spare_pes
    files = hardware.input_rf_bytes + hardware.weight_rf_bytes + hardware.output_rf_bytes
    words = hardware.noc_bytes_per_cycle / hardware.word_bytes
    return (
        1.2223 * hardware.lanes * pes
        + 0.00345 * (pes * files + hardware.buffer_bytes)
        + 0.8 * _bus_size(pes) / 1000 * words
        + max(0.34, 0.34 * _arbiter_size(pes) / 1000)
    )


def _bus_size(pes: int) -> float:
    """MAESTRO's fit of a bus to its number of PEs."""
    return 14.662 * pes + 28.895


def _arbiter_size(pes: int) -> float:
    """MAESTRO's fit of a matrix arbiter to its number of PEs."""
    return 1.2886 * pes * pes + 5.5814 * pes - 23.711


def _sram_pj(table: Technology, size: float) -> float:
    """A byte of an SRAM of ``size`` bytes."""
    return table.sram_pj / 8 * math.sqrt(max(size, 64.0) / _SRAM_BYTES)


def _file_pj(table: Technology, kind: str, size: int, bits: int) -> float:
    """A word of a register file of ``size`` bytes; none at all is one pipeline register."""
    depth = max(1.0, 8 * size / bits)
    latches = bits * (table.latch_base_pj + table.latch_depth_pj * depth)
    sram = bits / 8 * _sram_pj(table, size)
    energy = sram if kind in ("SRAM", "smartbuffer_SRAM") else latches
    return energy + (table.add_pj if kind.startswith("smartbuffer") else 0.0)


def _memory_um2(table: Technology, kind: str, size: int) -> float:
    """A memory of a PE."""
    if kind in ("regfile", "smartbuffer_RF"):
        bits = table.latch_um2 * 8 * size
    else:
        bits = table.sram_um2 * 8 * size + (table.bank_um2 / 8 if size else 0.0)
    return bits + (2 * table.add_um2 if kind.startswith("smartbuffer") else 0.0)
