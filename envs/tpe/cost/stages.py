"""Clock periods of many PEs: delays of their stages, composed of parts.

The delay of a stage is a sum over what a signal passes. What stands before the compressor tree
depends on few fields, the adders behind it on few others, and the tree counts by its depth; each
part is a difference between delays of :class:`archgym.envs.tpe.technology.technology.Technology`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.cost.table import ArrayTable, Memo, each, front_keys, packed
from archgym.envs.tpe.microarchitecture import datapath
from archgym.envs.tpe.microarchitecture.datapath import Stage, TreeDepth
from archgym.envs.tpe.microarchitecture.pe import Array
from archgym.envs.tpe.technology.technology import Technology

__all__ = ["PEPeriods"]

FloatArray = NDArray[np.float64]


class PEPeriods:
    """Shortest clock periods of PEs in one cell library.

    Args:
        technology: the cell library.
    """

    def __init__(self, technology: Technology) -> None:
        self._delay = lru_cache(maxsize=4096)(technology.stage_delay_ns)
        self._register = self._delay(Stage())
        self._full_adder = self._delay(Stage(depth=2.0)) - self._delay(Stage(depth=1.0))
        self._fronts = Memo(each(self._front), 2)
        self._chains = Memo(each(self._chain), 3)

    def __call__(self, table: ArrayTable, depth: FloatArray) -> FloatArray:
        """The period of one PE of each array, ns, shape (n,).

        Args:
            table: the arrays.
            depth: of their compressor trees, full-adder delays, shape (n,).
        """
        chained = ~table.carry_save
        chains = packed(
            (chained, 1),
            (table.separate, 1),
            (table.product_width * table.separate, 6),
            (table.accumulator_width * chained, 6),
            (table.final_adder * chained, 3),
        )
        before, tree = self._fronts(front_keys(table), table).T
        late, early, apart = self._chains(chains, table).T
        tree = tree + self._full_adder * depth
        tree = tree + np.where(table.cut_reduce, 0.0, np.where(depth > 0, late, early))
        behind = self._register + np.where(table.cut_add, apart, early)
        behind = np.where(table.cut_reduce, behind, 0.0)
        found: FloatArray = np.maximum(np.maximum(before, tree), behind)
        return found

    def _front(self, array: Array) -> tuple[float, float]:
        """The slowest stage before that of the tree; the one of the tree, nothing but the tree."""
        pe = array.pe.hardware()
        stages = datapath.stages(pe, TreeDepth(1, 1.0))
        at = next(i for i, stage in enumerate(stages) if stage.levels)
        bare = replace(stages[at], levels=0, depth=0.0, adders=())
        return max(map(self._delay, stages[:at]), default=0.0), self._delay(bare)

    def _chain(self, array: Array) -> tuple[float, float, float]:
        """What the adders add to a stage: behind a tree, behind registers, the slower one alone."""
        adders = datapath.adders(array.pe)
        tree = Stage(depth=1.0)
        late = self._delay(replace(tree, adders=adders)) - self._delay(tree)
        early = [self._delay(Stage(adders=some)) for some in (adders, adders[:1], adders[1:])]
        return late, early[0] - self._register, max(early[1:]) - self._register
