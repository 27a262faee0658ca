"""Resuming a trial: its search is run again, and answered from the log of what it evaluated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.errors import ReplayMismatchError
from archgym.problem.status import Status
from archgym.space import Designs


@dataclass(frozen=True)
class ResumedLog:
    """The evaluations of a trial before it was interrupted, in order.

    Attributes:
        codes: designs, shape (n, n_parameters).
        metrics: NaN where there are none, shape (n, n_metrics).
        status: codes of :class:`~archgym.problem.status.Status`, shape (n,).
        reason: one text a row.
        fidelity: at which the designs were evaluated, shape (n,).
    """

    codes: NDArray[np.int64]
    metrics: NDArray[np.float64]
    status: NDArray[np.int8]
    reason: list[str]
    fidelity: NDArray[np.float64]

    def result(self, step: int) -> tuple[Status, list[float], str]:
        """Status, metrics and, of a failed design, the reason of the design at a step."""
        status = Status(self.status[step])
        reason = self.reason[step] if status != Status.OK else ""
        return status, self.metrics[step].tolist(), reason

    def compare(self, step: int, designs: Designs, fidelity: float) -> int:
        """Compares the next designs of the resumed search with the log.

        Args:
            step: of the first design.
            designs: that the search proposes.
            fidelity: at which it wants them simulated.

        Returns:
            How many of the designs the log holds.

        Raises:
            ReplayMismatchError: if the log holds another design, or another fidelity.
        """
        part = slice(step, step + len(designs))
        logged, at = self.codes[part], self.fidelity[part]
        differs = (designs.codes[: len(logged)] != logged).any(axis=1) | (at != fidelity)
        if differs.any():
            i = int(differs.argmax())
            now, then = (
                "" if value == 1 else f" at fidelity {value:g}" for value in (fidelity, at[i])
            )
            raise ReplayMismatchError(
                f"step {step + i}: the resumed search proposes {designs[i]}{now}, but its log "
                f"holds {designs.space.design(logged[i].tolist())}{then}: code, seed or "
                "hyperparameters changed, or the agent plans by its budget and that was raised"
            )
        return len(logged)
