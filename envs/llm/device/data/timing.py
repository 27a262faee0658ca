"""DRAM in closed form: what a channel streams, what it costs, and what its banks do on their own.

Bandwidth of reads one after the other over all banks: a row gives its bursts tCCD_S apart, since
consecutive bursts change the bank group; the next rows are opened meanwhile. An activate takes
slots of the command bus; where they do not fit between two column commands, data waits for it. Each
refresh interval loses tRFC, and tRP and tRCD around it. ``benchmarks/llm_device_dram.py`` and the
tests compare with DRAM-v0's simulator.

Products in memory: all banks of a rank open a row each, at most four within tFAW, multiply its
columns with a vector that all share, and close it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from archgym.envs.dram.controller.energy import Activity, energy
from archgym.envs.dram.device.data_sheets import load_device
from archgym.envs.dram.device.device import Device

__all__ = ["ChannelTiming", "StreamEnergy", "stream_energy", "timing_of"]

_INTERVALS: Final = 1000
"""Refresh intervals over which energies are counted, so that counts are whole numbers."""
_UNIT_CLOCK_PS: Final = 1000
"""Shortest clock of a unit in memory: 1 GHz, as SK hynix's GDDR6-AiM (ISSCC 2022) has."""


@dataclass(frozen=True)
class ChannelTiming:
    """One rank on one channel; times in cycles of the command clock.

    Attributes:
        name: of the device.
        t_ck_ps: clock period, ps.
        bytes_per_burst: bytes of a column command.
        columns_per_row: column commands that read a row.
        banks: banks of the rank.
        capacity_mib: of the rank.
        t_ccd_s: column to column, other group.
        t_ccd_l: column to column, same bank.
        t_rcd: activate to column.
        t_rp: precharge.
        t_ras: activate to precharge.
        t_rc: activate to activate of a bank.
        t_rrd: activate to activate, other bank.
        t_faw: window of four activates.
        t_rtp: read to precharge.
        t_rfc: refresh.
        t_refi: interval of refreshes.
        activate_cycles: cycles of the command bus that an activate takes.
        column_cycles: the same of a column command.
        separate_buses: whether activates have a command bus of their own.
        peak_gb_per_s: bandwidth of the data bus, GB/s.
        opened_together: banks that open within tFAW; more than four need a part made for it.
    """

    name: str
    t_ck_ps: int
    bytes_per_burst: int
    columns_per_row: int
    banks: int
    capacity_mib: float
    t_ccd_s: int
    t_ccd_l: int
    t_rcd: int
    t_rp: int
    t_ras: int
    t_rc: int
    t_rrd: int
    t_faw: int
    t_rtp: int
    t_rfc: int
    t_refi: int
    activate_cycles: int
    column_cycles: int
    separate_buses: bool
    peak_gb_per_s: float
    opened_together: int = 4

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.columns_per_row * self.bytes_per_burst

    @property
    def refresh_share(self) -> float:
        """Share of the time in which refreshes let nothing be read."""
        return (self.t_rfc + self.t_rp + self.t_rcd) / self.t_refi

    @property
    def stream_gb_per_s(self) -> float:
        """Bandwidth of reads over all banks, GB/s (10^9 bytes), by one rank of the channel."""
        fits = self.separate_buses or self.t_ccd_s - self.column_cycles >= self.activate_cycles
        reading = self.columns_per_row * self.t_ccd_s + (0 if fits else self.activate_cycles)
        row = max(reading, self.t_rrd, self.t_faw / 4, self.t_rc / self.banks)
        clocks_ns = row * self.t_ck_ps * 1e-3
        reached = self.row_bytes / clocks_ns * (1 - self.refresh_share)
        return min(reached, self.peak_gb_per_s * (1 - self.refresh_share))

    @property
    def unit_clock_ns(self) -> float:
        """Clock of a unit in memory, ns."""
        return max(self.t_ck_ps, _UNIT_CLOCK_PS) * 1e-3


@dataclass(frozen=True)
class StreamEnergy:
    """Energy of a rank whose rows are read one after the other; the DRAM core without interfaces.

    Attributes:
        column_pj_per_bit: of reading bits from open rows, pJ.
        row_pj_per_bit: of opening and closing rows, by the bits that are read, pJ.
        standby_mw: of open banks and refreshes, by rank, mW.
        idle_mw: with all banks closed, refreshes included, by rank, mW.
    """

    column_pj_per_bit: float
    row_pj_per_bit: float
    standby_mw: float
    idle_mw: float

    def total_pj_per_bit(self, gb_per_s: float) -> float:
        """Energy by bit at a bandwidth, pJ."""
        return self.column_pj_per_bit + self.row_pj_per_bit + self.standby_mw / (8 * gb_per_s)


@lru_cache(maxsize=64)
def timing_of(device: str) -> ChannelTiming:
    """A device of DRAM-v0.

    Raises:
        UnknownNameError: if there is none of that name.
    """
    d = load_device(device)
    return ChannelTiming(
        name=d.name,
        t_ck_ps=d.t_ck_ps,
        bytes_per_burst=d.bytes_per_request,
        columns_per_row=d.columns // d.burst_length,
        banks=d.banks,
        capacity_mib=d.capacity_bytes / 2**20,
        t_ccd_s=d.t_ccd_s_cycles,
        t_ccd_l=d.t_ccd_l_cycles,
        t_rcd=d.t_rcd_cycles,
        t_rp=d.t_rp_ab_cycles or d.t_rp_cycles,
        t_ras=d.t_ras_cycles,
        t_rc=d.t_rc_cycles,
        t_rrd=d.t_rrd_s_cycles,
        t_faw=d.t_faw_cycles,
        t_rtp=d.t_rtp_cycles,
        t_rfc=d.t_rfc_cycles,
        t_refi=d.t_refi_cycles,
        activate_cycles=d.traits.activate_cycles,
        column_cycles=d.traits.column_cycles,
        separate_buses=d.traits.separate_buses,
        peak_gb_per_s=d.peak_bandwidth_gb_per_s,
    )


def stream_energy(device: Device) -> StreamEnergy:
    """Energies of a device with currents, by the equations that DRAM-v0 uses."""
    t = timing_of(device.name)
    cycles = device.t_refi_cycles * _INTERVALS
    window_ns = cycles * device.t_ck_ps * 1e-3
    refreshing = (device.t_rfc_cycles + t.t_rp) * _INTERVALS
    bits = 8 * t.row_bytes
    row = energy(device, Activity(activates=1, precharges=1)).total_pj
    column = energy(device, Activity(reads=t.columns_per_row)).total_pj
    awake = Activity(
        refreshes=_INTERVALS,
        active_cycles=cycles - t.t_rp * _INTERVALS,
        precharged_cycles=t.t_rp * _INTERVALS,
    )
    idle = Activity(
        refreshes=_INTERVALS,
        active_cycles=refreshing,
        precharged_cycles=cycles - refreshing,
    )
    return StreamEnergy(
        column / bits,
        row / bits,
        energy(device, awake).total_pj / window_ns,
        energy(device, idle).total_pj / window_ns,
    )
