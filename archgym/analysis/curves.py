"""Curves over a search, from the steps at which trials got better."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from archgym.analysis.measures import reaches
from archgym.analysis.statistics import quantiles
from archgym.analysis.study import Problem
from archgym.analysis.timeline import busy_at

Clock = Literal["budget", "busy", "wall"]
"""What a curve is drawn over: budget spent, seconds in simulator and agent one after the other, or
seconds since the trial began."""
Band = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""Best values of some trials at each point of a search, each of shape (n,): a quarter of the trials
is below the first (it is the least of up to three trials), the second is their median, and a
quarter is above the third (it is the largest of up to three trials)."""


def budgets(problem: Problem, points: int) -> NDArray[np.float64]:
    """Budgets at which curves are shown: every one, or else closer together at the beginning."""
    last = int(np.ceil(problem.measures.spent.max(initial=0)))
    if last <= points:
        return np.arange(1, last + 1, dtype=np.float64)
    even = np.linspace(1, last, points - points // 2)
    ratios = np.geomspace(1, last, points // 2)
    return np.unique(np.round(np.concatenate([even, ratios])))


def seconds(problem: Problem, points: int, clock: Clock = "busy") -> NDArray[np.float64]:
    """Times at which curves are shown, s, evenly spread by their ratio."""
    measures = problem.measures
    if clock == "wall":
        ends = [flights[:, 1].max() for flights in measures.flights if len(flights)]
        last = max([*ends, float(measures.event_wall_s.max(initial=0))])
        first = measures.event_wall_s
    else:
        last = float((measures.simulation_s + measures.agent_s).max(initial=0))
        first = measures.event_s
    if last <= 0 or not len(first):
        return np.empty(0)
    return np.geomspace(max(float(first[first > 0].min(initial=last)), last * 1e-4), last, points)


def curves(
    problem: Problem,
    grid: NDArray[np.float64],
    *,
    clock: Clock = "budget",
    costs: bool = False,
    goal: int = 0,
) -> NDArray[np.float64]:
    """Best value of each trial at each point, ``inf`` before the first, shape (n_trials, n).

    A search that ended early keeps its last value.

    Args:
        problem: the problem.
        grid: points, ascending.
        clock: what the points are of.
        costs: give costs instead of values.
        goal: number of the goal.
    """
    measures = problem.measures
    at = {
        "budget": measures.event_spent,
        "busy": measures.event_s,
        "wall": measures.event_wall_s,
    }[clock]
    values = (measures.event_costs if costs else measures.event_values)[:, goal]
    found = np.full((len(problem.trials), len(grid) + 1), np.inf)
    place = np.searchsorted(grid, at)
    np.minimum.at(found, (measures.event_trial, place), values)
    return np.minimum.accumulate(found[:, :-1], axis=1)


def budgets_to_reach(problem: Problem, regret: float) -> NDArray[np.float64]:
    """Budget after which each trial was within a regret, ``inf`` if never, shape (n_trials,)."""
    measures = problem.measures
    found = np.full(len(problem.trials), np.inf)
    good = reaches(problem.regret(measures.event_costs[:, 0]), regret)
    np.minimum.at(found, measures.event_trial[good], measures.event_spent[good])
    return found


def busy_workers(problem: Problem, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean number of simulations that ran at a time in each trial, between the points of a grid.

    Args:
        problem: the problem.
        grid: seconds since the trial began, ascending, shape (n + 1,).

    Returns:
        Shape (n_trials, n); NaN for trials in which no executor simulated, and where all of it
        is after the end of a trial.
    """
    found = np.full((len(problem.trials), len(grid) - 1), np.nan)
    for number, flights in enumerate(problem.measures.flights):
        if len(flights):
            end = flights[:, 1].max()
            upper = np.minimum(grid, end)
            found[number] = busy_at(flights[:, 0], flights[:, 1], upper)
            found[number, grid[:-1] >= end] = np.nan
    return found


def spread(rows: NDArray[np.float64]) -> Band:
    """Median and quartiles of some trials' curves; of up to three, their range.

    Args:
        rows: shape (n_trials, n).
    """
    share = 0.25 if len(rows) > 3 else 0.0
    low, middle, high = quantiles(rows, [share, 0.5, 1.0 - share])
    return low, middle, high


def box(values: NDArray[np.float64]) -> tuple[float, float, float, float, float]:
    """Whisker, quartile, median, quartile, whisker (at most 1.5 quartile ranges away, Tukey)."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return (np.nan,) * 5
    first, middle, third = np.quantile(finite, [0.25, 0.5, 0.75]).tolist()
    reach = 1.5 * (third - first)
    inside = finite[(finite >= first - reach) & (finite <= third + reach)]
    return float(inside.min()), first, middle, third, float(inside.max())
