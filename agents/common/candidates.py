"""Candidates: designs among which a model chooses."""

from __future__ import annotations

import numpy as np

from archgym.agents.common.arrays import Ints
from archgym.agents.common.moves import Moves
from archgym.space import Designs, Permutation

_MAX_LEVELS = 16
"""Parameters with more levels are moved to some others at random, not to all."""
_RANDOM_STEPS = 8
_EXCHANGES = ((1, 1), (2, 1), (1, 2))
"""Levels by which one parameter is raised and another lowered."""
_MAX_EXCHANGES = 200
_PARENTS, _CHILDREN = 40, 60
"""The best candidates of which others are bred, and how many there are of each generation."""
_MAX_CHANGES = 3
"""Parameters that a mutated candidate has changed, at most."""
_RENEWED = 5
"""One in so many random designs is a new one every time."""


class Candidates:
    """Draws candidates near good designs, between them, and anywhere.

    Args:
        moves: changes of designs of the space.
        rng: the only source of randomness.
        n: how many, about, besides the neighbours.
        elite: designs around which they are sought.
    """

    def __init__(self, moves: Moves, rng: np.random.Generator, n: int, elite: int) -> None:
        self._moves, self._rng, self._space = moves, rng, moves.space
        self._share, self._elite = n // 4 + 1, elite
        self._anywhere: Designs | None = None

    def draw(self, ranked: Ints) -> Designs:
        """Neighbours of the best, moves of two to four parameters, crossovers, random designs.

        Some may be illegal, known, or the same.

        Args:
            ranked: codes of known designs, the best first, shape (n, n_parameters), n >= 1.
        """
        best, mates = ranked[: self._elite], ranked[: 4 * self._elite]
        kicked = self._moves.mutate(self._some(best), self._rng.integers(2, 5, size=self._share))
        crossed = self._moves.crossover(self._some(best), self._some(mates))
        near = self.neighbours(best[: self._elite // 2 + 1])
        return near.concatenate(kicked).concatenate(crossed).concatenate(self._random())

    def neighbours(self, codes: Ints) -> Designs:
        """Each design with one parameter moved: to every level, or some if it has very many.

        Of a permutation, some of the orders with two items swapped or one put elsewhere.
        """
        rows, many = [codes[:0]], 0
        for position in self._space.free:
            parameter = self._space.parameters[position]
            active = codes[codes[:, position] >= 0]
            if isinstance(parameter, Permutation):
                rows += [self._reordered(row, position, parameter) for row in active]
                continue
            if parameter.size > _MAX_LEVELS:
                many += 1
                continue
            levels = self._space.allowed_codes(position)
            moved = np.repeat(active, len(levels), axis=0)
            moved[:, position] = np.tile(levels, len(active))
            rows.append(moved)
        near = self._moves.complete(np.concatenate(rows))
        if not many:
            return near
        start = np.repeat(codes, many * _RANDOM_STEPS, axis=0)
        return near.concatenate(self._moves.mutate(start, 1))

    def bred(self, ranked: Ints) -> Designs:
        """Children of candidates: the neighbours of the best, crossovers, and some mutated.

        What a model expects of designs has many peaks, and the way from one to the next leads
        through designs of which it expects little. A population gets there where a climb does not.

        Args:
            ranked: codes of candidates, the best first, shape (n, n_parameters), n >= 1.
        """
        parents = ranked[:_PARENTS]
        ranks = self._rng.integers(len(parents), size=(2, _CHILDREN))
        first = parents[ranks.min(axis=0)]
        second = parents[self._rng.integers(len(parents), size=_CHILDREN)]
        some = first[: _CHILDREN // 2]
        changes = self._rng.integers(1, _MAX_CHANGES + 1, size=len(some))
        children = self._moves.crossover(first, second)
        children = children.concatenate(self._moves.mutate(some, changes))
        return children.concatenate(self.neighbours(ranked[:1]))

    def exchanges(self, codes: Ints) -> Designs:
        """A design with an ordered parameter raised and another lowered, by a level or two.

        Under a limit it takes both at once: more rows for fewer columns in the same area.

        Args:
            codes: of the design, shape (1, n_parameters).
        """
        parameters = self._space.parameters
        places = np.array(
            [
                position
                for position in self._space.free
                if parameters[position].ordered
                and not parameters[position].continuous
                and codes[0, position] >= 0
            ],
            dtype=np.int64,
        )
        ways = len(places) * max(0, len(places) - 1) * len(_EXCHANGES)
        drawn = self._rng.choice(ways, size=min(ways, 4 * _MAX_EXCHANGES), replace=False)
        pair, how = np.divmod(drawn, len(_EXCHANGES))
        first, second = np.divmod(pair, max(1, len(places) - 1))
        raised, lowered = places[first], places[second + (second >= first)]
        up, down = np.array(_EXCHANGES)[how].T
        rows = np.arange(len(drawn))
        moved = np.repeat(codes, len(rows), axis=0)
        moved[rows, raised] += up
        moved[rows, lowered] -= down
        sizes = np.array([parameter.size for parameter in parameters])
        fits = (moved[rows, raised] < sizes[raised]) & (moved[rows, lowered] >= 0)
        return self._moves.complete(moved[fits][:_MAX_EXCHANGES])

    def _reordered(self, row: Ints, position: int, parameter: Permutation) -> Ints:
        near = parameter.neighbours(int(row[position]))
        near = near[self._rng.permutation(len(near))[:_MAX_LEVELS]]
        moved = np.repeat(row[None], len(near), axis=0)
        moved[:, position] = near
        return moved

    def _random(self) -> Designs:
        """Random designs, a few of them new, since rare legal designs take long to find."""
        new = self._share if self._anywhere is None else self._share // _RENEWED + 1
        fresh = self._space.sample(new, self._rng)
        if self._anywhere is not None:
            fresh = self._anywhere[new:].concatenate(fresh)
        self._anywhere = fresh
        return fresh

    def _some(self, codes: Ints) -> Ints:
        return codes[self._rng.integers(len(codes), size=self._share)]
