"""The best designs seen so far: one, or a Pareto set."""

from __future__ import annotations

import moocore
import numpy as np

from archgym.evaluation.outcome import Outcome, Outcomes
from archgym.problem.status import Status


class Best:
    """Keeps the best outcome, and with several goals the non-dominated ones.

    A feasible design beats an infeasible one; among feasible ones the better objective wins
    (with several goals the larger reward, which follows their weighted geometric mean), among
    infeasible ones the smaller excess over the limits. Of equals the first stays. What was
    simulated below full fidelity is an estimate, and never the best.

    Attributes:
        outcome: the best so far, ``None`` before anything was simulated.
        at: number of simulations after which it was found.
    """

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self.at = 0
        self._rank: tuple[float, float] = (np.inf, np.inf)
        self._simulated = 0
        self._front: list[Outcome] = []
        self._values = np.empty((0, 0))

    def update(self, outcomes: Outcomes) -> bool:
        """Compares new outcomes with the best one; true if that changed."""
        full = outcomes.fidelity == 1
        counted = ~outcomes.cached & (outcomes.status != Status.ILLEGAL)
        ok = np.flatnonzero((outcomes.status == Status.OK) & counted & full)
        changed = False
        if ok.size:
            if outcomes.objectives.shape[1] > 1:
                self._extend_front(outcomes, ok[outcomes.feasible[ok]])
                key = -outcomes.reward[ok]
            else:
                key = outcomes.objectives[ok, 0]
            excess = np.maximum(outcomes.violations[ok], 0.0).sum(axis=1)
            first = int(np.lexsort((np.where(excess > 0, 0.0, key), excess))[0])
            rank = (float(excess[first]), float(key[first]) if excess[first] == 0 else 0.0)
            if rank < self._rank:
                self._rank, self.outcome = rank, outcomes[int(ok[first])]
                self.at = self._simulated + int(counted[: ok[first] + 1].sum())
                changed = True
        self._simulated += int(counted.sum())
        return changed

    @property
    def front(self) -> list[Outcome]:
        """Non-dominated feasible outcomes; with one goal the best one, if it is feasible."""
        if self._front:
            return list(self._front)
        return [self.outcome] if self.outcome is not None and self.outcome.feasible else []

    def _extend_front(
        self, outcomes: Outcomes, rows: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> None:
        if not rows.size:
            return
        new = outcomes.objectives[rows]
        values = np.concatenate([self._values, new]) if self._front else new
        keep = np.flatnonzero(moocore.is_nondominated(values, keep_weakly=False))
        held = len(self._front)
        self._front = [
            self._front[i] if i < held else outcomes[int(rows[i - held])] for i in keep.tolist()
        ]
        self._values = values[keep]
