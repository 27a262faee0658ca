"""Charts as data: one description that the page draws with Plotly and files with Matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Numbers = Sequence[float] | NDArray[Any]
Kind = Literal["lines", "points", "boxes", "bars", "stack", "intervals", "parallel"]
"""How a chart is drawn, and what its series hold for it:

- ``lines``: ``x`` and ``y``; ``low`` and ``high`` if there is a band.
- ``points``: ``x`` and ``y``.
- ``boxes``: the five numbers of a box as ``y``, and ``points``.
- ``bars``: one series with ``x`` and, as end of its interval, ``high`` of every category.
- ``stack``: a series for each part with ``x`` of every category, named as in :data:`PART_COLOURS`.
- ``intervals``: one value as ``x``, ``low`` and ``high``.
- ``parallel``: one series with ``y``, the cost that colours the lines; the rest are ``dimensions``.
"""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
"""Of Okabe and Ito (2008), which people of every kind of colour vision tell apart."""
PART_COLOURS = {
    "feasible": "#009e73",
    "infeasible": "#e69f00",
    "failed": "#d55e00",
    "timeout": "#cc79a7",
    "stopped": "#f0e442",
    "illegal": "#7f7f7f",
    "duplicate": "#56b4e9",
    "simulator": "#0072b2",
    "agent": "#e69f00",
    "framework": "#cc79a7",
}
"""Of the parts of a ``stack``, by the names of its series; others are grey."""
DASHES = ("solid", "dash", "dot", "dashdot")
"""Line styles, one after the other when colours are used up."""

_LOG_FROM = 5.0  # ratio of the largest to the smallest value from which an axis is logarithmic


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        label: what it shows, with the unit.
        log: logarithmic.
        percent: values are shares.
        low: where it begins; by the data if ``None``.
        high: where it ends.
    """

    label: str
    log: bool = False
    percent: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Level:
    """A horizontal line that the others are seen against, such as the baseline.

    Attributes:
        value: where it is.
        label: what it is.
        dotted: whether it breaks a limit, and is drawn unlike one that does not.
    """

    value: float
    label: str
    dotted: bool = False


@dataclass(frozen=True)
class Series:
    """One line, cloud, box or row of bars.

    Attributes:
        name: in the legend.
        searcher: number of the searcher that gives the colour, -1 for none.
        x: positions; numbers of categories for bars.
        y: values; for boxes whisker, quartile, median, quartile, whisker.
        low: lower end of the band or interval.
        high: upper end.
        points: single values beside a box.
    """

    name: str
    searcher: int = -1
    x: Numbers = ()
    y: Numbers = ()
    low: Numbers = ()
    high: Numbers = ()
    points: Numbers = ()


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes:
        key: a word that names it in files.
        kind: how it is drawn.
        title: what it shows.
        x: horizontal axis.
        y: vertical axis.
        series: what is drawn.
        levels: horizontal lines.
        categories: names along the axis of bars and boxes.
        note: how to read it.
        dimensions: of parallel coordinates, each with ``label``, ``values`` and ``ticks``.
    """

    key: str
    kind: Kind
    title: str
    x: Axis = Axis("")
    y: Axis = Axis("")
    series: Sequence[Series] = ()
    levels: Sequence[Level] = ()
    categories: Sequence[str] = ()
    note: str = ""
    dimensions: Sequence[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain values, with five digits."""
        return {
            **vars(self),
            "x": _plain(self.x),
            "y": _plain(self.y),
            "series": [_plain(one) for one in self.series],
            "levels": [{**vars(one), "value": rounded(one.value)} for one in self.levels],
            "categories": list(self.categories),
            "dimensions": [
                {**one, "values": _rounded_all(one["values"])} for one in self.dimensions
            ],
        }


def _plain(one: Axis | Series) -> dict[str, Any]:
    """Its fields but those that are not set."""
    found: dict[str, Any] = {}
    for name, value in vars(one).items():
        if isinstance(value, float):
            found[name] = rounded(value)
        elif isinstance(value, str) or name == "searcher" or value is True:
            found[name] = value
        elif value is not None and value is not False and len(value):
            found[name] = _rounded_all(value)
    return found


def _rounded_all(values: Numbers) -> list[float | int | None]:
    return [rounded(value) for value in np.asarray(values).tolist()]


def scaled(label: str, shown: Sequence[NDArray[np.float64]]) -> Axis:
    """An axis that shows these values and not much more; logarithmic where they are far apart.

    Args:
        label: of the axis.
        shown: values that are to be seen; others may lie outside, such as the first designs of a
            search.
    """
    values = np.concatenate([np.empty(0), *shown])
    values = values[np.isfinite(values)]
    if not len(values):
        return Axis(label)
    low, high = float(values.min()), float(values.max())
    if low > 0 and high / low >= _LOG_FROM:
        return Axis(label, log=True, low=low / 1.1, high=high * 1.1)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return Axis(label, low=low - margin, high=high + margin)


def baseline_level(value: float, *, broken: bool) -> list[Level]:
    """The baseline's level, which may break a limit; none for a value that is not finite."""
    label = "baseline, not feasible" if broken else "baseline"
    return [Level(value, label, dotted=broken)] if math.isfinite(value) else []


def rounded(value: float | NDArray[np.float64]) -> float | int | None:
    """A number with five digits; ``None`` if it is not finite."""
    number = float(value)
    if not math.isfinite(number):
        return None
    short = float(f"{number:.5g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
