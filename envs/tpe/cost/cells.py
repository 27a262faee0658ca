"""Cells, area and clock period of many arrays: each part is computed once and added up.

The cells of a PE are those of its compressor tree, of its operand registers and of its adders.
Each part depends on a few fields, so that a space with millions of PEs has some thousands of
each. The same holds for the blocks at the edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.cost.heap_counts import Trees
from archgym.envs.tpe.cost.stages import PEPeriods
from archgym.envs.tpe.cost.table import ArrayTable, Memo, bit_length, each, packed
from archgym.envs.tpe.microarchitecture import datapath
from archgym.envs.tpe.microarchitecture.adders import adder_cells
from archgym.envs.tpe.microarchitecture.compression_kernel import FULL_ADDER_GATES
from archgym.envs.tpe.microarchitecture.constants import spared_of_adder, sum_gates
from archgym.envs.tpe.microarchitecture.edge import (
    Barrier,
    EdgeBlock,
    OperandEncoder,
    ResultAdder,
    edge_blocks,
)
from archgym.envs.tpe.microarchitecture.pe import Array
from archgym.envs.tpe.microarchitecture.structure import (
    CELLS,
    Counts,
    edge_counts,
    operand_cells,
    operand_spared,
)
from archgym.envs.tpe.technology.technology import Technology

__all__ = ["EdgeCostModel", "EdgeCosts", "PECostModel", "PECosts"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_KINDS = tuple(CELLS)


class PECosts(NamedTuple):
    """Cells, area and period of the PEs of many arrays.

    Attributes:
        cells: how many of each kind of `structure.CELLS`, shape (n,) each.
        area_um2: of one PE, shape (n,).
        period_ns: its shortest clock period, shape (n,).
        tree_depth: of its compressor tree, full-adder delays, shape (n,).
    """

    cells: Mapping[str, FloatArray]
    area_um2: FloatArray
    period_ns: FloatArray
    tree_depth: FloatArray


class EdgeCosts(NamedTuple):
    """The blocks of one kind around many arrays, shape (n,) each; zeros where there are none.

    Attributes:
        kind: of block.
        counts: how many there are.
        area_um2: of one.
        period_ns: shortest clock period of one.
        registers: flip-flops of one.
        event_fj: energy of one event in it, fJ.
    """

    kind: type[EdgeBlock]
    counts: IntArray
    area_um2: FloatArray
    period_ns: FloatArray
    registers: FloatArray
    event_fj: FloatArray


class PECostModel:
    """Costs of the PEs of many arrays in one cell library.

    Args:
        technology: the cell library.
    """

    def __init__(self, technology: Technology) -> None:
        self._area_of = _areas(technology)
        self._trees = Trees()
        self._operands = Memo(each(self._operand_cells), len(_KINDS) + 1)
        self._adders = Memo(each(self._adder_cells), len(_KINDS) + 2)
        self._periods = PEPeriods(technology)

    def __call__(self, table: ArrayTable) -> PECosts:
        """Cells, area and period of one PE of each array."""
        operands = packed(
            (table.width_a, 5),
            (table.width_b, 5),
            (table.pairs, 10),
            (table.encoding, 3),
            (table.has_encoder, 1),
            (table.bit_weights, 2),
            (table.hoisted, 1),
            (table.cut_encode, 1),
        )
        chained = ~table.carry_save
        adders = packed(
            (chained, 1),
            (table.separate, 1),
            (table.product_width * table.separate, 6),
            (table.accumulator_width * chained, 6),
            (table.final_adder * chained, 3),
        )
        tree = self._trees(table)
        front, chain = self._operands(operands, table), self._adders(adders, table)
        total = front[:, : len(_KINDS)] + chain[:, : len(_KINDS)]
        for kind, n in tree.cells.items():
            total[:, _KINDS.index(kind)] += n
        cells = {kind: total[:, i] for i, kind in enumerate(_KINDS)}
        # Not a product of matrices, whose rounding depends on how many rows there are.
        area = np.zeros(len(table))
        for kind, of_one in self._area_of.items():
            area += of_one * cells[kind]
        # What constants leave out: all of the first adder but what its carry chain needs.
        a_gate, spared = chain[:, -2], chain[:, -1] + front[:, -1]
        area -= spared - a_gate * tree.chain_gates
        return PECosts(cells, area, self._periods(table, tree.depth), tree.depth)

    def _operand_cells(self, array: Array) -> list[float]:
        """Cells of each kind; the area that constants leave out in front of the tree, um2."""
        pe = array.pe.hardware()
        return [*_row(operand_cells(pe)), self._area(operand_spared(pe))]

    def _adder_cells(self, array: Array) -> list[float]:
        """Cells of each kind; area of a gate of the first adder, um2.

        Last the area of the first adder, and what constants leave out of the second one, um2.
        """
        cells: Counter[str] = Counter()
        a_gate = left_out = 0.0
        for place, adder in enumerate(datapath.adders(array.pe)):
            cells.update(adder_cells(adder.form, adder.width))
            gates = sum_gates(adder.width) if place else 0
            spared = self._area(spared_of_adder(adder.form, adder.width, gates))
            left_out += spared
            if not place:
                a_gate = spared / (FULL_ADDER_GATES * adder.width)
        return [*_row(cells), a_gate, left_out]

    def _area(self, cells: Mapping[str, float]) -> float:
        return sum(self._area_of[kind] * n for kind, n in cells.items())


def _row(cells: Counter[str]) -> list[int]:
    return [cells[kind] for kind in _KINDS]


class EdgeCostModel:
    """Costs of the blocks around many arrays in one cell library.

    Args:
        technology: the cell library.
        event_fj: energy of one event in a block, fJ.
    """

    def __init__(self, technology: Technology, event_fj: Callable[[EdgeBlock], float]) -> None:
        self._area_um2 = technology.area_um2
        self._delay = lru_cache(maxsize=4096)(technology.stage_delay_ns)
        self._event_fj = event_fj
        kinds: tuple[type[EdgeBlock], ...] = (OperandEncoder, ResultAdder, Barrier)
        self._memos = {kind: Memo(each(partial(self._costs, kind)), 4) for kind in kinds}

    def __call__(self, table: ArrayTable) -> list[EdgeCosts]:
        """The blocks around each array, as `edge.edge_blocks` has them for one."""
        found = []
        for kind, keys, counts in _blocks(table):
            there = np.flatnonzero(counts)
            costs = np.zeros((len(table), 4))
            if len(there):
                costs[there] = self._memos[kind](keys[there], table, there)
            found.append(EdgeCosts(kind, counts, *costs.T))
        return found

    def _costs(self, kind: type[EdgeBlock], array: Array) -> list[float]:
        block = next(block for block, _ in edge_blocks(array) if isinstance(block, kind))
        counts = edge_counts(block)
        area = self._area_um2(counts)
        period = max(map(self._delay, counts.stages))
        return [area, period, float(counts.register_bits), self._event_fj(block)]


def _areas(technology: Technology) -> dict[str, float]:
    """Area of one cell of each kind, um2; that of a block is their sum."""
    return {kind: technology.area_um2(Counts({kind: 1})) for kind in _KINDS}


def _blocks(table: ArrayTable) -> tuple[tuple[type[EdgeBlock], IntArray, IntArray], ...]:
    """Each kind of block with a key, equal exactly where blocks are, and their number."""
    at_edge = table.is_("encoder_place", "edge") & ~table.array_multiplier
    groups = -(-table.columns // table.columns_per_encoder)
    encoders = packed(
        (table.width_a, 5),
        (table.encoding, 3),
        (table.temporal & at_edge, 1),
        (table.sparse & at_edge, 1),
    )
    stored = table.is_("encoder_place", "memory") & ~table.is_("encoding", "radix2", "serial_twos")
    adders = packed(
        (table.accumulators, 5),
        (table.words, 2),
        (table.accumulator_width, 6),
        (table.radix_bits * table.hoisted, 2),
        (table.width_a + table.width_b, 6),
        (table.final_adder, 3),
        (table.segment, 4),
    )
    longest = table.accumulation_length * table.digits // table.pairs
    barriers = packed((table.rows, 7), (bit_length(longest), 20))
    return (
        (
            OperandEncoder,
            encoders,
            np.where(at_edge, table.rows * table.pairs * groups, stored * table.result_adders),
        ),
        (ResultAdder, adders, table.result_adders),
        (Barrier, barriers, (table.sparse & (table.rows > 1)).astype(np.int64)),
    )
