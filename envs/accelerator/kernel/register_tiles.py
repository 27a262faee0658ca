"""Candidates of the mapper inside the array: loop orders and register tiles, compiled."""

from __future__ import annotations

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import window
from archgym.envs.accelerator.kernel.loopnest import (
    H_DATAFLOW,
    H_INPUT_RF,
    H_OUTPUT_RF,
    H_WEIGHT_RF,
    ceil_div,
)

__all__ = ["MAX_REGISTERS", "orders_allowed", "register_tiles"]

MAX_REGISTERS = 512


@compiled
def orders_allowed(flow: int, order: int) -> bool:
    """Whether the dataflow's stationarity allows a loop order between buffer and array."""
    if flow == 0 or flow == 4:  # weights stay: pixels innermost
        return order == 0 or order == 2
    if flow == 1:  # outputs stay: input channels innermost
        return order == 1 or order == 4
    return True


@compiled
def window_allowed(flow: int, code: int, layer: Ints) -> bool:
    """Whether a PE may hold this part of the filter window: one weight, a row, or all of it."""
    if flow == 1:  # the window moves through the array
        return code == 2
    if flow == 2:  # a PE works on a row
        return code == 1
    if flow == 5:
        return code == 0
    if code == 1:
        return bool(layer[3] > 1)
    return bool(code == 0 or layer[2] > 1)


@compiled
def register_tiles(layer: Ints, spatial: Ints, hw: Floats, everything: bool, found: Ints) -> int:
    """Tiles of the register files: K, C, window code, Q, shape (n, 4); returns n.

    Sides are powers of two. Unless ``everything`` is asked for, of the input channels only the
    most that fit are kept, and the most with which the inputs fit too (so that they are held
    while the window slides): others only add traffic.
    """
    flow = int(hw[H_DATAFLOW])
    weights = max(hw[H_WEIGHT_RF], 1.0)
    sums = max(hw[H_OUTPUT_RF], 1.0)
    inputs = max(hw[H_INPUT_RF], 1.0)
    need_k = 1 if flow == 5 else ceil_div(layer[0], spatial[0])
    need_c = 1 if flow == 5 or flow == 1 else ceil_div(layer[1], spatial[1])
    need_q = 1 if flow == 5 or flow == 1 or flow == 2 else ceil_div(layer[5], spatial[4])
    count = 0
    for code in range(3):
        if not window_allowed(flow, code, layer):
            continue
        columns = layer[3] if code > 0 else 1
        size = columns * (layer[2] if code == 2 else 1)
        # Weights that stream past (ShiDianNao) need no room; a row that is longer than a
        # row-stationary PE's file comes in pieces.
        streams = flow == 1 or flow == 2
        k = 1
        while k <= sums and (k * size <= weights or flow == 1 or (streams and k == 1)):
            maximum = 1
            while maximum < need_c and maximum * 2 * size * k <= weights:
                maximum *= 2
            q = 1
            while True:
                along = window(q, columns, layer[6])
                full = q >= need_q or q * 2 * k > sums
                c = 1
                while c <= maximum:
                    last = c == maximum
                    edge = c * along <= inputs and c * 2 * along > inputs
                    kept = everything or (last and (code > 0 or full)) or (code > 0 and edge)
                    if kept and count < len(found):
                        found[count, 0] = k
                        found[count, 1] = c
                        found[count, 2] = code
                        found[count, 3] = 0 if flow == 2 else q
                        count += 1
                    c *= 2
                if full:
                    break
                q *= 2
            if k >= need_k:
                break
            k *= 2
    return count
