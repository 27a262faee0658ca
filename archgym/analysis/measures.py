"""Measures of trials: counts, times, each improvement, fronts, hypervolume and regret.

The one definition of each. The summary of a trial, the tables of a run and a report use it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import moocore
import numpy as np
from numpy.typing import NDArray

from archgym.analysis.dataset_rows import Rows
from archgym.analysis.timeline import NEVER_US, run_times
from archgym.problem.fidelity import Fidelity, cost_units
from archgym.problem.status import Status

COUNTS = ("feasible", "infeasible", "failed", "timeout", "stopped", "illegal", "duplicate")
"""Kinds of proposals: simulated and within all limits, simulated and beyond one, failed, timed
out, stopped early, against a rule of the space, or known before. The first five were simulated."""
WITHIN = 0.01
"""A design that is worse than the optimum by at most this share has reached it."""
HYPERVOLUME_POINTS = 24
"""Points at which a trial's hypervolume is taken."""
_ROUNDING = 1e-12
_REFERENCE_COST = math.log(2.0)  # corner of the hypervolume: twice the baseline in every goal
_INTERRUPTED_S = 60.0
"""A longer gap between two records in which neither simulator nor agent worked is an interruption
of the run."""
_MAX_CURVES = 1500
"""Trials of a problem whose hypervolume is followed over the search; of more, an even choice."""


@dataclass(frozen=True)
class Measures:
    """Measures of the trials of a problem; arrays over trials are in the trials' order.

    Attributes:
        counts: proposals of each kind, in the order of :data:`COUNTS`, shape
            (n_trials, n_counts).
        spent: budget spent, in full simulations, shape (n_trials,).
        simulation_s: seconds in the simulator, shape (n_trials,).
        agent_s: seconds in the agent, shape (n_trials,).
        framework_s: seconds in neither, shape (n_trials,).
        best: least feasible value of each goal at full fidelity, shape (n_trials, n_goals).
        best_cost: weighted mean of the costs of the best design, ``inf`` for none, shape
            (n_trials,).
        best_row: its row in the snapshot, -1 for none, shape (n_trials,).
        best_at: budget spent when it was found, shape (n_trials,).
        event_trial: trial that improved in a goal, shape (n_events,).
        event_spent: budget spent by then, shape (n_events,).
        event_s: seconds in simulator and agent until then, shape (n_events,).
        event_wall_s: seconds since the trial began, without interruptions, shape (n_events,).
        event_values: its best values from then on, shape (n_events, n_goals).
        event_costs: its best costs from then on, shape (n_events, n_goals).
        hypervolume: with several goals, the volume that the front dominates at
            ``hypervolume_at``; NaN where it was not followed, shape (n_trials, n_points).
        hypervolume_at: budgets spent, shape (n_points,).
        fronts: rows of each trial's non-dominated feasible designs, with several goals.
        front_values: values of their goals, each of shape (n, n_goals).
        flights: when simulations began and ended that an executor ran, of each trial, seconds
            since it began, shape (n, 2).
        reasons: how often a trial met a reason, by (trial, reason).
        full_rows: rows of full simulations with a result, for the charts of the space.
        full_costs: weighted mean of their costs, shape (n,).
        full_feasible: whether they keep all limits, shape (n,).
    """

    counts: NDArray[np.int64]
    spent: NDArray[np.float64]
    simulation_s: NDArray[np.float64]
    agent_s: NDArray[np.float64]
    framework_s: NDArray[np.float64]
    best: NDArray[np.float64]
    best_cost: NDArray[np.float64]
    best_row: NDArray[np.int64]
    best_at: NDArray[np.float64]
    event_trial: NDArray[np.int64]
    event_spent: NDArray[np.float64]
    event_s: NDArray[np.float64]
    event_wall_s: NDArray[np.float64]
    event_values: NDArray[np.float64]
    event_costs: NDArray[np.float64]
    hypervolume: NDArray[np.float64]
    hypervolume_at: NDArray[np.float64]
    fronts: list[NDArray[np.int64]]
    front_values: list[NDArray[np.float64]]
    flights: list[NDArray[np.float64]]
    reasons: Counter[tuple[int, str]]
    full_rows: NDArray[np.int64]
    full_costs: NDArray[np.float64]
    full_feasible: NDArray[np.bool_]

    @property
    def simulations(self) -> NDArray[np.int64]:
        """Designs that were simulated, each fidelity by itself, shape (n_trials,)."""
        return np.asarray(self.counts[:, :5].sum(axis=1))


def measure(
    rows: Rows,
    n_trials: int,
    fidelities: Sequence[Fidelity],
    weights: Sequence[float],
    wall_s: NDArray[np.float64] | None = None,
    points: int = HYPERVOLUME_POINTS,
) -> Measures:
    """Measures of the trials of a problem.

    Args:
        rows: the evaluations; their trial indices are those of the problem.
        n_trials: trials of the problem.
        fidelities: of the problem.
        weights: of the goals; they need not add up to 1.
        wall_s: seconds of each whole trial; where that is NaN, or less than simulator and agent
            took because the trial was resumed, records tell when it began and ended.
        points: budgets at which the hypervolume is taken, the last one at the end.
    """
    cost_of = rows.costs @ (np.asarray(weights) / sum(weights))
    good = rows.counted & rows.feasible & rows.full
    cumulated = _spent(rows, fidelities)
    busy = rows.simulation_s + rows.agent_s
    n_goals = rows.values.shape[1]
    best = np.full((n_trials, n_goals), np.inf)
    best_cost, best_at = np.full(n_trials, np.inf), np.zeros(n_trials)
    best_row = np.full(n_trials, -1, dtype=np.int64)
    spent, simulation_s, agent_s, framework_s = np.zeros((4, n_trials))
    events = [(np.empty(0, dtype=np.int64), np.empty((0, 3 + 2 * n_goals)))]
    flights = [np.empty((0, 2))] * n_trials
    fronts = [np.empty(0, dtype=np.int64)] * n_trials
    for number, part in rows.parts():
        spent[number] = cumulated[part.stop - 1]
        simulation_s[number] = rows.simulation_s[part].sum()
        agent_s[number] = rows.agent_s[part].sum()
        left = np.nan if wall_s is None else wall_s[number] - busy[part].sum()
        framework_s[number] = left if left >= 0 else _framework_s(rows.time_us[part], busy[part])
        begin, end = run_times(rows.started_us[part], rows.time_us[part], busy[part])
        flown = rows.started_us[part] != NEVER_US
        flights[number] = np.column_stack([begin[flown], end[flown]])
        where = np.flatnonzero(good[part]) + part.start
        if not len(where):
            continue
        so_far = np.minimum.accumulate(rows.values[where])
        better = np.ones(len(where), dtype=bool)
        better[1:] = (so_far[1:] < so_far[:-1]).any(axis=1)
        at = where[better]
        seconds = np.cumsum(busy[part])[at - part.start]
        costs = np.minimum.accumulate(rows.costs[where])[better]
        walls = np.maximum.accumulate(end)[at - part.start]
        table = np.column_stack([cumulated[at], seconds, walls, so_far[better], costs])
        events.append((np.full(len(at), number, dtype=np.int64), table))
        best[number] = so_far[-1]
        first = where[int(cost_of[where].argmin())]
        best_cost[number], best_row[number] = cost_of[first], rows.row[first]
        best_at[number] = cumulated[first]
        if n_goals > 1:
            fronts[number] = where[non_dominated(rows.values[where])]
    volumes, volumes_at = _hypervolumes(rows, good, cumulated, spent, points)
    table = np.concatenate([values for _, values in events])
    shown = rows.counted & rows.full & (rows.status == Status.OK) & np.isfinite(cost_of)
    return Measures(
        counts=_counts(rows, n_trials),
        spent=spent,
        simulation_s=simulation_s,
        agent_s=agent_s,
        framework_s=framework_s,
        best=best,
        best_cost=best_cost,
        best_row=best_row,
        best_at=best_at,
        event_trial=np.concatenate([trial for trial, _ in events]),
        event_spent=table[:, 0],
        event_s=table[:, 1],
        event_wall_s=table[:, 2],
        event_values=table[:, 3 : 3 + n_goals],
        event_costs=table[:, 3 + n_goals :],
        hypervolume=volumes,
        hypervolume_at=volumes_at,
        fronts=[rows.row[at] for at in fronts],
        front_values=[rows.values[at] for at in fronts],
        flights=flights,
        reasons=rows.reasons,
        full_rows=rows.row[shown],
        full_costs=cost_of[shown],
        full_feasible=rows.feasible[shown],
    )


def regret(costs: NDArray[np.float64], optimum: float) -> NDArray[np.float64]:
    """By which share costs are worse than the optimum's: 0.1 is a tenth.

    The measure of :meth:`archgym.problem.scoring.Scorer.regret`; ``inf`` without an optimum.
    """
    if not math.isfinite(optimum):
        return np.full(np.shape(costs), np.inf)
    with np.errstate(over="ignore"):
        return np.asarray(np.maximum(0.0, np.expm1(costs - optimum)))


def reaches(regrets: NDArray[np.float64], within: float = WITHIN) -> NDArray[np.bool_]:
    """Whether regrets are small enough to count as having reached the optimum."""
    return np.asarray(regrets <= within + _ROUNDING)


def non_dominated(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Indices of the points that no other is better than in every goal; of equal ones one.

    Args:
        points: minimised, shape (n, n_goals).
    """
    return np.flatnonzero(moocore.is_nondominated(points, keep_weakly=False))


def thinned(count: int, most: int) -> NDArray[np.int64]:
    """Evenly spread indices of ``count`` things, at most ``most``."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _spent(rows: Rows, fidelities: Sequence[Fidelity]) -> NDArray[np.float64]:
    """Budget that a trial had spent after each row, shape (n,)."""
    units = np.array(cost_units(fidelities), dtype=np.int64)
    level = np.searchsorted([one.value for one in fidelities], rows.fidelity)
    level = np.minimum(level, len(units) - 1)
    total = np.cumsum(np.where(rows.counted, units[level], 0))
    before = np.zeros(len(total), dtype=np.int64)
    for _, part in rows.parts():
        before[part] = total[part.start - 1] if part.start else 0
    return np.asarray((total - before) / units[-1])


def _counts(rows: Rows, n_trials: int) -> NDArray[np.int64]:
    kind = np.select(
        [
            rows.status == Status.ILLEGAL,
            rows.cached,
            rows.status == Status.FAILED,
            rows.status == Status.TIMEOUT,
            rows.status == Status.STOPPED,
            rows.feasible,
        ],
        [
            COUNTS.index(name)
            for name in ("illegal", "duplicate", "failed", "timeout", "stopped", "feasible")
        ],
        COUNTS.index("infeasible"),
    )
    size = len(COUNTS)
    flat = np.bincount(rows.trial.astype(np.int64) * size + kind, minlength=size * n_trials)
    return flat.reshape(n_trials, size)


def _framework_s(time_us: NDArray[np.int64], busy: NDArray[np.float64]) -> float:
    """Seconds from the first record to the last that neither simulator nor agent took."""
    gaps = np.diff(time_us) * 1e-6
    later = time_us > time_us[0]
    left = float(gaps.sum() - busy[later].sum())
    interrupted = gaps[gaps - busy[1:] > _INTERRUPTED_S]
    return max(0.0, left - float(interrupted.sum()))


def _hypervolumes(
    rows: Rows,
    good: NDArray[np.bool_],
    cumulated: NDArray[np.float64],
    spent: NDArray[np.float64],
    points: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Volume in the space of costs that each trial's front dominates, up to twice the baseline.

    The last point is taken for every trial, the others for at most :data:`_MAX_CURVES`.
    """
    n_goals, n_trials = rows.costs.shape[1], len(spent)
    if n_goals < 2 or not n_trials or not spent.max():
        return np.empty((n_trials, 0)), np.empty(0)
    at = np.unique(np.ceil(np.linspace(0, spent.max(), points + 1)[1:]))
    found = np.full((n_trials, len(at)), np.nan)
    followed = set(thinned(n_trials, _MAX_CURVES).tolist())
    reference = np.full(n_goals, _REFERENCE_COST)
    for number, part in rows.parts():
        where = np.flatnonzero(good[part]) + part.start
        where = where[(rows.costs[where] < _REFERENCE_COST).all(axis=1)]
        ends = np.searchsorted(cumulated[where], at, side="right")
        front, begun, volume = np.empty((0, n_goals)), 0, 0.0
        for i, end in enumerate(ends.tolist()):
            if i < len(at) - 1 and number not in followed:
                continue
            if end > begun:
                new = np.concatenate([front, rows.costs[where[begun:end]]])
                front, begun = new[non_dominated(new)], end
                volume = moocore.hypervolume(front, ref=reference) / _REFERENCE_COST**n_goals
            found[number, i] = volume
    found[np.isnan(found[:, -1]), -1] = 0.0  # trials without rows
    return found, at
