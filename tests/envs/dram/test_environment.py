"""The DRAM environment through its public interface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.dram.controller.buffer_cost import buffer_bits
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.device.data_sheets import load_device
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.environment import DramEnvironment
from archgym.errors import DesignError, InvalidValueError, TraceError, UnknownNameError

SMALL = {"generator": "zipf", "requests": 1500, "seed": 5}
ARCHGYM_KNOBS = {
    "page_policy": 4,
    "scheduler": 3,
    "scheduler_buffer": 3,
    "request_buffer_size": 8,
    "resp_queue": 2,
    "refresh_policy": 2,
    "refresh_max_postponed": 8,
    "refresh_max_pulledin": 8,
    "arbiter": 3,
    "max_active_transactions": 8,
}


@pytest.fixture(scope="module")
def env() -> archgym.Environment:
    return archgym.make("DRAM-v0", workload=SMALL)


def test_archgym_space_is_the_originals() -> None:
    space = DramEnvironment.spaces()["archgym"]
    assert {p.name: p.size for p in space.parameters} == ARCHGYM_KNOBS
    assert space.raw_cardinality == 1_769_472
    assert space.canonical_cardinality == 636_480


def test_bank_group_mapping_only_where_there_are_bank_groups() -> None:
    ddr3 = archgym.make("DRAM-v0", memory="DDR3-1600", workload=SMALL)
    ddr4 = archgym.make("DRAM-v0", memory="DDR4-2400", workload=SMALL)
    assert "bgi" in ddr4.design_space["address_mapping"].range
    with pytest.raises(DesignError, match="bgi"):
        ddr3.evaluate({**ddr3.baseline, "address_mapping": "bgi"})


@pytest.mark.parametrize("memory", ["DDR3-1600", "DDR4-2400"])
@pytest.mark.parametrize("space", ["default", "archgym"])
def test_every_design_is_simulated_and_its_metrics_are_consistent(memory: str, space: str) -> None:
    env = archgym.make("DRAM-v0", memory=memory, space=space, workload=SMALL)
    assert isinstance(env, DramEnvironment)
    designs = env.design_space.sample(40, np.random.default_rng(2))
    outcomes = env.evaluate_batch(designs)
    assert (outcomes.status == 0).all()
    column = {name: outcomes.metrics[:, i] for i, name in enumerate(outcomes.metric_names)}
    moved = len(env.trace) * 64
    np.testing.assert_allclose(column["bandwidth_gb_per_s"], moved / column["time_ns"], rtol=1e-9)
    np.testing.assert_allclose(
        column["energy_per_bit_pj"], column["energy_pj"] / (8 * moved), rtol=1e-9
    )
    np.testing.assert_allclose(
        column["power_mw"], column["energy_pj"] / column["time_ns"], rtol=1e-9
    )
    assert (column["read_latency_accepted_mean_ns"] <= column["read_latency_mean_ns"] + 1e-9).all()
    assert (column["read_latency_mean_ns"] <= column["read_latency_p99_ns"]).all()
    # No request can be answered before its row is open and its burst is over.
    device = env.memory.device
    minimum = (device.rl_cycles + device.burst_cycles) * device.t_ck_ps / 1000
    from_the_dram = np.array([design.get("write_policy") != "posted" for design in designs])
    assert (column["read_latency_mean_ns"][from_the_dram] >= minimum).all()
    assert (column["read_latency_p99_ns"] <= column["read_latency_max_ns"]).all()
    # The last request arrives, and only then can the last response come.
    assert (column["time_ns"] * 1000 > env.trace.arrival_ps[-1]).all()


def test_equal_inputs_give_equal_metrics() -> None:
    def metrics() -> np.ndarray[Any, Any]:
        env = archgym.make("DRAM-v0", workload=SMALL)
        return env.evaluate_batch(env.design_space.sample(10, np.random.default_rng(4))).metrics

    np.testing.assert_array_equal(metrics(), metrics())


def test_metrics_do_not_depend_on_what_was_simulated_before() -> None:
    env = archgym.make("DRAM-v0", workload={"generator": "cloud_2", "requests": 4000})
    space = env.design_space.fix({"arbiter": "reorder", "resp_queue": "fifo"})
    designs = [*space.sample(60, np.random.default_rng(8))]
    there = [env.evaluate(design).metrics for design in designs]
    env.start_trial()  # forget them
    back = [env.evaluate(design).metrics for design in reversed(designs)]
    assert there == back[::-1]


def test_there_is_a_real_trade_off() -> None:
    """No design is best in latency, energy and storage at once."""
    env = archgym.make("DRAM-v0", workload=SMALL)
    outcomes = env.evaluate_batch(env.design_space.sample(300, np.random.default_rng(1)))
    names = list(outcomes.metric_names)
    wanted = ["read_latency_mean_ns", "energy_pj", "buffer_bits"]
    best = [int(outcomes.metrics[:, names.index(name)].argmin()) for name in wanted]
    assert len({tuple(outcomes.metrics[i]) for i in best}) > 1


def test_a_larger_buffer_costs_more_storage(env: archgym.Environment) -> None:
    small = env.evaluate({**env.baseline, "request_buffer_size": 4}).metrics["buffer_bits"]
    large = env.evaluate({**env.baseline, "request_buffer_size": 8}).metrics["buffer_bits"]
    assert small is not None
    assert large is not None
    assert small < large


def test_storage_by_hand() -> None:
    """DDR3-1600: 1 GiB of 64-byte lines, so 24 address bits; a line is 512 bits."""
    memory = load_memory("DDR3-1600")
    split = ControllerConfig(scheduler_buffer="read_write", request_buffer_size=2)
    assert buffer_bits(split, memory) == 4 * (24 + 1 + 2) + 2 * 512
    reordering = ControllerConfig(
        scheduler_buffer="shared",
        request_buffer_size=4,
        arbiter="reorder",
        max_active_transactions=8,
    )
    assert buffer_bits(reordering, memory) == 4 * (24 + 1 + 3) + 4 * 512 + 8 * 3 + 8 * 512
    # Two channels have a controller each; two ranks add an address bit and, bankwise, banks.
    wide = load_memory({"device": "DDR3-1600", "channels": 2})
    assert buffer_bits(split, wide) == 2 * buffer_bits(split, memory)
    deep = load_memory({"device": "DDR3-1600", "ranks": 2})
    assert buffer_bits(split, deep) == buffer_bits(split, memory) + 4
    each = ControllerConfig(scheduler_buffer="bankwise", request_buffer_size=1)
    assert buffer_bits(each, deep) == 16 * (25 + 1 + 4) + 16 * 512


def test_a_trace_without_reads_has_no_read_latency(tmp_path: Path) -> None:
    file = tmp_path / "writes.trace"
    file.write_text("".join(f"{10 * i} W 0x{64 * i:x}\n" for i in range(200)))
    env = archgym.make("DRAM-v0", workload=str(file), objective="minimize energy_pj")
    outcome = env.evaluate(env.baseline)
    assert outcome.status == "ok"
    assert outcome.metrics["read_latency_mean_ns"] is None
    with pytest.raises(InvalidValueError, match="read_latency_mean_ns"):
        archgym.make("DRAM-v0", workload=str(file), objective="minimize read_latency_mean_ns")


@pytest.mark.parametrize(
    "delay",
    [
        f"{part}_delay_{way}_cycles"
        for part in ("think", "phy", "arbitration")
        for way in ("fw", "bw")
    ],
)
def test_a_delay_adds_to_the_latency_of_a_lone_read(delay: str, tmp_path: Path) -> None:
    file = tmp_path / "one.trace"
    file.write_text("0 R 0x0\n")
    alone = {"workload": str(file), "objective": "minimize read_latency_mean_ns"}
    plain = archgym.make("DRAM-v0", **alone)
    slower = archgym.make("DRAM-v0", **alone, controller={delay: 10})
    clock_ns = load_device("DDR4-2400").t_ck_ps / 1000
    latency = [
        env.evaluate(env.baseline).metrics["read_latency_mean_ns"] for env in (plain, slower)
    ]
    assert latency[0] is not None
    already = 1 if delay == "think_delay_fw_cycles" else 0  # the default
    assert latency[1] == pytest.approx(latency[0] + (10 - already) * clock_ns)


def test_recorded_programs_are_large_enough() -> None:
    for name in ("sqlite", "xz"):
        env = archgym.make("DRAM-v0", workload=name)
        assert isinstance(env, DramEnvironment)
        assert len(env.trace) >= 50_000
        assert env.evaluate(env.baseline).status == "ok"


def test_a_batch_is_simulated_as_each_of_its_designs_alone() -> None:
    """Designs that differ in limits only, of which a batch simulates but a few."""
    workload = {"generator": "cloud_1", "requests": 2000}
    env = archgym.make("DRAM-v0", space="archgym", memory="DDR3-1600", workload=workload)
    rng = np.random.default_rng(3)
    limits = ("request_buffer_size", "refresh_max_postponed", "refresh_max_pulledin")
    kinds = [*env.design_space.sample(4, rng)]
    drawn = [*env.design_space.sample(50, rng)]
    designs = [
        {**kind, **{name: design[name] for name in limits if name in design and name in kind}}
        for kind in kinds
        for design in drawn
    ]
    together = env.evaluate_batch(designs).metrics
    env.start_trial()  # forget them
    alone = np.array([list(env.evaluate(design).metrics.values()) for design in designs], float)
    np.testing.assert_array_equal(together, alone)


def test_ranks_and_channels() -> None:
    """Saturated: a second channel doubles the bandwidth, a second rank adds banks."""
    workload = {"generator": "random", "requests": 4000, "interval_ns": 2.0}
    found = {}
    for name, memory in {
        "one": {"device": "DDR4-2400"},
        "ranks": {"device": "DDR4-2400", "ranks": 2},
        "channels": {"device": "DDR4-2400", "channels": 2},
    }.items():
        env = archgym.make("DRAM-v0", memory=memory, workload=workload)
        assert ("channel_interleave" in env.design_space) == (name == "channels")
        metrics = env.evaluate(env.baseline_design).metrics
        assert metrics["time_ns"] is not None
        found[name] = metrics["time_ns"]
    assert found["ranks"] < found["one"]
    assert found["channels"] == pytest.approx(found["one"] / 2, rel=0.1)


def test_refresh_that_the_device_has() -> None:
    offered = {}
    for memory in ("DDR3-1600", "LPDDR4-3200", "DDR5-4800"):
        space = archgym.make("DRAM-v0", memory=memory, workload=SMALL).design_space
        offered[memory] = space["refresh_policy"]
    assert "per_bank" not in offered["DDR3-1600"].range
    assert "per_bank" in offered["LPDDR4-3200"].range
    assert "same_bank" in offered["DDR5-4800"].range


def test_ddr5_postpones_and_pulls_in_four_refreshes_at_most() -> None:
    for memory, most in (("DDR3-1600", 8), ("DDR5-4800", 4)):
        env = archgym.make("DRAM-v0", memory=memory, workload=SMALL)
        for name in ("refresh_max_postponed", "refresh_max_pulledin"):
            assert env.design_space[name].range == f"an integer from 0 to {most}", (memory, name)


def test_a_memory_that_forgets_is_offered_on_request_only() -> None:
    env = archgym.make("DRAM-v0", memory="LPDDR4-3200", workload=SMALL)
    forgetful = {**env.baseline_design, "refresh_policy": "none"}
    drawn = env.design_space.sample(500, np.random.default_rng(0))
    assert set(drawn.values("refresh_policy")) == {"all_bank", "per_bank"}
    with pytest.raises(DesignError, match=r"excluded from the search \(include: \[refresh_policy"):
        env.evaluate(forgetful)
    with pytest.raises(DesignError, match="excluded"):
        archgym.make("DRAM-v0", workload=SMALL, fixed={"refresh_policy": "none"})
    study = archgym.make(
        "DRAM-v0", memory="LPDDR4-3200", workload=SMALL, include=["refresh_policy"]
    )
    outcome = study.evaluate(forgetful)
    assert outcome.status == "ok"
    assert "refresh_max_postponed" not in outcome.design
    assert study.design_space.canonical_cardinality > env.design_space.canonical_cardinality


def test_a_table_of_more_values_serves_a_search_without_some() -> None:
    whole = archgym.make("DRAM-v0", simulator="tabular:dram-archgym-sort")
    less = archgym.make(
        "DRAM-v0",
        simulator="tabular:dram-archgym-sort",
        exclude={"refresh_policy": ["none"], "page_policy": ["open"]},
    )
    assert whole.optimum is not None
    assert less.optimum is not None
    assert whole.optimum.design["refresh_policy"] == "none"
    assert less.optimum.design["refresh_policy"] == "all_bank"
    assert less.baseline_design["page_policy"] == "open_adaptive"
    for design in less.design_space.sample(50, np.random.default_rng(1)):
        assert less.evaluate(design).metrics == whole.evaluate(design).metrics
    assert less.regret(less.evaluate(less.optimum.design)) == 0


def test_no_energy_without_a_power_model() -> None:
    env = archgym.make("DRAM-v0", memory="DDR5-4800", workload=SMALL)
    metrics = env.evaluate(env.baseline_design).metrics
    assert metrics["energy_pj"] is None
    assert metrics["read_latency_mean_ns"] is not None
    with pytest.raises(InvalidValueError, match="power_mw"):
        archgym.make("DRAM-v0", memory="DDR5-4800", objective="minimize power_mw", workload=SMALL)


def test_a_user_defined_address_mapping(tmp_path: Path) -> None:
    """Bits of rbc under another name give the metrics of rbc."""
    bits = {
        "BYTE_BIT": [0, 1, 2],
        "COLUMN_BIT": list(range(3, 13)),
        "BANKGROUP_BIT": [13, 14],
        "BANK_BIT": [15, 16],
        "ROW_BIT": list(range(17, 32)),
    }
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"addressmapping": bits}))
    env = archgym.make("DRAM-v0", workload=SMALL, address_mappings={"mine": str(file)})
    mine, named = (
        env.evaluate({**env.baseline, "address_mapping": name}).metrics for name in ("mine", "rbc")
    )
    assert mine == named
    bits["ROW_BIT"] = bits["ROW_BIT"][:-1]
    file.write_text(json.dumps(bits))
    with pytest.raises(InvalidValueError, match="row has 14 bits; DDR4-2400 needs 15"):
        archgym.make("DRAM-v0", workload=SMALL, address_mappings={"mine": str(file)})


def test_an_address_beyond_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "far.trace"
    file.write_text("0 R 0x0\n10 R 0x40000000\n")
    with pytest.raises(InvalidValueError, match=r"request 1 is at .* beyond the 1 .*fold_bytes"):
        archgym.make("DRAM-v0", memory="DDR3-1600", workload=str(file))
    archgym.make("DRAM-v0", memory="DDR4-2400", workload=str(file))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"workload": "sqlit"}, UnknownNameError, "Did you mean 'sqlite'"),
        ({"memory": "DDR4-2401"}, UnknownNameError, "Did you mean 'DDR4-2400'"),
        ({"space": "archgim"}, UnknownNameError, "Did you mean 'archgym'"),
        ({"objective": "minimize energy"}, UnknownNameError, "Did you mean 'energy_pj'"),
        ({"fixed": {"schedular": "fifo"}}, UnknownNameError, "Did you mean 'scheduler'"),
        ({"fixed": {"scheduler": "fifi"}}, DesignError, "Did you mean 'fifo'"),
        ({"workload": "no/such/file.stl"}, TraceError, "no/such/file.stl"),
        (
            {"controller": {"think_delay_fw_cycle": 3}},
            UnknownNameError,
            "Did you mean 'think_delay_fw_cycles'",
        ),
        ({"memory": {"device": "DDR4-2400", "rank": 2}}, UnknownNameError, "Did you mean 'ranks'"),
        ({"memory": {"device": "DDR4-2400", "ranks": 3}}, InvalidValueError, "ranks is 3"),
        ({"memory": {"channels": 2}}, InvalidValueError, "device is None"),
        ({"address_mappings": {"mine": {"rwo": [1]}}}, UnknownNameError, "Did you mean 'row'"),
        ({"controller": {"scheduler": "fifo"}}, UnknownNameError, "controller"),
        ({"episode_length": 0}, InvalidValueError, "episode_length"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        archgym.make("DRAM-v0", **{"workload": SMALL, **arguments})
