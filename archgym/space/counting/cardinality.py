"""Walking through a design space: exact counts, chunked enumeration, and positions in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError, SpaceTooLargeError
from archgym.space.conditions_and_rules import ConstrainedSpace
from archgym.space.designs import Designs
from archgym.space.parameter import Codes

MAX_STATES = 20_000_000
"""Maximum number of partial designs that an exact count holds at once."""
_MAX_COUNTS = 64
_COUNTED: dict[str, int] = {}
"""Latest counts by the JSON form of their space: every trial makes its space anew, and a count may
take seconds."""


def count_canonical(space: ConstrainedSpace) -> int:
    """Number of distinct legal designs, known at once if an equal space was counted before.

    Raises:
        SpaceTooLargeError: if too many parameters depend on each other for an exact count.
    """
    key = json.dumps(space.to_json())
    if key not in _COUNTED:
        while len(_COUNTED) >= _MAX_COUNTS:
            del _COUNTED[next(iter(_COUNTED))]
        _COUNTED[key] = _count(space)
    return _COUNTED[key]


def _count(space: ConstrainedSpace) -> int:
    """The count.

    Goes through the parameters in order and keeps, of the partial designs so far, only what
    later conditions and rules still look at, with the number of partial designs behind each.
    """
    states = np.zeros((1, 0), dtype=np.int64)
    kept: list[int] = []
    counts = np.ones(1, dtype=object)
    for position in range(len(space.parameters)):
        rules = space.rules_completed_by(position)
        if not rules and not space.is_referenced_after(position, position):
            active = active_states(space, position, kept, states)
            ways = np.where(active, len(space.allowed_codes(position)), 1)
            counts = counts * ways.astype(object)
        else:
            states, rows = grown_states(space, position, kept, states)
            counts, kept = counts[rows], [*kept, position]
        keep = [i for i, p in enumerate(kept) if space.is_referenced_after(p, position)]
        if len(keep) < len(kept):
            kept = [kept[i] for i in keep]
            states, merged = unique_rows(states[:, keep])
            unmerged, counts = counts, np.zeros(len(states), dtype=object)
            np.add.at(counts, merged, unmerged)
        if len(states) > MAX_STATES:
            raise SpaceTooLargeError(
                f"an exact count of {space!r} would hold more than {MAX_STATES} partial designs"
            )
    return int(counts.sum()) if len(counts) else 0


def enumerate_designs(space: ConstrainedSpace, chunk: int) -> Iterator[Designs]:
    """All canonical legal designs, in lexicographic order of codes (inactive first)."""
    buffer: list[Codes] = []
    held = 0
    start = np.zeros((1, 0), dtype=np.int64)
    for block in _descend(space, start, 0, chunk):
        buffer.append(block)
        held += len(block)
        while held >= chunk:
            joined = np.concatenate(buffer)
            yield Designs(space, np.asfortranarray(joined[:chunk]))
            buffer, held = [joined[chunk:]], held - chunk
    if held:
        yield Designs(space, np.asfortranarray(np.concatenate(buffer)))


@dataclass(frozen=True)
class _Layer:
    """What one parameter adds to a position, for each state before it and each slot.

    A state is what conditions and rules from here on still look at; slot 0 stands for an
    inactive parameter, slot k for its k-th allowed level.

    Attributes:
        first: code of the first allowed level.
        before: designs with a lower slot, shape (states, slots).
        target: the state that follows, the last one if no legal design does, as ``before``.
    """

    first: int
    before: NDArray[np.int64]
    target: NDArray[np.int64]


class Ranking:
    """Positions of designs in the order of :func:`enumerate_designs`, both ways, by table look-up.

    Raises:
        SpaceTooLargeError: if too many parameters depend on each other for such tables.
    """

    def __init__(self, space: ConstrainedSpace) -> None:
        if count_canonical(space) >= 1 << 62:
            raise SpaceTooLargeError(f"{space!r} has too many designs to number them")
        targets = _targets(space)
        after = np.array([1, 0])  # the state in which all designs end, and the dead one
        layers: list[_Layer] = []
        for position in reversed(range(len(targets))):
            ways = after[targets[position]]
            total = np.cumsum(ways, axis=1)
            first = int(space.allowed_codes(position)[0])
            layers.append(_Layer(first, total - ways, targets[position]))
            after = total[:, -1]
        self._layers = layers[::-1]
        self._fixed = {space.index(name) for name in space.fixed}
        self.count = int(after[0])

    def rank(self, codes: Codes) -> NDArray[np.int64]:
        """Position of each row of codes, -1 for one that is no canonical legal design."""
        ranks = np.zeros(len(codes), dtype=np.int64)
        state = np.zeros(len(codes), dtype=np.int64)
        for position, layer in enumerate(self._layers):
            column, slots = codes[:, position], layer.before.shape[1]
            if position in self._fixed:
                state[(column >= 0) & (column != layer.first)] = len(layer.before) - 1
                column = np.minimum(column, 0)
            cell = state * slots
            cell += column
            cell += 1
            ranks += layer.before.ravel().take(cell)
            state = layer.target.ravel().take(cell)
        ranks[state != 0] = -1
        return ranks

    def unrank(self, positions: NDArray[np.int64]) -> Codes:
        """Codes of the designs at positions, shape (n, n_parameters).

        Raises:
            InvalidValueError: if there is no such position.
        """
        if len(positions) and not 0 <= positions.min() <= positions.max() < self.count:
            raise InvalidValueError(
                f"positions go from 0 to {self.count - 1}, "
                f"got {positions.min()} to {positions.max()}"
            )
        codes = np.empty((len(positions), len(self._layers)), dtype=np.int64, order="F")
        left = np.array(positions, dtype=np.int64)
        state = np.zeros(len(positions), dtype=np.int64)
        for position, layer in enumerate(self._layers):
            slot = np.empty(len(left), dtype=np.int64)
            rows = max(1, MAX_STATES // 10 // layer.before.shape[1])
            for start in range(0, len(left), rows):
                part = slice(start, start + rows)
                # Slots without designs never are the last one whose count is not above.
                reached = layer.before[state[part]] <= left[part, None]
                slot[part] = reached.sum(axis=1) - 1
            codes[:, position] = np.where(slot > 0, slot - 1 + layer.first, -1)
            left -= layer.before[state, slot]
            state = layer.target[state, slot]
        return codes


def _targets(space: ConstrainedSpace) -> list[NDArray[np.int64]]:
    """For each parameter, the state that follows each state and slot; the last one is dead."""
    states = np.zeros((1, 0), dtype=np.int64)
    kept: list[int] = []
    targets: list[NDArray[np.int64]] = []
    for position in range(len(space.parameters)):
        allowed, count = space.allowed_codes(position), len(states)
        if (count + 1) * (len(allowed) + 1) > MAX_STATES:
            raise SpaceTooLargeError(f"more than {MAX_STATES} partial designs at once")
        grown, rows = grown_states(space, position, kept, states)
        slots = np.where(grown[:, -1] >= 0, grown[:, -1] - allowed[0] + 1, 0)
        kept = [*kept, position]
        keep = [i for i, p in enumerate(kept) if space.is_referenced_after(p, position)]
        kept = [kept[i] for i in keep]
        states, follows = unique_rows(grown[:, keep])
        target = np.full((count + 1, len(allowed) + 1), len(states), dtype=np.int64)
        target[rows, slots] = follows
        targets.append(target)
    return targets


def unique_rows(rows: Codes) -> tuple[Codes, NDArray[np.int64]]:
    """Distinct rows, at least one, and which of them each row is."""
    if rows.shape[1] == 0 or not len(rows):
        return np.zeros((1, rows.shape[1]), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    unique, inverse = np.unique(rows, axis=0, return_inverse=True)
    return unique, inverse.ravel()


def _descend(space: ConstrainedSpace, prefix: Codes, position: int, chunk: int) -> Iterator[Codes]:
    if position == len(space.parameters):
        yield prefix
        return
    rows = max(1, chunk // max(1, len(space.allowed_codes(position))))
    for first in range(0, len(prefix), rows):
        part = prefix[first : first + rows]
        part, _ = grown_states(space, position, list(range(position)), part)
        if len(part):
            yield from _descend(space, part, position + 1, chunk)


def active_states(
    space: ConstrainedSpace, position: int, kept: list[int], states: Codes
) -> NDArray[np.bool_]:
    """Whether a parameter is active, for each of some states; see :func:`grown_states`."""
    if space.parameters[position].when is None:
        return np.ones(len(states), dtype=bool)
    return space.activity(position, _spread(space, states, kept))


def _spread(space: ConstrainedSpace, states: Codes, kept: list[int]) -> Codes:
    """Rows of codes with the kept columns in place; the others hold -1 and are not looked at."""
    full = np.full((len(states), len(space.parameters)), -1, dtype=np.int64, order="F")
    full[:, kept] = states
    return full


def grown_states(
    space: ConstrainedSpace, position: int, kept: list[int], states: Codes
) -> tuple[Codes, NDArray[np.int64]]:
    """Every state with every level of the next parameter (-1 if inactive), and its origin.

    Those that break a rule of which this is the last parameter are left out.

    Args:
        space: the design space.
        position: of the parameter.
        kept: positions of the parameters that a state holds.
        states: levels of these, shape (n, len(kept)).
    """
    allowed = space.allowed_codes(position)
    active = active_states(space, position, kept, states)
    copies = np.where(active, len(allowed), 1)
    total = int(copies.sum())
    if total > MAX_STATES:
        raise SpaceTooLargeError(f"more than {MAX_STATES} partial designs at once")
    rows = np.repeat(np.arange(len(states)), copies)
    within = np.arange(total) - np.repeat(np.cumsum(copies) - copies, copies)
    column = np.where(active[rows], allowed[0] + within, -1)
    grown = np.column_stack([states[rows], column])
    rules = space.rules_completed_by(position)
    if rules:
        full = _spread(space, grown, [*kept, position])
        legal = np.all([space.rule_holds(rule, full) for rule in rules], axis=0)
        grown, rows = grown[legal], rows[legal]
    return grown, rows
