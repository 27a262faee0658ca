"""Recognises designs that are equivalent to a known one: they differ in dead parameters only.

A parameter may be dead everywhere (no simulated feature uses it), between some of its levels (a
buffer that is large enough), or only where another parameter has certain values (a scheduler where
there is nothing to schedule). Canonical designs cannot show that, but all metrics of two evaluated
designs being equal do.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.agents.common.arrays import Bools, Floats, Ints
from archgym.evaluation.outcome import Outcomes
from archgym.problem.status import Status
from archgym.space import Designs, DesignSpace, Parameter, Permutation

_MEMORY = 2048
"""Latest designs that are compared with, so that no call takes longer as the log grows."""
_MIN_METRICS = 3
"""Metrics that have to be equal: one or two may be so on a plateau that other parameters end."""
_MAX_PAIRS = 12
"""Closest known designs that are evidence with a new one."""
_MAX_LEVELS = 8
"""Of parameters with more levels, only shares of the range are distinguished; of permutations,
which item is first."""
_NEEDED = np.array([[1, 4], [1, 3]])
"""Equal pairs that make a rule: of any two levels or of certain ones (rows); in all designs or in
those where one other parameter has certain levels (columns): there are many such rules, and some
hold by chance."""
_TESTS, _UNTESTED = 0.02, 100
"""Share of all designs after the first hundred that may be likely equivalent ones, to test the
rules: a rule that is never tested is never found to be wrong."""
_DOUBTS = 4
"""Until that share of tests is reached, one in so many likely equivalent designs is not reported
as one, so that it may be proposed and simulated: this is the test."""


class Equivalence:
    """Learns from pairs of evaluated designs which parameters are dead, and where.

    The pairs differ in one parameter only, or else only in parameters that are dead already. For
    each parameter, rules are kept of the form: it is dead, or dead between two of its levels, or
    above or below one if they are ordered; everywhere, or where another parameter has some level,
    or one above or below. A rule holds as long as some pairs confirm it, all metrics being equal,
    and none speaks against it. A design is likely equivalent if by these rules it differs from a
    known one in dead parameters only.

    With metrics that never agree to the last digit no design is ever likely equivalent.

    Args:
        space: the design space.

    Attributes:
        aware: whether any pair was equal; before, no design is likely equivalent.
    """

    def __init__(self, space: DesignSpace) -> None:
        self._scales = [_Scale(parameter) for parameter in space.parameters]
        self._sizes = np.array([parameter.size for parameter in space.parameters], dtype=np.int64)
        self._levels = np.array([scale.levels for scale in self._scales], dtype=np.int64)
        ends = np.cumsum([1, *(scale.literals.shape[1] for scale in self._scales)])
        self._literals_of = [slice(*pair) for pair in pairwise(ends.tolist())]
        self._n_literals = int(ends[-1])
        # Of each parameter: pairs by whether they are equal, own levels and the others' (literal).
        self._counts: dict[int, NDArray[np.int32]] = {}
        self._equal_once: list[int] = []
        self._codes = np.empty((_MEMORY, len(self._sizes)), dtype=np.int64)
        self._metrics: Floats | None = None
        self._added = self._tested = 0

    @property
    def aware(self) -> bool:
        """Whether any pair was equal; before, no design is likely equivalent."""
        return bool(self._equal_once)

    def expect(self, codes: Ints) -> None:
        """Counts designs as known whose outcomes are still to come, shape (n, n_parameters).

        Nothing happens before the first outcomes: without outcomes no equivalence is known.
        """
        if self._metrics is not None:
            for row in codes[-_MEMORY:]:
                self._add(row, np.nan)

    def learn(self, designs: Designs, outcomes: Outcomes) -> None:
        """Takes in evaluated designs; only simulated ones are evidence."""
        if self._metrics is None:
            self._metrics = np.full((_MEMORY, outcomes.metrics.shape[1]), np.nan)
        for row in range(max(0, len(designs) - _MEMORY), len(designs)):
            codes, metrics = designs.codes[row], outcomes.metrics[row]
            differs = self._known() != codes
            itself = np.flatnonzero(~differs.any(axis=1))
            if outcomes.status[row] == Status.OK and np.isfinite(metrics).sum() >= _MIN_METRICS:
                if itself.size and not np.isnan(self._metrics[itself[0]]).all():
                    continue  # known before
                self._compare(codes, metrics, differs)
                if itself.size:
                    self._metrics[itself[0]] = metrics
                else:
                    self._add(codes, metrics)
            elif not itself.size:
                self._add(codes, np.nan)

    def likely(self, codes: Ints) -> Bools:
        """Which designs, codes (n, n_parameters), are likely equivalent to known ones, (n,)."""
        found = np.zeros(len(codes), dtype=np.bool_)
        if self.aware:
            lots = codes @ (2 * np.arange(codes.shape[1]) + 3) % _DOUBTS
            testing = self._tested < _TESTS * (self._added - _UNTESTED)
            certain = lots > 0 if testing else lots >= 0
            for row in np.flatnonzero(certain):
                design = codes[row]
                alive = self._alive(design, self._known() != design, self._literals(design))
                found[row] = not alive.any(axis=1).all()
        return found

    # -- inner workings --------------------------------------------------------------------------

    def _known(self) -> Ints:
        return self._codes[: min(self._added, _MEMORY)]

    def _alive(self, codes: Ints, differs: Bools, literals: Ints) -> Bools:
        """In which living parameters known designs differ from one, shape (n_known, n_parameters).

        Args:
            codes: of that one.
            differs: in which parameters they differ.
            literals: that hold for it.
        """
        alive = differs.copy()
        for position in self._equal_once:
            if codes[position] >= 0:
                dead = self._dead_levels(position, int(codes[position]), literals)
                if dead.any():
                    levels = self._level(position, self._codes[: len(alive), position])
                    alive[:, position] &= ~dead[levels]
        return alive

    def _dead_levels(self, position: int, code: int, literals: Ints) -> Bools:
        """To which levels a parameter is dead, where the literals hold; the last is inactive."""
        unequal, equal = self._counts[position][:, :, literals]
        enough = equal >= _NEEDED[1, 1]
        enough[:, 0] = equal[:, 0] >= _NEEDED[1, 0]
        enough[0] = equal[0] >= _NEEDED[0, 1]
        enough[0, 0] = equal[0, 0] >= _NEEDED[0, 0]
        rules = (enough & (unequal == 0)).any(axis=1)
        ranges = self._scales[position].ranges[self._level(position, code)]
        return np.append((ranges & rules).any(axis=1), False)

    def _compare(self, codes: Ints, metrics: Floats, differs: Bools) -> None:
        """Counts the pairs of a design with the closest known ones."""
        assert self._metrics is not None
        literals, apart = self._literals(codes), differs.sum(axis=1)
        alive = self._alive(codes, differs, literals)
        self._tested += not (alive.any(axis=1) | (apart == 0)).all()
        near = np.flatnonzero((apart == 1) | (alive.sum(axis=1) == 1))
        for row in near[apart[near].argsort(kind="stable")][:_MAX_PAIRS].tolist():
            theirs = self._metrics[row]
            position = int((differs if apart[row] == 1 else alive)[row].argmax())
            other = int(self._codes[row, position])
            if np.isnan(theirs).all() or (other < 0) != (codes[position] < 0):
                continue
            equal = bool(((theirs == metrics) | (np.isnan(theirs) & np.isnan(metrics))).all())
            self._count(position, int(codes[position]), other, literals, equal)

    def _count(self, position: int, one: int, other: int, literals: Ints, equal: bool) -> None:
        ranges = self._scales[position].ranges
        if position not in self._counts:
            shape = (2, ranges.shape[2], self._n_literals)
            self._counts[position] = np.zeros(shape, dtype=np.int32)
        if equal and position not in self._equal_once:
            self._equal_once.append(position)
        own = self._literals_of[position]  # in the ranges already
        others = literals[(literals < own.start) | (literals >= own.stop)]
        rows = np.flatnonzero(ranges[self._level(position, one), self._level(position, other)])
        self._counts[position][int(equal), rows[:, None], others] += 1

    def _level(self, position: int, codes: Any) -> Any:
        """Levels as they are distinguished, of codes of active parameters."""
        return codes * self._levels[position] // self._sizes[position]

    def _literals(self, codes: Ints) -> Ints:
        """Numbers of those that hold for a design; the first holds for all."""
        levels = np.where(codes < 0, -1, codes * self._levels // self._sizes).tolist()
        holds = [scale.literals[level] for scale, level in zip(self._scales, levels, strict=True)]
        return np.flatnonzero(np.concatenate([[True], *holds]))

    def _add(self, codes: Ints, metrics: Floats | float) -> None:
        assert self._metrics is not None
        place = self._added % _MEMORY
        self._codes[place], self._metrics[place] = codes, metrics
        self._added += 1


class _Scale:
    """What can be said of a parameter's level and of two of its levels.

    Attributes:
        levels: that are distinguished.
        ranges: in which ranges two levels lie: the first holds all; shape (levels, levels,
            n_ranges).
        literals: which literals hold at a level, the last being inactive: for unordered parameters
            that it is that level, for ordered ones that it is that or more, or that or less; and
            that it is inactive; shape (levels + 1, n_literals).
    """

    def __init__(self, parameter: Parameter) -> None:
        self.levels = min(parameter.size, _MAX_LEVELS)
        if isinstance(parameter, Permutation):  # its first item: orders are numbered by it
            self.levels = len(parameter.items)
        n = self.levels
        level = np.arange(n)
        low, high = np.minimum.outer(level, level), np.maximum.outer(level, level)
        if parameter.ordered:
            at_least, at_most = level[:, None] >= level[1:], level[:, None] <= level[:-1]
            holds = np.concatenate([at_least, at_most], axis=1)
            within = np.concatenate([at_least[low], at_most[high]], axis=2)
        else:
            holds = level[:, None] == level
            within = (low * n + high)[:, :, None] == np.arange(n * n)
        self.literals = np.zeros((n + 1, holds.shape[1] + 1), dtype=np.bool_)
        self.literals[:n, :-1] = holds
        self.literals[n, -1] = True
        self.ranges = np.concatenate([np.ones((n, n, 1), dtype=np.bool_), within], axis=2)
