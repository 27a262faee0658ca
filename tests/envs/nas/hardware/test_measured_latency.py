"""Backbones on measured devices, and on those of our own cost model."""

from __future__ import annotations

from typing import Any

import pytest

import archgym
from archgym.envs.nas.backbone.measured import DEVICES, JUDGES, measured_networks, part_times
from archgym.envs.nas.backbone.parts import IMAGENET, architecture_of, parts_of
from archgym.envs.nas.environment import NASEnvironment
from archgym.envs.nas.hardware.latency_table import network_parts
from archgym.envs.nas.space import network_design
from archgym.envs.nas.tasks import TASKS, family_of
from archgym.errors import InvalidValueError, UnknownNameError

TASK = TASKS["imagenet_backbone"]


def make(**options: Any) -> NASEnvironment:
    env = archgym.make(
        "NAS-v0",
        workload="imagenet_backbone",
        space="network",
        accuracy_options={"score": "parameters"},
        simulator="latency_table",
        simulator_options=options,
    )
    assert isinstance(env, NASEnvironment)
    return env


def test_parts_hold_every_layer_and_multiply_accumulate_of_the_network_once() -> None:
    for row in measured_networks()[:20]:
        architecture = architecture_of(row["network"])
        found = network_parts(TASK, architecture)
        parts = parts_of(IMAGENET, architecture)
        for (key, layers), part in zip(found, parts, strict=True):
            assert key == part.key
            assert sum(layer.macs for layer in layers) == part.macs
        listed = family_of(TASK).layers(TASK, architecture)
        assert [layer.key for _, layers in found for layer in layers] == [
            layer.key for layer in listed.layers
        ]
        assert listed.macs == row["macs"]


@pytest.mark.parametrize("device", DEVICES)
def test_both_estimates_of_a_measured_network(device: str) -> None:
    row = measured_networks()[JUDGES]
    architecture = architecture_of(row["network"])
    found: dict[str, float] = {}
    for estimate in ("parts", "predictor"):
        env = make(table=device, estimate=estimate)
        outcome = env.evaluate(network_design(env.networks, [architecture]))
        latency = outcome.metrics["latency_ns"]
        assert latency is not None
        found[estimate] = latency / 1e3
        assert outcome.metrics["latency_cycles"] is None
        assert outcome.metrics["energy_nj"] is None
    times = part_times(device)
    summed = sum(times[part.key] for part in parts_of(IMAGENET, architecture))
    assert found["parts"] == pytest.approx(summed, rel=1e-9)
    assert found["predictor"] == pytest.approx(row[f"{device}_us"], rel=0.15)


def test_what_is_no_measured_table_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"estimate.*predictor"):
        make(table="cpu_core", estimate="sum")
    with pytest.raises(InvalidValueError, match="tables of measured devices"):
        make(estimate="parts")
    with pytest.raises(InvalidValueError, match="imagenet_backbone"):
        archgym.make(
            "NAS-v0",
            workload="imagenet_mbconv",
            space="network",
            accuracy_options={"score": "parameters"},
            simulator="latency_table",
            simulator_options={"table": "cpu_core"},
        )


@pytest.mark.full
def test_our_cost_model_gives_a_table_of_backbones() -> None:
    env = make()
    outcome = env.evaluate(env.baseline_design)
    latency = outcome.metrics["latency_cycles"]
    assert latency is not None
    assert latency > 0
