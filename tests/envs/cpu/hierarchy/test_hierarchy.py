"""The hierarchy against plain models, the fast path against the slow one, and what must hold."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

from archgym.envs.cpu.hierarchy.access import accessed
from archgym.envs.cpu.hierarchy.config import (
    POLICIES,
    CacheLevel,
    HierarchyConfig,
    PrefetcherConfig,
)
from archgym.envs.cpu.hierarchy.fast import LevelByLevel
from archgym.envs.cpu.hierarchy.layout import FETCH, LOAD, STORE, Caches, make_caches
from archgym.envs.cpu.hierarchy.prefetchers import make_prefetchers
from archgym.envs.cpu.hierarchy.references import References
from archgym.envs.cpu.hierarchy.run import run_references
from archgym.envs.dram.traces import cache_model
from archgym.errors import InvalidValueError, UnknownNameError

SMALL = {"l1i": (1024, 2), "l1d": (1024, 2), "l2": (4096, 4), "llc": (16384, 8)}


def config(
    policy: str = "lru", inclusion: str = "non_inclusive", first: str | None = None
) -> HierarchyConfig:
    def level(name: str, replacement: str, inclusion: str = "non_inclusive") -> CacheLevel:
        return CacheLevel(*SMALL[name], 64, replacement, inclusion)

    return HierarchyConfig(
        level("l1i", first or policy),
        level("l1d", first or policy),
        level("l2", policy),
        level("llc", policy, inclusion),
    )


def references(n: int = 20_000, seed: int = 0) -> References:
    rng = np.random.default_rng(seed)
    return References(
        rng.choice([FETCH, LOAD, STORE], n).astype(np.uint8),
        ((rng.zipf(1.2, n) % 4000) * 8 + rng.integers(0, 8, n)).astype(np.int64),
        rng.choice([1, 4, 8, 32], n).astype(np.uint16),
        np.arange(n, dtype=np.int32),
        (rng.zipf(1.3, n) % 5000).astype(np.int64) * 4,
        n,
    )


def run(
    chosen: HierarchyConfig,
    asked: References,
    l1d: PrefetcherConfig | None = None,
    l2: PrefetcherConfig | None = None,
) -> tuple[Caches, np.ndarray]:
    caches = make_caches(chosen)
    out = np.zeros(20 * len(asked), np.int64)
    prefetchers = make_prefetchers(chosen, l1d or PrefetcherConfig(), l2 or PrefetcherConfig())
    count = run_references(
        caches, prefetchers, asked.kind, asked.address, asked.size, asked.ip, out, out.copy()
    )
    return caches, out[:count]


def held(caches: Caches, level: int) -> set[int]:
    """Byte addresses of the lines that a level holds."""
    first, mask, ways, shift = (int(value) for value in caches["shape"][level, :4])
    lines = caches.line[first : first + (mask + 1) * ways]
    return {int(line) << shift for line in lines if line >= 0}


def test_least_recently_used_sends_what_the_cache_model_of_dram_sends() -> None:
    asked = references()
    kinds = np.array([cache_model.LOAD, cache_model.STORE, cache_model.INSTRUCTION_FETCH])
    model = cache_model.CacheModel(
        cache_model.CacheHierarchy(
            **{f"{k}_bytes": v[0] for k, v in SMALL.items()},
            **{f"{k}_ways": v[1] for k, v in SMALL.items()},
        )
    )
    expected = model.access(kinds[asked.kind], asked.address, asked.size)
    caches, sent = run(config(), asked)
    wanted = np.where(expected.is_write, -1 - expected.address, expected.address)
    assert sent.tolist() == wanted.tolist()
    statistics = model.statistics
    for number, level in enumerate(("l1i", "l1d", "l2", "llc")):
        assert caches.counts[number, :3].sum() == statistics[level]["accesses"]
        assert caches.counts[number, :3, 1].sum() == statistics[level]["misses"]
        assert caches.events[number, 0] == statistics[level]["writebacks"]


@pytest.mark.parametrize("policy", POLICIES)
def test_an_inclusive_level_holds_what_lies_above(policy: str) -> None:
    chosen = config(policy, "inclusive")
    caches, _ = run(chosen, references())
    for level in range(3):
        assert held(caches, level) <= held(caches, 3)


@pytest.mark.parametrize("policy", POLICIES)
def test_an_exclusive_level_holds_nothing_of_the_one_above(policy: str) -> None:
    caches, _ = run(config(policy, "exclusive"), references())
    assert not held(caches, 2) & held(caches, 3)


def test_every_dirty_byte_reaches_memory_once_it_leaves() -> None:
    asked = references()
    for inclusion in ("non_inclusive", "inclusive", "exclusive"):
        caches, sent = run(config("lru", inclusion), asked)
        stored = {
            line * 64
            for at, size, kind in zip(asked.address, asked.size, asked.kind, strict=True)
            if kind == STORE
            for line in range(int(at) // 64, (int(at) + int(size) - 1) // 64 + 1)
        }
        written = {int(-1 - one) for one in sent if one < 0}
        dirty = {int(line) << 6 for line in caches.line[caches.note & 1 == 1]}
        assert written <= stored, inclusion
        assert stored <= written | dirty, inclusion


def test_random_replacement_has_the_misses_of_uniform_draws() -> None:
    # A loop over 9 lines of one set of 8 ways: a line is there with a chance that obeys
    # (1 - 1/8) ** misses; LRU would miss always.
    level = CacheLevel(8 * 64, 8, 64, "random")
    chosen = HierarchyConfig(level, level, None, CacheLevel(65536, 16))
    n = 90_000
    asked = References(
        np.full(n, LOAD, np.uint8),
        (np.arange(n) % 9).astype(np.int64) * 64,
        np.ones(n, np.uint16),
        np.arange(n, dtype=np.int32),
        np.zeros(n, np.int64),
        n,
    )
    misses = LevelByLevel(asked).run(chosen).counts[1, LOAD, 1] / n
    rng = np.random.default_rng(0)
    ways, expected = [-1] * 8, 0
    where: dict[int, int] = {}
    for line in (np.arange(n) % 9).tolist():
        if line in where:
            continue
        expected += 1
        at = len(where) if len(where) < 8 else int(rng.integers(8))
        where.pop(ways[at], None)
        ways[at] = line
        where[line] = at
    assert misses == pytest.approx(expected / n, rel=0.03)


def test_static_rrip_by_hand() -> None:
    # Two ways. a, b fill with 2; a is used again (0); c displaces b, which alone reaches 3.
    level = CacheLevel(128, 2, 64, "srrip")
    chosen = HierarchyConfig(level, level, None, CacheLevel(65536, 16))
    caches = make_caches(chosen)
    served = [accessed(caches, 1, line * 64, LOAD, 0) for line in (0, 1, 0, 2, 0, 1)]
    assert served == [4, 4, 1, 4, 1, 3]


def test_dynamic_rrip_and_ship_keep_a_part_of_a_loop_that_does_not_fit() -> None:
    lines = np.tile(np.arange(1500), 40)
    asked = References(
        np.full(len(lines), LOAD, np.uint8),
        lines.astype(np.int64) * 64,
        np.ones(len(lines), np.uint16),
        np.arange(len(lines), dtype=np.int32),
        np.full(len(lines), 4096, np.int64),
        len(lines),
    )
    tiny = CacheLevel(1024, 2)
    misses = {
        policy: LevelByLevel(asked)
        .run(HierarchyConfig(tiny, tiny, None, CacheLevel(65536, 16, 64, policy)))
        .counts[3, LOAD, 1]
        for policy in ("lru", "drrip", "ship")
    }
    assert misses["lru"] == len(lines)
    assert misses["drrip"] < 0.75 * len(lines)
    assert misses["ship"] <= len(lines)


def test_a_larger_lru_cache_of_as_many_sets_never_misses_more() -> None:
    asked = references()
    model = LevelByLevel(asked)
    counts = [
        int(
            model.run(
                HierarchyConfig(
                    CacheLevel(1024, 2),
                    CacheLevel(16 * 64 * ways, ways),
                    None,
                    CacheLevel(65536, 16),
                )
            )
            .counts[1, :, 1]
            .sum()
        )
        for ways in (1, 2, 4, 8, 16)
    ]
    assert counts == sorted(counts, reverse=True)


def test_first_level_against_ordered_dictionaries() -> None:
    asked = references(5000)
    sets: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(8)]
    misses = 0
    for kind, at, size in zip(asked.kind, asked.address, asked.size, strict=True):
        if kind == FETCH:
            continue
        for line in range(int(at) // 64, (int(at) + int(size) - 1) // 64 + 1):
            chosen = sets[line % 8]
            if line in chosen:
                chosen.move_to_end(line)
                continue
            misses += 1
            chosen[line] = None
            if len(chosen) > 2:
                chosen.popitem(last=False)
    assert LevelByLevel(asked).run(config()).counts[1, :, 1].sum() == misses


class TestConfig:
    def test_a_size_that_is_not_possible(self) -> None:
        with pytest.raises(InvalidValueError, match=r"size_bytes=1000 must be ways=2"):
            CacheLevel(1000, 2)

    def test_a_policy_that_is_not_there(self) -> None:
        with pytest.raises(UnknownNameError, match="Did you mean 'srrip'"):
            CacheLevel(1024, 2, 64, "srip")

    def test_short_lines_below_long_ones(self) -> None:
        long, short = CacheLevel(1024, 2, 64), CacheLevel(1024, 2, 32)
        with pytest.raises(InvalidValueError, match="llc: line_bytes=32 is shorter"):
            HierarchyConfig(long, long, None, short)

    def test_a_first_level_includes_nothing(self) -> None:
        good, bad = CacheLevel(1024, 2), CacheLevel(1024, 2, inclusion="inclusive")
        with pytest.raises(InvalidValueError, match="l1d: inclusion='inclusive'"):
            HierarchyConfig(good, bad, None, good)

    def test_more_lines_than_there_is_room_for(self) -> None:
        small, huge = CacheLevel(1024, 2), CacheLevel(1 << 29, 16)
        with pytest.raises(InvalidValueError, match="8388640 lines in all, expected 4194304"):
            HierarchyConfig(small, small, None, huge)
