"""Checks that the ranks of a memory are refreshed as often as the standards demand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.controller.result import COMMANDS
from archgym.envs.dram.device.device import Device
from archgym.envs.dram.device.memory import Memory

__all__ = ["check_refreshes"]


def check_refreshes(
    memory: Memory,
    log: NDArray[np.int64],
    *,
    refresh_policy: str,
    max_postponed: int | None = None,
    cycles: int | None = None,
) -> list[str]:
    """Refreshes that a channel lacks or has too many of, one line each; empty if there are none.

    No two refreshes of a rank may be further apart than one interval and those that may be
    postponed, at no time more of them may be owed, at most twice as many may come within two
    intervals, and no bank is refreshed for the second time before all others were. Refreshes of
    one bank (of one in every group) count as that part of a refresh of all. Time in self-refresh
    does not count.

    A refresh that is due waits for running accesses to end and banks to close, at most
    :func:`_closing` clocks; the standards' limits are taken to leave room for that.

    Args:
        memory: gives the device's figures and the number of ranks.
        log: an array of ``Result.log``.
        refresh_policy: ``all_bank``, ``per_bank`` or ``same_bank``.
        max_postponed: refreshes of all banks that may be postponed; by default what the
            standard allows, 8 (DDR5: 4).
        cycles: length of the run, clocks; by default the last command's cycle.
    """
    d = memory.device
    if max_postponed is None:
        max_postponed = d.traits.max_postponed
    interval, sets = {
        "all_bank": (d.t_refi_cycles, 1),
        "per_bank": (d.t_refi_pb_cycles, d.banks),
        "same_bank": (d.t_refi_sb_cycles, d.banks_per_group),
    }[refresh_policy]
    found = []
    for rank in range(memory.ranks):
        checker = _Rank(rank, interval, sets, max_postponed, _closing(d))
        for cycle, code, of, bank, _ in log.tolist():
            if of == rank:
                checker.command(cycle, COMMANDS[code], bank)
        checker.end(cycles if cycles is not None else int(log[-1, 0]) if len(log) else 0)
        found += checker.found
    return found


def _closing(d: Device) -> int:
    """Longest time from when a refresh is due to when banks that were just opened are closed."""
    longest_access = d.t_rcd_cycles + d.wl_cycles + d.burst_cycles + d.t_wr_cycles
    precharge = d.t_rp_ab_cycles or d.t_rp_cycles
    others = d.t_rfc_pb_cycles or d.t_rfc_sb_cycles
    leaving = d.t_cke_cycles + d.t_xp_cycles
    return d.t_ras_cycles + longest_access + precharge + others + leaving + d.t_rfc_cycles


class _Rank:
    """Refreshes of one rank; times in clocks."""

    def __init__(self, rank: int, interval: int, sets: int, postponed: int, closing: int) -> None:
        self.found: list[str] = []
        self.rank, self.interval, self.sets = rank, interval, sets
        self.postponed, self.closing = postponed * sets, closing
        self.last = self.start = self.done = 0
        self.recent: list[int] = []
        self.round: set[int] = set()
        self.sleeps = False

    def command(self, cycle: int, name: str, bank: int) -> None:
        if name == "sre":
            self._check(cycle)
            self.sleeps = True
        elif name == "srx":
            self.sleeps = False
            self.last = self.start = cycle
            self.done = 0
            self.round.clear()
        elif name in ("refab", "refpb", "refsb"):
            self._check(cycle)
            self._refresh(cycle, name, bank)

    def _wrong(self, cycle: int, what: str) -> None:
        self.found.append(f"cycle {cycle}, rank {self.rank}: {what}")

    def _check(self, cycle: int) -> None:
        longest = (self.postponed + 1) * self.interval + self.closing
        if cycle - self.last > longest:
            self._wrong(cycle, f"{cycle - self.last} cycles since a refresh, at most {longest}")
        owed = (cycle - self.start - self.closing) // self.interval - self.done
        if owed > self.postponed + 1:
            self._wrong(cycle, f"{owed} refreshes owed, at most {self.postponed + 1}")

    def _refresh(self, cycle: int, name: str, bank: int) -> None:
        if name == "refab":
            self.done += self.sets
            self.round.clear()
        else:
            self.done += 1
            if bank in self.round:
                self._wrong(cycle, f"{name} of bank {bank} before all others had theirs")
            self.round.add(bank)
            if len(self.round) == self.sets:
                self.round.clear()
        self.last = cycle
        self.recent = [c for c in self.recent if c > cycle - 2 * self.interval] + [cycle]
        if len(self.recent) > 2 * max(self.postponed, 8 * self.sets):
            self._wrong(cycle, f"{len(self.recent)} refreshes within two intervals")

    def end(self, cycle: int) -> None:
        """The run is over: nothing may be overdue."""
        if not self.sleeps:
            self._check(cycle)
