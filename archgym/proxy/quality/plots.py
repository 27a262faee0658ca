"""Pictures of a proxy: predictions against the truth, and learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from archgym.errors import DatasetError
from archgym.proxy.quality.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 4
_MAX_POINTS = 4000


def plot_parity(evaluations: Sequence[Evaluation], path: Path) -> None:
    """A panel for each metric on each workload: prediction against truth.

    Raises:
        DatasetError: if the file cannot be written.
    """
    figure, axes = _panels(len(evaluations), 3.4)
    for axis, one in zip(axes, evaluations, strict=False):
        step = max(1, len(one.truth) // _MAX_POINTS)
        axis.plot(one.truth[::step], one.predicted[::step], ".", markersize=2, alpha=0.5)
        ends = [float(one.truth.min()), float(one.truth.max())]
        axis.plot(ends, ends, "k-", linewidth=0.7)
        if ends[0] > 0 and ends[1] > 20 * ends[0]:
            axis.set(xscale="log", yscale="log")
        axis.set_title(f"{one.metric}\n{one.workload}", fontsize=8)
        axis.set_xlabel(f"simulated; relative RMSE {one.scores.relative_rmse:.2%}", fontsize=7)
        axis.set_ylabel("predicted", fontsize=7)
        axis.tick_params(labelsize=6)
    _save(figure, path)


def plot_curves(
    panels: Mapping[str, Mapping[str, Sequence[tuple[int, Sequence[float]]]]], path: Path
) -> None:
    """Relative RMSE against the number of training designs: a panel a metric, a line a name.

    Args:
        panels: for each panel and each name, sizes with one error a repetition; the band is their
            range, the line their median.
        path: of the picture.

    Raises:
        DatasetError: if the file cannot be written.
    """
    figure, axes = _panels(len(panels), 3.8, legend=1.2, sharex=True)
    for axis, (title, curves) in zip(axes, panels.items(), strict=False):
        for name, points in curves.items():
            sizes = [size for size, _ in points]
            ends = [np.quantile(errors, [0.0, 0.5, 1.0]) for _, errors in points]
            low, middle, high = 100 * np.array(ends).T
            (line,) = axis.plot(sizes, middle, "o-", markersize=3, label=name)
            axis.fill_between(sizes, low, high, color=line.get_color(), alpha=0.15)
        axis.set(xscale="log", yscale="log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("designs in the training data", fontsize=8)
        axis.set_ylabel("relative RMSE on unseen designs [%]", fontsize=8)
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=7)
    lines, names = axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside right upper", fontsize=8)
    _save(figure, path)


def _panels(
    count: int, width: float, *, legend: float = 0.0, sharex: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with a grid of panels, the last of which may be empty; sizes in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(_COLUMNS, count)
    rows = -(-count // columns)
    size = (width * columns + legend, 3.3 * rows)
    figure = Figure(figsize=size, layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=sharex).ravel().tolist()
    for axis in axes[count:]:
        axis.set_axis_off()
    return figure, axes


def _save(figure: Figure, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise DatasetError(f"cannot write {path}: {error}") from error
