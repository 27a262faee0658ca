"""What prefetchers remember, and which lines they ask for, in compiled code.

- ``next_line``: the lines that follow every access; Smith, "Cache Memories", Comput. Surv. 14
  (1982).
- ``ip_stride``: the strides of each load instruction, after two equal ones; Fu, Patel, Janssens,
  "Stride Directed Prefetching in Scalar Processors", MICRO 1992; a table of 256 x 4 instructions.
- ``stream``: streams of misses in one direction, after two of them; as described by Srinath,
  Mutlu, Kim, Patt, "Feedback Directed Prefetching", HPCA 2007; 32 streams.
- ``spp``: the signature path prefetcher: paths of steps within a page, followed as long as their
  confidence lasts; Kim et al., "Path Confidence based Lookahead Prefetching", MICRO 2016; 256
  pages, 512 signatures with 4 steps each.
- ``spp_dev``: the same in ChampSim's form: :mod:`archgym.envs.cpu.hierarchy.spp_dev`.
- ``ampm``: access map pattern matching: :mod:`archgym.envs.cpu.hierarchy.access_maps`.

None of them but ``ampm`` leaves the page of 4 KiB.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from archgym.envs.cpu.hierarchy import access_maps, spp_dev
from archgym.envs.cpu.hierarchy.access_maps import match_patterns
from archgym.envs.cpu.hierarchy.compiled import compiled
from archgym.envs.cpu.hierarchy.config import (
    LEVELS,
    PREFETCHERS,
    HierarchyConfig,
    PrefetcherConfig,
)
from archgym.envs.cpu.hierarchy.layout import MAX_LEFT
from archgym.envs.cpu.hierarchy.spp_dev import follow_paths, forget, next_signature

__all__ = ["TABLES", "Prefetchers", "make_prefetchers", "wanted"]

_NONE, _NEXT_LINE, _IP_STRIDE, _STREAM, _SPP, _SPP_DEV, _AMPM = range(7)

_SETS: Final = 256  # of ip_stride
_WAYS: Final = 4
_STREAMS: Final = 32
_WINDOW: Final = 16  # lines within which a miss belongs to a stream
_PAGES: Final = 256  # of spp, in sets of 4
_SIGNATURES: Final = 512
_DELTAS: Final = 4
_COUNT_MAX: Final = 15
_CONFIDENT: Final = 90  # percent from which spp fills its own level
_PLAUSIBLE: Final = 25  # percent from which it prefetches at all
_LONGEST_PATH: Final = 32
_FILTER: Final = 1024  # lines that spp has asked for, directly mapped
_FILTER_AT: Final = _PAGES + _SIGNATURES * (_DELTAS + 1)
_TALLY: Final = _FILTER_AT + _FILTER
_TALLY_MAX: Final = 1023
_ROWS: Final = max(_SETS * _WAYS, _STREAMS, _TALLY + 1, spp_dev.ROWS, access_maps.ROWS)
_COLUMNS: Final = 6


_WORD: Final = np.int64
TABLES: Final = np.dtype(
    [
        # Of each level: place in archgym.envs.cpu.hierarchy.config.PREFETCHERS.
        ("kind", _WORD, len(LEVELS)),
        # Lines that it asks for at once.
        ("degree", _WORD, len(LEVELS)),
        # How many steps ahead the first of them is.
        ("distance", _WORD, len(LEVELS)),
        # Accesses that it has seen.
        ("clock", _WORD, len(LEVELS)),
        # Lines that have left the level, of those that it has seen leave.
        ("left", _WORD, len(LEVELS)),
        # Lines that are wanted now: line[0] of them; as -1 - line if they are to go to the level
        # below only.
        ("line", _WORD, _LONGEST_PATH * _DELTAS + 2),
        # What it remembers.
        ("table", _WORD, (len(LEVELS), _ROWS, _COLUMNS)),
    ],
    align=True,
)
"""The prefetchers of all levels; compiled functions take a record of it as one pointer."""
Prefetchers = Any
"""A record of :data:`TABLES`."""


def make_prefetchers(
    config: HierarchyConfig, l1d: PrefetcherConfig, l2: PrefetcherConfig
) -> Prefetchers:
    """Prefetchers that have seen nothing.

    Args:
        config: the caches that they belong to.
        l1d: that of the first level of data.
        l2: that of the second level, or of the last one where there is no second.
    """
    at = 2 if config.l2 is not None else 3
    tables = np.zeros(1, TABLES).view(np.recarray)[0]
    for level, chosen in ((1, l1d), (at, l2)):
        tables["kind"][level] = PREFETCHERS.index(chosen.kind)
        tables["degree"][level], tables["distance"][level] = chosen.degree, chosen.distance
    return tables


@compiled
def wanted(
    prefetchers: Any, caches: Any, level: Any, line: Any, ip: Any, hit: Any, page: Any
) -> Any:
    """An access reaches a level: ``prefetchers.line`` then holds the lines to prefetch.

    Args:
        prefetchers: of all levels.
        caches: that they belong to.
        level: that was accessed.
        line: line number.
        ip: address of the instruction.
        hit: whether the line was there.
        page: lines of the level in a page.
    """
    prefetchers.line[0] = 0
    prefetchers.clock[level] += 1
    kind = prefetchers.kind[level]
    if kind == _NEXT_LINE:
        first = line + prefetchers.distance[level]
        for number in range(prefetchers.degree[level]):
            _want(prefetchers, line, first + number, page)
    elif kind == _IP_STRIDE:
        _ip_stride(prefetchers, level, line, ip, page)
    elif kind == _STREAM:
        _stream(prefetchers, level, line, hit, page)
    elif kind == _SPP:
        _spp(prefetchers, level, line, page)
    elif kind == _SPP_DEV:
        left = caches.lefts[level]
        for number in range(max(prefetchers.left[level], left - MAX_LEFT), left):
            forget(prefetchers.table[level], caches.left[level, number % MAX_LEFT])
        prefetchers.left[level] = left
        follow_paths(prefetchers, level, line, page)
    elif kind == _AMPM:
        match_patterns(prefetchers, level, line)


@compiled
def _want(prefetchers: Any, line: Any, other: Any, page: Any) -> Any:
    """Ask for a line, if it is in the same page and there is room."""
    queue = prefetchers.line
    if other // page == line // page and queue[0] < len(queue) - 1:
        queue[0] += 1
        queue[queue[0]] = other


@compiled
def _ip_stride(prefetchers: Any, level: Any, line: Any, ip: Any, page: Any) -> Any:
    # Columns of an entry: instruction + 1, latest line, latest stride, time of use.
    table, now = prefetchers.table[level], prefetchers.clock[level]
    first = ((ip >> 2) % _SETS) * _WAYS
    at, oldest = -1, first
    for row in range(first, first + _WAYS):
        if table[row, 0] == ip + 1:
            at = row
        if table[row, 3] < table[oldest, 3]:
            oldest = row
    if at < 0:
        table[oldest, 0], table[oldest, 1] = ip + 1, line
        table[oldest, 2], table[oldest, 3] = 0, now
        return
    stride = line - table[at, 1]
    if stride != 0 and stride == table[at, 2]:
        ahead = prefetchers.distance[level]
        for number in range(prefetchers.degree[level]):
            _want(prefetchers, line, line + stride * (ahead + number), page)
    table[at, 1], table[at, 2], table[at, 3] = line, stride, now


@compiled
def _stream(prefetchers: Any, level: Any, line: Any, hit: Any, page: Any) -> Any:
    # Columns of an entry: begin + 1 (0: free), end, direction, misses in it, time of use.
    table, now = prefetchers.table[level], prefetchers.clock[level]
    at, oldest = _find_stream(table, line, hit)
    if at < 0:
        if not hit:
            table[oldest, 0], table[oldest, 1] = line + 1, line
            table[oldest, 2], table[oldest, 3], table[oldest, 4] = 0, 0, now
        return
    table[at, 4] = now
    if table[at, 3] < 2:
        direction = 1 if line > table[at, 0] - 1 else -1
        table[at, 3] = table[at, 3] + 1 if direction == table[at, 2] else 1
        table[at, 0], table[at, 2] = line + 1, direction
        table[at, 1] = line + direction
        if table[at, 3] < 2:
            return
    direction = table[at, 2]
    for number in range(prefetchers.degree[level]):
        ahead = table[at, 1] + direction * number
        _want(prefetchers, line, ahead, page)
    table[at, 1] += direction * prefetchers.degree[level]
    reach = prefetchers.distance[level] + prefetchers.degree[level]
    if abs(table[at, 1] - (table[at, 0] - 1)) > reach:
        table[at, 0] = table[at, 1] - direction * reach + 1


@compiled
def _find_stream(table: Any, line: Any, hit: Any) -> Any:
    """The stream that an access belongs to, -1 if none, and the one used longest ago."""
    oldest, at = 0, -1
    for row in range(_STREAMS):
        if table[row, 4] < table[oldest, 4]:
            oldest = row
        begin, end = table[row, 0] - 1, table[row, 1]
        if begin < 0:
            continue
        if table[row, 3] >= 2:
            if min(begin, end) <= line <= max(begin, end):
                at = row
        elif not hit and line != begin and abs(line - begin) <= _WINDOW:
            at = row
    return at, oldest


@compiled
def _spp(prefetchers: Any, level: Any, line: Any, page: Any) -> Any:
    # Pages: number + 1, latest line in it, signature, time of use. Signatures: a row with the
    # count, then rows of steps with delta and count. Filter: line + 1, whether it was used. Tally:
    # confident prefetches, and of them used.
    table, now = prefetchers.table[level], prefetchers.clock[level]
    asked = _FILTER_AT + line % _FILTER
    if table[asked, 0] == line + 1 and table[asked, 1] == 0:
        table[asked, 1] = 1
        table[_TALLY, 1] += 1
    number, offset = line // page, line % page
    first = (number % (_PAGES // _WAYS)) * _WAYS
    at, oldest = -1, first
    for row in range(first, first + _WAYS):
        if table[row, 0] == number + 1:
            at = row
        if table[row, 3] < table[oldest, 3]:
            oldest = row
    if at < 0:
        table[oldest, 0], table[oldest, 1] = number + 1, offset
        table[oldest, 2], table[oldest, 3] = 0, now
        return
    delta = offset - table[at, 1]
    table[at, 3] = now
    if delta == 0:
        return
    signature = table[at, 2]
    _learn_step(table, signature, delta)
    signature = next_signature(signature, delta)
    table[at, 1], table[at, 2] = offset, signature
    _follow_path(prefetchers, level, line, page, signature)


@compiled
def _follow_path(prefetchers: Any, level: Any, line: Any, page: Any, signature: Any) -> Any:
    """Ask for the lines of the likely steps after a signature, then after the likeliest one."""
    table = prefetchers.table[level]
    confidence = 100
    accuracy = min(100, 100 * table[_TALLY, 1] // max(1, table[_TALLY, 0]))
    base = line
    for depth in range(min(_LONGEST_PATH, 1 + prefetchers.degree[level])):
        row = _PAGES + (signature % _SIGNATURES) * (_DELTAS + 1)
        total = table[row, 0]
        best, best_delta = 0, 0
        for step in range(row + 1, row + 1 + _DELTAS):
            if total == 0 or table[step, 1] == 0:
                continue
            sure = confidence * table[step, 1] // total
            if depth > 0:
                sure = sure * accuracy // 100
            if sure >= _PLAUSIBLE:
                _want_filtered(prefetchers, table, line, base + table[step, 0], sure, page)
            if sure > best:
                best, best_delta = sure, table[step, 0]
        if best < _PLAUSIBLE:
            return
        confidence = best
        base += best_delta
        signature = next_signature(signature, best_delta)


@compiled
def _want_filtered(
    prefetchers: Any, table: Any, line: Any, other: Any, sure: Any, page: Any
) -> Any:
    """Ask for a line that spp has not asked for lately; into the level below if it is unsure."""
    asked = _FILTER_AT + other % _FILTER
    if table[asked, 0] == other + 1:
        return
    before = prefetchers.line[0]
    _want(prefetchers, line, other, page)
    place = prefetchers.line[0]
    if place == before:
        return
    table[asked, 0], table[asked, 1] = other + 1, 0
    if sure < _CONFIDENT:
        prefetchers.line[place] = -1 - prefetchers.line[place]
        table[asked, 1] = 1
        return
    table[_TALLY, 0] += 1
    if table[_TALLY, 0] > _TALLY_MAX:
        table[_TALLY, 0] //= 2
        table[_TALLY, 1] //= 2


@compiled
def _learn_step(table: Any, signature: Any, delta: Any) -> Any:
    """Count a step after a signature; the rarest of the known ones makes room for a new one."""
    row = _PAGES + (signature % _SIGNATURES) * (_DELTAS + 1)
    at, rarest = -1, row + 1
    for step in range(row + 1, row + 1 + _DELTAS):
        if table[step, 1] > 0 and table[step, 0] == delta:
            at = step
        if table[step, 1] < table[rarest, 1]:
            rarest = step
    if at < 0:
        at = rarest
        table[at, 0], table[at, 1] = delta, 0
    table[at, 1] += 1
    table[row, 0] += 1
    if table[row, 0] > _COUNT_MAX:
        for step in range(row, row + 1 + _DELTAS):
            if step == row:
                table[step, 0] //= 2
            else:
                table[step, 1] //= 2
