"""Boxes, wires and colours of the pictures of :mod:`archgym.envs.tpe.drawing.render`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "Box", "Sheet"]

COLOURS = {
    "register": "#cfe2f3",
    "encoder": "#fce5cd",
    "select": "#fff2cc",
    "tree": "#d9ead3",
    "adder": "#ead1dc",
    "shift": "#e6e0f5",
    "pe": "#fbfbfb",
    "note": "#ffffff",
}
"""Fill colour of each kind of block: the same in the PE and in the array."""

_EDGE = "#444444"
_WIRE = "#555555"
_SLANT = 0.14


@dataclass(frozen=True)
class Box:
    """A rectangle by its centre and size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self) -> tuple[float, float]:
        """Middle of the upper side."""
        return self.x, self.y + self.height / 2

    @property
    def bottom(self) -> tuple[float, float]:
        """Middle of the lower side."""
        return self.x, self.y - self.height / 2

    @property
    def left(self) -> tuple[float, float]:
        """Middle of the left side."""
        return self.x - self.width / 2, self.y

    @property
    def right(self) -> tuple[float, float]:
        """Middle of the right side."""
        return self.x + self.width / 2, self.y


class Sheet:
    """The sheet that pictures are drawn on.

    Args:
        axes: of matplotlib; taken over whole.
        width: units across.
        height: units up.
    """

    def __init__(self, axes: Axes, width: float, height: float) -> None:
        self._axes = axes
        axes.set_xlim(0, width)
        axes.set_ylim(0, height)
        axes.set_aspect("equal")
        axes.axis("off")

    def box(
        self,
        box: Box,
        kind: str,
        text: str = "",
        *,
        dashed: bool = False,
        size: float = 8.5,
        layer: float = 2,
    ) -> Box:
        """A block with a label."""
        from matplotlib.patches import FancyBboxPatch

        self._axes.add_patch(
            FancyBboxPatch(
                (box.x - box.width / 2, box.y - box.height / 2),
                box.width,
                box.height,
                boxstyle="round,pad=0,rounding_size=0.06",
                facecolor=COLOURS[kind],
                edgecolor=_EDGE,
                linewidth=1.0,
                linestyle="--" if dashed else "-",
                zorder=layer,
            )
        )
        if text:
            self.text(box.x, box.y, text, size=size)
        return box

    def funnel(self, box: Box, kind: str, text: str) -> Box:
        """A block that narrows downwards: many rows become few."""
        from matplotlib.patches import Polygon

        half, low = box.width / 2, box.width * (0.5 - _SLANT)
        top, bottom = box.y + box.height / 2, box.y - box.height / 2
        corners = [
            (box.x - half, top),
            (box.x + half, top),
            (box.x + low, bottom),
            (box.x - low, bottom),
        ]
        self._axes.add_patch(
            Polygon(
                corners, closed=True, facecolor=COLOURS[kind], edgecolor=_EDGE, lw=1.0, zorder=2
            )
        )
        self.text(box.x, box.y, text)
        return box

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 8.5,
        align: str = "center",
        bold: bool = False,
        colour: str = "black",
        upright: bool = False,
        behind: str | None = None,
    ) -> None:
        """A label, in several lines if it has line breaks; ``behind`` colours its ground."""
        self._axes.text(
            x,
            y,
            text,
            ha=align,
            va="center",
            fontsize=size,
            fontweight="bold" if bold else "normal",
            color=colour,
            linespacing=1.15,
            rotation=90 if upright else 0,
            zorder=6,
            bbox=None if behind is None else {"facecolor": behind, "edgecolor": "none", "pad": 1.5},
        )

    def wire(
        self, points: Sequence[tuple[float, float]], label: str = "", *, arrow: bool = True
    ) -> None:
        """A line through some points, with a label beside its last stretch."""
        xs, ys = zip(*points, strict=True)
        self._axes.plot(xs, ys, color=_WIRE, lw=1.1, zorder=3, solid_capstyle="round")
        if arrow:
            self._axes.annotate(
                "",
                xy=points[-1],
                xytext=points[-2],
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": _WIRE,
                    "lw": 1.1,
                    "shrinkA": 0,
                    "shrinkB": 0,
                    "mutation_scale": 9,
                },
                zorder=3,
            )
        if label:
            (x0, y0), (x1, y1) = points[-2:]
            self.text((x0 + x1) / 2 + 0.1, (y0 + y1) / 2, label, size=7.5, align="left")

    def cut(self, y: float, left: float, right: float, label: str) -> None:
        """A row of pipeline registers across the data path."""
        self._axes.plot(
            [left, right], [y, y], color="#2a6fbb", lw=3.0, alpha=0.55, zorder=4, ls=(0, (3, 1.2))
        )
        self.text(right, y + 0.16, label, size=7, align="right", colour="#2a6fbb")
