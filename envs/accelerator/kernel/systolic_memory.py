"""Memory traffic and stalls of a rigid systolic array, compiled; see ``systolic.py``."""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.buffer_tiles import room, within
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.loopnest import (
    H_COLUMNS,
    H_DRAM,
    H_INPUT_PART,
    H_OUTPUT_PART,
    H_ROWS,
    H_SUM,
    H_WEIGHT_PART,
    H_WORD,
)
from archgym.envs.accelerator.kernel.scalesim.stalls import stalled

__all__ = ["prefetched", "resident"]


@compiled
def resident(
    flow: int,
    down: int,
    across: int,
    pieces: int,
    share: float,
    chosen: bool,
    unique: float,
    weights: float,
    outputs: float,
    hw: Floats,
    found: Floats,
) -> None:
    """Memory words of one group: what stays in the buffer is read once, the rest every fold.

    Of the three tensors one follows the folds' rows, one their columns and one both. The one that
    follows the outer loop is gone through once, with a fold's share of it in the buffer; the one
    that follows the inner loop is gone through again for every turn of the outer loop, unless all
    of it stays. Both loop orders are tried if one may be ``chosen``.

    The first two are what streams. If it is cut, the loop over its ``pieces`` is the outermost or
    stands between those over folds, and the third tensor, which is stationary in the array, comes
    again for every piece, unless it stays: all of it, or that of one turn of the outer loop.
    ``share`` is that of the longest piece.
    """
    word = hw[H_WORD]
    part = hw[H_SUM]
    if flow == 0:  # inputs follow rows, weights columns, outputs both
        by_row, by_column, by_both = unique * word, weights * word, outputs * part
    elif flow == 1:
        by_row, by_column, by_both = unique * word, outputs * part, weights * word
    else:
        by_row, by_column, by_both = weights * word, outputs * part, unique * word
    rooms = room(hw)
    best = np.inf
    for choice in range(16):
        order = choice & 1
        stays = choice & 2 > 0
        kept = choice & 4 > 0
        between = choice & 8 > 0
        if (order == 1 and not chosen) or (pieces == 1 and (kept or between)):
            continue
        turns, inside = (across, down) if order == 0 else (down, across)
        outer, inner = (by_column, by_row) if order == 0 else (by_row, by_column)
        outer_need = outer / turns * share
        inner_need = inner / inside * share
        if stays:
            inner_need = inner if between else inner * share
        both_need = by_both / (down * across)
        if kept:
            both_need = by_both / turns if between else by_both
        row_need, column_need = (inner_need, outer_need) if order == 0 else (outer_need, inner_need)
        if flow == 0:
            needs = (row_need, column_need, both_need)
        elif flow == 1:
            needs = (row_need, both_need, column_need)
        else:
            needs = (both_need, row_need, column_need)
        ok = within(needs[0], needs[1], needs[2], rooms)
        again = 1.0 if stays or turns == 1 else float(turns)
        row_times = again if order == 0 else 1.0
        column_times = again if order == 1 else 1.0
        both_times = 1.0 if kept else float(pieces)
        if not ok:
            if choice > 0:
                continue
            # Not even a fold's share fits: everything streams past at every fold.
            row_times = float(across)
            column_times = float(down)
        i = unique * (row_times if flow < 2 else both_times)
        w = weights * (column_times if flow == 0 else (both_times if flow == 1 else row_times))
        o = outputs * (column_times if flow > 0 else both_times)
        moved = (i + w + outputs) * word + 2.0 * (o - outputs) * part
        if moved < best:
            best = moved
            found[0] = i
            found[1] = w
            found[2] = o
            found[3] = o - outputs


@compiled
def prefetched(layer: Ints, flow: int, hw: Floats, found: Floats) -> float:
    """Memory words under SCALE-Sim's prefetcher, into ``found``; cycles that the array stalls.

    A link that brings a whole operand in a cycle has no limit, and none is counted.
    """
    groups = float(layer[7])
    m = float(layer[8]) * layer[4] * layer[5]
    n = float(layer[0])
    k = float(layer[1]) * layer[2] * layer[3]
    link = max(1.0, hw[H_DRAM] // hw[H_WORD])
    unlimited = link >= max(m * k, n * k, m * n)
    sizes = np.empty(3, np.int64)
    sizes[0] = max(2, int(2.0 * hw[H_INPUT_PART] / hw[H_WORD]))
    sizes[1] = max(2, int(2.0 * hw[H_WEIGHT_PART] / hw[H_WORD]))
    sizes[2] = max(2, int(2.0 * hw[H_OUTPUT_PART] / hw[H_WORD]))
    stalls = 0.0
    if unlimited:
        found[0] = m * k
        found[1] = n * k
        found[2] = m * n
    else:
        rows, columns = int(hw[H_ROWS]), int(hw[H_COLUMNS])
        stalls = float(stalled(layer, flow, rows, columns, sizes, int(link), found))
    for i in range(3):
        found[i] *= groups
    found[3] = max(0.0, found[2] - groups * m * n)
    return groups * stalls
