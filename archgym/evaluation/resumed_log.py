"""Resuming a trial: its search is run again, and answered from the log of what it evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from archgym.errors import ReplayMismatchError
from archgym.problem.status import Status
from archgym.space import Designs


@dataclass(frozen=True)
class ResumedLog:
    """The evaluations of a trial before it was interrupted, by step.

    Steps are missing where a batch was interrupted whose simulations ended in any order.

    Attributes:
        steps: of the rows, ascending, shape (n,).
        codes: designs, shape (n, n_parameters).
        metrics: NaN where there are none, predicted ones of a run that was stopped early, shape
            (n, n_metrics).
        status: codes of :class:`~archgym.problem.status.Status`, shape (n,).
        reason: one text a row.
        fidelity: at which the designs were evaluated, shape (n,).
        seconds: that the simulations took, shape (n,).
        proposal: number of the proposal that a row is the outcome of, -1 where that is its step,
            shape (n,).
        proposed: number of proposals before the outcome was there, -1 likewise, shape (n,).
        ended: when the outcome was there, seconds since the epoch, shape (n,).
        partial: what the run of a row had on the way, a JSON text or ``None``.
    """

    steps: NDArray[np.int64]
    codes: NDArray[np.int64]
    metrics: NDArray[np.float64]
    status: NDArray[np.int8]
    reason: list[str]
    fidelity: NDArray[np.float64]
    seconds: NDArray[np.float64]
    proposal: NDArray[np.int64]
    proposed: NDArray[np.int64]
    ended: NDArray[np.float64]
    partial: list[str | None]

    @cached_property
    def whole(self) -> int:
        """Number of rows before the first missing step."""
        gaps = np.flatnonzero(self.steps != np.arange(len(self.steps)))
        return int(gaps[0]) if len(gaps) else len(self.steps)

    def row(self, step: int) -> int:
        """The row of a step; -1 if it is missing."""
        if step < self.whole:
            return step
        row = int(self.steps.searchsorted(step))
        return row if row < len(self.steps) and self.steps[row] == step else -1

    def result(self, row: int) -> tuple[Status, list[float], str]:
        """Status, metrics and, of a failed design, the reason of a row."""
        status = Status(self.status[row])
        reason = self.reason[row] if status != Status.OK else ""
        return status, self.metrics[row].tolist(), reason

    def compare(self, step: int, designs: Designs, fidelity: float) -> list[int]:
        """Compares the next designs of the resumed search with the log.

        Args:
            step: of the first design.
            designs: that the search proposes.
            fidelity: at which it wants them simulated.

        Returns:
            The row of each design, -1 where the log does not hold it.

        Raises:
            ReplayMismatchError: if the log holds another design, or another fidelity.
        """
        if step > (self.steps[-1] if len(self.steps) else -1):
            return [-1] * len(designs)
        rows = [self.row(step + i) for i in range(len(designs))]
        there = np.array(rows, dtype=np.int64)
        held = np.flatnonzero(there >= 0)
        logged, at = self.codes[there[held]], self.fidelity[there[held]]
        differs = (designs.codes[held] != logged).any(axis=1) | (at != fidelity)
        if differs.any():
            i = int(differs.argmax())
            now, then = (
                "" if value == 1 else f" at fidelity {value:g}" for value in (fidelity, at[i])
            )
            raise ReplayMismatchError(
                f"step {step + held[i]}: the resumed search proposes {designs[int(held[i])]}{now}, "
                f"but its log holds {designs.space.design(logged[i].tolist())}{then}: code, seed "
                "or hyperparameters changed, or the agent draws from another generator than its "
                "own, keeps something from an earlier search, or plans by its budget and that was "
                "raised"
            )
        return rows
