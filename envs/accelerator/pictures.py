"""Pictures of a design: its layers under its roofline, where its energy goes, what it looks like.

:func:`draw_design` writes all three; the others make matplotlib figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archgym.envs.accelerator.cost import Costs
from archgym.envs.accelerator.hardware import Hardware
from archgym.envs.accelerator.kernel.layout import LEVELS
from archgym.envs.accelerator.layer import Network
from archgym.envs.accelerator.schematic import schematic_figure
from archgym.errors import InvalidValueError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from archgym.envs.accelerator.environment import AcceleratorEnvironment

__all__ = [
    "LayerPicture",
    "design_figures",
    "draw_design",
    "energy_figure",
    "layer_pictures",
    "roofline_figure",
    "save_figure",
]

_KINDS = {"conv": "#0072b2", "depthwise": "#d55e00", "gemm": "#009e73"}
_COLOURS = ("#4d4d4d", "#56b4e9", "#cc79a7", "#e69f00", "#0072b2", "#009e73")
_LINKS = {"shared": 1, "separate": 3, "duplex": 2}
"""Memory links of a design; each has the design's bandwidth."""
_LABELLED = 6
"""Layers that are named in the roofline: those that take most of the time."""
_BARS = 14
"""Layers that have a bar of their own; the rest is one bar."""
_NAME_LENGTH = 34


@dataclass(frozen=True)
class LayerPicture:
    """What the pictures need of one layer, all its occurrences together.

    Attributes:
        name: of the layer.
        kind: ``conv``, ``depthwise`` or ``gemm``.
        macs: multiply-accumulates.
        cycles: time, cycles.
        dram_bytes: read from and written to memory.
        energy_pj: by level, from the multipliers outwards, pJ.
    """

    name: str
    kind: str
    macs: float
    cycles: float
    dram_bytes: float
    energy_pj: Mapping[str, float]


def draw_design(
    environment: AcceleratorEnvironment,
    design: Mapping[str, Any],
    folder: Path,
    ending: str = "png",
) -> list[Path]:
    """Writes the three pictures of a design into a folder.

    Args:
        environment: of any space but ``per_layer``, whose designs are many pieces of hardware.
        design: one of its designs.
        folder: is made if it is not there.
        ending: ``png``, ``svg`` or ``pdf``.

    Returns:
        The files: ``roofline``, ``energy`` and ``schematic``.

    Raises:
        InvalidValueError: if a layer does not fit the design, or a file cannot be written.
    """
    figures = design_figures(environment.costs(design), environment.network)
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
    """What the pictures need of every layer of a network on a design.

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


def roofline_figure(hardware: Hardware, layers: Sequence[LayerPicture], title: str) -> Figure:
    """The design's roofline with its layers on it.

    Across: multiply-accumulates for each byte that crosses the memory link. Up:
    multiply-accumulates a cycle. The area of a dot is the layer's share of the time; no dot lies
    above the roof.
    """
    figure = _figure(8.4, 5.2)
    axes = figure.subplots()
    peak = hardware.macs_per_cycle
    link = _LINKS[hardware.dram_links] * hardware.dram_bytes_per_cycle
    intensity = np.array([layer.macs / max(layer.dram_bytes, 1e-9) for layer in layers])
    rate = np.array([layer.macs / layer.cycles for layer in layers])
    share = np.array([layer.cycles for layer in layers])
    share = share / share.sum()
    ridge = peak / link
    low = min(intensity.min(), ridge) / 2.5
    high = max(intensity.max(), ridge) * 2.5
    across = np.geomspace(low, high, 400)
    roof = np.minimum(peak, link * across)
    axes.loglog(across, roof, color="black", lw=1.8, zorder=2)
    axes.fill_between(across, roof, roof.max() * 10, color="#eeeeee", zorder=0, lw=0)
    for kind, colour in _KINDS.items():
        mine = np.array([layer.kind == kind for layer in layers])
        if mine.any():
            axes.scatter(
                intensity[mine],
                rate[mine],
                s=_dot_size(share[mine]),
                color=colour,
                alpha=0.65,
                edgecolor="white",
                linewidth=0.8,
                label=kind,
                zorder=3,
            )
    total_rate = sum(layer.macs for layer in layers) / sum(layer.cycles for layer in layers)
    total_intensity = sum(layer.macs for layer in layers) / max(
        sum(layer.dram_bytes for layer in layers), 1e-9
    )
    axes.scatter(
        total_intensity, total_rate, marker="*", s=130, color="black", label="network", zorder=4
    )
    axes.set_xlim(low, high)
    axes.set_ylim(min(rate.min(), roof.min()) / 2, peak * 2.6)
    _roof_labels(axes, hardware, link, low, high)
    _number_dots(axes, layers, intensity, rate, share)
    axes.set_xlabel("multiply-accumulates per byte of memory traffic")
    axes.set_ylabel("multiply-accumulates per cycle")
    axes.set_title(title, fontsize=11)
    axes.grid(True, which="major", color="#dddddd", lw=0.6, zorder=1)
    legend = axes.legend(loc="lower right", frameon=True, fontsize=9, title="area: share of time")
    for handle in legend.legend_handles[:-1]:
        handle.set_sizes([60])  # type: ignore[union-attr]
    return figure


def energy_figure(layers: Sequence[LayerPicture], title: str) -> Figure:
    """Energy by level: of the network, and of the layers that take most of it."""
    levels = list(dict.fromkeys(level for layer in layers for level in layer.energy_pj))
    table = np.array([[layer.energy_pj.get(level, 0.0) for level in levels] for layer in layers])
    order = np.argsort(-table.sum(axis=1), kind="stable")
    shown, rest = order[:_BARS], order[_BARS:]
    names = [_short(layers[i].name) for i in shown]
    rows = [table[i] for i in shown]
    if len(rest):
        names.append(f"{len(rest)} other layers")
        rows.append(table[rest].sum(axis=0))
    whole = table.sum(axis=0)
    figure = _figure(8.4, 1.9 + 0.27 * len(rows))
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


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=120)


def _roof_labels(axes: Axes, hardware: Hardware, link: float, low: float, high: float) -> None:
    peak = hardware.macs_per_cycle
    axes.annotate(
        f"{hardware.rows} x {hardware.columns} array: {peak} MACs a cycle",
        (high, peak),
        xytext=(-6, 5),
        textcoords="offset points",
        ha="right",
        fontsize=9,
    )
    # Along the slope.
    ridge = peak / link
    if ridge > 1.5 * low:
        middle = low**0.45 * ridge**0.55
        axes.text(
            middle,
            link * middle * 1.12,
            f"memory: {link:g} bytes a cycle",
            rotation=float(np.degrees(np.arctan(1.12 * link))),
            rotation_mode="anchor",
            transform_rotates_text=True,
            ha="center",
            va="bottom",
            fontsize=9,
        )


def _number_dots(
    axes: Axes,
    layers: Sequence[LayerPicture],
    intensity: np.ndarray,
    rate: np.ndarray,
    share: np.ndarray,
) -> None:
    """Numbers at the largest dots, their names beside the picture; close dots share a place."""
    # Positions as shares of the picture's width and height.
    (left, right), (low, high) = np.log10(axes.get_xlim()), np.log10(axes.get_ylim())
    x = (np.log10(intensity) - left) / (right - left)
    y = (np.log10(rate) - low) / (high - low)
    places: list[list[int]] = []  # of dots so close that their numbers would overlap
    largest = np.argsort(-share, kind="stable")[:_LABELLED].tolist()
    for i in largest:
        for place in places:
            if abs(x[i] - x[place[0]]) < 0.05 and abs(y[i] - y[place[0]]) < 0.05:
                place.append(i)
                break
        else:
            places.append([i])
    for place in places:
        axes.annotate(
            ", ".join(str(largest.index(i) + 1) for i in place),
            (intensity[place[0]], rate[place[0]]),
            xytext=(0, -6 - 0.5 * _dot_size(share[place[0]]) ** 0.5),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=9,
            weight="bold",
            zorder=5,
        )
    lines = [
        f"{number}  {_short(layers[i].name)}  {share[i]:.0%}" for number, i in enumerate(largest, 1)
    ]
    axes.text(
        0.015,
        0.97,
        "largest shares of time\n" + "\n".join(lines),
        transform=axes.transAxes,
        va="top",
        fontsize=8.5,
        linespacing=1.4,
        bbox={"facecolor": "white", "edgecolor": "#cccccc", "pad": 5},
        zorder=6,
    )


def _dot_size(share: np.ndarray) -> np.ndarray:
    """Area of a layer's dot, points squared, for its share of the time."""
    return 18 + 900 * share


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


def _short(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 3]}..."
