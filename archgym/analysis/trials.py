"""Summaries of trials, read from their datasets: the one place where results are computed.

The final table, the picture, ``results.json``, ``archgym best`` and a resumed run all use it.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.analysis.dataset_rows import (
    PLAIN_COLUMNS,
    Rows,
    fidelities_of,
    metric_vector,
    parsed,
    plain_columns,
    scorer_of,
)
from archgym.analysis.measures import COUNTS, Measures, measure, reaches, regret
from archgym.data import Dataset
from archgym.data.designs import design_codes, design_columns
from archgym.data.records import recorded_history
from archgym.evaluation.best import Best
from archgym.evaluation.outcome import Outcome, Outcomes
from archgym.evaluation.trial_info import HistoryInfo
from archgym.problem.goals import natural
from archgym.problem.metrics import Metric
from archgym.problem.objective import Goal, Objective
from archgym.problem.scoring import Scorer
from archgym.problem.status import Status
from archgym.space import Designs


@dataclass(frozen=True)
class TrialSummary:
    """The result of one trial.

    Attributes:
        trial_id: name of the trial.
        dataset: folder that holds its evaluations.
        environment: name of the environment.
        settings: arguments of the environment under which metrics hold.
        workload: name of the workload.
        fixed: parameters held at a value.
        objective: goals and limits.
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
        stopped: simulations that the search stopped early.
        saved_s: about how much simulation that saved, had they taken as long as finished ones, s.
        reasons: reasons of these failures, and how often each occurred.
        better: full simulations that were feasible and better than the baseline design.
        best: the best outcome at full fidelity, ``None`` if nothing could be simulated.
        best_at: number of simulations after which it was found.
        regret: by which share the best outcome is worse than the exact optimum, ``inf`` if it is
            not feasible; ``None`` if the optimum is not known.
        front: non-dominated feasible outcomes.
        hypervolume: with several goals, the volume that the front dominates in the space of log
            ratios to the baseline, up to twice the baseline; the baseline alone has 1.
        baseline_metrics: metrics of the baseline design.
        baseline_design: active parameters of the baseline; empty if they were not recorded.
        baseline: value of each goal for the baseline design, minimised.
        curve: best feasible value of each goal after each full simulation, or what costs as much
            at lower fidelities, minimised, ``inf`` before the first, shape (n, n_goals) with n
            the budget spent, rounded up.
        agent_s: time in the agent, s.
        simulation_s: time in the simulator, s.
        improvements: for each goal, where its best feasible value improved: budget spent, seconds
            in simulator and agent until then, value (minimised), and regret (NaN where the optimum
            is not known, and for a target), shape (n, 4).
        hit_at: simulations after which the search had reached the optimum (see
            :data:`~archgym.analysis.measures.WITHIN`); ``None`` if never, or if regrets are not
            known.
        optimum: value of each goal at the exact optimum, minimised; ``None`` if it is not known.
        history: what the search learned from before; ``None`` if it began from nothing.
        from_history: whether the best design is one that it suggested to begin with.
        best_from_history: the best of the designs that were; ``None`` without history.
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
    regret: float | None = None
    agent_s: float = 0.0
    simulation_s: float = 0.0
    improvements: list[NDArray[np.float64]] = field(default_factory=list, repr=False)
    hit_at: int | None = None
    optimum: NDArray[np.float64] | None = None
    baseline_design: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict, repr=False)
    stopped: int = 0
    saved_s: float = 0.0
    history: HistoryInfo | None = None
    from_history: bool = False
    best_from_history: Outcome | None = None

    @property
    def seconds(self) -> float:
        """Time in simulator and agent, s."""
        return self.agent_s + self.simulation_s

    @property
    def problem(self) -> tuple[str, ...]:
        """What was searched, and from which history: trials with the same can be compared."""
        return (
            self.environment,
            json.dumps(self.settings, sort_keys=True),
            self.workload,
            json.dumps(self.fixed, sort_keys=True),
            json.dumps(self.objective.to_json(), sort_keys=True),
            "" if self.history is None else self.history.sha256,
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
            "state simulations full_simulations spent proposals duplicates illegal failed stopped "
            "better"
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
            "saved_s": round(self.saved_s, 3),
            "history": None if self.history is None else asdict(self.history),
            "from_history": self.from_history,
        }


def read_trials(dataset: Dataset) -> list[TrialSummary]:
    """Summaries of all trials of a dataset, ordered by id."""
    return sorted(stream_trials(dataset), key=lambda summary: summary.trial_id)


def stream_trials(dataset: Dataset) -> Iterator[TrialSummary]:
    """Summaries of all trials of a dataset, in the order in which their rows end.

    In memory are a block of evaluations, and of a trial whose rows lie in several blocks (it was
    resumed, say) the earlier ones.
    """
    rows = {row["trial_id"]: row for row in dataset.trials().to_pylist()}
    snapshot = dataset.snapshot()
    left: Counter[str] = Counter()
    for _, table in snapshot.blocks(["trial_id"]):
        for count in table["trial_id"].cast(pa.string()).value_counts().to_pylist():
            left[count["values"]] += count["counts"]
    waiting: dict[str, list[_Arrays]] = {}
    columns = [
        *("trial_id", "reward", "reason", "partial", *PLAIN_COLUMNS),
        *design_columns(dataset.sidecar.space),
        *(f"metric.{metric.name}" for metric in dataset.sidecar.metrics),
    ]
    for _, table in snapshot.blocks(columns):
        arrays = _arrays(dataset, table)
        names = table["trial_id"].cast(pa.string()).to_pylist()
        starts = [i for i, name in enumerate(names) if not i or name != names[i - 1]]
        for start, stop in itertools.pairwise([*starts, len(names)]):
            trial_id = names[start]
            part = {name: array[start:stop] for name, array in arrays.items()}
            waiting.setdefault(trial_id, []).append(part)
            left[trial_id] -= stop - start
            if not left[trial_id]:
                parts = waiting.pop(trial_id)
                if trial_id in rows:  # else it began after the table of trials was read
                    yield _summarise(dataset, rows.pop(trial_id), _joined(parts))
    if rows:
        nothing = _arrays(dataset, dataset.schema.empty_table())
        for row in rows.values():
            yield _summarise(dataset, row, nothing)


_Arrays = dict[str, NDArray[Any]]
"""Consecutive rows of one trial: codes, metrics and other columns, by name."""


def _arrays(dataset: Dataset, table: pa.Table) -> _Arrays:
    """A block of rows as arrays."""
    metrics = [table[f"metric.{m.name}"].to_numpy() for m in dataset.sidecar.metrics]
    return {
        **plain_columns(table),
        "codes": design_codes(dataset.sidecar.space, table),
        "metrics": np.column_stack(metrics).astype(np.float64),
        "reward": table["reward"].to_numpy(),
        "reason": np.array(table["reason"].to_pylist(), dtype=object),
    }


def _saved_s(rows: Rows) -> float:
    """About how much simulation was saved by stopping runs early, s."""
    simulated = rows.counted & rows.full
    stopped = rows.simulation_s[simulated & (rows.status == Status.STOPPED)]
    whole = rows.simulation_s[simulated & (rows.status == Status.OK)]
    if not len(stopped) or not len(whole):
        return 0.0
    return max(0.0, float(whole.mean() * len(stopped) - stopped.sum()))


def _joined(parts: Sequence[_Arrays]) -> _Arrays:
    """The rows of a trial, by step."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if (np.diff(joined["step"]) > 0).all():
        return joined
    order = np.argsort(joined["step"], kind="stable")
    return {name: array[order] for name, array in joined.items()}


def _summarise(dataset: Dataset, row: dict[str, Any], arrays: _Arrays) -> TrialSummary:
    metrics = dataset.sidecar.metrics
    names = tuple(metric.name for metric in metrics)
    scorer = scorer_of(row, metrics)
    objective = scorer.objective
    n = len(arrays["step"])
    others = ("codes", "metrics", "reward", "reason")
    plain = {name: array for name, array in arrays.items() if name not in others}
    trial = np.zeros(n, dtype=np.int32)
    rows = Rows.scored(scorer, arrays["metrics"], plain, trial, np.arange(n))
    weights = [goal.weight for goal in objective.goals]
    found = measure(rows, 1, fidelities_of(row), weights, points=1)
    best = Best()
    best.update(_outcomes(dataset, scorer, rows, arrays))
    optimum = parsed(row["optimum"])
    if optimum is not None:
        optimum = metric_vector(optimum, names)[None]
    single = len(objective.goals) == 1
    known = optimum is not None and single
    optimum_cost = float(scorer.costs(optimum)[0, 0]) if known else math.nan
    improvements = _improvements(found, objective.goals, optimum_cost)
    near = reaches(improvements[0][:, 3])
    counts = dict(zip(COUNTS, found.counts[0].tolist(), strict=True))
    full = rows.counted & rows.full
    failed = rows.counted & np.isin(rows.status, (Status.FAILED, Status.TIMEOUT))
    baseline = parsed(row["baseline"])
    history = recorded_history(row["history"])
    first = _first(dataset, scorer, rows, arrays, history)
    recorded = ("trial_id", "environment", "workload", "agent", "seed", "state")
    return TrialSummary(
        **{name: row[name] for name in recorded},
        **{name: parsed(row[name]) for name in ("settings", "fixed", "hyperparameters")},
        dataset=str(dataset.directory),
        objective=objective,
        metrics=metrics,
        simulations=int(found.simulations[0]),
        full_simulations=int(full.sum()),
        spent=float(found.spent[0]),
        proposals=n,
        duplicates=counts["duplicate"],
        illegal=counts["illegal"],
        failed=counts["failed"] + counts["timeout"],
        stopped=counts["stopped"],
        saved_s=_saved_s(rows),
        reasons=Counter(arrays["reason"][failed].tolist()),
        better=int((full & rows.feasible & (arrays["reward"] > 0.5)).sum()),
        best=best.outcome,
        best_at=best.at,
        front=best.front,
        hypervolume=None if single else float(found.hypervolume[0, -1:].sum()),
        baseline_metrics=baseline,
        baseline_design=parsed(row["baseline_design"]) or {},
        baseline=scorer.values(metric_vector(baseline, names)[None])[0],
        curve=_curve(found),
        agent_s=float(found.agent_s[0]),
        simulation_s=float(found.simulation_s[0]),
        optimum=None if optimum is None else scorer.values(optimum)[0],
        regret=float(regret(found.best_cost, optimum_cost)[0]) if known else None,
        improvements=improvements,
        history=history,
        from_history=best.outcome is not None
        and first is not None
        and best.outcome.design == first.design,
        best_from_history=first,
        hit_at=math.ceil(improvements[0][near.argmax(), 0]) if near.any() else None,
    )


def _first(
    dataset: Dataset, scorer: Scorer, rows: Rows, arrays: _Arrays, history: HistoryInfo | None
) -> Outcome | None:
    """The best of the designs that history suggested to begin with."""
    if history is None:
        return None
    wanted = set(history.first)
    keys = Designs(dataset.sidecar.space, arrays["codes"]).keys()
    mine = np.array([str(key) in wanted for key in keys], dtype=np.bool_)
    outcomes = _outcomes(dataset, scorer, rows, arrays)
    found = np.flatnonzero(mine & rows.counted & rows.full & (rows.status == Status.OK)).tolist()
    return max((outcomes[i] for i in found), key=lambda o: (o.feasible, o.reward), default=None)


def _outcomes(dataset: Dataset, scorer: Scorer, rows: Rows, arrays: _Arrays) -> Outcomes:
    """The outcomes that a trial's rows record."""
    violations = scorer.violations(arrays["metrics"])
    violations[rows.status != Status.OK] = np.nan
    return Outcomes(
        designs=Designs(dataset.sidecar.space, arrays["codes"]),
        metric_names=scorer.metric_names,
        metrics=arrays["metrics"],
        objectives=rows.values,
        costs=rows.costs,
        violations=violations,
        reward=arrays["reward"],
        status=rows.status,
        reason=arrays["reason"].tolist(),
        feasible=rows.feasible,
        cached=rows.cached,
        simulation_s=rows.simulation_s,
        fidelity=rows.fidelity,
    )


def _curve(found: Measures) -> NDArray[np.float64]:
    """Best values at each whole number of the budget spent by one trial, shape (n, n_goals)."""
    until = np.arange(1, math.ceil(found.spent[0]) + 1)
    so_far = np.concatenate([np.full_like(found.best, np.inf), found.event_values])
    return np.asarray(so_far[np.searchsorted(found.event_spent, until, side="right")])


def _improvements(
    found: Measures, goals: Sequence[Goal], optimum_cost: float
) -> list[NDArray[np.float64]]:
    """For each goal, where one trial's best value improved; see :class:`TrialSummary`."""
    improvements = []
    for number, goal in enumerate(goals):
        values = found.event_values[:, number]
        regrets = np.full(len(values), np.nan)
        if math.isfinite(optimum_cost) and goal.kind != "target":
            regrets = regret(found.event_costs[:, number], optimum_cost)
        at = np.flatnonzero(values < np.concatenate([[np.inf], values[:-1]]))
        columns = [found.event_spent, found.event_s, values, regrets]
        improvements.append(np.column_stack(columns)[at])
    return improvements


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
