"""The legal design nearest to one that is not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.space.design_space import DesignSpace
from archgym.space.permutation import Permutation

_MAX_LEVELS = 64
"""Of a parameter with more levels, the nearest ones and an even choice of the others are tried."""
_MAX_STARTS = 400
_MAX_MOVES = 2


def nearest_legal(space: DesignSpace, codes: NDArray[np.int64]) -> tuple[int, ...] | None:
    """Codes of a legal design that differs in as few free parameters as possible, at most two.

    Of several, the first parameters of the space are moved, ordered ones to a near level,
    permutations to a near order.

    Args:
        space: the design space.
        codes: of the design, shape (n_parameters,), not negative.

    Returns:
        ``None`` if there is none so near.
    """
    starts = codes[None]
    for _ in range(_MAX_MOVES):
        rows = []
        for position in space.free:
            levels = _levels(space, position, int(codes[position]))
            moved = np.repeat(starts, len(levels), axis=0)
            moved[:, position] = np.tile(levels, len(starts))
            rows.append(moved)
        tried = np.concatenate(rows)
        designs = space.canonicalise(tried)
        legal = np.flatnonzero(space.legal(designs))
        if len(legal):
            return tuple(designs.codes[legal[0]].tolist())
        starts = tried[:: len(tried) // _MAX_STARTS + 1]
    return None


def _levels(space: DesignSpace, position: int, code: int) -> NDArray[np.int64]:
    """Levels to try, the nearest first where they are ordered."""
    parameter = space.parameters[position]
    if isinstance(parameter, Permutation):
        return parameter.neighbours(code)[:_MAX_LEVELS]
    levels = np.asarray(space.allowed_codes(position))
    if len(levels) > _MAX_LEVELS:
        near = levels[np.abs(levels - code).argsort(kind="stable")[: _MAX_LEVELS // 2]]
        even = levels[np.linspace(0, len(levels) - 1, _MAX_LEVELS // 2).astype(np.int64)]
        levels = np.unique(np.concatenate([near, even]))
    if parameter.ordered:
        levels = levels[np.abs(levels - code).argsort(kind="stable")]
    return np.asarray(levels[levels != code])
