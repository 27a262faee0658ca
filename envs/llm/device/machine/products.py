"""Products with weights: on the processor, by tables in SRAM, and in the banks of the memory.

- Processor: a roofline. Weights stream from each tier at the same time as they are multiplied; they
  are read again for every part of the inputs that fits into half of the buffer.
- Tables (after SAIL): a group of weights of one output has a table of the sums of its subsets; one
  bit of each of the group's inputs selects an entry, so an input of eight bits takes eight lookups.
  Tables are built once for all vectors of a batch. Columns of SRAM arrays work side by side, bit by
  bit, so an addition takes as many clocks as its result has bits.
- Banks (after PIM-GPT and GDDR6-AiM): weights lie in rows across all banks; units at the banks
  multiply them with a vector in a buffer that they share, once for each vector. The inputs are
  written to every channel, partial results are read for every segment of a row's length.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.device.columns import NEAR_BANK, SRAM_TABLES
from archgym.envs.llm.device.machine.hardware import Hardware
from archgym.envs.llm.device.machine.placement import Placement
from archgym.envs.llm.device.machine.work import Work, chosen
from archgym.envs.llm.device.model import Product, Transformers

__all__ = ["in_banks", "product"]

Array = NDArray[np.float64]
_ARRAY_ROWS: Final = 256
"""Bits of a column of an SRAM array."""
_ACCUMULATOR_BITS: Final = 24
_PATTERN_SAVING: Final = 0.138
"""Share of lookups that repeated patterns of inputs save (SAIL, arXiv 2509.25853)."""
_COLUMN_CYCLE_PJ: Final = 0.02
"""Energy of one clock of one column of an SRAM array that computes; an assumption."""
_RESULT_BYTES: Final = 2
"""Of a partial result that a unit in memory hands over."""
_FETCH_WORDS: Final = 2
"""SRAM accesses of a weight from memory: written once, read once."""


def product(
    shape: Product,
    vectors: Array,
    models: Transformers,
    hardware: Hardware,
    placement: Placement,
) -> Work:
    """A product, where the design runs it; in banks only where that is no slower.

    Args:
        shape: of the matrices.
        vectors: that are multiplied with each, all sequences together, shape (n,).
        models: transformers, for the bits of weights.
        hardware: of the designs.
        placement: of their weights.
    """
    where = hardware.columns["products"]
    work = _streamed(shape, vectors, models, hardware, placement, placement.near_share)
    if (where == NEAR_BANK).any():
        near = _near_bank(shape, vectors, models, hardware, placement)
        work = chosen((where == NEAR_BANK) & (near.seconds <= work.seconds), near, work)
    return work


def _streamed(
    shape: Product,
    vectors: Array,
    models: Transformers,
    hardware: Hardware,
    placement: Placement,
    near_share: Array,
) -> Work:
    columns, tech = hardware.columns, hardware.technology
    activation_bytes = columns["activation_bits"] / 8
    inputs = vectors * shape.inputs * activation_bytes
    loads = np.maximum(1.0, np.ceil(inputs / (0.5 * hardware.buffer_bytes)))
    stored = models.weight_bytes(shape.weights)
    spilled = np.where(loads > 1, inputs + vectors * shape.outputs * activation_bytes, 0.0)
    near = stored * near_share * loads + spilled * shape.times
    far = stored * placement.far_share * loads
    flash = stored * placement.flash_share * loads
    macs = shape.weights * vectors
    bits = np.maximum(columns["weight_bits"], hardware.software.widened_bits)
    passes = hardware.passes(bits, columns["activation_bits"])
    filled = hardware.filled_share(shape.inputs, shape.outputs * vectors)
    compute = macs * passes / (hardware.macs_per_s * filled)
    each = np.where(passes >= 4, tech.mac16_pj, tech.mac8_pj * passes)
    joules = macs * each * 1e-12
    tables = columns["products"] == SRAM_TABLES
    if tables.any():
        cycles = _table_cycles(shape, vectors, loads, hardware)
        lanes = hardware.buffer_bytes * 8 / _ARRAY_ROWS
        compute = np.where(tables, cycles / (lanes * hardware.clock_hz), compute)
        joules = np.where(tables, cycles * _COLUMN_CYCLE_PJ * 1e-12, joules)
    fetched = near + far + flash
    words = _FETCH_WORDS * fetched + stored * placement.resident_share * loads
    reads = inputs * shape.times * np.ceil(shape.outputs / hardware.rows)
    sram = (words + np.where(tables, 0.0, reads)) * 8 * tech.sram_pj_per_bit * 1e-12
    times = (
        compute,
        near / hardware.near.bytes_per_s,
        far / np.maximum(hardware.far.bytes_per_s, 1.0),
        flash / np.maximum(hardware.flash_bytes_per_s, 1.0),
    )
    zero = np.zeros_like(macs)
    return Work(np.max(times, axis=0), *times, zero, near, far, flash, macs, joules, sram, zero)


def _table_cycles(shape: Product, vectors: Array, loads: Array, hardware: Hardware) -> Array:
    """Clocks of one column that the tables of a product take in all."""
    columns = hardware.columns
    group = columns["table_weights"]
    tables = np.ceil(shape.inputs / group) * shape.outputs * shape.times
    building = (2**group - group - 1) * (columns["weight_bits"] + group) * loads
    lookups = vectors * columns["activation_bits"] * (1 - _PATTERN_SAVING) * _ACCUMULATOR_BITS
    return np.asarray(tables * (building + lookups))


def _near_bank(
    shape: Product, vectors: Array, models: Transformers, hardware: Hardware, placement: Placement
) -> Work:
    """The weights of the near memory in its banks, the others as on the processor meanwhile."""
    one = models.weight_bytes(shape.inputs * shape.outputs) * placement.near_share
    banks = in_banks(
        one, models.weight_bits, shape.inputs, shape.outputs, vectors * shape.times, hardware
    )
    apart = placement.near_share
    none = np.zeros_like(apart)
    rest = _streamed(shape, vectors, models, hardware, placement, none)
    rest_share = 1 - apart
    for name in ("compute_s", "macs", "compute_j", "sram_j"):
        setattr(rest, name, getattr(rest, name) * rest_share)
    times = (rest.compute_s, rest.near_s, rest.far_s, rest.flash_s)
    seconds = np.maximum(np.max(times, axis=0), banks.seconds)
    return Work(
        seconds,
        *times,
        banks.in_memory_s,
        rest.near_bytes + banks.near_bytes,
        rest.far_bytes,
        rest.flash_bytes,
        rest.macs,
        rest.compute_j,
        rest.sram_j,
        banks.in_memory_j,
    )


def in_banks(
    stored: Array,
    bits: Array,
    inputs: Array,
    outputs: Array,
    times: Array,
    hardware: Hardware,
) -> Work:
    """Products of vectors with matrices in the banks of the near memory.

    Args:
        stored: bytes of one matrix.
        bits: of an element of it.
        inputs: elements of a vector.
        outputs: results of a product.
        times: products, each with a vector of its own.
        hardware: of the designs.
    """
    columns, near, tech = hardware.columns, hardware.near, hardware.technology
    lanes, shared = (
        np.maximum(columns["pim_lanes"], 1),
        np.maximum(columns["pim_banks_per_unit"], 1),
    )
    burst = near.of(lambda m: m.timing.bytes_per_burst)
    row = near.of(lambda m: m.timing.row_bytes)
    banks = near.of(lambda m: m.timing.banks) * near.channels * near.ranks
    clock = near.of(lambda m: m.timing.unit_clock_ns)
    column_ns = np.ceil(burst * 8 / bits / lanes) * clock
    steps = np.ceil(stored / (row * banks)) * times
    multiplying = steps * near.row_ns(column_ns, shared) * 1e-9
    segments = np.maximum(1.0, np.ceil(inputs * bits / 8 / row))
    vector_bytes = inputs * np.ceil(columns["activation_bits"] / 8)
    result_bytes = outputs * segments * _RESULT_BYTES
    moving = times * (vector_bytes * near.channels + result_bytes) / near.bytes_per_s
    seconds = np.where(stored > 0, multiplying + moving, 0.0)
    moved = np.where(stored > 0, times * (vector_bytes * near.channels + result_bytes), 0.0)
    read_bits = stored * times * 8
    elements = read_bits / bits
    macs_pj = elements * tech.pim_mac_pj * np.where(bits > 8.5, 1.0, 0.4)
    at_bank = near.at_bank_pj_per_bit(tech.pim_column_share)
    joules = (read_bits * at_bank + macs_pj) * 1e-12
    zero = np.zeros_like(seconds)
    return Work(
        seconds, zero, zero, zero, zero, seconds, moved, zero, zero, zero, zero, zero, joules
    )
