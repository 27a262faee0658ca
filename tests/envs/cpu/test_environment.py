"""CPU-v0: its metrics, spaces and workloads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.cpu.cost.sram import cache_cost, storage_bits
from archgym.envs.cpu.hierarchy.config import CacheLevel
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space import Categorical, DesignSpace, Ordinal

SHORT = {"recorded": "sqlite", "instructions": 50_000}


def metrics(design: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    env = archgym.make("CPU-v0", **{"workload": SHORT, **arguments})
    outcome = env.evaluate({**env.baseline_design, **(design or {})})
    assert outcome.status == "ok", outcome.reason
    return dict(outcome.metrics)


def test_a_stream_misses_once_a_line() -> None:
    spec = {"generator": "stream", "instructions": 80_000}
    found = metrics(workload=spec)
    # Eight elements of 8 bytes share a line, and one of eight instructions reads.
    assert found["l1d_mpki"] == pytest.approx(1000 / 64, rel=0.01)
    assert found["llc_mpki"] == pytest.approx(1000 / 64, rel=0.01)
    assert found["dram_traffic_per_instruction_b"] == pytest.approx(1.0, rel=0.02)


def test_larger_caches_miss_less_and_cost_more() -> None:
    small = metrics({"l1d_kib": 8, "l1d_ways": 8})
    large = metrics({"l1d_kib": 64, "l1d_ways": 8})
    assert large["l1d_mpki"] < small["l1d_mpki"]
    for name in ("area_um2", "storage_bits", "leakage_mw"):
        assert large[name] > small[name]


def test_without_a_second_level_its_misses_are_those_of_the_first() -> None:
    env = archgym.make("CPU-v0", workload=SHORT)
    design = {
        name: value
        for name, value in env.baseline_design.items()
        if name not in ("l2_ways", "l2_replacement")
    }
    found: dict[str, Any] = dict(env.evaluate({**design, "l2_kib": 0}).metrics)
    assert found["l2_mpki"] == pytest.approx(found["l1i_mpki"] + found["l1d_mpki"])


def test_slower_memory_costs_time_only() -> None:
    fast, slow = metrics(memory_ns=30), metrics(memory_ns=90)
    assert slow["access_time_mean_ns"] > fast["access_time_mean_ns"]
    assert slow["energy_per_instruction_pj"] == fast["energy_per_instruction_pj"]


def test_what_no_program_changes_is_exact_for_several() -> None:
    programs = [SHORT, {"recorded": "zstd", "instructions": 50_000}, {"generator": "stream"}]
    one = metrics()
    for order in (programs, programs[::-1]):
        several = metrics(workload=order)
        for name in ("storage_bits", "area_um2", "leakage_mw"):
            assert several[name] == one[name]


def test_several_programs_are_a_mean() -> None:
    one, two = metrics(), metrics(workload={"recorded": "zstd", "instructions": 50_000})
    both = metrics(workload=[SHORT, {"recorded": "zstd", "instructions": 50_000}])
    assert both["l1d_mpki"] == pytest.approx((one["l1d_mpki"] + two["l1d_mpki"]) / 2)
    assert both["access_time_mean_ns"] == pytest.approx(
        math.sqrt(one["access_time_mean_ns"] * two["access_time_mean_ns"])
    )
    env = archgym.make("CPU-v0", workload={"programs": [SHORT], "held_out": ["xz"]})
    assert env.held_out_workload() == {"programs": [{"recorded": "xz"}]}
    assert env.workload_name == "sqlite(instructions=50000)"


def test_prefetchers_are_counted_in_the_space_that_searches_them() -> None:
    spec = {"generator": "stream", "instructions": 80_000}
    assert metrics(workload=spec)["prefetch_coverage_share"] is None
    fetched = {"l1d_prefetcher": "stream", "l1d_prefetch_degree": 4, "l1d_prefetch_distance": 4}
    found = metrics(fetched, workload=spec, space="memory")
    assert found["prefetch_coverage_share"] > 0.8
    assert found["prefetch_accuracy_share"] > 0.8
    assert found["page_walk_pki"] > 0
    assert metrics(workload=spec, space="memory")["prefetch_coverage_share"] == 0


def test_counting_as_cachegrind_covers_what_cachegrind_has() -> None:
    env = archgym.make("CPU-v0", workload=SHORT, counting="cachegrind")
    assert env.evaluate(env.baseline_design).feasible
    second = {"l2_kib": 256, "l2_ways": 4, "l2_replacement": "lru"}
    outcome = env.evaluate({**env.baseline_design, **second})
    assert outcome.status == "illegal"
    assert "cachegrind has no second level" in outcome.reason


def test_counting_as_cachegrind_in_a_space_of_the_first_level_only() -> None:
    space = DesignSpace([Ordinal("l1d_kib", (8, 16)), Ordinal("l1d_ways", (1, 8))])
    small = archgym.make("CPU-v0", workload=SHORT, counting="cachegrind", space=space)
    whole = archgym.make("CPU-v0", workload=SHORT, counting="cachegrind")
    design = {"l1d_kib": 16, "l1d_ways": 8}
    found = small.evaluate(design)
    assert found.status == "ok", found.reason
    assert found.metrics == whole.evaluate({**whole.baseline_design, **design}).metrics


@pytest.mark.parametrize("name", ["zstd", "sqlite", "xz"])
def test_the_shipped_table_is_of_what_the_simulator_gives(name: str) -> None:
    table = archgym.make("CPU-v0", simulator=f"tabular:cpu-caches-{name}")
    assert table.workload_name == f"{name}(instructions=250000)"
    assert (table.design_space.canonical_cardinality or 0) > 100_000
    assert table.held_out_workload() is None
    design = table.design_space.sample(1, np.random.default_rng(0))[0]
    same = archgym.make("CPU-v0", workload={"recorded": name, "instructions": 250_000})
    theirs = table.evaluate(design).metrics
    for name, value in same.evaluate(design).metrics.items():
        assert theirs[name] == (None if value is None else pytest.approx(value, rel=1e-6))


@pytest.mark.parametrize("value", [0, -1, 1e9, "60", True, float("nan")])
def test_a_time_of_memory_that_is_not_possible(value: Any) -> None:
    with pytest.raises(InvalidValueError, match="memory_ns"):
        archgym.make("CPU-v0", memory_ns=value)


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'champsim'"):
        archgym.make("CPU-v0", counting="champsin")
    with pytest.raises(UnknownNameError, match="Did you mean 'memory'"):
        archgym.make("CPU-v0", space="memmory")
    with pytest.raises(InvalidValueError, match="must be the name of a design space"):
        archgym.make("CPU-v0", space=["l1d_kib"])


@pytest.mark.parametrize("name", ["l1_kib", "l1d_size", "ways"])
def test_a_space_with_a_parameter_that_the_model_does_not_have(name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"parameter of the space '{name}'"):
        archgym.make("CPU-v0", workload=SHORT, space=DesignSpace([Ordinal(name, (1, 2))]))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("fetch_width", "rob_size"),
        ("dtlb_entries", "itlb_entries and stlb_entries"),
        ("l1d_prefetch_degree", "l1d_prefetcher"),
    ],
)
def test_a_parameter_that_acts_with_another_one_only(name: str, other: str) -> None:
    with pytest.raises(InvalidValueError, match=f"'{name}' has no effect without {other}"):
        archgym.make("CPU-v0", workload=SHORT, space=DesignSpace([Ordinal(name, (2, 4))]))


@pytest.mark.parametrize(
    ("name", "value", "near"),
    [
        ("l1d_replacement", "fifo", "Allowed: drrip, lru"),
        ("l2_replacement", "srip", "Did you mean 'srrip'"),
        ("llc_inclusion", "inclusiv", "Did you mean 'inclusive'"),
        ("l1d_prefetcher", "nextline", "Did you mean 'next_line'"),
    ],
)
def test_a_space_with_a_policy_that_the_model_does_not_have(
    name: str, value: str, near: str
) -> None:
    space = DesignSpace([Categorical(name, (value,)), Ordinal("l1d_ways", (1, 2))])
    with pytest.raises(UnknownNameError, match=f"space: {name}: unknown value '{value}'.*{near}"):
        archgym.make("CPU-v0", workload=SHORT, space=space)


@pytest.mark.parametrize(
    ("kib", "nearest"), [(12, "nearest are 8192 and 16384 bytes"), (0, "least is 512 bytes")]
)
def test_a_size_that_does_not_fit_names_the_parameters_and_what_fits(
    kib: int, nearest: str
) -> None:
    env = archgym.make("CPU-v0", workload=SHORT, space=DesignSpace([Ordinal("l1d_kib", (kib, 32))]))
    outcome = env.evaluate({"l1d_kib": kib})
    assert outcome.status == "illegal"
    assert f"l1d_kib={kib}, l1d_ways=8, line_bytes=64: " in outcome.reason
    assert nearest in outcome.reason


class TestCosts:
    def test_costs_grow_with_size(self) -> None:
        for first in (True, False):
            sizes = [1 << k for k in range(14, 23)]
            found = [cache_cost(CacheLevel(size, 4), first=first) for size in sizes]
            for figure in ("area_um2", "leakage_mw", "access_ns"):
                values = [getattr(one, figure) for one in found]
                assert values == sorted(values), figure

    def test_the_table_s_own_points(self) -> None:
        cost = cache_cost(CacheLevel(2048, 1), first=True)
        assert cost.access_ns == pytest.approx(0.0945)
        assert cost.read_pj == pytest.approx(0.787)

    def test_bits_by_hand(self) -> None:
        # 512 lines of 64 bytes; tag 48 - 6 - 6; valid, dirty; three bits of age.
        assert storage_bits(CacheLevel(32768, 8)) == 512 * (512 + 36 + 2 + 3)
        assert storage_bits(CacheLevel(32768, 8, 64, "random")) == 512 * (512 + 36 + 2)
