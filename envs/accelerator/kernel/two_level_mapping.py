"""One layer under a given two-level mapping: time, energy and traffic, compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.buffer_residency import reuse_levels
from archgym.envs.accelerator.kernel.cluster_levels import ANALYSED, analyse
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import DIMS, C, K, P, Q, R, S, volumes
from archgym.envs.accelerator.kernel.loopnest import (
    H_BUFFER,
    H_DATAFLOW,
    H_DRAM,
    H_LANES,
    H_MAESTRO,
    H_NOC,
    H_SUM,
    H_WORD,
    settle,
    whole_batch,
)
from archgym.envs.accelerator.kernel.results import better, score

__all__ = ["bounds_of", "mapped"]


@compiled
def bounds_of(given: Ints, flat_columns: int, dims: Ints) -> tuple[int, bool]:
    """Loop bounds of one group, into ``dims``; returns how often it runs, and if depthwise.

    A depthwise layer's groups are its channels. Images of a batch follow each other, unless
    nothing distinguishes their pixels from those of one image. The pixels of a matrix product
    have no rows and columns; they fill rows of ``flat_columns``, 0 for one long row.
    """
    depthwise = given[0] == 1 and given[1] == 1 and given[7] > 1
    dims[K] = given[0]
    dims[C] = given[7] if depthwise else given[1]
    dims[R] = given[2]
    dims[S] = given[3]
    dims[P] = given[4]
    dims[Q] = given[5]
    times = 1 if depthwise else given[7]
    if given[2] == 1 and given[3] == 1:
        dims[P] *= given[8]
        if dims[Q] == 1 and flat_columns == 0:
            dims[Q] = dims[P]
            dims[P] = 1
        elif dims[Q] == 1 and dims[P] % flat_columns == 0:
            dims[Q] = flat_columns
            dims[P] //= flat_columns
    else:
        times *= given[8]
    return times, depthwise


@compiled
def mapped(
    given: Ints,
    dims: Ints,
    times: int,
    depthwise: bool,
    outer: Ints,
    inner: Ints,
    clusters: int,
    pes: int,
    levels: int,
    hw: Floats,
    objective: int,
    best: tuple[float, float],
    found: Floats,
) -> bool:
    """One layer under a given two-level mapping, into ``found``; whether it fits the buffer.

    Nor does one count that cannot be better than ``best``, the score of another mapping: even if
    every word came from the memory once.
    """
    analysed = np.empty(ANALYSED)
    offchip = hw[H_DRAM] / hw[H_WORD] if hw[H_MAESTRO] > 0 else 0.0
    analyse(
        dims,
        outer,
        inner,
        clusters,
        pes,
        levels,
        given[6],
        depthwise,
        int(hw[H_LANES]),
        hw[H_NOC] / hw[H_WORD],
        offchip,
        hw[H_DATAFLOW] < 0,
        analysed,
    )
    register = np.empty(4)
    for i in range(3):
        register[i] = times * analysed[3 + i]
    channels = dims[C] if depthwise else dims[K]
    outputs = float(times) * channels * dims[P] * dims[Q]
    register[3] = max(0.0, register[2] - outputs)
    layer = np.empty(9, np.int64)
    whole_batch(given, layer)
    reduced = 1.0
    for i in range(DIMS):
        dim = outer[i, 0]
        summed = (dim == C and not depthwise) or dim in (R, S)
        if outer[i, 1] and summed:
            reduced *= min(clusters, dims[dim])
        dim = inner[i, 0]
        summed = (dim == C and not depthwise) or dim in (R, S)
        if levels > 1 and inner[i, 1] and summed:
            reduced *= min(pes, dims[dim])
    compute = times * analysed[1]
    macs = times * analysed[17]
    first = (analysed[9] + analysed[10]) * hw[H_WORD]
    once = np.empty(3, np.int64)
    dram = np.empty(4)
    if best[0] < np.inf and not hw[H_MAESTRO] > 0:
        volumes(dims, given[6], depthwise, once)
        for i in range(3):
            dram[i] = float(once[i]) * times
        dram[3] = 0.0
        settle(layer, compute, macs, reduced, first, dram, register, hw, found)
        if not better(score(objective, found[0], found[6]), best):
            return False
    sizes = np.empty(4)
    for i in range(4):
        sizes[i] = hw[H_SUM] if i == 2 else hw[H_WORD]
    # MAESTRO reports the buffer that a mapping needs; it has no limit.
    room = np.inf if hw[H_MAESTRO] > 0 else hw[H_BUFFER]
    if not reuse_levels(dims, outer, clusters, given[6], depthwise, sizes, room, dram):
        return False
    for i in range(4):
        dram[i] *= times
    settle(layer, compute, macs, reduced, first, dram, register, hw, found)
    # The steps' time, waits included, has gone into the cycles; of it the array's own:
    found[1] = times * analysed[2]
    if hw[H_MAESTRO] > 0:
        found[0] = times * analysed[0]
    return True
