"""Random designs on every memory: no timing rule is broken, nothing is lost, limits hold."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from archgym.envs.dram.controller.batch import LIMITS, simulate_configs
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.device.data_sheets import device_names
from archgym.envs.dram.device.memory import Memory, load_memory
from archgym.envs.dram.traces.workload import load_workload, recorded_names
from archgym.envs.dram.validation.timing_checker import check_refreshes, violations
from tests.envs.dram.controller.controller_runs import (
    DDR3,
    DDR4,
    cycles_of,
    mixed_trace,
    random_config,
    simulated,
)

NAMES = device_names()


def check_design(name: str, seed: int, requests: int) -> None:
    """A random design, memory and trace: what the checker finds, and what must add up."""
    memory = load_memory({"device": name, "ranks": (1, 1, 2, 4)[seed % 4]})
    device = memory.device
    config = random_config(seed, memory)
    trace = mixed_trace(seed, requests, (1.0, 20.0, 300.0)[seed % 3])
    result = simulated(trace, memory, config, log=True)
    context = (memory.name, config)
    log = result.log[0]
    assert violations(memory, log) == [], context
    if config.refresh_policy != "none":
        # Refreshes that were pulled in leave room for as many more to be postponed.
        maximum = config.refresh_max_postponed + config.refresh_max_pulledin
        wrong = check_refreshes(
            memory,
            log,
            refresh_policy=config.refresh_policy,
            max_postponed=maximum,
            cycles=result.cycles,
        )
        assert wrong == [], context

    counts = result.commands
    assert result.reads == int((trace.is_write == 0).sum())
    assert result.writes == int(trace.is_write.sum())
    assert counts["rd"] + counts["rda"] == result.reads - result.forwarded
    assert counts["wr"] + counts["wra"] == result.writes - result.merged
    assert config.write_policy == "posted" or result.merged == result.forwarded == 0
    assert sum(counts.values()) == len(log)
    bursts = requests - result.merged - result.forwarded
    assert result.row_hits + result.row_misses + result.row_conflicts == bursts
    residencies = (
        result.active_ns,
        result.precharged_ns,
        result.power_down_active_ns,
        result.power_down_precharged_ns,
        result.self_refresh_ns,
    )
    assert min(residencies) >= 0
    assert sum(residencies) == pytest.approx(result.time_ns * memory.ranks, rel=1e-9), context
    assert result.latency_ns is not None
    shortest = config.think_delay_fw_cycles + 1
    if config.write_policy == "completed":
        shortest += device.wl_cycles + device.burst_cycles - 1
    assert result.latency_ns.min() >= (shortest - 1) * device.t_ck_ps * 1e-3
    if device.supplies:
        assert result.energy.total_pj == pytest.approx(result.energy_pj)


@pytest.mark.parametrize("name", NAMES)
def test_random_designs(name: str) -> None:
    for seed in range(100):
        check_design(name, seed, 120)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_many_random_designs(name: str) -> None:
    for seed in range(1000, 1500):
        check_design(name, seed, 500)


@pytest.mark.nightly
@pytest.mark.parametrize("workload", recorded_names())
def test_recorded_programs(workload: str) -> None:
    trace = load_workload({"recorded": workload, "requests": 20000})
    for seed, name in enumerate(NAMES):
        ranks = 1
        while Memory(load_memory(name).device, ranks=ranks).capacity_bytes <= trace.address.max():
            ranks *= 2
        memory = Memory(load_memory(name).device, ranks=ranks)
        config = random_config(seed, memory)
        result = simulated(trace, memory, config, log=True)
        assert violations(memory, result.log[0]) == [], (memory.name, config)


@pytest.mark.parametrize("memory", [DDR3, DDR4], ids=lambda memory: memory.name)
@pytest.mark.parametrize("postponed", [0, 2, 8])
@pytest.mark.parametrize("pulled_in", [0, 2, 8])
def test_every_refresh_comes_in_its_window(memory: Any, postponed: int, pulled_in: int) -> None:
    # The k-th refresh belongs to k tREFI; it may come so many intervals early or late.
    device = memory.device
    config = ControllerConfig(refresh_max_postponed=postponed, refresh_max_pulledin=pulled_in)
    trace = mixed_trace(7, 6000, 8.0)
    at = np.array(cycles_of(simulated(trace, memory, config, log=True), "refab"))
    due = device.t_refi_cycles * np.arange(1, len(at) + 1)
    # A refresh waits for the precharge of all banks and for refreshes before it.
    slack = device.t_rc_cycles + device.t_wr_cycles + device.t_rfc_cycles
    assert len(at) > 10
    assert (at <= due + postponed * device.t_refi_cycles + slack).all()
    assert (at >= due - pulled_in * device.t_refi_cycles).all()


def higher(config: ControllerConfig, enough: Any, rng: np.random.Generator) -> ControllerConfig:
    """The same controller with those limits that the run did not reach changed."""
    changes: dict[str, Any] = {}
    for name in LIMITS:
        minimum = max(
            getattr(enough, name), name not in ("refresh_max_postponed", "refresh_max_pulledin")
        )
        if getattr(config, name) >= minimum:
            changes[name] = int(minimum + rng.integers(0, 30))
    return dataclasses.replace(config, **changes)


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_that_was_not_reached_can_be_any_higher(name: str) -> None:
    changed = 0
    for seed in range(60):
        memory = load_memory({"device": name, "ranks": (1, 2)[seed % 2]})
        config = random_config(seed, memory)
        trace = mixed_trace(seed, 200, (2.0, 20.0, 300.0)[seed % 3])
        result = simulated(trace, memory, config, log=True)
        other = higher(config, result.limits, np.random.default_rng(seed))
        changed += other != config
        same = simulated(trace, memory, other, log=True)
        assert np.array_equal(same.log[0], result.log[0]), (config, other)
        assert same.cycles == result.cycles
        assert same.read_latency == result.read_latency or result.reads == 0
        assert same.energy == result.energy
    assert changed > 30


def test_a_batch_gives_what_each_gives_alone() -> None:
    trace = mixed_trace(2, 300, 30.0)
    configs = [
        dataclasses.replace(random_config(seed, DDR4), request_buffer_size=size)
        for seed in range(6)
        for size in (1, 4, 24)
    ]

    def prepared(config: ControllerConfig) -> Any:
        return prepare(trace, DDR4, config.address_mapping)

    def metrics_of(result: Any, _: ControllerConfig) -> dict[str, float]:
        return {"time_ns": result.time_ns, "energy_pj": result.energy_pj}

    together = simulate_configs(configs, prepared, metrics_of)
    alone = [metrics_of(simulated(trace, DDR4, config), config) for config in configs]
    assert [metrics for metrics, _ in together] == alone


def test_ranks_share_the_work() -> None:
    # Twice the ranks, the same addresses below: more banks, never fewer row hits.
    trace = mixed_trace(3, 1000, 1.0)
    one = simulated(trace, Memory(DDR4.device), ControllerConfig())
    two = simulated(trace, Memory(DDR4.device, ranks=2), ControllerConfig())
    assert two.row_hits >= one.row_hits
    assert two.commands["refab"] > one.commands["refab"]
