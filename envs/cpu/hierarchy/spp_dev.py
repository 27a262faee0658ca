"""The signature path prefetcher in the form of ChampSim's ``spp_dev``, in compiled code.

Kim et al., "Path Confidence based Lookahead Prefetching", MICRO 2016, with the sizes and habits of
ChampSim 2ff2501. It differs from ``spp`` of :mod:`archgym.envs.cpu.hierarchy.prefetchers`:

- a path has no length: it ends when its confidence is below 25 percent;
- a path that leaves its page is kept, eight of them at a time, and the first access to another
  page continues the likeliest one that would have entered there;
- signatures and lines are hashed (Jenkins' mix of 32 bits, then Knuth's multiplication);
- a step that follows a signature for the first time counts zero, and the signature 0 learns none;
- the filter forgets a line when the cache evicts one of the same place, which counts as a useless
  prefetch if it was not used; prefetches into the level below do not enter it;
- the last candidates of a path are looked at once more from its next step, since the place where
  the queue of candidates is read falls behind the place where it is written.
"""

from __future__ import annotations

from typing import Any, Final

from archgym.envs.cpu.hierarchy.compiled import compiled

__all__ = ["ROWS", "follow_paths", "forget", "next_signature"]

_PAGES: Final = 256
_TAG: Final = 0xFFFF  # of a page
_SETS: Final = 512  # of signatures
_STEPS: Final = 4
_COUNT_MAX: Final = 15
_FILTER: Final = 1024
_REMAINDER_BITS: Final = 6
_KEPT: Final = 8  # paths that left their page
_QUEUE: Final = 128  # candidates of one access
_CONFIDENT: Final = 90  # percent from which it fills its own level
_PLAUSIBLE: Final = 25  # percent from which it prefetches at all
_TALLY_MAX: Final = 1023

# Rows of the table. Pages: tag + 1, latest line in the page, signature, time of use. Signatures: a
# row with the count, then a row for each step with its delta and count. Filter: remainder, whether
# it was asked for, whether it was used. Kept paths: line in the page, delta, signature, confidence.
# Tally: confident prefetches, and of them used. Queue: confidence, delta.
_SIGNATURES_AT: Final = _PAGES
_FILTER_AT: Final = _SIGNATURES_AT + _SETS * (_STEPS + 1)
_KEPT_AT: Final = _FILTER_AT + _FILTER
_TALLY: Final = _KEPT_AT + _KEPT
_QUEUE_AT: Final = _TALLY + 1
ROWS: Final = _QUEUE_AT + _QUEUE
"""Rows of the prefetcher's table."""


@compiled
def next_signature(signature: Any, delta: Any) -> Any:
    """Twelve bits of the latest steps of a page."""
    step = delta if delta > 0 else 64 - delta
    return ((signature << 3) ^ step) & 0xFFF


@compiled
def _mixed(key: Any) -> Any:
    key += key << 12
    key ^= key >> 22
    key += key << 4
    key ^= key >> 9
    key += key << 10
    key ^= key >> 2
    key += key << 7
    key ^= key >> 12
    return (key >> 3) * 2654435761


@compiled
def _row_of(signature: Any) -> Any:
    """Where the steps after a signature are."""
    return _SIGNATURES_AT + (_mixed(signature) & (_SETS - 1)) * (_STEPS + 1)


@compiled
def _place(line: Any) -> Any:
    """Row of a line in the filter, and what tells it from others there."""
    mixed = _mixed(line)
    row = _FILTER_AT + ((mixed >> _REMAINDER_BITS) & (_FILTER - 1))
    return row, mixed & ((1 << _REMAINDER_BITS) - 1)


@compiled
def forget(table: Any, line: Any) -> Any:
    """A line has left the cache."""
    row, _ = _place(line)
    if table[row, 1] == 1 and table[row, 2] == 0 and table[_TALLY, 1] > 0:
        table[_TALLY, 1] -= 1
    table[row, 0], table[row, 1], table[row, 2] = 0, 0, 0


@compiled
def follow_paths(prefetchers: Any, level: Any, line: Any, page: Any) -> Any:
    """An access reaches the level: learn its step, and ask for the lines of its path.

    Args:
        prefetchers: of all levels.
        level: that was accessed.
        line: line number.
        page: lines of the level in a page.
    """
    table, now = prefetchers.table[level], prefetchers.clock[level]
    issued, used = table[_TALLY, 0], table[_TALLY, 1]
    accuracy = 100 * used // issued if issued > 0 else 0
    before, delta, signature = _remember_access(table, now, line, page)
    row, rest = _place(line)
    if table[row, 0] == rest and table[row, 2] == 0:
        table[row, 2] = 1
        table[_TALLY, 1] += table[row, 1]
    if before > 0:
        _learn_step(table, before, delta)
    _look_ahead(prefetchers, table, line, page, signature, accuracy)


@compiled
def _remember_access(table: Any, now: Any, line: Any, page: Any) -> Any:
    """Signature before an access to a page (0: none to learn from), its step, and signature now."""
    tag, offset = ((line // page) & _TAG) + 1, line % page
    at, oldest = -1, 0
    for row in range(_PAGES):
        if table[row, 0] == tag:
            at = row
            break
        if table[row, 3] < table[oldest, 3]:
            oldest = row
    if at >= 0:
        table[at, 3] = now
        before, delta = table[at, 2], offset - table[at, 1]
        if delta == 0:
            return 0, 0, 0
        table[at, 1] = offset
        table[at, 2] = next_signature(before, delta)
        return before, delta, table[at, 2]
    surest, signature = 0, 0
    for row in range(_KEPT_AT, _KEPT_AT + _KEPT):
        if table[row, 0] == offset and table[row, 3] > surest:
            surest = table[row, 3]
            signature = next_signature(table[row, 2], table[row, 1])
    table[oldest, 0], table[oldest, 1] = tag, offset
    table[oldest, 2], table[oldest, 3] = signature, now
    return 0, 0, signature


@compiled
def _learn_step(table: Any, signature: Any, delta: Any) -> Any:
    """Count a step after a signature; the rarest of the known ones makes room for a new one."""
    row = _row_of(signature)
    at, rarest = -1, row + 1
    for step in range(row + 1, row + 1 + _STEPS):
        if at < 0 and table[step, 0] == delta:
            at = step
        if table[step, 1] < table[rarest, 1]:
            rarest = step
    if at < 0:
        table[rarest, 0], table[rarest, 1] = delta, 0
    else:
        table[at, 1] += 1
    table[row, 0] += 1
    if table[row, 0] > _COUNT_MAX:
        table[row, 0] //= 2
        for step in range(row + 1, row + 1 + _STEPS):
            table[step, 1] //= 2


@compiled
def _look_ahead(
    prefetchers: Any, table: Any, line: Any, page: Any, signature: Any, accuracy: Any
) -> Any:
    """Ask for the likely lines after a signature, then for those after the likeliest of them."""
    base, path, depth = line, 100, 0
    # A signature whose steps are all unlikely asks for the line of the access itself.
    read, written = 0, 0
    for place in range(_QUEUE_AT, _QUEUE_AT + _QUEUE):
        table[place, 0], table[place, 1] = 0, 0
    table[_QUEUE_AT, 0] = 100
    more = True
    while more and written < _QUEUE - _STEPS - 1:
        row = _row_of(signature)
        best_step = -1
        if table[row, 0] > 0:
            share = accuracy if depth > 0 else 100
            written, path, best_step = _queue_steps(table, row, share, path, written)
            if path >= _PLAUSIBLE:
                depth += 1
        else:
            table[_QUEUE_AT + written, 0] = 0
        more = False
        for place in range(_QUEUE_AT + read, _QUEUE_AT + written):
            sure = table[place, 0]
            if sure < _PLAUSIBLE:
                continue
            other = base + table[place, 1]
            if other // page == line // page:
                _ask(prefetchers, table, other, sure)
            else:
                _keep_path(table, other % page, table[place, 1], signature, sure)
            more = True
            read += 1
        if best_step >= 0:
            base += table[best_step, 0]
            signature = next_signature(signature, table[best_step, 0])


@compiled
def _queue_steps(table: Any, row: Any, share: Any, path: Any, written: Any) -> Any:
    """Queue the plausible steps after a signature, and an empty place behind them.

    Args:
        table: of the level.
        row: where the steps are.
        share: percent of the confident prefetches that were used; 100 for the first step.
        path: percent of confidence in the path so far.
        written: places of the queue that are written.

    Returns:
        Places that are written then; confidence in the likeliest step, 0 if none is plausible; its
        row, -1 if none is.
    """
    best, best_step = 0, -1
    for step in range(row + 1, row + 1 + _STEPS):
        sure = share * table[step, 1] // table[row, 0] * path // 100
        if sure >= _PLAUSIBLE:
            table[_QUEUE_AT + written, 0] = sure
            table[_QUEUE_AT + written, 1] = table[step, 0]
            written += 1
            if sure > best:
                best, best_step = sure, step
    return written + 1, best, best_step


@compiled
def _ask(prefetchers: Any, table: Any, line: Any, sure: Any) -> Any:
    """Ask for a line that the filter does not have; into the level below if it is unsure."""
    row, rest = _place(line)
    if table[row, 0] == rest and (table[row, 1] == 1 or table[row, 2] == 1):
        return
    queue = prefetchers.line
    if sure >= _CONFIDENT:
        table[row, 0], table[row, 1], table[row, 2] = rest, 1, 0
        table[_TALLY, 0] += 1
        if table[_TALLY, 0] > _TALLY_MAX:
            table[_TALLY, 0] //= 2
            table[_TALLY, 1] //= 2
    if queue[0] < len(queue) - 1:
        queue[0] += 1
        queue[queue[0]] = line if sure >= _CONFIDENT else -1 - line


@compiled
def _keep_path(table: Any, offset: Any, delta: Any, signature: Any, sure: Any) -> Any:
    """Keep a path that enters another page at a line, in place of the least sure one."""
    at = _KEPT_AT
    for row in range(_KEPT_AT, _KEPT_AT + _KEPT):
        if table[row, 3] > 0 and table[row, 0] == offset:
            at = row
            break
        if table[row, 3] < table[at, 3]:
            at = row
    table[at, 0], table[at, 1], table[at, 2], table[at, 3] = offset, delta, signature, sure
