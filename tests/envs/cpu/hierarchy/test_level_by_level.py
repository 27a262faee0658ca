"""The fast simulation of hierarchies counts as the plain one, reference by reference."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from archgym.envs.cpu.hierarchy.config import (
    INCLUSIONS,
    POLICIES,
    CacheLevel,
    HierarchyConfig,
    PrefetcherConfig,
)
from archgym.envs.cpu.hierarchy.fast import LevelByLevel
from archgym.envs.cpu.hierarchy.layout import FETCH, LOAD, STORE, make_caches
from archgym.envs.cpu.hierarchy.prefetchers import make_prefetchers
from archgym.envs.cpu.hierarchy.references import References
from archgym.envs.cpu.hierarchy.run import run_references
from archgym.envs.cpu.space import as_champsim
from archgym.errors import InvalidValueError


def program(seed: int, n: int = 6000) -> References:
    """Loops over code and data: many uses in a row, and some references across lines."""
    rng = np.random.default_rng(seed)
    kind = rng.choice([FETCH, FETCH, LOAD, STORE], n).astype(np.uint8)
    address = np.empty(n, np.int64)
    places = rng.integers(0, 1 << 14, 40)
    at, left = 0, 0
    for i in range(n):
        if left == 0:
            at, left = int(rng.choice(places)), int(rng.geometric(0.05))
        left -= 1
        stays = rng.random() < 0.7
        address[i] = at if stays else at + int(rng.integers(0, 400))
        if kind[i] == FETCH:
            address[i] += 1 << 16
    return References(
        kind,
        address,
        rng.choice([1, 4, 8, 64, 100], n, p=[0.3, 0.3, 0.3, 0.08, 0.02]).astype(np.uint16),
        np.arange(n, dtype=np.int32),
        rng.integers(0, 50, n) * 4,
        n,
    )


def hierarchy(rng: np.random.Generator) -> HierarchyConfig:
    """A small hierarchy: any policies and inclusion, levels with lines of their own."""

    def level(line: int, most: int, inclusion: str) -> CacheLevel:
        ways = int(rng.choice([1, 2, 4, 8]))
        sets = 1 << int(rng.integers(0, most))
        return CacheLevel(ways * sets * line, ways, line, str(rng.choice(POLICIES)), inclusion)

    while True:
        lines = [64] * 4
        if rng.random() < 0.3:
            lines = np.sort(rng.choice([16, 32, 64, 128], 4)).tolist()
        second = None
        if rng.random() < 0.7:
            second = level(lines[2], 5, str(rng.choice(INCLUSIONS[:2])))
        try:
            return HierarchyConfig(
                level(lines[0], 4, "non_inclusive"),
                level(lines[1], 4, "non_inclusive"),
                second,
                level(lines[3], 6, str(rng.choice(INCLUSIONS))),
                seed=int(rng.integers(100)),
            )
        except InvalidValueError:
            continue


def assert_same(model: LevelByLevel, chosen: HierarchyConfig) -> None:
    caches = make_caches(chosen)
    asked, nothing = model.references, np.zeros(1, np.int64)
    prefetchers = make_prefetchers(chosen, PrefetcherConfig(), PrefetcherConfig())
    columns = (asked.kind, asked.address, asked.size, asked.ip)
    run_references(caches, prefetchers, *columns, nothing, nothing)
    found = model.run(chosen)
    assert found.counts.tolist() == caches.counts.tolist(), chosen
    assert found.events.tolist() == caches.events.tolist(), chosen


@pytest.mark.parametrize("seed", range(6))
def test_any_small_hierarchy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = LevelByLevel(program(seed))
    for number in range(120):
        chosen = hierarchy(rng)
        assert_same(model, as_champsim(chosen) if number % 4 == 0 else chosen)


@pytest.mark.parametrize("above", INCLUSIONS[:2])
@pytest.mark.parametrize("inclusion", INCLUSIONS)
def test_every_policy_above_every_policy(inclusion: str, above: str) -> None:
    model = LevelByLevel(program(100))
    for upper, lower in product(POLICIES, POLICIES):
        first = CacheLevel(1024, 2, 64, upper)
        second = CacheLevel(2048, 4, 64, lower, above)
        last = CacheLevel(8192, 8, 64, lower, inclusion)
        assert_same(model, HierarchyConfig(first, first, second, last))
        assert_same(model, HierarchyConfig(first, first, None, last))


def test_lines_that_an_inclusive_level_takes_away_amid_their_uses() -> None:
    # One line of data is used again and again, with a store late in its run, while fetches sweep
    # over a last level of one set, which does not see those uses.
    n = 4000
    kind = np.where(np.arange(n) % 2 == 0, LOAD, FETCH).astype(np.uint8)
    kind[3000] = STORE
    address = np.where(kind == FETCH, 1 << 16, 0) + np.where(
        kind == FETCH, np.arange(n) // 20 * 64, 0
    )
    asked = References(
        kind,
        address.astype(np.int64),
        np.full(n, 4, np.uint16),
        np.arange(n, dtype=np.int32),
        np.zeros(n, np.int64),
        n,
    )
    model = LevelByLevel(asked)
    for policy in POLICIES:
        first = CacheLevel(256, 2, 64, policy)
        last = CacheLevel(512, 8, 64, "lru", "inclusive")
        chosen = HierarchyConfig(first, first, None, last)
        assert_same(model, chosen)
        assert model.run(chosen).counts[1, LOAD, 1] > 20, policy


def test_inclusive_levels_that_take_lines_away_late_or_never() -> None:
    asked = program(11)
    changed = []
    for policy, bits, second in product(("lru", "random", "ship"), range(4, 10), (False, True)):
        first = CacheLevel(1024, 2, 64, policy)
        middle = CacheLevel(2048, 4, 64, "srrip") if second else None
        last = CacheLevel(64 * 4 << bits, 4, 64, policy, "inclusive")
        chosen = HierarchyConfig(first, first, middle, last)
        model = LevelByLevel(asked)  # that has seen no line taken away
        assert_same(model, chosen)
        other = replace(chosen, llc=replace(last, inclusion="non_inclusive"))
        changed.append((model.run(chosen).counts != model.run(other).counts)[:2].any())
    assert 6 < sum(changed) < len(changed) - 6


def test_results_do_not_depend_on_the_designs_before() -> None:
    rng = np.random.default_rng(7)
    drawn = [hierarchy(rng) for _ in range(30)]
    asked = program(7)
    forwards, backwards = LevelByLevel(asked), LevelByLevel(asked)
    one = [forwards.run(chosen).counts.tolist() for chosen in drawn]
    other = [backwards.run(chosen).counts.tolist() for chosen in reversed(drawn)]
    assert one == other[::-1]
