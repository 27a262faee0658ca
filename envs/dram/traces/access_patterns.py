"""The request patterns behind :mod:`archgym.envs.dram.traces.generators`.

Each function takes checked parameters and returns arrival times (ps), byte addresses and write
flags. Only integer draws and integer arithmetic, so that every machine agrees.
"""

from __future__ import annotations

from math import isqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError

__all__ = [
    "LINE_BYTES",
    "Requests",
    "bursts",
    "cloud_1",
    "cloud_2",
    "copy",
    "mixed",
    "pointer_chase",
    "program",
    "random",
    "stream",
    "stride_conflict",
    "zipf",
]

LINE_BYTES = 64

Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.uint8]
Requests: TypeAlias = tuple[Ints, Ints, Flags]
"""Arrival times (ps), byte addresses and write flags, each of shape (n,)."""

_PROBABILITY_BITS = 32
_CACHE_LINES = 4096
"""Lines of the cache that writes back, 256 KiB."""


def stream(
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    footprint_bytes: int,
    seed: int,
    stride_bytes: int,
) -> Requests:
    """Ascending addresses a fixed stride apart; starts again at the end of the footprint."""
    rng = np.random.default_rng(seed)
    address = np.arange(requests, dtype=np.int64) * stride_bytes % footprint_bytes
    times = _arrivals(rng, requests, interval_ns, jitter_share)
    return times, address // LINE_BYTES * LINE_BYTES, _writes(rng, requests, read_share)


def copy(
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    footprint_bytes: int,
    seed: int,
    block_requests: int,
) -> Requests:
    """Two ascending streams, one read and one written, in turns; each owns half the footprint."""
    rng = np.random.default_rng(seed)
    half = footprint_bytes // (2 * LINE_BYTES)
    writes = np.zeros(requests, np.uint8)
    # A write falls due whenever the share of writes so far lags behind (Bresenham), in blocks.
    write_parts = _share_parts(1.0 - read_share)
    blocks = np.arange(1, -(-requests // block_requests) + 1, dtype=np.int64)
    due = np.diff((blocks * write_parts) >> _PROBABILITY_BITS, prepend=0).astype(np.uint8)
    writes[:] = np.repeat(due, block_requests)[:requests]
    count_written = np.cumsum(writes, dtype=np.int64)
    count_read = np.arange(1, requests + 1, dtype=np.int64) - count_written
    line = np.where(writes == 1, half + (count_written - 1) % half, (count_read - 1) % half)
    return _arrivals(rng, requests, interval_ns, jitter_share), line * LINE_BYTES, writes


def random(
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    footprint_bytes: int,
    seed: int,
) -> Requests:
    """Uniformly random lines of the footprint."""
    rng = np.random.default_rng(seed)
    line = rng.integers(0, footprint_bytes // LINE_BYTES, requests, dtype=np.int64)
    times = _arrivals(rng, requests, interval_ns, jitter_share)
    return times, line * LINE_BYTES, _writes(rng, requests, read_share)


def mixed(
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    footprint_bytes: int,
    seed: int,
    run_requests: int,
) -> Requests:
    """Runs of adjacent lines, of random length, at random places; a run reads or writes."""
    rng = np.random.default_rng(seed)
    line, write = _runs(rng, requests, footprint_bytes, run_requests, read_share)
    return _arrivals(rng, requests, interval_ns, jitter_share), line * LINE_BYTES, write


def stride_conflict(
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    footprint_bytes: int,
    seed: int,
    stride_bytes: int,
) -> Requests:
    """A power-of-two stride; each sweep over the footprint starts one line further on."""
    if stride_bytes > footprint_bytes // 2:
        raise InvalidValueError(
            f"generator 'stride_conflict': stride_bytes={stride_bytes} must be at most half of "
            f"footprint_bytes={footprint_bytes}, or the requests fall on one row"
        )
    rng = np.random.default_rng(seed)
    sweep, place = np.divmod(
        np.arange(requests, dtype=np.int64), np.int64(footprint_bytes // stride_bytes)
    )
    address = (place * stride_bytes + sweep * LINE_BYTES) % footprint_bytes
    times = _arrivals(rng, requests, interval_ns, jitter_share)
    return times, address // LINE_BYTES * LINE_BYTES, _writes(rng, requests, read_share)


def pointer_chase(
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    footprint_bytes: int,
    seed: int,
) -> Requests:
    """One long cycle through distinct random lines, as a chase of a shuffled linked list."""
    rng = np.random.default_rng(seed)
    lines = footprint_bytes // LINE_BYTES
    cycle = rng.choice(lines, size=min(requests, lines), replace=False, shuffle=True)
    line = np.resize(cycle, requests).astype(np.int64)
    times = _arrivals(rng, requests, interval_ns, jitter_share)
    return times, line * LINE_BYTES, _writes(rng, requests, read_share)


def bursts(
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    footprint_bytes: int,
    seed: int,
    run_requests: int,
    burst_requests: int,
    idle_ns: float,
) -> Requests:
    """Busy phases at ``interval_ns`` with a silence of ``idle_ns`` between two of them."""
    rng = np.random.default_rng(seed)
    line, write = _runs(rng, requests, footprint_bytes, run_requests, read_share)
    phase = np.arange(requests, dtype=np.int64) // burst_requests
    times = _arrivals(rng, requests, interval_ns, jitter_share) + phase * round(idle_ns * 1000)
    return times, line * LINE_BYTES, write


def zipf(
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    footprint_bytes: int,
    seed: int,
    row_bytes: int,
    exponent: float,
) -> Requests:
    """Random lines in rows whose popularity follows Zipf's law; hot rows lie anywhere."""
    rows = footprint_bytes // row_bytes
    if not 1 <= rows <= 1 << 20:
        raise InvalidValueError(
            f"generator 'zipf': footprint_bytes={footprint_bytes} and row_bytes={row_bytes} make "
            f"{rows} rows; it must be 1 to {1 << 20}"
        )
    rng = np.random.default_rng(seed)
    rank = _zipf_ranks(rng, requests, rows, exponent)
    row = rng.permutation(rows).astype(np.int64)[rank]
    column = rng.integers(0, row_bytes // LINE_BYTES, requests, dtype=np.int64)
    times = _arrivals(rng, requests, interval_ns, jitter_share)
    write = _writes(rng, requests, read_share)
    return times, row * row_bytes + column * LINE_BYTES, write


def program(
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    footprint_bytes: int,
    seed: int,
    streams: int,
    run_requests: int,
    random_share: float,
    burst_requests: int,
    idle_ns: float,
) -> Requests:
    """Misses of a cache: reads in several streams, each perhaps with the write-back of a line.

    A write-back arrives with its miss and goes to what its stream read a cache's size before. Below
    a read share of one half every miss has one, and some misses are writes.
    """
    rng = np.random.default_rng(seed)
    lines = footprint_bytes // LINE_BYTES
    first = rng.integers(0, lines, streams, dtype=np.int64)
    length = rng.integers(1, 2 * run_requests, requests, dtype=np.int64)
    stream_of = np.repeat(rng.integers(0, streams, requests, dtype=np.int64), length)[:requests]
    line = np.empty(requests, np.int64)
    for number in range(streams):
        own = np.flatnonzero(stream_of == number)
        line[own] = first[number] + np.arange(own.size, dtype=np.int64)
    away = rng.integers(0, 1 << _PROBABILITY_BITS, requests, dtype=np.int64)
    anywhere = rng.integers(0, lines, requests, dtype=np.int64)
    line = np.where(away < _share_parts(random_share), anywhere, line) % lines
    chance = _share_parts(min(1.0, (1.0 - read_share) / max(read_share, 0.5)))
    evicts = rng.integers(0, 1 << _PROBABILITY_BITS, requests, dtype=np.int64) < chance
    size = rng.integers(1, 2 * burst_requests, requests, dtype=np.int64)
    starts = np.zeros(requests + 1, np.int64)
    ends = np.cumsum(size)
    starts[ends[ends < requests]] = 1
    # Pauses are a quarter of the given time to four times it.
    pause = round(idle_ns * 1000) * 2 ** rng.integers(0, 5, requests, dtype=np.int64) // 4
    times = _arrivals(rng, requests, interval_ns, jitter_share)
    times = times + np.cumsum(starts[:requests] * pause, dtype=np.int64)
    miss = np.repeat(np.arange(requests), 1 + evicts)[:requests]
    evicted = np.zeros(requests, np.bool_)
    evicted[1:] = miss[1:] == miss[:-1]
    store = rng.integers(0, 1 << _PROBABILITY_BITS, requests, dtype=np.int64)
    write = evicted | (store < _share_parts(max(0.0, 1.0 - 2.0 * read_share)))[miss]
    line = (line[miss] - evicted * np.int64(_CACHE_LINES)) % lines
    return times[miss], line * LINE_BYTES, write.astype(np.uint8)


def cloud_1(
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    footprint_bytes: int,
    seed: int,
    block_requests: int,
) -> Requests:
    """A stream and a random tenant in turns; the stream's blocks come at three times the rate."""
    rng = np.random.default_rng(seed)
    half = footprint_bytes // (2 * LINE_BYTES)
    index = np.arange(requests, dtype=np.int64)
    is_random = index // block_requests % 2 == 1
    streamed = (np.cumsum(~is_random, dtype=np.int64) - 1) % half
    line = np.where(is_random, half + rng.integers(0, half, requests, dtype=np.int64), streamed)
    gaps = _gaps(rng, requests, interval_ns, jitter_share)
    gaps = np.where(is_random, gaps * 3, gaps) // 2
    times = np.cumsum(gaps, dtype=np.int64) - gaps[0]
    return times, line * LINE_BYTES, _writes(rng, requests, read_share)


def cloud_2(
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    footprint_bytes: int,
    seed: int,
    block_requests: int,
) -> Requests:
    """Four tenants, each in its quarter of the footprint, merged by arrival time.

    Of ten requests the read stream sends four, the copy three, the hot rows two and the random
    tenant one. The stream and the random tenant only read, unless the read share is below half.
    """
    quarter = footprint_bytes // 4 // LINE_BYTES * LINE_BYTES
    readers, writers = min(1.0, 2 * read_share), max(0.0, 2 * read_share - 1)
    counts = [-(-requests * part // 10) for part in (4, 3, 2, 1)]
    gaps = [interval_ns * 10 / part for part in (4, 3, 2, 1)]
    page = 64 * LINE_BYTES
    tenants = [
        stream(counts[0], gaps[0], jitter_share, readers, quarter, seed, LINE_BYTES),
        copy(counts[1], gaps[1], jitter_share, writers, quarter, seed + 1, block_requests),
        zipf(counts[2], gaps[2], jitter_share, writers, quarter, seed + 2, page, 1.0),
        random(counts[3], gaps[3], jitter_share, readers, quarter, seed + 3),
    ]
    arrival = np.concatenate([tenant[0] for tenant in tenants])
    address = np.concatenate([tenant[1] + i * quarter for i, tenant in enumerate(tenants)])
    write = np.concatenate([tenant[2] for tenant in tenants])
    order = np.argsort(arrival, kind="stable")[:requests]
    return arrival[order], address[order], write[order]


def _share_parts(share: float) -> int:
    """A probability as an integer number of parts in 2**32."""
    return round(share * (1 << _PROBABILITY_BITS))


def _gaps(rng: np.random.Generator, n: int, interval_ns: float, jitter_share: float) -> Ints:
    """Time since the request before, ps, shape (n,); uniform around the mean."""
    mean = max(1, round(interval_ns * 1000))
    spread = min(mean, round(mean * jitter_share))
    if spread == 0:
        return np.full(n, mean, np.int64)
    return rng.integers(mean - spread, mean + spread + 1, n, dtype=np.int64)


def _arrivals(rng: np.random.Generator, n: int, interval_ns: float, jitter_share: float) -> Ints:
    """Arrival times, ps, shape (n,), the first at 0."""
    gaps = _gaps(rng, n, interval_ns, jitter_share)
    gaps[0] = 0
    return np.cumsum(gaps, dtype=np.int64)


def _writes(rng: np.random.Generator, n: int, read_share: float) -> Flags:
    """1 for a write, each request on its own, shape (n,)."""
    draw = rng.integers(0, 1 << _PROBABILITY_BITS, n, dtype=np.int64)
    return (draw >= _share_parts(read_share)).astype(np.uint8)


def _runs(
    rng: np.random.Generator, n: int, footprint_bytes: int, run_requests: int, read_share: float
) -> tuple[Ints, Flags]:
    """Lines and write flags of runs of 1 to 2 x ``run_requests`` - 1 adjacent lines."""
    lines = footprint_bytes // LINE_BYTES
    length = rng.integers(1, 2 * run_requests, n, dtype=np.int64)
    runs = int(np.searchsorted(np.cumsum(length), n)) + 1
    length = length[:runs]
    start = rng.integers(0, lines, runs, dtype=np.int64)
    write = np.repeat(_writes(rng, runs, read_share), length)[:n]
    first = np.repeat(np.cumsum(length) - length, length)[:n]
    line = np.repeat(start, length)[:n] + np.arange(n, dtype=np.int64) - first
    return line % lines, write


def _zipf_ranks(rng: np.random.Generator, n: int, rows: int, exponent: float) -> Ints:
    """Ranks 0 .. rows-1, shape (n,), rank k with weight (k + 1) ** -exponent.

    The weights are exact integers: floor(2**40 / k**(p/8)) by three integer square roots.
    """
    eighths = round(exponent * 8)
    scale = 1 << 320
    weights = np.fromiter(
        (isqrt(isqrt(isqrt(scale // k**eighths))) for k in range(1, rows + 1)), np.int64, rows
    )
    cumulative = np.cumsum(weights, dtype=np.int64)
    draw = rng.integers(0, int(cumulative[-1]), n, dtype=np.int64)
    return np.searchsorted(cumulative, draw, side="right").astype(np.int64)
