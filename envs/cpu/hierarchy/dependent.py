"""Hierarchies whose first levels depend on the levels below, from filtered references.

An inclusive level takes lines away from the first levels. A reference that the filter has dropped
(:mod:`archgym.envs.cpu.hierarchy.filtering`) hits unless its line was taken away within the run of
uses that it belongs to. When that happens, all references of the program are simulated from there
until the line is back as it would have been: until as many uses in a row as the filter keeps, and
until the last store of the run. More references than necessary change nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.cpu.hierarchy.access import looked_up, serve
from archgym.envs.cpu.hierarchy.compiled import compiled, entry, inlined
from archgym.envs.cpu.hierarchy.filtering import GOES_ON, KIND_BITS, LONG, Filtered
from archgym.envs.cpu.hierarchy.layout import FETCH, POLICY, SHIFT, SHIP, Caches
from archgym.envs.cpu.hierarchy.references import References

__all__ = ["run_filtered"]

_NEVER = np.iinfo(np.int64).max
# Columns of what is known of a class of addresses: the line of its run, the number of the run, and
# how many uses of it must still be simulated.
_LINE, _RUN, _OPEN = range(3)


def run_filtered(
    caches: Caches,
    references: References,
    filtered: tuple[Filtered, Filtered],
    classes: tuple[int, int],
    uses: tuple[int, int],
) -> None:
    """Pass a program through a hierarchy; hits of the first levels are not all counted.

    Args:
        caches: empty ones.
        references: of the program.
        filtered: those of instructions and those of data.
        classes: how many classes of addresses each filter has.
        uses: how many uses in a row each filter keeps; 0: all.
    """
    known = np.zeros((2, max(classes), 3), np.int64)
    known[:, :, _LINE] = -1
    columns: list[Any] = []
    for one in filtered:
        columns += [one.request, one.owner, one.kind, one.run, one.last, one.last_store]
    _run_filtered(
        caches,
        references.kind,
        references.address,
        references.size,
        references.ip,
        *columns,
        np.array(classes) - 1,
        np.array(uses),
        bool((caches["shape"][:, POLICY] == SHIP).any()),
        known,
    )


@entry
def _run_filtered(sources: int) -> Any:
    def run_filtered(
        caches: Any,
        kind: Any,
        address: Any,
        size: Any,
        ip: Any,
        request_i: Any,
        owner_i: Any,
        kind_i: Any,
        run_i: Any,
        last_i: Any,
        last_store_i: Any,
        request_d: Any,
        owner_d: Any,
        kind_d: Any,
        run_d: Any,
        last_d: Any,
        last_store_d: Any,
        mask: Any,
        uses: Any,
        with_callers: Any,
        known: Any,
    ) -> Any:
        _ = sources
        i, d, number, until, waiting = 0, 0, 0, -1, 0
        while True:
            asked = LONG  # as if it were long: the reference itself is followed
            if waiting == 0 and number > until:
                next_i = owner_i[i] if i < len(owner_i) else _NEVER
                next_d = owner_d[d] if d < len(owner_d) else _NEVER
                number = min(next_i, next_d)
                if number < _NEVER:
                    asked = kind_i[i] if next_i < next_d else kind_d[d]
            if number >= len(kind):
                break
            if asked < LONG:  # the reference itself is not looked at
                caller = ip[number] if with_callers else 0
                if next_i < next_d:
                    i, hit = _requests(
                        caches, 0, mask[0], i, request_i, owner_i, kind_i, run_i, caller, known
                    )
                else:
                    d, hit = _requests(
                        caches, 1, mask[1], d, request_d, owner_d, kind_d, run_d, caller, known
                    )
                if hit:
                    continue
            else:
                if kind[number] == FETCH:
                    level = 0
                    i, closed = _enter(
                        caches, 0, mask[0], number, i, request_i, owner_i, run_i, known
                    )
                    last = last_i
                else:
                    level = 1
                    d, closed = _enter(
                        caches, 1, mask[1], number, d, request_d, owner_d, run_d, known
                    )
                    last = last_d
                waiting -= closed
                waiting -= _reference(
                    caches, level, mask[level], number, kind, address, size, ip, last, known
                )
            opened, store = _all_taken(
                caches, number, mask, last_i, last_store_i, last_d, last_store_d, uses, known
            )
            waiting += opened
            until = max(until, store)
            if caches.taken[0] == len(caches.taken) - 1:  # perhaps there was no room for more
                until = len(kind)
            number += 1
        return 0

    return run_filtered


@inlined
def _requests(
    caches: Any,
    level: Any,
    mask: Any,
    at: Any,
    request: Any,
    owner: Any,
    asked: Any,
    run: Any,
    ip: Any,
    known: Any,
) -> Any:
    """Follow a filtered request while no line is awaited.

    After a miss, the next line of the same reference is looked up too: it may have been taken away.

    Returns:
        Where the next request is, and whether this one hit.
    """
    kind = np.uint8(asked[at] & KIND_BITS)
    address = request[at]
    shift = caches.shape[level, SHIFT]
    _know(level, mask, address >> shift, run[at], known)
    if looked_up(caches, level, address, kind):
        return at + 1, True
    caches.taken[0] = 0
    caches.out[0] = 0
    serve(caches, level, address, kind, ip)
    if asked[at] & GOES_ON:
        address += 1 << shift
        if at + 1 < len(owner) and owner[at + 1] == owner[at]:
            at += 1
            _know(level, mask, address >> shift, run[at], known)
        caches.out[0] = 0
        if not looked_up(caches, level, address, kind):
            serve(caches, level, address, kind, ip)
    return at + 1, False


@inlined
def _know(level: Any, mask: Any, line: Any, run: Any, known: Any) -> Any:
    known[level, line & mask, _LINE] = line
    known[level, line & mask, _RUN] = run


@compiled
def _enter(
    caches: Any,
    level: Any,
    mask: Any,
    number: Any,
    at: Any,
    request: Any,
    owner: Any,
    run: Any,
    known: Any,
) -> Any:
    """Go on with the filtered requests to those behind a reference.

    Returns:
        Where the next one is, and how many lines have ended their runs while awaited.
    """
    closed = 0
    shift = caches.shape[level, SHIFT]
    while at < len(owner) and owner[at] == number:
        line = request[at] >> shift
        place = line & mask
        if known[level, place, _OPEN] > 0 and known[level, place, _RUN] != run[at]:
            known[level, place, _OPEN] = 0
            closed += 1
        _know(level, mask, line, run[at], known)
        at += 1
    return at, closed


@compiled
def _reference(
    caches: Any,
    level: Any,
    mask: Any,
    number: Any,
    kind: Any,
    address: Any,
    size: Any,
    ip: Any,
    last: Any,
    known: Any,
) -> Any:
    """A reference through the hierarchy; how many awaited lines are as they would have been."""
    closed = 0
    caches.taken[0] = 0
    shift = caches.shape[level, SHIFT]
    for line in range(
        address[number] >> shift, ((address[number] + size[number] - 1) >> shift) + 1
    ):
        place = line & mask
        if known[level, place, _OPEN] > 0 and known[level, place, _LINE] == line:
            known[level, place, _OPEN] -= 1
            if last[known[level, place, _RUN]] <= number:
                known[level, place, _OPEN] = 0
            if known[level, place, _OPEN] == 0:
                closed += 1
        caches.out[0] = 0
        if not looked_up(caches, level, line << shift, kind[number]):
            serve(caches, level, line << shift, kind[number], ip[number])
    return closed


@compiled
def _all_taken(
    caches: Any,
    number: Any,
    mask: Any,
    last_i: Any,
    last_store_i: Any,
    last_d: Any,
    last_store_d: Any,
    uses: Any,
    known: Any,
) -> Any:
    """The lines that a reference has taken away from the first levels.

    Returns:
        How many are awaited now and were not before; and until which store.
    """
    waiting, until = 0, -1
    for at in range(1, caches.taken[0] + 1):
        line = caches.taken[at] >> 1
        if caches.taken[at] & 1 == 0:
            opened, store = _taken(line, 0, mask[0], number, last_i, last_store_i, uses, known)
        else:
            opened, store = _taken(line, 1, mask[1], number, last_d, last_store_d, uses, known)
        waiting += opened
        until = max(until, store)
    return waiting, until


@compiled
def _taken(
    line: Any,
    level: Any,
    mask: Any,
    number: Any,
    last: Any,
    last_store: Any,
    uses: Any,
    known: Any,
) -> Any:
    """A line was taken away from a first level.

    Returns:
        1 if it is awaited now and was not before; and until which store.
    """
    place = line & mask
    run = known[level, place, _RUN]
    if uses[level] == 0 or known[level, place, _LINE] != line or last[run] <= number:
        return 0, -1
    opened = 1 if known[level, place, _OPEN] == 0 else 0
    known[level, place, _OPEN] = uses[level]
    return opened, last_store[run]
