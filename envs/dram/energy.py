"""Energy of a rank from its command counts and standby times: the DRAMPower 4 equations."""

from __future__ import annotations

from dataclasses import dataclass

from archgym.envs.dram.device import Device

__all__ = ["Activity", "Energy", "rank_energy"]


@dataclass(frozen=True)
class Activity:
    """What a rank did during a run.

    Attributes:
        activates: ACT commands.
        precharges: banks that were closed, by PRE, by auto-precharge or by PREAB.
        reads: read bursts.
        writes: write bursts.
        refreshes: all-bank refreshes.
        active_cycles: cycles with at least one bank open.
        precharged_cycles: cycles with all banks closed.
    """

    activates: int
    precharges: int
    reads: int
    writes: int
    refreshes: int
    active_cycles: int
    precharged_cycles: int


@dataclass(frozen=True)
class Energy:
    """Energy by cause, pJ, of all chips of the rank; input/output drivers are not included.

    Attributes:
        activate_pj: opening rows, above active standby.
        precharge_pj: closing rows, above precharged standby.
        read_pj: read bursts, above active standby.
        write_pj: write bursts, above active standby.
        refresh_pj: refreshes, above active standby.
        active_standby_pj: background while a bank is open.
        precharged_standby_pj: background while all banks are closed.
    """

    activate_pj: float
    precharge_pj: float
    read_pj: float
    write_pj: float
    refresh_pj: float
    active_standby_pj: float
    precharged_standby_pj: float

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
        )


def rank_energy(device: Device, activity: Activity) -> Energy:
    """Energy of an activity.

    Each part is a current above its background, times voltage, time and number (mA x V x ns =
    pJ), times the chips of the rank. The activation supply of DDR4 (VPP) counts for activates
    and precharges only.

    Args:
        device: its currents and timings.
        activity: what the rank did.

    Example:
        >>> from archgym.envs.dram.device import load_device
        >>> idle = Activity(0, 0, 0, 0, 0, active_cycles=0, precharged_cycles=800)
        >>> rank_energy(load_device("DDR3-1600"), idle).total_pj  # 45 mA x 1.5 V x 1000 ns x 8
        540000.0
    """
    d = device
    per_ma_cycle = d.vdd_v * d.t_ck_ps * 1e-3 * d.devices_per_rank
    vpp_per_cycle = d.vpp_v * d.ipp0_ma * d.t_ck_ps * 1e-3 * d.devices_per_rank
    active, closing = d.t_ras_cycles, d.t_rc_cycles - d.t_ras_cycles
    burst = d.burst_cycles
    return Energy(
        activate_pj=activity.activates
        * active
        * (per_ma_cycle * (d.idd0_ma - d.idd3n_ma) + vpp_per_cycle),
        precharge_pj=activity.precharges
        * closing
        * (per_ma_cycle * (d.idd0_ma - d.idd2n_ma) + vpp_per_cycle),
        read_pj=activity.reads * burst * per_ma_cycle * (d.idd4r_ma - d.idd3n_ma),
        write_pj=activity.writes * burst * per_ma_cycle * (d.idd4w_ma - d.idd3n_ma),
        refresh_pj=activity.refreshes * d.t_rfc_cycles * per_ma_cycle * (d.idd5_ma - d.idd3n_ma),
        active_standby_pj=activity.active_cycles * per_ma_cycle * d.idd3n_ma,
        precharged_standby_pj=activity.precharged_cycles * per_ma_cycle * d.idd2n_ma,
    )
