"""The four design spaces: their sizes, rules, and the hardware that designs describe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.accelerator.cost.energy import accesses, area
from archgym.envs.accelerator.spaces import eyeriss as space_eyeriss
from archgym.envs.accelerator.spaces import mapping as space_mapping
from archgym.envs.accelerator.spaces import per_layer as space_per_layer
from archgym.envs.accelerator.spaces import template as space_template
from archgym.envs.accelerator.workload.workload import load_workload
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space import DesignSpace

ONE_LAYER = {"network": "resnet18", "only": ["layer1.0.conv1"]}


def sample(space: DesignSpace, n: int = 60) -> list[dict[str, Any]]:
    return list(space.sample(n, np.random.default_rng(3)))


def test_eyeriss_space_is_archgyms() -> None:
    space = space_eyeriss.eyeriss_space()
    pad = 4 * 16 * 3 * 4 * 4
    assert space.raw_cardinality == 24 * 3 * pad**3 * (4 * 16 * 3) * (4 * 7 * 4 * 3 * 4 * 4)
    assert space["n_pes"].range == "14, 28, 42, 56, 70, 84, ... 336" or space["n_pes"].size == 24
    assert [space["shared_depth"].value(i) for i in (0, 6)] == [1024, 65536]
    for design in sample(space):
        hardware = space_eyeriss.hardware(design)
        assert hardware.pes == design["n_pes"]
        assert hardware.weights_bypass_buffer
        words = design["weights_depth"] * design["weights_block_size"]
        assert hardware.weight_rf_bytes == 2 * words


def test_template_designs_keep_the_rules() -> None:
    space = space_template.template_space({"pes": 1024, "memory_kib": 512})
    for design in sample(space):
        assert space.illegal_reason(space.codes(design)) == ""
        hardware = space_template.hardware(design)
        assert hardware.pes <= 1024
        assert hardware.noc_bytes_per_cycle <= 8 * hardware.banks
        assert hardware.buffer_bytes <= 512 * 1024
        weights = hardware.pes * hardware.weight_rf_bytes
        assert hardware.buffer_bytes + weights <= 512 * 1024


def test_register_files_act_only_where_a_dataflow_has_them() -> None:
    space = space_template.template_space()
    systolic = {**space_template.BASELINE, "dataflow": "systolic_ws"}
    assert "weight_rf_bytes" not in space.canonical(systolic)
    shidiannao = space.canonical({**space_template.BASELINE, "dataflow": "shidiannao_os"})
    assert "output_rf_bytes" in shidiannao
    assert "weight_rf_bytes" not in shidiannao


def test_mapping_designs_nest_and_fit() -> None:
    network = load_workload(ONE_LAYER)
    space = space_mapping.mapping_space(network)
    env = archgym.make("Accelerator-v0", space="mapping", workload=ONE_LAYER)
    outcomes = env.evaluate_batch(env.design_space.designs(sample(space)))
    assert (outcomes.status == 0).all()
    for design in sample(space):
        mapping = space_mapping.mapping(design)
        assert mapping.clusters * mapping.cluster_size <= design["pes"]
        assert all(i <= o for i, o in zip(mapping.inner.tiles, mapping.outer.tiles, strict=True))
        k, c, r, s, p, q = mapping.inner.tiles
        used = c * (p + r - 1) * (q + s - 1) + k * c * r * s + 3 * k * p * q
        assert 2 * used <= design["pe_buffer_bytes"]


def test_mapping_space_names_what_is_broken() -> None:
    network = load_workload(ONE_LAYER)
    space = space_mapping.mapping_space(network)
    design = {**space_mapping.baseline(network), "inner_K": 2}
    assert "tiles_nest_K" in space.illegal_reason(space.codes(design))
    small = {**space_mapping.baseline(network), "pe_buffer_bytes": 64, "inner_C": 16}
    assert "pe_tile_fits" in space.illegal_reason(space.codes(small))


def test_per_layer_designs_stay_in_the_budget() -> None:
    network = load_workload("alexnet")
    budget = {"of": "area", "share": 0.1}
    space = space_per_layer.per_layer_space(network, budget)
    assert space.raw_cardinality == 3 * 144.0 ** len(network.layers)
    base = space_per_layer.baseline(network, budget)
    assert space.illegal_reason(space.codes(base)) == ""

    def taken(design: dict[str, Any]) -> float:
        parts = [area(space_per_layer.hardware(design, i)) for i in range(len(network.layers))]
        return sum(part.macs_um2 + part.register_files_um2 for part in parts)

    largest = {
        name: "nvdla_ws" if name == "dataflow" else space[name].value(space[name].size - 1)
        for name in space.names
    }
    assert "area_in_budget" in space.illegal_reason(space.codes(largest))
    for design in sample(space, 30):
        assert taken(design) <= 0.1 * taken(largest) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("budget", "error", "message"),
    [
        ({"of": "energy"}, UnknownNameError, "area, power"),
        ({"share": 0}, InvalidValueError, "share is 0"),
        ({"shares": 0.5}, UnknownNameError, "Did you mean 'share'"),
        ({"share": 1e-9}, InvalidValueError, "less than one PE"),
    ],
)
def test_impossible_budgets_are_refused(
    budget: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        archgym.make("Accelerator-v0", space="per_layer", workload="alexnet", budget=budget)


def test_rules_go_by_the_hardware_that_is_given() -> None:
    network = load_workload(ONE_LAYER)
    design = space_mapping.baseline(network)
    tile = {**design, "inner_C": 8, "outer_C": 64, "inner_spread": "K", "pe_buffer_bytes": 512}
    assert space_mapping.mapping_space(network).broken_rule(tile) == ""
    wide = space_mapping.mapping_space(network, {"word_bits": 32, "accumulator_bits": 32})
    assert "pe_tile_fits" in wide.broken_rule(tile)
    single = space_mapping.mapping_space(
        network, {"word_bits": 32, "accumulator_bits": 32, "double_buffered": False}
    )
    assert "pe_tile_fits" in single.broken_rule({**tile, "pe_buffer_bytes": 256})
    roomy = space_mapping.mapping_space(
        network, {"word_bits": 32, "accumulator_bits": 32, "weight_rf_bytes": 4096}
    )
    assert roomy.broken_rule(tile) == ""

    template = space_template.template_space(fixed={"banks": 4})
    wired = {**space_template.BASELINE, "noc_bytes_per_cycle": 64, "banks": 64}
    assert "ports_feed_the_array" in template.broken_rule(wired)
    with pytest.raises(InvalidValueError, match="broken by every design"):
        space_template.template_space(fixed={"banks": 4, "noc_bytes_per_cycle": 64.0})


def test_a_budget_goes_by_the_hardware_that_is_given() -> None:
    """Twice as wide multipliers take more of a PE, so buffers are a smaller part of the budget."""
    network = load_workload("alexnet")
    fixed = {"word_bits": 16, "accumulator_bits": 40, "technology": "cmos7"}
    for kind in ("area", "power"):
        budget = {"of": kind, "share": 0.2}
        space = space_per_layer.per_layer_space(network, budget, fixed)
        maximum = taken(network, kind, fixed, 128, 12)
        legal = 0
        for design in sample(per_layer_free(network), 80):
            used = sum(
                taken_by(space_per_layer.hardware(design, i, **fixed), kind)
                for i in range(len(network.layers))
            )
            assert (space.broken_rule(design) == "") == (used <= 0.2 * maximum)
            legal += used <= 0.2 * maximum
        assert 0 < legal < 80


def per_layer_free(network: Any) -> DesignSpace:
    space = space_per_layer.per_layer_space(network, {"share": 1.0})
    return space.fix({"dataflow": "nvdla_ws"})


def taken(network: Any, kind: str, fixed: dict[str, Any], pes: int, units: int) -> float:
    design = {"dataflow": "nvdla_ws", "pes_0": pes, "buffer_units_0": units}
    array = space_per_layer.hardware(design, 0, **fixed)
    return len(network.layers) * taken_by(array, kind)


def taken_by(array: Any, kind: str) -> float:
    if kind == "area":
        parts = area(array)
        return parts.macs_um2 + parts.register_files_um2
    each = accesses(array)
    files = each.input_rf_pj + each.weight_rf_pj + 2 * each.output_rf_pj
    return float(array.pes * (each.mac_pj + files))


@pytest.mark.parametrize("space", ["mapping", "per_layer", "eyeriss"])
def test_an_array_beside_the_parameters_is_refused(space: str) -> None:
    with pytest.raises(InvalidValueError, match="follows from"):
        archgym.make("Accelerator-v0", space=space, workload=ONE_LAYER, hardware={"rows": 8})


def test_the_baseline_is_legal_with_the_hardware_that_is_given() -> None:
    env = archgym.make("Accelerator-v0", workload=ONE_LAYER, hardware={"banks": 4})
    assert env.baseline_design["noc_bytes_per_cycle"] <= 32
