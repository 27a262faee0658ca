"""What trials came to, read from their datasets: the one place where results come from.

The final table, the picture, ``results.json``, ``archgym best`` and a resumed run all use it.
"""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import moocore
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.data import Dataset
from archgym.data.designs import design_codes
from archgym.evaluation.best import Best
from archgym.evaluation.outcome import Outcome, Outcomes
from archgym.problem.fidelity import FULL, Fidelity, spendings
from archgym.problem.goals import natural
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.scorer import Scorer
from archgym.problem.status import STATUS_OF, Status
from archgym.space import Designs

__all__ = ["TrialSummary", "read_trials", "stream_trials"]

_REFERENCE_COST = math.log(2.0)
"""Corner of the hypervolume: twice the baseline in every goal."""


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
        reasons: why they did, and how often.
        better: full simulations that were feasible and better than the baseline design.
        best: the best outcome at full fidelity, ``None`` if nothing could be simulated.
        best_at: number of simulations after which it was found.
        regret: by which share the best outcome is worse than the exact optimum, ``inf`` if it is
            not feasible; ``None`` if the optimum is not known.
        front: non-dominated feasible outcomes.
        hypervolume: with several goals, the volume that the front dominates in the space of log
            ratios to the baseline, up to twice the baseline; the baseline alone has 1.
        baseline_metrics: metrics of the baseline design.
        baseline_design: its active parameters; none if they were not recorded.
        baseline: value of each goal for the baseline design, minimised.
        curve: best feasible value of each goal after each full simulation, or what costs as much
            at lower fidelities, minimised, ``inf`` before the first, shape (n, n_goals) with n
            the budget spent, rounded up.
        seconds: time in simulator and agent, s.
        agent_s: time in the agent, s.
        simulation_s: time in the simulator, s.
        improvements: of each goal, where its best feasible value improved: budget spent, seconds
            in simulator and agent so far, value (minimised), shape (n, 3).
        optimum: value of each goal at the exact optimum, minimised; ``None`` if it is not known.
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
    agent_s: float = 0.0
    simulation_s: float = 0.0
    improvements: list[NDArray[np.float64]] = field(default_factory=list, repr=False)
    optimum: NDArray[np.float64] | None = None
    baseline_design: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict, repr=False)

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
                goal.name: _number(natural(goal, self.metrics, value))
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


def read_trials(dataset: Dataset) -> list[TrialSummary]:
    """Summaries of all trials of a dataset, ordered by id."""
    return sorted(stream_trials(dataset), key=lambda summary: summary.trial_id)


def stream_trials(dataset: Dataset) -> Iterator[TrialSummary]:
    """Summaries of all trials of a dataset, in the order in which their rows end.

    Of the evaluations a block is held in memory, and of trials that were resumed what came
    before.
    """
    rows = {row["trial_id"]: row for row in dataset.trials().to_pylist()}
    snapshot = dataset.snapshot()
    left: Counter[str] = Counter()
    for _, table in snapshot.blocks(["trial_id"]):
        for count in table["trial_id"].cast(pa.string()).value_counts().to_pylist():
            left[count["values"]] += count["counts"]
    waiting: dict[str, list[_Part]] = {}
    for _, table in snapshot.blocks(_columns(dataset)):
        for trial_id, part in _parts(dataset, table):
            waiting.setdefault(trial_id, []).append(part)
            left[trial_id] -= len(part.codes)
            if not left[trial_id]:
                parts = waiting.pop(trial_id)
                if trial_id in rows:  # else it began after the table of trials was read
                    yield _summarise(dataset, rows.pop(trial_id), _joined(parts))
    if rows:
        empty = next(_parts(dataset, dataset.schema.empty_table(), whole=True))[1]
        for row in rows.values():
            yield _summarise(dataset, row, empty)


class _Part(NamedTuple):
    """Consecutive rows of one trial, as arrays."""

    steps: NDArray[Any]
    codes: NDArray[Any]
    values: NDArray[Any]
    numbers: NDArray[Any]
    flags: NDArray[Any]
    status: NDArray[Any]
    reasons: NDArray[Any]


_NUMBERS = ("reward", "fidelity", "simulation_s", "agent_s")
_FLAGS = ("feasible", "cached")


def _columns(dataset: Dataset) -> list[str]:
    return [
        *("trial_id", "step"),
        *(f"param.{name}" for name in dataset.sidecar.space.names),
        *(f"metric.{metric.name}" for metric in dataset.sidecar.metrics),
        *(*_NUMBERS, *_FLAGS, "status", "reason"),
    ]


def _parts(dataset: Dataset, table: pa.Table, whole: bool = False) -> Iterator[tuple[str, _Part]]:
    """The rows of each trial in a block; with ``whole``, all of them as of one trial."""
    names = table["trial_id"].cast(pa.string()).to_pylist()
    starts = [i for i, name in enumerate(names) if not i or name != names[i - 1]]
    metrics = [table[f"metric.{m.name}"].to_numpy() for m in dataset.sidecar.metrics]
    statuses = np.array(table["status"].cast(pa.string()).to_pylist(), dtype=object)
    status = np.zeros(len(names), dtype=np.int8)
    for text, code in STATUS_OF.items():
        status[statuses == text] = code
    arrays = _Part(
        table["step"].to_numpy(),
        design_codes(dataset.sidecar.space, table),
        np.column_stack(metrics).astype(np.float64).reshape(len(names), len(metrics)),
        np.column_stack([table[name].to_numpy() for name in _NUMBERS]),
        np.column_stack([_booleans(table[name]) for name in _FLAGS]),
        status,
        np.array(table["reason"].to_pylist(), dtype=object),
    )
    if whole:
        yield "", arrays
    for start, stop in zip(starts, [*starts[1:], len(names)], strict=False):
        yield names[start], _Part(*(array[start:stop] for array in arrays))


def _joined(parts: Sequence[_Part]) -> _Part:
    """The rows of a trial, by step."""
    joined = _Part(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    if (np.diff(joined.steps) > 0).all():
        return joined
    order = np.argsort(joined.steps, kind="stable")
    return _Part(*(array[order] for array in joined))


@functools.lru_cache(maxsize=256)
def _objective(text: str) -> Objective:
    return Objective.parse(json.loads(text))


@functools.lru_cache(maxsize=256)
def _mapping(text: str) -> dict[str, Any]:
    """What many trials have in common, once."""
    found: dict[str, Any] = json.loads(text)
    return found


def _summarise(dataset: Dataset, row: dict[str, Any], part: _Part) -> TrialSummary:
    designs, values = Designs(dataset.sidecar.space, part.codes), part.values
    metrics = dataset.sidecar.metrics
    baseline_metrics = _mapping(row["baseline"])
    baseline = np.array(
        [np.nan if (v := baseline_metrics.get(m.name)) is None else v for m in metrics]
    )
    objective = _objective(row["objective"])
    scorer = Scorer(objective, metrics, baseline)
    outcomes = _outcomes(part, designs, values, scorer, tuple(m.name for m in metrics))
    best = Best()
    best.update(outcomes)
    optimum = json.loads(row["optimum"] or "null")
    counted = ~outcomes.cached & (outcomes.status != Status.ILLEGAL)
    full = outcomes.fidelity == 1
    feasible = np.where((outcomes.feasible & full)[:, None], outcomes.objectives, np.inf)
    spent = spendings(_fidelities(row), outcomes.fidelity[counted])
    return TrialSummary(
        trial_id=row["trial_id"],
        dataset=str(dataset.directory),
        environment=row["environment"],
        settings=_mapping(row["settings"]),
        workload=row["workload"],
        fixed=_mapping(row["fixed"]),
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
        illegal=int((outcomes.status == Status.ILLEGAL).sum()),
        failed=int((counted & (outcomes.status > Status.ILLEGAL)).sum()),
        reasons=Counter(part.reasons[counted & (outcomes.status > Status.ILLEGAL)].tolist()),
        better=int((counted & full & outcomes.feasible & (outcomes.reward > 0.5)).sum()),
        best=best.outcome,
        best_at=best.at,
        front=best.front,
        hypervolume=_hypervolume(outcomes) if len(objective.goals) > 1 else None,
        baseline_metrics=baseline_metrics,
        baseline_design=json.loads(row["baseline_design"] or "{}"),
        baseline=scorer.values(baseline[None])[0],
        curve=_curve(feasible[counted], spent),
        seconds=float(part.numbers[:, 2:].sum()),
        agent_s=float(part.numbers[:, 3].sum()),
        simulation_s=float(part.numbers[:, 2].sum()),
        improvements=_improvements(
            feasible[counted], spent, part.numbers[:, 2:].sum(axis=1).cumsum()[counted]
        ),
        optimum=None if optimum is None else _optimum(scorer, metrics, optimum),
        regret=None if optimum is None else _regret(scorer, best.outcome, optimum),
    )


def _outcomes(
    part: _Part,
    designs: Designs,
    values: NDArray[np.float64],
    scorer: Scorer,
    names: tuple[str, ...],
) -> Outcomes:
    """The outcomes that a trial's rows stand for."""
    status = part.status
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
        reward=part.numbers[:, 0],
        status=status,
        reason=part.reasons.tolist(),
        feasible=part.flags[:, 0],
        cached=part.flags[:, 1],
        simulation_s=part.numbers[:, 2],
        fidelity=part.numbers[:, 1],
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


def _improvements(
    values: NDArray[np.float64], spent: NDArray[np.float64], seconds: NDArray[np.float64]
) -> list[NDArray[np.float64]]:
    """Of each goal, where its best value improved: budget, seconds, value, shape (n, 3)."""
    found = []
    for column in values.T:
        best = np.minimum.accumulate(column)
        before = np.concatenate([[np.inf], best[:-1]])
        at = np.flatnonzero(best < before)
        found.append(np.column_stack([spent[at], seconds[at], best[at]]))
    return found


def _optimum(
    scorer: Scorer, metrics: Sequence[Metric], optimum: Mapping[str, float]
) -> NDArray[np.float64]:
    """Value of each goal at the optimum, minimised."""
    row = [optimum.get(metric.name, math.nan) for metric in metrics]
    return np.asarray(scorer.values(np.array([row], dtype=np.float64))[0])


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


def _booleans(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(column.to_numpy(), dtype=np.bool_)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
