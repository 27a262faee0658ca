"""Walking through a design space: exact counts and chunked enumeration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archgym.errors import SpaceTooLargeError

if TYPE_CHECKING:
    from archgym.space.design_space import DesignSpace

__all__ = ["count_canonical", "enumerate_codes"]

MAX_STATES = 20_000_000
"""Most partial designs that an exact count may hold at once."""


def count_canonical(space: DesignSpace) -> int:
    """Number of distinct legal designs.

    Goes through the parameters in order and keeps, of the partial designs so far, only what
    later conditions and rules still look at, with the number of partial designs behind each.

    Raises:
        SpaceTooLargeError: if too many parameters depend on each other for an exact count.
    """
    states = np.zeros((1, 0), dtype=np.int64)
    kept: list[int] = []
    counts = np.ones(1, dtype=object)
    for position in range(len(space.parameters)):
        allowed = space.allowed_codes(position)
        active = _activity(space, position, kept, states)
        rules = space.rules_completed_by(position)
        if not rules and not space.is_referenced_after(position, position):
            counts = counts * np.where(active, len(allowed), 1).astype(object)
        else:
            states, rows = _expand(states, active, allowed)
            counts, kept = counts[rows], [*kept, position]
            full = _spread(space, states, kept)
            legal = np.ones(len(states), dtype=bool)
            for rule in rules:
                legal &= space.rule_holds(rule, full)
            states, counts = states[legal], counts[legal]
        keep = [i for i, p in enumerate(kept) if space.is_referenced_after(p, position)]
        if len(keep) < len(kept):
            kept = [kept[i] for i in keep]
            states, counts = _merge(states[:, keep], counts)
        if len(states) > MAX_STATES:
            raise SpaceTooLargeError(
                f"an exact count of {space!r} would hold more than {MAX_STATES} partial designs"
            )
    return int(counts.sum()) if len(counts) else 0


def enumerate_codes(space: DesignSpace, chunk: int) -> Iterator[NDArray[np.int64]]:
    """Codes of all canonical legal designs, in lexicographic order of codes (inactive first)."""
    buffer: list[NDArray[np.int64]] = []
    held = 0
    start = np.zeros((1, 0), dtype=np.int64)
    for block in _descend(space, start, 0, chunk):
        buffer.append(block)
        held += len(block)
        while held >= chunk:
            joined = np.concatenate(buffer)
            yield np.asfortranarray(joined[:chunk])
            buffer, held = [joined[chunk:]], held - chunk
    if held:
        yield np.asfortranarray(np.concatenate(buffer))


def _descend(
    space: DesignSpace, prefix: NDArray[np.int64], position: int, chunk: int
) -> Iterator[NDArray[np.int64]]:
    if position == len(space.parameters):
        yield prefix
        return
    allowed = space.allowed_codes(position)
    rows = max(1, chunk // max(1, len(allowed)))
    for first in range(0, len(prefix), rows):
        part = prefix[first : first + rows]
        active = _activity(space, position, list(range(position)), part)
        part, _ = _expand(part, active, allowed)
        full = _spread(space, part, list(range(position + 1)))
        legal = np.ones(len(part), dtype=bool)
        for rule in space.rules_completed_by(position):
            legal &= space.rule_holds(rule, full)
        part = part[legal]
        if len(part):
            yield from _descend(space, part, position + 1, chunk)


def _activity(
    space: DesignSpace, position: int, kept: list[int], states: NDArray[np.int64]
) -> NDArray[np.bool_]:
    if space.parameters[position].when is None:
        return np.ones(len(states), dtype=bool)
    return space.activity(position, _spread(space, states, kept))


def _spread(space: DesignSpace, states: NDArray[np.int64], kept: list[int]) -> NDArray[np.int64]:
    """Rows of codes with the kept columns in place; the others hold -1 and are not looked at."""
    full = np.full((len(states), len(space.parameters)), -1, dtype=np.int64, order="F")
    full[:, kept] = states
    return full


def _expand(
    states: NDArray[np.int64], active: NDArray[np.bool_], allowed: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every state with every level of the next parameter (or -1 if inactive), and its origin."""
    copies = np.where(active, len(allowed), 1)
    total = int(copies.sum())
    if total > MAX_STATES:
        raise SpaceTooLargeError(f"more than {MAX_STATES} partial designs at once")
    rows = np.repeat(np.arange(len(states)), copies)
    within = np.arange(total) - np.repeat(np.cumsum(copies) - copies, copies)
    column = np.where(active[rows], allowed[within], -1)
    return np.column_stack([states[rows], column]), rows


def _merge(
    states: NDArray[np.int64], counts: NDArray[np.object_]
) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    if states.shape[1] == 0:
        return np.zeros((1, 0), dtype=np.int64), np.array([sum(counts.tolist())], dtype=object)
    unique, inverse = np.unique(states, axis=0, return_inverse=True)
    merged = np.zeros(len(unique), dtype=object)
    np.add.at(merged, inverse.ravel(), counts)
    return unique, merged


def raw_cardinality(space: DesignSpace) -> float:
    """Product of the parameters' sizes; infinite if one is real."""
    if any(p.continuous and p.name not in space.fixed for p in space.parameters):
        return math.inf
    return math.prod(len(space.allowed_codes(i)) for i in range(len(space.parameters)))
