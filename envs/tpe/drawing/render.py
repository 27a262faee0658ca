"""Pictures of an array and its processing element, as SVG or PNG.

The left half shows the data path of one PE from its operand registers down to the accumulator,
with blocks outside the PE in dashed boxes; the right half shows the array, its
edge blocks and how operands travel.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.drawing.array import draw_array
from archgym.envs.tpe.drawing.pe import draw_pe
from archgym.envs.tpe.microarchitecture.pe import Array
from archgym.errors import InvalidValueError, UnknownNameError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "draw", "pixels", "svg", "write"]

FORMATS = ("png", "svg")
_SIZE_INCHES = (13.0, 7.6)
_DOTS_PER_INCH = 110


def draw(array: Array) -> Figure:
    """The picture as a separate matplotlib figure: no window, no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_INCHES, facecolor="white")
    FigureCanvasAgg(figure)
    left = figure.add_axes((0.01, 0.01, 0.52, 0.98))
    right = figure.add_axes((0.54, 0.01, 0.45, 0.98))
    draw_pe(left, array)
    draw_array(right, array)
    return figure


def svg(array: Array) -> str:
    """The picture as SVG; the same array gives the same text."""
    import matplotlib

    buffer = io.StringIO()
    # Text stays text, and ids and dates do not change from run to run.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "archgym"}):
        draw(array).savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def pixels(array: Array) -> NDArray[np.uint8]:
    """The picture as red, green and blue bytes, shape (height, width, 3)."""
    figure = draw(array)
    figure.set_dpi(_DOTS_PER_INCH)
    canvas = figure.canvas
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[attr-defined]


def write(array: Array, path: Path) -> None:
    """Writes the picture to a file that ends in ``.png`` or ``.svg``.

    Raises:
        UnknownNameError: if it ends in something else.
        InvalidValueError: if its folder does not exist.
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise UnknownNameError("picture format", kind, FORMATS, str(path))
    if not path.parent.is_dir():
        raise InvalidValueError(f"{path}: there is no folder {path.parent}")
    if kind == "svg":
        path.write_text(svg(array), encoding="utf-8")
    else:
        draw(array).savefig(path, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
