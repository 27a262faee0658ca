"""Known answers of DRAMSys 5.1 for memories of two ranks: total times, ns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.device.device import MAX_BANKS
from archgym.envs.dram.device.memory import Memory, load_memory
from archgym.envs.dram.kernel import layout
from archgym.envs.dram.traces.trace import Trace

RANDOM = {"generator": "random", "requests": 1000, "read_share": 0.7, "interval_ns": 4.0}
STREAM = {"generator": "stream", "requests": 1000, "interval_ns": 2.0}
CLOSED = {"page_policy": "closed", "address_mapping": "rcb"}
ANSWERS: list[tuple[str, dict[str, Any], dict[str, Any], float]] = [
    ("DDR4-2400", RANDOM, {}, 4275.789),
    ("DDR4-2400", RANDOM, CLOSED, 4209.982),
    ("DDR4-2400", STREAM, {}, 4901.372),
    ("DDR4-2400", STREAM, CLOSED, 3405.304),
    ("DDR3-1600", RANDOM, {}, 6198.75),
    ("DDR3-1600", RANDOM, CLOSED, 6016.25),
    ("DDR3-1600", STREAM, {}, 5026.25),
    ("DDR3-1600", STREAM, CLOSED, 5140.0),
]


@pytest.mark.parametrize(("device", "workload", "change", "time_ns"), ANSWERS)
def test_changing_ranks_costs_time_only_between_ranks(
    device: str, workload: dict[str, Any], change: dict[str, Any], time_ns: float
) -> None:
    env = archgym.make(
        "DRAM-v0",
        memory={"device": device, "ranks": 2},
        workload=workload,
        objective="minimize time_ns",
        controller={"timing_rules": "dramsys51"},
    )
    outcome = env.evaluate({**env.baseline_design, **change})
    assert outcome.metrics is not None
    assert outcome.metrics["time_ns"] == pytest.approx(time_ns, rel=1e-9)


def test_the_largest_memory_fits_the_kernels_tables() -> None:
    device = replace(load_memory("DDR4-2400").device, banks=MAX_BANKS, bank_groups=4)
    memory = Memory(device, ranks=8)
    last = memory.capacity_bytes - 64 * np.arange(1, 9)
    trace = Trace("last", 1000 * np.arange(8), last, np.zeros(8, np.uint8))
    result = simulate(prepare(trace, memory), ControllerConfig())
    assert result.commands["rd"] == 8
    assert memory.ranks * device.banks <= layout.LANES
