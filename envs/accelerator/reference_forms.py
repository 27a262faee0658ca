"""The forms of tables that hold reference figures for the accelerator environment.

A table is a CSV file with a row for each layer on each design, in one of four forms, told apart by
their columns:

- SCALE-Sim: ``M, N, K`` or the sizes of a convolution with its padding, array, dataflow ``os``,
  ``ws`` or ``is``, three SRAM sizes, bandwidth; ``total_cycles``, ``stall_cycles`` and accesses;
- MAESTRO: the layer with padded inputs, one of five dataflows, PEs, bandwidths;
  ``runtime_cycles``, ``area_um2``, ``power_mw``;
- ZigZag: the layer, array, ``spatial_mapping``, SRAM bits, bandwidth; ``latency_cycles``,
  ``energy_pj``;
- Timeloop: the layer, a square mesh with register files, buffer and bandwidths; ``cycles``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from archgym.envs.accelerator.hardware import Hardware
from archgym.reference import TableRow

__all__ = ["FORMS", "Form", "NotComparableError", "Run", "View"]

_UNLIMITED = 1e9
"""Bytes a cycle of a link that the simulator does not limit."""
_KIB = 1024
_PORTS = 4096
"""Banks whose ports limit nothing."""


class NotComparableError(Exception):
    """Why a row is skipped."""


@dataclass(frozen=True)
class Run:
    """One layer on one design.

    Attributes:
        layer: as :func:`archgym.envs.accelerator.own_layers.read_layer` reads it.
        hardware: the design.
        groups: labels that a case may be made of, by topic.
        mapper: whether the simulator searched for the best mapping, or has one of its own.
    """

    layer: Mapping[str, Any]
    hardware: Hardware
    groups: Mapping[str, str]
    mapper: bool = True


@dataclass(frozen=True)
class View:
    """Which rows of a table are compared together, and in what.

    Attributes:
        title: what is said of the rows.
        metrics: metrics that are compared.
        case: topic of :attr:`Run.groups` that makes a case; empty for all rows in one.
        only: topic and label of the rows to keep; ``None`` for all.
    """

    title: str
    metrics: tuple[str, ...]
    case: str = ""
    only: tuple[str, str] | None = None


@dataclass(frozen=True)
class Form:
    """One form of table.

    Attributes:
        simulator: whose figures they are.
        needed: columns without which a table is not of this form.
        parameters: columns that describe the layer and the design.
        metrics: columns with figures, and the metric that each is.
        views: how the rows are compared.
        read: what a row says.
        checks: columns that decide whether a row is compared.
        ignored: columns that are known and not used, with the reason.
    """

    simulator: str
    needed: tuple[str, ...]
    parameters: tuple[str, ...]
    metrics: Mapping[str, str]
    views: tuple[View, ...]
    read: Callable[[TableRow], Run]
    checks: Mapping[str, str] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)


def _scalesim(row: TableRow) -> Run:
    kind = row.choice("op", {"conv": "conv", "gemm": "gemm"})
    if kind == "gemm":
        layer: dict[str, Any] = {name: row.whole(name) for name in ("M", "N", "K")}
    else:
        stride = row.whole("stride", "1")
        layer = {
            **{"K": row.whole("num_filters"), "C": row.whole("channels")},
            **{"R": row.whole("filt_h"), "S": row.whole("filt_w")},
            # SCALE-Sim rounds up: a last window that reaches past the input counts.
            "P": -(-(row.whole("ifmap_h") - row.whole("filt_h") + stride) // stride),
            "Q": -(-(row.whole("ifmap_w") - row.whole("filt_w") + stride) // stride),
            "stride": stride,
        }
    split = tuple(_KIB * row.whole(f"{name}_sram_kb") for name in ("ifmap", "filter", "ofmap"))
    limited = row.choice("bw_mode", {"USER": True, "CALC": False}, "USER")
    stalls = row.number("stall_cycles") or 0.0
    dataflow = row.choice("dataflow", {name: name for name in ("os", "ws", "is")})
    hardware = Hardware(
        f"systolic_{dataflow}",
        rows=row.whole("array_rows"),
        columns=row.whole("array_cols"),
        buffer_bytes=sum(split),
        buffer_split_bytes=split,  # type: ignore[arg-type]
        dram_links="separate",
        dram_bytes_per_cycle=row.whole("bandwidth_words_per_cycle") if limited else _UNLIMITED,
        noc_bytes_per_cycle=_UNLIMITED,
        word_bits=8,
        accumulator_bits=8,
        prefetch="storage_order",
    )
    groups = {
        "dataflow": dataflow,
        "bandwidth": "set" if limited else "not set",
        "stalls": "none" if stalls == 0 else "some",
    }
    return Run(layer, hardware, groups, mapper=False)


_MAESTRO_FLOWS = {
    "nvdla_kcp_ws": "nvdla_ws",
    "shidiannao_yxp_os": "shidiannao_os",
    "eyeriss_rs": "eyeriss_rs",
    "xp_ws": "xp_ws",
    "nlr_cp": "nlr_cp",
}


def _maestro(row: TableRow) -> Run:
    if row.text("valid", "1") != "1":
        raise NotComparableError("marked as not valid: MAESTRO lost count of its operations")
    dataflow = row.choice("dataflow", _MAESTRO_FLOWS)
    sizes = {name: row.whole(name) for name in ("K", "C", "R", "S", "Y", "X")}
    layer: dict[str, Any] = {**sizes, "stride": row.whole("stride", "1")}
    if row.choice("type", {"CONV": False, "DSCONV": True}, "CONV"):
        layer |= {"kind": "depthwise", "K": sizes["K"] * sizes["C"]}
    pes = row.whole("num_pes")
    cluster = max(1, row.whole("cluster_size", "1"))
    if dataflow not in ("nvdla_ws", "shidiannao_os"):
        cluster = 1
    if cluster > pes:
        raise NotComparableError(f"a cluster of {cluster} is larger than the array of {pes}")
    # MAESTRO sizes a register file and the buffer for the layer. What it does not say of their
    # parts does not matter: only their sum has an area, and everything fits.
    registers = row.whole("l1_req_bytes", "1048576")
    sums = min(2, registers)
    hardware = Hardware(
        dataflow,
        rows=pes // cluster,
        columns=cluster,
        spare_pes=pes % cluster,
        lanes=row.whole("simd_lanes", "1"),
        input_rf_bytes=0,
        weight_rf_bytes=registers - sums,
        output_rf_bytes=sums,
        buffer_bytes=max(1, row.whole("l2_req_bytes", "1073741824")),
        noc_bytes_per_cycle=row.whole("noc_bw"),
        dram_bytes_per_cycle=row.whole("offchip_bw"),
        word_bits=8,
        accumulator_bits=8,
        technology="maestro28",
    )
    return Run(layer, hardware, {"dataflow": dataflow}, mapper=False)


def _zigzag(row: TableRow) -> Run:
    layer = {
        **{name: row.whole(name) for name in ("K", "C", "R", "S")},
        **{"P": row.whole("OY"), "Q": row.whole("OX"), "stride": row.whole("stride", "1")},
    }
    dataflow = row.choice("spatial_mapping", {"ws_KC": "nvdla_ws", "os_OXOY_like_KOX": "kx_free"})
    # The rest is that of ZigZag's sample tpu_like: 1024 bits of weights and one partial sum of 16
    # bits in each processing element, weights straight from memory, a port of 2048 bits.
    hardware = Hardware(
        dataflow,
        rows=row.whole("array_d1"),
        columns=row.whole("array_d2"),
        input_rf_bytes=0,
        weight_rf_bytes=128,
        output_rf_bytes=2,
        buffer_bytes=row.whole("sram_bits") // 8,
        noc_bytes_per_cycle=256.0,
        dram_bytes_per_cycle=row.whole("dram_bw_bits_per_cycle") / 8,
        word_bits=8,
        accumulator_bits=16,
        dram_links="duplex",
        banks=_PORTS,
        keeps_halves=False,
        weights_bypass_buffer=True,
        waits_for_first_tile=True,
    )
    array = f"{hardware.rows} x {hardware.columns}"
    return Run(layer, hardware, {"array": array, "dataflow": dataflow})


def _timeloop(row: TableRow) -> Run:
    layer = {
        **{name: row.whole(name) for name in ("K", "C", "R", "S", "P", "Q")},
        "stride": row.whole("stride", "1"),
    }
    bits = row.whole("word_bits", "16")
    mesh = row.whole("mesh")
    word = bits / 8
    hardware = Hardware(
        "eyeriss_rs",
        rows=mesh,
        columns=mesh,
        input_rf_bytes=int(word * row.whole("input_rf_entries")),
        weight_rf_bytes=int(word * row.whole("weight_rf_entries")),
        output_rf_bytes=int(word * row.whole("psum_rf_entries")),
        buffer_bytes=int(word * row.whole("glb_entries")),
        noc_bytes_per_cycle=word * row.whole("glb_bw_words"),
        dram_bytes_per_cycle=word * row.whole("dram_bw_words"),
        dram_links="duplex",
        banks=_PORTS,
        keeps_halves=False,
        word_bits=bits,
        accumulator_bits=bits,
        weights_bypass_buffer=True,
    )
    return Run(layer, hardware, {"mesh": f"mesh {mesh}"})


_LABELS = {"id": "a label", "layer": "a label"}

FORMS = (
    Form(
        simulator="SCALE-Sim 3.0.0",
        needed=("array_rows", "array_cols", "ifmap_sram_kb", "dataflow", "total_cycles"),
        parameters=(
            *("op", "M", "N", "K", "ifmap_h", "ifmap_w", "filt_h", "filt_w", "channels"),
            *("num_filters", "stride", "array_rows", "array_cols", "dataflow", "ifmap_sram_kb"),
            *("filter_sram_kb", "ofmap_sram_kb", "bandwidth_words_per_cycle", "bw_mode"),
        ),
        metrics={
            "total_cycles": "latency_cycles",
            "sram_ifmap_reads": "buffer_input_reads_count",
            "sram_filter_reads": "buffer_weight_reads_count",
            "sram_ofmap_writes": "buffer_output_writes_count",
        },
        views=(
            View(
                "rows without stalls",
                (
                    "latency_cycles",
                    "buffer_input_reads_count",
                    "buffer_weight_reads_count",
                    "buffer_output_writes_count",
                ),
                case="dataflow",
                only=("stalls", "none"),
            ),
            View("rows with a set bandwidth", ("latency_cycles",), only=("bandwidth", "set")),
        ),
        read=_scalesim,
        ignored={
            "total_cycles_incl_prefetch": "total_cycles with the first fill",
            "overall_util_pct": "follows from total_cycles",
            "mapping_eff_pct": "follows from the layer and the array",
            "compute_util_pct": "follows from total_cycles without stalls",
            **dict.fromkeys(
                ("dram_ifmap_reads", "dram_filter_reads", "dram_ofmap_writes"),
                "counts whole lines of the prefetch, not words that are needed",
            ),
            **dict.fromkeys(
                ("avg_ifmap_dram_bw", "avg_filter_dram_bw", "avg_ofmap_dram_bw"),
                "follows from the accesses",
            ),
        },
        checks={"stall_cycles": "rows without stalls are compared exactly"},
    ),
    Form(
        simulator="MAESTRO 4eb08d1",
        needed=("dataflow", "num_pes", "noc_bw", "offchip_bw", "runtime_cycles"),
        parameters=(
            *("type", "K", "C", "R", "S", "Y", "X", "stride", "dataflow", "cluster_size"),
            *("num_pes", "noc_bw", "offchip_bw", "simd_lanes", "l2_req_bytes", "l1_req_bytes"),
        ),
        metrics={
            "runtime_cycles": "latency_cycles",
            "area_um2": "area_um2",
            "power_mw": "power_mw",
        },
        views=(
            View("all rows", ("latency_cycles", "area_um2", "power_mw")),
            View("by dataflow", ("latency_cycles",), case="dataflow"),
        ),
        read=_maestro,
        checks={"valid": "rows in which MAESTRO lost count are skipped"},
        ignored={
            "energy_nj": "without memory; of a clustered dataflow too small by up to 38 times",
            "macs_per_cycle": "follows from runtime_cycles",
            "l1_cstr": "has no effect in MAESTRO",
            "l2_cstr": "has no effect in MAESTRO",
        },
    ),
    Form(
        simulator="ZigZag 3.9.1",
        needed=("array_d1", "array_d2", "spatial_mapping", "sram_bits", "latency_cycles"),
        parameters=(
            *("K", "C", "R", "S", "OY", "OX", "stride", "array_d1", "array_d2"),
            *("spatial_mapping", "sram_bits", "dram_bw_bits_per_cycle"),
        ),
        metrics={"latency_cycles": "latency_cycles"},
        views=(
            View("all rows", ("latency_cycles",)),
            View("by array size", ("latency_cycles",), case="array"),
        ),
        read=_zigzag,
        ignored={
            "energy_pj": "of the unit energies of its sample, which are no technology of ours",
            "sram_r_pj": "a unit energy of its sample",
            "sram_w_pj": "a unit energy of its sample",
            "mac_energy_pj": "a part of energy_pj",
            "mem_energy_pj": "a part of energy_pj",
            "ideal_cycles": "follows from the layer and the array",
            "ideal_temporal_cycles": "follows from the layer and the array",
            "mac_utilization": "follows from latency_cycles",
        },
    ),
    Form(
        simulator="Timeloop 3.0.3",
        needed=("mesh", "glb_entries", "psum_rf_entries", "cycles"),
        parameters=(
            *("K", "C", "R", "S", "P", "Q", "stride", "mesh", "glb_entries", "psum_rf_entries"),
            *("weight_rf_entries", "input_rf_entries", "glb_bw_words", "dram_bw_words"),
            "word_bits",
        ),
        metrics={"cycles": "latency_cycles"},
        views=(
            View("all rows", ("latency_cycles",)),
            View("by array size", ("latency_cycles",), case="mesh"),
        ),
        read=_timeloop,
        ignored={
            "num_pes": "mesh squared",
            "utilization": "follows from cycles",
            "energy_uj": "of a table of made-up energies, as the program was built",
            "dram_total_scalar_accesses": "of the mapping found first among those equally fast",
        },
    ),
)
"""All forms."""
LABELS: Mapping[str, str] = MappingProxyType(_LABELS)
