"""SCALE-Sim 3 as a simulator of the accelerator environment: cycle-accurate systolic arrays.

SCALE-Sim (Samajdar et al., ISPASS 2020; Raj et al., ISPASS 2025) is the package ``scalesim``;
version 3.0.0 fails with numpy 2.4 and later. It builds every operand's demand cycle by cycle, which
takes some 0.6 s of processor time for 10,000 cycles of a 16 x 16 array, and memory in proportion:
it is for small layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from archgym.envs.accelerator.cost.hardware import SYSTOLIC_DATAFLOWS, Hardware
from archgym.envs.accelerator.external.program import LayerResult, PythonProgram
from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.errors import SimulationError

__all__ = ["ScaleSimSimulator", "scalesim_config", "scalesim_figures"]

_KIB = 1024
_CONV_HEADER = (
    "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, "
    "Strides,"
)
_GEMM_HEADER = "Layer, M, N, K,"
_LAYOUT_COLUMNS = 20
"""Numbers of a row of the layout file, which is read whether or not layouts are used."""


class ScaleSimSimulator(PythonProgram):
    """Runs each design in a separate process, in an empty folder, with a time limit.

    It covers the systolic dataflows with double buffers. Its memory link is one for each operand;
    where a design's operands share a link, each of the three gets a third of it. Words are those
    of the design; SRAM sizes are in whole KiB of words and bandwidths in whole words, both rounded
    down. Metrics: latency (SCALE-Sim's "total cycles", stalls included, without the first fill),
    utilisation, and bytes moved to and from memory.

    Args:
        network: what the designs run.
        hardware: the hardware of a design.
        time_limit_s: wall-clock time of one design, s.
        threads: designs at a time; default one for each core.
        program: a Python interpreter that has the package; default this one.
        memory_limit_gb: address space that a run may take, GB.
    """

    name = "scalesim"
    package = "scalesim"
    extra = "scalesim"
    variable = "ARCHGYM_SCALESIM_PYTHON"
    worker = "scalesim_worker.py"
    metric_names = ("latency_cycles", "latency_ns", "utilisation_rate", "dram_bytes")

    def not_covered(self, hardware: Hardware, network: Network) -> str:
        """Why SCALE-Sim cannot run this, or an empty string."""
        if hardware.dataflow not in SYSTOLIC_DATAFLOWS:
            return f"it has systolic dataflows only, not {hardware.dataflow}"
        if hardware.lanes != 1:
            return f"its processing elements have one multiplier, not {hardware.lanes}"
        if not hardware.double_buffered:
            return "its buffers are always double buffers"
        if hardware.weights_bypass_buffer:
            return "weights cannot bypass its buffer"
        kib, bandwidth = _sizes(hardware)
        if min(kib) < 1:
            sizes = ", ".join(map(str, kib))
            return f"each of its three buffers has at least 1 KiB of words; these have {sizes} KiB"
        if bandwidth < 1:
            return "its memory links move at least one word a cycle"
        return ""

    def run(
        self, hardware: Hardware, layers: Sequence[Layer], folder: Path
    ) -> Sequence[LayerResult]:
        """Runs the layers, one group of each."""
        found = scalesim_figures(self, hardware, layers, folder)
        moved = ("dram_ifmap_reads", "dram_filter_reads", "dram_ofmap_writes")
        return [
            LayerResult(
                cycles=layer.groups * figures["cycles"],
                dram_bytes=layer.groups
                * hardware.word_bytes
                * sum(figures[name] for name in moved),
            )
            for layer, figures in zip(layers, found, strict=True)
        ]


def scalesim_figures(
    program: PythonProgram, hardware: Hardware, layers: Sequence[Layer], folder: Path
) -> list[dict[str, float]]:
    """What SCALE-Sim reports of one group of each layer: cycles, stalls, accesses.

    Raises:
        SimulationError: if it fails or says nothing of a layer.
        TimeoutError: if it takes too long.
    """
    rows: dict[str, list[str]] = {"conv": [], "gemm": []}
    names: dict[str, list[str]] = {"conv": [], "gemm": []}
    for number, layer in enumerate(layers):
        # Names are ours: one with "DP" in it would make the layer depthwise.
        name = f"L{number}"
        kind, row = _row(name, layer)
        rows[kind].append(row)
        names[kind].append(name)
    for kind, header in (("conv", _CONV_HEADER), ("gemm", _GEMM_HEADER)):
        lines = [header, *rows[kind]]
        (folder / f"{kind}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        layout = [f"{name}, {', '.join(['1'] * _LAYOUT_COLUMNS)}," for name in names[kind]]
        head = f"Layer name, {', '.join(f'c{i}' for i in range(_LAYOUT_COLUMNS))},"
        text = "\n".join([head, *layout]) + "\n"
        (folder / f"{kind}_layout.csv").write_text(text, encoding="utf-8")
    (folder / "design.cfg").write_text(scalesim_config(hardware), encoding="utf-8")
    found: Mapping[str, Any] = program.call({"config": "design.cfg", **names}, folder)
    try:
        return [found[f"L{number}"] for number in range(len(layers))]
    except (KeyError, TypeError):
        raise SimulationError(f"SCALE-Sim gave no figures of some of the layers: {found}") from None


def scalesim_config(hardware: Hardware) -> str:
    """The configuration file of a design."""
    (inputs, weights, outputs), bandwidth = _sizes(hardware)
    settings: dict[str, dict[str, Any]] = {
        "general": {"run_name": "run"},
        "run_presets": {"InterfaceBandwidth": "USER", "UseRamulatorTrace": False},
        "architecture_presets": {
            "ArrayHeight": hardware.rows,
            "ArrayWidth": hardware.columns,
            "IfmapSramSzkB": inputs,
            "FilterSramSzkB": weights,
            "OfmapSramSzkB": outputs,
            "IfmapOffset": 0,
            "FilterOffset": 10_000_000,
            "OfmapOffset": 20_000_000,
            "Dataflow": hardware.dataflow.removeprefix("systolic_"),
            "ReadRequestBuffer": 64,
            "WriteRequestBuffer": 64,
            "Bandwidth": bandwidth,  # of the outputs; the others' are in the section layout
        },
        "layout": {
            "IfmapCustomLayout": False,
            "IfmapSRAMBankBandwidth": bandwidth,
            "IfmapSRAMBankNum": 1,
            "IfmapSRAMBankPort": 1,
            "FilterCustomLayout": False,
            "FilterSRAMBankBandwidth": bandwidth,
            "FilterSRAMBankNum": 1,
            "FilterSRAMBankPort": 1,
        },
        "sparsity": {"SparsitySupport": False},
    }
    return "\n".join(
        line
        for section, values in settings.items()
        for line in (f"[{section}]", *(f"{name} = {value}" for name, value in values.items()))
    )


def _sizes(hardware: Hardware) -> tuple[tuple[int, int, int], int]:
    """KiB of words of the three buffers, and words a cycle of each memory link."""
    split = hardware.buffer_split_bytes or (hardware.buffer_bytes / 3,) * 3
    inputs, weights, outputs = (int(size / hardware.word_bytes // _KIB) for size in split)
    links = 3 if hardware.dram_links == "shared" else 1
    bandwidth = int(hardware.dram_bytes_per_cycle / links / hardware.word_bytes)
    return (inputs, weights, outputs), bandwidth


def _row(name: str, layer: Layer) -> tuple[str, str]:
    """The topology file that a layer goes to, and its row: one group, inputs with padding."""
    gemm = layer.gemm
    channels, filters = layer.C // layer.groups, layer.K // layer.groups
    if layer.kind == "gemm" or layer.batch > 1:
        return "gemm", f"{name}, {gemm.M}, {gemm.N}, {gemm.K},"
    height = (layer.P - 1) * layer.stride + layer.R - layer.past_rows
    width = (layer.Q - 1) * layer.stride + layer.S - layer.past_columns
    sizes = (height, width, layer.R, layer.S, channels, filters, layer.stride)
    return "conv", f"{name}, {', '.join(map(str, sizes))},"
