"""SCALE-Sim's double-buffered memory for outputs; compiled.

Outputs gather in lines as wide as the link. When one half is full it drains, and outputs of that
time go to the other one; the array waits only when both are full. A drain closes the line that is
not full yet; of the lines that drain only the last one's gaps count as gaps.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Ints
from archgym.envs.accelerator.kernel.compiled import compiled

__all__ = ["WRITTEN", "drained", "empty", "write"]

FREE, ACTIVE, DRAIN, LINK, FILL, FIRST, LINES, END, WRITTEN = range(9)
"""Positions in the state: free words; words of each half; words a cycle; words of the open line;
first line that waits and how many wait; end of the drain; words written so far."""


@compiled
def empty(capacity: int, link: int, outputs: int) -> tuple[Ints, Ints]:
    """A memory before the first cycle: its state, and room for the words of each waiting line.

    Args:
        capacity: words of both halves.
        link: words a cycle to memory.
        outputs: words that will be written.
    """
    state = np.zeros(9, np.int64)
    state[FREE] = capacity
    state[ACTIVE] = -(-capacity // 2)
    state[DRAIN] = capacity - state[ACTIVE]
    state[LINK] = link
    # A drain takes half a buffer of lines, or all that wait; each may have closed one early.
    return state, np.zeros(outputs // link + outputs // max(1, state[DRAIN] // 2) + 64, np.int64)


@compiled
def close_line(state: Ints, lines: Ints) -> None:
    """The open line waits from now on."""
    if state[FILL] > 0:
        lines[(state[FIRST] + state[LINES]) % len(lines)] = state[FILL]
        state[LINES] += 1
        state[FILL] = 0


@compiled
def drain(state: Ints, lines: Ints, cycle: int) -> None:
    """Starts to empty a half."""
    count = min(state[LINES], -(-state[DRAIN] // state[LINK]))
    last = lines[(state[FIRST] + count - 1) % len(lines)]
    words = (count - 1) * state[LINK] + last
    state[WRITTEN] += words
    state[FREE] += words
    state[FIRST] = (state[FIRST] + count) % len(lines)
    state[LINES] -= count
    state[END] = cycle + count - 1


@compiled
def write(count: int, cycle: int, state: Ints, lines: Ints) -> int:
    """Takes ``count`` outputs in one cycle; returns the stall."""
    now = cycle
    for _ in range(count):
        state[FILL] += 1
        state[FREE] -= 1
        if state[FILL] == state[LINK]:
            close_line(state, lines)
        if now < state[END]:
            if state[FREE] <= 0:
                now = state[END]
        elif state[FREE] < state[ACTIVE]:
            close_line(state, lines)
            drain(state, lines, now)
    return now - cycle


@compiled
def drained(state: Ints, lines: Ints) -> int:
    """Empties the memory after the last cycle; returns the words written in all."""
    close_line(state, lines)
    while state[LINES] > 0:
        drain(state, lines, 0)
    return int(state[WRITTEN])
