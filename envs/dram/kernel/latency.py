"""Latencies of a run and their quantiles."""

from __future__ import annotations

from collections.abc import Callable

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.compiled import entry

# Rows of the table that `collect_latencies` fills: reads and writes, from arrival and from offer.
READ, WRITE, READ_OFFERED, WRITE_OFFERED = range(4)
# Its columns, ps except for the first.
L_COUNT, L_SUM, L_MAX, L_QUANTILES = range(4)


def _make_collect(sources: int) -> Callable[..., None]:
    def collect_latencies(m, arrival_ps, t_ck_ps, latency, offered, table):  # type: ignore[no-untyped-def]
        _ = sources
        n = m.arrival.shape[0]
        reads = 0
        writes = 0
        table[:, :L_QUANTILES] = 0
        for i in range(n):
            end = m.times[k.DONE, i] * t_ck_ps
            whole = end - arrival_ps[i]
            served = end - max(arrival_ps[i], m.times[k.FREE_AT, i] * t_ck_ps)
            if m.is_write[i]:
                writes += 1
                place, row = n - writes, WRITE
            else:
                place, row = reads, READ
                reads += 1
            latency[place] = whole
            offered[place] = served
            table[row, L_SUM] += whole
            table[row, L_MAX] = max(table[row, L_MAX], whole)
            table[row + 2, L_SUM] += served
            table[row + 2, L_MAX] = max(table[row + 2, L_MAX], served)
        for row in (READ, READ_OFFERED):
            table[row, L_COUNT] = reads
        for row in (WRITE, WRITE_OFFERED):
            table[row, L_COUNT] = writes

    return collect_latencies


def _make_select(sources: int) -> Callable[..., None]:
    def select(values, highest, places, found, counts):  # type: ignore[no-untyped-def]
        _ = sources
        bits = 1
        while 1 << bits < counts.shape[1] - 1:
            bits += 1
        counts[:, -1] = -1
        for i in range(places.shape[0]):
            low, place, left, level = 0, places[i], 1, 0
            while highest >> left > 0:
                left += 1
            # The value's bits are found from the highest down, some at a time; places that agree so
            # far share the counts, whose last column holds the leading bits that they belong to.
            while left > 0:
                shift = max(0, left - bits)
                if counts[level, -1] != low:
                    counts[level, :] = 0
                    counts[level, -1] = low
                    for j in range(values.shape[0]):
                        if (values[j] ^ low) >> left == 0:
                            counts[level, (values[j] - low) >> shift] += 1
                bucket = 0
                while place >= counts[level, bucket]:
                    place -= counts[level, bucket]
                    bucket += 1
                low |= bucket << shift
                left = shift
                level += 1
            found[i] = low

    return select


collect_latencies = entry(_make_collect)
"""Latencies of a run, ps: those of the reads from the front, of the writes from the back.

A request is offered when it has arrived and the one ahead of it has left the initiator.

Args:
    m: the machine after a run.
    arrival_ps: arrival of each request, ps, shape (n,).
    t_ck_ps: clock period, ps.
    latency: filled: from arrival, shape (n,).
    offered: filled: from the offer, shape (n,).
    table: filled: count, sum and longest, shape (4, at least 3).
"""

select = entry(_make_select)
"""Values at some places of the sorted order, by counting in ever finer buckets.

Args:
    values: whole numbers of at least 0, shape (n,), n > 0.
    highest: the largest of them.
    places: from 0 to n - 1, shape (k,).
    found: filled, shape (k,).
    counts: working memory, shape (8, 2^b + 1); b bits are found at a time, b at least 8.
"""
