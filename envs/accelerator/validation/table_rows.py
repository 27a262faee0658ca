"""Rows of reference tables: a row of SCALE-Sim, MAESTRO, ZigZag or Timeloop as a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.problem.reference import TableRow

__all__ = [
    "NotComparableError",
    "Run",
    "maestro_run",
    "scalesim_run",
    "timeloop_run",
    "zigzag_run",
]

_UNLIMITED = 1e9
"""Bytes a cycle of a link that the simulator does not limit."""
_KIB = 1024
_PORTS = 4096
"""Banks whose ports limit nothing."""


_VICTORY_CONDITION = 200
"""Of the random search with which the rows of Timeloop were made."""


class NotComparableError(Exception):
    """Why a row is skipped."""


@dataclass(frozen=True)
class Run:
    """One layer on one design.

    Attributes:
        layer: as :func:`archgym.envs.accelerator.workload.user_layers.read_layer` reads it.
        hardware: the design.
        groups: labels that a case may be made of, by topic.
        mapper: whether the simulator searched for the best mapping, or has a fixed one.
    """

    layer: Mapping[str, Any]
    hardware: Hardware
    groups: Mapping[str, str]
    mapper: bool = True


def scalesim_run(row: TableRow) -> Run:
    """A layer on a systolic array."""
    kind = row.choice("op", {"conv": "conv", "gemm": "gemm"})
    if kind == "gemm":
        layer: dict[str, Any] = {name: row.whole(name) for name in ("M", "N", "K")}
    else:
        stride = row.whole("stride", "1")
        layer = {
            **{"K": row.whole("num_filters"), "C": row.whole("channels")},
            **{"R": row.whole("filt_h"), "S": row.whole("filt_w"), "stride": stride},
        }
        # SCALE-Sim rounds up: a last window that reaches past the input counts.
        for outputs, past, axis in (("P", "past_rows", "h"), ("Q", "past_columns", "w")):
            beyond = row.whole(f"ifmap_{axis}") - row.whole(f"filt_{axis}")
            layer[outputs] = -(-beyond // stride) + 1
            layer[past] = -beyond % stride
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


def maestro_run(row: TableRow) -> Run:
    """A layer under one of MAESTRO's own mappings."""
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


def zigzag_run(row: TableRow) -> Run:
    """A layer on the array of ZigZag's sample ``tpu_like``."""
    layer = {
        **{name: row.whole(name) for name in ("K", "C", "R", "S")},
        **{"P": row.whole("OY"), "Q": row.whole("OX"), "stride": row.whole("stride", "1")},
    }
    dataflow = row.choice("spatial_mapping", {"ws_KC": "nvdla_ws", "os_OXOY_like_KOX": "kx_free"})
    # The rest is that of ZigZag's sample tpu_like: 1024 bits of weights and one partial sum of 16
    # bits in each processing element, weights straight from memory, ports of 2048 bits.
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
        weights_bypass_buffer=True,
        tiles="loop_orders",
        drains=True,
    )
    array = f"{hardware.rows} x {hardware.columns}"
    return Run(layer, hardware, {"array": array, "dataflow": dataflow})


def timeloop_run(row: TableRow) -> Run:
    """A layer on a row-stationary mesh."""
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
        tiles="divide",
        victory_condition=_VICTORY_CONDITION,
    )
    return Run(layer, hardware, {"mesh": f"mesh {mesh}"})
