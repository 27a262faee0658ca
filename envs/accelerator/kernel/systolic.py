"""Rigid systolic arrays: folds and pieces of streams, exact in time and accesses, compiled.

A layer is the product of M x K inputs with K x N weights, laid on the array in folds: output
stationary M over rows and N over columns, weight stationary K and N, input stationary K and M
(SCALE-Sim, Samajdar et al., ISPASS 2020). Cycles and buffer accesses are those of SCALE-Sim 3.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.buffer_tiles import room, within
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.loopnest import (
    H_COLUMNS,
    H_DATAFLOW,
    H_LANES,
    H_ROWS,
    H_STORAGE,
    H_SUM,
    H_WORD,
    ceil_div,
    settle,
    whole_batch,
    windows,
)
from archgym.envs.accelerator.kernel.results import better, score
from archgym.envs.accelerator.kernel.scalesim.prefetching import prefetched

__all__ = ["fold"]


@compiled
def fold(given: Ints, hw: Floats, chosen: bool, objective: int, found: Floats) -> None:
    """One layer on a systolic array, into ``found`` (``vectors.FOUND``).

    An array is rigid: data skew through all of its rows and columns, whether they work or not, so
    that a larger one may be slower. What may be chosen is the order of the folds; folds of a half,
    a quarter, ... of the rows and columns that the layer fills; and a half, a quarter, ... of what
    streams through a fold at a time. Of smaller folds and shorter streams more stays in the buffer.

    Args:
        given: a row of ``LayerTable.bounds``.
        hw: as in ``vectors.HARDWARE``.
        chosen: whether order, size and length of the folds may be chosen; else they are as large
            as the array, all streams through each, and columns are the outer loop.
        objective: what is minimised, of ``vectors.OBJECTIVES``.
        found: becomes the result.
    """
    flow = int(hw[H_DATAFLOW]) - 6
    m = given[8] * given[4] * given[5]
    n = given[0]
    k = given[1] * given[2] * given[3]
    high = m if flow == 0 else k
    wide = m if flow == 2 else n
    down = ceil_div(high, int(hw[H_ROWS]))
    across = ceil_div(wide, int(hw[H_COLUMNS]))
    folded(given, hw, chosen, flow, down, across, 1, found)
    if not chosen or hw[H_STORAGE] > 0:
        return
    long = given[1] if flow == 0 else (m if flow == 1 else n)
    trial = np.zeros(len(found))
    i = down
    while True:
        j = across
        while True:
            cut = 1
            while True:
                once = folded(given, hw, chosen, flow, i, j, cut, trial)
                best = score(objective, found[0], found[6])
                # The array's own time and energy grow with folds and pieces.
                least = score(objective, trial[1], trial[7] + trial[8] + trial[9])
                last = once or not better(least, best)
                if better(score(objective, trial[0], trial[6]), best):
                    for x in range(len(found)):
                        found[x] = trial[x]
                if last or cut >= long:
                    break
                cut = min(2 * cut, long)
            last = last and cut == 1
            if last or j >= wide:
                break
            j = min(2 * j, wide)
        if i >= high or (last and j == across):
            return
        i = min(2 * i, high)


@compiled
def array_time(
    hw: Floats, flow: int, folds: int, pieces: int, m: int, n: int, k: int, groups: float
) -> float:
    """Cycles of the array alone, as SCALE-Sim counts them: up to the last one, from 0.

    Every piece of a stream skews anew. But no array does more than its multipliers can (one of a
    single PE has no skew).
    """
    rows = int(hw[H_ROWS])
    columns = int(hw[H_COLUMNS])
    lanes = int(hw[H_LANES])
    skew = rows + columns - 2 if flow == 0 else 2 * rows + columns - 2
    deep = k if flow == 0 else (m if flow == 1 else n)
    # The last step of each piece may leave lanes idle.
    steps = (deep + pieces * (lanes - 1)) // lanes
    peak = hw[H_LANES] * rows * columns
    counted = groups * folds * (steps + pieces * skew) - 1.0
    return float(max(counted, groups * m * n * k / peak))


@compiled
def pieces_of(given: Ints, flow: int, cut: int, found: Ints) -> float:
    """How a stream is cut into about ``cut`` pieces, and the share of the longest.

    Pixels are cut by rows, and rows by columns where that is not enough; channels by number.

    Args:
        given: a row of ``LayerTable.bounds``.
        flow: 0 output stationary (channels of the inputs stream), 1 weight stationary (pixels), 2
            input stationary (channels of the outputs).
        cut: pieces that are asked for.
        found: becomes the pieces along rows or channels, and along columns, shape (2,).
    """
    total = given[1] if flow == 0 else (given[8] * given[4] if flow == 1 else given[0])
    each = ceil_div(total, min(cut, total))
    found[0] = ceil_div(total, each)
    found[1] = 1
    share = each / total
    if cut > total:
        each = ceil_div(given[5], ceil_div(cut, total))
        found[1] = ceil_div(given[5], each)
        share *= each / given[5]
    return float(share)


@compiled
def folded(
    given: Ints,
    hw: Floats,
    chosen: bool,
    flow: int,
    down: int,
    across: int,
    cut: int,
    found: Floats,
) -> bool:
    """One layer in ``down`` x ``across`` folds, the stream of each in ``cut`` pieces; see `fold`.

    Returns:
        Whether every word passes the memory only once.
    """
    rows = int(hw[H_ROWS])
    columns = int(hw[H_COLUMNS])
    groups = given[7]
    m = given[8] * given[4] * given[5]
    n = given[0]
    k = given[1] * given[2] * given[3]
    parts = np.empty(2, np.int64)
    share = pieces_of(given, flow, cut, parts)
    pieces = parts[0] * parts[1]
    folds = down * across
    compute = array_time(hw, flow, folds, pieces, m, n, k, float(groups))
    macs = float(groups) * m * n * k
    layer = np.empty(9, np.int64)
    whole_batch(given, layer)
    least = float(layer[1]) * windows(layer[4], layer[8], layer[2], layer[6])
    least *= windows(layer[5], 1, layer[3], layer[6])
    unique = least
    if flow == 1:  # pieces read the pixels again that their windows share
        unique = float(layer[1]) * windows(layer[4], max(parts[0], layer[8]), layer[2], layer[6])
        unique *= windows(layer[5], parts[1], layer[3], layer[6])
    weights = float(n) * k
    outputs = float(m) * n
    # What is stationary enters the array again for every piece.
    register = np.zeros(4)
    register[0] = groups * (float(m) * k * (across if flow < 2 else pieces))
    register[1] = groups * (weights * (down if flow == 0 else (pieces if flow == 1 else across)))
    register[2] = groups * outputs * (pieces if flow == 0 else down)
    register[3] = register[2] - groups * outputs
    if hw[H_STORAGE] > 0 and flow == 0:
        register[2] += groups * folds * (rows + columns)  # SCALE-Sim counts empty drain cycles too
    dram = np.zeros(4)
    late = 0.0
    if hw[H_STORAGE] > 0:
        late = prefetched(given, flow, hw, dram)
    else:
        resident(flow, down, across, pieces, share, chosen, unique, weights, outputs, hw, dram)
        for i in range(4):
            dram[i] *= groups
    # Nothing but the skew delays the first cycle; SCALE-Sim starts with the buffers filled.
    settle(layer, compute, macs, float(rows if flow > 0 else 1), 0.0, dram, register, hw, found)
    if hw[H_STORAGE] > 0:
        found[0] = compute + late
    return bool(dram[0] <= groups * least and dram[1] <= groups * weights and dram[3] <= 0)


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
