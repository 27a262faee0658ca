"""Outcomes: what the evaluation of designs gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.problem.status import LABELS, Status
from archgym.space import Designs


class Row(NamedTuple):
    """The evaluation of one design as the core and the recorder hold it: plain numbers.

    Attributes:
        codes: the canonical design's codes.
        metrics: value of each metric in its unit, NaN where there is none; if the status is
            ``stopped``, predicted ones, which objectives, costs, violations and reward follow.
        objectives: value of each goal, minimised; ``inf`` unless the status is ``ok``.
        costs: log ratio of each goal to the baseline; ``inf`` unless the status is ``ok``.
        violations: relative excess over each limit, negative where it is kept; NaN unless the
            status is ``ok``.
        reward: bounded score, larger is better.
        status: a :class:`~archgym.problem.status.Status`.
        reason: why the design is illegal or failed, or which limits it breaks.
        feasible: legal, simulated, and within all limits.
        cached: evaluated before in this trial, so not simulated and not counted.
        simulation_s: seconds that the simulator took.
        fidelity: at which it was simulated; 1 is the full simulation.
    """

    codes: Sequence[int]
    metrics: Sequence[float]
    objectives: Sequence[float]
    costs: Sequence[float]
    violations: Sequence[float]
    reward: float
    status: int
    reason: str
    feasible: bool
    cached: bool
    simulation_s: float
    fidelity: float

    def metrics_by_name(self, names: Sequence[str]) -> dict[str, float | None]:
        """Each metric, ``None`` for one that is not given; empty unless the status is ``ok``."""
        if self.status:
            return NoMetrics(f"{LABELS[self.status]}: {self.reason}")
        return {
            name: value if value == value else None  # NaN: not given by the simulator
            for name, value in zip(names, self.metrics, strict=True)
        }


class NoMetrics(dict[str, float | None]):
    """The metrics of a design that has none: empty, and says why when one is asked for."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why

    def __missing__(self, name: str) -> float | None:
        """Raises the error.

        Raises:
            KeyError: always.
        """
        raise KeyError(f"the design has no {name}; it is {self.why}")

    def __reduce__(self) -> tuple[type[NoMetrics], tuple[str]]:
        return NoMetrics, (self.why,)


@dataclass(frozen=True)
class Outcome:
    """The evaluation of one design.

    Attributes:
        design: the canonical design.
        metrics: value of each metric in its unit, ``None`` for one that the simulator does not
            give; empty unless the status is ``ok``.
        objectives: value of each goal, minimised; ``inf`` unless the status is ``ok``.
        violations: relative excess over each limit, negative where it is kept.
        reward: bounded score, larger is better.
        status: label of a :class:`~archgym.problem.status.Status`: ``ok``, ``illegal``,
            ``failed``, ``timeout`` or ``stopped``.
        reason: why the design is illegal, failed or was stopped, or which limits it breaks.
        feasible: legal, simulated, and within all limits.
        cached: evaluated before in this trial, so not simulated and not counted.
        simulation_s: seconds that the simulator took.
        fidelity: at which it was simulated; 1 is the full simulation.
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
    fidelity: float = 1.0

    @staticmethod
    def of(row: Row, design: dict[str, Any], metric_names: Sequence[str]) -> Outcome:
        """The outcome of one row, with names in place of codes."""
        return Outcome(
            design=design,
            metrics=row.metrics_by_name(metric_names),
            objectives=tuple(row.objectives),
            violations=tuple(row.violations),
            reward=row.reward,
            status=LABELS[row.status],
            reason=row.reason,
            feasible=row.feasible,
            cached=row.cached,
            simulation_s=row.simulation_s,
            fidelity=row.fidelity,
        )


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
        status: codes of :class:`~archgym.problem.status.Status`, int8, shape (n,).
        reason: one text a design.
        feasible: shape (n,).
        cached: shape (n,).
        simulation_s: shape (n,).
        fidelity: at which they were simulated, shape (n,); 1 is the full simulation.
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
    fidelity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.reward)

    def __iter__(self) -> Iterator[Outcome]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> Outcome:
        (row,) = self.rows(i, i + 1) if i >= 0 else self.rows(len(self) + i, len(self) + i + 1)
        return Outcome.of(row, self.designs.space.design(row.codes), self.metric_names)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The outcomes from ``start`` to before ``stop`` as plain numbers."""
        part = slice(start, len(self) if stop is None else stop)
        columns: list[Any] = [self.designs.codes[part].tolist()]
        for name in Row._fields[1:]:
            column = getattr(self, name)[part]
            columns.append(column if name == "reason" else column.tolist())
        return map(Row._make, zip(*columns, strict=True))

    @staticmethod
    def of(row: Row, designs: Designs, metric_names: tuple[str, ...]) -> Outcomes:
        """The outcome of one design as a batch of one."""
        columns: dict[str, Any] = {name: np.array([getattr(row, name)]) for name in Row._fields[1:]}
        columns |= {"status": columns["status"].astype(np.int8), "reason": [row.reason]}
        return Outcomes(designs, metric_names, **columns)


def told(outcomes: Outcomes) -> Outcomes:
    """The outcomes as an agent learns them.

    A design that was stopped early counts as one that was simulated, with the metrics that were
    predicted for it: they are worse than the best, and an agent that searches by rank or by a
    model needs to know by how much.
    """
    stopped = outcomes.status == Status.STOPPED
    if not stopped.any():
        return outcomes
    keeps = ~(outcomes.violations > 0).any(axis=1)
    return replace(
        outcomes,
        status=np.where(stopped, np.int8(Status.OK), outcomes.status),
        feasible=outcomes.feasible | (stopped & keeps),
    )


def joined(first: Outcomes, second: Outcomes) -> Outcomes:
    """The outcomes of two batches as those of one."""
    columns: dict[str, Any] = {}
    for name in Row._fields[1:]:
        one, other = getattr(first, name), getattr(second, name)
        columns[name] = one + other if name == "reason" else np.concatenate([one, other])
    return Outcomes(first.designs.concatenate(second.designs), first.metric_names, **columns)


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
