"""Which designs lie within the range of the training data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.space import DesignSpace, Permutation

_SHOWN = 6


@dataclass(frozen=True)
class Ranges:
    """What the training data hold of each parameter.

    Out of range is a level of an unordered parameter that they never show, one of an ordered
    parameter below or above what they show, an order with an item at a position where they never
    show it, and an inactive parameter that was always active.

    Attributes:
        space: the design space.
        lows: least level of each parameter in the data, shape (n_parameters,).
        highs: largest.
        seen: levels of unordered parameters in the data, and -1 where a parameter was inactive.
    """

    space: DesignSpace
    lows: list[int]
    highs: list[int]
    seen: list[list[int]]

    @staticmethod
    def of(space: DesignSpace, codes: NDArray[np.int64]) -> Ranges:
        """The ranges of some designs, shape (n, n_parameters)."""
        lows, highs, seen = [], [], []
        for parameter, column in zip(space.parameters, codes.T, strict=True):
            active = column[column >= 0]
            lows.append(int(active.min()) if active.size else 0)
            highs.append(int(active.max()) if active.size else -1)
            seen.append(np.unique(column[column < 0] if parameter.ordered else column).tolist())
        return Ranges(space, lows, highs, seen)

    def outside(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Position of the first parameter that is out of range, -1 if none is, shape (n,)."""
        found = np.full(len(codes), -1, dtype=np.int64)
        for position, parameter in enumerate(self.space.parameters):
            column = codes[:, position]
            known = np.isin(column, self.seen[position])
            if isinstance(parameter, Permutation):
                known |= _positions_known(parameter, self.seen[position], column)
            if parameter.ordered:
                known |= (column >= max(0, self.lows[position])) & (column <= self.highs[position])
            found[(found < 0) & ~known] = position
        return found

    def reason(self, codes: list[int], position: int) -> str:
        """What is out of range about a design, in a few words."""
        parameter = self.space.parameters[position]
        code = codes[position]
        value = "inactive" if code < 0 else repr(parameter.value(code))
        if parameter.ordered and self.highs[position] >= 0:
            ends = [repr(parameter.value(c)) for c in (self.lows[position], self.highs[position])]
            known = f"{ends[0]} to {ends[1]}"
        else:
            names = [repr(parameter.value(c)) for c in self.seen[position] if c >= 0]
            more = ", ..." if len(names) > _SHOWN else ""
            known = ", ".join(names[:_SHOWN]) + more if names else "inactive"
        what = f"{parameter.name} is {value}, not {known}"
        return f"out of range of the proxy's training data: {what}"

    def to_json(self) -> dict[str, Any]:
        """Plain values; the inverse of :meth:`from_json`."""
        return {"lows": self.lows, "highs": self.highs, "seen": self.seen}

    @staticmethod
    def from_json(space: DesignSpace, data: dict[str, Any]) -> Ranges:
        """The inverse of :meth:`to_json`."""
        lows, highs = ([int(code) for code in data[name]] for name in ("lows", "highs"))
        seen = [[int(code) for code in codes] for codes in data["seen"]]
        return Ranges(space, lows, highs, seen)


def _positions_known(
    parameter: Permutation, seen: list[int], codes: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which orders have every item where some seen order has it, shape (n,)."""
    items = np.arange(len(parameter.items))
    shown = np.zeros((len(items), len(items)), dtype=np.bool_)
    known = np.array([code for code in seen if code >= 0], dtype=np.int64)
    shown[items, parameter.positions(known)] = True
    positions = parameter.positions(np.maximum(codes, 0))
    return np.asarray((codes >= 0) & shown[items, positions].all(axis=1))
