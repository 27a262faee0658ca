"""The base class of every encoding: a view of designs as arrays, as a search algorithm takes them.

Each encoding covers the free parameters of a space, reaches every value, gives the levels of a
discrete parameter equal shares, and satisfies ``decode(encode(designs)) == designs`` for
canonical designs. An inactive parameter is encoded as its first level.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError
from archgym.space.design_space import DesignSpace
from archgym.space.designs import Designs
from archgym.space.parameter import Parameter


class Encoding(ABC):
    """A two-way map between designs and rows of numbers.

    Attributes:
        design_space: the space whose designs are encoded.
        free: positions of the parameters that are encoded, in order.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        self.design_space = design_space
        self.free = design_space.free
        if not self.free:
            raise InvalidValueError(
                "every parameter of the design space is fixed: nothing to search"
            )
        self._parameters = [design_space.parameters[position] for position in self.free]
        self._first = [
            int(design_space.allowed_codes(i)[0]) for i in range(len(design_space.names))
        ]

    @property
    def columns(self) -> list[range]:
        """The columns of each free parameter: one, except for permutations."""
        ends = [0, *accumulate(len(self._axes(parameter)) for parameter in self._parameters)]
        return [range(*pair) for pair in pairwise(ends)]

    def _axes(self, parameter: Parameter) -> Sequence[Any]:
        """What the columns of a parameter stand for."""
        return parameter.axes

    @abstractmethod
    def encode(self, designs: Designs) -> NDArray[Any]:
        """Rows of numbers, shape (n_designs, width).

        Raises:
            DesignError: if ``designs`` is no batch, as :meth:`DesignSpace.designs` gives it.
        """

    @abstractmethod
    def decode(self, rows: NDArray[Any]) -> Designs:
        """Canonical designs (they need not be legal) of rows, shape (n_designs, width).

        Raises:
            DesignError: if a row has the wrong width, is out of range or not a number.
        """

    def decode_one(self, row: Any) -> tuple[int, ...]:
        """Canonical codes of one row."""
        return tuple(self.decode(np.asarray(row)[None]).codes[0].tolist())

    def _known(self, designs: Designs) -> NDArray[np.int64]:
        """Codes of the free parameters with the first level where inactive, shape (n, n_free)."""
        return np.maximum(self._codes(designs)[:, self.free], 0)

    @staticmethod
    def _codes(designs: Designs) -> NDArray[np.int64]:
        if not isinstance(designs, Designs):
            raise DesignError(
                "a batch of designs expected, such as space.designs([design]), "
                f"not {type(designs).__name__}"
            )
        return designs.codes

    def _assemble(self, columns: Sequence[NDArray[np.int64]], n: int) -> Designs:
        codes = np.empty((n, len(self._first)), dtype=np.int64, order="F")
        if len(self.free) < len(self._first):
            codes[:] = self._first
        for position, column in zip(self.free, columns, strict=True):
            codes[:, position] = column
        return self.design_space.canonicalise(codes)

    def _check(self, rows: NDArray[Any], width: int) -> NDArray[Any]:
        rows = np.asarray(rows)
        if rows.ndim != 2 or rows.shape[1] != width:
            raise DesignError(
                f"rows of {width} numbers expected, got an array of shape {rows.shape}"
            )
        return rows

    @staticmethod
    def _integers(rows: Any) -> NDArray[np.int64]:
        given: NDArray[Any] = np.asarray(rows)
        if given.dtype.kind in "iu":
            return given
        with np.errstate(invalid="ignore"):
            whole = given.astype(np.int64) if given.dtype.kind in "fb" else None
        if whole is None or not (whole == given).all():
            raise DesignError(f"levels are whole numbers, got {given.reshape(-1)[:8].tolist()}")
        return whole
