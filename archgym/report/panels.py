"""The charts of a problem: how searches went, and what they came to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.analysis.curves import (
    Band,
    budgets,
    budgets_to_reach,
    curves,
    seconds,
    spread,
    summary,
)
from archgym.analysis.measures import COUNTS
from archgym.analysis.statistics import share_interval
from archgym.analysis.study import Problem, Study
from archgym.charts.charts import Axis, Chart, Level, Series, scaled
from archgym.problem.goals import goal_label, natural

__all__ = [
    "WITHIN",
    "best_so_far",
    "feasibility",
    "fronts",
    "hypervolumes",
    "lottery",
    "reaching",
    "regrets",
    "time_split",
]

WITHIN = 0.01
"""A trial has reached the optimum when it is worse by no more than this share."""
_LEAST_REGRET = 1e-4
_MOST_POINTS = 150
_MOST_WITH_BANDS = 3  # intervals of more shares lie on one another
_AXIS_POINTS = 64
_SETTLED = 0.05  # share of a search at its beginning that the axis need not show
_BAND = "Line: median of trials. Band: the middle half of them (with up to three, their range)."


def best_so_far(study: Study, problem: Problem, points: int, *, time: bool = False) -> list[Chart]:
    """Best value so far by budget, or by seconds in simulator and agent: a chart a goal."""
    grid = (seconds if time else budgets)(problem, points)
    return [_best(study, problem, grid, goal, time) for goal in range(len(problem.objective.goals))]


def _settled_axis(problem: Problem, goal: int) -> Axis:
    """The axis of best values: where searches settle, not where they begin."""
    sought = problem.objective.goals[goal]
    grid = budgets(problem, _AXIS_POINTS)
    shown = [problem.baseline[goal : goal + 1]]
    for _, band in _bands(problem, curves(problem, grid, goal=goal)):
        late, later = grid >= _SETTLED * grid[-1], grid >= 0.5 * grid[-1]
        shown += [band.low[late], band.middle[late], band.high[later]]
    told = [natural(sought, problem.metrics, values) for values in shown]
    return scaled(goal_label(sought, problem.metrics), told)


def _best(
    study: Study, problem: Problem, grid: NDArray[np.float64], goal: int, time: bool
) -> Chart:
    sought = problem.objective.goals[goal]
    rows = curves(problem, grid, time=time, goal=goal)
    series = []
    for searcher, band in _bands(problem, rows):
        low, middle, high = (
            natural(sought, problem.metrics, line) for line in (band.low, band.middle, band.high)
        )
        low, high = sorted((low, high), key=lambda ends: float(ends[-1]))
        name = study.searchers[searcher].name
        series.append(Series(name, searcher, grid, middle, low, high))
    baseline = natural(sought, problem.metrics, float(problem.baseline[goal]))
    levels = (
        [Level(baseline, _baseline(problem), dotted=bool(problem.baseline_breaks))]
        if np.isfinite(baseline)
        else []
    )
    return Chart(
        key=f"best_by_{'time' if time else 'budget'}" + (f"_{goal + 1}" if goal else ""),
        kind="lines",
        title=f"Best {sought.name if problem.several else ''} so far, by ".replace("  ", " ")
        + ("time" if time else "evaluations"),
        x=_time_axis() if time else _budget_axis(problem),
        y=_settled_axis(problem, goal),
        series=series,
        levels=levels,
        note=_BAND
        + (" Time: of simulator and agent, one after the other." if time else "")
        + (" The baseline is not feasible." if problem.baseline_breaks else ""),
    )


def regrets(study: Study, problem: Problem, points: int) -> list[Chart]:
    """By which share the best so far is worse than the optimum; for one goal only."""
    if problem.several:
        return []
    grid = budgets(problem, points)
    rows = problem.regret(curves(problem, grid, costs=True))
    series = []
    for searcher, band in _bands(problem, rows):
        ends = [
            np.maximum(np.where(np.isfinite(e), e, np.nan), _LEAST_REGRET)
            for e in (band.low, band.middle, band.high)
        ]
        series.append(
            Series(study.searchers[searcher].name, searcher, grid, ends[1], ends[0], ends[2])
        )
    return [
        Chart(
            key="regret",
            kind="lines",
            title="Regret, by evaluations",
            x=_budget_axis(problem),
            y=Axis(f"worse than {_target(problem)}", log=True, percent=True, low=_LEAST_REGRET),
            series=series,
            note=f"{_BAND} {_about_target(problem)} Less than {_LEAST_REGRET:.2%} is drawn as "
            f"{_LEAST_REGRET:.2%}.",
        )
    ]


def reaching(study: Study, problem: Problem, points: int) -> list[Chart]:
    """Share of trials that have come within 1 % of the optimum; for one goal only."""
    if problem.several:
        return []
    grid = np.concatenate([[0.0], budgets(problem, points)])
    reached = budgets_to_reach(problem, WITHIN)
    series = []
    groups = np.unique(problem.searcher).tolist()
    for searcher in groups:
        mine = reached[problem.searcher == searcher]
        hits = mine[:, None] <= grid
        units = problem.units[problem.searcher == searcher]
        known = {n: share_interval(hits[:, i], units) for n, i in _firsts(hits.sum(axis=0))}
        ends = [known[n] for n in hits.sum(axis=0).tolist()]
        series.append(
            Series(
                study.searchers[searcher].name,
                searcher,
                grid,
                [end.value for end in ends],
                [end.low for end in ends] if len(groups) <= _MOST_WITH_BANDS else (),
                [end.high for end in ends] if len(groups) <= _MOST_WITH_BANDS else (),
            )
        )
    return [
        Chart(
            key="reaching",
            kind="lines",
            title=f"Probability to come within {WITHIN:.0%} of {_target(problem)}",
            x=_budget_axis(problem),
            y=Axis("share of trials", percent=True, low=0.0, high=1.02),
            series=series,
            note=(
                "Band: 95 % Wilson interval. "
                if len(groups) <= _MOST_WITH_BANDS
                else "Intervals of the ends are in the table below. "
            )
            + _about_target(problem),
        )
    ]


def lottery(study: Study, problem: Problem) -> list[Chart]:
    """What trials came to: spread over hyperparameters and seeds, a box a searcher."""
    series = []
    for searcher in np.unique(problem.searcher).tolist():
        mine = problem.trials_of(searcher)
        scores = problem.score[mine]
        values = np.array([problem.natural_score(v) for v in scores.tolist()])
        some = np.unique(np.linspace(0, len(mine) - 1, min(len(mine), _MOST_POINTS)).astype(int))
        shown = values[np.argsort(values, kind="stable")][some]
        series.append(
            Series(
                study.searchers[searcher].name,
                searcher,
                y=summary(values),
                points=shown[np.isfinite(shown)].tolist(),
            )
        )
    label = _with_unit(problem.score_name, problem.score_unit)
    lost = int((~np.isfinite(problem.score)).sum())
    axis = scaled(label, [np.asarray(one.points, dtype=np.float64) for one in series])
    levels, far = [], ""
    if not problem.several and np.isfinite(problem.baseline[0]):
        baseline = problem.natural_score(float(problem.baseline[0]))
        low, high = axis.low or 0.0, axis.high or 0.0
        if low - 0.5 * (high - low) <= baseline <= high + 0.5 * (high - low):
            levels = [Level(baseline, _baseline(problem), dotted=bool(problem.baseline_breaks))]
            axis = scaled(label, [np.array([low, high, baseline])])
        else:
            far = f" The baseline, {baseline:,.5g} {problem.score_unit}, is out of sight."
    return [
        Chart(
            key="lottery",
            kind="boxes",
            title="Spread over hyperparameters and seeds" if study.pooled else "Spread over seeds",
            x=Axis(""),
            y=axis,
            series=series,
            levels=levels,
            categories=[one.name for one in series],
            note="Box: middle half of the trials, and their median. Whiskers: furthest trial "
            "within 1.5 times the box. Dots: trials"
            + (", thinned" if len(problem.ids) > _MOST_POINTS else "")
            + (f"; {lost} found nothing feasible and are not shown." if lost else ".")
            + far,
        )
    ]


def hypervolumes(study: Study, problem: Problem) -> list[Chart]:
    """Hypervolume of the front so far by budget; for several goals only."""
    measures = problem.measures
    if not problem.several or not len(measures.hypervolume_at):
        return []
    followed = np.isfinite(measures.hypervolume).all(axis=1)
    grid = np.concatenate([[0.0], measures.hypervolume_at])
    series = []
    for searcher in np.unique(problem.searcher).tolist():
        mine = measures.hypervolume[followed & (problem.searcher == searcher)]
        if len(mine):
            band = spread(np.column_stack([np.zeros(len(mine)), mine]))
            name = study.searchers[searcher].name
            series.append(Series(name, searcher, grid, band.middle, band.low, band.high))
    left = int((~followed).sum())
    return [
        Chart(
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
    ]


def fronts(study: Study, problem: Problem) -> list[Chart]:
    """Non-dominated designs of each searcher, a chart for every pair of goals."""
    if not problem.several:
        return []
    goals = problem.objective.goals
    _, values, searchers = problem.front
    values = np.column_stack(
        [natural(goal, problem.metrics, values[:, i]) for i, goal in enumerate(goals)]
    )
    pairs = [(i, j) for i in range(len(goals)) for j in range(i + 1, len(goals))][:6]
    charts = []
    for i, j in pairs:
        series, shown = [], []
        for searcher in np.unique(searchers).tolist():
            mine = values[searchers == searcher]
            order = np.argsort(mine[:, i], kind="stable")
            order = order[
                np.unique(np.linspace(0, len(order) - 1, min(len(order), 300)).astype(int))
            ]
            name = study.searchers[searcher].name
            series.append(Series(name, searcher, mine[order, i], mine[order, j]))
            shown.append(mine)
        together = np.concatenate(shown) if shown else np.ones((1, len(goals)))
        levels: list[Level] = []
        charts.append(
            Chart(
                key=f"front_{i + 1}_{j + 1}",
                kind="points",
                title=f"Pareto front: {goals[i].name} and {goals[j].name}",
                x=scaled(goal_label(goals[i], problem.metrics), [together[:, i]]),
                y=scaled(goal_label(goals[j], problem.metrics), [together[:, j]]),
                series=series,
                levels=levels,
                note="Designs of all trials of one name that no other of them beats in every goal"
                + (f" (of {len(goals)}, seen from two)." if len(goals) > 2 else "."),
            )
        )
    return charts


def feasibility(study: Study, problem: Problem) -> Chart:
    """What proposals came to."""
    groups = np.unique(problem.searcher).tolist()
    totals = np.array(
        [problem.measures.counts[problem.searcher == group].sum(axis=0) for group in groups]
    )
    shares = totals / np.maximum(1, totals.sum(axis=1, keepdims=True))
    return Chart(
        key="feasibility",
        kind="stack",
        title="What proposals came to",
        x=Axis("share of proposals", percent=True, low=0.0, high=1.01),
        y=Axis(""),
        series=[
            Series(name, x=shares[:, i].tolist())
            for i, name in enumerate(COUNTS)
            if totals[:, i].any()
        ],
        categories=[study.searchers[group].name for group in groups],
        note="Infeasible: simulated, but beyond a limit. Illegal (against a rule of the space) and "
        "duplicate proposals are not simulated and cost no budget.",
    )


def time_split(study: Study, problem: Problem) -> Chart:
    """Where the time went."""
    groups = np.unique(problem.searcher).tolist()
    parts = ("simulator", "agent", "framework")
    measures = problem.measures
    columns = (measures.simulation_s, measures.agent_s, measures.framework_s)
    totals = np.array([[column[problem.searcher == g].sum() for column in columns] for g in groups])
    whole = np.maximum(totals.sum(axis=1, keepdims=True), 1e-12)
    return Chart(
        key="time_split",
        kind="stack",
        title="Where the time went",
        x=Axis("share of time", percent=True, low=0.0, high=1.01),
        y=Axis(""),
        series=[Series(name, x=(totals / whole)[:, i].tolist()) for i, name in enumerate(parts)],
        categories=[
            f"{study.searchers[g].name}, {_duration(float(whole[i, 0]))}"
            for i, g in enumerate(groups)
        ],
        note="From the beginning of each trial to its end, or, where nothing says when these "
        "were, between its first and its last record: what neither simulator nor agent took is "
        "the framework's. Starting processes is not in it.",
    )


def _bands(problem: Problem, rows: NDArray[np.float64]) -> list[tuple[int, Band]]:
    """Median and quartiles of each searcher's trials."""
    return [
        (searcher, spread(rows[problem.searcher == searcher]))
        for searcher in np.unique(problem.searcher).tolist()
        if rows.shape[1]
    ]


def _firsts(numbers: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Each number once, and where it is first."""
    found, at = np.unique(numbers, return_index=True)
    return list(zip(found.tolist(), at.tolist(), strict=True))


def _budget_axis(problem: Problem) -> Axis:
    measures = problem.measures
    partly = bool((measures.spent != measures.counts[:, :4].sum(axis=1)).any())
    return Axis("budget spent, full simulations" if partly else "simulations", low=0.0)


def _time_axis() -> Axis:
    return Axis("time in simulator and agent [s]", log=True)


def _baseline(problem: Problem) -> str:
    return "baseline, not feasible" if problem.baseline_breaks else "baseline"


def _target(problem: Problem) -> str:
    return "the optimum" if problem.exact else "the best known design"


def _about_target(problem: Problem) -> str:
    if problem.exact:
        return "The optimum is known exactly."
    return "The optimum is not known: the best design of this report stands for it."


def _with_unit(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name


def _duration(seconds_: float) -> str:
    if seconds_ < 120:
        return f"{seconds_:.3g} s"
    return f"{seconds_ / 60:.3g} min" if seconds_ < 7200 else f"{seconds_ / 3600:.3g} h"
