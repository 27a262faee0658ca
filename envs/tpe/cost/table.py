"""Many designs at once: the fields of their arrays and PEs as columns.

Names, units and meaning are those of :class:`archgym.envs.tpe.microarchitecture.pe.Array` and
:class:`archgym.envs.tpe.microarchitecture.pe.PE`; a test compares row by row. Words are numbers:
the index in the list of words in :mod:`archgym.envs.tpe.microarchitecture.pe`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.cost.cycles import Schedules, digits_of
from archgym.envs.tpe.microarchitecture.edge import SEGMENT, SHORT_SEGMENT
from archgym.envs.tpe.microarchitecture.pe import (
    ACCUMULATORS,
    ARRAY_KINDS,
    BIT_WEIGHTS,
    COMPRESSORS,
    ENCODER_PLACES,
    ENCODINGS,
    FINAL_ADDERS,
    PLACES,
    Array,
)
from archgym.envs.tpe.space.design_space import array_of
from archgym.space import Designs

__all__ = ["ArrayTable", "Memo", "bit_length", "each", "front_keys", "packed", "unpacked"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

_WORDS: dict[str, tuple[str, ...]] = {
    "array": ARRAY_KINDS,
    "encoding": ENCODINGS,
    "encoder_place": ENCODER_PLACES,
    "bit_weights": BIT_WEIGHTS,
    "shift_place": PLACES,
    "accumulator": ACCUMULATORS,
    "final_adder_place": PLACES,
    "final_adder": FINAL_ADDERS,
    "compressor": COMPRESSORS,
}
_RADIX_4 = [ENCODINGS.index(name) for name in ("booth", "ent", "csd")]


class ArrayTable:
    """The arrays of legal designs, a row each; every column has shape (n,).

    Args:
        designs: of the environment's space.
        alone: whether each array is reduced to one of its PEs.

    Attributes:
        kind, rows, columns, accumulation_length, columns_per_encoder, clock_mhz: of the array.
        width_a, width_b, accumulator_width, encoding, encoder_place, bit_weights, shift_place,
            accumulator, final_adder_place, final_adder, compressor, pipeline_depth, lanes,
            reduction: of its PEs.
        pairs, digits, radix_bits, words, accumulators, partial_products: derived, as in `PE`
            (`pairs` is its `operand_pairs`).
        product_width, shift_levels: as in :mod:`archgym.envs.tpe.microarchitecture.datapath`.
        segment: of the result adders.
    """

    def __init__(self, designs: Designs, *, alone: bool = False) -> None:
        self._designs = designs
        self.kind = self._column("array", 0)
        cube, tree = self.is_("kind", "cube"), self.is_("kind", "tree")
        self.columns = self._column("columns", 1)
        self.rows = self._column("rows", 1)
        self.rows = np.where(cube, self.columns, np.where(tree, 1, self.rows))
        self.reduction = np.where(cube, self.columns, self._column("depth", 1))
        self.lanes = self._column("lanes", 1)
        self.width_a = self._column("width_a", 8)
        self.width_b = self._column("width_b", 8)
        self.accumulator_width = self._column("accumulator_width", 32)
        self.encoding = self._column("encoding", 0)
        self.encoder_place = self._column("encoder_place", 0)
        self.bit_weights = self._column("bit_weights", 0)
        self.shift_place = self._column("shift_place", 0)
        self.accumulator = self._column("accumulator", 0)
        self.final_adder_place = self._column("final_adder_place", 0)
        self.final_adder = self._column("final_adder", 0)
        self.compressor = self._column("compressor", 0)
        self.pipeline_depth = self._column("pipeline_depth", 1)
        length = self._column("accumulation_length", 0)
        self.accumulation_length = np.where(length > 0, length, self.rows * self.reduction)
        shared = self._column("columns_per_encoder", 0)
        self.columns_per_encoder = np.where(shared > 0, shared, self.columns)
        self.clock_mhz = self._column("clock_mhz", 0)
        if alone:
            self.rows, self.columns = np.ones_like(self.rows), np.ones_like(self.columns)
        self._derive()

    def __len__(self) -> int:
        """Number of designs."""
        return len(self._designs)

    def array(self, row: int) -> Array:
        """The array of one row, a whole one even if the table reduces it to one PE."""
        return array_of(self._designs[row])

    def is_(self, column: str, *words: str) -> BoolArray:
        """Where a column has one of some words."""
        known = _WORDS["array" if column == "kind" else column]
        return np.isin(getattr(self, column), [known.index(word) for word in words])

    def schedules(self) -> Schedules:
        """What their timing depends on."""
        spatial = self.bit_weights == 0
        keys = packed(
            (self.bit_weights, 2),
            (self.encoding * ~spatial, 3),
            (self.width_a * ~spatial, 5),
            (self.lanes, 4),
        )
        _, first, kinds = np.unique(keys, return_index=True, return_inverse=True)
        return Schedules(
            systolic=self.is_("kind", "systolic_os", "systolic_ws"),
            stationary=self.is_("kind", "systolic_ws"),
            rows=self.rows,
            columns=self.columns,
            depth=self.pairs,
            length=self.accumulation_length,
            stages=self.pipeline_depth + self.is_("encoder_place", "edge") + 1,
            adders=self.result_adders,
            passes=self.passes,
            digits=kinds,
            kinds=tuple(digits_of(self.array(row).pe) for row in first.tolist()),
        )

    def _derive(self) -> None:
        self.pairs = self.reduction * self.lanes
        self.pes = self.rows * self.columns
        self.temporal = self.bit_weights > 0
        self.sparse = self.is_("bit_weights", "temporal_sparse")
        self.hoisted = self.shift_place > 0
        self.separate = self.is_("accumulator", "separate")
        self.carry_save = self.is_("accumulator", "carry_save")
        self.array_multiplier = self.is_("encoding", "radix2")
        self.radix_bits = np.where(np.isin(self.encoding, _RADIX_4), 2, 1)
        self.digits = -(-self.width_a // self.radix_bits)
        self.has_encoder = (self.encoder_place == 0) & ~self.array_multiplier
        serial = np.where(self.array_multiplier, 1, 2)
        self.digit_bits = np.where(self.radix_bits == 2, 3, serial)
        self.words = np.where(self.carry_save, 2, 1)
        product = self.width_a + self.width_b + bit_length(self.pairs - 1)
        self.product_width = np.minimum(self.accumulator_width, product)
        shifts = self.temporal & ~self.hoisted
        self.shift_levels = np.where(shifts, bit_length(self.digits - 1), 0)
        self.accumulators = np.where(self.hoisted & ~self.temporal, self.digits, 1)
        self.partial_products = self.pairs * np.where(self.temporal, 1, self.digits)
        tile_cycles = np.maximum(1, self.accumulation_length // self.pairs)
        self.passes = np.where(self.temporal & self.hoisted, self.digits, 1)
        per_column = self.columns * -(-self.rows * self.passes // tile_cycles)
        for_all = -(-self.pes * self.passes // tile_cycles)
        at_edge = self.is_("final_adder_place", "edge")
        self.result_adders = np.where(at_edge, per_column, for_all)
        rows = self.partial_products // self.accumulators + self.words
        few = self.carry_save & (rows <= np.where(self.pipeline_depth >= 2, 6, 4))
        self.segment = np.where(few, SHORT_SEGMENT, SEGMENT)
        self.cut_encode = (self.pipeline_depth == 3) & ~self.separate
        self.cut_select = (self.pipeline_depth >= 2) & ~self.separate
        self.cut_reduce = (self.pipeline_depth >= 2) & self.separate
        self.cut_add = (self.pipeline_depth == 3) & self.separate

    def _column(self, name: str, inactive: int) -> IntArray:
        space = self._designs.space
        position = space.index(name)
        codes = self._designs.codes[:, position]
        words = _WORDS.get(name)
        levels: list[Any] = list(space.parameters[position].table[:-1])
        if words is not None:
            levels = [words.index(level) for level in levels]
        return np.where(codes < 0, inactive, np.array(levels, dtype=np.int64)[codes])


def packed(*columns: tuple[NDArray[Any], int]) -> IntArray:
    """One number a row, equal exactly where all columns are.

    Args:
        *columns: integers from 0 up, each with the bits that hold its greatest value.

    Raises:
        ValueError: if they need more than 63 bits.
    """
    if sum(bits for _, bits in columns) > 63:
        raise ValueError("the columns do not fit one number")
    total = np.zeros(len(columns[0][0]), dtype=np.int64)
    for column, bits in columns:
        total = (total << bits) | column.astype(np.int64)
    return total


def unpacked(keys: IntArray, *bits: int) -> IntArray:
    """The columns that :func:`packed` made one number of, shape (n, columns)."""
    shifts = np.cumsum([0, *bits[:0:-1]])[::-1]
    found: IntArray = (keys[:, None] >> shifts) & ((1 << np.array(bits)) - 1)
    return found


def bit_length(numbers: IntArray) -> IntArray:
    """Bits that hold each of some numbers from 0 to 2**52, as `int.bit_length`."""
    return np.frexp(numbers.astype(np.float64))[1].astype(np.int64)


def front_keys(table: ArrayTable) -> IntArray:
    """Equal exactly where what stands in front of the compressor tree of a PE is, shape (n,)."""
    return packed(
        (table.width_a, 5),
        (table.width_b, 5),
        (table.encoding, 3),
        (table.has_encoder, 1),
        (table.bit_weights, 2),
        (table.hoisted, 1),
        (table.separate, 1),
        (table.pipeline_depth, 2),
    )


class Memo:
    """A cache of rows of numbers, each computed once for its key.

    Args:
        compute: given keys, a table and for each key a row of the table that has it, the numbers
            that belong to each, shape (keys, width); they depend on the key alone.
        width: how many there are.
    """

    def __init__(
        self, compute: Callable[[IntArray, ArrayTable, IntArray], FloatArray], width: int
    ) -> None:
        self._compute = compute
        self._keys = np.empty(0, dtype=np.int64)  # ascending
        self._numbers = np.empty((0, width))

    def __call__(
        self, keys: IntArray, table: ArrayTable, rows: IntArray | None = None
    ) -> FloatArray:
        """The numbers that belong to keys, shape (n, width).

        Args:
            keys: shape (n,).
            table: where an array with a key is found.
            rows: row of the table of each key, shape (n,); all of them if ``None``.
        """
        unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        unseen = ~np.isin(unique, self._keys, assume_unique=True)
        if unseen.any():
            where = first[unseen] if rows is None else rows[first[unseen]]
            numbers = self._compute(unique[unseen], table, where)
            merged = np.concatenate([self._keys, unique[unseen]])
            order = np.argsort(merged)
            self._keys = merged[order]
            self._numbers = np.concatenate([self._numbers, numbers])[order]
        return self._numbers[np.searchsorted(self._keys, unique)[inverse]]


def each(
    compute: Callable[[Array], Sequence[float]],
) -> Callable[[IntArray, ArrayTable, IntArray], FloatArray]:
    """The function that a `Memo` calls, from one that takes a single array."""

    def compute_all(_: IntArray, table: ArrayTable, rows: IntArray) -> FloatArray:
        return np.array([compute(table.array(row)) for row in rows.tolist()], dtype=np.float64)

    return compute_all
