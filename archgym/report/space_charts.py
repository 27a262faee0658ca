"""The charts of the parameters: which of them matter, and their values in good designs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.analysis.good_values import good_values
from archgym.analysis.importance import REPEATS, TREES
from archgym.analysis.measures import thinned
from archgym.analysis.study import Problem
from archgym.charts.description import Axis, Chart, Series
from archgym.problem.goals import goal_label
from archgym.space import Parameter

_SHOWN_PARAMETERS = 15
_DIMENSIONS = 9
_VALUED_PARAMETERS, _SHOWN_VALUES = 5, 3
_MIN_VALUED_DESIGNS = 20
_MAX_LEVELS = 24
_LOG_FROM = 5.0


def importance_chart(problem: Problem) -> Iterator[Chart]:
    """Bars of the parameters that matter most."""
    found = problem.importance
    if found is None:
        return
    names = found.names[:_SHOWN_PARAMETERS]
    drop, spread = found.drop[: len(names)], found.spread[: len(names)]
    trust = (
        f"The model explains {found.explained:.0%} of the variance of designs it has not seen."
        if found.explained > 0.3
        else f"The model explains only {max(0.0, found.explained):.0%} of the variance of designs "
        "it has not seen: do not trust this chart."
    )
    more = len(found.names) - len(names)
    yield Chart(
        key="importance",
        kind="bars",
        title="Which parameters matter",
        x=Axis("loss of explained variance when shuffled", low=0.0),
        series=[Series("importance", x=drop, low=drop - spread, high=drop + spread)],
        categories=names,
        note=f"Permutation importance in a forest of {TREES} trees, {found.designs:,} "
        f"designs, a third of them held out; ends: standard deviation of {REPEATS} shuffles. "
        f"{trust}"
        + (f" Parameters that matter less are left out: {more}." if more else "")
        + " Agents choose the designs: what they never tried cannot show.",
    )


def good_values_chart(problem: Problem) -> Iterator[Chart]:
    """Bars of how often values of the parameters that matter most occur among good designs."""
    importance = problem.importance
    if importance is None:
        return
    codes, costs = problem.picked_designs
    kept = problem.measures.full_feasible[problem.picked]
    if kept.sum() < _MIN_VALUED_DESIGNS:
        return
    found = good_values(problem.space.parameters, codes[kept], costs[kept])
    shown = []
    for name in importance.names[:_VALUED_PARAMETERS]:
        values = [value for value in found if value.parameter == name and value.among_best > 0]
        shown += sorted(values, key=lambda value: -value.among_best)[:_SHOWN_VALUES]
    if not shown:
        return
    shares = np.array([value.among_best for value in shown])
    yield Chart(
        key="values",
        kind="bars",
        title="Values in the best designs",
        x=Axis("share of the best tenth of the designs", percent=True, low=0.0),
        series=[Series("share", x=shares, high=shares)],
        categories=[f"{v.parameter} = {v.value} (of all: {v.among_all:.0%})" for v in shown],
        note="The values that are most frequent among the best tenth of the feasible designs, "
        "and in brackets their share of all. One that is much more frequent among the best is a "
        "good value, or one that agents preferred once they had found good designs.",
    )


def parallel_coordinates(problem: Problem, designs: int) -> Iterator[Chart]:
    """A line a design through its parameters and goals; half of them among the best tenth.

    Designs beyond a limit are left out, unless fewer than two keep them.
    """
    codes, costs = problem.picked_designs
    if len(codes) < 2:
        return
    found = problem.importance
    feasible = problem.measures.full_feasible
    kept = np.flatnonzero(feasible[problem.picked])
    if len(kept) < 2:
        kept, feasible = np.arange(len(codes)), np.ones_like(feasible)
    ranked = kept[np.argsort(costs[kept], kind="stable")]
    top = ranked[: max(1, len(ranked) // 10)]
    half = designs // 2
    some = np.unique([*top[thinned(len(top), half)], *ranked[thinned(len(ranked), half)]])
    some = some[np.argsort(-costs[some], kind="stable")]  # the best are drawn last, on top
    names = found.names if found is not None else [p.name for p in problem.space.parameters]
    shown = [name for name in names if np.ptp(codes[some, problem.space.index(name)])][:_DIMENSIONS]
    dimensions = [
        _dimension(problem.space[name], codes[some, problem.space.index(name)]) for name in shown
    ]
    rows = problem.measures.full_rows[problem.picked[some]].tolist()
    values = problem.goal_values([problem.chosen[row].metrics for row in rows])
    for goal, column in zip(problem.objective.goals, values.T, strict=True):
        dimensions.append(_goal_dimension(goal_label(goal, problem.metrics), column))
    yield Chart(
        key="parallel",
        kind="parallel",
        title="Designs through their parameters",
        x=Axis("log ratio to the baseline"),
        series=[Series("cost", y=costs[some])],
        dimensions=dimensions,
        note=f"{len(some)} of {feasible.sum():,} simulated designs"
        f"{'' if feasible.all() else ' that keep all limits'}: half of "
        "them from the best tenth, half from all. Strong lines are good designs. Drag along an "
        "axis to choose a range, drag its name to move it."
        + (" The parameters that matter most." if found is not None else ""),
    )


def _goal_dimension(label: str, values: NDArray[np.float64]) -> dict[str, Any]:
    """An axis for a goal, logarithmic where values are far apart."""
    finite = values[np.isfinite(values)]
    if not len(finite) or finite.min() <= 0 or finite.max() / finite.min() < _LOG_FROM:
        return {"label": label, "values": values.tolist()}
    ends = np.log10([finite.min(), finite.max()])
    marks = [
        head * 10.0**power
        for power in range(math.floor(ends[0]), math.ceil(ends[1]) + 1)
        for head in (1, 2, 5)
        if ends[0] <= math.log10(head * 10.0**power) <= ends[1]
    ]
    ticks = [[round(math.log10(mark), 5) for mark in marks], [f"{mark:,.6g}" for mark in marks]]
    return {"label": label, "values": np.log10(values).tolist(), "ticks": ticks}


def _dimension(parameter: Parameter, codes: NDArray[np.int64]) -> dict[str, Any]:
    """An axis: values where they are numbers, else levels with names; below it the inactive."""
    label = parameter.name + (f" [{parameter.unit}]" if parameter.unit else "")
    ordered = np.unique(codes[codes >= 0])
    if parameter.continuous or (parameter.kind == "integer" and len(ordered) > _MAX_LEVELS):
        values = np.asarray(parameter.values(np.maximum(codes, 0)), dtype=np.float64)
        low, high = float(values[codes >= 0].min()), float(values[codes >= 0].max())
        off = low - 0.15 * ((high - low) or 1.0)
        return {"label": label, "values": np.where(codes < 0, off, values).tolist()}
    place = {code: i for i, code in enumerate(ordered.tolist())}
    ticks = [str(parameter.value(code)) for code in ordered.tolist()]
    values = np.array([place.get(code, -1) for code in codes.tolist()], dtype=np.float64)
    values += 0.2 * ((np.arange(len(values)) * 0.618034) % 1 - 0.5)  # or lines hide one another
    positions = list(range(len(ticks)))
    if (codes < 0).any():
        positions, ticks = [-1, *positions], ["not active", *ticks]
    step = -(-len(ticks) // _MAX_LEVELS)
    return {
        "label": label,
        "values": values.tolist(),
        "ticks": [positions[::step], ticks[::step]],
    }
