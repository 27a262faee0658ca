"""Time of one kernel: roofline with an efficiency that depends on its shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.llm.cost.compiled import compiled
from archgym.envs.llm.cost.records import STEPS

__all__ = ["combined_s", "matrix_s", "memory_s", "staircase", "vector_s"]

_TILE_ROWS = (256.0, 128.0, 128.0, 64.0)
_TILE_COLUMNS = (128.0, 128.0, 64.0, 64.0)
_TILE_SHARES = (1.0, 0.95, 0.75, 0.55)
"""Tiles of an output that a processor computes at a time, and the share of its peak that each
reaches: smaller ones read their operands more often from the shared memory."""
_SPLITS = (1.0, 2.0, 4.0, 8.0)
"""Parts into which the inner dimension may be cut, so that few tiles keep all processors busy."""


@compiled
def staircase(limits: Any, shares: Any, size: float) -> float:
    """The share of the first step whose limit is not above the size."""
    for i in range(STEPS):
        if size >= limits[i]:
            return float(shares[i])
    return float(shares[STEPS - 1])


@compiled
def matrix_s(
    system: Any, fp8: int, batch: float, rows: float, columns: float, inner: float
) -> float:
    """Seconds of arithmetic of ``batch`` products (rows x inner) (inner x columns).

    By tiles: every processor computes a tile at a time, so the last wave may be partly idle; a
    tile costs the inner dimension plus a fixed number of steps to fill and drain.
    """
    peak = system.fp8_flops if fp8 else system.matrix_flops
    flops = 2.0 * batch * rows * columns * inner
    if system.operators:
        return float(flops / (peak * staircase(system.matrix_limits, system.matrix_shares, flops)))
    best = np.inf
    share = system.fp8_share if fp8 else system.matrix_share
    each = peak * share / system.processors
    for i in range(len(_TILE_ROWS)):
        tiles = batch * np.ceil(rows / _TILE_ROWS[i]) * np.ceil(columns / _TILE_COLUMNS[i])
        area = 2.0 * _TILE_ROWS[i] * _TILE_COLUMNS[i]
        for split in _SPLITS:
            if split > 1 and (tiles >= system.processors or inner / split < 256):
                break
            waves = np.ceil(tiles * split / system.processors)
            depth = inner / split + system.tile_overhead
            seconds = waves * area * depth / (each * _TILE_SHARES[i])
            if split > 1:  # parts are added in the memory
                seconds += 4.0 * batch * rows * columns * (split + 1) / system.memory_rate
            best = min(best, seconds)
    return float(best)


@compiled
def vector_s(system: Any, flops: float) -> float:
    """Seconds of arithmetic of an element-wise kernel."""
    if flops <= 0:
        return 0.0
    if system.operators:
        share = staircase(system.vector_limits, system.vector_shares, flops)
        return float(flops / (system.vector_flops * share))
    return float(flops / system.vector_flops)


@compiled
def memory_s(system: Any, size: float) -> float:
    """Seconds in which a kernel reads and writes ``size`` bytes."""
    if size <= 0:
        return 0.0
    if system.operators:
        share = staircase(system.memory_limits, system.memory_shares, size)
        return float(size / (system.memory_rate * share))
    return float(size / (system.memory_rate * system.memory_share))


@compiled
def combined_s(system: Any, compute: float, memory: float) -> float:
    """Seconds of a kernel from those of its arithmetic and of its memory accesses."""
    if compute <= 0 and memory <= 0:
        return 0.0
    if system.operators and not system.roofline:
        return float(compute + memory)
    return float(max(compute, memory) + system.kernel_s)
