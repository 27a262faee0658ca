"""What the evaluation of designs comes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.space import Designs

__all__ = ["STATUSES", "Incidental", "Outcome", "Outcomes"]

STATUSES = ("ok", "illegal", "failed", "timeout")
"""``illegal``: a rule is broken or the simulator does not cover the design, nothing was run."""


@dataclass(frozen=True)
class Outcome:
    """The evaluation of one design.

    Attributes:
        design: the canonical design.
        metrics: value of each metric in its unit, ``None`` for one that the simulator does not
            give; empty unless the status is ``ok``.
        objectives: value of each goal, minimised; ``inf`` unless the status is ``ok``.
        violations: relative excess over each limit.
        reward: bounded score, larger is better.
        status: one of :data:`STATUSES`.
        reason: why the design is illegal or failed, or which limits it breaks.
        feasible: legal, simulated, and within all limits.
        cached: known before, so not simulated and not counted.
        simulation_s: seconds that the simulator took.
    """

    design: dict[str, Any]
    metrics: dict[str, float | None]
    objectives: tuple[float, ...]
    violations: tuple[float, ...]
    reward: float
    status: str
    reason: str
    feasible: bool
    cached: bool
    simulation_s: float


@dataclass(frozen=True)
class Outcomes:
    """The evaluation of a batch: a sequence of :class:`Outcome` that is stored as arrays.

    Attributes:
        designs: the designs, in the order of the proposal.
        metric_names: names of the columns of ``metrics``.
        metrics: NaN where there is no value, shape (n, n_metrics).
        objectives: minimised, ``inf`` unless ``ok``, shape (n, n_goals).
        costs: log ratio of each goal to the baseline, ``inf`` unless ``ok``, shape (n, n_goals).
        violations: shape (n, n_limits).
        reward: shape (n,).
        status: index into :data:`STATUSES`, shape (n,).
        reason: one text a design.
        feasible: shape (n,).
        cached: shape (n,).
        simulation_s: shape (n,).
    """

    designs: Designs
    metric_names: tuple[str, ...]
    metrics: NDArray[np.float64]
    objectives: NDArray[np.float64]
    costs: NDArray[np.float64]
    violations: NDArray[np.float64]
    reward: NDArray[np.float64]
    status: NDArray[np.int8]
    reason: list[str]
    feasible: NDArray[np.bool_]
    cached: NDArray[np.bool_]
    simulation_s: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.reward)

    def __iter__(self) -> Iterator[Outcome]:
        return (self[i] for i in range(len(self)))

    def tail(self, start: int) -> Outcomes:
        """The outcomes from ``start`` on."""
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "metric_names"}
        return Outcomes(
            metric_names=self.metric_names, **{k: v[start:] for k, v in columns.items()}
        )

    def __getitem__(self, i: int) -> Outcome:
        status = STATUSES[self.status[i]]
        metrics: dict[str, float | None] = {}
        if status == "ok":
            values = self.metrics[i].tolist()
            metrics = {
                name: value if value == value else None  # NaN: not given by the simulator
                for name, value in zip(self.metric_names, values, strict=True)
            }
        return Outcome(
            design=self.designs[i],
            metrics=metrics,
            objectives=tuple(self.objectives[i].tolist()),
            violations=tuple(self.violations[i].tolist()),
            reward=float(self.reward[i]),
            status=status,
            reason=self.reason[i],
            feasible=bool(self.feasible[i]),
            cached=bool(self.cached[i]),
            simulation_s=float(self.simulation_s[i]),
        )


class Incidental(float):
    """A number about how a result came about (time taken, taken from memory), not the result.

    Two of them always compare equal, so that comparing two results, as Gymnasium's
    determinism check does, compares what has to be deterministic. With any other number they
    compare as numbers do.

    >>> Incidental(0.2) == Incidental(0.3), Incidental(1.0) == True, bool(Incidental(0.0))
    (True, True, False)
    """

    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Incidental) or float.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other
