"""Bit heaps: the bits of equal weight that a compressor tree has to add, and its compressors.

A heap holds partial products, one negation bit for each of them (-x = ~x + 1), the words that an
accumulator feeds back, and one constant. Partial products are not sign-extended: the sign bit
arrives inverted, and since -s = (1 - s) - 1 the missing -1 of every partial product is added up in
the constant (the usual sign-extension trick, for example in M. D. Ercegovac and T. Lang, "Digital
Arithmetic", 2004, section 4). Sums are modulo 2**width: carries out of the top column are dropped.

A compressor is a full adder (3 bits to sum and carry) or a half adder (2 bits); one with a
constant one among its bits is smaller: with one, a full adder is XNOR and OR, a half adder a NOT.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture import compression_kernel as kernel
from archgym.envs.tpe.microarchitecture.compressors import ONE, CompressorWiring, Reduction
from archgym.envs.tpe.microarchitecture.pe import Compressor as Tree

__all__ = ["TREES", "Counted", "Heap", "Segment"]

TREES: dict[Tree, int] = {
    "wallace": kernel.WALLACE,
    "dadda": kernel.DADDA,
    "4to2": kernel.FOUR_TO_TWO,
    "linear": kernel.LINEAR,
}


@dataclass(frozen=True)
class Segment:
    """Neighbouring bits of one word.

    Attributes:
        name: the word; its bits are `name[0]`, `name[1]`, ...
        low: column of bit 0, log2 of its weight.
        length: bits.
        present: mask of the bits that exist; the others are constant zeros. -1: all.
    """

    name: str
    low: int
    length: int
    present: int = -1


@dataclass(frozen=True)
class Counted:
    """How many compressors there are of each kind, and how deep they stand.

    Attributes:
        full_adders: with three variable bits.
        full_adders_one: with two variable bits and a constant one.
        half_adders: with two variable bits.
        half_adders_one: with one variable bit and a constant one (an inverter).
        levels: full adders in series on the longest way.
        sum_bits: columns that keep a bit at the end; constants count where both rows are fed back.
        carry_bits: columns that keep two bits at the end, likewise.
        depth: when the last bit is there, full-adder delays after the partial products: half
            adders and carries are faster, most bits do not pass every level, and the third input of
            a full adder passes half of it.
        chain_gates: and-inverter gates of a carry chain that adds the rows that are left.
    """

    full_adders: int
    full_adders_one: int
    half_adders: int
    half_adders_one: int
    levels: int
    sum_bits: int
    carry_bits: int
    depth: float
    chain_gates: int


@dataclass(frozen=True)
class Heap:
    """Bits to be added modulo 2**width.

    Attributes:
        width: columns.
        partial_products: the partial products, in the order in which they are taken.
        negations: single bits that complete the negation of a partial product.
        feedback: words of the accumulator that are rows of the tree (sum, carry).
        constant: added once, modulo 2**width.

    Example: two signed 4-bit numbers; the inverted signs cost the constant -8 - 8.

        >>> heap = Heap(6, (Segment("x", 0, 4), Segment("y", 0, 4)), (), (), -16)
        >>> heap.heights
        (2, 2, 2, 2, 1, 1)
        >>> heap = replace(heap, negations=(Segment("n", 0, 1),))
        >>> heap.count("dadda").half_adders, heap.count("dadda").levels
        (4, 1)
    """

    width: int
    partial_products: tuple[Segment, ...]
    negations: tuple[Segment, ...] = ()
    feedback: tuple[Segment, ...] = ()
    constant: int = 0

    @property
    def heights(self) -> tuple[int, ...]:
        """Bits of each column, lowest first, constants included."""
        return tuple(int(n) for n in (self._matrix(self._rows("dadda")) > 0).sum(axis=0))

    def count(self, tree: Tree, lead: float = 0.0) -> Counted:
        """How many compressors of each kind the tree has.

        Args:
            tree: form of the tree.
            lead: how much earlier fed-back bits are there than partial products, full-adder delays.
        """
        matrix = self._matrix(self._rows(tree))
        placed, left, levels = kernel.place(matrix, TREES[tree])
        takes, with_carry, one = placed[:, 2], placed[:, 3] == 1, placed[:, 4]
        threes, fours = takes == 3, takes == 4
        # A constant that is left over is accumulated like any bit where both rows are fed back.
        variable = left[0] - ((left[1] >= 0) & (len(self.feedback) < 2))
        # A 4:2 compressor is a full adder on its first three bits, and a full adder on that sum,
        # the fourth bit and the intermediate carry from the column below; without that carry a half
        # adder.
        first = one >= 0
        late = fours & (one == 3)
        early = fours & first & ~late
        full = (threes & ~first).sum() + (fours & ~early).sum() + (fours & with_carry & ~late).sum()
        full_one = (threes & first).sum() + early.sum() + (late & with_carry).sum()
        half = ((takes == 2) & ~first).sum() + (fours & ~with_carry & ~late).sum()
        half_one = ((takes == 2) & first).sum() + (late & ~with_carry).sum()
        return Counted(
            int(full),
            int(full_one),
            int(half),
            int(half_one),
            int(levels),
            int((variable >= 1).sum()),
            int((variable >= 2).sum()),
            round(kernel.latest(matrix, placed, TREES[tree], lead), 3),
            int(kernel.chain_gates(left)),
        )

    def settled(self, tree: Tree) -> Heap:
        """The heap with the feedback bits that exist once its own outputs are fed back.

        A column that ends with one bit has no carry register, so that the carry word that comes
        back has a constant zero there, which may leave fewer bits elsewhere. Where that goes round
        in circles, bits are kept that are zero after all.
        """
        heap, kept = self, [0] * len(self.feedback)
        for attempt in range(3 * self.width):
            _, left, _ = kernel.place(heap._matrix(heap._rows(tree)), TREES[tree])
            masks = [_mask(left[0] >= row + 1) for row in range(len(self.feedback))]
            if attempt > self.width:
                kept = masks = [old | new for old, new in zip(kept, masks, strict=True)]
            feedback = tuple(
                replace(word, present=mask) for word, mask in zip(self.feedback, masks, strict=True)
            )
            if feedback == heap.feedback:
                break
            heap = replace(heap, feedback=feedback)
        return heap

    def reduce(self, tree: Tree, prefix: str = "t") -> Reduction:
        """The compressors with their bits.

        Args:
            tree: form of the tree.
            prefix: of the names of the bits between compressors.
        """
        rows = self._rows(tree)
        placed, _, levels = kernel.place(self._matrix(rows), TREES[tree])
        wiring = CompressorWiring(prefix, self.width)
        grid = [self._named(row) for row in rows]
        step = wiring.linear if tree == "linear" else wiring.levelled
        columns = step(grid, placed)
        ends = [[bit for bit in column if bit != ONE] for column in columns]
        consts = [ONE in column for column in columns]
        # A constant that is left over goes into the row with a free place in its column.
        first = [e[0] if e else (ONE if k else "") for e, k in zip(ends, consts, strict=True)]
        second = [
            e[1] if len(e) > 1 else (ONE if e and k else "")
            for e, k in zip(ends, consts, strict=True)
        ]
        return Reduction(tuple(wiring.cells), tuple(first), tuple(second), int(levels))

    def _rows(self, tree: Tree) -> list[list[Segment]]:
        """Rows of disjoint segments in the order in which a tree takes them."""
        constant = Segment(ONE, 0, self.width, self.constant % (1 << self.width))
        if tree != "linear":
            flat = (*self.partial_products, *self.negations, *self.feedback, constant)
            return [[segment] for segment in flat]
        # A row adder takes whole rows: negation bits go where a partial product has a free place,
        # and what is left shares a row with the constant if it can.
        rows = [[segment] for segment in self.partial_products]
        spare: list[Segment] = []
        for bit in self.negations:
            free = next((r for r in rows if all(_apart(bit, other) for other in r)), None)
            if free is None:
                spare.append(bit)
            else:
                free.append(bit)
        last = [[constant]] if constant.present else []
        for bit in spare:
            home = next((r for r in last if all(_apart(bit, other) for other in r)), None)
            if home is None:
                last.append([bit])
            else:
                home.append(bit)
        return [*([segment] for segment in self.feedback), *rows, *last]

    def _matrix(self, rows: list[list[Segment]]) -> NDArray[np.uint8]:
        matrix = np.zeros((len(rows), self.width), np.uint8)
        for r, row in enumerate(rows):
            for segment in row:
                value = self._kind(segment)
                if segment.present == -1:
                    matrix[r, segment.low : segment.low + segment.length] = value
                    continue
                for bit in range(min(segment.length, self.width - segment.low)):
                    if segment.present >> bit & 1:
                        matrix[r, segment.low + bit] = value
        return matrix

    def _kind(self, segment: Segment) -> int:
        if segment.name == ONE:
            return kernel.CONSTANT
        if segment in self.feedback:
            return kernel.FEEDBACK
        return kernel.NEGATION if segment in self.negations else kernel.PARTIAL_PRODUCT

    def _named(self, row: Iterable[Segment]) -> list[str]:
        names = [""] * self.width
        for segment in row:
            for bit in range(min(segment.length, self.width - segment.low)):
                if segment.present >> bit & 1:
                    single = segment.name == ONE
                    names[segment.low + bit] = ONE if single else f"{segment.name}[{bit}]"
        return names


def _apart(a: Segment, b: Segment) -> bool:
    if b.name == ONE:
        a, b = b, a
    if a.name == ONE:
        return not any(a.present >> column & 1 for column in range(b.low, b.low + b.length))
    return a.low + a.length <= b.low or b.low + b.length <= a.low


def _mask(present: NDArray[np.bool_]) -> int:
    return sum(1 << int(column) for column in np.nonzero(present)[0])
