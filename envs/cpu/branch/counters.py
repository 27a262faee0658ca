"""Predictors that are a table of two-bit counters.

Bimodal: J. E. Smith, A study of branch prediction strategies, ISCA 1981. Gshare: S. McFarling,
Combining branch predictors, DEC WRL TN-36, 1993. Indices, thresholds and the update of the history
by every branch, not only by conditional ones, are those of ChampSim (commit 2ff2501).
"""

from __future__ import annotations

from archgym.envs.cpu.branch import layout as k
from archgym.envs.cpu.branch.compiled import inlined


@inlined
def count(table: int, index: int, up: bool, low: int, high: int, m: k.Unit) -> None:
    """Move a saturating counter up or down."""
    at = table * m.s[k.C_ROW] + index
    value = m.weights[at]
    if up:
        if value < high:
            m.weights[at] = value + 1
    elif value > low:
        m.weights[at] = value - 1


@inlined
def predict_bimodal(ip: int, m: k.Unit) -> bool:
    """Whether the branch's counter is in the upper half."""
    m.s[k.S_INDEX] = ip % m.s[k.C_PRIME]
    return bool(m.weights[m.s[k.S_INDEX]] > 1)


@inlined
def update_bimodal(taken: bool, m: k.Unit) -> None:
    """Move the branch's counter."""
    count(0, m.s[k.S_INDEX], taken, 0, 3, m)


@inlined
def predict_gshare(ip: int, m: k.Unit) -> bool:
    """Whether the counter of branch and history is not at its lowest value."""
    bits = m.s[k.C_HISTORY]
    mask = m.s[k.C_ENTRIES] - 1
    folded = ip ^ (ip >> bits) ^ (ip >> (2 * bits))
    m.s[k.S_INDEX] = (m.s[k.S_HISTORY] ^ folded) & mask
    return bool(m.weights[m.s[k.S_INDEX]] >= 1)


@inlined
def update_gshare(taken: bool, m: k.Unit) -> None:
    """Move the counter and append the outcome to the history."""
    count(0, m.s[k.S_INDEX], taken, 0, 3, m)
    limit = (1 << m.s[k.C_HISTORY]) - 1
    m.s[k.S_HISTORY] = ((m.s[k.S_HISTORY] << 1) | taken) & limit
