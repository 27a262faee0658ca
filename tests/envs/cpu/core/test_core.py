"""The out-of-order core on streams whose cycles are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archgym.envs.cpu.branch.settings import BranchUnit
from archgym.envs.cpu.core.config import CoreConfig, LevelTiming, MemoryTiming
from archgym.envs.cpu.core.run import run_core
from archgym.envs.cpu.core_run import core_stream
from archgym.envs.cpu.hierarchy.config import CacheLevel, HierarchyConfig, PrefetcherConfig
from archgym.envs.cpu.traces.program import LOAD, STORE, Program
from archgym.errors import InvalidValueError, TraceError

FIRST = CacheLevel(32768, 8)
CACHES = HierarchyConfig(FIRST, FIRST, CacheLevel(262144, 8), CacheLevel(2 << 20, 16))
WIDE = CoreConfig()
LOOP = 100


def program(
    n: int,
    destination: int = 0,
    source: int = 0,
    loads: np.ndarray | None = None,
    stores: np.ndarray | None = None,
) -> Program:
    """Rounds of 99 equal instructions and a branch back; one address an instruction."""
    plain = LOOP - 1
    destinations = np.zeros((LOOP, 2), np.uint8)
    sources = np.zeros((LOOP, 4), np.uint8)
    destinations[:plain, 0], sources[:plain, 0] = destination, source
    destinations[plain], sources[plain] = (26, 0), (26, 25, 0, 0)
    code = (np.arange(n) % LOOP).astype(np.int32)
    touched = np.flatnonzero(code != plain).astype(np.int32)
    kind, address = LOAD, loads
    if stores is not None:
        kind, address = STORE, stores
    if address is None:
        touched = touched[:0]
    data = np.zeros(0, np.int64) if address is None else np.resize(address, len(touched))
    return Program(
        "made by hand",
        0x400000 + 4 * np.arange(LOOP, dtype=np.int64),
        np.full(LOOP, 4, np.uint8),
        (np.arange(LOOP) == plain).astype(np.uint8),
        destinations,
        sources,
        code,
        (code == plain).astype(np.uint8),
        touched,
        np.full(len(touched), kind, np.uint8),
        data.astype(np.int64),
        np.full(len(touched), 8, np.uint16),
    )


def per_instruction(
    made: Program, core: CoreConfig = WIDE, timing: MemoryTiming | None = None
) -> float:
    """Cycles of an instruction once the tables are warm."""
    stream = core_stream(made)
    half, whole = (
        run_core(stream, CACHES, core, timing=timing, instructions=count).cycles
        for count in (len(made) // 2, len(made))
    )
    return (whole - half) / (len(made) - len(made) // 2)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_independent_instructions_run_at_the_width_of_execution(width: int) -> None:
    core = replace(WIDE, execute_width=width)
    assert per_instruction(program(8000, destination=64), core) == pytest.approx(
        1 / width, rel=0.02
    )


@pytest.mark.parametrize("name", ["fetch_width", "dispatch_width", "retire_width"])
def test_every_stage_can_be_the_narrowest(name: str) -> None:
    core = replace(WIDE, **{name: 2})
    assert per_instruction(program(8000), core) == pytest.approx(1 / 2, rel=0.03)


def test_a_chain_takes_a_cycle_an_instruction() -> None:
    chain = program(8000, destination=64, source=64)
    assert per_instruction(chain) == pytest.approx(0.99, abs=0.01)  # the branch is not part of it


@pytest.mark.parametrize(("rob", "scheduler"), [(32, 16), (128, 32), (352, 128)])
def test_a_wider_window_does_not_change_a_chain(rob: int, scheduler: int) -> None:
    core = replace(WIDE, rob_size=rob, scheduler_size=scheduler)
    chain = program(8000, destination=64, source=64)
    assert per_instruction(chain, core) == pytest.approx(per_instruction(chain), rel=0.01)


def test_a_chain_of_loads_pays_the_latency_of_a_hit() -> None:
    """From a load to the next: issue, look-up of two cycles, return, completion."""
    chain = program(8000, destination=64, source=64, loads=np.array([0x10000000]))
    assert per_instruction(chain) == pytest.approx(5 * 0.99, abs=0.05)


def test_a_pointer_chase_pays_the_latency_of_its_level() -> None:
    """Lines that fit the second level only, in an order that the first level cannot keep."""
    lines = np.random.default_rng(1).permutation(2048)
    chase = program(12000, destination=64, source=64, loads=0x10000000 + 64 * lines)
    slow = replace(MemoryTiming(), l2=LevelTiming(30, 32))
    difference = per_instruction(chase, timing=slow) - per_instruction(chase)
    # A hit pays the look-up, half of the latency; the other half is the fill.
    assert difference == pytest.approx(10 * 0.99, rel=0.02)


def test_stores_leave_one_a_cycle_to_the_data_cache() -> None:
    stores = program(8000, source=64, stores=0x10000000 + 8 * np.arange(64))
    assert per_instruction(stores) == pytest.approx(1.0, rel=0.02)


def test_loads_of_a_line_share_an_access() -> None:
    same = program(8000, destination=64, loads=0x10000000 + 8 * np.arange(4))
    apart = program(8000, destination=64, loads=0x10000000 + 64 * np.arange(256))
    assert per_instruction(same) == pytest.approx(0.5, rel=0.03)
    assert per_instruction(apart) > 0.9


def test_a_penalty_is_paid_for_each_misprediction() -> None:
    rng = np.random.default_rng(2)
    made = program(8000)
    # The branch goes on with the next round either way; its direction is a coin.
    coin = replace(
        made, taken=np.where(made.taken == 1, rng.integers(0, 2, 8000), 0).astype(np.uint8)
    )
    stream = core_stream(coin)
    near, far = (
        run_core(stream, CACHES, replace(WIDE, mispredict_penalty=penalty)) for penalty in (1, 21)
    )
    assert near.wrong == far.wrong
    missed = sum(near.wrong.values())
    assert missed > 20
    assert far.cycles - near.cycles == pytest.approx(20 * missed, rel=0.1)


def test_more_of_everything_is_not_slower() -> None:
    lines = np.random.default_rng(3).permutation(4096)
    stream = core_stream(program(6000, destination=64, source=65, loads=0x10000000 + 64 * lines))
    small = CoreConfig(32, 8, 8, 2, 2, 2, 1, 2, 16)
    timing = replace(MemoryTiming(), l1d=LevelTiming(5, 2))
    slow = run_core(stream, CACHES, small, timing=timing)
    fast = run_core(stream, CACHES)
    assert fast.cycles < slow.cycles
    ahead = run_core(stream, CACHES, l1d_prefetcher=PrefetcherConfig("next_line"))
    assert ahead.counts[1, 3].sum() > 0


def test_mshrs_bound_the_misses_that_overlap() -> None:
    lines = 0x10000000 + 64 * np.random.default_rng(4).permutation(1 << 14)
    misses = program(12000, destination=64, loads=lines)
    one, many = (
        per_instruction(misses, timing=replace(MemoryTiming(), l1d=LevelTiming(5, mshrs)))
        for mshrs in (1, 16)
    )
    assert one > 4 * many


def test_a_program_in_order_of_the_trace_is_counted() -> None:
    made = program(3000, destination=64, loads=0x10000000 + 8 * np.arange(8))
    result = run_core(core_stream(made), CACHES, unit=BranchUnit("gshare"))
    assert result.instructions == 3000
    assert result.branches["conditional"] == 30
    assert 0 < result.ipc < 5
    again = run_core(core_stream(made), CACHES, unit=BranchUnit("gshare"))
    assert result.cycles == again.cycles
    assert (result.counts == again.counts).all()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: CoreConfig(rob_size=0), "rob_size: 0"),
        (lambda: CoreConfig(fetch_width=100), "fetch_width: 100"),
        (lambda: CoreConfig(loop_sets=3), "loop_sets: 3"),
        (lambda: CoreConfig(registers=16), "registers: 16"),
        (lambda: LevelTiming(1, 8), "latency: 1"),
        (lambda: LevelTiming(4, 0), "mshrs: 0"),
        (lambda: MemoryTiming(dtlb_sets=3), "dtlb_sets: 3"),
    ],
)
def test_bad_cores_are_named(make: object, named: str) -> None:
    with pytest.raises(InvalidValueError, match=named):
        make()  # type: ignore[operator]


def test_a_program_with_too_many_pages_is_refused() -> None:
    pages = 4096 * np.arange(40000, dtype=np.int64)
    with pytest.raises(TraceError, match="pages"):
        core_stream(program(41000, loads=0x10000000 + pages))
