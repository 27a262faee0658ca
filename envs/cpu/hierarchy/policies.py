"""What the policies do whose ways stay where they are: the re-reference predictions, and random.

A line has a word of bits (:data:`~archgym.envs.cpu.hierarchy.layout.RRPV_BITS` and those beside
it); a level has a row of state and, for SHiP, counters of its signatures. All in compiled code.

References:
    Jaleel et al., High Performance Cache Replacement Using Re-Reference Interval Prediction
        (RRIP), ISCA 2010.
    Wu et al., SHiP: Signature-based Hit Predictor for High Performance Caching, MICRO 2011.
"""

from __future__ import annotations

from typing import Any

from archgym.envs.cpu.hierarchy.compiled import inlined
from archgym.envs.cpu.hierarchy.layout import (
    BIMODAL,
    BIMODAL_PERIOD,
    COUNTER_MAX,
    DRAWN,
    DRRIP,
    MAX_RRPV,
    RANDOM,
    REUSED,
    RRPV_BITS,
    RRPV_SHIFT,
    SELECTOR,
    SELECTOR_MAX,
    SHIP,
    SIGNATURE_SHIFT,
    SIGNATURES,
    SRRIP,
    WRITEBACK,
)

__all__ = ["displaced", "insertion", "used", "victim"]


@inlined
def used(note: Any, counters: Any, policy: Any) -> Any:
    """The bits of a line that is used again."""
    note &= ~RRPV_BITS
    if policy == SHIP:
        signature = note >> SIGNATURE_SHIFT
        counters[signature] = min(COUNTER_MAX, counters[signature] + 1)
        note |= REUSED
    return note


@inlined
def victim(note: Any, state: Any, first: Any, ways: Any, policy: Any) -> Any:
    """The way of the victim in a full set."""
    if policy == RANDOM:
        # Knuth's linear congruential generator of 64 bits (MMIX); its high bits are good.
        drawn = state[DRAWN] * 6364136223846793005 + 1442695040888963407
        state[DRAWN] = drawn
        return first + ((drawn >> 33) & 0x7FFFFFFF) % ways
    oldest, at = -1, first
    for place in range(first, first + ways):
        value = note[place] & RRPV_BITS
        if value > oldest:
            oldest, at = value, place
    if oldest < RRPV_BITS:
        for place in range(first, first + ways):
            note[place] += RRPV_BITS - oldest
    return at


@inlined
def insertion(state: Any, counters: Any, position: Any, kind: Any, ip: Any, policy: Any) -> Any:
    """The bits of a new line: its re-reference prediction value, and its signature."""
    long = (MAX_RRPV - 1) << RRPV_SHIFT
    distant = MAX_RRPV << RRPV_SHIFT
    if policy == RANDOM:
        return 0
    if policy == SRRIP or kind == WRITEBACK:
        return long | (REUSED if policy == SHIP else 0)  # a write-back has no signature
    if policy == DRRIP:
        bimodal = state[SELECTOR] > SELECTOR_MAX // 2
        if position == 0:  # leads for SRRIP, whose misses speak for BRRIP
            bimodal = False
            state[SELECTOR] = min(SELECTOR_MAX, state[SELECTOR] + 1)
        elif position == 1:
            bimodal = True
            state[SELECTOR] = max(0, state[SELECTOR] - 1)
        if not bimodal:
            return long
        state[BIMODAL] += 1
        if state[BIMODAL] < BIMODAL_PERIOD:
            return distant
        state[BIMODAL] = 0
        return long
    signature = (ip ^ (ip >> 14) ^ (ip >> 28)) & (SIGNATURES - 1)
    value = long if counters[signature] > 0 else distant
    return value | (signature << SIGNATURE_SHIFT)


@inlined
def displaced(note: Any, counters: Any, policy: Any) -> Any:
    """A line leaves for another one: SHiP learns that its signature was not used again."""
    if policy == SHIP and note & REUSED == 0:
        signature = note >> SIGNATURE_SHIFT
        counters[signature] = max(0, counters[signature] - 1)
