"""How the evaluation of a design ended."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class Status(IntEnum):
    """How the evaluation of a design ended: a code in arrays and tables, a label in texts.

    >>> Status.TIMEOUT.label, Status(0).label, STATUS_OF["failed"] == 2
    ('timeout', 'ok', True)

    Attributes:
        label: the text in datasets, reports and :attr:`archgym.Outcome.status`.
    """

    label: str

    OK = 0
    ILLEGAL = 1
    """A rule is broken, or the simulator does not cover the design: nothing was simulated."""
    FAILED = 2
    TIMEOUT = 3
    STOPPED = 4
    """The search ended the simulation, since the design was clearly worse than the best one."""

    def __init__(self, code: int) -> None:
        self.label = self.name.lower()


STATUS_OF: Final[Mapping[str, Status]] = {status.label: status for status in Status}
"""Each status under its label."""
LABELS: Final = tuple(STATUS_OF)
"""Label of each status, by its code."""
