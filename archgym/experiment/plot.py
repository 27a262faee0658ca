"""The picture of a run: best objective so far against simulations, for each agent."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import ExperimentError
from archgym.experiment.summary import TrialSummary, goal_label, natural
from archgym.experiment.tables import agent_titles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from archgym.experiment.run import RunResult

__all__ = ["plot_best_so_far"]

_LOG_FROM = 5.0  # ratio of the largest to the smallest value from which the axis is logarithmic
_UNSETTLED = 0.05  # share of a search at its beginning that the axis need not show
_STYLES = ("-", "--", "-.", ":")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
_MOST_IN_LEGEND = 24


def plot_best_so_far(result: RunResult, path: Path) -> None:
    """Writes a PNG: one panel for each setting and goal, one line for each agent.

    A line is the mean over seeds and hyperparameter draws of the same label, its band their
    smallest and largest value; the dashed line is the baseline design.

    Raises:
        ExperimentError: if the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = _panels(result)
    if not panels:
        return
    columns = min(len(panels), 2 if len(panels) != 3 else 3)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(6.0 * columns, 3.9 * rows + 0.7), layout="constrained", dpi=110)
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    titles = agent_titles(result.trials)
    styles = {
        label: (_COLOURS[i % len(_COLOURS)], _STYLES[i // len(_COLOURS) % len(_STYLES)])
        for i, label in enumerate(titles)
    }
    handles: dict[str, Any] = {}
    for axis, (setting, goal, by_agent) in zip(axes, panels, strict=False):
        _draw(axis, setting, goal, by_agent, styles, handles)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    shown = list(handles)[:_MOST_IN_LEGEND]
    names = [textwrap.shorten(titles.get(label, label), 60) for label in shown]
    columns_of_legend = max(1, min(len(shown), int(14 * columns / (4 + max(map(len, names)) / 3))))
    figure.legend(
        [handles[label] for label in shown],
        names,
        loc="outside lower center",
        ncols=columns_of_legend,
        frameon=False,
    )
    FigureCanvasAgg(figure)
    try:
        figure.savefig(path)
    except OSError as error:
        raise ExperimentError(f"cannot write {path}: {error.strerror}") from error


def _panels(result: RunResult) -> list[tuple[str, int, dict[str, list[TrialSummary]]]]:
    """Setting, number of the goal, and the summaries of each agent label."""
    by_setting: dict[str, dict[str, list[TrialSummary]]] = {}
    for trial in result.trials:
        summary = result.summaries.get(trial.trial_id)
        if summary is not None and len(summary.curve):
            agents = by_setting.setdefault(trial.setting, {})
            agents.setdefault(trial.agent_label, []).append(summary)
    return [
        (setting, goal, agents)
        for setting, agents in by_setting.items()
        for goal in range(next(iter(agents.values()))[0].curve.shape[1])
    ]


def _draw(
    axis: Axes,
    setting: str,
    number: int,
    by_agent: dict[str, list[TrialSummary]],
    styles: dict[str, tuple[str, str]],
    handles: dict[str, Any],
) -> None:
    some = next(iter(by_agent.values()))[0]
    goal = some.objective.goals[number]
    sign = natural(goal, 1.0)
    shown: list[NDArray[np.float64]] = []
    for label, summaries in by_agent.items():
        x, low, mean, high = _band([summary.curve[:, number] for summary in summaries])
        if not len(x):
            continue
        colour, style = styles[label]
        handles[label] = axis.step(
            x, sign * mean, style, color=colour, linewidth=1.8, where="post"
        )[0]
        if len(summaries) > 1:
            axis.fill_between(
                x, sign * low, sign * high, color=colour, alpha=0.13, linewidth=0, step="post"
            )
        settled = x > _UNSETTLED * x[-1]
        shown += [sign * low[settled], sign * high[settled]]
    baseline = sign * float(some.baseline[number])
    if np.isfinite(baseline):
        handles["baseline"] = axis.axhline(baseline, color="#555555", linestyle="--", linewidth=1.0)
        shown.append(np.array([baseline]))
    _scale(axis, np.concatenate(shown) if shown else np.ones(1))
    axis.set_title(setting, fontsize=11)
    partly = any(s.spent != s.simulations for trials in by_agent.values() for s in trials)
    axis.set_xlabel("budget spent, in full simulations" if partly else "simulations")
    axis.set_ylabel(_axis_label(goal_label(goal, some.metrics)), fontsize=9)
    axis.set_xlim(left=0)
    axis.grid(alpha=0.25, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def _scale(axis: Axes, values: NDArray[np.float64]) -> None:
    """Shows these values; the first designs of a search may be far worse and lie outside."""
    low, high = float(values.min()), float(values.max())
    if low > 0 and high / low >= _LOG_FROM:
        axis.set_yscale("log")
        axis.set_ylim(low / 1.15, high * 1.15)
    else:
        margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
        axis.set_ylim(low - margin, high + margin)


def _axis_label(text: str) -> str:
    lines = textwrap.wrap(
        "best so far: " + text.replace("*", " \u00d7 "), 38, break_long_words=False
    )
    return "\n".join(lines)


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
