"""Random moves in a design space: the operators that search agents share.

They work on level codes (see :class:`archgym.space.Designs`), many rows at once, and give
canonical designs: a parameter that a move makes active takes a random level, one that it makes
inactive is dropped. The designs need not be legal; :class:`archgym.agents.common.unseen.Unseen`
leaves out those that are not.
Numbers are drawn as integers or as multiples of 2**-53, so every machine gets the same.
"""

from __future__ import annotations

import numpy as np

from archgym.agents.common.arrays import Bools, Ints
from archgym.agents.common.orders import crossed, reordered
from archgym.space import Designs, DesignSpace, Permutation

_REAL_SCALES = 10
"""A step of a real parameter is between the whole range and 2**-10 of it."""
_MAX_NEIGHBOURS = 16
"""Of parameters with more levels than this, only some are neighbours."""


class Moves:
    """Random changes of designs of one space.

    Args:
        space: the design space.
        rng: the only source of randomness.

    Attributes:
        free: positions of the parameters that are searched.
    """

    def __init__(self, space: DesignSpace, rng: np.random.Generator) -> None:
        self.space = space
        self.free = np.array(space.free, dtype=np.int64)
        self._rng = rng
        self._permutations = [
            (position, parameter)
            for position in space.free
            if isinstance(parameter := space.parameters[position], Permutation)
        ]

    def complete(self, codes: Ints) -> Designs:
        """Designs from codes in which -1 stands for any level, shape (n, n_parameters)."""
        codes = np.array(codes, dtype=np.int64, order="F")
        for position in np.flatnonzero((codes < 0).any(axis=0)).tolist():
            missing = codes[:, position] < 0
            allowed = self.space.allowed_codes(position)
            drawn = self._rng.integers(len(allowed), size=missing.sum())
            codes[missing, position] = allowed[0] + drawn
        return self.space.canonicalise(codes)

    def mutate(self, codes: Ints, changes: Ints | int) -> Designs:
        """Each design with some of its active parameters moved to another level.

        An unordered parameter takes any other level. An ordered one makes a step up or down
        whose size is as likely 1 as 2 to 3 as 4 to 7 and so on, so that fine and coarse steps
        are both tried whatever its number of levels; likewise a real one, in shares of its range.
        In a permutation two items are swapped, one is put elsewhere, or a part is reversed.

        Args:
            codes: of the designs, shape (n, n_parameters).
            changes: how many parameters of each to move, shape (n,), or one number for all designs;
                all parameters if a design has fewer.
        """
        chosen = self._choose(codes[:, self.free] >= 0, np.broadcast_to(changes, len(codes)))
        moved = np.array(codes, dtype=np.int64, order="F")
        for column, position in enumerate(self.free.tolist()):
            rows = np.flatnonzero(chosen[:, column])
            if rows.size:
                moved[rows, position] = self._step(position, moved[rows, position])
        return self.complete(moved)

    def kick(self, codes: Ints, n: int, changes: int) -> Designs:
        """``n`` times a design of shape (1, n_parameters) with some parameters moved at once."""
        return self.mutate(np.repeat(codes, n, axis=0), changes)

    def around(self, codes: Ints) -> Designs:
        """The designs that differ from one in a single move, parameters taking turns.

        An unordered parameter takes every other level and an ordered one too, if it has few;
        with many, or if it is real, it makes a step up and one down of each of the sizes that
        :meth:`mutate` draws, or takes some random ones of unordered levels. A permutation has two
        items swapped or one put elsewhere, in some random ways. Some may be the design itself,
        where a step is rounded to none, or one another. The order is random, except that a
        parameter comes again only after all others have come as often.

        Args:
            codes: of the design, shape (1, n_parameters).
        """
        rows = [np.empty((0, codes.shape[1]), dtype=np.int64)]
        lots = [np.empty(0)]
        for position in self.free[codes[0, self.free] >= 0].tolist():
            levels = self._elsewhere(position, int(codes[0, position]))
            moved = np.repeat(codes, len(levels), axis=0)
            moved[:, position] = self._rng.permutation(levels)
            rows.append(moved)
            lots.append(np.arange(len(levels)) + self._rng.random(len(levels)))
        order = np.concatenate(lots).argsort(kind="stable")
        return self.complete(np.concatenate(rows)[order])

    def crossover(self, first: Ints, second: Ints) -> Designs:
        """A child of each pair: every level from either parent.

        A parameter that is active in one parent only comes from that one if the child has it. Of
        a permutation, half of the children mix the orders of both parents
        (:func:`archgym.agents.common.orders.crossed`).
        """
        from_first = self._rng.integers(2, size=first.shape) == 0
        child = np.where(from_first, first, second)
        other = np.where(from_first, second, first)
        child = np.where(child < 0, other, child)
        for position, parameter in self._permutations:
            mixes = self._rng.integers(2, size=len(child)) == 0
            mixes &= (child[:, position] >= 0) & (other[:, position] >= 0)
            parents = child[mixes, position], other[mixes, position]
            child[mixes, position] = crossed(parameter, *parents, self._rng)
        return self.complete(child)

    def _choose(self, active: Bools, changes: Ints) -> Bools:
        """Marks ``changes`` random active columns of each row."""
        lot = np.where(active, self._rng.random(active.shape), 2.0)
        rank = lot.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        return np.asarray(active & (rank < changes[:, None]))

    def _elsewhere(self, position: int, code: int) -> Ints:
        """Levels one move away from ``code``."""
        parameter = self.space.parameters[position]
        if isinstance(parameter, Permutation):
            near = parameter.neighbours(code)
            return near[self._rng.permutation(len(near))[:_MAX_NEIGHBOURS]]
        if parameter.size <= _MAX_NEIGHBOURS:
            return np.delete(np.arange(parameter.size), code)
        if not parameter.ordered:
            return (code + self._rng.integers(1, parameter.size, _MAX_NEIGHBOURS)) % parameter.size
        if parameter.continuous:
            scale = np.ldexp(1.0 + self._rng.random(_REAL_SCALES), -1 - np.arange(_REAL_SCALES))
            place = parameter.unit_interval(np.array([code])) + np.concatenate([scale, -scale])
            return parameter.from_unit_interval(place[(place >= 0.0) & (place <= 1.0)])
        least = np.left_shift(1, np.arange((parameter.size - 1).bit_length()))
        size = least + self._rng.integers(least)
        levels = code + np.concatenate([size, -size])
        return np.asarray(levels[(levels >= 0) & (levels < parameter.size)])

    def _step(self, position: int, codes: Ints) -> Ints:
        parameter, rng, n = self.space.parameters[position], self._rng, len(codes)
        if parameter.continuous:
            scale = np.ldexp(1.0 + rng.random(n), -1 - rng.integers(_REAL_SCALES, size=n))
            place = parameter.unit_interval(codes) + np.where(
                rng.integers(2, size=n) == 0, scale, -scale
            )
            return parameter.from_unit_interval(1.0 - np.abs(1.0 - np.abs(place)))  # reflected
        if isinstance(parameter, Permutation):
            return reordered(parameter, codes, rng)
        elsewhere = (codes + rng.integers(1, parameter.size, size=n)) % parameter.size
        if not parameter.ordered:
            return np.asarray(elsewhere)
        bits = (parameter.size - 1).bit_length()
        least = np.left_shift(1, rng.integers(bits, size=n))
        size = least + rng.integers(least)
        size = np.where(rng.integers(2, size=n) == 0, size, -size)
        for step in (size, -size):
            fits = (codes + step >= 0) & (codes + step < parameter.size)
            elsewhere = np.where(fits, codes + step, elsewhere)
        return np.asarray(elsewhere)
