"""Random search: even, without repeats, and light."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from archgym.agents.random import RandomSearch
from archgym.envs.conformance import ConformanceEnvironment
from archgym.errors import InvalidValueError
from archgym.space import DesignSpace, Integer

FINITE = ConformanceEnvironment.design_spaces["finite"]


def test_every_legal_design_is_equally_likely() -> None:
    space = FINITE.fix(
        {"replacement": "lru", "size_kb": 1}
    )  # 4 designs without prefetching, 32 with
    rows = {key: row for row, key in enumerate(next(space.enumerate()).keys())}
    hits = np.zeros(len(rows))
    for seed in range(1800):
        hits[rows[RandomSearch(space, seed=seed).ask(1).keys()[0]]] += 1
    expected = 1800 / len(rows)
    chi_square = ((hits - expected) ** 2 / expected).sum()
    assert chi_square < 66.6  # 35 degrees of freedom: exceeded once in 1,000


@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
def test_batch_size_does_not_change_the_designs(batch_size: int) -> None:
    def trajectory(size: int) -> list[int]:
        env = ConformanceEnvironment()
        keys: list[int] = []
        env.on_evaluated = lambda outcomes: keys.extend(outcomes.designs.keys())
        RandomSearch(env.design_space, seed=4, batch_size=size).search(env, 150)
        return keys

    assert trajectory(batch_size) == trajectory(64)


def test_designs_told_from_elsewhere_are_not_proposed() -> None:
    space = FINITE.fix({"replacement": "lru", "size_kb": 1})
    agent, env = RandomSearch(space, seed=1), ConformanceEnvironment(space=space)
    first = agent.ask(3)
    told = next(space.enumerate())[10:30]
    agent.tell(told, env.evaluate_batch(told))
    rest = agent.ask(1000)
    assert not set(rest.keys()) & (set(told.keys()) | set(first.keys()))
    assert (
        len(set(rest.keys()) | set(told.keys()) | set(first.keys())) == space.canonical_cardinality
    )


def test_memory_stays_small_over_many_designs() -> None:
    space = DesignSpace([Integer(f"x{i}", 0, 99) for i in range(6)])
    agent = RandomSearch(space, seed=1)
    agent.ask(64)
    tracemalloc.start()
    for _ in range(200):
        assert len(agent.ask(100)) == 100
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000 * 250  # bytes: an integer in a set, no designs


def test_a_result_has_a_short_text() -> None:
    env = ConformanceEnvironment()
    result = RandomSearch(env.design_space, seed=0).search(env, 20)
    assert result.best is not None
    assert repr(result) == (
        f"SearchResult(best: {result.best.objectives[0]:.6g}, after {result.best_at} of 20 "
        "simulations)"
    )


def test_a_budget_that_no_memory_would_hold_is_refused() -> None:
    env = ConformanceEnvironment()
    with pytest.raises(InvalidValueError, match="at most 1,000,000,000 are allowed"):
        RandomSearch(env.design_space, seed=0).search(env, 10**12)
    small = ConformanceEnvironment(space="finite", fixed={"size_kb": 1, "replacement": "lru"})
    found = RandomSearch(small.design_space, seed=0).search(small, 10**12)
    assert found.simulations == 36
