"""Known answers of DRAMSys 5.1 with DRAMPower 4: energy with power-down and self-refresh, pJ."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.drampower import counted_activity
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.controller.result import COMMANDS
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.traces.trace import Trace

_i = np.arange(60)
_ADDRESS, _IS_WRITE = _i * 7919 % 4096 * 64, (_i % 3 == 0).astype(np.uint8)
TRACES = {
    "idle": Trace("idle", _i * _i * 40_000 + _i * 1000, _ADDRESS, _IS_WRITE),
    "busy": Trace("busy", _i * 120_000, _ADDRESS, _IS_WRITE),
}
ENERGY_PJ = {
    ("DDR3-1600", "idle", "closed", "all_bank"): 54556920.0,
    ("DDR3-1600", "idle", "open", "all_bank"): 62016000.0,
    ("DDR3-1600", "idle", "closed", "none"): 52745325.0,
    ("DDR3-1600", "busy", "closed", "all_bank"): 5132850.0,
    ("DDR3-1600", "busy", "open", "all_bank"): 4500000.0,
    ("DDR4-2400", "idle", "closed", "all_bank"): 39891624.96,
    ("DDR4-2400", "idle", "open", "all_bank"): 38860031.77,
    ("DDR4-2400", "idle", "closed", "none"): 24921669.34,
    ("DDR4-2400", "busy", "closed", "all_bank"): 3764143.74,
    ("DDR4-2400", "busy", "open", "all_bank"): 2837371.6,
}


@pytest.mark.parametrize(("device", "trace", "page", "refresh"), ENERGY_PJ)
def test_energy_with_power_down_is_that_of_drampower(
    device: str, trace: str, page: str, refresh: str
) -> None:
    config = ControllerConfig(
        page_policy=page,
        refresh_policy=refresh,
        power_down_policy="staggered",
        timing_rules="dramsys51",
    )
    result = simulate(prepare(TRACES[trace], load_memory(device)), config)
    assert result.energy_pj == pytest.approx(ENERGY_PJ[device, trace, page, refresh], rel=5e-4)
    assert result.log == ()


def test_a_self_refresh_begins_with_a_refresh_of_which_the_rest_follows_the_exit() -> None:
    device = load_memory("DDR3-1600").device  # tRFC 88, tRP 10
    log = np.array(
        [[100, COMMANDS.index("sre"), 0, -1, -1], [150, COMMANDS.index("srx"), 0, -1, -1]]
    )
    counted = counted_activity(log, device, 1)
    assert counted.entry_refresh_cycles == device.t_rfc_cycles
    assert counted.self_refresh_cycles == 0
    assert counted.down_active_cycles == 50
    assert counted.active_cycles == device.t_rfc_cycles - device.t_rp_cycles - 50
    assert counted.precharged_cycles == 100 + device.t_rp_cycles
    log[1, 0] = 1100
    counted = counted_activity(log, device, 1)
    assert counted.self_refresh_cycles == 1000 - device.t_rfc_cycles
    assert counted.down_precharged_cycles == device.t_rp_cycles
    assert counted.active_cycles == 0
