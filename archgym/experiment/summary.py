"""What trials came to, read from their datasets: the one place where results come from.

The final table, the picture, ``results.json``, ``archgym best`` and a resumed run all use it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import moocore
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.best import Best
from archgym.data import Dataset
from archgym.data.designs import design_codes
from archgym.fidelity import FULL, Fidelity, spendings
from archgym.metrics import Metric
from archgym.objective import Goal, Objective, Scorer
from archgym.outcome import STATUSES, Outcome, Outcomes
from archgym.space import Designs

__all__ = ["TrialSummary", "goal_label", "goal_unit", "natural", "read_trials"]

_REFERENCE_COST = math.log(2.0)
"""Corner of the hypervolume: twice the baseline in every goal."""
_ILLEGAL = STATUSES.index("illegal")


@dataclass(frozen=True)
class TrialSummary:
    """What one trial came to.

    Attributes:
        trial_id: its name.
        dataset: folder that holds it.
        environment: name of the environment.
        settings: the environment's own arguments under which metrics hold.
        workload: name of the workload.
        fixed: parameters held at a value.
        objective: what was sought.
        metrics: all metrics of the environment.
        agent: name of the agent.
        hyperparameters: of the agent, defaults included.
        seed: of the agent.
        state: ``finished``, ``failed``, ``closed`` or ``running``.
        simulations: distinct legal designs simulated, each fidelity by itself.
        full_simulations: those of them at full fidelity.
        spent: budget spent: the simulations, each by the relative cost of its fidelity.
        proposals: designs proposed.
        duplicates: proposals that were known already.
        illegal: proposals that broke a rule or were not covered by the simulator.
        failed: simulations that failed or took too long.
        better: full simulations that were feasible and better than the baseline design.
        best: the best outcome at full fidelity, ``None`` if nothing could be simulated.
        best_at: number of simulations after which it was found.
        regret: by which share the best outcome is worse than the exact optimum, ``inf`` if it is
            not feasible; ``None`` if the optimum is not known.
        front: non-dominated feasible outcomes.
        hypervolume: with several goals, the volume that the front dominates in the space of log
            ratios to the baseline, up to twice the baseline; the baseline alone has 1.
        baseline_metrics: metrics of the baseline design.
        baseline: value of each goal for the baseline design, minimised.
        curve: best feasible value of each goal after each full simulation, or what costs as much
            at lower fidelities, minimised, ``inf`` before the first, shape (n, n_goals) with n
            the budget spent, rounded up.
        seconds: time in simulator and agent, s.
    """

    trial_id: str
    dataset: str
    environment: str
    settings: dict[str, Any]
    workload: str
    fixed: dict[str, Any]
    objective: Objective
    metrics: tuple[Metric, ...]
    agent: str
    hyperparameters: dict[str, Any]
    seed: int | None
    state: str
    simulations: int
    full_simulations: int
    spent: float
    proposals: int
    duplicates: int
    illegal: int
    failed: int
    better: int
    best: Outcome | None
    best_at: int
    front: list[Outcome]
    hypervolume: float | None
    baseline_metrics: dict[str, float | None]
    baseline: NDArray[np.float64]
    curve: NDArray[np.float64] = field(repr=False)
    seconds: float = 0.0
    regret: float | None = None

    @property
    def problem(self) -> tuple[str, ...]:
        """What was searched: trials with the same can be compared."""
        return (
            self.environment,
            json.dumps(self.settings, sort_keys=True),
            self.workload,
            json.dumps(self.fixed, sort_keys=True),
            json.dumps(self.objective.to_json(), sort_keys=True),
        )

    def outcome_json(self, outcome: Outcome) -> dict[str, Any]:
        """A JSON object for one of its outcomes, with goals in their natural sign."""
        return {
            "design": outcome.design,
            "metrics": outcome.metrics,
            "objectives": {
                goal.name: _number(natural(goal, value))
                for goal, value in zip(self.objective.goals, outcome.objectives, strict=True)
            },
            "feasible": outcome.feasible,
        }

    def to_json(self) -> dict[str, Any]:
        """A JSON object, without the curve."""
        plain = (
            "trial_id dataset environment settings workload fixed agent hyperparameters seed "
            "state simulations full_simulations spent proposals duplicates illegal failed better"
        )
        return {
            **{name: getattr(self, name) for name in plain.split()},
            "objective": self.objective.to_json(),
            "best": None if self.best is None else self.outcome_json(self.best),
            "best_at": self.best_at,
            "regret": None if self.regret is None else _number(self.regret),
            "front": [self.outcome_json(outcome) for outcome in self.front],
            "hypervolume": self.hypervolume,
            "seconds": round(self.seconds, 3),
        }


def natural(goal: Goal, value: float) -> float:
    """A goal's minimised value in its natural sign."""
    return -value if goal.kind == "maximize" else value


def goal_unit(goal: Goal, metrics: Sequence[Metric]) -> str:
    """Unit of a goal's value; empty for none."""
    by_name = {metric.name: metric for metric in metrics}
    if goal.kind == "target":
        return ""
    if goal.kind != "product":
        return by_name[goal.terms[0][0]].unit
    parts = []
    for name, weight in goal.terms:
        power = weight * by_name[name].sign
        if by_name[name].unit:
            parts.append(_unit_power(by_name[name].unit, power))
    return " ".join(parts)


def _unit_power(unit: str, power: float) -> str:
    """A unit to a power, as in ``mm2/TOPS`` for the first negative one of ``TOPS/mm2``."""
    if power == 1:
        return unit
    if power == -1 and unit.count("/") < 2:
        above, _, below = unit.partition("/")
        return f"{below or 1}/{above}"
    return f"({unit})^{power:g}"


def goal_label(goal: Goal, metrics: Sequence[Metric]) -> str:
    """A goal with its unit, as in ``energy_pj [pJ]``."""
    unit = goal_unit(goal, metrics)
    name = f"log distance to {goal.name}" if goal.kind == "target" else goal.name
    return f"{name} [{unit}]" if unit else name


def read_trials(dataset: Dataset) -> list[TrialSummary]:
    """Summaries of all trials of a dataset, ordered by id; its table is read once."""
    space, metrics = dataset.sidecar.space, dataset.sidecar.metrics
    table = dataset.evaluations(
        [
            "trial_id",
            *(f"param.{name}" for name in space.names),
            *(f"metric.{metric.name}" for metric in metrics),
            *("reward", "status", "reason", "feasible", "cached", "fidelity"),
            *("simulation_s", "agent_s"),
        ]
    )
    codes = design_codes(space, table)
    values = np.column_stack(
        [table[f"metric.{m.name}"].to_numpy().astype(np.float64) for m in metrics]
    )
    parts = _parts(table)
    empty = slice(0, 0)
    return [
        _summarise(
            dataset,
            row,
            table.slice(part.start, part.stop - part.start),
            Designs(space, codes[part]),
            values[part],
        )
        for row in dataset.trials().to_pylist()
        for part in [parts.get(row["trial_id"], empty)]
    ]


def _summarise(
    dataset: Dataset,
    row: dict[str, Any],
    table: pa.Table,
    designs: Designs,
    values: NDArray[np.float64],
) -> TrialSummary:
    metrics = dataset.sidecar.metrics
    baseline_metrics = json.loads(row["baseline"])
    baseline = np.array(
        [np.nan if (v := baseline_metrics.get(m.name)) is None else v for m in metrics]
    )
    objective = Objective.parse(json.loads(row["objective"]))
    scorer = Scorer(objective, metrics, baseline)
    outcomes = _outcomes(table, designs, values, scorer, tuple(m.name for m in metrics))
    best = Best()
    best.update(outcomes)
    optimum = json.loads(row["optimum"] or "null")
    counted = ~outcomes.cached & (outcomes.status != _ILLEGAL)
    full = outcomes.fidelity == 1
    feasible = np.where((outcomes.feasible & full)[:, None], outcomes.objectives, np.inf)
    spent = spendings(_fidelities(row), outcomes.fidelity[counted])
    return TrialSummary(
        trial_id=row["trial_id"],
        dataset=str(dataset.directory),
        environment=row["environment"],
        settings=json.loads(row["settings"]),
        workload=row["workload"],
        fixed=json.loads(row["fixed"]),
        objective=objective,
        metrics=metrics,
        agent=row["agent"],
        hyperparameters=json.loads(row["hyperparameters"]),
        seed=row["seed"],
        state=row["state"],
        simulations=int(counted.sum()),
        full_simulations=int((counted & full).sum()),
        spent=float(spent[-1]) if len(spent) else 0.0,
        proposals=len(outcomes),
        duplicates=int(outcomes.cached.sum()),
        illegal=int((outcomes.status == _ILLEGAL).sum()),
        failed=int((counted & (outcomes.status > _ILLEGAL)).sum()),
        better=int((counted & full & outcomes.feasible & (outcomes.reward > 0.5)).sum()),
        best=best.outcome,
        best_at=best.at,
        front=best.front,
        hypervolume=_hypervolume(outcomes) if len(objective.goals) > 1 else None,
        baseline_metrics=baseline_metrics,
        baseline=scorer.values(baseline[None])[0],
        curve=_curve(feasible[counted], spent),
        seconds=float(np.sum(table["simulation_s"].to_numpy() + table["agent_s"].to_numpy())),
        regret=None if optimum is None else _regret(scorer, best.outcome, optimum),
    )


def _outcomes(
    table: pa.Table,
    designs: Designs,
    values: NDArray[np.float64],
    scorer: Scorer,
    names: tuple[str, ...],
) -> Outcomes:
    """The outcomes that a trial's rows stand for."""
    status = np.array([STATUSES.index(s) for s in table["status"].to_pylist()], dtype=np.int8)
    bad = status != 0
    objectives, costs, violations = (
        scorer.values(values),
        scorer.costs(values),
        scorer.violations(values),
    )
    objectives[bad] = costs[bad] = np.inf
    violations[bad] = np.nan
    return Outcomes(
        designs=designs,
        metric_names=names,
        metrics=values,
        objectives=objectives,
        costs=costs,
        violations=violations,
        reward=table["reward"].to_numpy(),
        status=status,
        reason=table["reason"].to_pylist(),
        feasible=_booleans(table["feasible"]),
        cached=_booleans(table["cached"]),
        simulation_s=table["simulation_s"].to_numpy(),
        fidelity=table["fidelity"].to_numpy(),
    )


def _fidelities(row: dict[str, Any]) -> list[Fidelity]:
    """The fidelities of a trial; datasets from before there were any do not say."""
    declared = json.loads(row["fidelities"] or "[]")
    return [Fidelity(**one) for one in declared] or [FULL]


def _curve(values: NDArray[np.float64], spent: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least values so far at each whole number of the budget spent, shape (n, n_goals)."""
    if not len(spent):
        return values
    so_far = np.concatenate([np.full_like(values[:1], np.inf), np.minimum.accumulate(values)])
    until = np.arange(1, math.ceil(spent[-1]) + 1)
    return np.asarray(so_far[np.searchsorted(spent, until, side="right")])


def _regret(scorer: Scorer, best: Outcome | None, optimum: dict[str, float]) -> float:
    if best is None or not best.feasible:
        return math.inf
    return scorer.regret(best.metrics, optimum)


def _hypervolume(outcomes: Outcomes) -> float:
    costs = outcomes.costs[outcomes.feasible & ~outcomes.cached & (outcomes.fidelity == 1)]
    costs = costs[(costs < _REFERENCE_COST).all(axis=1)]
    if not len(costs):
        return 0.0
    reference = np.full(costs.shape[1], _REFERENCE_COST)
    return float(moocore.hypervolume(costs, ref=reference) / _REFERENCE_COST ** costs.shape[1])


def _parts(table: pa.Table) -> dict[str, slice]:
    """Rows of each trial, in a table that is ordered by trial."""
    if not table.num_rows:
        return {}
    column = table["trial_id"].combine_chunks()
    ids = column.indices.to_numpy()
    starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist()]
    names = column.dictionary.to_pylist()
    return {
        names[ids[start]]: slice(start, stop)
        for start, stop in zip(starts, [*starts[1:], len(ids)], strict=True)
    }


def _booleans(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(column.to_numpy(), dtype=np.bool_)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
