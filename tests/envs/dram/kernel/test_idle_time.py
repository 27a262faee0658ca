"""Idle time is skipped, and skipping changes nothing."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from archgym.envs.dram.controller.config import PAGE_POLICIES, ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.controller.result import Result
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.traces.trace import Trace

REFRESHED = [
    ("DDR3-1600", "all_bank"),
    ("DDR4-2400", "all_bank"),
    ("LPDDR4-3200", "per_bank"),
    ("DDR5-4800", "same_bank"),
    ("HBM2-2000", "per_bank"),
]


def sparse_trace(rng: np.random.Generator) -> Trace:
    """Requests with gaps of up to some hundred refresh intervals."""
    n = 60
    longest = int(10 ** rng.uniform(6, 8.5))
    arrival = np.cumsum(rng.integers(1, longest, n))
    address = rng.integers(0, 2**28 // 64, n) * 64
    return Trace("sparse", arrival, address, (rng.random(n) < 0.3).astype(np.uint8))


def figures(result: Result) -> dict[str, object]:
    found = dataclasses.asdict(dataclasses.replace(result, log=(), latency_ns=None))
    return {name: str(value) for name, value in found.items()}


@pytest.mark.parametrize(("device", "refresh"), REFRESHED)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_run_that_logs_every_refresh_comes_to_the_same(
    device: str, refresh: str, ranks: int
) -> None:
    rng = np.random.default_rng(ranks)
    memory = load_memory({"device": device, "ranks": ranks})
    for _ in range(6):
        config = ControllerConfig(
            refresh_policy=refresh,
            page_policy=str(rng.choice(PAGE_POLICIES)),
            refresh_max_pulledin=int(rng.integers(0, 4)),
            refresh_max_postponed=int(rng.integers(0, 4)),
        )
        trace = prepare(sparse_trace(rng), memory)
        skipped = simulate(trace, config)
        logged = simulate(trace, config, log_commands=True)
        assert figures(skipped) == figures(logged)
        assert sum(skipped.commands.values()) == sum(len(log) for log in logged.log)


@pytest.mark.parametrize(("device", "refresh"), REFRESHED)
def test_refreshes_of_a_second_of_idle_time_are_counted(device: str, refresh: str) -> None:
    second_ps = 10**12
    trace = Trace("gap", np.array([0, second_ps]), np.array([0, 64]), np.array([0, 0], np.uint8))
    memory = load_memory(device)
    result = simulate(prepare(trace, memory), ControllerConfig(refresh_policy=refresh))
    interval = {
        "all_bank": memory.device.t_refi_cycles,
        "per_bank": memory.device.t_refi_pb_cycles,
        "same_bank": memory.device.t_refi_sb_cycles,
    }[refresh]
    name = {"all_bank": "refab", "per_bank": "refpb", "same_bank": "refsb"}[refresh]
    assert result.commands[name] == math.floor(second_ps / memory.device.t_ck_ps / interval)
