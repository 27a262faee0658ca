"""The forms of tables that hold reference figures for the accelerator environment.

A table is a CSV file with a row for each layer on each design, in one of four forms, recognised by
its columns:

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

from archgym.envs.accelerator.validation.table_rows import (
    Run,
    maestro_run,
    scalesim_run,
    timeloop_run,
    zigzag_run,
)
from archgym.problem.reference import TableRow

__all__ = ["FORMS", "LABELS", "Form", "View"]


@dataclass(frozen=True)
class View:
    """Which rows of a table are compared together, and in what.

    Attributes:
        title: a heading for the rows.
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
        read=scalesim_run,
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
        read=maestro_run,
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
        read=zigzag_run,
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
        read=timeloop_run,
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
