"""Requests that wait for a bank, and which of them a scheduler serves next.

Each bank keeps its queued requests in a doubly linked list over request numbers (two lists, reads
and writes, for the schedulers that keep them apart), its row hits counted and the oldest of them
known.
"""

from __future__ import annotations

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.compiled import compiled, inlined


@inlined
def enqueue(q: int, request: int, hit: bool, m: k.Machine) -> None:
    """Put a request at the end of a list; ``hit`` says whether its row is open."""
    tail = m.queues[q].tail
    m.links[request, k.AFTER] = -1
    m.links[request, k.BEFORE] = tail
    if tail >= 0:
        m.links[tail, k.AFTER] = request
    else:
        m.queues[q].head = request
    m.queues[q].tail = request
    m.queues[q].count += 1
    if hit:
        if m.queues[q].hits == 0:
            m.queues[q].first_hit = request
        m.queues[q].hits += 1


@inlined
def dequeue(q: int, request: int, m: k.Machine) -> None:
    """Take a request, which is a row hit, out of its list."""
    after = m.links[request, k.AFTER]
    before = m.links[request, k.BEFORE]
    if before >= 0:
        m.links[before, k.AFTER] = after
    else:
        m.queues[q].head = after
    if after >= 0:
        m.links[after, k.BEFORE] = before
    else:
        m.queues[q].tail = before
    m.queues[q].count -= 1
    m.queues[q].hits -= 1
    if m.queues[q].hits > 0 and m.queues[q].first_hit == request:
        while m.rows[after] != m.rows[request]:
            after = m.links[after, k.AFTER]
        m.queues[q].first_hit = after


@inlined
def find_hits(q: int, open_row: int, m: k.Machine) -> None:
    """Count a list's row hits, after a row was opened."""
    hits = 0
    request = m.queues[q].head
    while request >= 0:
        if m.rows[request] == open_row:
            if hits == 0:
                m.queues[q].first_hit = request
            hits += 1
        request = int(m.links[request, k.AFTER])
    m.queues[q].hits = hits


@inlined
def _head_or_hit(q: int, is_open: int, m: k.Machine) -> int:
    if is_open and m.queues[q].hits > 0:
        return int(m.queues[q].first_hit)
    return int(m.queues[q].head)


@compiled
def _same_direction_hit(first: int, direction: int, open_row: int, m: k.Machine) -> int:
    """Oldest row hit of the wanted direction that no older hit of the same address precedes."""
    request = first
    while request >= 0:
        if m.rows[request] == open_row and m.is_write[request] == direction:
            older = first
            while older != request and not (
                m.rows[older] == open_row and m.address[older] == m.address[request]
            ):
                older = int(m.links[older, k.AFTER])
            if older == request:
                return request
        request = int(m.links[request, k.AFTER])
    return first


@inlined
def next_request(b: int, direction: int, m: k.Machine) -> int:
    """Request that the scheduler offers to a bank, -1 if none."""
    scheduler = m.s[k.C_SCHEDULER]
    is_open = m.banks[b].is_open
    q = 2 * b
    if scheduler == k.FR_FCFS:
        return _head_or_hit(q, is_open, m)
    if scheduler == k.FIFO:
        return int(m.queues[q].head)
    if scheduler == k.FR_FCFS_GRP:
        if is_open and m.queues[q].hits > 0:
            return _same_direction_hit(m.queues[q].first_hit, direction, m.banks[b].open_row, m)
        return int(m.queues[q].head)
    if m.queues[q + direction].count > 0:
        return _head_or_hit(q + direction, is_open, m)
    if scheduler == k.GRP_FR_FCFS:
        return _head_or_hit(q + 1 - direction, is_open, m)
    return -1


@inlined
def closes_row(q: int, open_row: int, m: k.Machine) -> bool:
    """Whether an adaptive page policy closes the row with the next column command."""
    if m.s[k.C_SCHEDULER] == k.FIFO:
        second = int(m.links[m.queues[q].head, k.AFTER])
        more_hits = second >= 0 and m.rows[second] == open_row
    else:
        more_hits = m.queues[q].hits >= 2
    if m.s[k.C_PAGE] == k.CLOSED_ADAPTIVE:
        return not more_hits
    return m.queues[q].count >= 2 and not more_hits
