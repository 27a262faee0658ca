"""The budget of a trial: what may be spent, what is spent, and how many designs still fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from archgym.errors import InvalidValueError, check_integer
from archgym.problem.fidelity import Fidelity, cost_units

MAX_BUDGET = 1_000_000_000
"""Designs of a search: each that was evaluated is kept, in at least 100 bytes."""
_LEAST_PROPOSALS = 1000
"""Simulations that the limit on proposals assumes at least where only hours are limited."""


def check_budget(designs: int | None, hours: float | None, combinations: float) -> int | None:
    """The designs that a search may simulate, as a plain integer.

    Args:
        designs: the budget; ``None`` for no end.
        hours: that all simulations take together; ``None`` for no limit.
        combinations: number of designs of the space, at most.

    Raises:
        InvalidValueError: without any limit, for a number that is no positive integer, or one
            whose designs no memory would hold: larger than :data:`MAX_BUDGET`, as the space is.
    """
    if designs is not None:
        designs = check_integer("budget", designs, 1)
    elif hours is None:
        raise InvalidValueError("a search needs a budget: a number of designs, or hours")
    if designs is not None and min(designs, combinations) > MAX_BUDGET:
        raise InvalidValueError(
            f"budget is {designs:,} designs; a search keeps each design that it evaluated, so at "
            f"most {MAX_BUDGET:,} are allowed"
        )
    return designs


class Budget:
    """Counts what a trial spends.

    Each distinct legal design that is simulated, a failed one included, costs 1 at full fidelity
    and the relative cost of its fidelity otherwise. Proposals are counted in the same way,
    duplicates and illegal ones included, against a multiple of the budget. Designs in flight hold
    a reservation until their outcome is there. Hours of simulation may be limited instead, or as
    well; what is in flight when they are spent still ends.

    >>> from archgym.problem.fidelity import FULL
    >>> budget = Budget(3, 10, [FULL])
    >>> budget.spend(0, 2, 5)
    >>> budget.spent, budget.room(0), budget.exhausted
    (2.0, (1, 25), False)
    >>> budget.reserve(0, 1, 1)
    >>> budget.room(0), budget.exhausted
    ((0, 24), True)

    Args:
        limit: the budget; ``None`` for no end.
        proposals_per_budget: the multiple.
        fidelities: of the simulator, ascending. A *level* is the index of a fidelity from the
            full one, 0, downwards.
        hours: limit on the hours that all simulations take together; ``None`` for no end.

    Attributes:
        bounded: whether anything is limited.
        seconds: that the simulations took so far.
    """

    def __init__(
        self,
        limit: int | None,
        proposals_per_budget: int,
        fidelities: Sequence[Fidelity],
        hours: float | None = None,
    ) -> None:
        self.limit, self.hours = limit, hours
        self.bounded = limit is not None or hours is not None
        self.seconds = 0.0
        self._costs = cost_units(fidelities)[::-1]
        self._spent = self._proposed = 0  # with what is reserved
        self._reserved = 0
        self._max_seconds = math.inf if hours is None else hours * 3600.0
        self._proposals_per_budget = proposals_per_budget
        self._max_spent = math.inf if limit is None else limit * self._costs[0]
        self._max_proposed = self._max_spent * proposals_per_budget

    @property
    def spent(self) -> float:
        """The simulations so far, each by the relative cost of its fidelity."""
        return (self._spent - self._reserved) / self._costs[0]

    @property
    def exhausted(self) -> bool:
        """Whether no simulation fits any more, at the cheapest level either."""
        cheapest = self._costs[-1]
        return (
            self._spent + cheapest > self._max_spent
            or self._proposed + cheapest > self._most_proposed
            or self.seconds >= self._max_seconds
        )

    def room(self, level: int) -> tuple[float, float]:
        """How many designs may still be simulated at a level, and how many proposed."""
        if not self.bounded:
            return math.inf, math.inf
        if self.seconds >= self._max_seconds:
            return 0, 0
        cost = self._costs[level]
        return (
            (self._max_spent - self._spent) // cost,
            (self._most_proposed - self._proposed) // cost,
        )

    def spend(self, level: int, simulated: int, proposed: int, seconds: float = 0.0) -> None:
        """Counts designs that were simulated, and that were proposed, at a level."""
        cost = self._costs[level]
        self._spent += simulated * cost
        self._proposed += proposed * cost
        self.seconds += seconds

    def reserve(self, level: int, simulated: int, proposed: int) -> None:
        """Keeps room for designs in flight; negative numbers give it back."""
        cost = self._costs[level]
        self._spent += simulated * cost
        self._reserved += simulated * cost
        self._proposed += proposed * cost

    @property
    def _most_proposed(self) -> float:
        if self.limit is not None:
            return self._max_proposed
        if self.hours is None:
            return math.inf
        simulated = max(self._spent, _LEAST_PROPOSALS * self._costs[0])
        return simulated * self._proposals_per_budget
