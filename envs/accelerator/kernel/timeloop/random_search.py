"""What Timeloop's mapper finds among the mappings of its sample Eyeriss, compiled.

Its search draws mappings at random and ends after so many in a row without a better one (its
victory condition). On a large array good mappings are rare, and it ends before it has drawn one.
The search is run several times with numbers that are always the same, and the run with the median
score is taken. Without a victory condition it is the best mapping of all.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.loopnest import (
    H_BUFFER_PJ,
    H_DRAM_PJ,
    H_NOC,
    H_NOC_PJ,
    H_VICTORY,
    H_WORD,
    settle,
)
from archgym.envs.accelerator.kernel.results import better, score
from archgym.envs.accelerator.kernel.timeloop.mapspace import (
    FACTORS,
    all_mappings,
    cycles_of,
    words_of,
)

__all__ = ["search_divisors"]

RUNS = 31
THREADS = 2
"""Threads of Timeloop's search, each with a victory condition of its own."""
ALIKE = 1e-3
"""Share of a figure below which Timeloop calls two of them equal."""
SEED = 88172645463325252


@compiled
def next_random(state: np.uint64) -> np.uint64:
    """The next number of a xorshift generator (Marsaglia, 2003)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@compiled
def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Whether Timeloop calls score ``a`` better than ``b``."""
    if a[0] < b[0] * (1.0 - ALIKE):
        return True
    return a[0] <= b[0] * (1.0 + ALIKE) and a[1] < b[1] * (1.0 - ALIKE)


@compiled
def best_of_all(scores: Floats) -> int:
    """Position of the best score."""
    first = 0
    for n in range(1, len(scores)):
        if better((scores[n, 0], scores[n, 1]), (scores[first, 0], scores[first, 1])):
            first = n
    return first


@compiled
def found_at_random(scores: Floats, victory: int) -> int:
    """Position of the score that the median run ends with."""
    ends = np.empty(RUNS, np.int64)
    state = np.uint64(SEED)
    for run in range(RUNS):
        for thread in range(THREADS):
            best = np.int64(-1)
            misses = 0
            while misses < victory:
                state = next_random(state)
                n = np.int64((state >> np.uint64(11)) % np.uint64(len(scores)))
                misses += 1
                if best < 0 or beats(
                    (scores[n, 0], scores[n, 1]), (scores[best, 0], scores[best, 1])
                ):
                    best = n
                    misses = 0
            if thread == 0 or scores[best, 0] < scores[ends[run], 0]:
                ends[run] = best
    order = np.argsort(scores[ends, 0])
    return int(ends[order[RUNS // 2]])


@compiled
def search_divisors(given: Ints, hw: Floats, objective: int, found: Floats) -> bool:
    """The mapping of one layer, into ``found``; returns whether there is any.

    Args:
        given: a row of ``LayerTable.bounds``; images and groups come one after the other.
        hw: as in ``vectors.HARDWARE``.
        objective: as in ``vectors.OBJECTIVES``.
        found: as in ``vectors.FOUND``; the mapping itself is left out.
    """
    count = all_mappings(given, hw, np.empty((0, FACTORS), np.int64))
    if count == 0:
        return False
    mappings = np.empty((count, FACTORS), np.int64)
    all_mappings(given, hw, mappings)
    scores = np.empty((count, 2))
    words = np.empty(7)
    for n in range(count):
        words_of(given, mappings[n], words)
        energy = (words[0] + words[1] + words[2]) * hw[H_DRAM_PJ]
        inside = words[3] + words[4] + words[5]
        energy += inside * (hw[H_BUFFER_PJ] + hw[H_NOC_PJ]) + words[0] * hw[H_BUFFER_PJ]
        scores[n, 0], scores[n, 1] = score(objective, cycles_of(words, hw), energy)
    victory = int(hw[H_VICTORY])
    chosen = found_at_random(scores, victory) if victory > 0 else best_of_all(scores)
    words_of(given, mappings[chosen], words)
    record(given, mappings[chosen], words, hw, found)
    return True


@compiled
def record(given: Ints, mapping: Ints, words: Floats, hw: Floats, found: Floats) -> None:
    """Time, energy and words of all images and groups into ``found``."""
    times = float(given[7] * given[8])
    dram = np.empty(4)
    register = np.empty(4)
    dram[0], dram[1], dram[2], dram[3] = words[0], words[1], words[2], 0.0
    register[0], register[1], register[2], register[3] = words[3], words[1], words[5], words[4]
    for i in range(4):
        dram[i] *= times
        register[i] *= times
    layer = given.copy()
    layer[4] *= given[8]
    macs = times * given[0] * given[1] * given[2] * given[3] * given[4] * given[5]
    reduced = float(mapping[2] * given[3])
    settle(layer, times * words[6], macs, reduced, 0.0, dram, register, hw, found)
    found[0] = np.ceil(times * cycles_of(words, hw))
    # Weights do not pass the buffer's port.
    ways = max(words[3] + words[4], words[0] + words[5])
    found[2] = times * ways * hw[H_WORD] / hw[H_NOC]
