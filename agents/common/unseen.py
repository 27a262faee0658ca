"""The designs that a search has not met yet."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from archgym.agents.common.arrays import Bools, Floats
from archgym.agents.common.equivalence import Equivalence
from archgym.errors import SpaceTooLargeError
from archgym.evaluation.cache import KeyIndex
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs, DesignSpace

__all__ = ["Unseen"]

_MAX_ENUMERATED = 1 << 20
"""Spaces with more designs are never enumerated to find the last new ones."""
_MAX_PASSED_OVER = 1024
"""Favourites that may be passed over since they are likely equivalent to known designs."""
_FRUITLESS_BEFORE_ENUMERATION = 4
_FRUITLESS_ROUNDS = 16
"""Rounds of draws without a new design after which a larger space counts as exhausted."""


class Unseen:
    """Keeps account of all designs that a search proposed or learned of, and finds new ones.

    If it learns outcomes (:meth:`learn`), it prefers designs that are not likely equivalent to a
    known one (:mod:`archgym.agents.common.equivalence`).

    Args:
        space: the design space.
        rng: the only source of randomness.
    """

    def __init__(self, space: DesignSpace, rng: np.random.Generator) -> None:
        self.space = space
        self._rng = rng
        self._seen = KeyIndex(space.largest_key)
        self._equivalence = Equivalence(space)
        self._rest: Designs | None = None  # once enumerated: what is left, shuffled
        try:
            self.size: float = space.canonical_cardinality
        except SpaceTooLargeError:
            self.size = math.inf

    def __len__(self) -> int:
        """How many designs have been seen."""
        return len(self._seen)

    def __contains__(self, key: int) -> bool:
        return key in self._seen

    @property
    def exhausted(self) -> bool:
        """Whether no legal design is left."""
        return len(self._seen) >= self.size

    def add(self, designs: Designs) -> None:
        """Marks designs as seen; illegal ones, which are never proposed, are passed over."""
        if len(designs):
            self._mark(designs[self.space.legal(designs)])

    def learn(self, designs: Designs, outcomes: Outcomes) -> None:
        """Marks designs as seen, and learns from their metrics which parameters are dead."""
        self.add(designs)
        self._equivalence.learn(designs, outcomes)

    def likely_equivalent(self, designs: Designs) -> Bools:
        """Which designs are likely equivalent to a seen one, shape (n,)."""
        return self._equivalence.likely(designs.codes)

    def favourite(self, designs: Designs, values: Floats) -> int:
        """Row of the design with the largest value, likely equivalent ones passed over.

        Args:
            designs: unseen ones, at least one.
            values: shape (n,).
        """
        order = (-values).argsort(kind="stable")
        for row in order[:_MAX_PASSED_OVER].tolist():
            if not self.likely_equivalent(designs[row : row + 1])[0]:
                return int(row)
        return int(order[0])

    def take_best(self, designs: Designs, values: Floats) -> Designs:
        """The :meth:`favourite` alone, which counts as seen from now on."""
        row = self.favourite(designs, values)
        self.add(best := designs[row : row + 1])
        return best

    def sift(self, designs: Designs) -> Designs:
        """Those designs that are legal, unseen and not repeated, in order."""
        if not len(designs):
            return designs
        designs = designs[self.space.legal(designs)]
        rows: dict[int, int] = {}
        for row, key in enumerate(designs.keys()):
            if key not in self._seen:
                rows.setdefault(key, row)
        return designs[np.array(list(rows.values()), dtype=np.int64)]

    def take(
        self, n: int, draw: Callable[[int, int], Designs] | None = None, tries: int = 8
    ) -> Designs:
        """Up to ``n`` unseen legal designs, which count as seen from now on.

        Designs that are likely equivalent to seen ones are among them only when little else is
        left.

        Args:
            n: how many; fewer come back only when no more are left.
            draw: gives designs from a number and the number of failed tries before; may give
                seen or illegal ones. Without it, or once the tries are used up, the designs
                are random.
            tries: how often to draw.
        """
        taken = self.space.designs(())
        if draw is not None:
            for failures in range(tries):
                if len(taken) < n and not self.exhausted:
                    taken = self._take_from(
                        draw(n - len(taken), failures), taken, n, equivalent=False
                    )
        if len(taken) < n and self._equivalence.aware and self._rest is None:
            drawn = self.space.sample(max(16, n), self._rng)
            taken = self._take_from(drawn, taken, n, equivalent=False)
        fruitless = 0
        while len(taken) < n and not self.exhausted and fruitless < _FRUITLESS_ROUNDS:
            before = len(self._seen)
            drawn = self._random(n - len(taken), fruitless)
            taken = self._take_from(drawn, taken, n, equivalent=True)
            fruitless = 0 if len(self._seen) > before else fruitless + 1
        return taken

    def _mark(self, designs: Designs) -> None:
        keys = enumerate(designs.keys())  # a key's number is the latest if it was not there
        new = [row for row, key in keys if len(self._seen) == self._seen.add(key)]
        self._equivalence.expect(designs.codes[new])

    def _take_from(self, drawn: Designs, taken: Designs, n: int, *, equivalent: bool) -> Designs:
        """``taken`` and unseen designs of those drawn, likely equivalent ones only if asked."""
        new = self.sift(drawn)
        if equivalent or not self._equivalence.aware:
            new = new[: n - len(taken)]
            self._mark(new)
            return taken.concatenate(new)
        for row in range(len(new)):
            design = new[row : row + 1]
            if len(taken) < n and not self.likely_equivalent(design)[0]:
                self._mark(design)
                taken = taken.concatenate(design)
        return taken

    def _random(self, n: int, fruitless: int) -> Designs:
        """Random legal designs; once few of them are new, ``n`` of those that are left."""
        if (
            self._rest is None
            and self.size <= _MAX_ENUMERATED
            and (2 * len(self._seen) >= self.size or fruitless >= _FRUITLESS_BEFORE_ENUMERATION)
        ):
            left = [self.sift(chunk).codes for chunk in self.space.enumerate()]
            codes = np.concatenate(left)
            self._rest = Designs(self.space, codes[self._rng.permutation(len(codes))])
        if self._rest is None:
            return self.space.sample(max(16, n) << min(fruitless, 4), self._rng)
        drawn, self._rest = self._rest[:n], self._rest[n:]
        return drawn
