"""Edge blocks around the processing elements of an array: encoders, result adders, barriers.

Like a PE, an edge block is a frozen value that says what is built; `edge_blocks` says which ones
an array has and how many. What leaves the PEs passes a result adder in every design, so that
designs differ by what they moved there: it merges sum and carry, shifts and adds bit weights, and
adds the partial sum of the tile before (products longer than `accumulation_length`).
"""

from __future__ import annotations

from dataclasses import dataclass

from archgym.envs.tpe.microarchitecture.pe import Array, Encoding, FinalAdder

__all__ = [
    "SEGMENT",
    "SHORT_SEGMENT",
    "Barrier",
    "EdgeBlock",
    "OperandEncoder",
    "ResultAdder",
    "edge_blocks",
    "result_width",
    "segment_bits",
]

#: Bits that a result has beyond the product's: 32-bit results of 8-bit operands, as tensor
#: engines commonly have them (Jouppi and others, "In-Datacenter Performance Analysis of a Tensor
#: Processing Unit", ISCA 2017, section 2).
_GUARD_BITS = 16

SEGMENT = 8
"""Bits of a carry chain of a result adder between two registers."""

SHORT_SEGMENT = 4
"""Likewise around PEs that are faster than a chain of :data:`SEGMENT` bits."""


@dataclass(frozen=True)
class OperandEncoder:
    """Turns one operand A into its digits, registered.

    Attributes:
        width: Bits of the operand.
        encoding: Of the digits.
        serial: Whether digits leave one at a time, lowest bit weight first, or all in a cycle.
        sparse: Whether zero digits are skipped; then the position of each digit leaves too.
    """

    width: int
    encoding: Encoding
    serial: bool = False
    sparse: bool = False


@dataclass(frozen=True)
class ResultAdder:
    """Makes one result from what a PE accumulated and the partial sum so far, registered.

    Attributes:
        accumulators: Numbers that arrive side by side, one a bit weight where the shift is here.
        words: Words of each: 2 for sum and carry, else 1.
        accumulator_width: Bits of a word, signed.
        shift_bits: Bits between the weights of neighbouring accumulators; for bit weights that
            arrive one after the other, bits that the partial sum is shifted between them; 0 where
            weights were applied in the PE.
        result_width: Bits of the result and of the partial sum.
        final_adder: Form of its carry-propagate adder.
        segment: Bits of a carry chain between two registers.
    """

    accumulators: int
    words: int
    accumulator_width: int
    shift_bits: int
    result_width: int
    final_adder: FinalAdder
    segment: int = SEGMENT

    @property
    def operands(self) -> int:
        """Words that are added: those that arrive and the partial sum."""
        return self.accumulators * self.words + 1


@dataclass(frozen=True)
class Barrier:
    """Waits until the last of several streams of digits is used up.

    Attributes:
        streams: How many wait for each other: the rows of the array.
        counter_bits: Bits of each stream's count of digits left in the tile.
    """

    streams: int
    counter_bits: int


EdgeBlock = OperandEncoder | ResultAdder | Barrier


def result_width(array: Array) -> int:
    """Bits of a finished result: at least 16 beyond the product's, at least the accumulator's."""
    pe = array.pe
    minimum = pe.width_a + pe.width_b + _GUARD_BITS
    return minimum if pe.shift_hoisted else max(minimum, pe.accumulator_width)


def segment_bits(array: Array) -> int:
    """Bits of the carry chains between two registers of the result adders.

    What stands outside the accumulation loop can be cut anywhere, so that it does not set the
    clock: chains are short where a PE keeps sum and carry and adds up few rows in a cycle. With
    the selection of partial products in the same cycle these are four rows at most, two levels of
    full adders; after a register six, three levels.
    """
    pe = array.pe
    rows = pe.partial_products // pe.accumulators + pe.words
    few = 6 if "select" in pe.cuts else 4
    return SHORT_SEGMENT if pe.accumulator == "carry_save" and rows <= few else SEGMENT


def edge_blocks(array: Array) -> tuple[tuple[EdgeBlock, int], ...]:
    """The blocks around the PEs of an array, with how many there are of each.

    An encoder stands where the digits are made: one for every operand A that enters in a cycle
    and every `columns_per_encoder` PEs along its way; operands that are stored encoded are encoded
    when they are written, as fast as results leave. Result adders keep pace with the PEs for tiles
    of full length: as many as results leave in a cycle, in the SIMD unit for all columns together,
    at the edge for each column; bit weights that accumulate one after the other leave one by one.
    """
    blocks: list[tuple[EdgeBlock, int]] = []
    pe = array.pe
    tile_cycles = max(1, array.accumulation_length // array.depth)
    passes = pe.digits if pe.temporal and pe.shift_hoisted else 1
    if pe.final_adder_place == "edge":
        adders = array.columns * -(-array.rows * passes // tile_cycles)
    else:
        adders = -(-array.pes * passes // tile_cycles)
    sparse = pe.bit_weights == "temporal_sparse"
    if pe.encoder_place == "edge" and pe.encoding != "radix2":
        groups = -(-array.columns // array.columns_per_encoder)
        encoder = OperandEncoder(pe.width_a, pe.encoding, pe.temporal, sparse)
        blocks.append((encoder, array.rows * array.depth * groups))
    elif pe.encoder_place == "memory" and pe.encoding not in ("radix2", "serial_twos"):
        blocks.append((OperandEncoder(pe.width_a, pe.encoding), adders))
    adder = ResultAdder(
        pe.accumulators,
        pe.words,
        pe.accumulator_width,
        pe.radix_bits if pe.shift_hoisted else 0,
        result_width(array),
        pe.final_adder,
        segment_bits(array),
    )
    blocks.append((adder, adders))
    if sparse and array.rows > 1:
        longest = array.accumulation_length * pe.digits // array.depth
        blocks.append((Barrier(array.rows, max(1, longest.bit_length())), 1))
    return tuple(blocks)
