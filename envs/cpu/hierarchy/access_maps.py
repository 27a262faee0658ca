"""Access map pattern matching, in compiled code.

Ishii, Inaba, Hiraki, "Access Map Pattern Matching for High Performance Data Cache Prefetch",
Journal of Instruction-Level Parallelism 13 (2011), in the form of ChampSim's ``va_ampm_lite``
(2ff2501): maps of the latest 128 regions of 64 lines, each with the lines that were accessed and
those that were asked for. A line ``n`` lines ahead, up to 256, is asked for if those ``n`` and
``2 n`` lines behind were accessed; first upwards, then downwards, ``degree`` lines each way. The
access that makes a map is not in it.
"""

from __future__ import annotations

from typing import Any, Final

from archgym.envs.cpu.hierarchy.compiled import compiled

__all__ = ["ROWS", "match_patterns"]

_REGION_BITS: Final = 6
_REGIONS: Final = 128
_FARTHEST: Final = 256  # lines ahead
_REACH: Final = 2 * _FARTHEST >> _REGION_BITS  # regions on either side that a pattern touches
_NEAR_AT: Final = _REGIONS
ROWS: Final = _NEAR_AT + 2 * _REACH + 1
"""Rows of the prefetcher's table."""
# Columns of a region: number + 1, time of use, lines accessed, lines asked for. The rows behind
# them say where the regions around the access are, -1 if nowhere.


@compiled
def match_patterns(prefetchers: Any, level: Any, line: Any) -> Any:
    """An access reaches the level: note it, and ask for the lines that patterns lead to.

    Args:
        prefetchers: of all levels.
        level: that was accessed.
        line: line number.
    """
    table, now = prefetchers.table[level], prefetchers.clock[level]
    region = line >> _REGION_BITS
    for near in range(_NEAR_AT, _NEAR_AT + 2 * _REACH + 1):
        table[near, 0] = -1
    oldest = 0
    lowest, highest = 0, 0
    for row in range(_REGIONS):
        if table[row, 1] < table[oldest, 1]:
            oldest = row
        away = table[row, 0] - 1 - region
        if table[row, 0] > 0 and -_REACH <= away <= _REACH:
            table[_NEAR_AT + _REACH + away, 0] = row
            lowest, highest = min(lowest, away), max(highest, away)
    own = table[_NEAR_AT + _REACH, 0]
    if own < 0:
        _new_region(table, oldest, region, now)
        return
    table[own, 1] = now
    table[own, 2] |= 1 << (line & 63)
    first, last = (region + lowest) << _REGION_BITS, ((region + highest + 1) << _REGION_BITS) - 1
    _match_one_way(prefetchers, table, level, line, 1, line - first)
    _match_one_way(prefetchers, table, level, line, -1, last - line)


@compiled
def _new_region(table: Any, row: Any, region: Any, now: Any) -> Any:
    table[row, 0], table[row, 1] = region + 1, now
    table[row, 2], table[row, 3] = 0, 0


@compiled
def _has(table: Any, region: Any, line: Any, column: Any) -> Any:
    """Whether the map of the accesses or of the prefetches around a region has a line."""
    row = table[_NEAR_AT + _REACH + (line >> _REGION_BITS) - region, 0]
    return row >= 0 and (table[row, column] >> (line & 63)) & 1 != 0


@compiled
def _match_one_way(
    prefetchers: Any, table: Any, level: Any, line: Any, direction: Any, behind: Any
) -> Any:
    """Ask for lines in one direction; the maps know ``behind`` lines of the other one."""
    region, queue, asked = line >> _REGION_BITS, prefetchers.line, 0
    for step in range(1, min(_FARTHEST, behind // 2) + 1):
        back, ahead = line - direction * step, line + direction * step
        if not (_has(table, region, back, 2) and _has(table, region, back - direction * step, 2)):
            continue
        if _has(table, region, ahead, 2) or _has(table, region, ahead, 3):
            continue
        if asked == prefetchers.degree[level] or queue[0] == len(queue) - 1 or ahead < 0:
            return
        asked += 1
        queue[0] += 1
        queue[queue[0]] = ahead
        near = _NEAR_AT + _REACH + (ahead >> _REGION_BITS) - region
        row = table[near, 0]
        if row < 0:
            row = 0
            for other in range(_REGIONS):
                if table[other, 1] < table[row, 1]:
                    row = other
            _new_region(table, row, ahead >> _REGION_BITS, prefetchers.clock[level])
            for other in range(_NEAR_AT, _NEAR_AT + 2 * _REACH + 1):
                if table[other, 0] == row:
                    table[other, 0] = -1
            table[near, 0] = row
        table[row, 3] |= 1 << (ahead & 63)
