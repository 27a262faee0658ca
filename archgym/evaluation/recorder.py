"""What the evaluation core asks of whoever records a trial; :mod:`archgym.data` does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from archgym.evaluation.outcome import Row

__all__ = ["Recorder", "Replay"]


class Replay(Protocol):
    """What a trial evaluated before it was interrupted, in order."""

    @property
    def codes(self) -> NDArray[np.int64]:
        """Designs, shape (n, n_parameters)."""
        ...

    @property
    def metrics(self) -> NDArray[np.float64]:
        """NaN where there are none, shape (n, n_metrics)."""
        ...

    @property
    def status(self) -> NDArray[np.int8]:
        """A :class:`~archgym.problem.status.Status`, shape (n,)."""
        ...

    @property
    def reason(self) -> Sequence[str]:
        """One text a row."""
        ...

    @property
    def fidelity(self) -> NDArray[np.float64]:
        """At which fidelity, shape (n,)."""
        ...


class Recorder(Protocol):
    """Takes the evaluations of one trial; see :mod:`archgym.data`."""

    replay: Replay | None

    def write(self, first_step: int, rows: Iterable[Row], agent_s: float) -> None:
        """Hands rows to the operating system before the agent is told.

        Args:
            first_step: number of the first one in the trial.
            rows: evaluations, in order.
            agent_s: seconds that the agent spent on each.
        """
        ...
