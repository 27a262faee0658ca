"""The picture of a run: best objective so far against simulations, for each agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.analysis.trials import TrialSummary
from archgym.charts.description import Axis, Chart, Series, baseline_level, scaled
from archgym.charts.draw import Panel, draw_grid
from archgym.errors import ExperimentError
from archgym.experiment.results.run_result import RunResult
from archgym.experiment.results.texts import agent_titles
from archgym.experiment.spec.expand import Trial
from archgym.problem.goals import goal_label, natural

_UNSETTLED = 0.05  # share of a search at its beginning that the axis need not show
_DPI = 110


def plot_best_so_far(result: RunResult, path: Path) -> None:
    """Writes a PNG: one panel for each problem and goal, one line for each agent.

    A line is the mean over seeds and hyperparameter draws of the same label, its band their
    smallest and largest value; the dashed line is the baseline design. Searches of one problem
    with and without history share its panel. Trials that found nothing feasible are in no line;
    the legend says how many the line is of, if any.

    Raises:
        ExperimentError: if the file cannot be written.
    """
    searchers = list(dict.fromkeys(map(_searcher, result.trials)))
    titles = agent_titles(result.trials)
    named = {one: titles[one.label] + one.suffix for one in searchers}
    panels = [
        Panel(_chart(number, by_searcher, named), name)
        for name, number, by_searcher in _panels(result)
    ]
    if not panels:
        return
    try:
        draw_grid(panels, [path], dpi=_DPI)
    except OSError as error:
        raise ExperimentError(f"cannot write {path}: {error.strerror}") from error


class _Searcher(NamedTuple):
    label: str
    suffix: str


def _searcher(trial: Trial) -> _Searcher:
    return _Searcher(trial.agent_label, ", with history" if trial.history else "")


def _panels(result: RunResult) -> list[tuple[str, int, dict[_Searcher, list[TrialSummary]]]]:
    """Name of the problem, number of the goal, and the summaries of each searcher."""
    names: dict[str, str] = {}
    by_problem: dict[str, dict[_Searcher, list[TrialSummary]]] = {}
    for trial in result.trials:
        summary = result.summaries.get(trial.trial_id)
        if summary is not None and len(summary.curve):
            problem = json.dumps([trial.environment, trial.arguments, trial.initial])
            names.setdefault(problem, trial.setting)
            searchers = by_problem.setdefault(problem, {})
            searchers.setdefault(_searcher(trial), []).append(summary)
    return [
        (names[problem], goal, searchers)
        for problem, searchers in by_problem.items()
        for goal in range(next(iter(searchers.values()))[0].curve.shape[1])
    ]


def _chart(
    number: int,
    by_searcher: dict[_Searcher, list[TrialSummary]],
    titles: dict[_Searcher, str],
) -> Chart:
    some = next(iter(by_searcher.values()))[0]
    goal, limits = some.objective.goals[number], some.objective.limits
    colours = {one: i for i, one in enumerate(titles)}
    series, shown = [], []
    for one, summaries in by_searcher.items():
        curves = [natural(goal, some.metrics, summary.curve[:, number]) for summary in summaries]
        found = [curve for curve in curves if np.isfinite(curve).any()]
        if not found:
            series.append(Series(f"{titles[one]}: nothing feasible", colours[one]))
            continue
        part = f", {len(found)} of {len(curves)} trials" if len(found) < len(curves) else ""
        x, low, mean, high = _band(found)
        ends = (low, high) if len(found) > 1 else ((), ())
        series.append(Series(f"{titles[one]}{part}", colours[one], x, mean, *ends))
        settled = x > _UNSETTLED * x[-1]
        shown += [low[settled], high[settled]]
    baseline = natural(goal, some.metrics, float(some.baseline[number]))
    broken = any(one.broken_by(some.baseline_metrics.get(one.metric)) for one in limits)
    levels = baseline_level(baseline, broken=broken)
    end = None if shown else max(len(s.curve) for trials in by_searcher.values() for s in trials)
    partly = any(s.spent != s.simulations for trials in by_searcher.values() for s in trials)
    return Chart(
        key="best_so_far",
        kind="lines",
        title="Best so far",
        x=Axis("budget spent, in full simulations" if partly else "simulations", low=0.0, high=end),
        y=scaled(
            f"best so far: {goal_label(goal, some.metrics)}",
            [*shown, np.array([level.value for level in levels])],
        ),
        series=series,
        levels=levels,
    )


def _band(
    curves: Sequence[NDArray[np.float64]],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Simulations, least, mean and largest value, from where every curve has one.

    A search that ended early (the space was exhausted) keeps its last value.
    """
    length = max(len(curve) for curve in curves)
    rows = np.stack([np.concatenate([c, np.full(length - len(c), c[-1])]) for c in curves])
    there = np.flatnonzero(np.isfinite(rows).all(axis=0))
    rows = rows[:, there]
    return there + 1, rows.min(axis=0), rows.mean(axis=0), rows.max(axis=0)
