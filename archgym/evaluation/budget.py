"""The budget of a trial: what may be spent, what is spent, and how many designs still fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from archgym.problem.fidelity import Fidelity, cost_units


class Budget:
    """Counts what a trial spends.

    Each distinct legal design that is simulated, a failed one included, costs 1 at full fidelity
    and the relative cost of its fidelity otherwise. Proposals are counted in the same way,
    duplicates and illegal ones included, against a multiple of the budget.

    >>> from archgym.problem.fidelity import FULL
    >>> budget = Budget(3, 10, [FULL])
    >>> budget.spend(0, 2, 5)
    >>> budget.spent, budget.room(0), budget.exhausted
    (2.0, (1, 25), False)

    Args:
        limit: the budget; ``None`` for no end.
        proposals_per_budget: the multiple.
        fidelities: of the simulator, ascending. A *level* is the index of a fidelity from the
            full one, 0, downwards.
    """

    def __init__(
        self, limit: int | None, proposals_per_budget: int, fidelities: Sequence[Fidelity]
    ) -> None:
        self.limit = limit
        self._costs = cost_units(fidelities)[::-1]
        self._spent = self._proposed = 0
        self._max_spent = math.inf if limit is None else limit * self._costs[0]
        self._max_proposed = self._max_spent * proposals_per_budget

    @property
    def spent(self) -> float:
        """The simulations so far, each by the relative cost of its fidelity."""
        return self._spent / self._costs[0]

    @property
    def exhausted(self) -> bool:
        """Whether no simulation fits any more, at the cheapest level either."""
        cheapest = self._costs[-1]
        return (
            self._spent + cheapest > self._max_spent
            or self._proposed + cheapest > self._max_proposed
        )

    def room(self, level: int) -> tuple[float, float]:
        """How many designs may still be simulated at a level, and how many proposed."""
        if self.limit is None:
            return math.inf, math.inf
        cost = self._costs[level]
        return (
            (self._max_spent - self._spent) // cost,
            (self._max_proposed - self._proposed) // cost,
        )

    def spend(self, level: int, simulated: int, proposed: int) -> None:
        """Counts designs that were simulated, and that were proposed, at a level."""
        cost = self._costs[level]
        self._spent += simulated * cost
        self._proposed += proposed * cost
