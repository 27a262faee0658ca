"""A stream on a core: the tables of a run, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.branch import layout as b
from archgym.envs.cpu.branch.settings import BranchUnit
from archgym.envs.cpu.core import layout as k
from archgym.envs.cpu.core.config import CoreConfig, MemoryTiming
from archgym.envs.cpu.hierarchy.config import HierarchyConfig, PrefetcherConfig
from archgym.envs.cpu.hierarchy.frames import shuffled_frames
from archgym.envs.cpu.hierarchy.layout import Caches, make_caches
from archgym.envs.cpu.hierarchy.prefetchers import make_prefetchers

__all__ = ["CoreResult", "run_core"]

_MOST_RUNS = 8


@dataclass(frozen=True)
class CoreResult:
    """What a program did on a core.

    Attributes:
        instructions: that retired.
        cycles: until the last of them retired, cold tables at the start.
        branches: branches of each kind, by name.
        wrong: mispredicted ones of each kind, by name.
        counts: accesses of each cache by level, kind of access and whether they missed,
            shape (4, 6, 2).
        events: write-backs and prefetches of each cache, shape (4, 4).
        page_walks: walks of the page table.
        dram_row_hits: requests to memory that found their row open.
        dram_row_misses: requests to memory that did not.
    """

    instructions: int
    cycles: int
    branches: dict[str, int]
    wrong: dict[str, int]
    counts: NDArray[np.int64]
    events: NDArray[np.int64]
    page_walks: int
    dram_row_hits: int
    dram_row_misses: int

    @property
    def ipc(self) -> float:
        """Instructions in a cycle."""
        return self.instructions / max(1, self.cycles)

    @property
    def branch_mpki(self) -> float:
        """Mispredicted branches, in direction or target, in a thousand instructions."""
        return 1000 * sum(self.wrong.values()) / max(1, self.instructions)


def _timings(timing: MemoryTiming) -> NDArray[np.int64]:
    t = np.zeros(k.N_TIMINGS, np.int64)
    for number, level in enumerate((timing.l1i, timing.l1d, timing.l2, timing.llc)):
        t[k.LOOK_UP + number], t[k.FILL + number] = level.look_up, level.fill
        t[k.MSHRS + number] = level.mshrs
    t[k.TLB_FILL] = (timing.tlb_latency + 1) // 2
    t[k.TLB_HIT] = timing.tlb_latency - t[k.TLB_FILL]
    t[k.STLB_FILL] = (timing.stlb_latency + 1) // 2
    t[k.STLB_HIT] = timing.stlb_latency - t[k.STLB_FILL]
    t[k.FAULT] = timing.fault_cycles
    dram = timing.dram
    common = gcd(timing.clock_mhz, dram.clock_mhz)
    t[k.DRAM_CAS : k.N_TIMINGS] = (
        dram.t_cas, dram.t_rcd, dram.t_rp, dram.t_ras, dram.burst, dram.same_group,
        dram.refresh_interval, dram.refresh, timing.clock_mhz // common,
        dram.clock_mhz // common, dram.group_bits, dram.bank_bits, dram.column_bits, dram.row_bits,
    )  # fmt: skip
    return t


def make_core(config: CoreConfig, timing: MemoryTiming, pages: int) -> NDArray[np.void]:
    """The empty tables of a core, an array of one record."""
    cores = np.zeros(1, k.CORE)
    core = cores[0]
    settings = [getattr(config, name) for name in k.SETTINGS]
    longest = max(
        config.rob_size, config.sq_size, config.registers, config.fetch_buffer,
        config.decode_buffer, config.dispatch_buffer,
    )  # fmt: skip
    core["c"] = [*settings, (1 << longest.bit_length()) - 1]
    core["t"] = _timings(timing)
    core["s"][k.GROUP_LINE] = -1
    core["s"][k.STUCK_FROM] = k.NEVER
    core["s"][k.PAGES] = 1
    core["tlb_sets"] = (
        (timing.itlb_sets, timing.itlb_ways),
        (timing.dtlb_sets, timing.dtlb_ways),
        (timing.stlb_sets, timing.stlb_ways),
    )
    core["free"][: config.registers] = np.arange(config.registers)
    core["frames"] = shuffled_frames(1)[: k.MAX_FRAMES]
    for name in ("mapped", "last_need", "forward", "answered", "loop", "flight", "tlb"):
        core[name] = -1
    for name in ("frame", "tables"):
        core[name][..., :pages] = -1
    core["walked_at"][:, :pages] = k.NEVER
    core["banks"][:, 0] = -1
    core["group_used"] = -1000
    return cores


def _turns(core: NDArray[np.void]) -> NDArray[np.int64]:
    """The turn of each frame that was taken, if they were taken in the order of time."""
    turns = np.arange(k.MAX_FRAMES)
    taken = slice(1, int(core["s"][k.PAGES]))  # the root of the page table has the first one
    if taken.stop <= k.MAX_FRAMES:
        turns[taken][np.argsort(core["taken_at"][taken], kind="stable")] = turns[taken].copy()
    return turns


def run_core(
    stream: k.Stream,
    hierarchy: HierarchyConfig,
    config: CoreConfig | None = None,
    unit: BranchUnit | None = None,
    timing: MemoryTiming | None = None,
    l1d_prefetcher: PrefetcherConfig | None = None,
    l2_prefetcher: PrefetcherConfig | None = None,
    instructions: int | None = None,
    frames_in_time: bool = False,
) -> CoreResult:
    """Run a stream on a core whose tables are cold.

    Page frames are handed out in the order of the program, or, with ``frames_in_time``, in that in
    which the walks of the page table reach them: the stream then runs again with the frames in
    the order that the run before has found, until it stands, eight times at most.

    Args:
        stream: from :func:`archgym.envs.cpu.core_run.core_stream`.
        hierarchy: sizes and policies of the caches.
        config: the core.
        unit: branch prediction.
        timing: latencies of caches, translation and memory.
        l1d_prefetcher: of the first level of data; None: none.
        l2_prefetcher: of the second level; None: none.
        instructions: how many of the stream; None: all.
        frames_in_time: whether frames are handed out in the order of time.
    """
    from archgym.envs.cpu.core.prefetching import Ahead
    from archgym.envs.cpu.core.simulate import simulate_core

    count = len(stream.code) if instructions is None else min(instructions, len(stream.code))
    none = PrefetcherConfig()
    turns = np.arange(k.MAX_FRAMES)
    for _ in range(_MOST_RUNS if frames_in_time else 1):
        cores = make_core(config or CoreConfig(), timing or MemoryTiming(), len(stream.regions))
        cores[0]["frames"] = cores[0]["frames"][turns]
        tables = (unit or BranchUnit()).tables()
        caches: Caches = make_caches(hierarchy)
        ahead = Ahead(
            make_prefetchers(hierarchy, l1d_prefetcher or none, none),
            make_prefetchers(hierarchy, none, l2_prefetcher or none),
        )
        simulate_core(count, stream, cores, tables, caches, ahead)
        before, turns = turns, _turns(cores[0])
        if (before == turns).all():
            break
    counts = cores[0]["counts"]
    return CoreResult(
        instructions=count,
        cycles=int(counts[k.N_CYCLES]),
        branches=dict(zip(b.KINDS, tables.branches.tolist(), strict=True)),
        wrong=dict(zip(b.KINDS, tables.wrong.tolist(), strict=True)),
        counts=caches.counts,
        events=caches.events,
        page_walks=int(counts[k.N_STLB_MISS]),
        dram_row_hits=int(counts[k.N_ROW_HITS]),
        dram_row_misses=int(counts[k.N_ROW_MISSES]),
    )
