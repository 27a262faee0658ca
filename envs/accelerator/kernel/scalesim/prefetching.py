"""Memory traffic and stalls under SCALE-Sim's prefetcher, compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.loopnest import (
    H_COLUMNS,
    H_DRAM,
    H_INPUT_PART,
    H_OUTPUT_PART,
    H_ROWS,
    H_WEIGHT_PART,
    H_WORD,
)
from archgym.envs.accelerator.kernel.scalesim.stalls import stalled

__all__ = ["prefetched"]


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
