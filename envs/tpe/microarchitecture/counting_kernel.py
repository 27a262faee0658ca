"""Counts the compressors of a bit heap from the shape of its rows, compiled.

The same heap as :class:`archgym.envs.tpe.microarchitecture.heap.Heap`, without names: rows by their
lowest column, length and negation bit, repeated for every operand pair. A design space has
thousands of heaps, so this is what counts them; a test compares both.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture import compression_kernel
from archgym.envs.tpe.microarchitecture.compression_kernel import (
    CONSTANT,
    FEEDBACK,
    LINEAR,
    NEGATION,
    PARTIAL_PRODUCT,
    chain_gates,
    latest,
    place,
)
from archgym.simulators.compilation import Kernel, compiled_once

__all__ = ["KERNEL", "count_compressors", "count_heap"]


KERNEL = Kernel(
    "TPE-v0, compressor trees",
    map(Path, (__file__, compression_kernel.__file__)),
    {"nogil": True},
)
"""Compiles what Python calls of this kernel."""


@njit  # type: ignore[untyped-decorator]
def count_compressors(
    rows: NDArray[np.int64],
    pairs: int,
    words: int,
    constant: NDArray[np.uint8],
    tree: int,
    settle: bool,
    lead: int,
) -> NDArray[np.int64]:
    """Counts of the reduced heap, for compiled code; Python calls :func:`count_heap`.

    Args:
        rows: partial products of one operand pair, shape (n, 3): lowest column, length, 1 with a
            negation bit in the lowest column.
        pairs: how often they are repeated.
        words: accumulated words that are fed back as rows.
        constant: bits of the constant, one a column, shape (width,).
        tree: a constant of :mod:`archgym.envs.tpe.microarchitecture.compression_kernel`.
        settle: whether fed-back bits that the tree never makes are left out.
        lead: how much earlier fed-back bits are there than partial products, hundredths of a full
            adder's delay.

    Returns:
        Full adders, full adders with a constant one, half adders, half adders with a constant
        one, levels, columns that keep a bit, columns that keep two, depth in thousandths of a
        full adder, and-inverter gates of a carry chain behind it; shape (9,).
    """
    width = len(constant)
    present = np.ones((words, width), np.uint8)
    kept = np.zeros((words, width), np.uint8)
    matrix = _matrix(rows, pairs, present, constant, tree)
    placed, left, depth = place(matrix, tree)
    if settle:
        for attempt in range(3 * width):
            same = True
            for c in range(width):
                for word in range(words):
                    bit = 1 if left[0, c] >= word + 1 else 0
                    if attempt > width:
                        bit |= kept[word, c]
                        kept[word, c] = bit
                    same &= present[word, c] == bit
                    present[word, c] = bit
            if same:
                break
            matrix = _matrix(rows, pairs, present, constant, tree)
            placed, left, depth = place(matrix, tree)
    found = np.zeros(9, np.int64)
    found[8] = chain_gates(left)
    found[7] = round(1000 * latest(matrix, placed, tree, lead / 100))
    for i in range(len(placed)):
        takes, with_carry, one = placed[i, 2], placed[i, 3], placed[i, 4]
        if takes == 4:
            # Two full adders; without an intermediate carry in, the second is a half adder.
            found[1 if 0 <= one < 3 else 0] += 1
            found[(0 if with_carry else 2) + (1 if one == 3 else 0)] += 1
        else:
            found[(0 if takes == 3 else 2) + (1 if one >= 0 else 0)] += 1
    found[4] = depth
    for c in range(width):
        # A constant that is left over is accumulated like any bit.
        variable = left[0, c] - (1 if left[1, c] >= 0 and not settle else 0)
        found[5] += variable >= 1
        found[6] += variable >= 2
    return found


@compiled_once()
def _matrix(
    rows: NDArray[np.int64],
    pairs: int,
    present: NDArray[np.uint8],
    constant: NDArray[np.uint8],
    tree: int,
) -> NDArray[np.uint8]:
    """Rows of bits in the order in which the tree takes them."""
    width, n, words = len(constant), len(rows), len(present)
    matrix = np.zeros((2 * n * pairs + words + 1, width), np.uint8)
    first = words if tree == LINEAR else 0
    for pair in range(pairs):
        for i in range(n):
            low, length = rows[i, 0], rows[i, 1]
            matrix[first + pair * n + i, low : min(low + length, width)] = PARTIAL_PRODUCT
    if tree != LINEAR:
        for pair in range(pairs):
            for i in range(n):
                if rows[i, 2]:
                    matrix[n * pairs + pair * n + i, rows[i, 0]] = NEGATION
        matrix[2 * n * pairs : 2 * n * pairs + words] = FEEDBACK * present
        matrix[-1] = CONSTANT * constant
        return matrix
    matrix[:words] = FEEDBACK * present
    return _rows_of_a_linear_tree(rows, pairs, constant, matrix, words)


@compiled_once()
def _rows_of_a_linear_tree(
    rows: NDArray[np.int64],
    pairs: int,
    constant: NDArray[np.uint8],
    matrix: NDArray[np.uint8],
    words: int,
) -> NDArray[np.uint8]:
    """Negation bits go into the first row with a free place, the last ones beside the constant."""
    n = len(rows)
    end = words + n * pairs
    matrix[end] = CONSTANT * constant
    last = end + 1 if constant.any() else end
    for _pair in range(pairs):
        for i in range(n):
            if not rows[i, 2]:
                continue
            column = rows[i, 0]
            at = words
            while at < last and matrix[at, column]:
                at += 1
            matrix[at, column] = NEGATION
            last = max(last, at + 1)
    rest: NDArray[np.uint8] = matrix[:last].copy()
    return rest


def _make_count_heap(sources: int) -> Callable[..., Any]:
    def entry(
        rows: NDArray[np.int64],
        pairs: int,
        words: int,
        constant: NDArray[np.uint8],
        tree: int,
        settle: bool,
        lead: int,
    ) -> NDArray[np.int64]:
        assert sources >= 0
        found: NDArray[np.int64] = count_compressors(
            rows, pairs, words, constant, tree, settle, lead
        )
        return found

    return entry


count_heap = KERNEL.entry(_make_count_heap)
"""As :func:`count_compressors`, kept compiled between processes."""
