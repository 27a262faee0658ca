"""Prefetchers on patterns whose answer is known; translation."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.envs.cpu.hierarchy.config import CacheLevel, HierarchyConfig, PrefetcherConfig
from archgym.envs.cpu.hierarchy.frames import shuffled_frames
from archgym.envs.cpu.hierarchy.layout import (
    FETCH,
    LOAD,
    PREFETCH,
    PREFETCHES,
    TRANSLATION,
    USEFUL,
    make_caches,
)
from archgym.envs.cpu.hierarchy.prefetchers import make_prefetchers
from archgym.envs.cpu.hierarchy.references import References
from archgym.envs.cpu.hierarchy.run import run_references
from archgym.envs.cpu.hierarchy.translation import TranslationConfig, translate
from archgym.errors import InvalidValueError

LEVEL = CacheLevel(32768, 8)
CACHES = HierarchyConfig(LEVEL, LEVEL, CacheLevel(262144, 8), CacheLevel(1 << 20, 16))


def loads(lines: np.ndarray, ip: int = 4096) -> References:
    n = len(lines)
    return References(
        np.full(n, LOAD, np.uint8),
        lines.astype(np.int64) * 64,
        np.full(n, 8, np.uint16),
        np.arange(n, dtype=np.int32),
        np.full(n, ip, np.int64),
        n,
    )


def result(asked: References, kind: str, degree: int = 2) -> tuple[float, int, int]:
    """Misses of loads in L1D, lines prefetched, and of them used."""
    caches = make_caches(CACHES)
    none = np.zeros(1, np.int64)
    chosen = make_prefetchers(CACHES, PrefetcherConfig(kind, degree), PrefetcherConfig())
    run_references(
        caches, chosen, asked.kind, asked.address, asked.size, asked.ip, none, none.copy()
    )
    events = caches.events[1]
    return int(caches.counts[1, LOAD, 1]), int(events[PREFETCHES]), int(events[USEFUL])


@pytest.mark.parametrize("kind", ["next_line", "ip_stride", "stream", "spp"])
def test_a_sequence_is_prefetched(kind: str) -> None:
    lines = np.arange(6400)
    misses, prefetched, used = result(loads(lines), kind)
    assert misses < 0.12 * len(lines)  # at least the first line of each page of 64
    assert used > 0.9 * prefetched


@pytest.mark.parametrize("kind", ["ip_stride", "spp", "ampm"])
def test_strides_are_prefetched_and_next_lines_are_not(kind: str) -> None:
    lines = np.arange(0, 64000, 5)
    misses, _, used = result(loads(lines), kind)
    assert misses < 0.5 * len(lines)
    assert used > 0.5 * len(lines)
    assert result(loads(lines), "next_line", 1)[0] == len(lines)


@pytest.mark.parametrize("kind", ["ip_stride", "stream"])
def test_random_lines_are_hardly_prefetched(kind: str) -> None:
    lines = np.random.default_rng(0).integers(0, 1 << 24, 5000)
    misses, prefetched, _ = result(loads(lines), kind)
    assert misses > 0.99 * len(lines)
    assert prefetched < 0.05 * len(lines)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # The first access makes the map and is not in it; the one after lines n and 2 n back asks.
        ([0, 1, 2], (3, 0, 0)),
        ([0, 1, 2, 3], (4, 1, 0)),
        ([0, 1, 2, 3, 4], (4, 2, 1)),
        ([90, 89, 88, 87, 86], (4, 2, 1)),
        # 18 asks for 19, 19 for 20, and 20 with steps of 1 and of 2 for 21 and 22.
        ([0, 16, 17, 18, 19, 20], (4, 4, 2)),
        # 63 asks for 64 of the next map, and 64 for 65.
        ([60, 61, 62, 63, 64], (4, 2, 1)),
    ],
)
def test_access_maps_ask_for_lines_one_step_on(
    lines: list[int], expected: tuple[int, int, int]
) -> None:
    assert result(loads(np.array(lines)), "ampm") == expected


def test_access_maps_forget_the_region_used_longest_ago() -> None:
    first = np.array([0, 1, 2])
    others = 64 * np.arange(1, 129)
    assert result(loads(np.concatenate([first, others[:127], [3]])), "ampm")[1] == 1
    assert result(loads(np.concatenate([first, others, [3]])), "ampm")[1] == 0


def asked(lines: list[int], kind: str) -> int:
    """How many lines the prefetcher of L1D asks for, for any level."""
    caches = make_caches(CACHES)
    chosen = make_prefetchers(CACHES, PrefetcherConfig(kind), PrefetcherConfig())
    all_loads, none = loads(np.array(lines)), np.zeros(1, np.int64)
    run_references(
        caches,
        chosen,
        all_loads.kind,
        all_loads.address,
        all_loads.size,
        all_loads.ip,
        none,
        none.copy(),
    )
    return int(caches.counts[1, PREFETCH].sum())


def test_a_path_goes_on_in_another_page() -> None:
    # A step of 8 from line 60 enters the next page at its line 4.
    lines = [page * 64 + line for page in (100, 200, 300, 400) for line in range(4, 64, 8)]
    before = asked(lines, "spp_dev")
    assert asked([*lines, 500 * 64 + 4], "spp_dev") > before
    assert asked([*lines, 500 * 64 + 5], "spp_dev") == before
    assert asked([*lines, 500 * 64 + 4], "spp") == asked(lines, "spp")


def test_nothing_is_prefetched_across_a_page() -> None:
    assert result(loads(np.array([63])), "next_line", 4) == (1, 0, 0)
    assert result(loads(np.array([62])), "next_line", 4) == (1, 1, 0)


def test_page_frames_come_in_the_order_of_champsim() -> None:
    # std::shuffle of GCC 12 with std::mt19937_64{1} over the frames from 1 MiB to 16 GiB.
    assert shuffled_frames(1)[:4].tolist() == [915548, 2668158, 2268058, 1662741]


def test_pages_take_frames_by_first_touch() -> None:
    asked = loads(np.array([64 * 7, 64 * 3, 64 * 7 + 1]))
    done = translate(asked, TranslationConfig(), walks=False)
    frames = shuffled_frames(1)
    assert done.pages == 2
    assert done.references.address.tolist() == [
        frames[0] * 4096,
        frames[1] * 4096,
        frames[0] * 4096 + 64,
    ]


def test_walks_read_five_levels_first_and_two_for_a_neighbour() -> None:
    asked = loads(np.array([64 * 7, 64 * 8, 64 * 7]))
    done = translate(asked, TranslationConfig(), walks=True)
    assert (done.references.kind == TRANSLATION).sum() == 7
    assert done.misses == {"itlb": 0, "dtlb": 2, "stlb": 2}


def test_a_reference_across_pages_becomes_two() -> None:
    asked = References(
        np.array([FETCH], np.uint8),
        np.array([4094], np.int64),
        np.array([5], np.uint16),
        np.zeros(1, np.int32),
        np.array([4094], np.int64),
        1,
    )
    done = translate(asked, TranslationConfig(), walks=False).references
    assert done.size.tolist() == [2, 3]
    assert done.address.tolist()[1] % 4096 == 0


def test_a_buffer_that_is_not_possible() -> None:
    with pytest.raises(InvalidValueError, match="dtlb_entries=24 must be dtlb_ways=4"):
        TranslationConfig(dtlb_entries=24)
