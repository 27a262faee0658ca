"""The protocol of a trial's recorder, which writes the rows; :mod:`archgym.data` has one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from archgym.evaluation.outcome import Row
from archgym.evaluation.resumed_log import ResumedLog


class Recorder(Protocol):
    """Takes the evaluations of one trial; see :mod:`archgym.data`.

    Attributes:
        resumed: what a resumed trial has evaluated already; ``None`` for a new trial.
    """

    resumed: ResumedLog | None

    def write(self, first_step: int, rows: Iterable[Row], agent_s: float) -> None:
        """Hands rows to the operating system before the agent gets the outcomes.

        Args:
            first_step: index of the first one in the trial.
            rows: evaluations, in order.
            agent_s: seconds that the agent spent on each.
        """
        ...
