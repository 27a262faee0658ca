"""Counts leave out what synthesis leaves out, and nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from archgym.envs.fpga.hardware.circuit import ONE, ZERO, Circuit, Value, bits_in
from archgym.envs.fpga.hardware.device import DEVICES
from archgym.envs.fpga.hardware.folding import Choices
from archgym.envs.fpga.hardware.path import PATH_PARTS, Path
from archgym.envs.fpga.hardware.top import Built, built
from archgym.envs.fpga.model.fitting import examples
from archgym.envs.fpga.model.prediction import ram_blocks
from archgym.envs.fpga.network.integer import quantised
from archgym.envs.fpga.network.workload import network_of

DESIGN: dict[str, Any] = {
    "device": "ecp5_25k",
    "weight_bits": 2,
    "activation_bits": 4,
    "reuse": 2,
    "fold": "outputs",
    "memory": "block",
    "product": "logic",
    "product_register": True,
    "tree_registers": 1,
}


def of_weights(weights: list[list[float]], **changes: Any) -> Built:
    """One layer with such weights."""
    layer = {"dense": len(weights), "weights": weights, "bias": [0.1, -0.2]}
    choices = Choices.of({**DESIGN, **changes}, DEVICES["ecp5_25k"].dsp_bits)
    network = network_of({"input": [len(weights[0])], "layers": [layer]})
    return built(quantised(network, choices.weight_bits, choices.activation_bits), choices)


ALIKE = [[1.0, 0.0, -1.0, 1.0]] * 2
OTHERS = [[1.0, 0.0, -1.0, 1.0], [-1.0, 1.0, 0.0, -1.0]]


def test_bits_that_are_the_same_in_all_words_are_no_memory() -> None:
    alike, others = of_weights(ALIKE), of_weights(OTHERS)
    assert ram_blocks(alike, DEVICES["ecp5_25k"]) == 0
    assert ram_blocks(others, DEVICES["ecp5_25k"]) > 0
    assert alike.circuit.parts["and_bits"] == 0 < others.circuit.parts["and_bits"]
    assert alike.circuit.parts["ff"] < others.circuit.parts["ff"]


def test_a_ring_of_registers_keeps_its_bits() -> None:
    alike, others = of_weights(ALIKE, memory="registers"), of_weights(OTHERS, memory="registers")
    assert alike.circuit.parts == others.circuit.parts


def value(name: str, width: int = 5) -> Value:
    return Value(bits_in(name, 0, width), -(1 << (width - 1)), (1 << (width - 1)) - 1)


def test_a_sum_with_zero_is_no_adder() -> None:
    circuit = Circuit()
    a, b = value("a"), value("b")
    circuit.equate(b.bits, (ZERO,) * b.width)
    total = circuit.sum(a, b)
    assert +circuit.parts == Counter()
    assert total.path == a.path
    assert set(circuit.known(total.bits)) == set(a.bits)


def test_sums_of_equal_bits_are_one_adder() -> None:
    circuit = Circuit()
    a, b, c = value("a"), value("b"), value("c")
    circuit.equate(c.bits, b.bits)
    first = circuit.sum(a, b)
    before = circuit.parts.copy()
    second = circuit.sum(c, a)
    assert first.bits != second.bits
    assert circuit.known(first.bits) == circuit.known(second.bits)
    assert circuit.parts == before


def test_registers_of_constants_and_of_equal_bits_are_left_out() -> None:
    circuit = Circuit()
    a, b = value("a", 3), value("b", 3)
    circuit.equate(b.bits, (ZERO, ONE, a.bits[2]))
    circuit.registered(a)
    circuit.registered(b)
    assert circuit.parts["ff"] == 3
    assert circuit.merge((*a.bits, a.bits[2], ZERO), bits_in("r", 0, 5)) == 2


@pytest.mark.parametrize("family", ["ice40", "ecp5"])
def test_flip_flops_are_those_of_synthesis_in_nearly_all_measured_designs(family: str) -> None:
    some = [e for e in examples() if e.device.family == family]
    off = [abs(e.made.circuit.parts["ff"] - e.row["ff_count"]) for e in some]
    assert sum(map(bool, off)) <= 0.05 * len(some)


def part(path: Path, name: str) -> float:
    return path[PATH_PARTS.index(name)]


def test_what_is_subtracted_is_inverted_behind_a_chain_but_not_behind_a_lut() -> None:
    circuit = Circuit()
    a, b = value("a"), value("b")
    assert part(circuit.sum(a, b).path, "inversions") == 0
    assert part(circuit.sum(a, b, "-").path, "inversions") == 1
    chained = circuit.sum(a, circuit.sum(a, b), "-").path
    assert (part(chained, "inversions"), part(chained, "chains")) == (1, 2)
    c = value("c")
    circuit.depends(c.bits, a.bits, b.bits)
    assert part(circuit.sum(a, c, "-").path, "inversions") == 0


def test_paths_end_and_begin_at_the_multipliers_of_a_up5k_only() -> None:
    def most(device: str) -> tuple[float, float]:
        design = {**DESIGN, "device": device, "product": "dsp", "product_register": False}
        design |= {"weight_bits": 8, "activation_bits": 8}
        choices = Choices.of(design, DEVICES[device].dsp_bits)
        network = network_of({"input": [8], "layers": [{"dense": 4}]})
        made = built(quantised(network, 8, 8), choices)
        assert made.circuit.parts["dsp"] > 0
        paths = [path for path in made.circuit.paths if part(path, "dsps")]
        assert any(part(path, "memories") for path in made.circuit.paths)
        return max(part(p, "memories") for p in paths), max(part(p, "chains") for p in paths)

    assert most("ecp5_25k")[0] == 1
    assert most("ice40_up5k")[0] == 0
    assert min(most("ecp5_25k")[1], most("ice40_up5k")[1]) > 0
