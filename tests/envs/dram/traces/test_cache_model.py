"""The cache hierarchy: known answers by hand, a plain reference model, conservation."""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archgym.envs.dram.traces.cache_model import (
    INSTRUCTION_FETCH,
    LOAD,
    MODIFY,
    STORE,
    CacheHierarchy,
    CacheModel,
    DramRequests,
)
from archgym.errors import TraceError

# One set of two ways in each level: four lines anywhere, eight bytes a line.
TINY = CacheHierarchy(
    line_bytes=8,
    l1i_bytes=16,
    l1i_ways=2,
    l1d_bytes=16,
    l1d_ways=2,
    l2_bytes=16,
    l2_ways=2,
    llc_bytes=16,
    llc_ways=2,
)
SMALL = CacheHierarchy(
    line_bytes=16,
    l1i_bytes=64,
    l1i_ways=1,
    l1d_bytes=64,
    l1d_ways=2,
    l2_bytes=256,
    l2_ways=4,
    llc_bytes=1024,
    llc_ways=4,
)

accesses_strategy = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4095), st.integers(1, 40)), max_size=300
)


def run(hierarchy: CacheHierarchy, accesses: list[tuple[int, int, int]]) -> DramRequests:
    return pass_through(CacheModel(hierarchy), accesses)


def pass_through(model: CacheModel, accesses: list[tuple[int, int, int]]) -> DramRequests:
    columns = np.array(accesses, np.int64).reshape(-1, 3).T
    return model.access(columns[0], columns[1], columns[2])


def listed(requests: DramRequests) -> list[tuple[int, str]]:
    return [
        (int(address), "W" if write else "R")
        for address, write in zip(requests.address, requests.is_write, strict=True)
    ]


class Reference:
    """The same rules in plain Python: a dict a set, most recent entry last."""

    def __init__(self, hierarchy: CacheHierarchy) -> None:
        self.hierarchy = hierarchy
        self.sets: dict[str, list[OrderedDict[int, bool]]] = {
            level: [OrderedDict() for _ in range(hierarchy.sets(level))]
            for level in ("l1i", "l1d", "l2", "llc")
        }
        self.out: list[tuple[int, int, bool]] = []
        self.instructions = 0

    def hit(self, level: str, line: int, store: bool) -> bool:
        held = self.sets[level][line % len(self.sets[level])]
        if line not in held:
            return False
        held[line] |= store
        held.move_to_end(line)
        return True

    def fill(self, level: str, line: int, dirty: bool) -> None:
        held = self.sets[level][line % len(self.sets[level])]
        held[line] = dirty
        if len(held) > self.hierarchy.ways(level):
            victim, was_dirty = held.popitem(last=False)
            if was_dirty:
                self.write_back(level, victim)

    def write_back(self, level: str, line: int) -> None:
        below = {"l1i": "l2", "l1d": "l2", "l2": "llc", "llc": None}[level]
        if below is None:
            self.out.append((self.instructions, line * self.hierarchy.line_bytes, True))
        elif not self.hit(below, line, True):
            self.fill(below, line, True)

    def access(self, kind: int, address: int, size: int) -> None:
        self.instructions += kind == INSTRUCTION_FETCH
        top = "l1i" if kind == INSTRUCTION_FETCH else "l1d"
        width = self.hierarchy.line_bytes
        for line in range(address // width, (address + size - 1) // width + 1):
            store = kind in (STORE, MODIFY)
            if self.hit(top, line, store):
                continue
            missed = [top]
            for level in ("l2", "llc"):
                if self.hit(level, line, False):
                    break
                missed.append(level)
            else:
                self.out.append((self.instructions, line * width, False))
            for level in reversed(missed):
                self.fill(level, line, store and level == top)


@settings(max_examples=150, deadline=None)
@given(accesses=accesses_strategy, hierarchy=st.sampled_from([TINY, SMALL]))
def test_agrees_with_the_plain_model(
    accesses: list[tuple[int, int, int]], hierarchy: CacheHierarchy
) -> None:
    reference = Reference(hierarchy)
    for access in accesses:
        reference.access(*access)
    model = CacheModel(hierarchy)
    requests = pass_through(model, accesses)
    got = list(
        zip(
            requests.instruction.tolist(),
            requests.address.tolist(),
            requests.is_write.astype(bool).tolist(),
            strict=True,
        )
    )
    assert got == reference.out
    assert model.instructions == reference.instructions
    for level, sets in reference.sets.items():
        held = {k * hierarchy.line_bytes: v for entry in sets for k, v in entry.items()}
        assert model.contents(level) == held


@settings(max_examples=60, deadline=None)
@given(accesses=accesses_strategy)
def test_conservation(accesses: list[tuple[int, int, int]]) -> None:
    model = CacheModel(SMALL)
    requests = listed(pass_through(model, accesses))
    reads = [address for address, what in requests if what == "R"]
    writes = [address for address, what in requests if what == "W"]
    statistics = model.statistics
    assert len(reads) == statistics["llc"]["misses"]
    assert len(writes) == statistics["llc"]["writebacks"]
    for above, below in (("l2", "llc"),):
        assert statistics[above]["misses"] == statistics[below]["accesses"]
    assert statistics["l1i"]["misses"] + statistics["l1d"]["misses"] == statistics["l2"]["accesses"]
    assert statistics["l1i"]["writebacks"] == 0
    stored = {
        line
        for kind, address, size in accesses
        if kind in (STORE, MODIFY)
        for line in range(address // 16 * 16, address + size, 16)
    }
    assert set(writes) <= stored, "only what was stored to is written back"
    dirty = {
        line for level in ("l1d", "l2", "llc") for line, d in model.contents(level).items() if d
    }
    assert stored == set(writes) | dirty, "what was stored is in a cache or went to DRAM"
    touched = {
        line
        for _, address, size in accesses
        for line in range(address // 16 * 16, address + size, 16)
    }
    assert set(reads) == touched, "every touched line was read at least once"


@settings(max_examples=40, deadline=None)
@given(accesses=accesses_strategy, cuts=st.lists(st.integers(0, 300), max_size=5))
def test_chunks_do_not_matter(accesses: list[tuple[int, int, int]], cuts: list[int]) -> None:
    whole = run(SMALL, accesses)
    model = CacheModel(SMALL)
    edges = [0, *sorted(cuts), len(accesses)]
    parts = [pass_through(model, accesses[a:b]) for a, b in pairwise(edges)]
    assert [row for part in parts for row in listed(part)] == listed(whole)
    assert np.concatenate([p.instruction for p in parts]).tolist() == whole.instruction.tolist()


def test_hits_make_no_request_and_least_recent_goes() -> None:
    requests = run(TINY, [(LOAD, 0, 8), (LOAD, 8, 8), (LOAD, 0, 8), (LOAD, 16, 8), (LOAD, 0, 8)])
    # The third access hits, so line 8 is the oldest in the first level when line 16 comes; the
    # other levels saw 0, 8, 16 and drop 0, which the first level still has.
    assert listed(requests) == [(0, "R"), (8, "R"), (16, "R")]


def test_dirty_line_is_written_when_it_leaves_the_last_level() -> None:
    model = CacheModel(TINY)
    steps = [(STORE, 0, 8), *((LOAD, address, 8) for address in (8, 16, 24, 32, 40, 48))]
    seen = [listed(pass_through(model, [step])) for step in steps]
    # Line 16 pushes line 0 out of l1d into l2, line 32 from there into the last level (whose
    # own clean copy was dropped by line 16), line 48 to DRAM.
    assert seen[0] == [(0, "R")], "write-allocate reads the line"
    assert all(len(step) == 1 for step in seen[:-1])
    assert seen[-1] == [(48, "R"), (0, "W")]
    writebacks = {level: counts["writebacks"] for level, counts in model.statistics.items()}
    assert writebacks == {"l1i": 0, "l1d": 1, "l2": 1, "llc": 1}


def test_levels_are_neither_inclusive_nor_exclusive() -> None:
    model = CacheModel(TINY)
    pass_through(model, [(LOAD, 0, 8), (LOAD, 8, 8)])
    assert set(model.contents("l1d")) == set(model.contents("l2")) == set(model.contents("llc"))
    pass_through(model, [(INSTRUCTION_FETCH, 64, 4), (INSTRUCTION_FETCH, 72, 4)])
    assert set(model.contents("llc")) == {64, 72}
    assert set(model.contents("l1d")) == {0, 8}, "leaving the last level does not invalidate it"
    assert listed(pass_through(model, [(LOAD, 0, 8), (STORE, 8, 8)])) == []


def test_access_across_lines_touches_each() -> None:
    assert listed(run(TINY, [(LOAD, 6, 4)])) == [(0, "R"), (8, "R")]
    assert listed(run(SMALL, [(LOAD, 15, 34)])) == [(0, "R"), (16, "R"), (32, "R"), (48, "R")]


def test_instructions_and_data_have_first_levels_of_their_own() -> None:
    model = CacheModel(SMALL)
    requests = pass_through(
        model, [(INSTRUCTION_FETCH, 0, 4), (LOAD, 0, 4), (INSTRUCTION_FETCH, 4, 4)]
    )
    assert listed(requests) == [(0, "R")]
    assert requests.instruction.tolist() == [1]
    assert model.instructions == 2
    assert model.statistics["l1i"] == {"accesses": 2, "misses": 1, "writebacks": 0}
    assert model.statistics["l1d"] == {"accesses": 1, "misses": 1, "writebacks": 0}


def test_streaming_store_writes_all_but_what_stays_cached() -> None:
    lines = 100_000
    hierarchy = CacheHierarchy()
    address = np.arange(lines) * 64
    requests = CacheModel(hierarchy).access(np.full(lines, STORE), address, np.full(lines, 64))
    writes = int(requests.is_write.sum())
    capacity = (hierarchy.l1d_bytes + hierarchy.l2_bytes + hierarchy.llc_bytes) // 64
    assert len(requests) - writes == lines
    assert lines - capacity <= writes <= lines - hierarchy.llc_bytes // 64
    assert len(requests) > 1 << 16, "more than one buffer of the kernel"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"line_bytes": 48}, "line_bytes=48 must be a power of two from 8"),
        ({"l1d_bytes": 30_000}, "l1d_bytes=30000 must be l1d_ways=8 x line_bytes=64 x a power"),
        ({"llc_bytes": 3 << 20}, "llc_bytes=3145728 must be llc_ways=16"),
        ({"l2_ways": 0}, "l2_ways=0 must be from 1"),
    ],
)
def test_sizes_are_checked(values: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        CacheHierarchy(**values)


def test_other_associativities_are_fine() -> None:
    hierarchy = CacheHierarchy(l1i_bytes=48 * 1024, l1i_ways=3)
    assert hierarchy.sets("l1i") == 256
    assert hierarchy.as_dict()["l1i_ways"] == 3


@pytest.mark.parametrize(
    ("kind", "address", "size", "message"),
    [
        ([1], [0, 1], [1], "differ in length"),
        ([4], [0], [1], "kind 4: it must be 0 to 3"),
        ([1], [0], [0], "0 to 0 bytes: it must be 1 to 4096"),
        ([1], [-64], [1], "negative address -64"),
    ],
)
def test_accesses_are_checked(
    kind: list[int], address: list[int], size: list[int], message: str
) -> None:
    with pytest.raises(TraceError, match=message):
        CacheModel(SMALL).access(kind, address, size)


def test_no_accesses() -> None:
    assert len(CacheModel(SMALL).access([], [], [])) == 0
