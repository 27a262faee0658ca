"""Laws that hold for every design and every mapping."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.envs.accelerator.cost.hardware import SPATIAL_DATAFLOWS, Hardware
from archgym.envs.accelerator.cost.model import Costs, evaluate, evaluate_mappings
from archgym.envs.accelerator.workload.layer import Layer
from tests.envs.accelerator.random_designs import (
    random_hardware,
    random_layer,
    random_mapping,
    table,
)

SIDES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
LINKS = {"shared": 1, "separate": 3, "duplex": 2}


def check_laws(layer: Layer, costs: Costs) -> None:
    hardware, found = costs.hardware[0], costs.layer(0, 0)
    assert found["macs"] == pytest.approx(layer.macs, rel=1e-12)
    footprints = {
        "input": layer.input_footprint,
        "weight": layer.weight_footprint,
        "output": layer.output_footprint,
    }
    for level in ("dram", "buffer"):
        for operand, words in footprints.items():
            assert found[f"{level}_{operand}_words"] >= words, (level, operand)
    assert found["dram_bytes"] >= sum(footprints.values()) * hardware.word_bytes
    # The roofline: peak operations, and all that the memory's links can carry.
    minimum = max(
        layer.macs / hardware.macs_per_cycle,
        found["dram_bytes"] / hardware.dram_bytes_per_cycle / LINKS[hardware.dram_links],
    )
    assert found["cycles"] >= minimum * (1 - 1e-12) - 1
    assert found["cycles"] >= found["compute_cycles"]
    # What is read back was written before; the last time is the result.
    for level in ("dram", "buffer"):
        back = found[f"{level}_sum_words"]
        assert back == pytest.approx(
            found[f"{level}_output_words"] - layer.output_footprint, abs=1e-6
        )
    levels = ("mac", "register_file", "noc", "buffer", "dram")
    assert sum(found[f"{level}_pj"] for level in levels) == pytest.approx(found["energy_pj"])


@pytest.mark.parametrize("mapper", ["off", "latency", "energy", "edp"])
def test_laws_hold_for_random_designs(mapper: str) -> None:
    rng = np.random.default_rng(11)
    mapped = 0
    for _ in range(700):
        layer, hardware = random_layer(rng), random_hardware(rng)
        costs = evaluate(table(layer), [hardware], mapper=mapper)
        if costs.mapped[0, 0]:
            check_laws(layer, costs)
            mapped += 1
    assert mapped > 650


@pytest.mark.full
def test_laws_hold_for_thousands_of_random_mappings() -> None:
    rng = np.random.default_rng(12)
    mapped = 0
    for _ in range(4000):
        layer, hardware = random_layer(rng), random_hardware(rng, "custom")
        mapping = random_mapping(rng, layer, hardware)
        costs = evaluate_mappings(table(layer), [hardware], [mapping])
        if costs.mapped[0, 0]:
            check_laws(layer, costs)
            mapped += 1
    assert mapped > 3500


def larger(rng: np.random.Generator, hardware: Hardware, field: str) -> Hardware:
    """The same design with more of one thing."""
    value = getattr(hardware, field)
    if field in ("rows", "columns"):
        more = int(rng.choice([side for side in SIDES if side > value] or [2 * value]))
    elif field.endswith("_per_cycle"):
        more = value * float(rng.uniform(1, 4))
    else:
        more = value + int(rng.integers(1, 2 * value + 20))
    return hardware.replace(**{field: more})


@pytest.mark.parametrize(
    "field",
    [
        "rows",
        "columns",
        "input_rf_bytes",
        "weight_rf_bytes",
        "output_rf_bytes",
        "buffer_bytes",
        "banks",
        "noc_bytes_per_cycle",
        "dram_bytes_per_cycle",
    ],
)
def test_more_of_a_resource_is_never_slower(field: str) -> None:
    """On spatial arrays with usual sides: exactly never.

    A systolic array is rigid: every fold runs through all rows and columns.
    """
    rng = np.random.default_rng(13)
    compared = 0
    for _ in range(200):
        layer = random_layer(rng, largest=120)
        hardware = random_hardware(rng, str(rng.choice(SPATIAL_DATAFLOWS))).replace(
            rows=int(rng.choice(SIDES)), columns=int(rng.choice(SIDES)), dram_links="shared"
        )
        costs = evaluate(table(layer), [hardware, larger(rng, hardware, field)], mapper="latency")
        if costs.mapped[0, 0]:
            assert costs.mapped[1, 0]
            assert costs["cycles"][1, 0] <= costs["cycles"][0, 0], (layer, hardware)
            compared += 1
    assert compared > 150


def test_a_larger_array_of_any_size_is_hardly_slower() -> None:
    """Of sides that are not usual not every tile is tried on a larger array too."""
    rng = np.random.default_rng(15)
    for _ in range(400):
        layer, hardware = random_layer(rng), random_hardware(rng)
        side = ("rows", "columns")[rng.integers(2)]
        more = getattr(hardware, side) + int(rng.integers(1, 2 * getattr(hardware, side) + 4))
        costs = evaluate(table(layer), [hardware, hardware.replace(**{side: more})])
        if not costs.mapped[0, 0]:
            continue
        assert costs.mapped[1, 0]
        small, large = costs["cycles"][:, 0]
        if hardware.dataflow.startswith("systolic"):
            skew = costs["compute_cycles"][1, 0] - costs["compute_cycles"][0, 0]
            assert large <= small + max(0, skew)
        else:
            assert large <= 1.05 * small


@pytest.mark.parametrize("mapper", ["latency", "edp"])
def test_a_known_mapping_that_fits_a_smaller_array_is_found_on_a_larger_one(mapper: str) -> None:
    """Large register files and a small buffer: NVDLA's own mapping fits up to 48 columns."""
    layer = Layer("conv", "conv", K=64, C=64, R=3, S=3, P=56, Q=56)
    base = Hardware(
        "nvdla_ws",
        96,
        32,
        input_rf_bytes=64,
        weight_rf_bytes=1024,
        output_rf_bytes=4,
        buffer_bytes=65536,
        banks=4,
        noc_bytes_per_cycle=32.0,
        dram_bytes_per_cycle=32.0,
        technology="cmos7",
    )
    arrays = [base.replace(columns=columns) for columns in (32, 48, 64, 96, 128)]
    costs = evaluate(table(layer), arrays, mapper=mapper)
    cycles = costs["cycles"][:, 0]
    assert (cycles[1:] <= cycles[:-1] * (1.0 if mapper == "latency" else 1.01)).all()


def test_the_array_is_used_in_part_where_that_is_faster() -> None:
    """A small buffer feeds few rows: on an array with more of them the mapper leaves these idle."""
    layer = Layer("conv", "conv", K=128, C=128, R=3, S=3, P=28, Q=28)
    base = Hardware("kx_free", 16, 16, buffer_bytes=4096, noc_bytes_per_cycle=256.0, banks=32)
    costs = evaluate(table(layer), [base.replace(rows=rows) for rows in (16, 32, 64, 128)])
    cycles = costs["cycles"][:, 0]
    assert (cycles[1:] <= cycles[:-1]).all()
    assert costs["spatial_K"][3, 0] < 128


def test_results_do_not_depend_on_the_batch() -> None:
    rng = np.random.default_rng(14)
    layers = [random_layer(rng) for _ in range(5)]
    designs = [random_hardware(rng) for _ in range(40)]
    together = evaluate(table(*layers), designs).metrics()
    for i, design in enumerate(designs):
        alone = evaluate(table(*layers), [design]).metrics()
        for name, column in together.items():
            np.testing.assert_array_equal(column[i : i + 1], alone[name], err_msg=name)


@pytest.mark.parametrize("dataflow", ["systolic_ws", "nvdla_ws"])
def test_a_single_buffer_is_filled_then_read_then_left_alone(dataflow: str) -> None:
    """One bank of one word a cycle is slower than both links, and sets the time of transfers."""
    layer = Layer.from_gemm("g", M=64, N=64, K=64)
    single = Hardware(
        dataflow,
        8,
        8,
        buffer_bytes=1 << 20,
        banks=1,
        noc_bytes_per_cycle=1e9,
        dram_bytes_per_cycle=1e9,
        double_buffered=False,
    )
    found = evaluate(table(layer), [single], mapper="off").layer(0, 0)
    assert found["port_cycles"] > found["compute_cycles"] / 8
    total = found["compute_cycles"] + found["port_cycles"]
    assert found["cycles"] == pytest.approx(total, abs=1)
    double = single.replace(double_buffered=True)
    overlapped = evaluate(table(layer), [double], mapper="off").layer(0, 0)
    assert overlapped["cycles"] < found["cycles"]
