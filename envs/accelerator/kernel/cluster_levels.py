"""Two cluster levels, one inside the other: steps, time and words of a mapping, compiled.

Time is counted twice: as MAESTRO does, whose clusters wait for the first data of every tile, and as
if all transfers hid behind computation where there is room.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import (
    DIMS,
    C,
    K,
    P,
    Q,
    R,
    S,
    coupled,
    new_words,
    next_kind,
    split,
    start,
    unshared,
    volumes,
)
from archgym.envs.accelerator.kernel.maestro.edges import charged_products, last_part

__all__ = ["ANALYSED", "analyse"]

ANALYSED = 18
"""Figures that `analyse` gives."""


@compiled
def cluster(
    dims: Ints,
    whole: Ints,
    loops: Ints,
    pes: int,
    stride: int,
    depthwise: bool,
    lanes: int,
    bandwidth: float,
    edges: bool,
    found: Floats,
) -> None:
    """One cluster working through its tile ``dims`` of a full tile ``whole``, into ``found``.

    found: 0 delay where every tile starts empty and its first data are waited for (MAESTRO's
    rule), 1 compute cycles, 2 to 4 words that the PEs take beyond the first step's and that leave
    (input, weight, output), 5 to 7 words of the first step, 8 steps of PEs at work.
    """
    steps = np.empty(DIMS, np.int64)
    chunk = np.empty(DIMS, np.int64)
    last = np.empty(DIMS, np.int64)
    state = np.zeros(DIMS, np.int64)
    cover = np.empty(DIMS, np.int64)
    full = np.empty(3, np.int64)
    fresh = np.empty(3, np.int64)
    for i in range(len(found)):
        found[i] = 0.0
    split(dims, loops, pes, steps, chunk, last)
    start(loops, steps, chunk, last, cover)
    times = 1
    first = True
    while times > 0:
        products = 1
        active = 1
        for i in range(DIMS):
            dim = loops[i, 0]
            size = cover[dim]
            if loops[i, 1]:
                tile = min(loops[i, 2], dims[dim])
                active = -(-size // tile)
                size = min(size, tile)
            products *= size
        compute = -(-products // lanes)
        charged = compute
        if edges:
            products = charged_products(dims, whole, loops, state, pes, depthwise)
            charged = -(-products // lanes)
        volumes(cover, stride, depthwise, full)
        new_words(loops, state, steps, cover, stride, depthwise, full, fresh)
        enter = max(0.0, np.ceil((fresh[0] + fresh[1]) / bandwidth) - 1.0)
        leave = max(0.0, np.ceil(full[2] / bandwidth) - 1.0)
        found[0] += times * (charged + enter if first else max(charged, enter, leave))
        found[1] += times * compute
        if first:
            for tensor in range(3):
                found[5 + tensor] = fresh[tensor]
        else:
            for tensor in range(3):
                found[2 + tensor] += times * fresh[tensor]
        found[8] += times * active * compute
        first = False
        times = next_kind(loops, steps, chunk, last, state, cover)


@compiled
def part_tile(dims: Ints, loops: Ints, cover: Ints, tile: Ints) -> int:
    """What one part of a level works on, into ``tile``; returns how many parts work."""
    active = 1
    for i in range(DIMS):
        dim = loops[i, 0]
        tile[dim] = cover[dim]
        if loops[i, 1]:
            size = min(loops[i, 2], dims[dim])
            active = -(-cover[dim] // size)
            tile[dim] = min(cover[dim], size)
    return active


@compiled
def full_tile(dims: Ints, loops: Ints, tile: Ints) -> None:
    """What one part of a level works on where no loop is cut short, into ``tile``."""
    for i in range(DIMS):
        tile[loops[i, 0]] = min(loops[i, 2], dims[loops[i, 0]])


@compiled
def lone_part(
    dims: Ints, loops: Ints, state: Ints, cover: Ints, clusters: int, tile: Ints, found: Ints
) -> bool:
    """Whether MAESTRO takes another tile for the largest in this kind of step; it is ``found``."""
    differs = False
    for i in range(DIMS):
        dim = loops[i, 0]
        found[dim] = tile[dim]
        if loops[i, 1] and state[i] == 2:
            size = min(loops[i, 2], dims[dim])
            found[dim] = last_part(dims[dim], size, clusters, cover[dim])
            differs = found[dim] != tile[dim]
    return differs


@compiled
def pe_tile(dims: Ints, outer: Ints, inner: Ints, levels: int, tile: Ints) -> None:
    """What one PE works on at most, into ``tile``."""
    full_tile(dims, outer, tile)
    if levels > 1:
        for i in range(DIMS):
            dim = inner[i, 0]
            tile[dim] = min(inner[i, 2], tile[dim])


@compiled
def first_volumes(
    loops: Ints, tile: Ints, active: int, stride: int, depthwise: bool, full: Ints, found: Floats
) -> None:
    """Words of the array's first tile; MAESTRO counts what neighbours share for each of them."""
    each = np.empty(3, np.int64)
    volumes(tile, stride, depthwise, each)
    found[9] = each[0]
    found[10] = each[1]
    for i in range(DIMS):
        if loops[i, 1]:
            for tensor in range(2):
                if coupled(tensor, loops[i, 0], depthwise):
                    found[9 + tensor] = each[tensor] * active
    found[11] = full[2]


@compiled
def inside_words(part: Floats, fresh: Ints, full: Ints, times: float, found: Floats) -> float:
    """Words that cross a cluster's bus in one step, of which only new ones in its first step.

    Adds what all clusters take in ``times`` steps to ``found``.
    """
    inside = 0.0
    for tensor in range(3):
        share = min(1.0, fresh[tensor] / full[tensor])
        words = part[2 + tensor] + part[5 + tensor] * share
        if tensor < 2:
            inside += words
        found[14 + tensor] += times * words
    return inside


@compiled
def analyse(
    dims: Ints,
    outer: Ints,
    inner: Ints,
    clusters: int,
    pes: int,
    levels: int,
    stride: int,
    depthwise: bool,
    lanes: int,
    bandwidth: float,
    offchip: float,
    edges: bool,
    found: Floats,
) -> None:
    """Runs a layer through a mapping, into ``found``.

    Args:
        dims: loop bounds, shape (6,).
        outer: the outer level's loops, outermost first, shape (6, 3): loop, whether it is spread
            over the level's parts, tile.
        inner: the same of the inner level.
        clusters: parts of the outer level.
        pes: parts of the inner level.
        levels: 1 if clusters are single PEs and there is no inner level.
        stride: of the layer.
        depthwise: whether outputs have the inputs' channels.
        lanes: multiply-accumulates of a PE a cycle.
        bandwidth: words a cycle between buffer and array, and inside a cluster.
        offchip: words a cycle to memory under MAESTRO's rule (every step waits for the whole
            working tile), or 0 for steps that wait for nothing outside the chip.
        edges: whether MAESTRO's rule charges a tile that is cut short as MAESTRO does.
        found: shape (18,): 0 cycles by MAESTRO's rule, 1 cycles where transfers hide behind
            computation, 2 compute cycles, 3 to 5 words between buffer and array (input, weight,
            output written), 6 to 8 words of a PE's tile (the same), 9 to 11 words of the
            array's tile, 12 PE-cycles at work, 13 steps, 14 to 16 words between the clusters'
            entrances and the PEs, 17 multiply-accumulates counted.
    """
    steps = np.empty(DIMS, np.int64)
    chunk = np.empty(DIMS, np.int64)
    last = np.empty(DIMS, np.int64)
    state = np.zeros(DIMS, np.int64)
    cover = np.empty(DIMS, np.int64)
    tile = np.empty(DIMS, np.int64)
    full = np.empty(3, np.int64)
    fresh = np.empty(3, np.int64)
    each = np.empty(3, np.int64)
    # What a cluster does depends only on which of its dimensions are cut short.
    whole = np.empty(DIMS, np.int64)
    lone = np.empty(DIMS, np.int64)
    other = np.empty(9)
    full_tile(dims, outer, whole)
    known = np.zeros(64, np.bool_)
    store = np.empty((64, 9), np.float64)
    for i in range(len(found)):
        found[i] = 0.0
    split(dims, outer, clusters, steps, chunk, last)
    start(outer, steps, chunk, last, cover)
    wait = 0.0
    times = 1
    first = True
    while times > 0:
        active = part_tile(dims, outer, cover, tile)
        key = 0
        for i in range(DIMS):
            if state[i] == 2:
                key |= 1 << i
        volumes(cover, stride, depthwise, full)
        new_words(outer, state, steps, cover, stride, depthwise, full, fresh)
        if levels == 1:
            products = tile[K] * tile[C] * tile[R] * tile[S] * tile[P] * tile[Q]
            compute = float(-(-products // lanes))
            alone = compute
            inside = 0.0
            found[12] += times * active * compute
        else:
            if not known[key]:
                cluster(
                    tile, whole, inner, pes, stride, depthwise, lanes, bandwidth, edges, store[key]
                )
                known[key] = True
            part = store[key]
            alone = part[0]
            if edges and lone_part(dims, outer, state, cover, clusters, tile, lone):
                cluster(lone, whole, inner, pes, stride, depthwise, lanes, bandwidth, edges, other)
                alone = other[0]
            compute = part[1]
            inside = inside_words(part, fresh, full, float(times * active), found)
            inside = np.ceil(inside / bandwidth)
            found[12] += times * active * part[8]
        enter = np.ceil((fresh[0] + fresh[1]) / bandwidth)
        leave = np.ceil(full[2] / bandwidth)
        apart = np.ceil(
            (fresh[0] * unshared(outer, state, tile, cover, stride) + fresh[1]) / bandwidth
        )
        if first:
            first_volumes(outer, tile, active, stride, depthwise, full, found)
            if offchip > 0:
                wait = max(
                    (2 * (found[9] + found[10])) // offchip // 2, (2 * found[11]) // offchip // 2
                )
            step = alone + max(0.0, enter - 1.0)
            found[1] += enter
        else:
            step = max(alone, apart - 1.0, leave - 1.0)
        found[0] += times * max(step, wait)
        found[1] += times * max(compute, inside, enter, np.ceil(fresh[2] / bandwidth))
        found[2] += times * compute
        for tensor in range(3):
            found[3 + tensor] += times * fresh[tensor]
        found[13] += times
        found[17] += float(times) * cover[K] * cover[C] * cover[R] * cover[S] * cover[P] * cover[Q]
        first = False
        times = next_kind(outer, steps, chunk, last, state, cover)
    pe_tile(dims, outer, inner, levels, tile)
    volumes(tile, stride, depthwise, each)
    for tensor in range(3):
        found[6 + tensor] = each[tensor]
