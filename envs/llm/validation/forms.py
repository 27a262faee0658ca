"""What the readers of all forms of tables share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Case", "NotComparable"]


class NotComparable(Exception):
    """Why a row is skipped."""


@dataclass(frozen=True)
class Case:
    """A row of a table.

    Attributes:
        label: of rows that are ranked against one another.
        workload: what was trained on what.
        design: the plan.
        metrics: the figures, in the environment's units.
    """

    label: str
    workload: Mapping[str, Any]
    design: Mapping[str, Any]
    metrics: Mapping[str, float]
