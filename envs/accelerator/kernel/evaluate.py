"""Evaluates designs x layers by the right model, compiled; the entry points for Python."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Flags, Floats, Ints
from archgym.envs.accelerator.kernel.compiled import entry
from archgym.envs.accelerator.kernel.datacentric import DIMS
from archgym.envs.accelerator.kernel.exhaustive_search import try_all
from archgym.envs.accelerator.kernel.loopnest import (
    H_DATAFLOW,
    H_DIVIDE,
    H_MAESTRO,
    H_ORDERS,
    H_WAITS,
)
from archgym.envs.accelerator.kernel.mapping_search import search
from archgym.envs.accelerator.kernel.published_candidates import known
from archgym.envs.accelerator.kernel.results import better, score
from archgym.envs.accelerator.kernel.systolic import fold
from archgym.envs.accelerator.kernel.timeloop.random_search import search_divisors
from archgym.envs.accelerator.kernel.two_level_mapping import bounds_of, mapped
from archgym.envs.accelerator.kernel.zigzag.order_search import search_orders

__all__ = ["evaluate_designs", "evaluate_mappings", "search_exhaustively"]


def _evaluate_designs(sources: int) -> Callable[..., None]:
    def evaluate_designs(
        bounds: Ints, hardware: Floats, searched: bool, objective: int, found: Floats, legal: Flags
    ) -> None:
        """Every layer on every design, into ``found``, shape (designs, layers, width).

        Args:
            bounds: ``LayerTable.bounds``, shape (layers, 9).
            hardware: shape (designs, width), columns as ``vectors.HARDWARE``.
            searched: whether the mapper runs, beside the dataflow's published mapping.
            objective: of ``vectors.OBJECTIVES``.
            found: columns as ``vectors.FOUND``.
            legal: shape (designs, layers), false: becomes whether there is a mapping.
        """
        assert sources  # a change of any source of the kernel makes this a new function
        for d in range(hardware.shape[0]):
            hw = hardware[d]
            for n in range(bounds.shape[0]):
                if hw[H_DATAFLOW] >= 6:
                    fold(bounds[n], hw, searched, objective, found[d, n])
                    legal[d, n] = True
                    continue
                if searched and hw[H_DIVIDE] > 0:
                    legal[d, n] = search_divisors(bounds[n], hw, objective, found[d, n])
                    continue
                if searched and hw[H_ORDERS] > 0:
                    legal[d, n] = search_orders(bounds[n], hw, objective, found[d, n])
                    continue
                if searched:
                    legal[d, n] = search(bounds[n], hw, objective, found[d, n])
                # The published mapping is a candidate too: a PE may hold more than whole tiles.
                # Where the array waits for a buffer tile, there has to be one.
                if not (searched and hw[H_WAITS] > 0):
                    parts = searched and hw[H_MAESTRO] == 0
                    legal[d, n] = known(bounds[n], hw, parts, objective, legal[d, n], found[d, n])

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
                    0,
                    (np.inf, np.inf),
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
                if hardware[d, H_WAITS] > 0:
                    legal[d, n] = False  # a published mapping has no buffer tile
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
