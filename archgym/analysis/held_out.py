"""What the best design of a trial gives on a workload that its search left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["HeldOut", "held_out_of"]

Metrics = dict[str, float | None]


@dataclass(frozen=True)
class HeldOut:
    """The best design of a trial on a workload that was not searched.

    Attributes:
        workload: its name.
        design: the best design of the trial.
        metrics: of the design on it, in their units; empty if there are none.
        baseline: metrics of the baseline design on it.
        feasible: whether the design keeps the limits on it, too.
        reason: why there are no metrics, or which limits are broken.
    """

    workload: str
    design: dict[str, Any] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=dict)
    baseline: Metrics = field(default_factory=dict)
    feasible: bool = False
    reason: str = ""


def held_out_of(data: Any) -> HeldOut | None:
    """The inverse of ``dataclasses.asdict``; ``None`` for what is nothing of the kind."""
    if not isinstance(data, Mapping) or set(data) != set(HeldOut.__dataclass_fields__):
        return None
    texts = all(isinstance(data[name], str) for name in ("workload", "reason"))
    numbers = all(_is_metrics(data[name]) for name in ("metrics", "baseline"))
    plain = isinstance(data["design"], dict) and isinstance(data["feasible"], bool)
    return HeldOut(**data) if texts and numbers and plain else None


def _is_metrics(data: Any) -> bool:
    return isinstance(data, dict) and all(
        value is None
        or (isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value))
        for value in data.values()
    )
