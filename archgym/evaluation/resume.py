"""Resuming a trial: the log of what it has evaluated, and its comparison with the search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ResumedLog"]


@dataclass(frozen=True)
class ResumedLog:
    """What a trial evaluated before it was interrupted, in order.

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
