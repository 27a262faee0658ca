"""Known answers of DRAMSys 4.0 (tag v4.0, SystemC 2.3.4): total times of small traces, ns.

Its front end has no delay, so that requests reach the controller within the clock in which they
are sent, but only after what the controller does in that clock anyway.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.traces.trace import Trace

DDR3 = load_memory("DDR3-1600")
CLOCK_PS = 1250
_i = np.arange(400)
TRACES = {
    "copy": (2 * _i, _i % 2 * (1 << 20) + _i // 2 * 64, _i % 2),
    "stream": (6 * _i, _i * 64, 0 * _i),
    "rows": (7 * _i, _i // 4 * 8192 + _i * 5 % 4 * 64, _i % 3 == 0),
}
DESIGNS: dict[str, dict[str, Any]] = {
    "open, fifo 4": {
        "request_buffer_size": 7,
        "arbiter": "fifo",
        "max_active_transactions": 4,
    },
    "closed_adaptive, fifo 4": {
        "page_policy": "closed_adaptive",
        "request_buffer_size": 4,
        "arbiter": "fifo",
        "max_active_transactions": 4,
    },
    "closed_adaptive, reorder 4": {
        "page_policy": "closed_adaptive",
        "scheduler": "fifo",
        "scheduler_buffer": "shared",
        "request_buffer_size": 5,
        "arbiter": "reorder",
        "max_active_transactions": 4,
    },
    "open_adaptive, fifo 8": {
        "page_policy": "open_adaptive",
        "scheduler": "fr_fcfs_grp",
        "scheduler_buffer": "read_write",
        "request_buffer_size": 6,
        "arbiter": "fifo",
        "max_active_transactions": 8,
    },
    "closed_adaptive, simple": {
        "page_policy": "closed_adaptive",
        "scheduler_buffer": "shared",
        "request_buffer_size": 6,
    },
}
TIMES_NS = {
    "copy": (6587.5, 7530.0, 20297.5, 4236.25, 3745.0),
    "stream": (3010.0, 4742.5, 4742.5, 3010.0, 3023.75),
    "rows": (4981.25, 4603.75, 5490.0, 3540.0, 3540.0),
}


@pytest.mark.parametrize("name", TRACES)
def test_total_times_are_those_of_dramsys_40(name: str) -> None:
    clocks, address, is_write = TRACES[name]
    trace = prepare(Trace(name, clocks * CLOCK_PS, address, is_write.astype(np.uint8)), DDR3)
    front_end = {"think_delay_fw_cycles": 0, "end_response_delay_cycles": 0}
    found = [
        simulate(
            trace,
            ControllerConfig(
                refresh_policy="none", timing_rules="dramsys51", **{**design, **front_end}
            ),
        ).time_ns
        for design in DESIGNS.values()
    ]
    assert found == list(TIMES_NS[name])
