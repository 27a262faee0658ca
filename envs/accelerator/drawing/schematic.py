"""A drawing of an accelerator design: memory, global buffer, array, and one processing element."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from archgym.envs.accelerator.cost.hardware import Hardware

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["schematic_figure"]


class _Flow(NamedTuple):
    """What a dataflow does with the array, in words."""

    title: str
    rows: str
    columns: str
    stays: str


_FLOWS = {
    "systolic_os": _Flow("systolic, output stationary", "output pixels", "filters", "partial sums"),
    "systolic_ws": _Flow("systolic, weight stationary", "window x channels", "filters", "weights"),
    "systolic_is": _Flow("systolic, input stationary", "window x channels", "pixels", "inputs"),
    "nvdla_ws": _Flow("weight stationary (NVDLA)", "output channels", "input channels", "weights"),
    "shidiannao_os": _Flow(
        "output stationary (ShiDianNao)", "output rows", "output columns", "partial sums"
    ),
    "eyeriss_rs": _Flow("row stationary (Eyeriss)", "filter rows", "output rows", "filter rows"),
    "kx_free": _Flow(
        "any order, K x X (ZigZag)", "output channels", "output columns", "partial sums"
    ),
    "xp_ws": _Flow("weight stationary, X partitioned", "", "output columns", "weights"),
    "nlr_cp": _Flow("no local reuse, C partitioned", "", "input channels", "nothing"),
}
_SHOWN = 6
"""Rows and columns of processing elements that are drawn at most."""
_INPUT, _WEIGHT, _OUTPUT = "#56b4e9", "#e69f00", "#009e73"
_BOX = "#f5f5f5"
_EDGE = "#333333"


def schematic_figure(hardware: Hardware, title: str) -> Figure:
    """The design as blocks, with their sizes and what each link moves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 4.3), dpi=120)
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.9))
    axes.set_xlim(0, 104)
    axes.set_ylim(6, 46)
    axes.set_axis_off()
    flow = _FLOWS.get(hardware.dataflow, _Flow(hardware.dataflow, "rows", "columns", ""))
    figure.suptitle(f"{title}: {flow.title}", fontsize=12)
    _memory(axes, hardware)
    _buffer(axes, hardware)
    _array(axes, hardware, flow)
    _element(axes, hardware, flow)
    return figure


def _memory(axes: Axes, hardware: Hardware) -> None:
    _box(axes, 1, 17, 12, 20, "memory\n(DRAM)")
    links = {"shared": "all operands", "separate": "each operand", "duplex": "each way"}[
        hardware.dram_links
    ]
    _link(axes, 13, 23, 27, f"{hardware.dram_bytes_per_cycle:g} B\na cycle", below=links)


def _buffer(axes: Axes, hardware: Hardware) -> None:
    kind = "double buffer" if hardware.double_buffered else "single buffer"
    axes.text(
        32.5,
        39.2,
        f"global buffer, {_size(hardware.buffer_bytes)}",
        ha="center",
        fontsize=10,
        weight="bold",
    )
    axes.text(32.5, 14.2, f"{hardware.banks} banks, {kind}", ha="center", fontsize=9)
    split = hardware.buffer_split_bytes
    if split is None:
        _box(axes, 23, 17, 19, 20, "inputs, weights, outputs\n(the mapping\ndivides it)", size=9)
    else:
        height = 20 / 3
        names = ("inputs", "weights", "outputs")
        for number, (name, part) in enumerate(zip(names, split, strict=True)):
            colour = (_INPUT, _WEIGHT, _OUTPUT)[number]
            bottom = 17 + height * (2 - number)
            _box(axes, 23, bottom, 19, height, f"{name}: {_size(part)}", fill=colour, size=9)
    if hardware.weights_bypass_buffer:
        _arrow(axes, (7, 17), (7, 9), head=False)
        _arrow(axes, (7, 9), (66, 9), head=False)
        _arrow(axes, (66, 9), (66, 13.4))
        axes.text(32.5, 9.8, "weights go past the buffer", fontsize=9, ha="center", color="#8a5a00")
    _link(axes, 42, 51, 27, f"{hardware.noc_bytes_per_cycle:g} B\na cycle", below="NoC")


def _array(axes: Axes, hardware: Hardware, flow: _Flow) -> None:
    from matplotlib.patches import Rectangle

    left, bottom, side = 54.5, 14.0, 24.0
    rows, columns = min(hardware.rows, _SHOWN), min(hardware.columns, _SHOWN)
    pitch = side / max(rows, columns)
    width, height = pitch * columns, pitch * rows
    left += (side - width) / 2
    bottom += (side - height) / 2
    for row in range(rows):
        for column in range(columns):
            # In a shortened array, the last but one shows dots for those that are not drawn.
            gap = (hardware.rows > rows and row == rows - 2) or (
                hardware.columns > columns and column == columns - 2
            )
            x, y = left + pitch * column, bottom + height - pitch * (row + 1)
            if gap:
                axes.text(
                    x + pitch / 2, y + pitch / 2, "...", ha="center", va="center", color="#888888"
                )
                continue
            axes.add_patch(
                Rectangle(
                    (x + 0.08 * pitch, y + 0.08 * pitch),
                    0.84 * pitch,
                    0.84 * pitch,
                    facecolor="#dce9f5",
                    edgecolor=_EDGE,
                    lw=0.8,
                )
            )
    # The upper right one, seen closely.
    right, top = left + width - 0.08 * pitch, bottom + height - 0.08 * pitch
    for low, high in ((top, 37.2), (top - 0.84 * pitch, 12.8)):
        axes.plot([right, 84.3], [low, high], color="#999999", lw=0.8, zorder=0)
    middle = left + width / 2
    axes.text(
        66,
        41.8,
        f"{hardware.rows} x {hardware.columns} processing elements",
        ha="center",
        fontsize=10,
        weight="bold",
    )
    if flow.columns:
        across = f"{hardware.columns} columns: {flow.columns}"
        axes.text(middle, bottom + height + 0.8, across, ha="center", fontsize=9)
    if flow.rows:
        axes.text(
            left - 0.9,
            bottom + height / 2,
            f"{hardware.rows} rows: {flow.rows}",
            rotation=90,
            ha="right",
            va="center",
            fontsize=9,
        )


def _element(axes: Axes, hardware: Hardware, flow: _Flow) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch(
            (84.5, 13), 18, 24, boxstyle="round,pad=0.3", facecolor="#eef4fa", edgecolor=_EDGE
        )
    )
    axes.text(93.5, 39.2, "one processing element", ha="center", fontsize=10, weight="bold")
    files = (
        ("inputs", hardware.input_rf_bytes, _INPUT),
        ("weights", hardware.weight_rf_bytes, _WEIGHT),
        ("partial sums", hardware.output_rf_bytes, _OUTPUT),
    )
    bottom = 32.2
    for name, size, colour in files:
        text = f"{name}: {_size(size)}" if size else f"{name}: no register file"
        _box(axes, 85.5, bottom, 16, 4, text, fill=colour if size else "white", size=8.5)
        bottom -= 4.9
    lanes = f"{hardware.lanes} multipliers" if hardware.lanes > 1 else "1 multiplier"
    words = f"{hardware.word_bits} x {hardware.word_bits} -> {hardware.accumulator_bits} bits"
    _box(axes, 85.5, 14.2, 16, 6.6, f"{lanes}\n{words}", fill="white", size=8.5)
    if flow.stays:
        axes.text(93.5, 9.6, f"stationary: {flow.stays}", ha="center", fontsize=9, style="italic")


def _box(
    axes: Axes,
    left: float,
    bottom: float,
    width: float,
    height: float,
    text: str,
    *,
    fill: str = _BOX,
    size: float = 10,
) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    colour = to_rgba(fill, 0.45 if fill.startswith("#") and fill != _BOX else 1.0)
    axes.add_patch(
        Rectangle((left, bottom), width, height, facecolor=colour, edgecolor=_EDGE, lw=1.0)
    )
    axes.text(left + width / 2, bottom + height / 2, text, ha="center", va="center", fontsize=size)


def _link(axes: Axes, left: float, right: float, height: float, text: str, *, below: str) -> None:
    axes.annotate(
        "",
        (right, height),
        xytext=(left, height),
        arrowprops={"arrowstyle": "<|-|>", "color": _EDGE, "lw": 1.6},
    )
    middle = (left + right) / 2
    axes.text(middle, height + 0.9, text, ha="center", va="bottom", fontsize=9)
    axes.text(middle, height - 1.0, below, ha="center", va="top", fontsize=8, color="#555555")


def _arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], *, head: bool = True
) -> None:
    style = "-|>" if head else "-"
    axes.annotate(
        "",
        end,
        xytext=start,
        arrowprops={"arrowstyle": style, "color": "#8a5a00", "lw": 1.3, "shrinkA": 0, "shrinkB": 0},
    )


def _size(count: float) -> str:
    """A number of bytes, in KiB from one KiB on."""
    if count < 1024:
        return f"{count:g} B"
    kib = count / 1024
    return f"{kib:.4g} KiB" if kib < 1024 else f"{kib / 1024:.4g} MiB"
