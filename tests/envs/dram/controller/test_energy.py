"""Energy: the DRAMPower 4 equations worked by hand, and that the parts add up."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.energy import Activity, Energy, energy
from archgym.envs.dram.device.data_sheets import load_device
from archgym.envs.dram.device.device import Supply
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.traces.trace import Trace
from tests.envs.dram.controller.controller_runs import simulated

DDR3 = load_device("DDR3-1600")
DDR4 = load_device("DDR4-2400")
MEMORY = load_memory("DDR3-1600")
# DDR3: 1.5 V, 1.25 ns, 8 chips: pJ for each mA and clock.
UNIT = 1.5 * 1.25 * 8

BY_HAND = [
    # (IDD0 70 - IDD3N 45) mA over tRAS 28 clocks.
    ("activates", "activate_pj", 25 * 28 * UNIT),
    # (IDD0 70 - IDD2N 45) mA over tRC - tRAS = 10 clocks.
    ("precharges", "precharge_pj", 25 * 10 * UNIT),
    # (IDD4R 140 - IDD3N 45) mA over 4 clocks.
    ("reads", "read_pj", 95 * 4 * UNIT),
    # (IDD4W 145 - IDD3N 45) mA over 4 clocks.
    ("writes", "write_pj", 100 * 4 * UNIT),
    # (IDD5 170 - IDD3N 45) mA over tRFC 88 clocks.
    ("refreshes", "refresh_pj", 125 * 88 * UNIT),
    ("active_cycles", "active_standby_pj", 45 * UNIT),
    ("precharged_cycles", "precharged_standby_pj", 45 * UNIT),
    # IDD3P 35, IDD2P 30, IDD6 8 mA.
    ("down_active_cycles", "power_down_pj", 35 * UNIT),
    ("down_precharged_cycles", "power_down_pj", 30 * UNIT),
    ("self_refresh_cycles", "self_refresh_pj", 8 * UNIT),
    # No current for the refresh of one bank: as an activate and a precharge.
    ("bank_refreshes", "refresh_pj", 25 * 38 * UNIT),
]


@pytest.mark.parametrize(("cause", "part", "expected_pj"), BY_HAND)
def test_each_cause_has_its_part_and_no_other(cause: str, part: str, expected_pj: float) -> None:
    found = energy(DDR3, Activity(**{cause: 3}))
    assert getattr(found, part) == pytest.approx(3 * expected_pj)
    assert found.total_pj == pytest.approx(3 * expected_pj)


def test_activation_supply_of_ddr4() -> None:
    # VDD: (60.75 - 44) mA x 1.2 V; VPP: 4.05 mA x 2.5 V; both over tRAS 39 x 0.833 ns, 8 chips.
    expected = (16.75 * 1.2 + 4.05 * 2.5) * 39 * 0.833 * 8
    assert energy(DDR4, Activity(activates=1)).total_pj == pytest.approx(expected)
    # VDD: (60.75 - 38.25) mA; both over tRC - tRAS = 16 clocks.
    expected = (22.5 * 1.2 + 4.05 * 2.5) * 16 * 0.833 * 8
    assert energy(DDR4, Activity(precharges=1)).total_pj == pytest.approx(expected)


def test_refresh_of_one_bank_with_a_current_of_its_own() -> None:
    # (IDD5PB 65 - IDD3N 45) mA over tRFCpb 40 clocks.
    supply = dataclasses.replace(DDR3.supplies[0], idd5pb_ma=65.0)
    device = dataclasses.replace(DDR3, supplies=(supply,), t_rfc_pb_cycles=40, t_refi_pb_cycles=780)
    found = energy(device, Activity(bank_refreshes=2))
    assert found.refresh_pj == pytest.approx(2 * 20 * 40 * UNIT)


def test_supplies_add_up() -> None:
    second = Supply("VPP", 3.0, idd0_ma=1.0, idd2n_ma=0.5, idd3n_ma=0.5)
    device = dataclasses.replace(DDR3, supplies=(*DDR3.supplies, second))
    activity = Activity(activates=5, precharges=4, active_cycles=100, precharged_cycles=50)
    alone = dataclasses.replace(DDR3, supplies=(second,))
    together = energy(device, activity).total_pj
    assert together == pytest.approx(
        energy(DDR3, activity).total_pj + energy(alone, activity).total_pj
    )


def test_a_device_without_currents_has_no_energy() -> None:
    memory = dataclasses.replace(MEMORY, device=dataclasses.replace(DDR3, supplies=()))
    result = simulated(Trace("one", np.array([0]), np.array([0]), np.array([0])), memory)
    assert np.isnan([result.energy_pj, result.power_mw, result.energy_per_bit_pj]).all()


@given(st.lists(st.integers(0, 10**9), min_size=11, max_size=11))
def test_parts_are_not_negative_and_add_up(counts: list[int]) -> None:
    for device in (DDR3, DDR4):
        found = energy(device, Activity(*counts))
        parts = [getattr(found, field.name) for field in dataclasses.fields(Energy)]
        assert min(parts) >= 0
        assert found.total_pj == pytest.approx(sum(parts))


def test_a_single_read() -> None:
    # ACT in clock 1, read until 25: one clock closed, 24 open; the row stays open.
    trace = Trace("one", np.array([0]), np.array([0]), np.array([0]))
    result = simulated(trace, MEMORY)
    expected = (25 * 28 + 95 * 4 + 45 * 25) * UNIT
    assert result.active_ns == 24 * 1.25
    assert result.precharged_ns == 1.25
    assert result.energy_pj == pytest.approx(expected)


def test_standby_of_overlapping_and_separate_rows() -> None:
    # Closed page, two banks: ACT 1 and 6, rows closed at 29 and 34 (tRAS), data until 30 clocks:
    # the second read 16 + 14. Open from 1 to the end.
    together = Trace("two", np.array([0, 0]), np.array([0, 1 << 13]), np.array([0, 0]))
    config = ControllerConfig(page_policy="closed", refresh_policy="none")
    result = simulated(together, MEMORY, config)
    assert result.cycles == 30
    assert result.active_ns == 29 * 1.25
    # A thousand clocks apart: open for tRAS 28, then from 1001 to the end at 1025.
    apart = Trace("two", np.array([0, 1250000]), np.array([0, 1 << 13]), np.array([0, 0]))
    result = simulated(apart, MEMORY, config)
    assert result.cycles == 1025
    assert result.active_ns == (28 + 24) * 1.25


def test_a_refresh_counts_as_open_except_for_its_precharge() -> None:
    # Refresh at 6240 of an idle rank: tRFC - tRP = 78 clocks; then a read from 7001 to 7025.
    trace = Trace("late", np.array([7000 * 1250]), np.array([0]), np.array([0]))
    result = simulated(trace, MEMORY, ControllerConfig())
    assert result.commands["refab"] == 1
    assert result.active_ns == (78 + 24) * 1.25


def test_two_ranks_and_their_power_down() -> None:
    # Rank 1 (bit 16) never works. Rank 0: ACT 1, RD 11, power-down with a bank open from 26 to
    # 5001, RD 5007, end 5021.
    memory = load_memory({"device": "DDR3-1600", "ranks": 2})
    trace = Trace("two", np.array([0, 5000 * 1250]), np.array([0, 0]), np.array([0, 0]))
    config = ControllerConfig(refresh_policy="none", power_down_policy="staggered")
    result = simulated(trace, memory, config)
    assert result.cycles == 5021
    awake, down = 25 + 20, 4975
    parts = 25 * 28 + 2 * 95 * 4 + 45 * (awake + 1 + 5021) + 35 * down
    assert result.energy_pj == pytest.approx(parts * UNIT)
    assert result.power_mw == pytest.approx(result.energy_pj / (5021 * 1.25))
