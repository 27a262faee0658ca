"""Reference tables: how they are read, and how well we agree with those that ship."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archgym.envs.accelerator.counted import CountedAccelerator
from archgym.envs.accelerator.environment import AcceleratorEnvironment
from archgym.envs.accelerator.validation.reference import read_reference, shipped_references
from archgym.errors import InvalidValueError
from archgym.problem.reference import Reference
from archgym.validation.validate import Validation, validate

SCALESIM: dict[str, Any] = {
    **{"id": 0, "layer": "conv", "op": "conv", "M": 36, "N": 12, "K": 36},
    **{"ifmap_h": 8, "ifmap_w": 8, "filt_h": 3, "filt_w": 3, "channels": 4, "num_filters": 12},
    **{"stride": 1, "array_rows": 8, "array_cols": 8, "dataflow": "ws", "bw_mode": "USER"},
    **{"ifmap_sram_kb": 64, "filter_sram_kb": 64, "ofmap_sram_kb": 64},
    **{"bandwidth_words_per_cycle": 64, "total_cycles": 579, "stall_cycles": 0},
}
MAESTRO: dict[str, Any] = {
    **{"id": 0, "layer": "conv", "type": "CONV", "K": 16, "C": 8, "R": 3, "S": 3},
    **{"Y": 16, "X": 16, "stride": 1, "dataflow": "nvdla_kcp_ws", "cluster_size": 8},
    **{"num_pes": 64, "noc_bw": 16, "offchip_bw": 8, "simd_lanes": 1, "runtime_cycles": 31752},
    **{"area_um2": 3.81323e6, "power_mw": 108.966, "l2_req_bytes": 1312, "l1_req_bytes": 54},
    "valid": 1,
}
ZIGZAG: dict[str, Any] = {
    **{"K": 64, "C": 64, "R": 3, "S": 3, "OY": 14, "OX": 14, "stride": 1},
    **{"array_d1": 8, "array_d2": 16, "spatial_mapping": "ws_KC", "sram_bits": 4194304},
    **{"dram_bw_bits_per_cycle": 64, "latency_cycles": 60000, "energy_pj": 1e7},
}
TIMELOOP: dict[str, Any] = {
    **{"K": 64, "C": 64, "R": 3, "S": 3, "P": 14, "Q": 14, "stride": 1, "mesh": 16},
    **{"glb_entries": 32768, "psum_rf_entries": 16, "weight_rf_entries": 192},
    **{"input_rf_entries": 12, "glb_bw_words": 16, "dram_bw_words": 4, "word_bits": 16},
    "cycles": 40000,
}
TABLES = {"SCALE-Sim": SCALESIM, "MAESTRO": MAESTRO, "ZigZag": ZIGZAG, "Timeloop": TIMELOOP}


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    columns = list(rows[0])
    lines = [",".join(columns), *(",".join(str(row[c]) for c in columns) for row in rows)]
    path = folder / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def read(folder: Path, *rows: dict[str, Any]) -> list[Reference]:
    return read_reference(written(folder, *rows))


def environment(reference: Reference, row: int = 0) -> AcceleratorEnvironment:
    return AcceleratorEnvironment(**reference.settings[reference.rows[row].setting])


@pytest.fixture(scope="module")
def found() -> dict[str, Validation]:
    """Our agreement with all that ships, by title."""
    return {
        reference.title: validate(reference, AcceleratorEnvironment)
        for reference in shipped_references()
    }


# -- agreement: the project's bars, on the rows that ship ----------------------------------------


def test_scalesim_rows_without_stalls_are_exact(found: dict[str, Validation]) -> None:
    validation = found["SCALE-Sim 3.0.0, rows without stalls"]
    assert not validation.failed
    cases = {one.case: one for one in validation.agreements if one.metric == "latency_cycles"}
    assert sum(one.n for one in cases.values()) >= 60
    for case in ("os", "ws", "is"):
        assert cases[case].max_error == 0.0


def test_scalesim_buffer_accesses_are_exact() -> None:
    (reference,) = [r for r in CountedAccelerator.references() if "without stalls" in r.title]
    validation = validate(reference, CountedAccelerator)
    for metric in ("input_reads", "weight_reads", "output_writes"):
        assert validation.summary(f"buffer_{metric}_count").worst["max_error"] == 0.0


def test_counts_are_those_of_the_layers() -> None:
    env = CountedAccelerator(workload="alexnet")
    metrics = env.evaluate(env.baseline_design).metrics
    layers = env.layers(env.baseline_design)
    reads = sum(layer.count * layer.words["buffer_weight"] for layer in layers)
    assert metrics["buffer_weight_reads_count"] == reads
    assert reads >= sum(n * one.weight_footprint for one, n in pairs(env))
    with pytest.raises(InvalidValueError, match="per_layer"):
        CountedAccelerator(space="per_layer")


def pairs(env: AcceleratorEnvironment) -> list[tuple[Any, int]]:
    return list(zip(env.network.layers, env.network.counts, strict=True))


def test_scalesim_rows_with_a_bandwidth_are_exact(found: dict[str, Validation]) -> None:
    (one,) = found["SCALE-Sim 3.0.0, rows with a set bandwidth"].agreements
    assert one.n == 86
    assert one.max_error == 0.0


def test_maestro_area_and_power_agree_to_four_digits(found: dict[str, Validation]) -> None:
    validation = found["MAESTRO 4eb08d1, all rows"]
    for metric in ("area_um2", "power_mw"):
        assert max(abs(row.error) for row in validation.worst_rows(metric)) < 5e-5


def test_maestro_runtime_ranks_as_it_does(found: dict[str, Validation]) -> None:
    summary = found["MAESTRO 4eb08d1, all rows"].summary("latency_cycles")
    assert summary.median["spearman"] >= 0.96
    assert summary.median["mean_error"] <= 0.25
    assert found["MAESTRO 4eb08d1, by dataflow"].summary("latency_cycles").worst["spearman"] >= 0.9


def test_timeloop_ranks_within_each_mesh_as_it_does(found: dict[str, Validation]) -> None:
    summary = found["Timeloop 3.0.3, by array size"].summary("latency_cycles")
    assert summary.worst["spearman"] >= 0.98
    assert summary.worst["mean_error"] <= 0.1


@pytest.mark.parametrize(("title", "overall"), [("ZigZag 3.9.1", 0.95), ("Timeloop 3.0.3", 0.99)])
def test_mapped_latencies_rank_as_theirs(
    found: dict[str, Validation], title: str, overall: float
) -> None:
    (one,) = found[f"{title}, all rows"].agreements
    assert one.spearman >= overall
    assert found[f"{title}, by array size"].summary("latency_cycles").median["spearman"] >= 0.9


def test_the_shipped_figures_name_their_provenance() -> None:
    for reference in shipped_references():
        assert reference.rows
        assert {"simulator", "how", "designs", "layers"} <= set(reference.provenance)
        simulator, version, *_ = reference.title.replace(",", "").split()
        assert reference.provenance["simulator"].startswith(f"{simulator} {version}")


# -- reading -------------------------------------------------------------------------------------


def test_a_scalesim_row_becomes_a_systolic_array_with_three_buffers(tmp_path: Path) -> None:
    reference, *_ = read(tmp_path, SCALESIM)
    (row,) = reference.rows
    assert (row.case, row.line, row.metrics) == ("ws", 2, {"latency_cycles": 579.0})
    env = environment(reference)
    hardware = env.hardware(env.baseline_design)
    assert (hardware.dataflow, hardware.rows, hardware.columns) == ("systolic_ws", 8, 8)
    assert hardware.buffer_split_bytes == (65536, 65536, 65536)
    (layer,) = env.network.layers
    assert tuple(layer.gemm) == (36, 12, 36)
    # Folds: ceil(36/8) x ceil(12/8), each of 36 + 2 x 8 + 8 - 2 cycles, less 1.
    assert env.evaluate(row.design).metrics["latency_cycles"] == 10 * 58 - 1 == 579


def test_a_maestro_row_becomes_clusters(tmp_path: Path) -> None:
    reference, _ = read(tmp_path, MAESTRO)
    env = environment(reference)
    hardware = env.hardware(env.baseline_design)
    assert (hardware.rows, hardware.columns, hardware.technology) == (8, 8, "maestro28")
    metrics = env.evaluate(reference.rows[0].design).metrics
    assert metrics["area_um2"] == pytest.approx(3.81323e6, rel=5e-6)
    assert metrics["power_mw"] == pytest.approx(108.966, rel=5e-6)
    assert metrics["latency_cycles"] == pytest.approx(31752, rel=0.25)


def test_processing_elements_that_fill_no_cluster_still_take_area(tmp_path: Path) -> None:
    reference, _ = read(tmp_path, {**MAESTRO, "num_pes": 68})
    hardware = environment(reference).hardware(environment(reference).baseline_design)
    assert (hardware.rows, hardware.columns, hardware.spare_pes) == (8, 8, 4)


def test_a_depthwise_layer_of_maestro_has_a_group_for_each_channel(tmp_path: Path) -> None:
    row = {**MAESTRO, "type": "DSCONV", "K": 1, "dataflow": "eyeriss_rs", "cluster_size": 3}
    row |= {"l1_req_bytes": 100, "l2_req_bytes": 100_000}
    reference, _ = read(tmp_path, row)
    (layer,) = environment(reference).network.layers
    assert (layer.kind, layer.C, layer.groups, layer.P) == ("depthwise", 8, 8, 14)


def test_a_zigzag_row_searches_the_mapping(tmp_path: Path) -> None:
    reference, grouped = read(tmp_path, ZIGZAG)
    assert grouped.rows[0].case == "8 x 16"
    env = environment(reference)
    hardware = env.hardware(env.baseline_design)
    assert env.mapper == "latency"
    assert hardware.buffer_bytes == 524288
    assert (hardware.dram_bytes_per_cycle, hardware.weights_bypass_buffer) == (8.0, True)


def test_a_timeloop_row_counts_words(tmp_path: Path) -> None:
    reference, grouped = read(tmp_path, TIMELOOP)
    assert grouped.rows[0].case == "mesh 16"
    env = environment(reference)
    hardware = env.hardware(env.baseline_design)
    assert (hardware.weight_rf_bytes, hardware.buffer_bytes) == (384, 65536)
    assert hardware.dram_bytes_per_cycle == 8.0


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_accounted_for(tmp_path: Path, name: str) -> None:
    row = {**TABLES[name], "colour": "blue"}
    for reference in read(tmp_path, row):
        uses = {use.column: use for use in reference.columns}
        assert list(uses) == list(row)
        assert uses.pop("colour")[1:] == ("ignored", "", "not known")
        assert "metric" in {use.use for use in uses.values()}
        assert all(use.note != "not known" for use in uses.values())


def test_rows_that_cannot_be_compared_are_skipped_with_the_reason(tmp_path: Path) -> None:
    reference, _ = read(
        tmp_path,
        MAESTRO,
        {**MAESTRO, "valid": 0},
        {**MAESTRO, "cluster_size": 128},
    )
    assert len(reference.rows) == 1
    reasons = dict(reference.skipped)
    assert "lost count" in reasons[3]
    assert "cluster of 128 is larger than the array of 64" in reasons[4]
    zigzag, _ = read(tmp_path, ZIGZAG, {**ZIGZAG, "sram_bits": 8})
    assert "no tile of the layer fits" in dict(zigzag.skipped)[3]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**SCALESIM, "dataflow": "wz"}, "line 2, column 'dataflow': the value is 'wz'"),
        ({**SCALESIM, "array_rows": "8.5"}, "column 'array_rows'.*whole number"),
        ({**SCALESIM, "array_rows": 0}, "line 2: rows is 0"),
        ({**MAESTRO, "K": 0}, "line 2: layer: K is 0"),
        ({**MAESTRO, "runtime_cycles": "fast"}, "column 'runtime_cycles'"),
        ({**ZIGZAG, "spatial_mapping": "ws_CK"}, "Did you mean 'ws_KC'"),
        ({**MAESTRO, "Y": 2}, "R is 3; with padding there are 2 inputs"),
    ],
)
def test_cells_that_make_no_sense_are_named(
    tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        read(tmp_path, row)


def test_a_table_of_no_known_form_is_refused(tmp_path: Path) -> None:
    row = {name: value for name, value in ZIGZAG.items() if name != "sram_bits"}
    with pytest.raises(InvalidValueError, match="lacks column 'sram_bits'; a table of ZigZag"):
        read(tmp_path, row)


def test_the_environment_reads_tables(tmp_path: Path) -> None:
    path = written(tmp_path, TIMELOOP)
    titles = [reference.title for reference in AcceleratorEnvironment.references(path)]
    assert titles == ["Timeloop 3.0.3, all rows", "Timeloop 3.0.3, by array size"]
    assert len(AcceleratorEnvironment.references()) == 8
