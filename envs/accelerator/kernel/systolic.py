"""Rigid systolic arrays: exact folds, buffer accesses, memory traffic and stalls, compiled.

A layer is the product of M x K inputs with K x N weights, laid on the array in folds: output
stationary M over rows and N over columns, weight stationary K and N, input stationary K and M
(SCALE-Sim, Samajdar et al., ISPASS 2020). Cycles and buffer accesses are those of SCALE-Sim 3.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.loopnest import (
    H_BUFFER,
    H_COLUMNS,
    H_DATAFLOW,
    H_DRAM,
    H_INPUT_PART,
    H_LANES,
    H_OUTPUT_PART,
    H_ROWS,
    H_STORAGE,
    H_SUM,
    H_WEIGHT_PART,
    H_WORD,
    ceil_div,
    settle,
    whole_batch,
    windows,
)
from archgym.envs.accelerator.kernel.results import better, score
from archgym.envs.accelerator.kernel.scalesim.stalls import stalled

__all__ = ["fold"]


@compiled
def fold(given: Ints, hw: Floats, chosen: bool, objective: int, found: Floats) -> None:
    """One layer on a systolic array, into ``found`` (``vectors.FOUND``).

    An array is rigid: data skew through all of its rows and columns, whether they work or not, so
    that a larger one may be slower. What may be chosen is the order of the folds, and folds of a
    half, a quarter, ... of the rows and columns that the layer fills, of which more stays in the
    buffer.

    Args:
        given: a row of ``LayerTable.bounds``.
        hw: as in ``vectors.HARDWARE``.
        chosen: whether order and size of the folds may be chosen; else they are as large as the
            array, and columns are the outer loop.
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
    folded(given, hw, chosen, flow, down, across, found)
    if not chosen or hw[H_STORAGE] > 0:
        return
    trial = np.zeros(len(found))
    i = down
    while True:
        j = across
        while True:
            # The array's own time is known before, and grows with the folds.
            if array_time(hw, flow, i * j, m, n, k, float(given[7])) > found[0] and objective == 0:
                break
            folded(given, hw, chosen, flow, i, j, trial)
            if better(score(objective, trial[0], trial[6]), score(objective, found[0], found[6])):
                for x in range(len(found)):
                    found[x] = trial[x]
            if j >= wide:
                break
            j = min(2 * j, wide)
        if i >= high or (
            objective == 0
            and array_time(hw, flow, 2 * i * across, m, n, k, float(given[7])) > found[0]
        ):
            return
        i = min(2 * i, high)


@compiled
def array_time(hw: Floats, flow: int, folds: int, m: int, n: int, k: int, groups: float) -> float:
    """Cycles of the array alone, as SCALE-Sim counts them: up to the last one, from 0.

    But no array does more than its multipliers can (one of a single PE has no skew).
    """
    rows = int(hw[H_ROWS])
    columns = int(hw[H_COLUMNS])
    skew = rows + columns - 2 if flow == 0 else 2 * rows + columns - 2
    deep = k if flow == 0 else (m if flow == 1 else n)
    peak = hw[H_LANES] * rows * columns
    counted = groups * folds * (ceil_div(deep, int(hw[H_LANES])) + skew) - 1.0
    return float(max(counted, groups * m * n * k / peak))


@compiled
def folded(
    given: Ints, hw: Floats, chosen: bool, flow: int, down: int, across: int, found: Floats
) -> None:
    """One layer in ``down`` x ``across`` folds, into ``found``; see :func:`fold`."""
    rows = int(hw[H_ROWS])
    columns = int(hw[H_COLUMNS])
    groups = given[7]
    m = given[8] * given[4] * given[5]
    n = given[0]
    k = given[1] * given[2] * given[3]
    folds = down * across
    compute = array_time(hw, flow, folds, m, n, k, float(groups))
    macs = float(groups) * m * n * k
    layer = np.empty(9, np.int64)
    whole_batch(given, layer)
    unique = float(layer[1]) * windows(layer[4], layer[8], layer[2], layer[6])
    unique *= windows(layer[5], 1, layer[3], layer[6])
    weights = float(n) * k
    outputs = float(m) * n
    register = np.zeros(4)
    register[0] = groups * (float(m) * k * (across if flow < 2 else 1))
    register[1] = groups * (weights * (down if flow == 0 else (1 if flow == 1 else across)))
    register[2] = groups * outputs * (1 if flow == 0 else down)
    register[3] = register[2] - groups * outputs
    if hw[H_STORAGE] > 0 and flow == 0:
        register[2] += groups * folds * (rows + columns)  # SCALE-Sim counts empty drain cycles too
    dram = np.zeros(4)
    late = 0.0
    if hw[H_STORAGE] > 0:
        late = prefetched(given, flow, hw, dram)
    else:
        resident(flow, down, across, chosen, unique, weights, outputs, hw, dram)
        for i in range(4):
            dram[i] *= groups
    # Nothing but the skew delays the first cycle; SCALE-Sim starts with the buffers filled.
    settle(layer, compute, macs, float(rows if flow > 0 else 1), 0.0, dram, register, hw, found)
    if hw[H_STORAGE] > 0:
        found[0] = compute + late


@compiled
def resident(
    flow: int,
    down: int,
    across: int,
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
    """
    word = hw[H_WORD]
    part = hw[H_SUM]
    best = np.inf
    for order in range(2 if chosen else 1):
        for stays in range(2):
            if flow == 0:  # inputs follow rows, weights columns, outputs both
                by_row, by_column = unique * word, weights * word
                room_both = outputs * part / (down * across)
            elif flow == 1:
                by_row, by_column = unique * word, outputs * part
                room_both = weights * word / (down * across)
            else:
                by_row, by_column = weights * word, outputs * part
                room_both = unique * word / (down * across)
            outer, inner = (
                (by_column / across, by_row) if order == 0 else (by_row / down, by_column)
            )
            turns = across if order == 0 else down
            short = inner / (down if order == 0 else across)
            need_inner = inner if stays else short
            row_need = need_inner if order == 0 else outer
            column_need = outer if order == 0 else need_inner
            if flow == 0:
                needs = (row_need, column_need, room_both)
            elif flow == 1:
                needs = (row_need, room_both, column_need)
            else:
                needs = (room_both, row_need, column_need)
            if hw[H_INPUT_PART] >= 0:
                ok = (
                    needs[0] <= hw[H_INPUT_PART]
                    and needs[1] <= hw[H_WEIGHT_PART]
                    and needs[2] <= hw[H_OUTPUT_PART]
                )
            else:
                ok = needs[0] + needs[1] + needs[2] <= hw[H_BUFFER]
            again = 1.0 if stays or turns == 1 else float(turns)
            row_times = again if order == 0 else 1.0
            column_times = again if order == 1 else 1.0
            if not ok:
                if stays or order > 0:
                    continue
                # Not even a fold's share fits: everything streams past at every fold.
                row_times = float(across)
                column_times = float(down)
            i = unique * (row_times if flow < 2 else 1.0)
            w = weights * (column_times if flow == 0 else (1.0 if flow == 1 else row_times))
            o = outputs * (column_times if flow > 0 else 1.0)
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
