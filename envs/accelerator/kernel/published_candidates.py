"""The mappings that dataflows are known by, as candidates of the mapper, compiled.

On a part of the array, or with less in each processing element, a known mapping may fit a buffer
that it would not fit otherwise. A larger array therefore costs no more than a smaller one.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import DIMS, C, K, P, Q, R, window
from archgym.envs.accelerator.kernel.loopnest import (
    H_BUFFER_PJ,
    H_BYPASS,
    H_COLUMNS,
    H_DATAFLOW,
    H_DOUBLE,
    H_DRAM,
    H_DRAM_PJ,
    H_INPUT_RF_PJ,
    H_LANES,
    H_LINKS,
    H_MAC_PJ,
    H_NOC_PJ,
    H_OUTPUT_RF_PJ,
    H_ROWS,
    H_WEIGHT_RF_PJ,
    H_WORD,
    ceil_div,
    whole_batch,
)
from archgym.envs.accelerator.kernel.published_mappings import FORMS, published
from archgym.envs.accelerator.kernel.results import better, products, score
from archgym.envs.accelerator.kernel.spatial_layouts import MAX_PARTS, first_bytes, side_parts
from archgym.envs.accelerator.kernel.two_level_mapping import bounds_of, mapped

__all__ = ["known"]

SPREAD = np.array([[K, C], [P, Q], [P, R], [K, Q], [Q, -1], [C, -1]], dtype=np.int64)
"""Loops that clusters and their processing elements share out, by dataflow."""


@compiled
def turns(dims: Ints, flow: int, rows: int, columns: int) -> float:
    """Steps that a known mapping takes at least, all processing elements at work."""
    sizes = np.empty(2, np.int64)
    sizes[0] = rows
    sizes[1] = columns
    if flow == 2:
        sizes[1] = min(dims[R], rows * columns)
        sizes[0] = max(1, rows * columns // sizes[1])
    elif flow > 3:
        sizes[0] = rows * columns
    steps = 1.0
    for dim in range(DIMS):
        bound = dims[dim]
        for level in range(2):
            if SPREAD[flow, level] == dim:
                bound = ceil_div(bound, sizes[level])
        steps *= bound
    return steps


@compiled
def used(dims: Ints, flow: int, rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns that a known mapping has work for; more of them change nothing."""
    if flow == 2:
        high = min(dims[R], rows * columns)
        return min(max(1, rows * columns // high), dims[P]), high
    if flow > 3:
        return min(rows * columns, dims[SPREAD[flow, 0]]), 1
    return min(rows, dims[SPREAD[flow, 0]]), min(columns, dims[SPREAD[flow, 1]])


@compiled
def summed(flow: int, pair: tuple[int, int], depthwise: bool) -> int:
    """Products that the array adds up before it writes a partial sum, of what is `used` of it."""
    if flow == 2:
        return pair[1]  # down the rows of a filter
    if depthwise or flow not in (0, 5):
        return 1
    return pair[1] if flow == 0 else pair[0]


@compiled
def insert_pair(tried: Ints, count: int, pair: tuple[int, int], across: int) -> int:
    """Appends what is used of an array and the bound of output columns; the same count if known."""
    for n in range(count):
        if tried[n, 0] == pair[0] and tried[n, 1] == pair[1] and tried[n, 2] == across:
            return count
    tried[count, 0] = pair[0]
    tried[count, 1] = pair[1]
    tried[count, 2] = across
    return count + 1


@compiled
def floors(given: Ints, hw: Floats) -> tuple[float, float]:
    """Least time and energy of a layer, whatever its mapping: all words move once.

    The time is that of the memory, in cycles, and leaves out what comes before the first one.
    """
    layer = np.empty(9, np.int64)
    whole_batch(given, layer)
    groups = float(layer[7])
    # A stride that is longer than the window leaves inputs out.
    rows = layer[8] * window(given[4], layer[2], layer[6])
    inputs = groups * layer[1] * rows * window(layer[5], layer[3], layer[6])
    weights = groups * layer[0] * layer[1] * layer[2] * layer[3]
    outputs = groups * layer[0] * layer[4] * layer[5]
    moved = (inputs + weights + outputs) * hw[H_WORD]
    links = 1.0 if hw[H_LINKS] == 0.0 else (3.0 if hw[H_LINKS] == 1.0 else 2.0)
    each = hw[H_MAC_PJ] + hw[H_INPUT_RF_PJ] + hw[H_WEIGHT_RF_PJ]
    energy = products(layer) * each + moved * (hw[H_DRAM_PJ] + hw[H_NOC_PJ])
    buffered = inputs + outputs if hw[H_BYPASS] > 0 else inputs + weights + outputs
    energy += 2.0 * buffered * hw[H_WORD] * hw[H_BUFFER_PJ]
    energy += inputs * hw[H_INPUT_RF_PJ] + weights * hw[H_WEIGHT_RF_PJ]
    return moved / (hw[H_DRAM] * links), energy * (1.0 - 1e-12)


@compiled
def known(given: Ints, hw: Floats, parts: bool, objective: int, legal: bool, found: Floats) -> bool:
    """Improves on ``found`` with known mappings; returns whether there is any mapping.

    Args:
        given: a row of ``LayerTable.bounds``.
        hw: as in ``vectors.HARDWARE``.
        parts: whether those on parts of the array, and that hold less in a processing element,
            are tried too.
        objective: as in ``vectors.OBJECTIVES``.
        legal: whether there is a mapping in ``found`` already.
        found: as in ``vectors.FOUND``.
    """
    outer = np.empty((DIMS, 3), np.int64)
    inner = np.empty((DIMS, 3), np.int64)
    dims = np.empty(DIMS, np.int64)
    rows = np.empty(MAX_PARTS, np.int64)
    columns = np.empty(MAX_PARTS, np.int64)
    trial = np.zeros(len(found))
    flow = int(hw[H_DATAFLOW])
    best = score(objective, found[0], found[6]) if legal else (np.inf, np.inf)
    min_cycles, min_energy = floors(given, hw)
    sums_pj = 2.0 * products(given) * given[8] * hw[H_OUTPUT_RF_PJ] * (1.0 - 1e-12)
    fill = first_bytes(hw) / hw[H_DRAM] if hw[H_DOUBLE] > 0 else 0.0
    last_row = side_parts(int(hw[H_ROWS]), hw, rows) - 1
    last_column = side_parts(int(hw[H_COLUMNS]), hw, columns) - 1
    tried = np.empty(((last_row + 1) * (last_column + 1), 3), np.int64)
    n_tried = 0
    for i in range(last_row, -1, -1):
        for j in range(last_column, -1, -1):
            flat = 0 if flow in (3, 4) else columns[j]
            times, depthwise = bounds_of(given, flat, dims)
            cycles = times * turns(dims, flow, rows[i], columns[j]) / hw[H_LANES]
            cycles = np.ceil((max(cycles, min_cycles) + fill) * (1.0 - 1e-12))
            if parts and score(objective, cycles, min_energy)[0] > best[0]:
                break  # nor are fewer columns any faster
            pair = used(dims, flow, rows[i], columns[j])
            energy = min_energy + sums_pj / summed(flow, pair, depthwise)
            if parts and not better(score(objective, cycles, energy), best):
                continue
            count = insert_pair(tried, n_tried, pair, dims[Q])
            if count == n_tried:
                continue
            n_tried = count
            for form in range(FORMS):
                clusters, pes, levels = published(dims, hw, rows[i], columns[j], form, outer, inner)
                if clusters == 0:
                    continue
                if mapped(
                    given,
                    dims,
                    times,
                    depthwise,
                    outer,
                    inner,
                    clusters,
                    pes,
                    levels,
                    hw,
                    objective,
                    best,
                    trial,
                ):
                    now = score(objective, trial[0], trial[6])
                    if better(now, best):
                        best = now
                        legal = True
                        for n in range(len(found)):
                            found[n] = trial[n]
                if not parts:
                    return legal
    return legal
