"""Kernel densities of good and of other designs: the model of TPE and BOHB.

Bergstra et al., "Algorithms for Hyper-Parameter Optimization", NeurIPS 2011; in the multivariate
form of Falkner, Klein and Hutter, "BOHB", ICML 2018: a design is promising where the density of
good designs, divided by that of the others, is large.
"""

from __future__ import annotations

import numpy as np

from archgym.agents.common.arrays import Floats, Ints
from archgym.agents.common.moves import Moves
from archgym.agents.common.orders import Mallows
from archgym.space import Designs, Permutation

_WIDER = 3.0
"""Factor on bandwidths of ordered parameters where designs are drawn: BOHB's bandwidth_factor."""
_MAX_MOVES = 3
_NARROWEST = 1e-3
"""Least bandwidth, in shares of a range: BOHB's min_bandwidth."""
_LEAST_DISCORDANCE = 0.02
"""Least bandwidth of a permutation."""
_MISMATCH = 0.1
"""Weight of a parameter that is active in one of two designs only."""


class GoodAndOther:
    """Densities of the good designs and of the others, and designs drawn near good ones.

    An ordered parameter has a Gaussian kernel on its range, an unordered one the kernel of
    Aitchison and Aitken (1976), a permutation that of Mallows (1957). Bandwidths follow the
    number of designs and the spread.

    With many parameters, draws from the density alone lie far from every good design, as all
    parameters move at once. So a part of the designs are children of two good ones, or have a
    few parameters moved.

    Args:
        moves: changes of designs of the space.
        rng: the only source of randomness.
        good: codes of good designs, shape (n_good, n_parameters), n_good >= 1.
        other: codes of the others, shape (n_other, n_parameters), n_other >= 1.
    """

    def __init__(self, moves: Moves, rng: np.random.Generator, good: Ints, other: Ints) -> None:
        self._moves, self._rng, self._centres = moves, rng, good
        self._good = _Density(moves, good)
        self._other = _Density(moves, other)

    def sample(self, n: int) -> Designs:
        """Designs near good ones; some may be illegal, known, or the same."""
        drawn, crossed = (n + 2) // 3, (n + 1) // 3
        steps = self._rng.integers(1, _MAX_MOVES + 1, size=n // 3)
        children = self._moves.crossover(self._some(crossed), self._some(crossed))
        moved = self._moves.mutate(self._some(len(steps)), steps)
        return self._draw(drawn).concatenate(children).concatenate(moved)

    def score(self, designs: Designs) -> Floats:
        """Log of the density among good designs over that among others, shape (n,)."""
        codes = designs.codes
        return self._good.log(codes) - self._other.log(codes)

    def _some(self, n: int) -> Ints:
        return np.asarray(self._centres[self._rng.integers(len(self._centres), size=n)])

    def _draw(self, n: int) -> Designs:
        """From the density of the good designs."""
        codes = self._some(n).copy(order="F")
        for position, width in zip(self._moves.free.tolist(), self._good.widths, strict=True):
            active = np.flatnonzero(codes[:, position] >= 0)
            if not active.size:
                continue
            parameter = self._moves.space.parameters[position]
            here = codes[active, position]
            if isinstance(parameter, Permutation):
                moved = Mallows(parameter, width).draw(here, self._rng)
            elif parameter.ordered:
                shift = self._rng.standard_normal(len(here)) * min(_WIDER * width, 1.0)
                place = np.mod(parameter.unit_interval(here) + shift, 2.0)
                moved = parameter.from_unit_interval(1.0 - np.abs(1.0 - place))  # reflected
            else:
                elsewhere = self._rng.random(len(here)) < width
                moved = np.where(
                    elsewhere, self._rng.integers(parameter.size, size=len(here)), here
                )
            codes[active, position] = moved
        return self._moves.complete(codes)


class _Density:
    """A kernel density over designs.

    Attributes:
        widths: bandwidth of each free parameter: standard deviation in shares of the range,
            probability of another level than the centre's, or of a permutation the expected share
            of pairs of items that are ordered otherwise than in the centre.
    """

    def __init__(self, moves: Moves, centres: Ints) -> None:
        self._parameters = [(p, moves.space.parameters[p]) for p in moves.free.tolist()]
        self._centres = centres
        n, dimensions = len(centres), len(self._parameters)
        # The normal reference rule (Silverman, 1986), and its square for unordered levels
        # (Li and Racine, 2007, section 3.3).
        narrow = n ** (-1.0 / (4 + dimensions))
        self.widths: list[float] = []
        for position, parameter in self._parameters:
            active = centres[centres[:, position] >= 0, position]
            if isinstance(parameter, Permutation):
                apart = parameter.discordance(active, active).mean() if active.size else 0.5
                width = max(float(apart) * narrow**2, _LEAST_DISCORDANCE)
            elif not parameter.ordered:
                width = narrow**2 * (parameter.size - 1) / parameter.size
            else:
                spread = float(parameter.unit_interval(active).std()) if active.size else 0.0
                width = max(1.06 * spread * narrow, 0.5 / parameter.size, _NARROWEST)
            self.widths.append(width)

    def log(self, codes: Ints) -> Floats:
        """Log density of designs, up to a constant, shape (n,)."""
        total = np.zeros((len(codes), len(self._centres)))
        for (position, parameter), width in zip(self._parameters, self.widths, strict=True):
            here, there = codes[:, position], self._centres[:, position]
            both = (here >= 0)[:, None] & (there >= 0)[None, :]
            if isinstance(parameter, Permutation):
                model = Mallows(parameter, width)
                kernel = model.log(np.maximum(here, 0), np.maximum(there, 0))
            elif parameter.ordered:
                x, c = (parameter.unit_interval(np.maximum(v, 0)) for v in (here, there))
                kernel = -0.5 * ((x[:, None] - c[None, :]) / width) ** 2 - np.log(width)
            else:
                apart = width / max(1, parameter.size - 1) if width else 1.0
                kernel = np.where(here[:, None] == there[None, :], np.log1p(-width), np.log(apart))
            neither = (here < 0)[:, None] & (there < 0)[None, :]
            total += np.where(both, kernel, np.where(neither, 0.0, np.log(_MISMATCH)))
        largest = total.max(axis=1)
        return np.asarray(largest + np.log(np.exp(total - largest[:, None]).mean(axis=1)))
