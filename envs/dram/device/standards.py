"""Differences between the DRAM standards that a data sheet does not list."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["STANDARDS", "Standard"]


@dataclass(frozen=True)
class Standard:
    """Traits that all devices of a standard share.

    Timings of a data sheet count from the last clock of a command (its *edge*); the simulator
    counts from the first one, and shifts by the difference of the two commands' lengths.

    Attributes:
        source: the standard's number.
        activate_cycles: clocks for which an activate holds the command bus.
        column_cycles: the same of a read or write.
        precharge_cycles: the same of a precharge.
        refresh_cycles: the same of a refresh, and of entering and leaving self-refresh.
        beats_per_cycle: data beats in one cycle of the command clock.
        write_latch_cycles: added to the end of write data in all rules that count from it.
        turnaround_cycles: part of read to write, same rank, that no figure of a data sheet gives.
        preamble_turns: whether the write preamble is part of read to write.
        separate_buses: whether row and column commands have a bus each.
        max_postponed: refreshes of all banks that may be postponed, or pulled in.
    """

    source: str
    activate_cycles: int = 1
    column_cycles: int = 1
    precharge_cycles: int = 1
    refresh_cycles: int = 1
    beats_per_cycle: int = 2
    write_latch_cycles: int = 0
    turnaround_cycles: int = 0
    preamble_turns: bool = False
    separate_buses: bool = False
    max_postponed: int = 8


STANDARDS = {
    "DDR3": Standard("JEDEC JESD79-3F", turnaround_cycles=2),
    "DDR4": Standard("JEDEC JESD79-4", turnaround_cycles=1, preamble_turns=True),
    # Activates, reads and writes of DDR5 take two clocks in 1N mode; 4.13 has the refreshes.
    "DDR5": Standard(
        "JEDEC JESD79-5",
        activate_cycles=2,
        column_cycles=2,
        turnaround_cycles=2,
        preamble_turns=True,
        max_postponed=4,
    ),
    # ACT-1 and ACT-2, RD-1 and CAS-2, WR-1 and CAS-2, two clocks each.
    "LPDDR4": Standard(
        "JEDEC JESD209-4",
        activate_cycles=4,
        column_cycles=4,
        precharge_cycles=2,
        refresh_cycles=2,
        write_latch_cycles=1,
        preamble_turns=True,
    ),
    # ACT-1 and ACT-2, a clock each; the write clock is taken to be always on, so that no CAS
    # command is needed. Eight beats fall in one clock: WCK:CK = 4:1. The turnaround is tWCK2DQO,
    # 1.6 ns at most, at 800 MHz.
    "LPDDR5": Standard(
        "JEDEC JESD209-5", activate_cycles=2, beats_per_cycle=8, turnaround_cycles=2
    ),
    "HBM2": Standard(
        "JEDEC JESD235",
        activate_cycles=2,
        turnaround_cycles=1,
        separate_buses=True,
    ),
}
"""Standards by name."""
