"""Latency tables of parts of networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import archgym
from archgym.envs.nas.environment import NASEnvironment
from archgym.envs.nas.families import FAMILIES
from archgym.envs.nas.hardware.chip import Chip
from archgym.envs.nas.hardware.devices import DEVICES
from archgym.envs.nas.hardware.latency_table import (
    LatencyTable,
    make_table,
    network_parts,
    part_keys,
)
from archgym.envs.nas.space import largest_architecture, smallest_architecture
from archgym.envs.nas.tasks import TASKS
from archgym.errors import InvalidValueError, SimulationError, UnknownNameError

FULL = TASKS["imagenet_mbconv"]
CHAIN = TASKS["digits_mbconv"]
EDGE, CLOUD = (DEVICES[name][1] for name in ("edge", "cloud"))


def make(**arguments: Any) -> NASEnvironment:
    workload = {"tasks": ["digits_mbconv"]}
    env = archgym.make("NAS-v0", workload=workload, space="network", accuracy=Sized(), **arguments)
    assert isinstance(env, NASEnvironment)
    return env


class Sized:
    """Accuracies that count blocks."""

    name = "sized"
    synthetic = False
    epochs = (1,)

    def accuracies(self, task: Any, architectures: Any, epochs: int) -> Any:
        return np.array([50.0 + len(part_keys(task, each)) for each in architectures])


def test_lines_are_those_of_the_tables_of_proxylessnas() -> None:
    keys = part_keys(FULL, largest_architecture(FULL))
    assert keys[0] == "Conv-input:224x224x3-output:112x112x32"
    assert keys[1] == (
        "expanded_conv-input:112x112x32-output:112x112x16-expand:1-kernel:3-stride:1-idskip:0"
    )
    assert keys[2] == (
        "expanded_conv-input:112x112x16-output:56x56x24-expand:6-kernel:7-stride:2-idskip:0"
    )
    assert keys[3] == (
        "expanded_conv-input:56x56x24-output:56x56x24-expand:6-kernel:7-stride:1-idskip:1"
    )
    assert keys[-2:] == [
        "Conv_1-input:7x7x320-output:7x7x1280",
        "Logits-input:7x7x1280-output:1000",
    ]
    assert len(keys) == 1 + 1 + 21 + 2
    # All but the first block of each of the five longer stages are left out.
    assert len(part_keys(FULL, smallest_architecture(FULL))) == 1 + 1 + 6 + 2


def test_parts_hold_every_layer_of_the_network_once() -> None:
    for task in (FULL, CHAIN):
        family = FAMILIES[task.family]
        architecture = largest_architecture(task)
        layers = [layer for _, part in network_parts(task, architecture) for layer in part]
        assert layers == list(family.layers(task, architecture).layers)


@pytest.mark.parametrize("device", ["edge", "cloud"])
def test_the_sum_over_a_table_is_the_latency_of_the_cost_model(device: str) -> None:
    by_table, by_model = make(device=device, simulator="latency_table"), make(device=device)
    for design in by_model.design_space.sample(25, np.random.default_rng(0)):
        table, model = by_table.evaluate(design).metrics, by_model.evaluate(design).metrics
        for name in ("latency_cycles", "latency_ns"):
            assert table[name] == pytest.approx(model[name], rel=1e-9)
        assert table["accuracy_percent"] == model["accuracy_percent"]
        assert table["energy_nj"] is None


def test_a_table_has_all_that_any_network_needs_and_comes_back_from_its_file(
    tmp_path: Path,
) -> None:
    table = make_table(FULL, EDGE, "edge")
    # Six shapes of first blocks and five of later ones, each with three kernels and two
    # expansions, and the stem, the first block, the head and the classifier.
    assert len(table.mean_ms) == 6 * 6 + 5 * 6 + 4
    table.write(tmp_path / "edge.yaml")
    again = LatencyTable.read(tmp_path / "edge.yaml")
    assert again.mean_ms == table.mean_ms
    keys = part_keys(FULL, largest_architecture(FULL))
    assert again.latency_ms(keys) == table.latency_ms(keys) > 0


def test_a_measured_table_drives_the_search(tmp_path: Path) -> None:
    needed = set(make_table(CHAIN, EDGE).mean_ms)
    # As the measured tables: more than the mean in each entry.
    entries = {key: {"mean": 2.0, "count": 982, "variance": 0.1} for key in needed}
    path = tmp_path / "phone.yaml"
    path.write_text(yaml.safe_dump(entries))
    env = make(simulator="latency_table", simulator_options={"table": str(path)})
    outcome = env.evaluate(env.baseline_design)
    parts = len(part_keys(CHAIN, env.architectures(outcome.design)[0]))
    assert outcome.metrics["latency_ns"] == pytest.approx(2e6 * parts)
    del entries[next(key for key in sorted(needed) if "kernel:3" in key)]
    path.write_text(yaml.safe_dump(entries))
    env = make(simulator="latency_table", simulator_options={"table": str(path)})
    outcomes = env.evaluate_batch(env.design_space.sample(50, np.random.default_rng(1)))
    assert set(outcomes.status.tolist()) == {0, 2}
    assert any("lacks expanded_conv" in reason for reason in outcomes.reason)


def test_devices_prefer_different_blocks() -> None:
    """What is cheap on one device is not on the other: the reason to search for a device."""
    edge, cloud = make_table(CHAIN, EDGE).mean_ms, make_table(CHAIN, CLOUD).mean_ms
    ratios = [edge[key] / cloud[key] for key in edge if key.startswith("expanded_conv")]
    assert max(ratios) / min(ratios) > 1.5


def test_what_has_no_table_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="mobile bottlenecks"):
        make_table(TASKS["digits"], EDGE)
    with pytest.raises(InvalidValueError, match="one sub-accelerator, not 2"):
        make_table(CHAIN, Chip(EDGE.sub_accelerators * 2))
    with pytest.raises(SimulationError, match=r"lacks Conv-input:9x8x1.*Conv-input:8x8x1"):
        make_table(CHAIN, EDGE).latency_ms(["Conv-input:9x8x1-output:8x8x8"])
    with pytest.raises(InvalidValueError, match="energy_nj"):
        make(simulator="latency_table", objective="minimize energy_nj")
    with pytest.raises((InvalidValueError, UnknownNameError), match="tabel"):
        make(simulator="latency_table", simulator_options={"tabel": "x"})


@pytest.mark.parametrize("text", ["[1, 2]", "a: 1", "a: {mean: -1}", "a: {mean: x}", "a: ["])
def test_files_that_are_no_tables_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(InvalidValueError, match=r"bad\.yaml"):
        LatencyTable.read(path)
