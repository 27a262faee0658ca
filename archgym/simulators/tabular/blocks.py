"""Results of many designs in few bytes: equal results are stored once.

Most designs of a space share their outcome with others. A :class:`Block` holds the distinct rows
of some metrics, and which row each design has. A metric that follows from the design alone, such
as the size of a buffer, would multiply the distinct rows of all others, so :func:`make_blocks`
gives it its own block.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ids = NDArray[np.int32]
_MIN_GAIN = 0.01
"""Share of its bytes that splitting off a metric must save."""


@dataclass(frozen=True)
class Block:
    """Metrics that are stored together.

    Attributes:
        names: the metrics.
        index: row of ``values`` that each design has, int32, shape (n_designs,).
        values: distinct rows, in the order in which designs first have them, shape
            (n_rows, n_names).
    """

    names: tuple[str, ...]
    index: Ids
    values: NDArray[np.float64]


def make_blocks(names: Sequence[str], values: NDArray[np.float64]) -> list[Block]:
    """Blocks that together hold the values, bit by bit, in few bytes.

    Starts with all metrics in one block, splits off the metric that saves most, as measured by
    compressing it all, and goes on while that saves anything.

    Args:
        names: the metrics.
        values: of each design, shape (n_designs, n_names).
    """
    columns = [distinct(np.ascontiguousarray(column).view(np.int64)) for column in values.T]
    costs = [_block_bytes(ids, [c], values) for c, ids in enumerate(columns)]
    together = list(range(len(names)))
    *_, ids = itertools.accumulate(columns, _pair)
    cost = _block_bytes(ids, together, values)
    apart: list[int] = []
    while len(together) > 1:
        tried = [
            (_block_bytes(rest, [d for d in together if d != c], values) + costs[c], c, rest)
            for c, rest in zip(together, _without_each([columns[c] for c in together]), strict=True)
        ]
        least, chosen, rest = min(tried, key=lambda one: one[:2])
        if least > cost * (1 - _MIN_GAIN):
            break
        together.remove(chosen)
        apart.append(chosen)
        ids, cost = rest, least - costs[chosen]
    groups = [(together, ids), *(([c], columns[c]) for c in sorted(apart))]
    return [
        Block(tuple(names[c] for c in group), own, values[_first(own)][:, group])
        for group, own in groups
    ]


def distinct(keys: NDArray[np.int64]) -> Ids:
    """Index of each key among the distinct keys, in the order of first appearance."""
    return np.asarray(pa.array(keys).dictionary_encode().indices.to_numpy(), dtype=np.int32)


def _pair(left: Ids, right: Ids) -> Ids:
    """As :func:`distinct`, of rows of two columns."""
    span = int(right.max(initial=0)) + 1
    return distinct(left.astype(np.int64) * span + right)


def _without_each(columns: Sequence[Ids]) -> list[Ids]:
    """The columns combined, each one left out in turn."""
    before = list(itertools.accumulate(columns[:-1], _pair))
    after = list(itertools.accumulate(columns[:0:-1], _pair))[::-1]
    inner = [_pair(a, b) for a, b in zip(before, after[1:], strict=False)]
    return [after[0], *inner, before[-1]]


def _first(ids: Ids) -> NDArray[np.int64]:
    """Position at which each index first appears."""
    highest = np.maximum.accumulate(ids)
    return np.flatnonzero(np.diff(highest, prepend=-1))


def _block_bytes(ids: Ids, group: Sequence[int], values: NDArray[np.float64]) -> int:
    rows = values[_first(ids)]
    return _compressed(ids) + sum(_compressed(rows[:, c]) for c in group)


def _compressed(array: NDArray[np.generic]) -> int:
    """Bytes that an array takes when bytes of the same weight stand together."""
    planes = np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1).T
    return len(pa.Codec("zstd", compression_level=3).compress(planes.tobytes(), asbytes=True))
