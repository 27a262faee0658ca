"""Widths, sizes and latencies of a core and of the memory behind it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from archgym.errors import InvalidValueError

__all__ = ["CoreConfig", "DramTiming", "LevelTiming", "MemoryTiming"]

_LIMITS = {"mispredict_penalty": (1, 100), "loop_ways": (1, 16)}
_MOST = 2048


@dataclass(frozen=True)
class CoreConfig:
    """An out-of-order core.

    Attributes:
        rob_size: instructions between dispatch and retirement.
        lq_size: loads in the load queue.
        sq_size: stores in the store queue.
        fetch_width: instructions that enter the fetch buffer in a cycle.
        decode_width: instructions that are decoded in a cycle.
        dispatch_width: instructions that enter the reorder buffer in a cycle.
        execute_width: instructions that begin, and that end, execution in a cycle.
        retire_width: instructions that leave the reorder buffer in a cycle.
        scheduler_size: instructions that wait for their sources or a slot of execution.
        mispredict_penalty: cycles from the end of a mispredicted branch to the next fetch.
        fetch_buffer: instructions that wait for their line.
        decode_buffer: instructions that wait for the decoder.
        dispatch_buffer: instructions that wait for dispatch.
        registers: physical registers.
        load_width: loads that go to the data cache in a cycle.
        store_width: stores that are finished or go to the data cache in a cycle.
        in_order_width: instructions that leave the decoder, or the buffer of decoded ones, in a
            cycle.
        decode_latency: cycles in the decoder.
        dispatch_latency: cycles from the decoder to the reorder buffer.
        loop_sets: sets of the buffer of decoded instructions, windows of 16 bytes; a power of two.
        loop_ways: its ways.

    Raises:
        InvalidValueError: for a size that cannot be built.
    """

    rob_size: int = 352
    lq_size: int = 128
    sq_size: int = 72
    fetch_width: int = 6
    decode_width: int = 6
    dispatch_width: int = 6
    execute_width: int = 4
    retire_width: int = 5
    scheduler_size: int = 128
    mispredict_penalty: int = 1
    fetch_buffer: int = 64
    decode_buffer: int = 32
    dispatch_buffer: int = 32
    registers: int = 128
    load_width: int = 2
    store_width: int = 2
    in_order_width: int = 5
    decode_latency: int = 1
    dispatch_latency: int = 1
    loop_sets: int = 32
    loop_ways: int = 8

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            low, high = _LIMITS.get(entry.name, (1, _MOST))
            if entry.name.endswith("_width"):
                high = 64
            if not low <= value <= high:
                raise InvalidValueError(f"{entry.name}: {value}, expected {low} to {high}")
        if self.loop_sets & (self.loop_sets - 1) or self.loop_sets > 256:
            raise InvalidValueError(
                f"loop_sets: {self.loop_sets}, expected a power of two of 256 at most"
            )
        if self.registers > 128 or self.registers < 48:
            raise InvalidValueError(f"registers: {self.registers}, expected 48 to 128")


@dataclass(frozen=True)
class LevelTiming:
    """Latency of one cache.

    Attributes:
        latency: cycles of a look-up and a fill together, at least 2.
        mshrs: misses under way at a time.

    Raises:
        InvalidValueError: for a latency or a number that cannot be built.
    """

    latency: int
    mshrs: int

    def __post_init__(self) -> None:
        if not 2 <= self.latency <= 1000:
            raise InvalidValueError(f"latency: {self.latency} cycles, expected 2 to 1000")
        if not 1 <= self.mshrs <= 64:
            raise InvalidValueError(f"mshrs: {self.mshrs}, expected 1 to 64")

    @property
    def fill(self) -> int:
        """Cycles of a fill: half of the latency, rounded up, as in ChampSim."""
        return (self.latency + 1) // 2

    @property
    def look_up(self) -> int:
        """Cycles of a look-up."""
        return self.latency - self.fill


@dataclass(frozen=True)
class DramTiming:
    """One channel of memory; the defaults are ChampSim's: 3200 MT/s and a clock of 1.6 GHz.

    Attributes:
        clock_mhz: clock of the controller and its timings.
        t_cas: clocks from a column command to data.
        t_rcd: clocks from opening a row to a column command.
        t_rp: clocks to close a row.
        t_ras: clocks that the bus takes to turn around.
        burst: clocks of the transfer of a line.
        same_group: clocks between transfers of one bank group.
        refresh_interval: clocks between refreshes.
        refresh: clocks of a refresh.
        group_bits: log2 of the bank groups.
        bank_bits: log2 of the banks of a group.
        column_bits: log2 of the lines of a row.
        row_bits: log2 of the rows of a bank.
    """

    clock_mhz: int = 1600
    t_cas: int = 24
    t_rcd: int = 24
    t_rp: int = 24
    t_ras: int = 52
    burst: int = 4
    same_group: int = 5
    refresh_interval: int = 4800
    refresh: int = 208
    group_bits: int = 3
    bank_bits: int = 2
    column_bits: int = 7
    row_bits: int = 16


@dataclass(frozen=True)
class MemoryTiming:
    """What the caches' contents do not say: latencies, misses at a time, translation, memory.

    Attributes:
        l1i: instruction cache.
        l1d: data cache.
        l2: second level.
        llc: last level.
        itlb_sets: sets of the TLB of instructions, a power of two.
        itlb_ways: its ways.
        dtlb_sets: sets of the TLB of data, a power of two.
        dtlb_ways: its ways.
        tlb_latency: cycles of each of them.
        stlb_sets: sets of the second-level TLB, a power of two.
        stlb_ways: its ways.
        stlb_latency: cycles.
        fault_cycles: cycles of the first touch of a page, and of a page table.
        clock_mhz: clock of core and caches.
        dram: memory.

    Raises:
        InvalidValueError: for a TLB that cannot be built.
    """

    l1i: LevelTiming = field(default_factory=lambda: LevelTiming(4, 8))
    l1d: LevelTiming = field(default_factory=lambda: LevelTiming(5, 16))
    l2: LevelTiming = field(default_factory=lambda: LevelTiming(10, 32))
    llc: LevelTiming = field(default_factory=lambda: LevelTiming(20, 64))
    itlb_sets: int = 16
    itlb_ways: int = 4
    dtlb_sets: int = 16
    dtlb_ways: int = 4
    tlb_latency: int = 2
    stlb_sets: int = 128
    stlb_ways: int = 12
    stlb_latency: int = 8
    fault_cycles: int = 200
    clock_mhz: int = 4000
    dram: DramTiming = field(default_factory=DramTiming)

    def __post_init__(self) -> None:
        for name in ("itlb", "dtlb", "stlb"):
            sets, ways = getattr(self, f"{name}_sets"), getattr(self, f"{name}_ways")
            if not 1 <= sets <= 512 or sets & (sets - 1):
                raise InvalidValueError(f"{name}_sets: {sets}, expected a power of two up to 512")
            if not 1 <= ways <= 16:
                raise InvalidValueError(f"{name}_ways: {ways}, expected 1 to 16")
