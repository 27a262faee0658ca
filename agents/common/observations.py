"""The evaluated designs that a model-based search learns from, and those still in flight."""

from __future__ import annotations

import dataclasses

import numpy as np

from archgym.agents.common.arrays import Floats, Ints
from archgym.agents.common.scores import costs, total_excess
from archgym.evaluation.outcome import Outcomes
from archgym.problem.status import Status
from archgym.space import Designs, DesignSpace
from archgym.space.definition import SpaceDefinition


class Observations:
    """The data of the models: every design once, in the order in which outcomes came.

    Args:
        space: the design space.
        n_goals: goals of the objective.

    Attributes:
        codes: of the observed designs, shape (n, n_parameters).
        costs: one number each (:func:`archgym.agents.common.scores.costs`), shape (n,).
        goals: cost of each goal, shape (n, n_goals).
        excess: by how much each limit is broken, shape (n, n_limits).
        errors: standard error of each goal's cost, 0 where it is not known, shape (n, n_goals).
        total_excess: over all limits, infinite for a failure, shape (n,).
        failed: which have no metrics, shape (n,).
    """

    def __init__(self, space: DesignSpace, n_goals: int) -> None:
        self.codes = space.designs(()).codes
        self.costs = np.empty(0)
        self.goals = np.empty((0, n_goals))
        self.errors = np.empty((0, n_goals))
        self.excess = np.empty((0, 0))
        self.total_excess = np.empty(0)
        self.failed = np.empty(0, dtype=np.bool_)
        self._rows: dict[int, int] = {}  # of each design by its key
        self._waiting: dict[int, Ints] = {}

    def __len__(self) -> int:
        """How many designs were observed."""
        return len(self.codes)

    @property
    def asked(self) -> int:
        """How many designs were observed or are in flight."""
        return len(self._rows) + len(self._waiting)

    @property
    def learned(self) -> int:
        """How many designs have metrics."""
        return int((~self.failed).sum())

    @property
    def waiting(self) -> Ints:
        """Codes of the designs without outcome, the oldest first, shape (n, n_parameters)."""
        return np.concatenate([self.codes[:0], *self._waiting.values()])

    def wait_for(self, designs: Designs) -> None:
        """Notes that designs were asked for."""
        self._waiting.update(zip(designs.keys(), designs.codes[:, None], strict=True))

    def learn(
        self, designs: Designs, outcomes: Outcomes, errors: Floats | None = None
    ) -> tuple[int, bool]:
        """Takes in outcomes; those of designs observed before are ignored.

        Args:
            designs: the designs.
            outcomes: of each.
            errors: standard errors of costs, shape (n, n_goals).

        Returns:
            How many are new, and whether any of all was waited for.
        """
        new, expected = [], False
        for row, key in enumerate(designs.keys()):
            expected |= self._waiting.pop(key, None) is not None
            if key not in self._rows:
                self._rows[key] = len(self._rows)
                new.append(row)
        excess, goals = outcomes.violations[new], outcomes.costs[new]
        self.excess = np.concatenate([self.excess, excess]) if len(self) else excess
        self.goals = np.concatenate([self.goals, goals]) if len(self) else goals
        errors = np.zeros_like(outcomes.costs) if errors is None else errors
        self.errors = np.concatenate([self.errors, errors[new]])
        self.total_excess = np.concatenate([self.total_excess, total_excess(outcomes)[new]])
        self.codes = np.concatenate([self.codes, designs.codes[new]])
        self.costs = np.concatenate([self.costs, costs(outcomes)[new]])
        self.failed = np.concatenate([self.failed, outcomes.status[new] != Status.OK])
        return len(new), expected

    def ranked(self) -> Ints:
        """Rows of all designs, the best first, shape (n,)."""
        return self.costs.argsort(kind="stable")

    def rows(self, most: int) -> Ints:
        """Rows to learn from: all, or if they are more than ``most``, best and newest half."""
        if len(self) <= most:
            return np.arange(len(self))
        best = self.ranked()[: most // 2]
        others = np.setdiff1d(np.arange(len(self)), best)
        return np.sort(np.concatenate([best, others[-(most - len(best)) :]]))


def some_outcomes(outcomes: Outcomes, rows: Ints, space: SpaceDefinition) -> Outcomes:
    """Some of the outcomes.

    Args:
        outcomes: all.
        rows: which.
        space: that of their designs, or another form of it.
    """
    changes = {
        field.name: getattr(outcomes, field.name)[rows]
        for field in dataclasses.fields(outcomes)
        if isinstance(getattr(outcomes, field.name), np.ndarray)
    }
    return dataclasses.replace(
        outcomes,
        **changes,
        designs=Designs(space, outcomes.designs.codes[rows]),
        reason=[outcomes.reason[row] for row in rows.tolist()],
    )
