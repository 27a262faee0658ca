"""Energy of a channel's ranks from command counts and standby times: the DRAMPower 4 equations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from functools import lru_cache

from archgym.envs.dram.device.device import Device

__all__ = ["Activity", "Energy", "energy", "total_activity"]


@dataclass(frozen=True)
class Activity:
    """What the ranks of a channel did during a run; cycles are summed over the ranks.

    Attributes:
        activates: ACT commands.
        precharges: banks that were closed, by PRE, by auto-precharge or by PREAB.
        reads: read bursts.
        writes: write bursts.
        refreshes: all-bank refreshes.
        bank_refreshes: banks refreshed by per-bank and same-bank refreshes.
        active_cycles: cycles awake with at least one bank open.
        precharged_cycles: cycles awake with all banks closed.
        down_active_cycles: cycles in power-down with a bank open.
        down_precharged_cycles: cycles in power-down with all banks closed.
        self_refresh_cycles: cycles in self-refresh.
        entry_refresh_cycles: cycles of refreshes with which self-refresh begins, where they are
            counted apart; their background is among the other cycles.
    """

    activates: int = 0
    precharges: int = 0
    reads: int = 0
    writes: int = 0
    refreshes: int = 0
    bank_refreshes: int = 0
    active_cycles: int = 0
    precharged_cycles: int = 0
    down_active_cycles: int = 0
    down_precharged_cycles: int = 0
    self_refresh_cycles: int = 0
    entry_refresh_cycles: int = 0


def total_activity(activities: Iterable[Activity]) -> Activity:
    """What several channels or ranks did together."""
    rows = [astuple(activity) for activity in activities]
    return Activity(*(sum(column) for column in zip(*rows, strict=True)))


@dataclass(frozen=True)
class Energy:
    """Energy by cause, pJ, of all chips; input/output drivers are not included.

    Attributes:
        activate_pj: opening rows, above active standby.
        precharge_pj: closing rows, above precharged standby.
        read_pj: read bursts, above active standby.
        write_pj: write bursts, above active standby.
        refresh_pj: refreshes, above active standby.
        active_standby_pj: background while a bank is open.
        precharged_standby_pj: background while all banks are closed.
        power_down_pj: background in power-down.
        self_refresh_pj: self-refresh.
    """

    activate_pj: float
    precharge_pj: float
    read_pj: float
    write_pj: float
    refresh_pj: float
    active_standby_pj: float
    precharged_standby_pj: float
    power_down_pj: float
    self_refresh_pj: float

    @property
    def total_pj(self) -> float:
        """Sum of the parts, pJ."""
        return (
            self.activate_pj
            + self.precharge_pj
            + self.read_pj
            + self.write_pj
            + self.refresh_pj
            + self.active_standby_pj
            + self.precharged_standby_pj
            + self.power_down_pj
            + self.self_refresh_pj
        )


def energy(device: Device, activity: Activity) -> Energy:
    """Energy of an activity.

    Each part is a current above its background, times voltage, time and number (mA x V x ns =
    pJ), times the chips of a rank, added over the device's supplies. A supply without standby
    currents, such as DDR4's activation supply, so counts for activates and precharges only.

    Where a data sheet has no current for the refresh of one bank, that refresh counts as one
    activate and precharge of a row, which is what DRAMPower 4 does.

    Args:
        device: its currents and timings.
        activity: what the ranks did.

    Example:
        >>> from archgym.envs.dram.device.data_sheets import load_device
        >>> idle = Activity(precharged_cycles=800)
        >>> energy(load_device("DDR3-1600"), idle).total_pj  # 45 mA x 1.5 V x 1000 ns x 8
        540000.0
    """
    unit = _unit_energies(device)
    a = activity
    return Energy(
        activate_pj=a.activates * unit[0],
        precharge_pj=a.precharges * unit[1],
        read_pj=a.reads * unit[2],
        write_pj=a.writes * unit[3],
        refresh_pj=a.refreshes * unit[4] + a.bank_refreshes * unit[5],
        active_standby_pj=a.active_cycles * unit[6],
        precharged_standby_pj=a.precharged_cycles * unit[7],
        power_down_pj=a.down_active_cycles * unit[8] + a.down_precharged_cycles * unit[9],
        self_refresh_pj=a.self_refresh_cycles * unit[10] + a.entry_refresh_cycles * unit[11],
    )


@lru_cache(maxsize=64)
def _unit_energies(d: Device) -> tuple[float, ...]:
    """Energies of one event or cycle, pJ.

    In order: activate, precharge, read, write, refresh of all banks and of one; a cycle of active
    and precharged standby, of power-down with a bank open and with none, of self-refresh, of an
    all-bank refresh.
    """
    totals = [0.0] * 12
    opening, closing = d.t_ras_cycles, d.t_rc_cycles - d.t_ras_cycles
    refresh_one = d.t_rfc_pb_cycles or d.t_rfc_sb_cycles
    for s in d.supplies:
        per_ma_cycle = s.voltage_v * d.t_ck_ps * 1e-3 * d.devices_per_rank
        open_and_close = opening * (s.idd0_ma - s.idd3n_ma) + closing * (s.idd0_ma - s.idd2n_ma)
        one_bank = refresh_one * (s.idd5pb_ma - s.idd3n_ma) if s.idd5pb_ma else open_and_close
        parts = (
            opening * (s.idd0_ma - s.idd3n_ma),
            closing * (s.idd0_ma - s.idd2n_ma),
            d.burst_cycles * (s.idd4r_ma - s.idd3n_ma),
            d.burst_cycles * (s.idd4w_ma - s.idd3n_ma),
            d.t_rfc_cycles * (s.idd5_ma - s.idd3n_ma),
            one_bank,
            s.idd3n_ma,
            s.idd2n_ma,
            s.idd3p_ma,
            s.idd2p_ma,
            s.idd6_ma,
            s.idd5_ma - s.idd3n_ma,
        )
        for i, part in enumerate(parts):
            totals[i] += per_ma_cycle * part
    return tuple(totals)
