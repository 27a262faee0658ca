"""Data-centric reuse analysis of a two-level mapping, compiled.

The method is that of MAESTRO (Kwon et al., MICRO 2019): a cluster level walks over its tiles in
the order of its loops; in each kind of step (first, middle, last shorter one, for every loop) the
data that are new to the array follow from which loop advanced. Steps of a kind are counted, not
walked. Loops are over K, C, R, S, P, Q (0 to 5), tiles of outputs; inputs follow from the window.
"""

from __future__ import annotations

from archgym.envs.accelerator.kernel.arrays import Ints
from archgym.envs.accelerator.kernel.compiled import compiled

__all__ = [
    "DIMS",
    "coupled",
    "new_words",
    "next_kind",
    "split",
    "start",
    "unshared",
    "volumes",
    "window",
]

DIMS = 6
K, C, R, S, P, Q = range(DIMS)


@compiled
def window(outputs: int, size: int, stride: int) -> int:
    """Distinct inputs along one axis."""
    return (outputs - 1) * min(stride, size) + size


@compiled
def volumes(cover: Ints, stride: int, depthwise: bool, found: Ints) -> None:
    """Input, weight and output words of a tile, into ``found``."""
    rows = window(cover[P], cover[R], stride)
    columns = window(cover[Q], cover[S], stride)
    found[0] = cover[C] * rows * columns
    found[1] = cover[K] * cover[C] * cover[R] * cover[S]
    found[2] = (cover[C] if depthwise else cover[K]) * cover[P] * cover[Q]


@compiled
def coupled(tensor: int, dim: int, depthwise: bool) -> bool:
    """Whether a tensor (0 input, 1 weight, 2 output) changes along a loop."""
    if tensor == 0:
        return dim != K
    if tensor == 1:
        return dim in (K, C, R, S)
    return dim in (P, Q) or dim == (C if depthwise else K)


@compiled
def split(dims: Ints, loops: Ints, clusters: int, steps: Ints, chunk: Ints, last: Ints) -> None:
    """Steps of each loop, what one covers, and what the last one covers."""
    for i in range(DIMS):
        dim = loops[i, 0]
        size = min(loops[i, 2], dims[dim])
        chunk[i] = size * clusters if loops[i, 1] else size
        steps[i] = -(-dims[dim] // chunk[i])
        last[i] = dims[dim] - (steps[i] - 1) * chunk[i]


@compiled
def innermost_moved(state: Ints) -> int:
    """Position of the loop that advanced in this kind of step, -1 in the first step."""
    moved = -1
    for i in range(DIMS):
        if state[i] != 0:
            moved = i
    return moved


@compiled
def restarted(loops: Ints, steps: Ints, moved: int, tensor: int, depthwise: bool) -> bool:
    """Whether a loop that the tensor depends on starts again inside the one that advanced."""
    for i in range(moved + 1, DIMS):
        if steps[i] > 1 and coupled(tensor, loops[i, 0], depthwise):
            return True
    return False


@compiled
def slid_in(dim: int, cover: Ints, stride: int) -> int:
    """Inputs that are new when the window moves on along one loop.

    Parts of a window that are shorter than the stride leave gaps, and then nothing is old.
    """
    rows = window(cover[P], cover[R], stride)
    columns = window(cover[Q], cover[S], stride)
    if dim == P:
        rows = min(rows, cover[P] * min(stride, cover[R]))
    elif dim == R:
        rows = min(rows, cover[R]) if stride <= cover[R] else rows
    elif dim == Q:
        columns = min(columns, cover[Q] * min(stride, cover[S]))
    else:
        columns = min(columns, cover[S]) if stride <= cover[S] else columns
    return int(cover[C] * rows * columns)


@compiled
def new_words(
    loops: Ints,
    state: Ints,
    steps: Ints,
    cover: Ints,
    stride: int,
    depthwise: bool,
    full: Ints,
    fresh: Ints,
) -> None:
    """Words of each tensor that this kind of step brings, into ``fresh``; 0 if it is held.

    ``full`` are the tile's volumes. A tensor is held while only loops that it does not depend on
    advance; when a loop inside the advancing one starts again, its whole tile is new; when the
    window slides, only what slides in is new.
    """
    moved = innermost_moved(state)
    for tensor in range(3):
        fresh[tensor] = full[tensor]
        if moved < 0 or restarted(loops, steps, moved, tensor, depthwise):
            continue
        dim = loops[moved, 0]
        if not coupled(tensor, dim, depthwise):
            fresh[tensor] = 0
        elif tensor == 0 and dim != C:
            fresh[tensor] = slid_in(dim, cover, stride)


@compiled
def unshared(loops: Ints, state: Ints, tile: Ints, cover: Ints, stride: int) -> float:
    """How often MAESTRO sends an input where neighbouring windows overlap.

    It lets neighbours share what their windows have in common only in steps that begin a new row
    of parts; where a loop inside the spread one advances, each part gets its own copy.
    """
    for i in range(innermost_moved(state)):
        dim = loops[i, 0]
        if loops[i, 1] and dim in (P, Q):
            size = R if dim == P else S
            parts = cover[dim] / tile[dim]
            own = window(tile[dim], cover[size], stride)
            return float(parts * own / window(cover[dim], cover[size], stride))
    return 1.0


@compiled
def next_kind(loops: Ints, steps: Ints, chunk: Ints, last: Ints, state: Ints, cover: Ints) -> int:
    """Moves to the next kind of step; returns how often it occurs, 0 after the last kind."""
    for i in range(DIMS - 1, -1, -1):
        shorter = steps[i] > 1 and last[i] < chunk[i]
        middles = steps[i] - 1 - (1 if shorter else 0)
        if state[i] == 0 and middles > 0:
            state[i] = 1
            break
        if state[i] < 2 and shorter:
            state[i] = 2
            break
        if i == 0:
            return 0
        state[i] = 0
    times = 1
    for i in range(DIMS):
        shorter = steps[i] > 1 and last[i] < chunk[i]
        if state[i] == 1:
            times *= steps[i] - 1 - (1 if shorter else 0)
        cover[loops[i, 0]] = last[i] if state[i] == 2 or steps[i] == 1 else chunk[i]
    return times


@compiled
def start(loops: Ints, steps: Ints, chunk: Ints, last: Ints, cover: Ints) -> None:
    """What the first kind of step covers of each loop."""
    for i in range(DIMS):
        cover[loops[i, 0]] = last[i] if steps[i] == 1 else chunk[i]
