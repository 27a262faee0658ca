"""Conditions and rules as boxes of levels, as libraries without expressions of ours take them.

An expression over a few parameters is evaluated on all their levels, and the levels on which it
holds are put together into few boxes: in each, every parameter has some of its levels. A
parameter with many levels, such as a real one, has runs of neighbouring levels.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.space.design_space import DesignSpace
from archgym.space.expression import Expression

MAX_LEVELS = 1 << 21
"""Combinations of levels on which an expression is evaluated, at most."""
MAX_REGIONS = 256
"""Boxes that an expression becomes, at most: libraries look at each of them in turn."""
_MAX_RUNS = 64
_MAX_ORDERS = 24

Run = tuple[int, int]
"""First and last of some neighbouring levels."""
Region = dict[str, tuple[Run, ...]]
"""A box: the runs of levels of some parameters; the others may have any level."""


def regions(space: DesignSpace, expression: Expression, holds: bool = True) -> list[Region] | None:
    """Boxes that together are the levels on which an expression holds, or does not hold.

    >>> from archgym.space import DesignSpace, Integer, param
    >>> space = DesignSpace([Integer("rows", 1, 4), Integer("columns", 1, 4)])
    >>> regions(space, param("rows") + param("columns") >= 7)
    [{'rows': ((2, 2),), 'columns': ((3, 3),)}, {'rows': ((3, 3),), 'columns': ((2, 3),)}]

    Args:
        space: whose levels are looked at; a fixed parameter has one.
        expression: a condition or a rule.
        holds: which of the two is wanted.

    Returns:
        None of them overlap. ``[]`` if there is no such level, ``[{}]`` if all are such, ``None``
        if there are too many levels or boxes.
    """
    names = expression.names
    allowed = [np.asarray(space.allowed_codes(space.index(name))) for name in names]
    if math.prod(map(len, allowed)) > MAX_LEVELS:
        return None
    truth = _truth(space, expression, allowed) == holds
    runs: list[list[Run]] = []
    for axis, codes in enumerate(allowed):
        truth, starts = _merged(truth, axis)
        if len(codes) > _MAX_RUNS and len(starts) > _MAX_RUNS:
            return None
        ends = [*(starts[1:] - 1).tolist(), len(codes) - 1]
        runs.append([(int(codes[a]), int(codes[b])) for a, b in zip(starts, ends, strict=True)])
    orders = itertools.islice(itertools.permutations(range(len(names))), _MAX_ORDERS)
    best: list[dict[int, tuple[int, ...]]] | None = None
    for order in orders:
        found = _boxes(truth.transpose(order), order, MAX_REGIONS if best is None else len(best))
        best = best if found is None else found
    if best is None:
        return None
    return [
        {
            names[axis]: _joined([runs[axis][place] for place in chosen])
            for axis, chosen in sorted(box.items())
            if len(chosen) < len(runs[axis])
        }
        for box in best
    ]


def conjuncts(expression: Expression) -> list[Expression]:
    """The expressions that all hold exactly where one holds, as far as ``and`` joins them."""
    if expression.op != "and":
        return [expression]
    return [part for arg in expression.args for part in conjuncts(arg)]


def levels_of(runs: tuple[Run, ...]) -> list[int]:
    """The levels of some runs, ascending."""
    return [level for first, last in runs for level in range(first, last + 1)]


def _truth(
    space: DesignSpace, expression: Expression, allowed: list[NDArray[np.int64]]
) -> NDArray[np.bool_]:
    """Whether the expression holds on each combination of levels, one axis a parameter."""
    shape = tuple(map(len, allowed))
    values = {}
    for axis, (name, codes) in enumerate(zip(expression.names, allowed, strict=True)):
        own = [1] * len(shape)
        own[axis] = len(codes)
        column = space[name].values(codes).reshape(own)
        values[name] = np.broadcast_to(column, shape).reshape(-1)
    try:
        truth = np.asarray(expression.evaluate(values), dtype=bool)
    except TypeError as error:
        raise InvalidValueError(
            f"the expression '{expression}' cannot be evaluated: {error}"
        ) from error
    return np.broadcast_to(truth, (math.prod(shape),)).reshape(shape)


def _merged(truth: NDArray[np.bool_], axis: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Neighbouring levels of an axis that make no difference as one, and where each begins."""
    rows = np.moveaxis(truth, axis, 0).reshape(truth.shape[axis], -1)
    differs = (rows[1:] != rows[:-1]).any(axis=1)
    starts = np.concatenate([[0], np.flatnonzero(differs) + 1])
    return np.take(truth, starts, axis=axis), starts


def _boxes(
    truth: NDArray[np.bool_], order: tuple[int, ...], most: int
) -> list[dict[int, tuple[int, ...]]] | None:
    """Boxes of the true places: for each axis of the order, the places; ``None`` above ``most``."""
    if not truth.any():
        return []
    if truth.all():
        return [{}]
    axis, *rest = order
    slices: dict[bytes, list[int]] = {}
    for place, part in enumerate(truth):
        slices.setdefault(np.ascontiguousarray(part).tobytes(), []).append(place)
    found: list[dict[int, tuple[int, ...]]] = []
    for places in slices.values():
        inner = (
            _boxes(truth[places[0]], tuple(rest), most) if rest else [{}] * bool(truth[places[0]])
        )
        if inner is None or len(found) + len(inner) > most:
            return None
        own = {axis: tuple(places)} if len(places) < len(truth) else {}
        found += [{**own, **box} for box in inner]
    return found


def _joined(runs: list[Run]) -> tuple[Run, ...]:
    """The same levels with neighbouring runs as one."""
    found: list[Run] = []
    for first, last in sorted(runs):
        if found and found[-1][1] + 1 == first:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return tuple(found)
