"""The timing checker finds each kind of violation when one is put in, and nothing else.

Each case is a log that is right, and whose last command is as early as it may be: a clock earlier
it breaks the rule that the case names, and no other. The devices are made up, with figures that
differ from each other, and the cycles are worked out by hand from the standards' rules.
"""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.dram.controller.result import COMMANDS
from archgym.envs.dram.device.data_sheets import load_device
from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.validation import refresh_checker, timing_checker
from archgym.envs.dram.validation.timing_checker import check_refreshes, violations

Log = list[tuple[int, str, int, int, int]]

FIGURES: dict[str, Any] = {
    "rl_cycles": 20,
    "wl_cycles": 14,
    "t_rcd_cycles": 15,
    "t_rp_cycles": 16,
    "t_ras_cycles": 40,
    "t_rc_cycles": 60,
    "t_ccd_s_cycles": 8,
    "t_ccd_l_cycles": 10,
    "t_rrd_s_cycles": 5,
    "t_rrd_l_cycles": 7,
    "t_faw_cycles": 50,
    "t_wtr_s_cycles": 6,
    "t_wtr_l_cycles": 9,
    "t_rtp_cycles": 11,
    "t_wr_cycles": 17,
    "t_refi_cycles": 4000,
    "t_rfc_cycles": 200,
    "t_rtrs_cycles": 3,
    "t_xp_cycles": 21,
    "t_cke_cycles": 8,
    "t_ckesr_cycles": 12,
    "t_xs_cycles": 220,
    "t_xsdll_cycles": 300,
    "t_actpden_cycles": 2,
    "t_prpden_cycles": 4,
    "t_refpden_cycles": 6,
    "t_wpre_cycles": 1,
    "t_rpre_cycles": 1,
    "t_rcd_wr_cycles": 0,
    "t_rp_ab_cycles": 0,
    "t_ppd_cycles": 0,
    "t_ccd_l_wr_cycles": 0,
    "t_dqsck_cycles": 0,
    "t_dqss_cycles": 0,
    "t_dqs2dq_cycles": 0,
    "t_rpst_cycles": 0,
    "t_rtw_cycles": 0,
    "t_refi_pb_cycles": 0,
    "t_rfc_pb_cycles": 0,
    "t_refi_sb_cycles": 0,
    "t_rfc_sb_cycles": 0,
    "t_ref_ref_cycles": 0,
    "t_ref_act_cycles": 0,
}
PER_BANK = {"t_refi_pb_cycles": 500, "t_rfc_pb_cycles": 90}
# Clocks on the bus (activate, column, precharge, refresh) and of a burst:
# DDR3, DDR4 1 1 1 1, 4; DDR5 2 2 1 1, 8; LPDDR4 4 4 2 2, 8; LPDDR5 2 1 1 1, 2; HBM2 2 1 1 1, 2.
OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "DDR3": ("DDR3-1600", {}),
    "DDR4": ("DDR4-2400", {}),
    "DDR5": (
        "DDR4-2400",
        {
            "standard": "DDR5",
            "burst_length": 16,
            "t_wpre_cycles": 2,
            "t_ppd_cycles": 3,
            "t_ccd_l_wr_cycles": 13,
            "t_refi_sb_cycles": 1000,
            "t_rfc_sb_cycles": 90,
            "t_ref_act_cycles": 33,
        },
    ),
    "LPDDR4": (
        "DDR3-1600",
        {
            "standard": "LPDDR4",
            "burst_length": 16,
            "t_rp_ab_cycles": 19,
            "t_ppd_cycles": 3,
            "t_dqsck_cycles": 3,
            "t_dqss_cycles": 1,
            "t_dqs2dq_cycles": 2,
            "t_wpre_cycles": 2,
            "t_rpst_cycles": 1,
            **PER_BANK,
        },
    ),
    "LPDDR5": (
        "DDR4-2400",
        {
            "standard": "LPDDR5",
            "burst_length": 16,
            "t_rp_ab_cycles": 19,
            "t_ppd_cycles": 3,
            "t_dqsck_cycles": 3,
            "t_ref_ref_cycles": 70,
            "t_ref_act_cycles": 33,
            **PER_BANK,
        },
    ),
    "HBM2": (
        "DDR4-2400",
        {
            "standard": "HBM2",
            "burst_length": 4,
            "t_rcd_wr_cycles": 12,
            "t_rtw_cycles": 13,
            "t_ref_ref_cycles": 34,
            "t_ref_act_cycles": 33,
            **PER_BANK,
        },
    ),
}
MEMORIES = {
    standard: Memory(
        dataclasses.replace(load_device(base), name=standard, **{**FIGURES, **own}), ranks=2
    )
    for standard, (base, own) in OWN.items()
}


def array(log: Log) -> np.ndarray:
    rows = [(cycle, COMMANDS.index(name), *rest) for cycle, name, *rest in log]
    return np.array(rows, np.int64).reshape(-1, 5)


def found(standard: str, log: Log) -> list[str]:
    return violations(MEMORIES[standard], array(log))


def log_of(text: str) -> Log:
    """Commands as ``cycle name rank.bank row``, separated by commas; the last two may be absent."""
    log: Log = []
    for entry in text.split(","):
        cycle, name, *rest = entry.split()
        rank, bank = rest[0].split(".") if rest else ("0", "-1")
        log.append((int(cycle), name, int(rank), int(bank), int(rest[1]) if rest[1:] else -1))
    return log


# Bank b of group g is 4 g + b on DDR4, DDR5, LPDDR5 and HBM2.
CASES: list[tuple[str, str, str]] = [
    # Rows.
    ("DDR3", "tRCD", "0 act 0.0 1, 15 rd 0.0 1"),
    ("DDR3", "tRAS", "0 act 0.0 1, 40 pre 0.0 1"),
    ("DDR3", "tRP", "0 act 0.0 1, 50 pre 0.0 1, 66 act 0.0 2"),
    ("DDR3", "tRC", "0 act 0.0 1, 40 pre 0.0 1, 60 act 0.0 2"),
    ("DDR3", "tRRD", "0 act 0.0 1, 7 act 0.1 1"),
    ("DDR4", "tRRD", "0 act 0.0 1, 5 act 0.4 1"),
    ("DDR4", "tRRD", "0 act 0.0 1, 7 act 0.1 1"),
    ("DDR4", "tFAW", "0 act 0.0 1, 5 act 0.4 1, 10 act 0.8 1, 15 act 0.12 1, 50 act 0.1 1"),
    ("DDR3", "tRTP", "0 act 0.0 1, 40 rd 0.0 1, 51 pre 0.0 1"),
    # WL 14 + 4 + tWR 17.
    ("DDR3", "tWR", "0 act 0.0 1, 40 wr 0.0 1, 75 pre 0.0 1"),
    ("DDR3", "tWR", "0 act 0.0 1, 40 wr 0.0 1, 75 preab"),
    # Auto-precharge: RDA 20 closes at max(20 + 11, 40); WRA 20 at 20 + 35.
    ("DDR3", "tRP", "0 act 0.0 1, 34 rda 0.0 1, 61 act 0.0 2"),
    ("DDR3", "tRC", "0 act 0.0 1, 20 rda 0.0 1, 60 act 0.0 2"),
    ("DDR3", "tRP", "0 act 0.0 1, 20 wra 0.0 1, 71 act 0.0 2"),
    # Columns.
    ("DDR3", "tCCD", "0 act 0.0 1, 15 rd 0.0 1, 25 rd 0.0 1"),
    ("DDR4", "tCCD", "0 act 0.0 1, 7 act 0.1 1, 30 rd 0.0 1, 40 rd 0.1 1"),
    ("DDR4", "tCCD", "0 act 0.0 1, 7 act 0.4 1, 30 wr 0.0 1, 38 wr 0.4 1"),
    ("DDR5", "tCCD", "0 act 0.0 1, 15 wr 0.0 1, 28 wr 0.0 1"),
    # WL 14 + burst + tWTR; DDR5 8 + 9; LPDDR4 1 + 8 + 9; LPDDR5 same group BL/n_max 10 + 9.
    ("DDR3", "tWTR", "0 act 0.0 1, 15 wr 0.0 1, 42 rd 0.0 1"),
    ("DDR4", "tWTR", "0 act 0.0 1, 7 act 0.4 1, 30 wr 0.0 1, 54 rd 0.4 1"),
    ("DDR5", "tWTR", "0 act 0.0 1, 15 wr 0.0 1, 46 rd 0.0 1"),
    ("LPDDR4", "tWTR", "0 act 0.0 1, 15 wr 0.0 1, 47 rd 0.0 1"),
    ("LPDDR5", "tWTR", "0 act 0.0 1, 16 wr 0.0 1, 49 rd 0.0 1"),
    ("LPDDR5", "tWTR", "0 act 0.0 1, 7 act 0.4 1, 30 wr 0.0 1, 52 rd 0.4 1"),
    ("HBM2", "tWTR", "0 act 0.0 1, 16 wr 0.0 1, 41 rd 0.0 1"),
    # RL 20 - WL 14 and: DDR3 4 + 2; DDR4 4 + 1 + tWPRE 1; DDR5 8 + 2 + tWPRE 2; LPDDR4 tDQSCK 3 +
    # 8 + tWPRE 2 + tRPST 1; LPDDR5 tWCK2DQO 3 + BL/n 10 or 2; HBM2 tRTW 13.
    ("DDR3", "read to write", "0 act 0.0 1, 15 rd 0.0 1, 27 wr 0.0 1"),
    ("DDR4", "read to write", "0 act 0.0 1, 15 rd 0.0 1, 27 wr 0.0 1"),
    ("DDR5", "read to write", "0 act 0.0 1, 15 rd 0.0 1, 33 wr 0.0 1"),
    ("LPDDR4", "read to write", "0 act 0.0 1, 15 rd 0.0 1, 35 wr 0.0 1"),
    ("LPDDR5", "read to write", "0 act 0.0 1, 16 rd 0.0 1, 35 wr 0.0 1"),
    ("LPDDR5", "read to write", "0 act 0.0 1, 7 act 0.4 1, 30 rd 0.0 1, 41 wr 0.4 1"),
    ("HBM2", "read to write", "0 act 0.0 1, 16 rd 0.0 1, 29 wr 0.0 1"),
    # Ranks: tRTRS 3 between bursts of 4, or 8; a preamble where the direction turns (not LPDDR4).
    ("DDR3", "tRTRS", "0 act 0.0 1, 1 act 1.0 1, 20 rd 0.0 1, 27 rd 1.0 1"),
    ("DDR3", "tRTRS", "0 act 0.0 1, 1 act 1.0 1, 20 wr 0.0 1, 27 wr 1.0 1"),
    ("DDR3", "tRTRS", "0 act 0.0 1, 1 act 1.0 1, 20 rd 0.0 1, 33 wr 1.0 1"),
    ("DDR4", "tRTRS", "0 act 0.0 1, 1 act 1.0 1, 20 rd 0.0 1, 34 wr 1.0 1"),
    ("DDR4", "tRTRS", "0 act 0.0 1, 1 act 1.0 1, 20 wr 0.0 1, 22 rd 1.0 1"),
    ("LPDDR4", "tRTRS", "0 act 0.0 1, 4 act 1.0 1, 20 rd 0.0 1, 37 wr 1.0 1"),
    # Multi-clock commands count from edge to edge.
    ("DDR5", "tRCD", "0 act 0.0 1, 15 rd 0.0 1"),
    ("DDR5", "tRAS", "0 act 0.0 1, 41 pre 0.0 1"),
    ("DDR5", "tRP", "0 act 0.0 1, 50 pre 0.0 1, 65 act 0.0 1"),
    ("DDR5", "tRTP", "0 act 0.0 1, 40 rd 0.0 1, 52 pre 0.0 1"),
    ("DDR5", "tWR", "0 act 0.0 1, 40 wr 0.0 1, 80 pre 0.0 1"),
    ("LPDDR4", "tRCD", "0 act 0.0 1, 15 rd 0.0 1"),
    ("LPDDR4", "tRAS", "0 act 0.0 1, 42 pre 0.0 1"),
    ("LPDDR4", "tRP", "0 act 0.0 1, 50 pre 0.0 1, 64 act 0.0 1"),
    ("LPDDR4", "tRP", "0 act 0.0 1, 50 preab, 67 act 0.0 1"),
    ("LPDDR4", "tRTP", "0 act 0.0 1, 40 rd 0.0 1, 53 pre 0.0 1"),
    ("LPDDR4", "tWR", "0 act 0.0 1, 40 wr 0.0 1, 82 pre 0.0 1"),
    ("LPDDR5", "tRCD", "0 act 0.0 1, 16 rd 0.0 1"),
    ("LPDDR5", "tWR", "0 act 0.0 1, 40 wr 0.0 1, 74 pre 0.0 1"),
    ("HBM2", "tRCD", "0 act 0.0 1, 16 rd 0.0 1"),
    ("HBM2", "tRCD", "0 act 0.0 1, 13 wr 0.0 1"),
    ("DDR5", "tPPD", "0 act 0.0 1, 7 act 0.1 1, 60 pre 0.0 1, 63 pre 0.1 1"),
    ("LPDDR4", "tPPD", "0 act 0.0 1, 7 act 0.1 1, 60 pre 0.0 1, 63 pre 0.1 1"),
    # The command bus.
    ("DDR3", "clock of the command ahead", "5 act 0.0 1, 6 act 1.0 1"),
    ("DDR5", "clock of the command ahead", "5 act 0.0 1, 7 act 1.0 1"),
    ("LPDDR4", "clock of the command ahead", "0 refab 1.-1, 2 refab 0.-1"),
    ("HBM2", "clock of the command ahead", "5 act 0.0 1, 7 act 1.0 1"),
    # Refresh.
    ("DDR3", "tRFC", "0 refab, 200 act 0.0 1"),
    ("DDR3", "tRFC", "0 refab, 200 refab"),
    ("LPDDR4", "tRFC", "0 refab, 198 act 0.0 1"),
    ("DDR3", "tRP", "0 act 0.0 1, 50 pre 0.0 1, 66 refab"),
    ("DDR3", "tRC", "0 act 0.0 1, 40 pre 0.0 1, 60 refab"),
    ("DDR3", "tRP", "0 act 0.0 1, 34 rda 0.0 1, 61 refab"),
    ("LPDDR4", "tRP", "0 act 0.0 1, 50 preab, 69 refab"),
    ("LPDDR4", "refresh of the bank", "0 refpb 0.0, 88 act 0.0 1"),
    ("LPDDR4", "refresh of another bank", "0 refpb 0.0, 3 act 0.1 1"),
    ("LPDDR4", "refresh to refresh", "0 refpb 0.0, 90 refpb 0.1"),
    ("LPDDR4", "refresh of a bank", "0 refpb 0.0, 90 refab"),
    ("LPDDR4", "tRRD", "0 act 0.0 1, 9 refpb 0.1"),
    ("LPDDR5", "refresh to refresh", "0 refpb 0.0, 70 refpb 0.1"),
    ("LPDDR5", "refresh of another bank", "0 refpb 0.0, 32 act 0.1 1"),
    ("HBM2", "refresh of the bank", "0 refpb 0.0, 34 refpb 0.1, 90 refpb 0.0"),
    ("HBM2", "refresh of the bank", "0 refpb 0.0, 89 act 0.0 1"),
    ("HBM2", "tFAW", "0 act 0.0 1, 5 act 0.4 1, 10 act 0.8 1, 15 act 0.12 1, 51 refpb 0.1"),
    ("HBM2", "refresh of a bank", "0 act 0.1 1, 50 refpb 0.0, 140 preab"),
    ("DDR5", "refresh of the bank", "0 refsb 0.1, 89 act 0.5 1"),
    ("DDR5", "refresh of another bank", "0 refsb 0.1, 32 act 0.4 1"),
    ("DDR5", "tRRD", "0 act 0.4 1, 8 refsb 0.1"),
    ("DDR5", "tRP", "0 act 0.5 1, 50 presb 0.1, 66 refsb 0.1"),
    # Power-down. DDR3: read RL 20 + 4 + 1, write WL 14 + 4 + 17, with auto-precharge 1 more.
    ("DDR3", "tXP", "0 pde, 8 pdx, 29 act 0.0 1"),
    ("LPDDR4", "tXP", "0 pde, 8 pdx, 29 act 0.0 1"),
    ("DDR3", "tCKE", "0 pde, 8 pdx"),
    ("DDR3", "tCKE", "0 pde, 8 pdx, 16 pde"),
    ("DDR3", "tACTPDEN", "0 act 0.0 1, 2 pde"),
    ("DDR3", "tPRPDEN", "0 act 0.0 1, 40 pre 0.0 1, 44 pde"),
    ("DDR3", "tREFPDEN", "0 refab, 6 pde"),
    ("DDR3", "tRFC", "0 refab, 6 pde, 100 pdx, 200 act 0.0 1"),
    ("DDR3", "read to power-down", "0 act 0.0 1, 15 rd 0.0 1, 40 pde"),
    ("DDR3", "write to power-down", "0 act 0.0 1, 15 wr 0.0 1, 50 pde"),
    ("DDR3", "write to power-down", "0 act 0.0 1, 15 wra 0.0 1, 51 pde"),
    ("LPDDR4", "tACTPDEN", "0 act 0.0 1, 5 pde"),
    # Edge 18 of the read, 20 + 3 + 8 + 1; of the write, 14 + 1 + 2 + 8 + 17, + 2.
    ("LPDDR4", "read to power-down", "0 act 0.0 1, 15 rd 0.0 1, 50 pde"),
    ("LPDDR4", "write to power-down", "0 act 0.0 1, 15 wr 0.0 1, 60 pde"),
    ("LPDDR4", "write to power-down", "0 act 0.0 1, 15 wra 0.0 1, 62 pde"),
    ("HBM2", "write to power-down", "0 act 0.0 1, 16 wr 0.0 1, 50 pde"),
    # Self-refresh.
    ("DDR3", "tCKESR", "0 sre, 12 srx"),
    ("DDR3", "tXS", "0 sre, 12 srx, 232 act 0.0 1"),
    ("DDR3", "tXSDLL", "0 sre, 12 srx, 240 act 0.0 1, 312 rd 0.0 1"),
    ("DDR3", "tRFC", "0 refab, 200 sre"),
    ("DDR3", "tRP", "0 act 0.0 1, 50 pre 0.0 1, 66 sre"),
    ("DDR3", "tXP", "0 pde, 8 pdx, 29 sre"),
]


@pytest.mark.parametrize(("standard", "rule", "text"), CASES, ids=lambda value: str(value)[:50])
def test_a_clock_too_early_breaks_the_rule(standard: str, rule: str, text: str) -> None:
    log = log_of(text)
    assert found(standard, log) == []
    cycle, *rest = log[-1]
    wrong = found(standard, [*log[:-1], (cycle - 1, *rest)])  # type: ignore[list-item]
    assert rule in wrong[0]
    # Data too early on their bus come with it where the rule serves just that.
    assert all(rule in what or "data bus" in what for what in wrong), wrong


STATES = [
    ("DDR3", "of an open bank, row 1", "0 act 0.0 1, 60 act 0.0 2"),
    ("DDR3", "to row 2, open: 1", "0 act 0.0 1, 20 rd 0.0 2"),
    ("DDR3", "to row 1, open: None", "20 wr 0.3 1"),
    ("DDR3", "to row 1, open: None", "0 act 0.0 1, 20 rda 0.0 1, 32 rd 0.0 1"),
    ("DDR3", "of a closed bank", "0 pre 0.0 1"),
    ("DDR5", "of a closed bank", "0 act 0.0 1, 60 presb 0.1"),
    ("DDR3", "with bank 2 open", "0 act 0.2 1, 60 refab"),
    ("LPDDR4", "with bank 2 open", "0 act 0.2 1, 60 refpb 0.2"),
    ("DDR5", "with bank 5 open", "0 act 0.5 1, 60 refsb 0.1"),
    ("DDR3", "with bank 2 open", "0 act 0.2 1, 60 sre"),
    ("DDR3", "power-down", "0 pde, 50 act 0.0 1"),
    ("DDR3", "self-refresh", "0 sre, 50 refab"),
    ("DDR3", "self-refresh", "0 sre, 50 pdx"),
    ("DDR3", "not in power-down", "0 pdx"),
    ("DDR3", "not in self-refresh", "0 srx"),
    ("DDR3", "no refresh since the last self-refresh", "0 sre, 50 srx, 300 sre"),
    ("DDR3", "before the command ahead", "5 refab 0.-1, 4 refab 1.-1"),
    ("DDR3", "no command of a DRAM", "0 nop"),
]


@pytest.mark.parametrize(("standard", "what", "text"), STATES)
def test_wrong_in_this_state(standard: str, what: str, text: str) -> None:
    *before, _ = log_of(text)
    assert all(what not in wrong for wrong in found(standard, before))
    assert any(what in wrong for wrong in found(standard, log_of(text)))


def test_the_checker_shares_nothing_with_the_simulator() -> None:
    for module in (timing_checker, refresh_checker):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        own = {name for name in imported if name and name.startswith("archgym")}
        known = (
            "device.device",
            "device.memory",
            "validation.refresh_checker",
            "controller.result",
        )
        assert own <= {f"archgym.envs.dram.{name}" for name in known}


def test_ranks_and_banks_are_apart() -> None:
    assert found("DDR3", log_of("0 refab, 1 act 1.0 1, 16 rd 1.0 1")) == []
    assert found("DDR3", log_of("0 pde, 1 act 1.0 1, 16 rd 1.0 1")) == []
    # tFAW counts for each rank.
    log = log_of("0 act 0.0 1, 7 act 0.1 1, 14 act 0.2 1, 21 act 0.3 1, 22 act 1.4 1")
    assert found("DDR3", log) == []


def test_row_and_column_bus_of_hbm2() -> None:
    log = log_of("0 act 0.0 1, 16 act 0.4 1, 16 rd 0.0 1")
    assert found("HBM2", log) == []
    assert len(found("DDR4", log)) == 1


def test_self_refresh_again_after_a_refresh() -> None:
    assert found("DDR3", log_of("0 sre, 50 srx, 270 refab, 470 sre")) == []


def test_a_data_bus_that_is_taken() -> None:
    # Write data from 29 to 33; a read in 16 would put its data from 36: in time. In 12: from 32.
    log = log_of("0 act 0.0 1, 1 act 1.0 1, 12 rd 1.0 1, 15 wr 0.0 1")
    assert "data bus: -7 cycles after the burst before, needs 3" in "\n".join(found("DDR3", log))


def test_auto_precharge_of_a_read_waits_for_an_earlier_write() -> None:
    # Write in 20: recovered in 20 + 14 + 4 + 40 = 78; a read's precharge begins 11 after it.
    device = dataclasses.replace(MEMORIES["DDR3"].device, t_wr_cycles=40)
    log = log_of("0 act 0.0 1, 20 wr 0.0 1, 67 rda 0.0 1")
    assert violations(Memory(device), array(log)) == []
    early = log_of("0 act 0.0 1, 20 wr 0.0 1, 66 rda 0.0 1")
    assert "tWR needs 58 cycles" in violations(Memory(device), array(early))[0]


def test_messages_say_where() -> None:
    assert found("DDR3", log_of("100 act 1.3 1, 109 wr 1.3 1")) == [
        "cycle 109, rank 1, bank 3: wr: tRCD needs 15 cycles, has 9"
    ]


def refreshes(standard: str, log: Log, policy: str = "all_bank", **options: int) -> list[str]:
    return check_refreshes(MEMORIES[standard], array(log), refresh_policy=policy, **options)


def every(interval: int, number: int, name: str = "refab", banks: int = 0) -> Log:
    return [
        (interval * k, name, rank, k % banks if banks else -1, -1)
        for k in range(1, number + 1)
        for rank in (0, 1)
    ]


class TestRefreshRate:
    def test_one_each_interval(self) -> None:
        assert refreshes("DDR3", every(4000, 30), max_postponed=0) == []
        wrong = refreshes("DDR3", every(4000, 30), max_postponed=0, cycles=30 * 4000 + 9000)
        assert "9000 cycles since a refresh" in "\n".join(wrong)

    def test_nine_intervals_are_the_most(self) -> None:
        # Eight postponed, then nine at once, again and again.
        log = [(36000 * k + 200 * i, "refab", 0, -1, -1) for k in (1, 2, 3) for i in range(9)]
        memory = dataclasses.replace(MEMORIES["DDR3"], ranks=1)
        assert check_refreshes(memory, array(log), refresh_policy="all_bank") == []
        late = [*log, (37000 * 4, "refab", 0, -1, -1)]
        assert (
            "cycles since a refresh"
            in check_refreshes(memory, array(late), refresh_policy="all_bank")[0]
        )

    def test_ddr5_may_postpone_four(self) -> None:
        log = every(20000, 1)
        assert refreshes("DDR5", log) == []
        assert "since a refresh" in refreshes("DDR5", every(24500, 1))[0]
        assert refreshes("DDR4", every(24500, 1)) == []

    def test_too_few_on_average(self) -> None:
        wrong = refreshes("DDR3", every(8000, 30))
        assert "refreshes owed, at most 9" in wrong[0]

    def test_too_many_at_once(self) -> None:
        wrong = refreshes("DDR3", every(300, 17))
        assert wrong == [f"cycle 5100, rank {r}: 17 refreshes within two intervals" for r in (0, 1)]
        assert refreshes("DDR3", every(300, 16)) == []

    def test_no_refresh_at_all(self) -> None:
        assert len(refreshes("DDR3", [], cycles=10**6)) == 4
        assert refreshes("DDR3", [], cycles=30000) == []

    def test_per_bank(self) -> None:
        assert refreshes("LPDDR4", every(500, 80, "refpb", 8), "per_bank", max_postponed=0) == []
        twice = refreshes("LPDDR4", every(500, 80, "refpb", 7), "per_bank")
        assert "refpb of bank 1 before all others had theirs" in twice[0]
        # Eight refreshes of all banks are 64 of one.
        assert refreshes("LPDDR4", every(32500, 1, "refpb", 8), "per_bank") == []
        assert refreshes("LPDDR4", every(34000, 1, "refpb", 8), "per_bank") != []

    def test_same_bank(self) -> None:
        log = every(1000, 40, "refsb", 4)
        assert refreshes("DDR5", log, "same_bank", max_postponed=0) == []
        rank_1_ends = [entry for entry in log if entry[2] == 0 or entry[0] < 20000]
        assert refreshes("DDR5", rank_1_ends, "same_bank") != []

    def test_self_refresh_needs_no_refresh(self) -> None:
        log = [(100, "sre", rank, -1, -1) for rank in (0, 1)]
        log += [(10**6, "srx", rank, -1, -1) for rank in (0, 1)]
        assert refreshes("DDR3", log) == []
        assert refreshes("DDR3", log[:2], cycles=10**6) == []
        assert refreshes("DDR3", log, cycles=2 * 10**6) != []

    def test_violations_include_it(self) -> None:
        log = array(every(80000, 1)[:1])
        assert violations(MEMORIES["DDR3"], log) == []
        late = violations(MEMORIES["DDR3"], log, refresh_policy="all_bank")
        assert late == check_refreshes(MEMORIES["DDR3"], log, refresh_policy="all_bank") != []
