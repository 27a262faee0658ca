"""From the counts of a hierarchy to the metrics of the processor environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.core_space import CORE_METRICS
from archgym.envs.cpu.cost.sram import cache_cost, storage_bits
from archgym.envs.cpu.hierarchy.config import LEVELS, HierarchyConfig
from archgym.envs.cpu.hierarchy.layout import (
    FETCH,
    LOAD,
    PREFETCH,
    PREFETCHES,
    STORE,
    TRANSLATION,
    USEFUL,
    WRITEBACK,
    WRITEBACKS,
)
from archgym.problem.metrics import Metric

__all__ = ["METRICS", "costs_of", "mean_over_programs", "metrics_of"]

_DEMAND: Final = (LOAD, STORE, FETCH, TRANSLATION)

METRICS: Final = (
    Metric(
        "access_time_mean_ns",
        "ns",
        "minimize",
        "mean over instruction fetches, loads and stores: look-ups one after another, down to the "
        "level that serves",
    ),
    Metric("l1i_mpki", "", "minimize", "fetches that miss in L1I, per thousand instructions"),
    Metric("l1d_mpki", "", "minimize", "loads and stores that miss in L1D, per thousand"),
    Metric("l2_mpki", "", "minimize", "demand misses of L2, or of the first levels without one"),
    Metric("llc_mpki", "", "minimize", "demand misses of the last level"),
    Metric("prefetch_accuracy_share", "", "maximize", "prefetched lines that were used"),
    Metric(
        "prefetch_coverage_share",
        "",
        "maximize",
        "used prefetched lines, of these and of the misses that loads, stores and fetches had",
    ),
    Metric("page_walk_pki", "", "minimize", "walks of the page table, per thousand instructions"),
    Metric(
        "dram_traffic_per_instruction_b",
        "B",
        "minimize",
        "bytes read from and written to memory, prefetches included, per instruction",
    ),
    Metric("energy_per_instruction_pj", "pJ", "minimize", "dynamic energy of all caches"),
    Metric("leakage_mw", "mW", "minimize", "power of all caches at rest"),
    Metric("area_um2", "um2", "minimize", "area of all caches"),
    Metric("storage_bits", "bits", "minimize", "data, tags and state of all caches"),
    *CORE_METRICS,
)
"""Every metric; ``prefetch_*`` and ``page_walk_pki`` in spaces that search those only, and those
of the core in the space ``core``."""

_ARITHMETIC: Final = (
    "l1i_mpki",
    "l1d_mpki",
    "l2_mpki",
    "llc_mpki",
    "page_walk_pki",
    "branch_mpki",
    "prefetch_accuracy_share",
    "prefetch_coverage_share",
    "dram_traffic_per_instruction_b",
)
"""Metrics that may be zero: of several programs the arithmetic mean counts."""


def metrics_of(
    config: HierarchyConfig,
    counts: NDArray[np.int64],
    events: NDArray[np.int64],
    *,
    instructions: int,
    walks: int,
    memory_ns: float,
) -> dict[str, float]:
    """The metrics of one program.

    Args:
        config: the caches.
        counts: of :class:`archgym.envs.cpu.hierarchy.layout.Caches`.
        events: likewise.
        instructions: executed.
        walks: of the page table.
        memory_ns: time of a read of memory, ns.
    """
    looked_up = counts[:, _DEMAND, :].sum(axis=(1, 2))
    missed = counts[:, _DEMAND, 1].sum(axis=1)
    kilo = instructions / 1000
    first = looked_up[:2].sum()
    levels = {name: level for name, level in zip(LEVELS, config.levels, strict=True) if level}
    costs = {name: cache_cost(level, first=name[:2] == "l1") for name, level in levels.items()}
    time = memory_ns * missed[3]
    energy = 0.0
    for number, name in enumerate(LEVELS):
        if name not in costs:
            continue
        time += costs[name].access_ns * looked_up[number]
        # A look-up costs a read; a fill and a write-back that arrives a write.
        reads = counts[number].sum()
        writes = counts[number, :, 1].sum() + counts[number, WRITEBACK, 0]
        writes += counts[number, STORE, 0] if number < 2 else 0
        energy += costs[name].read_pj * reads + costs[name].write_pj * writes
    useful = float(events[1:, USEFUL].sum())
    prefetched = float(events[1:, PREFETCHES].sum())
    line = config.llc.line_bytes
    reads = missed[3] + counts[3, PREFETCH, 1]
    last_of_all = missed[2] if config.l2 is not None else missed[:2].sum()
    return {
        "access_time_mean_ns": float(time / first),
        "l1i_mpki": float(missed[0] / kilo),
        "l1d_mpki": float(missed[1] / kilo),
        "l2_mpki": float(last_of_all / kilo),
        "llc_mpki": float(missed[3] / kilo),
        "prefetch_accuracy_share": useful / prefetched if prefetched else 0.0,
        "prefetch_coverage_share": _coverage(counts, events),
        "page_walk_pki": walks / kilo,
        "dram_traffic_per_instruction_b": float(
            line * (reads + events[3, WRITEBACKS]) / instructions
        ),
        "energy_per_instruction_pj": float(energy / instructions),
    } | costs_of(config)


def costs_of(config: HierarchyConfig) -> dict[str, float]:
    """The metrics that no program changes."""
    levels = {name: level for name, level in zip(LEVELS, config.levels, strict=True) if level}
    costs = [cache_cost(level, first=name[:2] == "l1") for name, level in levels.items()]
    return {
        "leakage_mw": sum(cost.leakage_mw for cost in costs),
        "area_um2": sum(cost.area_um2 for cost in costs),
        "storage_bits": float(sum(storage_bits(level) for level in levels.values())),
    }


def _coverage(counts: NDArray[np.int64], events: NDArray[np.int64]) -> float:
    """Of the levels with a prefetcher: misses that were saved, of those and the others."""
    saved = misses = 0.0
    for level in (1, 2, 3):
        if events[level, PREFETCHES]:
            saved += float(events[level, USEFUL])
            misses += float(counts[level, (LOAD, STORE, FETCH), 1].sum())
    return saved / (saved + misses) if saved else 0.0


def mean_over_programs(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """One value of each metric: geometric means, arithmetic ones where values may be zero."""
    if len(found) == 1:
        return dict(found[0])
    means = {}
    for name in found[0]:
        values = np.array([one[name] for one in found])
        if (values == values[0]).all():  # a logarithm would round what no program changes
            means[name] = float(values[0])
        elif name in _ARITHMETIC:
            means[name] = float(values.mean())
        else:
            means[name] = float(np.exp(np.log(values).mean()))
    return means
