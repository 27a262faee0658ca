"""Designs drawn at random from a design space, and those next to one."""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, SpaceTooLargeError
from archgym.space.conditions_and_rules import ConstrainedSpace
from archgym.space.counting.propagation import is_sparse, propagation_of
from archgym.space.designs import Designs
from archgym.space.parameter import Parameter
from archgym.space.permutation import Permutation

_VAIN = 2_000
"""Draws without a legal design after which another way is looked for."""
_RARE = 64
"""Where fewer than one design in so many is legal, batches grow to what is expected to do."""
_MAX_BATCH = 1 << 16


def sample(space: ConstrainedSpace, n: int, rng: np.random.Generator) -> Designs:
    """Random legal designs, see :meth:`archgym.space.DesignSpace.sample`."""
    allowed = [space.allowed_codes(position) for position in range(len(space.parameters))]
    parts: list[NDArray[np.int64]] = [np.empty((0, len(space.names)), np.int64)]
    found = tried = 0
    while found < n:
        size = max(n - found, min(16 * (n - found), tried))
        if tried > _RARE * (found + 1):  # many small batches would take longer than a large one
            expected = (n - found) * tried // (found + 1)
            size = max(size, min(expected, tried, _MAX_BATCH))
        raw = np.empty((size, len(space.parameters)), dtype=np.int64, order="F")
        for position, levels in enumerate(allowed):
            raw[:, position] = levels[0] + rng.integers(len(levels), size=size)
        designs = space.canonicalise(raw)
        parts.append(designs.codes[space.legal(designs)][: n - found])
        found += len(parts[-1])
        tried += size
        if not found and tried >= _VAIN and is_sparse(space):
            with contextlib.suppress(SpaceTooLargeError):
                return propagation_of(space).sample(n, rng)
        if tried > 10_000 * max(found, 1) + 100_000:
            raise DesignError(
                f"found {found} legal designs in {tried} random ones: "
                f"the rules ({', '.join(r.name for r in space.rules)}) leave next to nothing"
            )
    return Designs(space, np.concatenate(parts))


def neighbours(space: ConstrainedSpace, codes: tuple[int, ...]) -> Designs:
    """The neighbours of a design, see :meth:`archgym.space.DesignSpace.neighbours`."""
    rows: list[list[int]] = []
    for position in space.free:
        if codes[position] < 0:
            continue
        for level in _steps(space.parameters[position], codes[position]):
            row = [max(code, 0) for code in codes]
            row[position] = level
            rows.append(row)
    raw = np.array(rows, dtype=np.int64).reshape(len(rows), len(space.names))
    for name in space.fixed:
        position = space.index(name)
        raw[:, position] = space.allowed_codes(position)[0]
    found = space.canonicalise(raw)
    return found[space.legal(found)]


def _steps(parameter: Parameter, code: int) -> list[int]:
    """Levels that are one step from another."""
    if isinstance(parameter, Permutation):
        return [int(level) for level in parameter.neighbours(code)]
    if not parameter.ordered:
        return [level for level in range(parameter.size) if level != code]
    if parameter.continuous:
        here = parameter.unit_interval(np.array([code]))
        near = parameter.from_unit_interval(np.array([here[0] - 0.01, here[0] + 0.01]))
        return sorted({int(level) for level in near} - {code})
    return [level for level in (code - 1, code + 1) if 0 <= level < parameter.size]
