"""Pictures of a design: roofline with layers, energy by level, schematic.

:func:`draw_design` writes all three; the others make matplotlib figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from archgym.envs.accelerator.cost.model import Costs
from archgym.envs.accelerator.drawing.roofline import (
    LayerPicture,
    new_figure,
    roofline_figure,
    short,
)
from archgym.envs.accelerator.drawing.schematic import schematic_figure
from archgym.envs.accelerator.kernel.vectors import LEVELS
from archgym.envs.accelerator.workload.layer import Network
from archgym.errors import InvalidValueError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "LayerPicture",
    "design_figures",
    "draw_design",
    "energy_figure",
    "layer_pictures",
    "roofline_figure",
    "save_figure",
]

_COLOURS = ("#4d4d4d", "#56b4e9", "#cc79a7", "#e69f00", "#0072b2", "#009e73")
_BARS = 14
"""Number of layers that are drawn as separate bars; the rest is one bar."""


def draw_design(costs: Costs, network: Network, folder: Path, ending: str = "png") -> list[Path]:
    """Writes the three pictures of a design into a folder.

    Args:
        costs: of the network on the design.
        network: the network.
        folder: is made if it is not there.
        ending: ``png``, ``svg`` or ``pdf``.

    Returns:
        The files: ``roofline``, ``energy`` and ``schematic``.

    Raises:
        InvalidValueError: if a layer does not fit the design, or a file cannot be written.
    """
    figures = design_figures(costs, network)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidValueError(f"cannot make the folder {folder}: {error.strerror}") from None
    return [save_figure(figure, folder / f"{name}.{ending}") for name, figure in figures.items()]


def design_figures(costs: Costs, network: Network, design: int = 0) -> dict[str, Figure]:
    """The three pictures of a design: ``roofline``, ``energy`` and ``schematic``.

    Args:
        costs: of the network on some designs.
        network: the network.
        design: which of the designs.

    Raises:
        InvalidValueError: if a layer has no mapping on the design.
    """
    hardware = costs.hardware[design]
    layers = layer_pictures(costs, network, design)
    title = f"{network.name} on {hardware.rows} x {hardware.columns} {hardware.dataflow}"
    return {
        "roofline": roofline_figure(hardware, layers, title),
        "energy": energy_figure(layers, title),
        "schematic": schematic_figure(hardware, title),
    }


def layer_pictures(costs: Costs, network: Network, design: int = 0) -> list[LayerPicture]:
    """The figures that the pictures need of each layer of a network on a design.

    Raises:
        InvalidValueError: if a layer has no mapping on the design.
    """
    missing = costs.unmapped(design)
    if missing:
        raise InvalidValueError(
            f"{len(missing)} layers of {network.name} do not fit the design, {missing[0]!r} first: "
            "there is nothing to draw"
        )
    pictures = []
    for number, (layer, count) in enumerate(zip(network.layers, network.counts, strict=True)):
        found = costs.layer(design, number)
        pictures.append(
            LayerPicture(
                name=layer.name,
                kind=layer.kind,
                macs=float(count * layer.macs),
                cycles=count * found["cycles"],
                dram_bytes=count * found["dram_bytes"],
                energy_pj={level: count * found[f"{level}_pj"] for level in LEVELS},
            )
        )
    return pictures


def energy_figure(layers: Sequence[LayerPicture], title: str) -> Figure:
    """Energy by level: of the network, and of the layers that take most of it."""
    levels = list(dict.fromkeys(level for layer in layers for level in layer.energy_pj))
    table = np.array([[layer.energy_pj.get(level, 0.0) for level in levels] for layer in layers])
    order = np.argsort(-table.sum(axis=1), kind="stable")
    shown, rest = order[:_BARS], order[_BARS:]
    names = [short(layers[i].name) for i in shown]
    rows = [table[i] for i in shown]
    if len(rest):
        names.append(f"{len(rest)} other layers")
        rows.append(table[rest].sum(axis=0))
    whole = table.sum(axis=0)
    figure = new_figure(8.4, 1.9 + 0.27 * len(rows))
    heights = (1, 0.9 + 0.42 * len(rows))
    above, below = figure.subplots(2, 1, gridspec_kw={"height_ratios": heights})
    unit, name = _energy_unit(whole.sum())
    _stack(above, ["network"], [whole / whole.sum() * 100], levels, percent=True)
    above.set_xlim(0, 100)
    above.set_xlabel("share of energy, %")
    above.set_title(f"{title}: {whole.sum() / unit:.3g} {name}", fontsize=11)
    _stack(below, names, [row / unit for row in rows], levels)
    below.invert_yaxis()
    below.set_xlabel(f"energy, {name}")
    above.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.45),
        ncols=len(levels),
        frameon=False,
        fontsize=9,
    )
    return figure


def save_figure(figure: Figure, path: Path) -> Path:
    """Writes a figure; the ending of the name says how (``.png``, ``.svg``, ``.pdf``).

    Raises:
        InvalidValueError: if the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidValueError(f"cannot write the picture {path}: {reason}") from None
    return path


def _stack(
    axes: Axes,
    names: Sequence[str],
    rows: Sequence[np.ndarray],
    levels: Sequence[str],
    *,
    percent: bool = False,
) -> None:
    left = np.zeros(len(rows))
    for number, level in enumerate(levels):
        widths = np.array([row[number] for row in rows])
        bars = axes.barh(
            list(names),
            widths,
            left=left,
            height=0.72,
            color=_COLOURS[number % len(_COLOURS)],
            label=level.replace("_", " "),
        )
        if percent:
            texts = [f"{width:.0f} %" if width >= 4 else "" for width in widths]
            ink = "black" if number % len(_COLOURS) in (1, 3) else "white"
            axes.bar_label(bars, texts, label_type="center", color=ink, fontsize=9)
        left = left + widths
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=8)


def _energy_unit(total_pj: float) -> tuple[float, str]:
    for size, name in ((1e12, "J"), (1e9, "mJ"), (1e6, "uJ"), (1e3, "nJ")):
        if total_pj >= size:
            return size, name
    return 1.0, "pJ"
