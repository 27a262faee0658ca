"""Answers of Ramulator 2.1 for the devices that only it has; its own presets, no refresh."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.traces.trace import Trace

REQUESTS = 400
# Device, pattern, clocks between requests; clock of the last datum and mean latency in clocks.
ANSWERS = [
    ("DDR5-4800", "one group", 3, 5121, 1987.38),
    ("DDR5-4800", "one group", 20, 8025, 50.695),
    ("DDR5-4800", "two banks", 3, 18522, 8780.253),
    ("DDR5-4800", "two banks", 20, 18526, 5307.17),
    ("DDR5-4800", "random", 20, 8149, 119.047),
    ("HBM2-2000", "one group", 3, 1730, 276.38),
    ("HBM2-2000", "one group", 20, 7997, 18.83),
    ("HBM2-2000", "two banks", 3, 7860, 3344.15),
    ("HBM2-2000", "two banks", 20, 8489, 375.665),
    ("HBM2-2000", "random", 20, 8033, 46.13),
]
# Ramulator counts the read latency of DDR5 from the first of a command's two clocks.
CLOCKS_LATER = {"DDR5-4800": 1, "HBM2-2000": 0}


def _numbers(below: int, seed: int) -> NDArray[np.int64]:
    """Numbers of a linear congruential generator."""
    found, state = [], seed
    for _ in range(REQUESTS):
        state = (state * 1103515245 + 12345) % 2**31
        found.append(state // 65536 % below)
    return np.array(found)


def _reads(device: str, pattern: str, interval: int) -> Trace:
    sheet = load_memory(device).device
    in_group, in_row = sheet.banks_per_group, sheet.columns // sheet.burst_length
    i = np.arange(REQUESTS)
    if pattern == "random":
        group, bank = _numbers(sheet.bank_groups, 1), _numbers(in_group, 2)
        row, line = _numbers(64, 3), _numbers(in_row, 4)
    elif pattern == "one group":
        group, bank, row, line = 0 * i, i % in_group, i // 64, i // in_group % in_row
    else:
        group, bank, row, line = i % 2, 0 * i, _numbers(64, 5), _numbers(in_row, 6)
    place = ((row * in_group + bank) * sheet.bank_groups + group) * in_row + line
    return Trace(
        pattern,
        i * interval * sheet.t_ck_ps,
        place * sheet.bytes_per_request,
        np.zeros(REQUESTS, np.uint8),
    )


@pytest.mark.parametrize(("device", "pattern", "interval", "end", "latency"), ANSWERS)
def test_reads_take_as_long_as_in_ramulator(
    device: str, pattern: str, interval: int, end: int, latency: float
) -> None:
    memory = load_memory(device)
    config = ControllerConfig(
        refresh_policy="none", scheduler_buffer="read_write", request_buffer_size=32
    )
    result = simulate(prepare(_reads(device, pattern, interval), memory), config)
    later = CLOCKS_LATER[device]
    assert result.cycles == end + later
    cycles = result.read_latency.mean_ns / memory.device.t_ck_ps * 1e3
    assert cycles == pytest.approx(latency + later, rel=1e-3)
