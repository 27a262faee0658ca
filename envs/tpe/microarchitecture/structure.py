"""Exact cell counts, kind by kind, of a processing element or an edge block.

The counts are those of the netlist that :mod:`archgym.envs.tpe.eda.verilog` writes, before
synthesis, with its hierarchy kept. They come from the heights of the bit heap, not from the
netlist, so that a PE takes some ten microseconds; a test compares both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from archgym.envs.tpe.microarchitecture import constants, datapath
from archgym.envs.tpe.microarchitecture.adders import adder_cells
from archgym.envs.tpe.microarchitecture.counting_kernel import count_heap
from archgym.envs.tpe.microarchitecture.datapath import Adder, Row, Stage, TreeDepth
from archgym.envs.tpe.microarchitecture.edge import EdgeBlock
from archgym.envs.tpe.microarchitecture.edge_structure import edge_cells
from archgym.envs.tpe.microarchitecture.heap import TREES, Counted
from archgym.envs.tpe.microarchitecture.pe import PE, Compressor

__all__ = [
    "CELLS",
    "Counts",
    "counts",
    "edge_counts",
    "operand_cells",
    "operand_spared",
    "tree_cells",
]

CELLS: Mapping[str, str] = {
    "full_adder": "compressor of three variable bits",
    "full_adder_one": "compressor of two variable bits and a constant one",
    "half_adder": "compressor of two variable bits",
    "half_adder_one": "compressor of one variable bit and a constant one",
    "select_bit": "partial product bit that chooses among -2B, -B, 0, B, 2B",
    "sign_bit": "partial product bit that chooses among -B, 0, B",
    "and_bit": "partial product bit of an AND array",
    "booth_encoder": "radix-4 digit from a window of three bits, which selects partial products",
    "stored_encoder": "likewise, whose digit goes into a register: it drives little",
    "serial_encoder": "two's complement bit with the sign of its weight",
    "pending_digit": "non-zero digit that waits its turn, among others (priority chain)",
    "pick_bit": "one bit of one of the waiting digits",
    "mux_bit": "2:1 multiplexer: shifter, window, hold",
    "magnitude_bit": "conditional inversion before the increment of |A|",
    "ent_digit": "EN-T digit from two bits of |A| and the carry of the lower digit",
    "csd_bit": "canonical signed digit of one bit (Reitwiesner's recurrence)",
    "csd_digit": "radix-4 digit from two canonical signed digits",
    "ripple_bit": "full adder of a carry chain",
    "prefix_start": "generate and propagate of one bit",
    "prefix_cell": "generate and propagate of a span, from two",
    "prefix_carry": "carry of a span that starts at bit 0, from two",
    "prefix_sum": "sum bit from propagate and carry",
    "add_bit": "bit of an adder that the synthesis tool chooses",
    "register_bit": "flip-flop",
}
"""Every kind of cell that is counted."""


@dataclass(frozen=True)
class Counts:
    """The cells of one block.

    Attributes:
        cells: how many of each kind of :data:`CELLS`; a kind that is absent does not occur.
        adders: every carry-propagate adder, copies included.
        stages: what signals pass in series between registers, for the clock period.
        spared: how many cells of a kind synthesis leaves out, in parts of a cell, because their
            inputs are constant.
    """

    cells: Mapping[str, int]
    adders: tuple[Adder, ...] = ()
    stages: tuple[Stage, ...] = field(default=())
    spared: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> int:
        """Cells of one kind, 0 if there are none."""
        return self.cells.get(kind, 0)

    def left(self, kind: str) -> float:
        """Cells of one kind that have gates, in parts of a cell."""
        return self[kind] - self.spared.get(kind, 0.0)

    @property
    def levels(self) -> int:
        """Depth of the compressor tree, full adders."""
        return max((stage.levels for stage in self.stages), default=0)

    @property
    def register_bits(self) -> int:
        """Flip-flops."""
        return self["register_bit"]


@lru_cache(maxsize=131072)
def _counted(
    shape: tuple[tuple[int, int, bool], ...],
    pairs: int,
    width: int,
    words: int,
    constant: int,
    tree: Compressor,
    settle: bool,
    lead: int,
) -> Counted:
    """The compressors of a heap, by its shape."""
    bits = np.array([constant >> column & 1 for column in range(width)], dtype=np.uint8)
    found = count_heap(
        np.array(shape, dtype=np.int64), pairs, words, bits, TREES[tree], settle, lead
    )
    full, full_one, half, half_one, levels, sums, carries, thousandths, gates = found.tolist()
    return Counted(full, full_one, half, half_one, levels, sums, carries, thousandths / 1000, gates)


@lru_cache(maxsize=65536)
def counts(pe: PE) -> Counts:
    """Exact counts of a processing element's own hardware."""
    hardware = pe.hardware()
    if hardware != pe:
        return counts(hardware)
    cells, depth, gates = tree_cells(pe)
    cells += operand_cells(pe)
    spared = operand_spared(pe)
    chain = datapath.adders(pe)
    for place, adder in enumerate(chain):
        cells.update(adder_cells(adder.form, adder.width))
        needed = constants.sum_gates(adder.width) if place else gates
        for kind, n in constants.spared_of_adder(adder.form, adder.width, needed).items():
            spared[kind] = spared.get(kind, 0.0) + n
    found = {kind: cells[kind] for kind in CELLS if cells[kind]}
    return Counts(found, chain, datapath.stages(pe, depth), spared)


def tree_cells(pe: PE) -> tuple[Counter[str], TreeDepth, int]:
    """Cells from the partial products to the accumulators, without adders.

    Returns:
        How many there are of each kind; the depth of the tree; the and-inverter gates of a carry
        chain behind it.
    """
    cells: Counter[str] = Counter()
    depth, gates = TreeDepth(0, 0.0), 0
    separate = pe.accumulator == "separate"
    width = datapath.product_width(pe) if separate else pe.accumulator_width
    lead = datapath.lead(pe)
    for index in range(pe.accumulators):
        rows = datapath.rows_of_a_pair(pe, index)
        counted = _counted(
            tuple((row.low, row.length, row.negation) for row in rows),
            pe.operand_pairs,
            width,
            0 if separate else pe.words,
            sum(row.constant for row in rows) * pe.operand_pairs % (1 << width),
            pe.compressor,
            pe.accumulator == "carry_save",
            lead,
        )
        depth = TreeDepth(max(depth.levels, counted.levels), max(depth.full_adders, counted.depth))
        gates = counted.chain_gates
        cells["full_adder"] += counted.full_adders
        cells["full_adder_one"] += counted.full_adders_one
        cells["half_adder"] += counted.half_adders
        cells["half_adder_one"] += counted.half_adders_one
        _count_rows(pe, rows, cells)
        if pe.accumulator == "carry_save":
            cells["register_bit"] += counted.sum_bits + counted.carry_bits
        else:
            cells["register_bit"] += pe.accumulator_width
        if "select" in pe.cuts:
            for row in rows:
                cells["register_bit"] += (row.length + row.negation) * pe.operand_pairs
        if "reduce" in pe.cuts:
            cells["register_bit"] += counted.sum_bits + counted.carry_bits
        if "add" in pe.cuts:
            cells["register_bit"] += width
    return cells, depth, gates


@lru_cache(maxsize=4096)
def edge_counts(block: EdgeBlock) -> Counts:
    """Exact counts of an edge block."""
    cells, adders, stages, spared = edge_cells(block)
    return Counts({kind: cells[kind] for kind in CELLS if cells[kind]}, adders, stages, spared)


def _count_rows(pe: PE, rows: tuple[Row, ...], cells: Counter[str]) -> None:
    """Partial product bits and shifters of one heap, from the rows of one operand pair."""
    width, pairs = pe.partial_product_width, pe.operand_pairs
    kind = {4: "select_bit", 2: "sign_bit"}[1 << pe.radix_bits]
    if pe.encoding == "radix2":
        cells["and_bit"] += width * len(rows) * pairs
        return
    cells[kind] += width * len(rows) * pairs
    for row in rows:
        shifted = width
        for level in range(datapath.shift_levels(pe)):
            shifted = min(shifted + (pe.radix_bits << level), row.length)
            cells["mux_bit"] += shifted * pairs


def operand_cells(pe: PE) -> Counter[str]:
    """Operand registers and what makes digits of A inside the PE."""
    cells: Counter[str] = Counter()
    pairs, digits = pe.operand_pairs, pe.digits
    weight_bits = (digits - 1).bit_length()
    register = pe.width_b * pairs
    encoded = pe.digit_bits * pairs * (1 if pe.temporal else digits)
    shifts = bool(datapath.shift_levels(pe))
    if pe.encoding == "radix2":
        register += pe.width_a * pairs
    elif not pe.has_encoder:
        register += encoded + (weight_bits * pairs if shifts else 0)
    elif not pe.temporal:
        register += pe.width_a * pairs
        cells[_encoder(pe)] += digits * pairs
    elif pe.bit_weights == "temporal_dense":
        register += pe.width_a * pairs + weight_bits
        window = 3 if pe.encoding == "booth" else 1
        cells["mux_bit"] += window * (digits - 1) * pairs
        cells[_encoder(pe) if pe.encoding == "booth" else "serial_encoder"] += pairs
    else:
        register += _count_sparse(pe, cells)
    if "encode" in pe.cuts and not datapath.finds_digits(pe):
        register += encoded + pe.width_b * pairs + (weight_bits * pairs if shifts else 0)
    cells["register_bit"] += register
    return cells


def operand_spared(pe: PE) -> dict[str, float]:
    """Cells in front of the tree of a PE that synthesis leaves out, in parts of a cell."""
    spared: dict[str, float] = {}
    if datapath.finds_digits(pe):
        found = constants.spared_of_finder(3 if pe.encoding == "booth" else 1)
        spared |= {kind: n * pe.operand_pairs for kind, n in found.items()}
    if pe.radix_bits == 2:
        spared["select_bit"] = constants.SPARED_OF_ROW * pe.partial_products
    # Of the windows of a whole operand, the lowest begins with a zero.
    whole = not (pe.bit_weights == "temporal_sparse" and pe.shift_hoisted)
    if pe.has_encoder and pe.encoding == "booth" and pe.bit_weights != "temporal_dense" and whole:
        kind = "stored_encoder" if datapath.finds_digits(pe) else _encoder(pe)
        spared[kind] = constants.SPARED_OF_ENCODER * pe.operand_pairs
    return spared


def _encoder(pe: PE) -> str:
    """The kind of a Booth encoder in the PE."""
    return "stored_encoder" if "encode" in pe.cuts else "booth_encoder"


def _count_sparse(pe: PE, cells: Counter[str]) -> int:
    """Finding the next non-zero digit inside the PE; its registers besides the first of B.

    The window holds the digits among which the next one is found: those of one operand, or, with
    the shift outside, those of equal weight of as many operands (B then arrives by position).
    """
    pairs, digits = pe.operand_pairs, pe.digits
    lines = 3 if pe.encoding == "booth" else 1
    cells["pending_digit"] += digits * pairs
    cells["mux_bit"] += (lines + 1) * digits * pairs
    if pe.encoding == "booth":
        cells["stored_encoder"] += digits * pairs
        cells["pick_bit"] += 3 * digits * pairs
    else:
        cells["serial_encoder"] += pairs
        cells["pick_bit"] += digits * pairs
    register = ((lines + 1) * digits + pe.digit_bits) * pairs
    if pe.shift_hoisted:
        return register + int(pe.encoding != "booth")
    cells["mux_bit"] += pe.width_b * pairs
    return register + (pe.width_b + (digits - 1).bit_length()) * pairs
