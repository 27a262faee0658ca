"""The four design spaces: their sizes, rules, and the hardware that designs describe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.accelerator import (
    space_eyeriss,
    space_mapping,
    space_per_layer,
    space_template,
)
from archgym.envs.accelerator.energy import area
from archgym.envs.accelerator.workload import load_workload
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
    ("budget", "error", "said"),
    [
        ({"of": "energy"}, UnknownNameError, "area, power"),
        ({"share": 0}, InvalidValueError, "share is 0"),
        ({"shares": 0.5}, UnknownNameError, "Did you mean 'share'"),
        ({"share": 1e-9}, InvalidValueError, "less than one PE"),
    ],
)
def test_impossible_budgets_are_refused(
    budget: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        archgym.make("Accelerator-v0", space="per_layer", workload="alexnet", budget=budget)
