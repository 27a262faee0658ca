"""How DRAMPower 4 counts the activity of a rank that goes into power-down and self-refresh.

Only for comparisons with DRAMSys 5.1 (``timing_rules="dramsys51"``). DRAMPower reads a list of
commands and infers the state of the rank from it. Where it differs from the states that our
controller goes through:

- The precharge that ends a read or write with auto-precharge is a command of its own. A
  power-down before it counts the open row as precharged standby, and then as active standby too.
- Self-refresh begins with an all-bank refresh. Its cycles draw the refresh current above active
  standby, and the currents of power-down; what is left of it at the exit draws those of standby.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.controller.energy import Activity, total_activity
from archgym.envs.dram.device.device import Device
from archgym.envs.dram.kernel import layout as k

__all__ = ["COUNTED_STANDARDS", "counted_activity"]

COUNTED_STANDARDS = ("DDR3", "DDR4")
"""Standards that DRAMPower has in DRAMSys 5.1."""


def counted_activity(log: NDArray[np.int64], device: Device, ranks: int) -> Activity:
    """The activity of a channel as DRAMPower 4 counts it.

    Args:
        log: the commands of the channel, as in :attr:`Result.log`.
        device: its timings.
        ranks: ranks of the channel; each is counted alone.
    """
    counted = [_Rank(device).count(log[log[:, 2] == rank]) for rank in range(ranks)]
    return total_activity(counted)


class _Rank:
    """DRAMPower's state of a rank: the cycles by state so far, and since when it is in this one."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._cycles = dict.fromkeys(
            ("active", "precharged", "down_active", "down_precharged", "self_refresh", "entry"), 0
        )
        self._precharges = 0
        self._open: set[int] = set()
        self._active_since = self._precharged_since = self._asleep_since = 0
        self._slept_open: bool | None = None
        self._refreshing_itself = False

    def count(self, log: NDArray[np.int64]) -> Activity:
        """The activity in a log of this rank alone."""
        for cycle, command, bank in self._events(log):
            if command == k.ACT:
                if not self._open:
                    self._spend("precharged", cycle - self._precharged_since)
                    self._active_since = cycle
                self._open.add(bank)
            elif command == k.PRE:
                self._close({bank} & self._open, cycle)
            elif command == k.PREAB:
                self._close(set(self._open), cycle)
            elif command == k.REFAB:
                lasts = self._device.t_rfc_cycles - self._device.t_rp_cycles
                self._spend("precharged", cycle - self._precharged_since)
                self._spend("active", lasts)
                self._active_since, self._precharged_since = cycle, cycle + lasts
            elif command in (k.PDE, k.SRE):
                self._sleep(cycle, with_open_bank=command == k.PDE and bank == 1)
                self._refreshing_itself = command == k.SRE
            elif command == k.PDX:
                self._wake(cycle)
            elif command == k.SRX:
                self._leave_self_refresh(cycle)
            elif command == k.NOP:
                self._end(cycle)
        numbers = np.bincount(log[:, 1], minlength=k.N_COMMANDS).tolist()
        return Activity(
            activates=numbers[k.ACT],
            precharges=self._precharges,
            reads=numbers[k.RD] + numbers[k.RDA],
            writes=numbers[k.WR] + numbers[k.WRA],
            refreshes=numbers[k.REFAB],
            active_cycles=self._cycles["active"],
            precharged_cycles=self._cycles["precharged"],
            down_active_cycles=self._cycles["down_active"],
            down_precharged_cycles=self._cycles["down_precharged"],
            self_refresh_cycles=self._cycles["self_refresh"],
            entry_refresh_cycles=self._cycles["entry"],
        )

    def _events(self, log: NDArray[np.int64]) -> list[tuple[int, int, int]]:
        """Cycle, code and bank of each command, auto-precharges as PRE, the end as NOP.

        The bank of PDE is 1 if the controller has an open bank, else 0.
        """
        d = self._device
        after_write = d.burst_cycles + d.wl_cycles + d.t_wr_cycles
        after_read = max(d.t_rtp_cycles, 4) if d.standard == "DDR3" else d.t_rtp_cycles
        opened: dict[int, int] = {}
        open_now: set[int] = set()
        found: list[tuple[int, int, int]] = []
        for cycle, command, _, bank, _ in log.tolist():
            if command == k.ACT:
                opened[bank] = cycle
                open_now.add(bank)
            elif command in (k.RDA, k.WRA):
                closes = cycle + (after_read if command == k.RDA else after_write)
                found.append((max(closes, opened[bank] + d.t_ras_cycles), k.PRE, bank))
                open_now.discard(bank)
            elif command == k.PRE:
                open_now.discard(bank)
            elif command == k.PREAB:
                open_now.clear()
            elif command == k.PDE:
                bank = int(bool(open_now))
            found.append((cycle, command, bank))
        found.sort(key=lambda event: (event[0], event[1] != k.PRE))
        if found:
            last, command, _ = found[-1]
            found.append((last + self._lasting(command) - 1, k.NOP, -1))
        return found

    def _lasting(self, command: int) -> int:
        """Cycles after the last command that still count."""
        d = self._device
        if command in (k.RD, k.RDA):
            return d.rl_cycles + d.t_dqsck_cycles + 1 + d.burst_cycles
        if command in (k.WR, k.WRA):
            return d.wl_cycles + d.burst_cycles + d.t_wr_cycles
        if command == k.ACT:
            return d.t_rcd_cycles
        return d.t_rp_cycles if command in (k.PRE, k.PREAB) else 0

    def _spend(self, state: str, cycles: int) -> None:
        self._cycles[state] += max(0, cycles)

    def _close(self, banks: set[int], cycle: int) -> None:
        self._precharges += len(banks)
        self._open -= banks
        if banks and not self._open:
            self._spend("active", cycle - self._active_since)
            self._precharged_since = cycle

    def _sleep(self, cycle: int, *, with_open_bank: bool) -> None:
        if with_open_bank:
            self._spend("active", cycle - self._active_since)
        else:
            self._spend("precharged", cycle - self._precharged_since)
        self._slept_open = with_open_bank
        self._asleep_since = cycle

    def _wake(self, cycle: int) -> None:
        slept = cycle - self._asleep_since
        if self._slept_open:
            self._spend("down_active", slept)
            self._active_since = cycle
        else:
            self._spend("down_precharged", slept)
            self._precharged_since = cycle
        self._slept_open = None

    def _leave_self_refresh(self, cycle: int) -> None:
        """The refresh at the entry takes its cycles first, also beyond the exit."""
        slept = cycle - self._asleep_since
        closing = self._device.t_rp_cycles
        refreshing = self._device.t_rfc_cycles - closing
        self._spend("self_refresh", slept - refreshing - closing)
        self._spend("entry", refreshing + closing)
        before = min(slept, refreshing)
        closed_before = min(max(0, slept - refreshing), closing)
        self._spend("down_active", before)
        self._spend("down_precharged", closed_before)
        self._spend("active", refreshing - before)
        self._spend("precharged", closing - closed_before)
        self._precharged_since = cycle + refreshing - before + closing - closed_before
        self._slept_open = None
        self._refreshing_itself = False

    def _end(self, cycle: int) -> None:
        if self._refreshing_itself:
            self._leave_self_refresh(cycle)
        elif self._slept_open is not None:
            self._wake(cycle)
        elif self._open:
            self._spend("active", cycle - self._active_since)
        else:
            self._spend("precharged", cycle - self._precharged_since)
