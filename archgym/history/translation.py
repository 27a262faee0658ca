"""Designs of an earlier problem as designs of the space that is searched now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.history.levels import NO_LEVEL, Levels
from archgym.space import Designs, DesignSpace


class Sieve:
    """Sorts rows out, and counts them by the reason.

    Attributes:
        left: numbers of the rows that are left, increasing, shape (n,).
    """

    def __init__(self, n_rows: int) -> None:
        self.left = np.arange(n_rows, dtype=np.int64)
        self._reasons = [""]
        self._reason_of = np.zeros(n_rows, dtype=np.int64)

    def keep(self, wanted: NDArray[np.bool_], reason: str) -> None:
        """Sorts out the rows among :attr:`left` that are not wanted, (n_left,)."""
        if not wanted.all():
            self._reasons.append(reason)
            self._reason_of[self.left[~wanted]] = len(self._reasons) - 1
            self.left = self.left[wanted]

    def counts(self, rows: NDArray[np.bool_]) -> Counter[str]:
        """How many of some rows, a mask (n_rows,), were sorted out for each reason."""
        numbers = np.bincount(self._reason_of[rows], minlength=len(self._reasons)).tolist()
        return Counter({r: n for r, n in zip(self._reasons, numbers, strict=True) if r and n})


@dataclass(frozen=True)
class Translated:
    """Designs in the new space.

    Attributes:
        designs: canonical and legal, n of them.
        moved: whether a value is not the recorded one, but the nearest that there is, shape (n,).
    """

    designs: Designs
    moved: NDArray[np.bool_]


class Translation:
    """Translates designs from one space to another.

    A parameter that the earlier space lacks has its value in the baseline design. One that the new
    space lacks is dropped. A value that a parameter does not have becomes the nearest one if the
    parameter is ordered and has the value within its range.

    Args:
        source: the earlier space.
        target: the space that is searched now.
        baseline: the baseline design in it.

    Attributes:
        common: names of the parameters that both have, in the order of the new one.
        filled: names of those that only the new one has.
        dropped: names of those that only the earlier one has.
        problem: why designs cannot be translated; empty if they can.
    """

    def __init__(
        self, source: DesignSpace, target: DesignSpace, baseline: Mapping[str, Any]
    ) -> None:
        self.common = [name for name in target.names if name in source]
        self.filled = [name for name in target.names if name not in source]
        self.dropped = [name for name in source.names if name not in target]
        self.problem = "" if self.common else "it has none of the parameters"
        for name in self.common:
            there, here = source[name].unit, target[name].unit
            if there != here:
                self.problem = f"parameter {name!r} is in {there!r} there and in {here!r} here"
        self._target = target
        self._levels = {name: Levels(target[name]) for name in self.common}
        self._baseline = {n: target[n].code(baseline[n]) for n in self.filled if n in baseline}

    @property
    def columns(self) -> list[str]:
        """Names of the columns to read."""
        return [f"param.{name}" for name in self.common]

    def designs(self, table: pa.Table, sieve: Sieve) -> Translated:
        """The designs of the rows that are left; those that cannot be designs are sorted out.

        Args:
            table: all rows.
            sieve: of these rows.
        """
        space, n = self._target, len(sieve.left)
        table = table if n == table.num_rows else table.take(pa.array(sieve.left))
        codes = np.full((n, len(space.names)), -1, dtype=np.int64, order="F")
        moved = np.zeros(n, dtype=np.bool_)
        for name, code in self._baseline.items():
            codes[:, space.index(name)] = code
        for name in self.common:
            column, other = self._levels[name].of(table[f"param.{name}"])
            codes[:, space.index(name)] = column
            moved |= other
        rows = np.ones(n, dtype=np.bool_)

        def keep(wanted: NDArray[np.bool_], reason: str) -> None:
            sieve.keep(wanted[rows], reason)
            rows[~wanted] = False

        for name in self.common:
            keep(codes[:, space.index(name)] != NO_LEVEL, f"with a value that {name} has not")
        designs = space.canonicalise(np.maximum(codes, -1))
        for position, name in enumerate(space.names):
            absent = designs.codes[:, position] < 0
            if absent.any():
                keep(~(absent & space.activity(position, designs.codes)), f"without {name}")
        for name, value in space.fixed.items():
            position = space.index(name)
            column, held = designs.codes[:, position], space[name].code(value)
            keep((column == held) | (column < 0), f"with another {name} than {value!r}")
        if not rows.all():
            designs, moved = designs[rows], moved[rows]
        legal = space.legal(designs)
        sieve.keep(legal, "that break a rule")
        if not legal.all():
            designs, moved = designs[legal], moved[legal]
        return Translated(designs, moved)
