"""Energy: the DRAMPower 4 equations worked by hand, and that the parts add up."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archgym.envs.dram.config import ControllerConfig
from archgym.envs.dram.controller import simulate
from archgym.envs.dram.device import load_device
from archgym.envs.dram.energy import Activity, Energy, rank_energy
from archgym.envs.dram.trace import Trace

DDR3 = load_device("DDR3-1600")
DDR4 = load_device("DDR4-2400")
NOTHING = Activity(0, 0, 0, 0, 0, 0, 0)
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
]


@pytest.mark.parametrize(("cause", "part", "expected_pj"), BY_HAND)
def test_each_cause_has_its_part_and_no_other(cause: str, part: str, expected_pj: float) -> None:
    energy = rank_energy(DDR3, dataclasses.replace(NOTHING, **{cause: 3}))
    assert getattr(energy, part) == pytest.approx(3 * expected_pj)
    assert energy.total_pj == pytest.approx(3 * expected_pj)


def test_activation_supply_of_ddr4() -> None:
    # VDD: (60.75 - 44) mA x 1.2 V; VPP: 4.05 mA x 2.5 V; both over tRAS 39 x 0.833 ns, 8 chips.
    expected = (16.75 * 1.2 + 4.05 * 2.5) * 39 * 0.833 * 8
    energy = rank_energy(DDR4, dataclasses.replace(NOTHING, activates=1))
    assert energy.total_pj == pytest.approx(expected)
    # VDD: (60.75 - 38.25) mA; both over tRC - tRAS = 16 clocks.
    expected = (22.5 * 1.2 + 4.05 * 2.5) * 16 * 0.833 * 8
    energy = rank_energy(DDR4, dataclasses.replace(NOTHING, precharges=1))
    assert energy.total_pj == pytest.approx(expected)


@given(st.lists(st.integers(0, 10**9), min_size=7, max_size=7))
def test_parts_are_not_negative_and_add_up(counts: list[int]) -> None:
    for device in (DDR3, DDR4):
        energy = rank_energy(device, Activity(*counts))
        parts = [getattr(energy, field.name) for field in dataclasses.fields(Energy)]
        assert min(parts) >= 0
        assert energy.total_pj == pytest.approx(sum(parts))


def test_a_single_read() -> None:
    # ACT in clock 1, read until 25: one clock closed, 24 open; the row stays open.
    trace = Trace("one", np.array([0]), np.array([0]), np.array([0]))
    result = simulate(trace, DDR3, ControllerConfig(refresh_policy="none"))
    expected = (25 * 28 + 95 * 4 + 45 * 25) * UNIT
    assert result.active_ns == 24 * 1.25
    assert result.precharged_ns == 1.25
    assert result.energy_pj == pytest.approx(expected)


def test_standby_of_overlapping_and_separate_rows() -> None:
    # Closed page, two banks: ACT 1 and 6, rows closed at 29 and 34 (tRAS), data until 30 clocks:
    # the second read 16 + 14. Open from 1 to the end.
    together = Trace("two", np.array([0, 0]), np.array([0, 1 << 13]), np.array([0, 0]))
    config = ControllerConfig(page_policy="closed", refresh_policy="none")
    result = simulate(together, DDR3, config)
    assert result.cycles == 30
    assert result.active_ns == 29 * 1.25
    # A thousand clocks apart: open for tRAS 28, then from 1001 to the end at 1025.
    apart = Trace("two", np.array([0, 1250000]), np.array([0, 1 << 13]), np.array([0, 0]))
    result = simulate(apart, DDR3, config)
    assert result.cycles == 1025
    assert result.active_ns == (28 + 24) * 1.25


def test_a_refresh_counts_as_open_except_for_its_precharge() -> None:
    # Refresh at 6240 of an idle rank: tRFC - tRP = 78 clocks; then a read from 7001 to 7025.
    trace = Trace("late", np.array([7000 * 1250]), np.array([0]), np.array([0]))
    result = simulate(trace, DDR3, ControllerConfig())
    assert result.commands["refab"] == 1
    assert result.active_ns == (78 + 24) * 1.25
