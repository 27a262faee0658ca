"""How long a systolic array waits for SCALE-Sim's memories, cycle by cycle; compiled.

Each of the three memories has a link of its own. What the array takes and gives in a cycle follows
from its folds; the array stands still for the slowest of the three.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.scalesim.operands import (
    fetch_order,
    input_parts,
    outside,
    weight_parts,
)
from archgym.envs.accelerator.kernel.scalesim.read_buffer import (
    ACCESSES,
    filled,
    read_block,
    read_skewed,
)
from archgym.envs.accelerator.kernel.scalesim.write_buffer import WRITTEN, drained, empty, write

__all__ = ["stalled"]


@compiled
def outputs_at(step: int, depth: int, used: int) -> int:
    """Columns that give an output ``step`` cycles after the first; each gives ``depth`` of them."""
    return max(0, min(step, used - 1) - max(0, step - depth + 1) + 1)


@compiled
def stalled(
    layer: Ints, flow: int, rows: int, columns: int, sizes: Ints, link: int, found: Floats
) -> int:
    """Cycles that one group of a layer stalls on an array.

    Args:
        layer: a row of ``LayerTable.bounds``.
        flow: 0 output, 1 weight, 2 input stationary.
        rows: of the array.
        columns: of the array.
        sizes: words of the memories for inputs, weights and outputs, shape (3,).
        link: words a cycle of each link.
        found: becomes words read of inputs and of weights, and written of outputs.
    """
    by_pixel, by_window, n_inputs = input_parts(layer)
    by_filter, in_filter, n_weights = weight_parts(layer)
    # The first operand streams in along the rows, skewed; the second one along the columns, or it
    # stays in the array.
    past = outside(layer, n_inputs)
    first_deep, first_along, first_void = by_window, by_pixel, past
    second_deep, second_along, second_void = in_filter, by_filter, np.zeros(n_weights, np.int64)
    if flow == 1:
        first_deep, first_along = by_pixel, by_window
    elif flow == 2:
        first_deep, first_along, first_void = by_filter, in_filter, second_void
        second_deep, second_along, second_void = by_window, by_pixel, past
    first_order = fetch_order(first_deep, first_along, rows, True, first_void)
    second_order = fetch_order(second_deep, second_along, columns, flow == 0, second_void)
    first_size = sizes[1] if flow == 2 else sizes[0]
    second_size = sizes[0] if flow == 2 else sizes[1]
    deep = len(first_deep)
    high = len(first_along)
    down = -(-high // rows)
    across = -(-len(second_along) // columns)
    stream = down * rows * deep
    first, first_held = filled(first_order, stream, first_void, first_size, link)
    stream = across * columns * len(second_deep)
    second, second_held = filled(second_order, stream, second_void, second_size, link)
    outputs = len(by_pixel) * len(by_filter) * (1 if flow == 0 else down)
    out, lines = empty(sizes[2], link, outputs)
    lag = 0 if flow == 0 else rows
    length = deep + rows + columns - 2 + lag
    stall = 0
    total = 0
    cycle = 0
    for i in range(across * down):
        column = i // down
        row = i % down
        used = min(columns, len(second_along) - column * columns)
        working = min(rows, high - row * rows)
        for step in range(length):
            now = cycle + stall
            wait = read_skewed(
                first_deep, first_along, row, rows, step - lag, now, first_order, first, first_held
            )
            # A column gives an output for each of its rows, or for each word that streams past it.
            if flow == 0:
                other = read_skewed(
                    second_deep,
                    second_along,
                    column,
                    columns,
                    step,
                    now,
                    second_order,
                    second,
                    second_held,
                )
                # Outputs leave at the bottom, the last row first.
                late = step - deep + 1 - (rows - working)
                count = outputs_at(late, working, used) if late >= 0 else 0
            else:
                other = 0
                if step < rows and rows - 1 - step < working:
                    other = read_block(
                        second_deep,
                        second_along,
                        column,
                        columns,
                        row * rows + rows - 1 - step,
                        now,
                        second_order,
                        second,
                        second_held,
                    )
                late = step - 2 * rows + 1
                count = outputs_at(late, deep, used) if late >= 0 else 0
            written = write(count, now, out, lines)
            total = max(total, now + written)
            stall += max(wait, other, written)
            cycle += 1
    drained(out, lines)
    inputs, weights = (second, first) if flow == 2 else (first, second)
    found[0] = inputs[ACCESSES]
    found[1] = weights[ACCESSES]
    found[2] = out[WRITTEN]
    return total - (cycle - 1)
