"""The charts of a problem's searches: progress, regret, spread, fronts, proposals and time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from archgym.analysis.curves import (
    Band,
    Clock,
    box,
    budgets,
    budgets_to_reach,
    busy_workers,
    curves,
    seconds,
    spread,
)
from archgym.analysis.measures import COUNTS, WITHIN, thinned
from archgym.analysis.statistics import share_interval
from archgym.analysis.study import Group, Problem, Study
from archgym.analysis.timeline import most_at_a_time
from archgym.charts.description import (
    Axis,
    Chart,
    Level,
    Numbers,
    Series,
    baseline_level,
    scaled,
)
from archgym.problem.goals import goal_label

_MIN_REGRET = 1e-4
_MAX_POINTS = 150
_MAX_FRONT_POINTS = 300
_MAX_FRONT_CHARTS = 6
_MAX_WITH_BANDS = 3  # intervals of more shares lie on one another
_AXIS_POINTS = 64
_SETTLED = 0.05  # share of a search at its beginning that the axis need not show
_CLOCKS: dict[Clock, tuple[Axis | None, str, str, str]] = {
    "budget": (None, "budget", "evaluations", ""),
    "busy": (
        Axis("time in simulator and agent [s]", log=True),
        "time",
        "time",
        " Time: of simulator and agent, one after the other.",
    ),
    "wall": (
        Axis("time since the beginning of the trial [s]", log=True),
        "wall_time",
        "elapsed time",
        " On a simulated clock it is the time of that clock. Times in which a run was interrupted "
        "are left out.",
    ),
}
"""The axis of each clock, its name in keys and in titles, and how to read it."""
_BAND = "Line: median of trials. Band: the middle half of them (with up to three, their range)."


def best_so_far(problem: Problem, points: int, clock: Clock = "budget") -> Iterator[Chart]:
    """Best value so far by budget or by time: a chart a goal."""
    grid = budgets(problem, points) if clock == "budget" else seconds(problem, points, clock)
    axis, suffix, what, note = _CLOCKS[clock]
    for goal, sought in enumerate(problem.objective.goals):
        series = []
        for group, *band in _bands(problem, curves(problem, grid, clock=clock, goal=goal)):
            first, middle, last = (problem.natural(goal, line) for line in band)
            low, high = sorted((first, last), key=lambda line: float(line[-1]))
            series.append(_line(group, grid, middle, low, high))
        baseline = problem.natural_baseline[goal]
        name = f"{sought.name} " if problem.several else ""
        yield Chart(
            key=f"best_by_{suffix}" + (f"_{goal + 1}" if goal else ""),
            kind="lines",
            title=f"Best {name}so far, by {what}",
            x=axis or _budget_axis(problem),
            y=_settled_axis(problem, goal),
            series=series,
            levels=baseline_level(baseline, broken=bool(problem.baseline_breaks)),
            note=_BAND
            + note
            + (" The baseline is not feasible." if problem.baseline_breaks else ""),
        )


def utilisation(problem: Problem, points: int) -> Iterator[Chart]:
    """How many simulations ran at a time, by elapsed time; only where an executor ran some."""
    flights = [one for one in problem.measures.flights if len(one)]
    if not flights:
        return
    grid = np.linspace(0.0, max(float(one[:, 1].max()) for one in flights), points // 2 + 1)
    rows = busy_workers(problem, grid)
    middle = 0.5 * (grid[1:] + grid[:-1])
    series = []
    for group, *band in _bands(problem, rows):
        if np.isfinite(band[1]).any():
            low, centre, high = band
            means = [_mean_busy(problem.measures.flights[i]) for i in group.trials.tolist()]
            mean = float(np.nanmean(means))
            line = _line(group, middle, centre, low, high)
            series.append(replace(line, name=f"{group.name}, mean {mean:.2f}"))
    most = max(most_at_a_time(one[:, 0], one[:, 1]) for one in flights)
    yield Chart(
        key="utilisation",
        kind="lines",
        title="Busy workers, by elapsed time",
        x=Axis("time since the beginning of the trial [s]"),
        y=Axis("simulations that run at a time", low=0.0, high=1.08 * most),
        series=series,
        levels=[Level(float(most), f"most at a time, {most}")],
        note=f"{_BAND} Means are over whole trials. On a simulated clock it is the time of that "
        "clock. Times in which a run was interrupted are left out.",
    )


def _mean_busy(flights: NDArray[np.float64]) -> float:
    if not len(flights):
        return float("nan")
    whole = float(flights[:, 1].max() - flights[:, 0].min())
    return float((flights[:, 1] - flights[:, 0]).sum()) / whole if whole > 0 else float("nan")


def _settled_axis(problem: Problem, goal: int) -> Axis:
    """The axis of best values: where searches settle, not where they begin."""
    grid = budgets(problem, _AXIS_POINTS)
    shown = [problem.baseline[goal : goal + 1]]
    for _, low, middle, high in _bands(problem, curves(problem, grid, goal=goal)):
        late, later = grid >= _SETTLED * grid[-1], grid >= 0.5 * grid[-1]
        shown += [low[late], middle[late], high[later]]
    label = goal_label(problem.objective.goals[goal], problem.metrics)
    return scaled(label, [problem.natural(goal, values) for values in shown])


def regrets(problem: Problem, points: int) -> Iterator[Chart]:
    """By which share the best so far is worse than the optimum; for one goal only."""
    if problem.several:
        return
    grid = budgets(problem, points)
    series = []
    for group, *band in _bands(problem, problem.regret(curves(problem, grid, costs=True))):
        shown = np.maximum(np.where(np.isfinite(band), band, np.nan), _MIN_REGRET)
        low, middle, high = shown
        series.append(_line(group, grid, middle, low, high))
    target = "the optimum" if problem.exact else "the best known design"
    yield Chart(
        key="regret",
        kind="lines",
        title="Regret, by evaluations",
        x=_budget_axis(problem),
        y=Axis(f"worse than {target}", log=True, percent=True, low=_MIN_REGRET),
        series=series,
        note=f"{_BAND} {_about_target(problem)} Less than {_MIN_REGRET:.2%} is drawn as "
        f"{_MIN_REGRET:.2%}.",
    )


def reaching(problem: Problem, points: int) -> Iterator[Chart]:
    """Share of trials that have come within 1 % of the optimum; for one goal only."""
    if problem.several:
        return
    grid = np.concatenate([[0.0], budgets(problem, points)])
    reached = budgets_to_reach(problem, WITHIN)
    with_bands = len(problem.groups) <= _MAX_WITH_BANDS
    series = []
    for group in problem.groups:
        hits = reached[group.trials][:, None] <= grid
        _, first, which = np.unique(hits.sum(axis=0), return_index=True, return_inverse=True)
        known = [share_interval(hits[:, i], group.units) for i in first.tolist()]
        lines = np.array([(one.value, one.low, one.high) for one in known])[which].T
        series.append(_line(group, grid, *lines[: 3 if with_bands else 1]))
    target = "the optimum" if problem.exact else "the best known design"
    intervals = "Intervals of the ends are in the table below."
    if with_bands:
        intervals = "Band: 95 % Wilson interval."
    yield Chart(
        key="reaching",
        kind="lines",
        title=f"Trials within {WITHIN:.0%} of {target}",
        x=_budget_axis(problem),
        y=Axis("share of trials", percent=True, low=0.0, high=1.02),
        series=series,
        note=f"{intervals} {_about_target(problem)}",
    )


def lottery(study: Study, problem: Problem) -> Chart:
    """Spread of the scores over hyperparameters and seeds, a box a searcher."""
    series = []
    for group in problem.groups:
        values = problem.natural_scores(group.scores)
        shown = np.sort(values, kind="stable")[thinned(len(values), _MAX_POINTS)]
        points = shown[np.isfinite(shown)].tolist()
        series.append(Series(group.name, group.searcher, y=box(values), points=points))
    lost = int((~np.isfinite(problem.score)).sum())
    axis = scaled(problem.score_label, [np.asarray(one.points, dtype=np.float64) for one in series])
    levels, far = [], ""
    if not problem.several and np.isfinite(problem.baseline[0]):
        baseline = problem.natural_baseline[0]
        low, high = axis.low or 0.0, axis.high or 0.0
        margin = 0.5 * (high - low)
        if low - margin <= baseline <= high + margin:
            levels = baseline_level(baseline, broken=bool(problem.baseline_breaks))
            axis = scaled(problem.score_label, [np.array([low, high, baseline])])
        else:
            far = f" The baseline, {baseline:,.5g} {problem.score_unit}, is out of sight."
    return Chart(
        key="lottery",
        kind="boxes",
        title="Spread over hyperparameters and seeds" if study.pooled else "Spread over seeds",
        y=axis,
        series=series,
        levels=levels,
        categories=[one.name for one in series],
        note="Box: middle half of the trials, and their median. Whiskers: furthest trial "
        "within 1.5 times the box. Dots: trials"
        + (", thinned" if len(problem.trials) > _MAX_POINTS else "")
        + (f"; {lost} found nothing feasible and are not shown." if lost else ".")
        + far,
    )


def hypervolumes(problem: Problem) -> Iterator[Chart]:
    """Hypervolume of the front so far by budget; for several goals only."""
    measures = problem.measures
    if not problem.several or not len(measures.hypervolume_at):
        return
    followed = np.asarray(np.isfinite(measures.hypervolume).all(axis=1))
    grid = np.concatenate([[0.0], measures.hypervolume_at])
    series = []
    for group in problem.groups:
        mine = measures.hypervolume[group.trials[followed[group.trials]]]
        if len(mine):
            low, middle, high = spread(np.column_stack([np.zeros(len(mine)), mine]))
            series.append(_line(group, grid, middle, low, high))
    left = int((~followed).sum())
    yield Chart(
        key="hypervolume",
        kind="lines",
        title="Hypervolume, by evaluations",
        x=_budget_axis(problem),
        y=Axis("hypervolume", low=0.0),
        series=series,
        note=f"{_BAND} Volume that the front dominates in log ratios to the baseline, up to "
        "twice the baseline in every goal; the baseline alone has 1."
        + (f" {left} trials are left out of this chart only." if left else ""),
    )


def fronts(problem: Problem) -> Iterator[Chart]:
    """Non-dominated designs of each searcher, a chart for every pair of goals."""
    goals = problem.objective.goals
    _, found, searchers = problem.front
    values = problem.natural_values(found)
    labels = [goal_label(goal, problem.metrics) for goal in goals]
    pairs = itertools.combinations(range(len(goals)), 2)
    for i, j in itertools.islice(pairs, _MAX_FRONT_CHARTS):
        series = []
        for group in problem.groups:
            mine = values[searchers == group.searcher]
            if len(mine):
                order = np.argsort(mine[:, i], kind="stable")
                shown = mine[order[thinned(len(order), _MAX_FRONT_POINTS)]]
                series.append(Series(group.name, group.searcher, shown[:, i], shown[:, j]))
        axes = values if len(values) else np.ones((1, len(goals)))
        yield Chart(
            key=f"front_{i + 1}_{j + 1}",
            kind="points",
            title=f"Pareto front: {goals[i].name} and {goals[j].name}",
            x=scaled(labels[i], [axes[:, i]]),
            y=scaled(labels[j], [axes[:, j]]),
            series=series,
            note="Designs of all trials of one name that no other of them beats in every goal"
            + (f" (of {len(goals)}, seen from two)." if len(goals) > 2 else "."),
        )


def feasibility(problem: Problem) -> Chart:
    """Shares of the kinds of proposals."""
    counts = problem.measures.counts
    totals = np.array([counts[group.trials].sum(axis=0) for group in problem.groups])
    return _stack(
        "feasibility",
        "Kinds of proposals",
        "share of proposals",
        {name: totals[:, i] for i, name in enumerate(COUNTS) if totals[:, i].any()},
        np.maximum(1, totals.sum(axis=1)),
        [group.name for group in problem.groups],
        "Infeasible: simulated, but beyond a limit. Illegal (against a rule of the space) and "
        "duplicate proposals are not simulated and cost no budget.",
    )


def time_split(problem: Problem) -> Chart:
    """Shares of the time in simulator, agent and framework."""
    measures = problem.measures
    columns = (measures.simulation_s, measures.agent_s, measures.framework_s)
    parts = {
        name: np.array([column[group.trials].sum() for group in problem.groups])
        for name, column in zip(("simulator", "agent", "framework"), columns, strict=True)
    }
    whole = np.maximum(sum(parts.values()), 1e-12)
    return _stack(
        "time_split",
        "Where the time went",
        "share of time",
        parts,
        whole,
        [f"{g.name}, {_duration(s)}" for g, s in zip(problem.groups, whole.tolist(), strict=True)],
        "From the beginning of each trial to its end, or, where nothing says when these "
        "were, between its first and its last record: what neither simulator nor agent took is "
        "the framework's. Starting processes is not in it.",
    )


def _stack(
    key: str,
    title: str,
    label: str,
    parts: dict[str, NDArray[np.float64]],
    whole: NDArray[np.float64],
    categories: Sequence[str],
    note: str,
) -> Chart:
    """Bars of shares that add up to 1, one a category."""
    return Chart(
        key=key,
        kind="stack",
        title=title,
        x=Axis(label, percent=True, low=0.0, high=1.01),
        series=[Series(name, x=(part / whole).tolist()) for name, part in parts.items()],
        categories=categories,
        note=note,
    )


def _line(
    group: Group, grid: NDArray[np.float64], middle: Numbers, low: Numbers = (), high: Numbers = ()
) -> Series:
    return Series(group.name, group.searcher, grid, middle, low, high)


def _bands(problem: Problem, rows: NDArray[np.float64]) -> list[tuple[Group, *Band]]:
    """Lower quartile, median and upper quartile of each searcher's trials."""
    if not rows.shape[1]:
        return []
    return [(group, *spread(rows[group.trials])) for group in problem.groups]


def _budget_axis(problem: Problem) -> Axis:
    partly = bool((problem.measures.spent != problem.measures.simulations).any())
    return Axis("budget spent, full simulations" if partly else "simulations", low=0.0)


def _about_target(problem: Problem) -> str:
    if problem.exact:
        return "The optimum is known exactly."
    return "The optimum is not known: the best design of this report stands for it."


def _duration(seconds_: float) -> str:
    if seconds_ < 120:
        return f"{seconds_:.3g} s"
    return f"{seconds_ / 60:.3g} min" if seconds_ < 7200 else f"{seconds_ / 3600:.3g} h"
