"""The picture of a design with its metrics, as Gymnasium's ``rgb_array``."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.problem.metrics import Metric
from archgym.space import DesignSpace
from archgym.space.parameter import Parameter

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

_WIDTH, _LINE, _EDGE, _HEAD = 440, 26, 20, 84
"""Pixels of a column, of a line in it, around it all, and above the columns."""
_MAX_LINES = 24
"""Of a column of parameters; further ones stand in another column."""
_LARGEST_RATIO = 4.0
"""To the baseline, at the ends of a metric's bar."""
_INK, _FAINT, _RULE, _PAPER = "#1c2733", "#8a96a3", "#dde3ea", "#ffffff"
_BLUE, _GREEN, _RED, _AMBER = "#3b6fb6", "#2b8a56", "#c0392b", "#b9770e"
_STATUS_COLOURS: Final = {
    "ok": _GREEN,
    "baseline": _BLUE,
    "infeasible": _AMBER,
    "stopped": _AMBER,
}


def picture(
    title: str,
    status: str,
    remark: str,
    space: DesignSpace,
    design: Mapping[str, Any],
    metrics: Sequence[Metric],
    values: Mapping[str, float | None],
    baseline: Mapping[str, float],
) -> NDArray[np.uint8]:
    """Draws a design and its metrics.

    Each parameter has a mark at its place among its values, each metric a bar of its ratio to the
    baseline: to the right if it is larger, green if it is better. All pictures of an environment
    have one size.

    Args:
        title: what is drawn.
        status: of the evaluation, ``infeasible`` if it breaks a limit, or ``baseline``.
        remark: why, or how good it is.
        space: the design space.
        design: values by parameter; inactive ones are left out.
        metrics: of the environment.
        values: of the metrics, ``None`` where there is none.
        baseline: values of the baseline design; NaN where there is none.

    Returns:
        Red, green and blue bytes, shape (height, width, 3), of even height and width.
    """
    from PIL import Image, ImageDraw

    columns = math.ceil(max(1, len(space.parameters)) / _MAX_LINES)
    each = math.ceil(max(1, len(space.parameters)) / columns)
    lines = max(each, len(metrics))
    size = (2 * _EDGE + (columns + 1) * _WIDTH, 2 * _EDGE + _HEAD + (lines + 1) * _LINE)
    image = Image.new("RGB", (size[0], size[1] + size[1] % 2), _PAPER)
    pen = ImageDraw.Draw(image)
    _draw_head(pen, image.width - 2 * _EDGE, title, status, remark)
    top = _EDGE + _HEAD
    for number, parameter in enumerate(space.parameters):
        column, line = divmod(number, each)
        left = _EDGE + column * _WIDTH
        if line == 0:
            _text(pen, left, top, "parameter", _FAINT)
        below = top + (line + 1) * _LINE
        _draw_parameter(pen, left, below, parameter, design, parameter.name in space.fixed)
    left = _EDGE + columns * _WIDTH
    _text(pen, left, top, "metric", _FAINT)
    _text(pen, left + _WIDTH - 70, top, "baseline", _FAINT, middle=True)
    for number, metric in enumerate(metrics):
        below = top + (number + 1) * _LINE
        _draw_metric(pen, left, below, metric, values.get(metric.name), baseline[metric.name])
    return np.asarray(image, dtype=np.uint8).copy()


def _draw_head(pen: ImageDraw, width: int, title: str, status: str, remark: str) -> None:
    _text(pen, _EDGE, _EDGE, title, _INK, size=20, width=width - 120)
    colour = _STATUS_COLOURS.get(status, _RED)
    right = _EDGE + width
    pen.rounded_rectangle((right - 104, _EDGE - 2, right, _EDGE + 26), 6, fill=colour)
    _text(pen, right - 52, _EDGE + 4, status, _PAPER, middle=True)
    _text(pen, _EDGE, _EDGE + 36, remark, _INK if colour == _GREEN else colour, width=width)
    pen.line((_EDGE, _EDGE + 66, right, _EDGE + 66), fill=_RULE, width=2)


def _draw_parameter(
    pen: ImageDraw, left: int, top: int, parameter: Parameter, design: Mapping[str, Any], held: bool
) -> None:
    active = parameter.name in design
    ink = _INK if active and not held else _FAINT
    _text(pen, left, top, parameter.name, ink, width=190)
    value = _shown(design[parameter.name]) if active else "inactive"
    unit = f" {parameter.unit}" if active and parameter.unit else ""
    _text(pen, left + 196, top, f"{value}{unit}", ink, width=126)
    if not active or parameter.kind == "permutation":
        return
    start, end, middle = left + 330, left + _WIDTH - 24, top + 9
    pen.line((start, middle, end, middle), fill=_RULE, width=3)
    code = np.array([parameter.code(design[parameter.name])], dtype=np.int64)
    share = code[0] / (parameter.size - 1) if parameter.size > 1 else 0.5
    if parameter.kind in ("integer", "real"):
        share = float(parameter.unit_interval(code)[0])
    x = start + share * (end - start)
    pen.ellipse((x - 5, middle - 5, x + 5, middle + 5), fill=_FAINT if held else _BLUE)


def _draw_metric(
    pen: ImageDraw, left: int, top: int, metric: Metric, value: float | None, baseline: float
) -> None:
    known = value is not None and math.isfinite(value)
    _text(pen, left, top, metric.name, _INK if known else _FAINT, width=218)  # it ends in its unit
    _text(pen, left + 224, top, f"{value:.4g}" if known else "none", _INK, width=76)
    start, end, middle = left + 300, left + _WIDTH, top + 9
    zero = (start + end) / 2
    pen.line((zero, top - 4, zero, top + _LINE - 4), fill=_RULE, width=2)
    if value is None or not (known and baseline > 0 and value > 0):
        return
    ratio = math.log(value / baseline) / math.log(_LARGEST_RATIO)
    x = zero + max(-1.0, min(1.0, ratio)) * (end - start) / 2
    if round(x) != round(zero):
        better = ratio * metric.sign < 0
        box = (min(x, zero), middle - 5, max(x, zero), middle + 5)
        pen.rectangle(box, fill=_GREEN if better else _RED)


def _shown(value: Any) -> str:
    """A value of a parameter in a few characters."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(value)


def _text(
    pen: ImageDraw,
    left: float,
    top: float,
    text: str,
    colour: str,
    *,
    size: int = 14,
    width: float = math.inf,
    middle: bool = False,
) -> None:
    """Writes one line, cut off at a width."""
    font = _font(size)
    text = " ".join(text.split())
    if pen.textlength(text, font) > width:
        while text and pen.textlength(f"{text}…", font) > width:
            text = text[:-1]
        text = f"{text}…"
    if middle:
        left -= pen.textlength(text, font) / 2
    pen.text((left, top), text, fill=colour, font=font)


@functools.cache
def _font(size: int) -> FreeTypeFont:
    """Matplotlib's own font: there on every machine, with the signs of units."""
    import matplotlib
    from PIL import ImageFont

    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    return ImageFont.truetype(str(path), size)
