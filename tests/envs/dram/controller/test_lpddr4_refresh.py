"""Known answers of DRAMSys 5.1: LPDDR4 with so many activates that their window of four counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.traces.trace import Trace

_i = np.arange(600)
ACTIVATES = Trace(
    "activates", _i * 12_000, _i * 7919 * 37 % 65536 * 2048, (_i % 3 == 0).astype(np.uint8)
)


@pytest.mark.parametrize(
    ("design", "time_ns", "read_latency_ns"),
    [
        ({"page_policy": "closed"}, 7291.875, 79.9140625),
        ({"page_policy": "open"}, 7300.0, 106.584375),
        ({"page_policy": "closed", "refresh_max_postponed": 4}, 7310.625, 82.165625),
    ],
)
def test_refreshes_of_a_bank_are_in_the_window_of_activates_as_in_dramsys_51(
    design: dict[str, Any], time_ns: float, read_latency_ns: float
) -> None:
    config = ControllerConfig(refresh_policy="per_bank", timing_rules="dramsys51", **design)
    result = simulate(prepare(ACTIVATES, load_memory("LPDDR4-3200")), config)
    assert result.time_ns == pytest.approx(time_ns)
    assert result.read_latency.mean_ns == pytest.approx(read_latency_ns)
