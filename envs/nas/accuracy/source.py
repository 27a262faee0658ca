"""The protocol of a source of accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from archgym.envs.nas.families import Architecture, Task

__all__ = ["AccuracySource"]


class AccuracySource(Protocol):
    """Gives the accuracy of architectures on their task; `choice.SOURCES` lists archgym's sources.

    A source that trains may have ``failures`` too: why there is no accuracy, by task,
    architecture's key and seed. A design whose network is among them has failed; one whose
    network has no accuracy for another reason is illegal.
    """

    @property
    def name(self) -> str:
        """The name in datasets."""

    @property
    def synthetic(self) -> bool:
        """Whether the accuracies belong to networks that nobody trained."""

    @property
    def epochs(self) -> tuple[int, ...]:
        """Epochs of training after which it knows the accuracy, ascending: its fidelities."""

    def accuracies(
        self, task: Task, architectures: Sequence[Architecture], epochs: int
    ) -> NDArray[np.float64]:
        """Accuracies (or intersections over union) in percent, shape (n_architectures,).

        NaN where the source knows none. Zero-cost sources give scores in place of percentages.

        Args:
            task: what is learned.
            architectures: of the task's family; without any, the call only checks the task.
            epochs: one of :attr:`epochs`.

        Raises:
            UnknownNameError, InvalidValueError: if the source has nothing on the task at all.
        """
