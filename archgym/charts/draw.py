"""Draws charts with Matplotlib: panels side by side, one legend below."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archgym.charts.description import COLOURS, PART_COLOURS, Axis, Chart, Kind, Numbers, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES = ("-", "--", ":", "-.")
_MARKERS = "os^Dv<>P"
_HORIZONTAL = ("bars", "stack", "intervals")
_MAX_IN_LEGEND = 24
_SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "pdf.fonttype": 42,  # TrueType: what publishers ask for
    "ps.fonttype": 42,
    "svg.hashsalt": "archgym",
}
_PLAIN = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": "archgym"},
    "png": {"Software": "archgym"},
    "svg": {"Date": None, "Creator": "archgym"},
}


@dataclass(frozen=True)
class Panel:
    """A chart and what stands above it."""

    chart: Chart
    title: str


@dataclass(frozen=True)
class _Drawing:
    """What the panels of a figure share: handles of its legend by name, and looks."""

    handles: dict[str, Any]
    looks: Sequence[tuple[int, int]]

    def look(self, one: Series) -> tuple[str, str]:
        """Colour and line style."""
        if one.searcher < 0:
            return "#555555", "--"
        number = one.searcher
        style, colour = divmod(number, len(COLOURS))
        if self.looks:
            colour, style = self.looks[number]
        return COLOURS[colour], _STYLES[style % len(_STYLES)]


def draw_grid(
    panels: Sequence[Panel],
    paths: Sequence[Path],
    looks: Sequence[tuple[int, int]] = (),
    *,
    dpi: int = 160,
) -> None:
    """Draws panels side by side into files.

    Args:
        panels: what is drawn.
        paths: the files; their endings say the format.
        looks: number of the colour and of the line style of each searcher; one after the other
            by default.
        dpi: resolution where the format has pixels.

    Raises:
        OSError: if a file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    wide = panels[0].chart.kind == "parallel"
    columns = 1 if wide else min(len(panels), 3 if len(panels) in (3, 5, 6, 9, 11, 12) else 2)
    rows = -(-len(panels) // columns)
    width, height = (11.0, 4.6) if wide else (5.2, 3.6 + _extra_height(panels))
    with mpl.rc_context(_SETTINGS):
        figure = Figure(
            figsize=(width * columns, height * rows + 0.5), layout="constrained", dpi=dpi
        )
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
        handles: dict[str, Any] = {}
        for axis, panel in zip(axes, panels, strict=False):
            drawing = _Drawing(handles, looks)
            _KINDS[panel.chart.kind](axis, panel.chart, drawing)
            _frame(axis, panel.chart, drawing)
            axis.set_title(_text(_folded(panel.title, 46 if not wide else 120)))
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        names = list(handles)[:_MAX_IN_LEGEND]
        if names:
            shown = [textwrap.shorten(name, 60) for name in names]
            each = 0.7 + 0.07 * max(map(len, shown))  # inches
            figure.legend(
                [handles[name] for name in names],
                [_text(name) for name in shown],
                loc="outside lower center",
                ncols=max(1, min(len(names), int(columns * width / each))),
                frameon=False,
            )
        for path in paths:
            ending = path.suffix.removeprefix(".")
            figure.savefig(path, metadata=_PLAIN.get(ending))


def _extra_height(panels: Sequence[Panel]) -> float:
    rows = [len(one.chart.categories) for one in panels if one.chart.kind in _HORIZONTAL]
    return max(0.0, 0.2 * (max(rows, default=0) - 12))


def _lines(axis: Axes, chart: Chart, drawing: _Drawing) -> None:
    for one in chart.series:
        x, y = _array(one.x), _array(one.y)
        there = np.isfinite(y)
        if len(y) and not there.any():
            continue  # a series without any values is in the legend only
        colour, style = drawing.look(one)
        drawing.handles[one.name] = axis.step(
            x[there], y[there], style, color=colour, linewidth=1.7, where="post"
        )[0]
        if len(one.low):
            low, high = _array(one.low), _array(one.high)
            band = there & np.isfinite(low) & np.isfinite(high)
            axis.fill_between(
                x[band], low[band], high[band], color=colour, alpha=0.14, linewidth=0, step="post"
            )


def _points(axis: Axes, chart: Chart, drawing: _Drawing) -> None:
    for one in chart.series:
        colour, _ = drawing.look(one)
        marker = _MARKERS[one.searcher % len(_MARKERS)]
        drawing.handles[one.name] = axis.scatter(
            _array(one.x), _array(one.y), s=16, color=colour, marker=marker, alpha=0.8
        )


def _boxes(axis: Axes, chart: Chart, drawing: _Drawing) -> None:
    for place, one in enumerate(chart.series):
        colour, _ = drawing.look(one)
        keys = ("whislo", "q1", "med", "q3", "whishi")
        if len(one.y) and np.isfinite(one.y[2]):
            box: dict[str, Any] = dict(zip(keys, one.y, strict=True))
            axis.bxp(
                [{**box, "fliers": []}],
                positions=[place],
                widths=0.5,
                showfliers=False,
                patch_artist=True,
                boxprops={"facecolor": colour, "alpha": 0.3, "edgecolor": colour},
                medianprops={"color": colour, "linewidth": 2},
                whiskerprops={"color": colour},
                capprops={"color": colour},
            )
        points = _array(one.points)
        places = place - 0.2 + 0.4 * ((np.arange(len(points)) * 0.618034) % 1)
        axis.scatter(places, points, s=6, color=colour, alpha=0.45, linewidths=0)
    names = [_text(_folded(textwrap.shorten(name, 40), 14)) for name in chart.categories]
    axis.set_xticks(range(len(names)), names, rotation=30 if len(names) > 6 else 0)
    axis.set_xlim(-0.6, len(names) - 0.4)


def _bars(axis: Axes, chart: Chart, drawing: _Drawing) -> None:
    (one,) = chart.series
    x, high = _array(one.x), _array(one.high)
    axis.barh(range(len(x)), x, xerr=high - x, color=COLOURS[0], height=0.65, ecolor="#555555")


def _stack(axis: Axes, chart: Chart, drawing: _Drawing) -> None:
    left = np.zeros(len(chart.categories))
    for one in chart.series:
        x = _array(one.x)
        colour = PART_COLOURS.get(one.name, COLOURS[6])
        drawing.handles[one.name] = axis.barh(
            range(len(x)), x, left=left, color=colour, height=0.65
        )
        left = left + x


def _intervals(axis: Axes, chart: Chart, drawing: _Drawing) -> None:
    for place, one in enumerate(chart.series):
        colour, _ = drawing.look(one)
        ends = [[one.x[0] - one.low[0]], [one.high[0] - one.x[0]]]
        axis.errorbar(
            [one.x[0]], [place], xerr=ends, fmt="o", color=colour, capsize=3, markersize=7
        )


def _parallel(axis: Axes, chart: Chart, drawing: _Drawing) -> None:
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    width = len(chart.dimensions)
    columns = [_array(one["values"]) for one in chart.dimensions]
    ends_of = [(float(np.nanmin(values)), float(np.nanmax(values))) for values in columns]
    heights = np.column_stack(
        [_between(values, *ends) for values, ends in zip(columns, ends_of, strict=True)]
    )
    costs = _array(chart.series[0].y)
    shade = np.clip(_between(costs, *np.quantile(costs, [0.0, 0.9])), 0, 1)
    lines = [np.column_stack([np.arange(width), row]) for row in heights]
    axis.add_collection(
        LineCollection(lines, colors=colormaps["viridis"](0.95 * shade), linewidths=0.7, alpha=0.7)
    )
    for place, (one, (low, high)) in enumerate(zip(chart.dimensions, ends_of, strict=True)):
        axis.axvline(place, color="#555555", linewidth=0.8)
        ticks, names = one.get("ticks") or ([low, high], [f"{low:.4g}", f"{high:.4g}"])
        for tick, name in zip(_between(np.array(ticks), low, high), names, strict=True):
            if -0.01 <= tick <= 1.01:
                axis.text(
                    place + 0.03,
                    tick,
                    _text(name if len(name) < 17 else f"{name[:15]}\u2026"),
                    fontsize=6.5,
                    va="center",
                    bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.6},
                )
    labels = [_text(_folded(one["label"], 14)) for one in chart.dimensions]
    axis.set_xticks(range(width), labels, fontsize=7)
    axis.set(yticks=[], xlim=(-0.1, width - 0.6), ylim=(-0.04, 1.04))
    axis.spines[["left", "bottom"]].set_visible(False)
    axis.grid(False)


_KINDS: dict[Kind, Callable[[Axes, Chart, _Drawing], None]] = {
    "lines": _lines,
    "points": _points,
    "boxes": _boxes,
    "bars": _bars,
    "stack": _stack,
    "intervals": _intervals,
    "parallel": _parallel,
}


def _frame(axis: Axes, chart: Chart, drawing: _Drawing) -> None:
    """What is around the data: levels, names of categories, and axes."""
    for level in chart.levels:
        drawing.handles[level.label] = axis.axhline(
            level.value, color="#555555", linestyle=":" if level.dotted else "--", linewidth=1.0
        )
    if chart.kind in _HORIZONTAL:
        names = [_text(textwrap.shorten(name, 40)) for name in chart.categories]
        axis.set_yticks(range(len(names)), names)
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.grid(False, axis="y")
    if chart.kind != "parallel":
        _axis(axis, "x", chart.x)
        _axis(axis, "y", chart.y)


def _axis(axis: Axes, which: str, one: Axis) -> None:
    ticks: Any = getattr(axis, f"{which}axis")
    if one.log:
        axis.set(**{f"{which}scale": "log"})
        if not one.percent:
            near = bool(one.low and one.high and one.high / one.low < 30)
            ticks.set_major_formatter(lambda value, _: _tick(value))
            ticks.set_minor_formatter(
                lambda value, _: _tick(value) if near and _head(value) else ""
            )
    if one.low is not None:
        axis.set(**{f"{which}lim": (one.low, one.high)})
    if one.percent:
        ticks.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    if one.label:
        axis.set(**{f"{which}label": _text(_folded(one.label, 42))})


def _tick(value: float) -> str:
    """A tick of a logarithmic axis."""
    if 1e-3 <= value < 1e6:
        return f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"
    power = math.floor(math.log10(value) + 1e-9)
    head = value / 10**power
    return rf"$10^{{{power}}}$" if round(head, 6) == 1 else rf"${head:g}\times10^{{{power}}}$"


def _head(value: float) -> bool:
    """Whether a minor tick gets a number: 2, 3 and 5 do."""
    return round(value / 10 ** math.floor(math.log10(value) + 1e-9), 6) in (2, 3, 5)


def _folded(text: str, width: int) -> str:
    """A text in lines: broken between words, and behind an underscore of a long one."""
    whole = re.sub(r"\[[^]]*\]", lambda unit: unit[0].replace(" ", "\u00a0"), text)
    lines = [""]
    for word in whole.replace("*", " \u00d7 ").split(" "):
        parts = re.findall("[^_]*_|[^_]+", word) if len(word) > width else [word]
        for number, part in enumerate(parts):
            space = " " if lines[-1] and not number else ""
            if lines[-1] and len(lines[-1]) + len(space) + len(part) > width:
                lines.append(part)
            else:
                lines[-1] += space + part
    return "\n".join(lines)


def _text(text: str) -> str:
    """A text that Matplotlib does not take for mathematics."""
    return text.replace("$", r"\$")


def _between(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Where values are between two ends, as a share."""
    return (values - low) / ((high - low) or 1.0)


def _array(values: Numbers) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)
