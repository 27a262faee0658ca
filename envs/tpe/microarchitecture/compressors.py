"""Compressors of a reduced bit heap: which bits each of them takes and makes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ONE", "Cell", "Reduction", "CompressorWiring"]

ONE = "1'b1"
"""The name of a constant one among the bits."""


@dataclass(frozen=True)
class Cell:
    """One compressor, with the bits that it takes and makes.

    Attributes:
        level: full-adder delays before it.
        column: log2 of the weight of its inputs and its sum.
        inputs: names of its variable bits: three or two (full adder), two or one (half adder).
        one: whether a constant one is among its bits as well.
        sum: name of its sum.
        carry: name of its carry, one column up; empty in the top column.
    """

    level: int
    column: int
    inputs: tuple[str, ...]
    one: bool
    sum: str
    carry: str

    @property
    def kind(self) -> str:
        """`full_adder`, `full_adder_one`, `half_adder` or `half_adder_one`."""
        size = "full" if len(self.inputs) + self.one == 3 else "half"
        return f"{size}_adder_one" if self.one else f"{size}_adder"


@dataclass(frozen=True)
class Reduction:
    """A bit heap reduced to two rows, with its compressors.

    Attributes:
        cells: the compressors, each after those that it depends on.
        sum: the bit of the first remaining row in each column, lowest first; "" for none.
        carry: the bit of the second remaining row in each column.
        levels: full adders in series on the longest way.
    """

    cells: tuple[Cell, ...]
    sum: tuple[str, ...]
    carry: tuple[str, ...]
    levels: int


class CompressorWiring:
    """Wires the compressors that the compiled kernel has placed: gives each of them its bits.

    The kernel is :mod:`archgym.envs.tpe.microarchitecture.compression_kernel`.

    Args:
        prefix: of the names of the bits between compressors.
        width: columns.

    Attributes:
        cells: the compressors wired so far.
    """

    def __init__(self, prefix: str, width: int) -> None:
        self.cells: list[Cell] = []
        self._prefix = prefix
        self._width = width

    def levelled(self, grid: list[list[str]], placed: NDArray[np.int32]) -> list[list[str]]:
        """The bits that are left in each column of a tree built level by level."""
        width = self._width
        columns = [[row[c] for row in grid if row[c]] for c in range(width)]
        at = 0
        while at < len(placed):
            level = placed[at, 0]
            made: list[list[str]] = [[] for _ in range(width + 1)]
            carries: list[list[str]] = [[] for _ in range(width + 1)]
            between: list[list[str]] = [[] for _ in range(width + 1)]
            while at < len(placed) and placed[at, 0] == level:
                _, c, takes, with_carry, _ = (int(v) for v in placed[at])
                bits = [columns[c].pop(0) for _ in range(takes)]
                if takes == 4:
                    inner, out = self._add(level, c, bits[:3])
                    between[c + 1].append(out)
                    bits = [inner, bits[3]] + ([between[c].pop(0)] if with_carry else [])
                    total, carry = self._add(level + 1, c, bits)
                else:
                    total, carry = self._add(level, c, bits)
                made[c].append(total)
                carries[c + 1].append(carry)
                at += 1
            columns = [columns[c] + carries[c] + between[c] + made[c] for c in range(width)]
        return columns

    def linear(self, grid: list[list[str]], placed: NDArray[np.int32]) -> list[list[str]]:
        """The bits that are left in each column of a chain of row adders."""
        width = self._width
        columns: list[list[str]] = [[row[c] for row in grid[:2] if row[c]] for c in range(width)]
        at = 0
        for level, row in enumerate(grid[2:]):
            carries: list[list[str]] = [[] for _ in range(width + 1)]
            for c in range(width):
                if row[c]:
                    columns[c].append(row[c])
                if at < len(placed) and (placed[at, 0], placed[at, 1]) == (level, c):
                    total, carry = self._add(level, c, columns[c])
                    columns[c] = [total]
                    carries[c + 1].append(carry)
                    at += 1
            for c in range(width):
                columns[c] += carries[c]
        return columns

    def _add(self, level: int, column: int, bits: list[str]) -> tuple[str, str]:
        n = len(self.cells)
        total = f"{self._prefix}_s{n}"
        carry = f"{self._prefix}_c{n}"
        variable = tuple(bit for bit in bits if bit != ONE)
        shown = carry if column + 1 < self._width else ""
        self.cells.append(Cell(int(level), column, variable, ONE in bits, total, shown))
        return total, carry
