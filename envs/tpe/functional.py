"""Executes an array bit by bit as its hardware does; gives the product and the cycles.

Words are two's complement numbers of the hardware's own widths: partial products are a selected
multiple of B, inverted where the digit is negative, with a bit that completes the negation; sums
are kept in sum and carry modulo two to the accumulator's width; nothing is ever a plain product.
So a legal design gives the exact product, and what an illegal one would get wrong can be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture.edge import result_width
from archgym.envs.tpe.microarchitecture.encodings import digits, operand_range
from archgym.envs.tpe.microarchitecture.pe import PE, Array, Compressor
from archgym.envs.tpe.space.design_space import broken_rules
from archgym.errors import InvalidValueError

__all__ = ["Execution", "execute"]

Words = NDArray[np.int64]

#: Longest product that a finished result holds: it has 16 bits beyond one product's.
_LONGEST = 1 << 16


@dataclass(frozen=True)
class Execution:
    """Result of the multiplication of two matrices by an array.

    Attributes:
        product: The product, int64, shape (m, n).
        cycles: Cycles in which the PEs worked, start-up and draining left out. Zero digits cost
            nothing in sparse designs; there rows wait for the slowest at the end of each tile.
    """

    product: Words
    cycles: int


def execute(array: Array, a: Any, b: Any) -> Execution:
    """Multiplies two integer matrices as the array does.

    Args:
        array: a legal array.
        a: operand A, shape (m, k), in the range of `width_a` bits.
        b: operand B, shape (k, n), in the range of `width_b` bits.

    Raises:
        InvalidValueError: if the array is illegal (naming the rule, as one whose accumulator
            could overflow), the shapes do not match, k is above 65536, or an operand is no
            integer or does not fit its width.

    Example:
        >>> array = Array("systolic_os", 4, 4, PE(8, 8, 32))
        >>> execute(array, [[-128, 3]], [[-128], [5]]).product.tolist()
        [[16399]]
    """
    for name, message in broken_rules(array).items():
        raise InvalidValueError(f"illegal array: {name}: {message}")
    left, right = _integers("A", a, array.pe.width_a), _integers("B", b, array.pe.width_b)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
        raise InvalidValueError(f"no product of shapes {left.shape} and {right.shape}")
    if left.shape[1] > _LONGEST:
        raise InvalidValueError(f"k={left.shape[1]} is above {_LONGEST}: the result overflows")
    coded = digits(left, array.pe.width_a, array.pe.encoding).astype(np.int64)
    width = result_width(array)
    total = np.zeros((left.shape[0], right.shape[1]), dtype=np.int64)
    cycles = 0
    tiles = -(-right.shape[1] // array.columns)
    for start in range(0, left.shape[1], array.accumulation_length):
        stop = start + array.accumulation_length
        tile = coded[:, start:stop]
        total = _wrapped(total + _tile(array.pe, tile, right[start:stop], width), width)
        cycles += _cycles(array, tile) * tiles
    return Execution(_signed(total, width), cycles)


def _integers(name: str, matrix: Any, width: int) -> Words:
    """An operand matrix, checked."""
    values = np.asarray(matrix)
    # An empty list is one of floats to numpy.
    if values.size and values.dtype.kind not in "iu":
        raise InvalidValueError(f"operand {name} must be integers, not {values.dtype}")
    low, high = operand_range(width)
    if values.size and (values.min() < low or values.max() > high):
        beyond = values.min() if values.min() < low else values.max()
        raise InvalidValueError(
            f"operand {name}: {beyond} does not fit {width} bits: allowed are {low} to {high}"
        )
    return values.astype(np.int64)


def _tile(pe: PE, coded: Words, right: Words, width: int) -> Words:
    """The result of one accumulation, as a word of the result's width."""
    steps = range(0, right.shape[0], pe.operand_pairs)
    if not pe.shift_hoisted:
        state = _State(pe, coded.shape[0], right.shape[1])
        for step in steps:
            pair = slice(step, step + pe.operand_pairs)
            if pe.temporal:
                for place in range(pe.digits):
                    state.add(
                        _partial_products(pe, coded[:, pair, place : place + 1], right[pair], place)
                    )
            else:
                state.add(_partial_products(pe, coded[:, pair], right[pair], 0))
        return _wrapped(state.value(), width)
    total = np.zeros((coded.shape[0], right.shape[1]), dtype=np.int64)
    for place in range(pe.digits):
        # Spatial bit weights have accumulators of their own, temporal ones take turns in one:
        # either way each sum is finished before it gets its weight.
        state = _State(pe, coded.shape[0], right.shape[1])
        for step in steps:
            pair = slice(step, step + pe.operand_pairs)
            state.add(_partial_products(pe, coded[:, pair, place : place + 1], right[pair], None))
        total = _wrapped(total + (state.value() << (pe.radix_bits * place)), width)
    return total


class _State:
    """The accumulator of every PE: one word, or sum and carry, shape (words, m, n)."""

    def __init__(self, pe: PE, m: int, n: int) -> None:
        self._pe = pe
        self._words = [np.zeros((m, n), dtype=np.int64) for _ in range(pe.words)]

    def add(self, rows: list[Words]) -> None:
        """One cycle: the partial products of that cycle reduced and accumulated."""
        pe, width = self._pe, self._pe.accumulator_width
        if pe.accumulator == "separate":
            product = pe.width_a + pe.width_b + (pe.operand_pairs - 1).bit_length()
            pair = _reduced([_wrapped(row, product) for row in rows], product, pe.compressor)
            one = _signed(_wrapped(sum(pair, np.int64(0)), product), product)
            self._words = [_wrapped(self._words[0] + one, width)]
            return
        pair = _reduced(
            [*(_wrapped(row, width) for row in rows), *self._words], width, pe.compressor
        )
        self._words = [_wrapped(sum(pair, np.int64(0)), width)] if pe.words == 1 else pair

    def value(self) -> Words:
        """The accumulated number, once sum and carry are one word."""
        width = self._pe.accumulator_width
        return _signed(_wrapped(sum(self._words, np.int64(0)), width), width)


def _partial_products(pe: PE, coded: Words, right: Words, place: int | None) -> list[Words]:
    """The rows that enter the compressor: a selected multiple and its negation bit each.

    Args:
        pe: the PE.
        coded: digits, shape (m, pairs, places).
        right: operands B, shape (pairs, n).
        place: bit weight of the first place; ``None`` if rows stay at weight one.
    """
    rows: list[Words] = []
    for pair in range(right.shape[0]):
        for i in range(coded.shape[2]):
            digit = coded[:, pair, i][:, None]
            multiple = np.abs(digit) * right[pair][None, :]
            # Inverting all bits and adding one negates; both are done on the row's own bits.
            negative = digit < 0
            shift = 0 if place is None else pe.radix_bits * (place + i)
            rows.append(np.where(negative, ~multiple, multiple) << shift)
            rows.append(np.broadcast_to(negative.astype(np.int64) << shift, multiple.shape))
    return rows


def _reduced(rows: list[Words], width: int, compressor: Compressor) -> list[Words]:
    """Sum and carry of many rows, in layers of 3:2 or 4:2 compressors or one after the other."""
    while len(rows) > 2:
        if compressor == "linear":
            rows = [*_compressed(rows[0], rows[1], rows[2], width), *rows[3:]]
            continue
        step = 4 if compressor == "4to2" else 3
        following: list[Words] = []
        for start in range(0, len(rows), step):
            group = rows[start : start + step]
            if len(group) == 4:
                group = [*_compressed(group[0], group[1], group[2], width), group[3]]
            following += (
                _compressed(group[0], group[1], group[2], width) if len(group) == 3 else group
            )
        rows = following
    return rows if len(rows) == 2 else [*rows, np.zeros_like(rows[0])]


def _compressed(x: Words, y: Words, z: Words, width: int) -> list[Words]:
    """A row of full adders: sum and carry of three words."""
    return [x ^ y ^ z, _wrapped(((x & y) | (x & z) | (y & z)) << 1, width)]


def _wrapped(word: Any, width: int) -> Words:
    """The low bits of a word."""
    wrapped: Words = np.asarray(word, dtype=np.int64) & ((1 << width) - 1)
    return wrapped


def _signed(word: Words, width: int) -> Words:
    """The two's complement number that the low bits of a word stand for."""
    return word - ((word >> (width - 1)) << width)


def _cycles(array: Array, coded: Words) -> int:
    """Cycles of one tile: of all its rows of A, the array's rows at a time."""
    pe = array.pe
    m, k, places = (int(size) for size in coded.shape)
    if array.kind == "systolic_ws":
        return m
    steps = -(-k // array.depth)
    if pe.bit_weights != "temporal_sparse":
        return -(-m // array.rows) * steps * (places if pe.temporal else 1)
    padded = np.zeros((m, steps * pe.lanes, places), dtype=np.int64)
    padded[:, :k] = coded
    # Each lane takes every lanes-th operand; lanes meet at the end of each bit weight.
    by_lane = np.count_nonzero(padded.reshape(m, steps, pe.lanes, places), axis=1)
    stream = (by_lane.max(axis=1) if pe.shift_hoisted else by_lane[:, 0]).sum(axis=1)
    groups = np.maximum.reduceat(stream, np.arange(0, m, array.rows))
    return int(groups.sum())
