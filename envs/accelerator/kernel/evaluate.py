"""Designs x layers through the right model, compiled; what Python calls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Flags, Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled, entry
from archgym.envs.accelerator.kernel.datacentric import DIMS, C, K, P, Q, R, S
from archgym.envs.accelerator.kernel.exhaustive import try_all
from archgym.envs.accelerator.kernel.levels import ANALYSED, analyse
from archgym.envs.accelerator.kernel.loopnest import (
    H_BUFFER,
    H_COLUMNS,
    H_DATAFLOW,
    H_DRAM,
    H_LANES,
    H_MAESTRO,
    H_NOC,
    H_SUM,
    H_WAITS,
    H_WORD,
    settle,
    whole_batch,
)
from archgym.envs.accelerator.kernel.published import published
from archgym.envs.accelerator.kernel.residency import reuse_levels
from archgym.envs.accelerator.kernel.results import better, score
from archgym.envs.accelerator.kernel.search import search
from archgym.envs.accelerator.kernel.systolic import fold

__all__ = ["evaluate_designs", "evaluate_mappings", "search_exhaustively"]


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
    found: Floats,
) -> bool:
    """One layer under a given two-level mapping, into ``found``; whether it fits the buffer."""
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
        analysed,
    )
    sizes = np.empty(4)
    for i in range(4):
        sizes[i] = hw[H_SUM] if i == 2 else hw[H_WORD]
    dram = np.empty(4)
    # MAESTRO says what a mapping needs, and never that there is less.
    room = np.inf if hw[H_MAESTRO] > 0 else hw[H_BUFFER]
    legal = reuse_levels(dims, outer, clusters, given[6], depthwise, sizes, room, dram)
    if not legal:
        return False
    register = np.empty(4)
    for i in range(3):
        register[i] = times * analysed[3 + i]
    channels = dims[C] if depthwise else dims[K]
    outputs = float(times) * channels * dims[P] * dims[Q]
    register[3] = max(0.0, register[2] - outputs)
    for i in range(4):
        dram[i] *= times
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
    settle(
        layer,
        times * analysed[1],
        times * analysed[17],
        reduced,
        (analysed[9] + analysed[10]) * hw[H_WORD],
        dram,
        register,
        hw,
        found,
    )
    # The steps' time, waits included, has gone into the cycles; of it the array's own:
    found[1] = times * analysed[2]
    if hw[H_MAESTRO] > 0:
        found[0] = times * analysed[0]
    return True


def _evaluate_designs(sources: int) -> Callable[..., None]:
    def evaluate_designs(
        bounds: Ints, hardware: Floats, searched: bool, objective: int, found: Floats, legal: Flags
    ) -> None:
        """Every layer on every design, into ``found``, shape (designs, layers, width).

        Args:
            bounds: ``LayerTable.bounds``, shape (layers, 9).
            hardware: shape (designs, width), columns as ``layout.HARDWARE``.
            searched: whether the mapper runs, beside the dataflow's published mapping.
            objective: of ``layout.OBJECTIVES``.
            found: columns as ``layout.FOUND``.
            legal: shape (designs, layers), false: becomes whether there is a mapping.
        """
        assert sources  # a change of any source of the kernel makes this a new function
        outer = np.empty((DIMS, 3), np.int64)
        inner = np.empty((DIMS, 3), np.int64)
        dims = np.empty(DIMS, np.int64)
        known = np.zeros(found.shape[2])
        for d in range(hardware.shape[0]):
            hw = hardware[d]
            flow = int(hw[H_DATAFLOW])
            for n in range(bounds.shape[0]):
                if flow >= 6:
                    fold(bounds[n], hw, searched, objective, found[d, n])
                    legal[d, n] = True
                    continue
                flat = 0 if flow in (3, 4) else int(hw[H_COLUMNS])
                times, depthwise = bounds_of(bounds[n], flat, dims)
                clusters, pes, levels = published(dims, hw, outer, inner)
                for i in range(len(known)):
                    known[i] = 0.0
                holds = mapped(
                    bounds[n],
                    dims,
                    times,
                    depthwise,
                    outer,
                    inner,
                    clusters,
                    pes,
                    levels,
                    hw,
                    known,
                )
                if searched:
                    legal[d, n] = search(bounds[n], hw, objective, found[d, n])
                # The published mapping is a candidate too: a PE may hold more than whole tiles.
                # Where the array waits for a buffer tile, there has to be one.
                waits = searched and hw[H_WAITS] > 0
                if (
                    holds
                    and not waits
                    and (
                        not legal[d, n]
                        or better(
                            score(objective, known[0], known[6]),
                            score(objective, found[d, n, 0], found[d, n, 6]),
                        )
                    )
                ):
                    for i in range(len(known)):
                        found[d, n, i] = known[i]
                    legal[d, n] = True

    return evaluate_designs


def _evaluate_mappings(sources: int) -> Callable[..., None]:
    def evaluate_mappings(
        bounds: Ints,
        hardware: Floats,
        outer: Ints,
        inner: Ints,
        parts: Ints,
        found: Floats,
        legal: Flags,
    ) -> None:
        """Every layer on every design under that design's own mapping.

        Args:
            bounds: as in ``evaluate_designs``.
            hardware: as there.
            outer: loops of the outer level, shape (designs, 6, 3), see ``levels.analyse``.
            inner: of the inner level.
            parts: clusters, PEs of one, and levels, shape (designs, 3).
            found: as in ``evaluate_designs``.
            legal: as there.
        """
        assert sources
        dims = np.empty(DIMS, np.int64)
        for d in range(hardware.shape[0]):
            for n in range(bounds.shape[0]):
                times, depthwise = bounds_of(bounds[n], 1, dims)
                legal[d, n] = mapped(
                    bounds[n],
                    dims,
                    times,
                    depthwise,
                    outer[d],
                    inner[d],
                    parts[d, 0],
                    parts[d, 1],
                    parts[d, 2],
                    hardware[d],
                    found[d, n],
                )

    return evaluate_mappings


def _search_exhaustively(sources: int) -> Callable[..., None]:
    def search_exhaustively(
        bounds: Ints, hardware: Floats, objective: int, found: Floats, legal: Flags
    ) -> None:
        """Improves on results of ``evaluate_designs`` by trying every tiling; slow, for tests."""
        assert sources
        tried = np.zeros(found.shape[2])
        for d in range(hardware.shape[0]):
            for n in range(bounds.shape[0]):
                if hardware[d, H_DATAFLOW] >= 6:
                    continue
                if try_all(bounds[n], hardware[d], objective, tried) and (
                    not legal[d, n]
                    or better(
                        score(objective, tried[0], tried[6]),
                        score(objective, found[d, n, 0], found[d, n, 6]),
                    )
                ):
                    for i in range(len(tried)):
                        found[d, n, i] = tried[i]
                    legal[d, n] = True

    return search_exhaustively


evaluate_designs = entry(_evaluate_designs)
search_exhaustively = entry(_search_exhaustively)
evaluate_mappings = entry(_evaluate_mappings)
