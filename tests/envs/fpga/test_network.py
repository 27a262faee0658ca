from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.fpga.network.integer import integer_outputs, quantised
from archgym.envs.fpga.network.named import WORKLOADS
from archgym.envs.fpga.network.spec import float_outputs
from archgym.envs.fpga.network.workload import network_of, network_sha256
from archgym.errors import InvalidValueError, UnknownNameError

SMALL = {
    "input": [2],
    "layers": [{"dense": 2, "weights": [[1.0, 0.5], [-1.0, 0.25]], "bias": [0.0, 0.0]}],
}


def test_outputs_by_hand() -> None:
    network = network_of(SMALL)
    found = float_outputs(network, np.array([[2.0, 4.0]]).reshape(1, 1, 1, 2))
    assert found.ravel().tolist() == [4.0, -1.0]


def test_integer_outputs_by_hand() -> None:
    found = quantised(network_of(SMALL), 8, 8)
    weights = found.layers[0].weights
    assert weights.tolist() == [[127, 64], [-127, 32]]
    inputs = np.array([3, -5]).reshape(1, 1, 1, 2)
    assert integer_outputs(found, inputs).ravel().tolist() == [3 * 127 - 5 * 64, -3 * 127 - 160]


@pytest.mark.parametrize("name", ["jet_small", "image_6x6", "keywords"])
def test_more_bits_come_closer_to_floating_point(name: str) -> None:
    found = [quantised(network_of(name), bits, bits).sqnr_db for bits in (3, 5, 8)]
    assert found == sorted(found)
    assert found[-1] > found[0] + 15


def test_a_convolution_is_a_sum_over_the_window() -> None:
    network = network_of({"input": [3, 4, 2], "layers": [{"conv": [2, 2], "channels": 1}]})
    layer = network.layers[0]
    image = network.inputs[:1]
    found = float_outputs(network, image)
    kernel = layer.weights.reshape(2, 2, 2)
    wanted = sum(
        image[0, 1 + row, 2 + column, channel] * kernel[row, column, channel]
        for row in range(2)
        for column in range(2)
        for channel in range(2)
    )
    assert found.shape == (1, 2, 3, 1)
    assert found[0, 1, 2, 0] == pytest.approx(wanted + layer.bias[0])


def test_every_named_network_can_be_made_and_has_its_own_hash() -> None:
    hashes = {network_sha256(network_of(name)) for name in WORKLOADS}
    assert len(hashes) == len(WORKLOADS)


def test_a_file_is_the_same_as_its_mapping(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(SMALL), "utf-8")
    network = network_of(str(file))
    assert network.name == "mine"
    assert network_sha256(network) == network_sha256(network_of(SMALL))


BAD: list[tuple[Any, str]] = [
    ("jet_taging", "jet_tagging"),
    ({"input": [4]}, "layers"),
    ({"input": [4, 4], "layers": [{"dense": 2}]}, "1 or 3"),
    ({"input": [0], "layers": [{"dense": 2}]}, "from 1"),
    ({"input": [4], "layers": [{"densee": 2}]}, "dense"),
    ({"input": [4], "layers": [{"dense": 2, "wieghts": []}]}, "weights"),
    ({"input": [4], "layers": [{"dense": 2, "weights": [[1, 2], [3, 4]]}]}, "2 x 4"),
    ({"input": [4], "layers": [{"dense": 1, "bias": [float("nan")]}]}, "finite"),
    ({"input": [4], "layers": [{"dense": 2}, {"conv": [1, 1], "channels": 2}]}, "dense layer"),
    ({"input": [3, 3, 1], "layers": [{"conv": [4, 1], "channels": 2}]}, "3 x 3"),
    ({"inputs": [4], "layers": [{"dense": 2}]}, "input"),
    ("missing.json", "missing.json"),
    (3, "mapping"),
]


@pytest.mark.parametrize("place", range(len(BAD)))
def test_what_is_wrong_with_a_workload_is_said(place: int) -> None:
    spec, words = BAD[place]
    with pytest.raises((InvalidValueError, UnknownNameError), match=words):
        network_of(spec)


def test_weights_alone_have_no_bias() -> None:
    layer = {"dense": 2, "weights": [[1, 2, 3], [4, 5, 6]]}
    given = network_of({"input": [3], "layers": [layer]})
    assert given.layers[0].bias.tolist() == [0.0, 0.0]
    random = network_of({"input": [3], "layers": [{"dense": 2}]})
    assert np.abs(random.layers[0].bias).min() > 0
    assert np.array_equal(given.inputs, random.inputs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ('{"inputs": [3]}', "'inputs'"),
        ('{"input": [3], "layers": [{"dense": -1}]}', r"layers\[0\].dense"),
        ('{"input": [3], "layers": [{"dense": 1, "weights": [[1]]}]}', r"layers\[0\].weights"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(text, "utf-8")
    with pytest.raises((InvalidValueError, UnknownNameError), match=rf"mine\.json.*{message}"):
        network_of(str(file))
