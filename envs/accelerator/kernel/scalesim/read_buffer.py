"""SCALE-Sim's double-buffered memory for an operand; compiled.

The prefetcher streams the operand in a fixed order and begins again at its end. The memory holds a
window of that stream, its active half. A word outside the window moves the window on by half a
buffer, which was fetched in advance, and starts the fetch of the next half; the array waits for
that fetch to end, and SCALE-Sim 3.0.0 counts a wait twice (``read_buffer.service_reads``).
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Ints
from archgym.envs.accelerator.kernel.compiled import compiled

__all__ = ["ACCESSES", "filled", "read_block", "read_skewed"]

SETS = 100
"""Parts into which SCALE-Sim divides a buffer."""
START, ACTIVE, AHEAD, SETS_OF, SET_WORDS, BURST, LAST, ACCESSES, LINK, CYCLE, OFFSET = range(11)
"""Positions in the state of a buffer: first set of the window; sets of the window, of a prefetch
and of the operand; words of a set; cycles of a prefetch; end of the last one; words fetched so far;
words a cycle; the cycle that is served, and the cycles after which it is."""


@compiled
def filled(order: Ints, stream: int, void: Ints, capacity: int, link: int) -> tuple[Ints, Ints]:
    """A memory before the first cycle, its active half filled: its state, and what it holds.

    Args:
        order: addresses as they are fetched, see ``operands.fetch_order``.
        stream: words that it takes to bring them all once, with the gaps of folds partly filled.
        void: 1 for addresses at which nothing is, else 0; they are never waited for.
        capacity: words of both halves.
        link: words a cycle from memory.
    """
    state = np.zeros(11, np.int64)
    active = -(-capacity // 2)
    ahead = capacity - active
    state[SET_WORDS] = max(1, -(-capacity // SETS))
    state[SETS_OF] = len(order) // state[SET_WORDS] + 1
    state[ACTIVE] = min(state[SETS_OF], -(-active // state[SET_WORDS]))
    state[AHEAD] = min(state[SETS_OF] - state[ACTIVE], -(-ahead // state[SET_WORDS]))
    state[BURST] = -(-ahead // link)
    state[LINK] = link
    state[LAST] = -1
    state[ACCESSES] = min(-(-active // link), -(-stream // link)) * link
    held = void.copy()
    count(order, state, 0, state[ACTIVE], 1, held)
    return state, held


@compiled
def count(order: Ints, state: Ints, start: int, sets: int, change: int, held: Ints) -> None:
    """Adds ``change`` to how often the window holds each address of some sets."""
    for i in range(start, start + sets):
        place = i % state[SETS_OF] * state[SET_WORDS]
        for n in range(place, min(place + state[SET_WORDS], len(order))):
            held[order[n]] += change


@compiled
def look_up(address: int, order: Ints, state: Ints, held: Ints) -> None:
    """Serves one word, with as many prefetches as it takes."""
    while held[address] == 0:
        count(order, state, state[START], state[AHEAD], -1, held)
        count(order, state, state[START] + state[ACTIVE], state[AHEAD], 1, held)
        state[START] = (state[START] + state[AHEAD]) % state[SETS_OF]
        state[LAST] += state[BURST] + 1
        state[ACCESSES] += state[BURST] * state[LINK]
        wait = state[LAST] - (state[CYCLE] + state[OFFSET])
        state[OFFSET] += 2 * wait if wait > 0 else wait


@compiled
def read_skewed(
    deep: Ints,
    along: Ints,
    fold: int,
    width: int,
    step: int,
    cycle: int,
    order: Ints,
    state: Ints,
    held: Ints,
) -> int:
    """Serves what the array takes of a skewed operand in one cycle; returns the stall.

    Args:
        deep: address parts of the depth.
        along: address parts along the array.
        fold: which fold.
        width: of the array.
        step: cycles since the first row of the array took the first word.
        cycle: the cycle, stalls included.
        order: as in `filled`.
        state: of the memory.
        held: of the memory.
    """
    if state[AHEAD] == 0:
        return 0  # all of it is there
    state[CYCLE] = cycle
    state[OFFSET] = 1
    used = min(width, len(along) - fold * width)
    for j in range(max(0, step - len(deep) + 1), min(step, used - 1) + 1):
        look_up(deep[step - j] + along[fold * width + j], order, state, held)
    return int(state[OFFSET] - 1)


@compiled
def read_block(
    deep: Ints,
    along: Ints,
    fold: int,
    width: int,
    row: int,
    cycle: int,
    order: Ints,
    state: Ints,
    held: Ints,
) -> int:
    """Serves one row of a stationary operand, as :func:`read_skewed`; ``row`` is in the depth."""
    if state[AHEAD] == 0 or row < 0 or row >= len(deep):
        return 0
    state[CYCLE] = cycle
    state[OFFSET] = 1
    for b in range(fold * width, min(fold * width + width, len(along))):
        look_up(deep[row] + along[b], order, state, held)
    return int(state[OFFSET] - 1)
