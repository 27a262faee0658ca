"""Checks that no command of a log breaks a rule of the device's standard.

Written from the standards, independently of the simulator: for each command it
looks back at the earlier ones and asks whether the gap that the standard demands has passed. Gaps
count between command edges, the last clocks of two commands.

Sources: JESD79-3F and JESD79-4 (DDR3, DDR4: sections on commands, refresh, power-down and
self-refresh), JESD79-5 (DDR5: table of minimum read and write gaps, refresh scheduling),
JESD209-4 (LPDDR4: table "Core timing", sections on per-bank refresh and power-down), JESD209-5
(LPDDR5: tables 237, 240 and 340 to 351) and JESD235 (HBM2). What no standard gives, the gap on the
data bus between ranks, is the device's ``t_rtrs_cycles``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.controller.result import COMMANDS
from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.validation.refresh_checker import check_refreshes

__all__ = ["check_refreshes", "violations"]

_LONG_AGO = -(10**12)
_LOW_POWER = ("LPDDR4", "LPDDR5")
_WCK_TO_DATA_PS = 1600
"""Longest tWCK2DQO of LPDDR5: JESD209-5, table "Read AC timing"."""


def violations(
    memory: Memory,
    log: NDArray[np.int64],
    *,
    refresh_policy: str = "none",
    max_postponed: int | None = None,
    cycles: int | None = None,
) -> list[str]:
    """Violations of timing rules by the commands of one channel, one line each.

    Args:
        memory: gives the device's figures and the number of ranks.
        log: cycle of the first clock, code (index into
            :data:`archgym.envs.dram.controller.result.COMMANDS`), rank, bank and row of each
            command, in order, shape (n_commands, 5): an array of ``Result.log``.
        refresh_policy: unless ``none``, whether refreshes come often enough is checked too.
        max_postponed: see :func:`check_refreshes`.
        cycles: see :func:`check_refreshes`.

    Example:
        >>> from archgym.envs.dram.device.memory import load_memory
        >>> act, rd = COMMANDS.index("act"), COMMANDS.index("rd")
        >>> log = np.array([[0, act, 0, 0, 7], [9, rd, 0, 0, 7]])
        >>> violations(load_memory("DDR3-1600"), log)
        ['cycle 9, rank 0, bank 0: rd: tRCD needs 10 cycles, has 9']
    """
    channel = _Channel(memory)
    for cycle, code, rank, bank, row in log.tolist():
        channel.command(cycle, COMMANDS[code], rank, bank, row)
    found = channel.found
    if refresh_policy != "none":
        found = found + check_refreshes(
            memory,
            log,
            refresh_policy=refresh_policy,
            max_postponed=max_postponed,
            cycles=cycles,
        )
    return found


class _Bank:
    """Edges of a bank's last commands, and its open row."""

    def __init__(self) -> None:
        self.row: int | None = None
        self.act = self.rd = self.wr = self.refreshed = _LONG_AGO
        # Edge at which the precharge began, by whatever command, and how long it takes.
        self.closed = _LONG_AGO
        self.t_rp = 0


class _Rank:
    """Edges of a rank's last commands."""

    def __init__(self, banks: int, groups: int) -> None:
        self.banks = [_Bank() for _ in range(banks)]
        self.act = [_LONG_AGO] * groups
        self.rd = [_LONG_AGO] * groups
        self.wr = [_LONG_AGO] * groups
        self.wra = self.pre = self.refab = self.ref = _LONG_AGO
        # Activates, and refreshes of one bank where they count as such.
        self.window: deque[int] = deque([_LONG_AGO] * 4, maxlen=4)
        self.down: str | None = None
        self.entered = self.pdx = self.srx = _LONG_AGO
        self.owes_refresh = False


class _Channel:
    """Takes commands in order and collects violations."""

    def __init__(self, memory: Memory) -> None:
        d = self.d = memory.device
        self.found: list[str] = []
        self.ranks = [_Rank(d.banks, d.bank_groups) for _ in range(memory.ranks)]
        self.traits = d.traits
        self.last = self.row_bus = self.column_bus = _LONG_AGO
        # The data bus: end of the last burst, its rank and whether it was a write.
        self.data_end, self.data_rank, self.data_write = _LONG_AGO, 0, False
        # Context of the command at hand.
        self.cycle = self.edge = self.rank = self.bank = 0
        self.name = ""
        low_power = d.standard in _LOW_POWER
        # LPDDR counts the write recovery from a clock after the data, LPDDR4 also tWTR.
        self.recovery = d.wl_cycles + int(low_power) + d.burst_cycles + d.t_wr_cycles
        # LPDDR4: tRTP is that of an eight-clock burst.
        self.read_to_pre = d.t_rtp_cycles + (d.burst_cycles - 8 if d.standard == "LPDDR4" else 0)
        self.read_end = d.rl_cycles + d.t_dqsck_cycles + d.burst_cycles
        self.write_end = d.wl_cycles + d.t_dqss_cycles + d.t_dqs2dq_cycles + d.burst_cycles

    def wrong(self, what: str) -> None:
        bank = f", bank {self.bank}" if self.bank >= 0 else ""
        self.found.append(f"cycle {self.cycle}, rank {self.rank}{bank}: {self.name}: {what}")

    def need(self, rule: str, earlier: int, gap: int) -> None:
        if self.edge - earlier < gap:
            self.wrong(f"{rule} needs {gap} cycles, has {self.edge - earlier}")

    def command(self, cycle: int, name: str, rank: int, bank: int, row: int) -> None:
        self.cycle, self.name, self.rank, self.bank = cycle, name, rank, bank
        length = self._length(name)
        self.edge = cycle + max(length, 1) - 1
        if cycle < self.last:
            self.wrong("before the command ahead of it")
        self.last = cycle
        if length:
            self._take_bus(length)
        r = self.ranks[rank]
        self._check_awake(r)
        if name == "act":
            self._activate(r, bank, row)
        elif name in ("rd", "rda", "wr", "wra"):
            self._column(r, bank, row)
        elif name in ("pre", "presb", "preab"):
            self._precharge(r, bank)
        elif name in ("refab", "refpb", "refsb"):
            self._refresh(r, bank)
        elif name in ("pde", "sre"):
            self._enter(r)
        elif name in ("pdx", "srx"):
            self._leave(r)
        else:
            self.wrong("no command of a DRAM")

    def _length(self, name: str) -> int:
        """Clocks on the command bus; none where the rank has a separate pin."""
        t = self.traits
        if name == "act":
            return t.activate_cycles
        if name in ("rd", "rda", "wr", "wra"):
            return t.column_cycles
        if name in ("pre", "presb", "preab"):
            return t.precharge_cycles
        if name in ("pde", "pdx"):
            return int(self.d.standard in ("DDR5", "LPDDR5"))
        return t.refresh_cycles

    def _take_bus(self, length: int) -> None:
        column = self.name in ("rd", "rda", "wr", "wra")
        if self.cycle < (self.column_bus if column else self.row_bus):
            self.wrong("in a clock of the command ahead of it")
        if column or not self.traits.separate_buses:
            self.column_bus = self.cycle + length
        if not column or not self.traits.separate_buses:
            self.row_bus = self.cycle + length

    def _check_awake(self, r: _Rank) -> None:
        exits = {"pde": "pdx", "sre": "srx"}
        if r.down is not None and self.name != exits[r.down]:
            self.wrong("power-down" if r.down == "pde" else "self-refresh")
        if self.name in ("pde", "pdx", "srx"):
            return
        # The chip must be awake for the first clock of a command.
        self.need("tXP", r.pdx, self.d.t_xp_cycles + self.edge - self.cycle)
        self.need("tXS", r.srx, self.d.t_xs_cycles)
        self.need("tRFC", r.refab, self.d.t_rfc_cycles)

    def _group(self, bank: int) -> int:
        return bank // self.d.banks_per_group

    def _set(self, r: _Rank) -> Iterable[int]:
        """Banks that the command at hand is for."""
        if self.name in ("presb", "refsb"):
            return range(self.bank % self.d.banks_per_group, self.d.banks, self.d.banks_per_group)
        return range(self.d.banks) if self.bank < 0 else (self.bank,)

    def _activate(self, r: _Rank, bank: int, row: int) -> None:
        d, b, group = self.d, r.banks[bank], self._group(bank)
        if b.row is not None:
            self.wrong(f"of an open bank, row {b.row}")
        self.need("tRC", b.act, d.t_rc_cycles)
        for g, act in enumerate(r.act):
            long = g == group
            self.need("tRRD", act, d.t_rrd_l_cycles if long else d.t_rrd_s_cycles)
        self.need("tFAW", r.window[0], d.t_faw_cycles)
        self.need("tRP", b.closed, b.t_rp)
        self.need("refresh of the bank", b.refreshed, d.t_rfc_pb_cycles or d.t_rfc_sb_cycles)
        if r.ref != b.refreshed:
            self.need("refresh of another bank", r.ref, d.t_ref_act_cycles or d.t_rrd_s_cycles)
        r.window.append(self.edge)
        r.act[group] = b.act = self.edge
        b.row = row

    def _column(self, r: _Rank, bank: int, row: int) -> None:
        d, b, group = self.d, r.banks[bank], self._group(bank)
        write = self.name in ("wr", "wra")
        if b.row != row:
            self.wrong(f"to row {row}, open: {b.row}")
        if write:
            self.need("tRCD", b.act, d.t_rcd_wr_cycles or d.t_rcd_cycles)
        else:
            self.need("tRCD", b.act, d.t_rcd_cycles)
            self.need("tXSDLL", r.srx, d.t_xsdll_cycles)
        for g in range(d.bank_groups):
            long = g == group
            ccd = d.t_ccd_l_cycles if long else d.t_ccd_s_cycles
            if write:
                self.need("tCCD", r.wr[g], (long and d.t_ccd_l_wr_cycles) or ccd)
                self.need("read to write", r.rd[g], self._read_to_write(long))
            else:
                self.need("tCCD", r.rd[g], ccd)
                self.need("tWTR", r.wr[g], self._write_to_read(long))
        self._take_data_bus(write)
        if write:
            r.wr[group] = b.wr = self.edge
        else:
            r.rd[group] = b.rd = self.edge
        if self.name in ("rda", "wra"):
            self._auto_precharge(r, b)

    def _read_to_write(self, long: bool) -> int:
        """Same rank: the read data and postamble must be out before the write preamble."""
        d = self.d
        gap = self.read_end - d.wl_cycles
        if d.standard == "DDR3":
            return gap + 2
        if d.standard == "DDR4":
            return gap + 1 + d.t_wpre_cycles
        if d.standard == "DDR5":
            # tRPST - 0.5, and the figure is rounded up: 0.5 makes nothing, 1.5 one clock.
            return gap + 2 + d.t_wpre_cycles + max(0, d.t_rpst_cycles - 1)
        if d.standard == "LPDDR4":
            return gap + d.t_wpre_cycles + d.t_rpst_cycles
        if d.standard == "LPDDR5":
            strobe = max(0, -(-_WCK_TO_DATA_PS // d.t_ck_ps) - d.t_dqsck_cycles)
            return gap + strobe + self._longer(long)
        return d.t_rtw_cycles or gap + 1

    def _write_to_read(self, long: bool) -> int:
        """Same rank: tWTR counts from the end of the write data."""
        d = self.d
        latch = 1 if d.standard == "LPDDR4" else self._longer(long)
        wtr = d.t_wtr_l_cycles if long else d.t_wtr_s_cycles
        return d.wl_cycles + d.burst_cycles + latch + wtr

    def _longer(self, long: bool) -> int:
        """LPDDR5: in the same bank group a burst takes BL/n_max, which is tCCD_L."""
        d = self.d
        return d.t_ccd_l_cycles - d.burst_cycles if long and d.standard == "LPDDR5" else 0

    def _take_data_bus(self, write: bool) -> None:
        d = self.d
        end = self.edge + (self.write_end if write else self.read_end)
        start = end - d.burst_cycles
        gap = 0
        if self.rank != self.data_rank:
            gap = d.t_rtrs_cycles
            if write != self.data_write and d.standard not in ("DDR3", *_LOW_POWER):
                gap += d.t_wpre_cycles if write else d.t_rpre_cycles
        if start < self.data_end + gap:
            what = f"{start - self.data_end} cycles after the burst before, needs {gap}"
            self.wrong(f"data bus: {what}" + (" (tRTRS)" if gap else ""))
        self.data_end, self.data_rank, self.data_write = end, self.rank, write

    def _auto_precharge(self, r: _Rank, b: _Bank) -> None:
        """The chip waits for tRAS by itself, not for the recovery of an earlier write."""
        d = self.d
        began = self.edge + (self.recovery if self.name == "wra" else self.read_to_pre)
        if began - b.wr < self.recovery:
            self.wrong(f"tWR needs {self.recovery} cycles to the precharge, has {began - b.wr}")
        b.row = None
        b.closed = max(began, b.act + d.t_ras_cycles)
        b.t_rp = d.t_rp_cycles
        if self.name == "wra":
            r.wra = self.edge

    def _precharge(self, r: _Rank, bank: int) -> None:
        d = self.d
        of = [r.banks[i] for i in self._set(r)]
        if self.name != "preab" and all(b.row is None for b in of):
            self.wrong("of a closed bank")
        self.need("tPPD", r.pre, d.t_ppd_cycles)
        if self.name == "preab":
            self.need("refresh of a bank", r.ref, d.t_rfc_pb_cycles or d.t_rfc_sb_cycles)
        for b in of:
            if b.row is None:
                continue
            self.need("tRAS", b.act, d.t_ras_cycles)
            self.need("tRTP", b.rd, self.read_to_pre)
            self.need("tWR", b.wr, self.recovery)
            b.row = None
            b.closed = self.edge
            b.t_rp = (self.name == "preab" and d.t_rp_ab_cycles) or d.t_rp_cycles
        r.pre = self.edge

    def _check_closed(self, b: _Bank, bank: int) -> None:
        if b.row is not None:
            self.wrong(f"with bank {bank} open")
        self.need("tRC", b.act, self.d.t_rc_cycles)
        self.need("tRP", b.closed, b.t_rp)

    def _refresh(self, r: _Rank, bank: int) -> None:
        d = self.d
        for i in self._set(r):
            self._check_closed(r.banks[i], i)
        some = d.t_rfc_pb_cycles or d.t_rfc_sb_cycles
        if self.name == "refab":
            self.need("refresh of a bank", r.ref, some)
            r.refab = self.edge
            r.owes_refresh = False
            return
        self.need("refresh to refresh", r.ref, d.t_ref_ref_cycles or some)
        for i in self._set(r):
            b = r.banks[i]
            self.need("refresh of the bank", b.refreshed, some)
            b.refreshed = self.edge
            for g, act in enumerate(r.act):
                long = g == self._group(i)
                self.need("tRRD", act, d.t_rrd_l_cycles if long else d.t_rrd_s_cycles)
        if self.name == "refpb":
            # The refresh of one bank counts as an activate.
            self.need("tFAW", r.window[0], d.t_faw_cycles)
            r.window.append(self.edge)
        r.ref = self.edge

    def _enter(self, r: _Rank) -> None:
        """Power-down, with whatever banks open, or self-refresh, with all closed."""
        d = self.d
        low_power = d.standard in _LOW_POWER
        late = 1 if d.standard in ("DDR5", "HBM2") else 0
        self.need("tCKE", max(r.pdx, r.srx), d.t_cke_cycles)
        self.need(
            "read to power-down", max(r.rd), self.read_end + (d.t_rpst_cycles if low_power else 1)
        )
        if self.name == "sre":
            for i, b in enumerate(r.banks):
                self._check_closed(b, i)
            self.need("refresh of a bank", r.ref, d.t_rfc_pb_cycles or d.t_rfc_sb_cycles)
            if r.owes_refresh:
                self.wrong("no refresh since the last self-refresh")
        else:
            written = self.write_end + d.t_wr_cycles
            self.need("write to power-down", max(r.wr), written + late)
            self.need("write to power-down", r.wra, written + (2 if low_power else 1))
            self.need("tACTPDEN", max(r.act), d.t_actpden_cycles)
            self.need("tPRPDEN", r.pre, d.t_prpden_cycles)
            self.need("tREFPDEN", max(r.refab, r.ref), d.t_refpden_cycles)
        r.down = self.name
        r.entered = self.edge

    def _leave(self, r: _Rank) -> None:
        if self.name == "pdx":
            if r.down != "pde":
                self.wrong("not in power-down")
            self.need("tCKE", r.entered, self.d.t_cke_cycles)
            r.pdx = self.edge
        else:
            if r.down != "sre":
                self.wrong("not in self-refresh")
            self.need("tCKESR", r.entered, self.d.t_ckesr_cycles)
            r.srx = self.edge
            r.owes_refresh = True
        r.down = None
