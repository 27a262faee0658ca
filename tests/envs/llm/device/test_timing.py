"""The closed form of DRAM against DRAM-v0's simulator, and rows multiplied at their banks."""

from __future__ import annotations

import numpy as np
import pytest

import archgym
from archgym.envs.dram.device.data_sheets import device_names, load_device
from archgym.envs.llm.device.data.records import load_memory, memory_names
from archgym.envs.llm.device.data.timing import stream_energy, timing_of
from archgym.envs.llm.device.machine.hardware import Tier

STREAM = {"generator": "stream", "requests": 30_000, "interval_ns": 1, "read_share": 1.0}


@pytest.mark.parametrize("name", device_names())
def test_bandwidth_and_energy_of_a_stream_are_those_of_the_simulator(name: str) -> None:
    device = load_device(name)
    env = archgym.make("DRAM-v0", memory=name, workload=STREAM)
    mapping = "rcb_xor" if device.bank_groups > 1 else "rbc_xor"
    found = env.evaluate(
        {
            **env.baseline_design,
            "address_mapping": mapping,
            "request_buffer_size": 64,
            "page_policy": "open_adaptive",
        }
    ).metrics
    timing = timing_of(name)
    assert timing.stream_gb_per_s == pytest.approx(found["bandwidth_gb_per_s"], rel=0.05)
    if device.supplies:
        mine = stream_energy(device).total_pj_per_bit(timing.stream_gb_per_s)
        assert mine == pytest.approx(found["energy_per_bit_pj"], rel=0.05)


def test_no_memory_streams_more_than_its_bus_can_carry() -> None:
    for name in memory_names():
        memory = load_memory(name)
        assert 0.8 < memory.timing.stream_gb_per_s / memory.timing.peak_gb_per_s < 1
        assert memory.energy.idle_mw < memory.energy.standby_mw


def test_a_row_of_all_banks_by_hand() -> None:
    one = np.ones(1)
    lpddr5 = Tier(np.array(["LPDDR5-6400"]), one, one)
    # sixteen banks, four within tFAW = 16 clocks of 1.25 ns; 64 columns at tCCD_L = 4 clocks
    clocks = 3 * 16 + 15 + 64 * 4 + 8 + 17
    share = 1 - (168 + 17 + 15) / 3125
    assert lpddr5.row_ns(one, one)[0] == pytest.approx(clocks * 1.25 / share)
    aim = Tier(np.array(["GDDR6-AiM"]), one, one)
    clocks = 15 + 64 * 2 + 3 + 15
    assert aim.row_ns(2 * one, one)[0] == pytest.approx(clocks / (1 - 150 / 1900))
    assert aim.row_ns(one, 4 * one)[0] > 3 * (aim.row_ns(one, one)[0] - 40)


def test_no_memory_has_no_capacity() -> None:
    one = np.ones(3)
    tier = Tier(np.array(["none", "LPDDR5-6400", "none"]), one, one)
    assert tier.bytes.tolist() == [0.0, 2.0**30, 0.0]
    assert tier.bytes_per_s[1] > 0 == tier.bytes_per_s[0]
