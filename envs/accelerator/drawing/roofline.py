"""The roofline of a design with its layers on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from archgym.envs.accelerator.cost.hardware import Hardware

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LayerPicture", "new_figure", "roofline_figure", "short"]

_KINDS = {"conv": "#0072b2", "depthwise": "#d55e00", "gemm": "#009e73"}
_LINKS = {"shared": 1, "separate": 3, "duplex": 2}
"""Memory links of a design; each has the design's bandwidth."""
_LABELLED = 6
"""Layers that are named in the roofline: those that take most of the time."""
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


def roofline_figure(hardware: Hardware, layers: Sequence[LayerPicture], title: str) -> Figure:
    """The design's roofline with its layers on it.

    Across: multiply-accumulates for each byte that crosses the memory link. Up:
    multiply-accumulates a cycle. The area of a dot is the layer's share of the time; no dot lies
    above the roof.
    """
    figure = new_figure(8.4, 5.2)
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


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, of a size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=120)


def short(name: str) -> str:
    """A layer's name, cut to what a picture has room for."""
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 3]}..."


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
        f"{number}  {short(layers[i].name)}  {share[i]:.0%}" for number, i in enumerate(largest, 1)
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
