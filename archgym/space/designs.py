"""A batch of designs, held as an array of level codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archgym.space.definition import SpaceDefinition
from archgym.space.parameter import Codes, Parameter

MISSING = -2
"""The code of a value that a space excludes."""


class Designs:
    """Designs of one space, canonical: a sequence of plain mappings that is stored as an array.

    Attributes:
        space: the design space.
        codes: level of each parameter, -1 where it is inactive, int64, shape
            (n_designs, n_parameters).

    >>> from archgym.space import DesignSpace, Integer
    >>> designs = DesignSpace([Integer("ways", 1, 4)]).designs([{"ways": 3}, {"ways": 1}])
    >>> designs[0], len(designs)
    ({'ways': 3}, 2)
    """

    __slots__ = ("codes", "space")

    def __init__(self, space: SpaceDefinition, codes: NDArray[np.int64]) -> None:
        self.space = space
        self.codes = codes

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice | NDArray[Any]) -> Designs: ...
    def __getitem__(self, index: Any) -> dict[str, Any] | Designs:
        if isinstance(index, int | np.integer):
            return self.space.design(self.codes[index].tolist())
        return Designs(self.space, self.codes[index])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in self.codes.tolist():
            yield self.space.design(row)

    def values(self, name: str, inactive: ArrayLike | None = None) -> NDArray[Any]:
        """One parameter's values, shape (n_designs,).

        Args:
            name: the parameter.
            inactive: stands where the parameter is inactive; ``None`` gives an object array
                with ``None`` there (if it is inactive anywhere).
        """
        position = self.space.index(name)
        column = self.codes[:, position]
        values = self.space.parameters[position].values(np.maximum(column, 0))
        off = column < 0
        if not off.any():
            return values
        if inactive is None:
            values = values.astype(object)
        return np.where(off, inactive, values)  # type: ignore[arg-type]

    def keys(self) -> list[int]:
        """An integer per design: equal exactly if the designs are."""
        return self.space.keys(self.codes)

    def concatenate(self, other: Designs) -> Designs:
        """These designs, then the others."""
        return Designs(self.space, np.concatenate([self.codes, other.codes]))

    def __repr__(self) -> str:
        return f"Designs({len(self)} of {self.space!r})"


def recoded(designs: Designs, space: SpaceDefinition) -> Codes:
    """Codes of designs in a space with the same parameters, of which it may exclude other values.

    Returns:
        Shape (n_designs, n_parameters), :data:`MISSING` for a value that the space excludes.
    """
    own = designs.space
    differing = [n for n in own.names if own.excluded.get(n) != space.excluded.get(n)]
    if not differing:
        return designs.codes
    codes = np.array(designs.codes, dtype=np.int64, order="F")
    for name in differing:
        position = own.index(name)
        levels = _levels(own[name], space, name)
        codes[:, position] = np.append(levels, -1)[codes[:, position]]
    return codes


def _levels(parameter: Parameter, space: SpaceDefinition, name: str) -> Sequence[int]:
    out = space.excluded.get(name, [])
    values = [parameter.value(code) for code in range(parameter.size)]
    return [MISSING if value in out else space[name].code(value) for value in values]
