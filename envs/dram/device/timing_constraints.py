"""Timing constraints: minimum distances between DRAM commands, from a device's figures.

A data sheet counts between command edges; here all distances are between the first clocks of two
commands on the bus, which is what the simulator schedules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from archgym.envs.dram.device.device import Device
from archgym.errors import InvalidValueError

__all__ = ["Constraints", "constraints", "refresh_policies"]


@dataclass(frozen=True)
class Constraints:
    """Cycles from the first clock of one command to the first clock of another.

    ``act``, ``rd``, ``wr``, ``pre``: activate, read, write, precharge of a bank; ``preab``,
    ``refab``: precharge and refresh of all banks of the rank; ``ref``: refresh of one bank, or of
    one bank in every group; ``pde``, ``pdx``, ``sre``, ``srx``: entry to and exit from power-down
    and self-refresh. Suffixes: ``_s`` other bank group of the rank, ``_l`` same bank group,
    ``_r`` other rank. A read or write with auto-precharge counts as a precharge ``rd_pre`` or
    ``wr_pre`` later.
    """

    act_length: int
    column_length: int
    pre_length: int
    ref_length: int
    act_rd: int
    act_wr: int
    act_pre: int
    act_act: int
    act_act_l: int
    act_act_s: int
    act_window: int
    act_ref: int
    act_ref_other: int
    rd_rd_l: int
    rd_rd_s: int
    rd_rd_r: int
    rd_wr_l: int
    rd_wr_s: int
    rd_wr_r: int
    wr_wr_l: int
    wr_wr_s: int
    wr_wr_r: int
    wr_rd_l: int
    wr_rd_s: int
    wr_rd_r: int
    rd_pre: int
    rd_auto_pre: int
    wr_pre: int
    wr_preab: int
    rd_data: int
    wr_data: int
    pre_act: int
    pre_ref: int
    pre_pre: int
    preab_act: int
    preab_ref: int
    refab_act: int
    refab_ref: int
    ref_act: int
    ref_act_other: int
    ref_ref: int
    ref_refab: int
    ref_interval: int
    act_pde: int
    rd_pde: int
    wr_pde: int
    wra_pde: int
    pre_pde: int
    ref_pde: int
    pde_pdx: int
    pdx_pde: int
    pdx_any: int
    sre_srx: int
    srx_act: int
    srx_ref: int
    srx_column: int


def constraints(
    d: Device, *, refresh_policy: str = "all_bank", timing_rules: str = "jedec"
) -> Constraints:
    """The distances that a device demands.

    Sources: the standards' command timing tables (see
    :data:`archgym.envs.dram.device.standards.STANDARDS`); for the edges of multi-clock commands
    JESD209-4 table "Core timing", as DRAMSys 5.1 applies them.

    Args:
        d: the device.
        refresh_policy: decides what ``ref`` means and how often it comes.
        timing_rules: as in :class:`archgym.envs.dram.controller.config.ControllerConfig`.

    Raises:
        InvalidValueError: if the device has no such refresh.
    """
    t = d.traits
    interval, refresh = _refresh_figures(d, refresh_policy)
    # Offsets of a command's edge from its first clock.
    act, col = t.activate_cycles - 1, t.column_cycles - 1
    pre, ref = t.precharge_cycles - 1, t.refresh_cycles - 1
    burst = d.burst_cycles
    low_power = d.standard in ("LPDDR4", "LPDDR5")
    read_end = d.rl_cycles + d.t_dqsck_cycles + burst
    write_end = d.wl_cycles + t.write_latch_cycles + burst
    written = d.wl_cycles + d.t_dqss_cycles + d.t_dqs2dq_cycles + burst
    preamble = d.t_wpre_cycles if t.preamble_turns else 0
    turn = t.turnaround_cycles + preamble + d.t_rpst_cycles
    rank_turn = d.t_rtrs_cycles + (0 if low_power else preamble)
    precharge_all = d.t_rp_ab_cycles or d.t_rp_cycles
    # LPDDR4 counts tRTP from the end of an eight-clock burst.
    rd_pre = d.t_rtp_cycles + col - pre + (burst - 8 if d.standard == "LPDDR4" else 0)
    # LPDDR5 adds a clock to the write recovery; its bursts spread out within a bank group.
    wr_pre = write_end + d.t_wr_cycles + col - pre + (1 if d.standard == "LPDDR5" else 0)
    spread = d.t_ccd_l_cycles - burst if d.standard == "LPDDR5" else 0
    rd_wr = d.t_rtw_cycles or read_end - d.wl_cycles + turn
    jedec = Constraints(
        act_length=t.activate_cycles,
        column_length=t.column_cycles,
        pre_length=t.precharge_cycles,
        ref_length=t.refresh_cycles,
        act_rd=d.t_rcd_cycles + act - col,
        act_wr=(d.t_rcd_wr_cycles or d.t_rcd_cycles) + act - col,
        act_pre=d.t_ras_cycles + act - pre,
        act_act=d.t_rc_cycles,
        act_act_l=d.t_rrd_l_cycles,
        act_act_s=d.t_rrd_s_cycles,
        act_window=d.t_faw_cycles,
        act_ref=d.t_rc_cycles + act - ref,
        # A same-bank refresh has a bank in the activate's own group.
        act_ref_other=(d.t_rrd_l_cycles if refresh_policy == "same_bank" else d.t_rrd_s_cycles)
        + act
        - ref,
        rd_rd_l=d.t_ccd_l_cycles,
        rd_rd_s=d.t_ccd_s_cycles,
        rd_rd_r=burst + d.t_rtrs_cycles,
        rd_wr_l=rd_wr + spread,
        rd_wr_s=rd_wr,
        rd_wr_r=max(1, read_end - written + burst + rank_turn),
        wr_wr_l=d.t_ccd_l_wr_cycles or d.t_ccd_l_cycles,
        wr_wr_s=d.t_ccd_s_cycles,
        wr_wr_r=burst + d.t_rtrs_cycles,
        wr_rd_l=write_end + spread + d.t_wtr_l_cycles,
        wr_rd_s=write_end + d.t_wtr_s_cycles,
        wr_rd_r=max(1, d.wl_cycles + burst + d.t_rtrs_cycles - d.rl_cycles + d.t_rpre_cycles),
        rd_pre=rd_pre,
        rd_auto_pre=rd_pre,
        wr_pre=wr_pre,
        wr_preab=wr_pre,
        rd_data=read_end + col,
        wr_data=written + col,
        pre_act=d.t_rp_cycles + pre - act,
        pre_ref=d.t_rp_cycles + pre - ref,
        pre_pre=d.t_ppd_cycles,
        preab_act=precharge_all + pre - act,
        preab_ref=precharge_all + pre - ref,
        refab_act=d.t_rfc_cycles + ref - act,
        refab_ref=d.t_rfc_cycles,
        ref_act=refresh + ref - act,
        ref_act_other=(d.t_ref_act_cycles or d.t_rrd_s_cycles) + ref - act,
        ref_ref=d.t_ref_ref_cycles or refresh,
        ref_refab=refresh,
        ref_interval=interval,
        act_pde=act + d.t_actpden_cycles,
        rd_pde=col + read_end + d.t_rpst_cycles + (0 if low_power else 1),
        wr_pde=col + written + d.t_wr_cycles,
        wra_pde=col + written + d.t_wr_cycles + (2 if low_power else 1),
        pre_pde=pre + d.t_prpden_cycles,
        ref_pde=ref + d.t_refpden_cycles,
        pde_pdx=d.t_cke_cycles,
        pdx_pde=d.t_cke_cycles,
        pdx_any=d.t_xp_cycles,
        sre_srx=d.t_ckesr_cycles,
        srx_act=d.t_xs_cycles + ref - act,
        srx_ref=d.t_xs_cycles,
        srx_column=d.t_xsdll_cycles or d.t_xs_cycles,
    )
    return _as_dramsys51(jedec, d) if timing_rules == "dramsys51" else jedec


def _refresh_figures(d: Device, policy: str) -> tuple[int, int]:
    """Interval of a refresh policy's commands, and how long a refresh of some banks takes."""
    figures = {
        "none": (d.t_refi_cycles, 0),
        "all_bank": (d.t_refi_cycles, 0),
        "per_bank": (d.t_refi_pb_cycles, d.t_rfc_pb_cycles),
        "same_bank": (d.t_refi_sb_cycles, d.t_rfc_sb_cycles),
    }
    interval, refresh = figures[policy]
    if interval == 0:
        raise InvalidValueError(
            f"refresh_policy {policy!r}: {d.name} has {', '.join(refresh_policies(d))}"
        )
    return interval, refresh


def refresh_policies(d: Device) -> tuple[str, ...]:
    """The refresh policies that a device can have."""
    some = {"per_bank": d.t_refi_pb_cycles, "same_bank": d.t_refi_sb_cycles}
    return ("none", "all_bank", *(policy for policy, interval in some.items() if interval))


def _as_dramsys51(jedec: Constraints, d: Device) -> Constraints:
    """The constraints with the errors of DRAMSys 5.1's checkers."""
    if d.standard == "DDR3":
        return replace(jedec, wr_preab=0)
    if d.standard == "DDR4":
        return replace(jedec, act_act=jedec.act_rd)
    if d.standard == "LPDDR4":
        across_ranks = d.rl_cycles + d.burst_cycles + d.t_rtrs_cycles - d.wl_cycles
        return replace(jedec, rd_pre=d.t_rrd_s_cycles + 2, rd_wr_r=max(1, across_ranks))
    return jedec
