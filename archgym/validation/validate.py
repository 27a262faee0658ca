"""Validation: how well an environment's simulator agrees with reference figures.

The figures come from a table (:meth:`archgym.Environment.references`) or from another simulator
that runs beside it (:func:`live_reference`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, InvalidValueError, UnknownNameError
from archgym.problem.reference import Reference, ReferenceRow, Skipped
from archgym.problem.status import Status
from archgym.space import DesignSpace
from archgym.validation.agreement import Agreement, Summary, agreement, summarise

MIN_SPREAD = 0.02
"""A case in which a metric varies by less does not count for the ranking of designs by it."""


class RowError(NamedTuple):
    """How far one figure of one row is off: ``error`` is ours by the reference's, less 1."""

    metric: str
    row: ReferenceRow
    reference: float
    ours: float
    error: float


@dataclass(frozen=True)
class Validation:
    """The result of a validation.

    Attributes:
        reference: what was compared with.
        metrics: names of the metrics compared.
        ours: our figures, NaN where there are none, shape (n_rows, n_metrics).
        failed: rows that our simulator could not evaluate.
        agreements: each metric in each case.
        summaries: each metric over the cases in which it varies.
        min_spread: by how much a metric has to vary in those.
    """

    reference: Reference
    metrics: tuple[str, ...]
    ours: NDArray[np.float64] = field(repr=False)
    failed: tuple[Skipped, ...]
    agreements: tuple[Agreement, ...]
    summaries: tuple[Summary, ...]
    min_spread: float

    def summary(self, metric: str) -> Summary:
        """The summary of one metric.

        Raises:
            UnknownNameError: if it was not compared.
        """
        for one in self.summaries:
            if one.metric == metric:
                return one
        raise UnknownNameError("metric", metric, self.metrics)

    def worst_rows(self, metric: str, n: int = 5) -> list[RowError]:
        """The rows that are furthest off in a metric, the worst first."""
        column = self.metrics.index(metric)
        errors = [
            RowError(metric, row, true, float(ours), float(ours) / true - 1)
            for row, ours in zip(self.reference.rows, self.ours[:, column], strict=True)
            if (true := row.metrics.get(metric)) and ours == ours
        ]
        return sorted(errors, key=lambda error: -abs(error.error))[:n]

    def to_json(self) -> dict[str, Any]:
        """A JSON object; figures that are not defined are NaN or infinite."""
        reference = self.reference
        return {
            "title": reference.title,
            "source": reference.source,
            "provenance": dict(reference.provenance),
            "columns": [use._asdict() for use in reference.columns],
            "rows": len(reference.rows),
            "skipped": [skipped._asdict() for skipped in reference.skipped],
            "failed": [skipped._asdict() for skipped in self.failed],
            "least_spread": self.min_spread,
            "summaries": [asdict(summary) for summary in self.summaries],
            "cases": [asdict(one) for one in self.agreements],
        }


def validate(
    reference: Reference,
    make: Callable[..., Environment],
    *,
    min_spread: float = MIN_SPREAD,
) -> Validation:
    """Evaluates the designs of a reference and compares, case by case and metric by metric.

    Args:
        reference: designs and the figures to meet.
        make: makes the environment from one of the reference's settings.
        min_spread: the summaries leave out cases in which the metric varies by less.

    Raises:
        InvalidValueError: if there is nothing to compare.
        ArchgymError: if no environment can be made; rows of one that cannot, such as those of a
            damaged workload, are among the failed ones else.
    """
    if not reference.rows:
        reasons = "; ".join(sorted({skipped.reason for skipped in reference.skipped})[:5])
        raise InvalidValueError(
            f"{reference.source}: no row can be compared with {reference.title}"
            + (f": {reasons}" if reasons else "")
        )
    ours, failed, maximized = _evaluate(reference, make)
    metrics = tuple(name for name in maximized if any(name in r.metrics for r in reference.rows))
    cases = np.array([row.case for row in reference.rows])
    kept = ours[:, [list(maximized).index(name) for name in metrics]]
    agreements = []
    for column, name in enumerate(metrics):
        true = np.array([row.metrics.get(name, np.nan) for row in reference.rows])
        for case in dict.fromkeys(cases.tolist()):
            here = cases == case
            one = agreement(case, name, true[here], kept[here, column], maximize=maximized[name])
            if one.n:
                agreements.append(one)
    return Validation(
        reference=reference,
        metrics=metrics,
        ours=kept,
        failed=failed,
        agreements=tuple(agreements),
        summaries=tuple(summarise(agreements, min_spread)),
        min_spread=min_spread,
    )


def live_reference(
    make: Callable[..., Environment],
    simulator: str,
    *,
    workloads: Sequence[Any] = (),
    arguments: Mapping[str, Any] | None = None,
    n: int = 100,
    seed: int = 0,
) -> Reference:
    """Figures of another simulator of an environment, for random designs.

    Args:
        make: makes the environment.
        simulator: name of the simulator.
        workloads: what the designs run, each a case; none stands for the default one.
        arguments: other arguments of the environment.
        n: designs; repeats among them are left out.
        seed: of the designs.

    Raises:
        UnknownNameError: if there is no such simulator.
        ArchgymError: if the environment cannot be made.
    """
    settings: list[dict[str, Any]] = []
    rows: list[ReferenceRow] = []
    skipped: list[Skipped] = []
    title = simulator
    for workload in workloads or [None]:
        chosen = {**(arguments or {}), **({} if workload is None else {"workload": workload})}
        env = _made_with(make, simulator, chosen)
        title = f"{env.simulator.name} {env.simulator.version}"
        case = env.workload_name or env.name
        designs = env.design_space.sample(n, np.random.default_rng(seed))
        _, first = np.unique(designs.codes, axis=0, return_index=True)
        for outcome in env.evaluate_batch(designs[np.sort(first)]):
            if outcome.status != "ok":
                skipped.append(Skipped(0, f"{case}: {outcome.status}: {outcome.reason}"))
                continue
            given = {k: v for k, v in outcome.metrics.items() if v is not None}
            rows.append(ReferenceRow(case, outcome.design, given, len(settings)))
        settings.append(chosen)
        env.close()
    how = {"designs": f"{n} random designs a workload, seed {seed}"}
    return Reference(title, "live", settings, rows, (), skipped, how)


def _made_with(
    make: Callable[..., Environment], simulator: str, arguments: Mapping[str, Any]
) -> Environment:
    """The environment with another simulator, and an objective that this one can give."""
    own = make(**arguments)
    if "objective" in arguments or simulator not in own.simulators:
        return make(**arguments, simulator=simulator)
    gives = own.simulators[simulator](own).metric_names
    first = next(metric for metric in own.metrics if metric.name in gives)
    verb = "maximize" if first.sign < 0 else "minimize"
    return make(**arguments, simulator=simulator, objective=f"{verb} {first.name}")


def _not_searched(space: DesignSpace, designs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Parameters of which some designs have a value that the space excludes, or holds another."""
    return [
        name
        for name in dict.fromkeys([*space.excluded, *space.fixed])
        if any(
            design[name] in space.excluded.get(name, ())
            or design[name] != space.fixed.get(name, design[name])
            for design in designs
            if name in design
        )
    ]


def _evaluate(
    reference: Reference, make: Callable[..., Environment]
) -> tuple[NDArray[np.float64], tuple[Skipped, ...], dict[str, bool]]:
    """Our metrics (n_rows, n), rows without any, and each metric's name: is larger better?"""
    failed: list[Skipped] = []
    refused: list[ArchgymError] = []
    maximized: dict[str, bool] = {}
    ours: NDArray[np.float64] = np.empty((0, 0))
    for number, setting in enumerate(reference.settings):
        mine = [i for i, row in enumerate(reference.rows) if row.setting == number]
        if not mine:
            continue
        try:
            env = make(**setting)
        except ArchgymError as error:
            refused.append(error)
            lines = [reference.rows[i].line for i in mine]
            failed += [Skipped(line, f"no environment: {error}") for line in lines]
            continue
        if env.trial_info.budget is not None:
            env.close()
            raise InvalidValueError(
                f"argument budget is {env.trial_info.budget}: every row of a reference is "
                "evaluated, so leave it out"
            )
        if names := _not_searched(env.design_space, [reference.rows[i].design for i in mine]):
            env.close()
            env = make(**{**setting, "include": names})  # the figures are of such designs
        if not maximized:
            maximized = {metric.name: metric.sign < 0 for metric in env.metrics}
            ours = np.full((len(reference.rows), len(maximized)), np.nan)
        outcomes = env.evaluate_batch([reference.rows[i].design for i in mine])
        ours[mine] = outcomes.metrics
        for i, status, reason in zip(mine, outcomes.status, outcomes.reason, strict=True):
            if status != Status.OK:
                failed.append(Skipped(reference.rows[i].line, f"{Status(status).label}: {reason}"))
        env.close()
    if refused and not maximized:
        raise refused[0]
    return ours, tuple(failed), maximized
