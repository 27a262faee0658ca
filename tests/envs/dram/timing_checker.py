"""Checks a command log against the JEDEC rules of a device; knows nothing of the controller.

Plain Python on purpose: for every command it looks at the earlier commands of every bank and asks
whether the gap that the standard demands between the two has passed.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.controller import COMMANDS
from archgym.envs.dram.device import Device

READS = ("rd", "rda")
WRITES = ("wr", "wra")
LONG_AGO = -(10**9)


class TimingChecker:
    """Feeds on commands in order; ``violations`` collects what is wrong in words."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.violations: list[str] = []
        self.open_row: dict[int, int] = {}
        # Cycle of the last command of each kind on each bank.
        self.last: dict[str, dict[int, int]] = defaultdict(dict)
        self.activates: list[int] = []
        # Cycle in which each bank's precharge began, by whatever command.
        self.precharge_began: dict[int, int] = {}
        self.last_refresh = LONG_AGO
        self.last_cycle = LONG_AGO
        self.bus_free = LONG_AGO

    def group(self, bank: int) -> int:
        return bank // (self.device.banks // self.device.bank_groups)

    def need(self, rule: str, earlier: int | None, gap: int, now: int) -> None:
        if earlier is not None and now - earlier < gap:
            self.violations.append(f"cycle {now}: {rule} needs {gap} cycles, has {now - earlier}")

    def wrong(self, now: int, what: str) -> None:
        self.violations.append(f"cycle {now}: {what}")

    def command(self, now: int, name: str, bank: int, row: int) -> None:
        if now <= self.last_cycle:
            self.wrong(now, f"{name} in the clock of, or before, the command ahead of it")
        self.last_cycle = now
        self.need("tRFC", self.last_refresh, self.device.t_rfc_cycles, now)
        if name == "act":
            self.activate(now, bank, row)
        elif name == "pre":
            self.precharge(now, bank)
        elif name == "preab":
            for open_bank in list(self.open_row):
                self.precharge(now, open_bank)
        elif name == "refab":
            self.refresh(now)
        else:
            self.column(now, name, bank, row)
        self.last[name][bank] = now

    def activate(self, now: int, bank: int, row: int) -> None:
        d = self.device
        if bank in self.open_row:
            self.wrong(now, f"activate of the open bank {bank}")
        for other, when in self.last["act"].items():
            if other == bank:
                self.need("tRC", when, d.t_rc_cycles, now)
            elif self.group(other) == self.group(bank):
                self.need("tRRD_L", when, d.t_rrd_l_cycles, now)
            else:
                self.need("tRRD_S", when, d.t_rrd_s_cycles, now)
        if len(self.activates) >= 4:
            self.need("tFAW", self.activates[-4], d.t_faw_cycles, now)
        self.need("tRP", self.precharge_began.get(bank), d.t_rp_cycles, now)
        self.activates.append(now)
        self.open_row[bank] = row

    def earliest_precharge(self, bank: int) -> list[tuple[str, int | None, int]]:
        d = self.device
        recovery = d.wl_cycles + d.burst_length // 2 + d.t_wr_cycles
        return [
            ("tRAS", self.last["act"].get(bank), d.t_ras_cycles),
            ("tRTP", self.last["rd"].get(bank), d.t_rtp_cycles),
            ("tWR", self.last["wr"].get(bank), recovery),
        ]

    def precharge(self, now: int, bank: int) -> None:
        if bank not in self.open_row:
            self.wrong(now, f"precharge of the closed bank {bank}")
        for rule, when, gap in self.earliest_precharge(bank):
            self.need(rule, when, gap, now)
        self.open_row.pop(bank, None)
        self.precharge_began[bank] = now

    def refresh(self, now: int) -> None:
        d = self.device
        if self.open_row:
            self.wrong(now, f"refresh with banks {sorted(self.open_row)} open")
        for bank in range(d.banks):
            self.need("tRC", self.last["act"].get(bank), d.t_rc_cycles, now)
            self.need("tRP", self.precharge_began.get(bank), d.t_rp_cycles, now)
        self.last_refresh = now

    def column(self, now: int, name: str, bank: int, row: int) -> None:
        d = self.device
        burst = d.burst_length // 2
        if self.open_row.get(bank) != row:
            self.wrong(now, f"{name} to row {row} of bank {bank}, open: {self.open_row.get(bank)}")
        self.need("tRCD", self.last["act"].get(bank), d.t_rcd_cycles, now)
        own, others = (READS, WRITES) if name in READS else (WRITES, READS)
        for kind in own:
            for other, when in self.last[kind].items():
                long = self.group(other) == self.group(bank)
                self.need("tCCD", when, d.t_ccd_l_cycles if long else d.t_ccd_s_cycles, now)
        for kind in others:
            for other, when in self.last[kind].items():
                long = self.group(other) == self.group(bank)
                if name in READS:
                    wtr = d.t_wtr_l_cycles if long else d.t_wtr_s_cycles
                    self.need("tWTR", when, d.wl_cycles + burst + wtr, now)
                else:
                    # Data bus turnaround: two clocks on DDR3; a clock and the preamble on DDR4.
                    turn = 2 if d.standard == "DDR3" else 1 + d.t_wpre_cycles
                    self.need("read to write", when, d.rl_cycles + burst + turn - d.wl_cycles, now)
        starts = now + (d.rl_cycles if name in READS else d.wl_cycles)
        if starts < self.bus_free:
            self.wrong(now, f"{name} puts data on the busy bus")
        self.bus_free = starts + burst
        if name in ("rda", "wra"):
            self.close_with(now, name, bank)

    def close_with(self, now: int, name: str, bank: int) -> None:
        """Auto-precharge: the chip waits for tRAS by itself, not for the write recovery."""
        d = self.device
        recovery = d.wl_cycles + d.burst_length // 2 + d.t_wr_cycles
        began = now + (d.t_rtp_cycles if name == "rda" else recovery)
        self.need("tWR", self.last["wr"].get(bank), recovery, began)
        self.open_row.pop(bank, None)
        opened = self.last["act"].get(bank, LONG_AGO)
        self.precharge_began[bank] = max(began, opened + d.t_ras_cycles)


def violations(device: Device, log: NDArray[np.int64]) -> list[str]:
    """What is wrong with a command log (cycle, command, bank, row), in words; empty if nothing."""
    checker = TimingChecker(device)
    for cycle, code, bank, row in log.tolist():
        checker.command(cycle, COMMANDS[code], bank, row)
    return checker.violations
