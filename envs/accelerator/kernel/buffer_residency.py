"""Memory traffic of a two-level mapping, by what stays in the buffer; compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import DIMS, coupled, split, volumes

__all__ = ["reuse_levels"]


@compiled
def turns(loops: Ints, steps: Ints, level: int, tensor: int, depthwise: bool) -> float:
    """How often a tensor comes if it stays in the buffer inside of loop ``level``."""
    again = 1.0
    inside = False
    for i in range(level - 1, -1, -1):
        if coupled(tensor, loops[i, 0], depthwise):
            inside = inside or steps[i] > 1
        elif inside:
            again *= steps[i]
    return again


@compiled
def reuse_levels(
    dims: Ints,
    loops: Ints,
    clusters: int,
    stride: int,
    depthwise: bool,
    sizes: Floats,
    capacity: float,
    found: Floats,
) -> bool:
    """Memory words when the buffer holds more than the working tile, into ``found``.

    For each tensor a loop is chosen inside of which all its data stay in the buffer; the choice
    with the fewest bytes to and from memory among all that fit is exact (at most 343 choices).

    Args:
        dims: loop bounds, shape (6,).
        loops: the outer level's loops, see ``levels.analyse``.
        clusters: its parts.
        stride: of the layer.
        depthwise: whether outputs have the inputs' channels.
        sizes: bytes of an input, a weight, a partial sum and a finished output, shape (4,).
        capacity: bytes of the buffer that may be used.
        found: words of input, weight, output written, partial sums read back, shape (4,).

    Returns:
        Whether even the smallest tiles fit.
    """
    steps = np.empty(DIMS, np.int64)
    chunk = np.empty(DIMS, np.int64)
    last = np.empty(DIMS, np.int64)
    cover = np.empty(DIMS, np.int64)
    full = np.empty(3, np.int64)
    room = np.empty((3, DIMS + 1))
    times = np.empty((3, DIMS + 1))
    split(dims, loops, clusters, steps, chunk, last)
    for level in range(DIMS + 1):
        for i in range(DIMS):
            dim = loops[i, 0]
            cover[dim] = dims[dim] if i >= level else min(chunk[i], dims[dim])
        volumes(cover, stride, depthwise, full)
        for tensor in range(3):
            times[tensor, level] = turns(loops, steps, level, tensor, depthwise)
            room[tensor, level] = full[tensor] * sizes[tensor]
    volumes(dims, stride, depthwise, full)
    best = np.inf
    for i in range(DIMS + 1):
        for w in range(DIMS + 1):
            if room[0, i] + room[1, w] > capacity:
                continue
            for o in range(DIMS + 1):
                if room[0, i] + room[1, w] + room[2, o] > capacity:
                    continue
                spills = times[2, o] - 1.0
                moved = (
                    full[0] * sizes[0] * times[0, i]
                    + full[1] * sizes[1] * times[1, w]
                    + full[2] * (sizes[3] + 2.0 * spills * sizes[2])
                )
                if moved < best:
                    best = moved
                    found[0] = full[0] * times[0, i]
                    found[1] = full[1] * times[1, w]
                    found[2] = full[2] * times[2, o]
                    found[3] = full[2] * spills
    return best < np.inf
