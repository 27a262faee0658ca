"""Collectives over groups of GPUs: rings and trees over up to three tiers of links."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.llm.cost.compiled import compiled
from archgym.envs.llm.cost.records import TIERS

__all__ = [
    "ALL_GATHER",
    "ALL_REDUCE",
    "REDUCE_SCATTER",
    "collective_s",
    "exchange_s",
    "ring_s",
    "send_s",
]

REDUCE_SCATTER, ALL_GATHER, ALL_REDUCE = 0, 1, 2


@compiled
def _members(system: Any, count: float, stride: float, tier: int) -> float:
    """How many of a group's members a link of ``tier`` joins, themselves grouped below it."""
    if tier == TIERS - 1 or system.link_size[tier] <= 0:
        return count
    return float(max(1.0, min(count, np.floor(system.link_size[tier] / stride))))


@compiled
def _one_tier_s(
    system: Any, kind: int, size: float, count: float, tier: int, slowed: float
) -> float:
    """A collective whose members a single tier of links joins."""
    if kind == REDUCE_SCATTER:
        scale, chunk = system.link_reduce_scatter[tier], system.link_reduce_scatter_chunk[tier]
    elif kind == ALL_GATHER:
        scale, chunk = system.link_all_gather[tier], system.link_all_gather_chunk[tier]
    else:
        scale, chunk = system.link_all_reduce[tier], system.link_all_reduce_chunk[tier]
    volume = size * scale * (1.0 + chunk / count)
    rate = system.link_rate[tier] * system.link_share[tier] * (slowed if tier else 1.0)
    if not system.link_steps[tier]:
        return float(system.link_latency[tier] + volume / rate)
    sides = 2.0 if kind == ALL_REDUCE else 1.0
    ring = sides * (count - 1.0) * system.link_latency[tier] + volume / rate
    if kind != ALL_REDUCE:
        return float(ring)
    tree = 2.0 * np.ceil(np.log2(count)) * system.link_latency[tier] + 2.0 * size / rate
    return float(min(ring, tree))


@compiled
def collective_s(
    system: Any, kind: int, size: float, count: float, stride: float, tier: int, slowed: float
) -> float:
    """Seconds of a reduce-scatter, all-gather or all-reduce of ``size`` bytes a member.

    A group within one tier is a ring or a tree. One that spans tiers is reduced within each node,
    then by as many rings over the network as it has members in a node (each member has a share of
    the cards), then gathered; the stages overlap in chunks, so the slowest of them counts. Where
    several GPUs share a card, a group that does not fill its nodes has one ring, which enters a
    node by one card and leaves it by another one.

    Args:
        system: the cluster.
        kind: which collective.
        size: bytes of the whole vector, before a reduce-scatter or after an all-gather.
        count: members.
        stride: ranks between neighbours of the group.
        tier: link that all members use; -1 for those that the ranks imply.
        slowed: rate of its slowest link between nodes, by that of the cluster.
    """
    if count <= 1 or size <= 0:
        return 0.0
    if tier >= 0:
        return _one_tier_s(system, kind, size, count, tier, slowed)
    slowest = 0.0
    latency = 0.0
    below = 1.0
    for level in range(TIERS):
        members = _members(system, count, stride, level)
        here = np.ceil(members / below)
        if here > 1:
            rings = below
            if level > 0 and system.cards_shared and below < system.link_size[0]:
                rings = 1.0
            part = _one_tier_s(system, kind, size / rings, here, level, slowed)
            slowest = max(slowest, part)
            latency += system.link_latency[level]
        below = max(below, members)
        if below >= count:
            break
    return float(slowest + latency)


@compiled
def exchange_s(
    system: Any, size: float, count: float, near: float, inner: float, far: float
) -> float:
    """Seconds of an all-to-all in which each member sends ``size`` bytes in all.

    Args:
        system: the cluster.
        size: bytes.
        count: members.
        near: ranks between neighbours, of which ``inner`` follow each other.
        inner: members that lie side by side.
        far: ranks between one such part of the group and the next.
    """
    if count <= 1 or size <= 0:
        return 0.0
    seconds = 0.0
    inside = 1.0
    for level in range(TIERS):
        members = _members(system, min(count, inner), near, level)
        if count > inner and members >= inner:
            members *= _members(system, np.ceil(count / inner), far, level)
        members = min(members, count)
        if members > inside:
            volume = size * (members - inside) / count
            rate = system.link_rate[level] * system.link_share[level]
            seconds = max(seconds, system.link_latency[level] + volume / rate)
        inside = max(inside, members)
        if inside >= count:
            break
    return float(seconds)


@compiled
def ring_s(system: Any, size: float, count: float, stride: float) -> float:
    """Seconds in which parts of ``size`` bytes go around a group, from neighbour to neighbour.

    Each member passes all parts on but the one that its neighbour had at the start. Each step
    waits for the slowest link of the ring, which is one between nodes if any is.
    """
    if count <= 1 or size <= 0:
        return 0.0
    level = 0
    while level < TIERS - 1 and _members(system, count, stride, level) < count:
        level += 1
    rate = system.link_rate[level] * system.link_share[level]
    return float((count - 1.0) * (system.link_latency[level] + size / rate))


@compiled
def send_s(
    system: Any, size: float, sender: float, stride: float, tier: int, slowed: float
) -> float:
    """Seconds of a message from rank ``sender`` to the one ``stride`` ranks on."""
    level = tier
    if tier < 0:
        level = TIERS - 1
        for one in range(TIERS - 1):
            width = system.link_size[one]
            if width <= 0 or np.floor(sender / width) == np.floor((sender + stride) / width):
                level = one
                break
    rate = system.link_rate[level] * system.link_share[level] * (slowed if level else 1.0)
    return float(system.link_latency[level] + size * system.link_p2p[level] / rate)
