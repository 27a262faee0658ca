"""How long the array waits for transfers in ZigZag's count, compiled.

Transfers of one port share it: what each takes longer than it may adds up, and so does what all of
them may take beyond the time that any of them may. The port that is latest makes the array wait.
Before the first cycle the first inputs and weights come, and after the last one the last outputs
go; a transfer that happens only once is spread over the computation as far as its port is free.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.zigzag.loops import INPUT, OPERANDS, OUTPUT, WEIGHT
from archgym.envs.accelerator.kernel.zigzag.memories import DRAM, MEMORIES, SHARED_BUFFER
from archgym.envs.accelerator.kernel.zigzag.transfers import (
    ALLOWED,
    AVERAGE,
    COUNT,
    DIRECTIONS,
    FROM_ABOVE,
    FROM_BELOW,
    PERIOD,
    REAL,
    TO_ABOVE,
    TO_BELOW,
)

__all__ = ["latency", "union"]

SHARED = 8
"""Transfers that one port has at most."""


@compiled
def port_of(memory: int, direction: int) -> int:
    """Which port of its memory a transfer uses.

    Registers have one for each, buffers one for reads and one for writes, the memory a single one.
    """
    if memory < OPERANDS:
        return direction
    if memory == DRAM:
        return 0
    return 0 if direction in (TO_BELOW, TO_ABOVE) else 1


@compiled
def union(periods: Floats, windows: Floats, n: int) -> float:
    """Cycles of the longest period that lie in any of some windows, each at the start of its own.

    Args:
        periods: each divides all that are longer.
        windows: cycles from the start of each period.
        n: how many.
    """
    order = np.argsort(periods[:n])
    lengths = periods[:n][order]
    outside = np.zeros(n)  # of each period, cycles in no window of it or of a shorter one
    inside = np.zeros(n)  # of each window, cycles in no window of a shorter period
    for k in range(n):
        inside[k] = uncovered(windows[order[k]], k, lengths, outside, inside)
        outside[k] = uncovered(lengths[k], k, lengths, outside, inside) - inside[k]
    return float(lengths[n - 1] - outside[n - 1])


@compiled
def uncovered(cycles: float, n: int, lengths: Floats, outside: Floats, inside: Floats) -> float:
    """The first ``cycles`` without those that lie in windows of the ``n`` shortest periods."""
    turns = np.zeros(n)
    for k in range(n - 1, -1, -1):
        turns[k] = np.floor(cycles / lengths[k])
        cycles -= turns[k] * lengths[k]
    for k in range(n):
        cycles = turns[k] * outside[k] + max(0.0, cycles - inside[k])
    return float(cycles)


@compiled
def lateness(group: Floats, n: int) -> float:
    """Cycles by which the transfers of one port are late, shape (n, ``TRANSFER``)."""
    if n == 1:
        return float((group[0, REAL] - group[0, ALLOWED]) * (group[0, COUNT] - 1.0))
    late, early, windows = 0.0, 0.0, 0.0
    longest = 0
    any_time = False
    for i in range(n):
        over = (group[i, REAL] - group[i, ALLOWED]) * (group[i, COUNT] - 1.0)
        if over > 0:
            late += over
        else:
            early += over
        windows += group[i, ALLOWED] * (group[i, COUNT] - 1.0)
        any_time = any_time or group[i, ALLOWED] == group[i, PERIOD]
        if group[i, PERIOD] > group[longest, PERIOD]:
            longest = i
    time = group[longest, PERIOD]
    if not any_time:
        time = union(group[:, PERIOD], group[:, ALLOWED], n)
    return float(late + max(0.0, early + windows - time * group[longest, COUNT]))


@compiled
def latency(
    total: float,
    levels: Ints,
    counts: Ints,
    ports: Floats,
    found: Floats,
    first: Floats,
) -> float:
    """Cycles of a mapping, without those in which the last results leave the array.

    Args:
        total: cycles of the array.
        levels: from ``memories.hierarchy``, and so are ``counts`` and ``ports``.
        counts: memories of each operand.
        ports: what their ports move in a cycle, bits.
        found: from ``transfers.transfers``; its first and last transfers are changed.
        first: from there too.
    """
    group = np.empty((SHARED, found.shape[3]))
    users = np.empty((SHARED, 3), np.int64)
    stall = 0.0
    for once in range(2):
        for memory in range(MEMORIES):
            for port in range(DIRECTIONS):
                n = 0
                for operand in (INPUT, WEIGHT, OUTPUT):
                    for level in range(counts[operand]):
                        if levels[operand, level] != memory:
                            continue
                        for direction in range(DIRECTIONS):
                            transfer = found[operand, level, direction]
                            if transfer[COUNT] == 0 or port_of(memory, direction) != port:
                                continue
                            group[n] = transfer
                            users[n, 0] = operand
                            users[n, 1] = level
                            users[n, 2] = direction
                            n += 1
                if n == 0:
                    continue
                if once == 0:
                    stall = max(stall, lateness(group, n))
                else:
                    spread_out(total + stall, ports[memory], group, users, n, first, found)
    return total + stall + before(levels, counts, found) + after(counts, found)


@compiled
def spread_out(
    cycles: float,
    port: float,
    group: Floats,
    users: Ints,
    n: int,
    first: Floats,
    found: Floats,
) -> None:
    """Shortens the single transfers of one port by what happens while the array computes.

    Args:
        cycles: of the computation.
        port: bits a cycle.
        group: transfers of the port.
        users: operand, level and direction of each.
        n: how many.
        first: bits of each operand that have to come before.
        found: the transfers to change.
    """
    busy = 0.0
    for i in range(n):
        if group[i, COUNT] > 1 and ends_a_layer(users[i, 0], users[i, 2]):
            busy += group[i, AVERAGE]
    free = max(0.0, (port - busy) / port * cycles)
    done = np.zeros(n, np.bool_)
    for _ in range(n):
        longest = -1
        for i in range(n):
            if done[i] or group[i, COUNT] != 1 or not ends_a_layer(users[i, 0], users[i, 2]):
                continue
            if longest < 0 or group[i, REAL] > group[longest, REAL]:
                longest = i
        if longest < 0 or free <= 0:
            break
        done[longest] = True
        needed = np.ceil(first[users[longest, 0]] / port)
        less = min(max(0.0, group[longest, REAL] - needed), free)
        found[users[longest, 0], users[longest, 1], users[longest, 2], REAL] -= less
        free -= less


@compiled
def ends_a_layer(operand: int, direction: int) -> bool:
    """Whether a transfer brings inputs in or takes outputs away; partial sums do neither."""
    return bool(operand != OUTPUT or direction in (FROM_BELOW, TO_ABOVE))


@compiled
def before(levels: Ints, counts: Ints, found: Floats) -> float:
    """Cycles in which the first inputs and weights come."""
    shared = np.zeros(OPERANDS)
    partly = np.zeros(OPERANDS)
    apart = np.zeros(OPERANDS)
    for operand in (WEIGHT, INPUT):
        for level in range(counts[operand] - 1):
            low, high = levels[operand, level], levels[operand, level + 1]
            longest = max(
                found[operand, level, FROM_ABOVE, REAL], found[operand, level + 1, TO_BELOW, REAL]
            )
            if both(low, levels, counts) and both(high, levels, counts):
                shared[operand] += longest
            elif both(low, levels, counts) or both(high, levels, counts):
                partly[operand] = longest
            else:
                apart[operand] += longest
    own = apart + partly
    return float(
        min(
            shared[WEIGHT] + max(shared[INPUT] + own[INPUT], own[WEIGHT]),
            shared[INPUT] + max(shared[WEIGHT] + own[WEIGHT], own[INPUT]),
        )
    )


@compiled
def both(memory: int, levels: Ints, counts: Ints) -> bool:
    """Whether inputs and weights share the ports of a memory."""
    if memory == DRAM:
        return True
    if memory != SHARED_BUFFER:
        return False
    weights = False
    for level in range(counts[WEIGHT]):
        weights = weights or levels[WEIGHT, level] == memory
    return weights


@compiled
def after(counts: Ints, found: Floats) -> float:
    """Cycles in which the last outputs leave."""
    total = 0.0
    for level in range(counts[OUTPUT] - 1):
        total += max(
            found[OUTPUT, level, TO_ABOVE, REAL], found[OUTPUT, level + 1, FROM_BELOW, REAL]
        )
    return float(total)
