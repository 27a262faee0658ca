"""Compressors, rows and registers of the trees of many PEs, counted in one compiled call.

The heap of a PE follows from eleven numbers (:data:`SHAPE`), so that a batch of designs becomes the
unseen rows of one table; :func:`archgym.envs.tpe.microarchitecture.structure.tree_cells` gives the
same for one PE, and a test compares both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.cost.table import ArrayTable, Memo, each, front_keys, packed, unpacked
from archgym.envs.tpe.microarchitecture import datapath
from archgym.envs.tpe.microarchitecture.counting_kernel import KERNEL, count_compressors
from archgym.envs.tpe.microarchitecture.heap import TREES
from archgym.envs.tpe.microarchitecture.pe import COMPRESSORS, Array

__all__ = ["SHAPE", "TreeCounts", "Trees"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SHAPE = {
    "rows": 5,
    "spacing": 2,
    "length": 6,
    "negation": 1,
    "complement": 1,
    "pairs": 10,
    "width": 6,
    "words": 2,
    "tree": 2,
    "settle": 1,
    "lead": 11,
}
"""What a heap follows from, with the bits that hold the greatest value.

Partial products of one operand pair; bits between the weights of neighbours; bits of one; whether
each has a negation bit; whether the last one is inverted below its sign instead (the sign row of
an array multiplier); operand pairs; columns; words fed back; form of the compressor tree; whether
fed-back bits that the tree never makes are left out; how much earlier fed-back bits are there than
partial products, hundredths of a full adder's delay.
"""

_COUNTS = 9
_TREE_OF = np.array([TREES[name] for name in COMPRESSORS])


class TreeCounts(NamedTuple):
    """Cells between partial products and accumulators, shape (n,) or one column a kind.

    Attributes:
        cells: how many of each kind of :data:`archgym.envs.tpe.microarchitecture.structure.CELLS`;
            kinds that do not occur are left out.
        depth: of the deepest heap, full-adder delays.
        chain_gates: and-inverter gates of a carry chain behind a tree.
    """

    cells: dict[str, FloatArray]
    depth: FloatArray
    chain_gates: FloatArray


class Trees:
    """Counts trees; each distinct tree is counted once."""

    def __init__(self) -> None:
        self._known = Memo(_counts_of, _COUNTS)
        self._leads = Memo(each(_lead), 1)

    def __call__(self, table: ArrayTable) -> TreeCounts:
        """The tree of one PE of each array."""
        array = table.array_multiplier
        apart = table.hoisted & ~table.temporal
        # The sign row of an array multiplier is in the only heap, or in a separate one.
        signed = array & ~table.temporal
        one, last = self._heaps(table, signed & ~apart), np.zeros((len(table), _COUNTS))
        where = np.flatnonzero(signed & apart)
        if len(where):
            last[where] = self._heaps(table, signed, where)
        with_last = signed & apart
        counts = one * (table.accumulators - with_last)[:, None] + last
        sums, carries = counts[:, 5], counts[:, 6]
        kept = sums + carries
        registers = np.where(
            table.carry_save, kept, table.accumulators * table.accumulator_width
        ).astype(np.float64)
        rows, length = _rows(table)
        every = rows * table.pairs * table.accumulators
        registers += np.where(table.cut_select, (length + ~array) * every, 0)
        registers += np.where(table.cut_reduce, kept, 0.0)
        registers += np.where(table.cut_add, _width(table), 0)
        bits = (_partial_product_width(table) * every).astype(np.float64)
        wide = table.radix_bits == 2
        cells = {
            "full_adder": counts[:, 0],
            "full_adder_one": counts[:, 1],
            "half_adder": counts[:, 2],
            "half_adder_one": counts[:, 3],
            "select_bit": np.where(wide, bits, 0.0),
            "sign_bit": np.where(wide | array, 0.0, bits),
            "and_bit": np.where(array, bits, 0.0),
            "mux_bit": _shifter_bits(table, length) * every,
            "register_bit": registers,
        }
        return TreeCounts(cells, np.maximum(one[:, 7], last[:, 7]) / 1000, one[:, 8])

    def _heaps(
        self, table: ArrayTable, complement: NDArray[np.bool_], where: IntArray | None = None
    ) -> FloatArray:
        rows, length = _rows(table)
        columns: tuple[NDArray[Any], ...] = (
            rows,
            table.radix_bits * (rows > 1),
            length,
            ~table.array_multiplier,
            complement,
            table.pairs,
            _width(table),
            np.where(table.separate, 0, table.words),
            _TREE_OF[table.compressor],
            table.carry_save,
            np.where(table.separate, 0, self._leads(front_keys(table), table)[:, 0]),
        )
        keys = packed(*zip(columns, SHAPE.values(), strict=True))
        return self._known(keys if where is None else keys[where], table, where)


def _counts_of(keys: IntArray, _table: ArrayTable, _rows: IntArray) -> FloatArray:
    counts: IntArray = _count_heaps(unpacked(keys, *SHAPE.values()))
    return counts.astype(np.float64)


def _lead(array: Array) -> tuple[int]:
    return (datapath.lead(array.pe.hardware()),)


def _rows(table: ArrayTable) -> tuple[IntArray, IntArray]:
    """Partial products of an operand pair in one heap, and the bits of one."""
    rows = np.where(table.temporal | table.hoisted, 1, table.digits)
    shifts = table.shift_levels > 0
    length = _partial_product_width(table) + shifts * table.radix_bits * (table.digits - 1)
    return rows, length


def _partial_product_width(table: ArrayTable) -> IntArray:
    width: IntArray = table.width_b + table.radix_bits - 1
    return width


def _width(table: ArrayTable) -> IntArray:
    """Columns of a heap."""
    return np.where(table.separate, table.product_width, table.accumulator_width)


def _shifter_bits(table: ArrayTable, length: IntArray) -> FloatArray:
    """2:1 multiplexers that bring one partial product to its weight."""
    shifted, total = _partial_product_width(table), np.zeros(len(table))
    for level in range(int(table.shift_levels.max(initial=0))):
        shifted = np.minimum(shifted + (table.radix_bits << level), length)
        total += np.where(level < table.shift_levels, shifted, 0)
    return total


def _make_count_heaps(sources: int) -> Callable[[IntArray], IntArray]:
    """See :meth:`archgym.simulators.compilation.Kernel.entry`."""

    def count_heaps(shapes: IntArray) -> IntArray:
        assert sources >= 0
        found = np.empty((len(shapes), _COUNTS), np.int64)
        for i in range(len(shapes)):
            n, spacing, length, negation, complement = shapes[i, :5]
            pairs, width, words, tree, settle, lead = shapes[i, 5:]
            rows = np.empty((n, 3), np.int64)
            total = 0
            for row in range(n):
                low = row * spacing
                rows[row, 0], rows[row, 1], rows[row, 2] = low, length, negation
                # As in `datapath.rows_of_a_pair`; whole multiples of 2**64 do not matter here.
                if complement and row == n - 1:
                    total -= ((1 << (length - 1)) - 1) << low
                else:
                    total -= 1 << (low + length - 1)
            total *= pairs
            constant = np.empty(width, np.uint8)
            for column in range(width):
                constant[column] = (total >> column) & 1
            found[i] = count_compressors(rows, pairs, words, constant, tree, settle != 0, lead)
        return found

    return count_heaps


_count_heaps = KERNEL.entry(_make_count_heaps)
