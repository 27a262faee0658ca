"""Places compressors in a bit heap: column heights only, compiled.

The heap is a matrix of rows by columns: 0 where there is no bit, else what kind of bit there is;
there is at most one constant one a column. The kernel decides level by level which column gets
which compressor; it does not know the names of the bits, since every compressor takes the bits that
have waited longest in its column.
:mod:`archgym.envs.tpe.microarchitecture.heap` replays the placement with names.

Trees: C. S. Wallace, "A Suggestion for a Fast Multiplier", IEEE Trans. EC-13(1), 1964; L. Dadda,
"Some Schemes for Parallel Multipliers", Alta Frequenza 34, 1965; rows of 4:2 compressors: A.
Weinberger, "4:2 Carry-Save Adder Module", IBM TDB 23(8), 1981.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.simulators.compilation import compiled_once

__all__ = [
    "CONSTANT",
    "DADDA",
    "FEEDBACK",
    "FOUR_TO_TWO",
    "FULL_ADDER_GATES",
    "HALF_ADDER_GATES",
    "LINEAR",
    "NEGATION",
    "PARTIAL_PRODUCT",
    "WALLACE",
    "chain_gates",
    "latest",
    "place",
]

WALLACE, DADDA, FOUR_TO_TWO, LINEAR = range(4)
PARTIAL_PRODUCT, CONSTANT, NEGATION, FEEDBACK = 1, 2, 3, 4

#: Delays in full-adder delays. A full adder is two exclusive ors in series: the first two inputs
#: pass both on the way to the sum, the third one passes the second. Synthesis keeps that order. The
#: carry is a majority, an AND-OR behind the first exclusive or. With a constant one a full adder is
#: an XNOR and an OR; a half adder is an exclusive or and an AND, with a constant one an inverter.
_SUM, _SUM_OF_THIRD, _CARRY, _CARRY_OF_THIRD = 1.0, 0.6, 0.85, 0.35
_HALF_SUM, _HALF_CARRY, _INVERTER = 0.5, 0.25, 0.1
#: The carry of an inverter is the sum of a full adder, and meets the carry of the same adder in
#: the next column: whether both differ follows from the three inputs, without waiting for the sum.
_MERGED = 0.5
_EARLY = -1e9

#: Two-input gates of an and-inverter graph: two exclusive ors of three each, whose first gates make
#: the carry as well, and the one that joins both carries.
FULL_ADDER_GATES, HALF_ADDER_GATES = 7, 3

#: Columns of a placed compressor: level, column, bits taken from the column, whether it takes the
#: intermediate carry of a 4:2 compressor one column lower, place of a constant one among its bits
#: (-1: none).
_FIELDS = 5


@compiled_once()
def place(  # noqa: C901  (one compiled loop over levels and columns)
    rows: NDArray[np.uint8], tree: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Reduces a heap to at most two bits a column.

    Args:
        rows: shape (rows, columns), lowest weight first; 0 or a kind of bit.
        tree: one of the constants of this module.

    Returns:
        The placed compressors in the order of levels and columns, shape (n, 5): level, column, bits
        taken (2 half adder, 3 full adder, 4 a 4:2 compressor), 1 with an intermediate carry in,
        place of a constant one among the bits taken or -1; what is left, shape (2, columns): bits
        of each column and place of a constant among them or -1; the depth in full-adder delays.
    """
    n_rows, width = rows.shape
    capacity = 64 + 4 * n_rows * width
    placed = np.empty((capacity, _FIELDS), np.int32)
    height = np.zeros(width, np.int32)
    constant = np.full(width, -1, np.int32)
    if tree == LINEAR:
        return _linear(rows, placed, height, constant)
    for c in range(width):
        for r in range(n_rows):
            if rows[r, c]:
                if rows[r, c] == CONSTANT:
                    constant[c] = height[c]
                height[c] += 1
    n = 0
    depth = 0
    while True:
        tallest = 0
        for c in range(width):
            tallest = max(tallest, height[c])
        if tallest <= 2 or n > capacity - width * (tallest + 1):
            break
        target = 2
        if tree == DADDA:
            while target * 3 // 2 < tallest:
                target = target * 3 // 2
        elif tree == FOUR_TO_TWO:
            while target * 2 < tallest:
                target *= 2
        carries = 0  # from the column below, at this level
        intermediate = 0  # likewise, of its 4:2 compressors
        twice = False
        for c in range(width):
            left = height[c]
            taken = 0
            made = 0
            carry_out = 0
            intermediate_out = 0
            unused = intermediate
            while True:
                excess = left + made + carries + unused - target
                takes = 0
                with_carry = 0
                if tree == WALLACE:
                    takes = 3 if left >= 3 else (2 if left == 2 else 0)
                elif excess >= 3 and left >= 4 and tree == FOUR_TO_TWO:
                    takes = 4
                    with_carry = 1 if unused else 0
                elif excess >= 2 and left >= 3:
                    takes = 3
                elif excess >= 1 and left >= 2:
                    takes = 2
                if takes == 0:
                    break
                at = constant[c] - taken
                placed[n, 0] = depth
                placed[n, 1] = c
                placed[n, 2] = takes
                placed[n, 3] = with_carry
                placed[n, 4] = at if 0 <= at < takes else -1
                n += 1
                taken += takes
                left -= takes
                made += 1
                carry_out += 1
                if takes == 4:
                    twice = True
                    intermediate_out += 1
                    unused -= with_carry
            constant[c] = constant[c] - taken if constant[c] >= taken else -1
            height[c] = left + made + carries + unused
            carries = carry_out
            intermediate = intermediate_out
        depth += 2 if twice else 1
    return placed[:n].copy(), np.stack((height, constant)), depth


@compiled_once()
def _linear(
    rows: NDArray[np.uint8],
    placed: NDArray[np.int32],
    height: NDArray[np.int32],
    constant: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """One row after the other into a pair of rows: a carry-save adder for each."""
    n_rows, width = rows.shape
    n = 0
    depth = 0
    for r in range(n_rows):
        if r >= 2:
            depth += 1
        carry = 0
        for c in range(width):
            if rows[r, c]:
                if rows[r, c] == CONSTANT:
                    constant[c] = height[c]
                height[c] += 1
            if r < 2:
                continue
            carry_out = 0
            if height[c] >= 2:
                placed[n, 0] = depth - 1
                placed[n, 1] = c
                placed[n, 2] = height[c]
                placed[n, 3] = 0
                placed[n, 4] = constant[c]
                n += 1
                constant[c] = -1
                height[c] = 1
                carry_out = 1
            height[c] += carry
            carry = carry_out
    return placed[:n].copy(), np.stack((height, constant)), depth


@compiled_once()
def latest(  # noqa: C901  (one compiled loop, as above)
    rows: NDArray[np.uint8], placed: NDArray[np.int32], tree: int, lead: float
) -> float:
    """When the last bit of a reduced heap is there, full-adder delays after its partial products.

    Args:
        rows: as :func:`place` got them.
        placed: as it returned them.
        tree: likewise.
        lead: how much earlier than partial products the bits are there that registers feed back,
            full-adder delays.
    """
    ready = np.array([0.0, 0.0, 0.0, _EARLY, -lead])  # by kind of bit
    n_rows, width = rows.shape
    # Bits of a column wait in a queue; a level adds carries from the column below, then sums.
    arriving = np.full(width + 1, n_rows, np.int64)
    for i in range(len(placed)):
        arriving[placed[i, 1]] += 1
        arriving[placed[i, 1] + 1] += 1 + (placed[i, 2] == 4)
    capacity = arriving.max()
    queue = np.empty((width, capacity), np.float64)
    head = np.zeros(width, np.int64)
    tail = np.zeros(width, np.int64)
    first = min(n_rows, 2) if tree == LINEAR else n_rows
    for r in range(first):
        for c in range(width):
            if rows[r, c]:
                queue[c, tail[c]] = ready[rows[r, c]]
                tail[c] += 1
    sums = np.empty((width, capacity), np.float64)
    carries = np.empty((width + 1, capacity), np.float64)
    between = np.empty((width + 1, capacity), np.float64)
    n_sums = np.zeros(width, np.int64)
    n_carries = np.zeros(width + 1, np.int64)
    n_between = np.zeros(width + 1, np.int64)
    used = np.zeros(width + 1, np.int64)
    bits = np.empty(3, np.float64)
    at = 0
    r = first
    while at < len(placed) or (tree == LINEAR and r < n_rows):
        if tree == LINEAR:
            level = r - 2
            for c in range(width):
                if rows[r, c]:
                    queue[c, tail[c]] = ready[rows[r, c]]
                    tail[c] += 1
            r += 1
        else:
            level = placed[at, 0]
        n_sums[:] = 0
        n_carries[:] = 0
        n_between[:] = 0
        used[:] = 0
        while at < len(placed) and placed[at, 0] == level:
            c, takes, one = placed[at, 1], placed[at, 2], placed[at, 4]
            here = head[c]
            head[c] += takes
            bits[:] = _EARLY
            n = 0
            for k in range(min(takes, 3)):
                if k != one:
                    bits[n] = queue[c, here + k]
                    n += 1
            if takes == 4:
                inner, out = _outputs(bits, 3, 0 <= one < 3)
                between[c + 1, n_between[c + 1]] = out
                n_between[c + 1] += 1
                bits[:] = _EARLY
                bits[0] = inner
                n = 1
                if one != 3:
                    bits[n] = queue[c, here + 3]
                    n += 1
                if placed[at, 3]:
                    bits[n] = between[c, used[c]]
                    used[c] += 1
                total, carry = _outputs(bits, 3 if placed[at, 3] else 2, one == 3)
            else:
                total, carry = _outputs(bits, takes, one >= 0)
            sums[c, n_sums[c]] = total
            n_sums[c] += 1
            carries[c + 1, n_carries[c + 1]] = carry
            n_carries[c + 1] += 1
            at += 1
        for c in range(width):
            if tree == LINEAR:
                for k in range(n_sums[c]):
                    queue[c, tail[c]] = sums[c, k]
                    tail[c] += 1
            for k in range(n_carries[c]):
                queue[c, tail[c]] = carries[c, k]
                tail[c] += 1
            for k in range(used[c], n_between[c]):
                queue[c, tail[c]] = between[c, k]
                tail[c] += 1
            if tree != LINEAR:
                for k in range(n_sums[c]):
                    queue[c, tail[c]] = sums[c, k]
                    tail[c] += 1
    end = 0.0
    for c in range(width):
        for k in range(head[c], tail[c]):
            end = max(end, queue[c, k])
    return end


@compiled_once()
def chain_gates(left: NDArray[np.int32]) -> int:
    """And-inverter gates of the carry chain that adds the two rows that are left of a heap.

    Synthesis propagates constants: where carry and rows have three variable bits, a column needs a
    full adder; where they have two, also beside a constant one, a half adder; else no gate.

    Args:
        left: as :func:`place` returned it.
    """
    gates = 0
    carry = 0
    for column in range(left.shape[1]):
        bits = left[0, column] + carry
        variable = bits - (1 if left[1, column] >= 0 else 0)
        if variable == 3:
            gates += FULL_ADDER_GATES
        elif variable == 2:
            gates += HALF_ADDER_GATES
        carry = 1 if bits >= 2 else 0
    return gates


@compiled_once()
def _outputs(bits: NDArray[np.float64], size: int, fixed: bool) -> tuple[float, float]:
    """When sum and carry of a compressor are there.

    Args:
        bits: when its variable inputs are there, in their order, shape (3,).
        size: inputs, with a constant one if there is one.
        fixed: whether there is one.
    """
    first = max(bits[0], bits[1])
    if size == 2 and fixed:
        return first + _INVERTER, first - _MERGED
    if size == 2 or fixed:
        return first + _HALF_SUM, first + _HALF_CARRY
    total = max(first + _SUM, bits[2] + _SUM_OF_THIRD)
    return total, max(first + _CARRY, bits[2] + _CARRY_OF_THIRD)
