"""The accelerator environment through its public interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archgym
from archgym.check import check
from archgym.envs.accelerator.environment import SPACES, AcceleratorEnvironment
from archgym.errors import DesignError, InvalidValueError, UnknownNameError

ONE_LAYER = {"network": "resnet18", "only": ["layer1.0.conv1"]}


def make(**arguments: Any) -> AcceleratorEnvironment:
    env = archgym.make("Accelerator-v0", **{"workload": "alexnet", **arguments})
    assert isinstance(env, AcceleratorEnvironment)
    return env


@pytest.mark.parametrize("space", SPACES)
def test_every_space_is_searched_and_its_metrics_are_consistent(space: str) -> None:
    env = make(space=space, workload=ONE_LAYER)
    outcomes = env.evaluate_batch(env.design_space.sample(25, np.random.default_rng(4)))
    good = outcomes.status == 0
    assert good.sum() > 15
    column = {n: outcomes.metrics[good, i] for i, n in enumerate(outcomes.metric_names)}
    np.testing.assert_allclose(
        column["power_mw"], column["energy_pj"] / column["latency_ns"], rtol=1e-9
    )
    np.testing.assert_allclose(
        column["edp_js"], column["energy_pj"] * column["latency_ns"] * 1e-21, rtol=1e-9
    )
    assert (column["utilisation_rate"] <= 1).all()
    layer = env.network.layers[0]
    minimum = layer.input_footprint + layer.weight_footprint + layer.output_footprint
    assert (column["dram_bytes"] >= minimum).all()


@pytest.mark.parametrize("space", SPACES)
def test_layers_add_up_to_the_network(space: str) -> None:
    env = make(space=space)
    outcome = env.evaluate(env.baseline_design)
    layers = env.layers(outcome.design)
    assert [layer.name for layer in layers] == [layer.name for layer in env.network.layers]
    assert sum(x.macs * x.count for x in layers) == pytest.approx(env.network.macs)
    for metric, value in (
        ("latency_cycles", sum(x.cycles * x.count for x in layers)),
        ("dram_bytes", sum(x.dram_bytes * x.count for x in layers)),
        ("energy_pj", sum(sum(x.energy_pj.values()) * x.count for x in layers)),
    ):
        assert outcome.metrics[metric] == pytest.approx(value)


def test_the_mapper_is_at_least_as_good_as_the_published_mapping() -> None:
    searched, fixed = make(mapper="latency"), make(mapper="off")
    designs = searched.design_space.sample(20, np.random.default_rng(5))
    best = searched.evaluate_batch(designs).metrics[:, 0]
    known = fixed.evaluate_batch(designs).metrics[:, 0]
    both = ~np.isnan(best) & ~np.isnan(known)
    assert both.sum() > 10
    assert (best[both] <= known[both]).all()
    assert (best[both] < known[both]).any()


def test_a_layer_that_does_not_fit_makes_the_design_illegal() -> None:
    env = make(hardware={"buffer_bytes": 262144})
    small = make(workload={"network": "vgg16"}, mapper="off")
    outcome = small.evaluate(
        {**small.baseline_design, "rows": 128, "columns": 128, "buffer_kib": 16}
    )
    assert outcome.status == "illegal"
    assert "fits a buffer of 16384 bytes" in outcome.reason
    assert env.hardware(env.baseline_design).buffer_bytes == 262144


def test_hardware_fields_hold_for_all_designs() -> None:
    env = make(hardware={"clock_mhz": 123.0, "lanes": 4})
    for design in env.design_space.sample(5, np.random.default_rng(6)):
        assert env.hardware(design).clock_mhz == 123.0
        assert env.hardware(design).lanes == 4
    assert env.settings["hardware"] == {"clock_mhz": 123.0, "lanes": 4}


def test_hardware_takes_lists_as_files_give_them() -> None:
    listed = make(hardware={"memory_classes": ["SRAM", "regfile", "SRAM", "SRAM"]})
    given = make(hardware={"memory_classes": ("SRAM", "regfile", "SRAM", "SRAM")})
    np.testing.assert_array_equal(listed.baseline_metrics, given.baseline_metrics)
    assert listed.baseline_metrics.tolist() != make().baseline_metrics.tolist()
    split = make(hardware={"buffer_bytes": 6000, "buffer_split_bytes": [1000, 2000, 3000]})
    assert split.hardware(split.baseline_design).buffer_split_bytes == (1000, 2000, 3000)


def test_yaml_reads_off_as_false() -> None:
    off = make(mapper=False)
    assert off.settings == make(mapper="off").settings
    np.testing.assert_array_equal(off.baseline_metrics, make(mapper="off").baseline_metrics)


def test_the_mapper_follows_the_objective() -> None:
    for objective, mapper in (
        (None, "edp"),
        ("minimize latency_ns", "latency"),
        ("maximize utilisation_rate", "latency"),
        ("minimize energy_pj", "energy"),
        ({"minimize": ["latency_ns", "area_um2"]}, "latency"),
        ({"minimize": ["latency_ns", "energy_pj", "area_um2"]}, "edp"),
        ("minimize area_um2", "edp"),
    ):
        env = make(workload=ONE_LAYER, objective=objective)
        assert env.mapper == env.settings["mapper"] == mapper
    env = make(workload=ONE_LAYER, objective="minimize latency_ns", mapper="energy")
    assert env.settings["mapper"] == "energy"


def test_the_default_mapper_is_best_at_the_default_objective() -> None:
    """Of one layer: the product of two sums is not the sum of products."""
    followed, fast = make(workload=ONE_LAYER), make(workload=ONE_LAYER, mapper="latency")
    designs = followed.design_space.sample(20, np.random.default_rng(7))
    edp = [metric.name for metric in followed.metrics].index("edp_js")
    ours = followed.evaluate_batch(designs).metrics[:, edp]
    theirs = fast.evaluate_batch(designs).metrics[:, edp]
    both = ~np.isnan(ours)
    assert (ours[both] <= theirs[both] * (1 + 1e-12)).all()
    assert (ours[both] < theirs[both]).any()


@pytest.mark.parametrize(
    "budget",
    [
        {"pes": 16},
        {"pes": 100},
        {"memory_kib": 16},
        {"memory_kib": 100},
        {"pes": 40, "memory_kib": 17},
    ],
)
def test_the_baseline_is_within_a_small_budget(budget: dict[str, float]) -> None:
    env = make(workload=ONE_LAYER, budget=budget)
    hardware = env.hardware(env.baseline_design)
    assert hardware.pes <= budget.get("pes", np.inf)
    files = max(hardware.input_rf_bytes, hardware.weight_rf_bytes, hardware.output_rf_bytes)
    total_kib = (hardware.buffer_bytes + hardware.pes * files) / 1024
    assert total_kib <= budget.get("memory_kib", np.inf)


def test_per_layer_has_no_one_piece_of_hardware() -> None:
    env = make(space="per_layer")
    with pytest.raises(InvalidValueError, match="its own hardware"):
        env.hardware(env.baseline_design)


def test_a_design_space_of_ones_own_is_read_as_what_it_is() -> None:
    for name in SPACES:
        own = make(space=name).design_space
        env = make(space=own)
        assert env.space_name == name
        assert env.evaluate(env.baseline_design).status == "ok"


def test_groups_make_agents() -> None:
    groups = make().design_space.groups
    assert set(groups) == {"array", "registers", "buffer", "links", "format"}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mapper": "latancy"}, UnknownNameError, "Did you mean 'latency'"),
        ({"space": "templates"}, UnknownNameError, "Did you mean 'template'"),
        ({"workload": "resnet"}, UnknownNameError, "resnet18"),
        ({"space": "mapping", "hardware": {"rows": 2}}, InvalidValueError, "rows follows from pes"),
        ({"hardware": {"row": 4}}, UnknownNameError, "Did you mean 'rows'"),
        ({"budget": {"pe": 4}}, UnknownNameError, "Did you mean 'pes'"),
        ({"budget": {"pes": -4}}, InvalidValueError, "pes is -4"),
        ({"budget": {"pes": 15}}, InvalidValueError, "the smallest array has 16"),
        ({"budget": {"memory_kib": 8}}, InvalidValueError, "the smallest buffer has 16"),
        ({"budget": 4}, InvalidValueError, "budget is 4; it must be a mapping"),
        ({"hardware": 5}, InvalidValueError, "hardware is 5; it must be a mapping"),
        ({"hardware": {"rows": "abc"}}, InvalidValueError, "rows is 'abc'"),
        ({"hardware": {"banks": True}}, InvalidValueError, "banks is True"),
        ({"hardware": {"clock_mhz": "fast"}}, InvalidValueError, "clock_mhz is 'fast'"),
        (
            {"hardware": {"dram_bytes_per_cycle": np.inf}},
            InvalidValueError,
            "is inf; it must be a num",
        ),
        ({"hardware": {"double_buffered": 3}}, InvalidValueError, "true or false"),
        ({"hardware": {"technology": [7]}}, UnknownNameError, "technology"),
        ({"hardware": {"memory_classes": ["SRAM"]}}, InvalidValueError, "one class each"),
        ({"hardware": {"buffer_split_bytes": [1, 2]}}, InvalidValueError, "three sizes"),
        ({"space": "eyeriss", "budget": {"pes": 4}}, InvalidValueError, "budget is for"),
        ({"simulator_options": {"threads": 1}}, InvalidValueError, "simulator_options"),
    ],
)
def test_bad_arguments_are_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**arguments)


def test_bad_designs_are_refused() -> None:
    env = make()
    with pytest.raises(DesignError, match="rows"):
        env.evaluate({**env.baseline_design, "rows": 5})


@pytest.mark.nightly
def test_the_environment_passes_every_check() -> None:
    failed = [result for result in check("Accelerator-v0", workload=ONE_LAYER) if not result.passed]
    assert not failed
