"""Workloads: shapes against the networks' known totals, operands, names and bad input."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from archgym.envs.tpe.workload.networks import NETWORKS, network_products
from archgym.envs.tpe.workload.workload import (
    canonical_workload,
    load_workload,
    workload_card,
    workload_label,
    workload_names,
)
from archgym.errors import InvalidValueError, UnknownNameError

OBSERVED = ("digits_cnn", "digits_mlp", "digits_transformer")


@pytest.mark.parametrize(
    ("name", "macs"),
    # Multiplications of one inference, from the published definitions: 1.81, 4.09 and 0.30 G.
    [
        ("resnet18", 1_814_073_344),
        ("resnet50", 4_089_184_256),
        ("mobilenet_v2", 300_774_272),
        # 12 layers of 4 x 128 x 768^2, 2 x 128^2 x 768 and 2 x 128 x 768 x 3072.
        ("bert_base", 12 * (4 * 128 * 768**2 + 2 * 128**2 * 768 + 2 * 128 * 768 * 3072)),
    ],
)
def test_multiplications_of_networks(name: str, macs: int) -> None:
    assert load_workload(name).macs == macs
    assert load_workload({"network": name, "batch": 4}).macs == 4 * macs


def test_layers_of_resnet18_by_hand() -> None:
    shapes = {(p.m, p.k, p.n): p.count for p in network_products("resnet18")}
    assert shapes[112 * 112, 7 * 7 * 3, 64] == 1
    assert shapes[56 * 56, 3 * 3 * 64, 64] == 4
    assert shapes[28 * 28, 3 * 3 * 64, 128] == 1  # stride 2
    assert shapes[28 * 28, 64, 128] == 1  # its shortcut
    assert shapes[7 * 7, 3 * 3 * 512, 512] == 3
    assert shapes[1, 512, 1000] == 1
    assert sum(shapes.values()) == 21  # 20 convolutions, 1 classifier


def test_depthwise_convolutions_are_as_many_products_as_channels() -> None:
    products = network_products("mobilenet_v2")
    depthwise = [p for p in products if p.k == 9]
    assert all(p.n == 1 for p in depthwise)
    assert (112 * 112, 32) in {(p.m, p.count) for p in depthwise}
    assert sum(p.count for p in products if p.k != 9) == 36  # 35 other convolutions, 1 classifier


def test_observed_networks_work_in_eight_bits() -> None:
    for name in OBSERVED:
        card = workload_card(name)
        assert card["accuracy"]["8 bits"] > 0.9
        assert abs(card["accuracy"]["8 bits"] - card["accuracy"]["float32"]) < 0.03
        for product in card["products"]:
            assert len(product["a"]) == len(product["b"]) == 256
            assert sum(product["a"]) == product["images"] * product["count"] * (
                product["m"] * product["k"]
            )
        largest = [max(i for i, n in enumerate(p["b"]) if n) for p in card["products"]]
        assert max(largest) == 255  # the greatest magnitude is 127: full scale is used


def test_rectified_activations_are_never_negative() -> None:
    for layer in load_workload("digits_cnn").layers:
        assert layer.a.probability[:128].sum() == 0
        assert layer.b.probability[:128].sum() > 0.2


def test_every_named_workload_has_a_hash_of_its_own() -> None:
    names = workload_names()
    assert set(names) == {*NETWORKS, *OBSERVED}
    hashes = {load_workload(name).sha256 for name in names}
    assert len(hashes) == len(names)
    for name in names:
        assert workload_label(name) == name
        assert load_workload(canonical_workload(name)).sha256 == load_workload(name).sha256
        json.dumps(canonical_workload(name))


def test_the_hash_knows_shapes_and_operands() -> None:
    base = load_workload({"gemm": [4, 8, 16]})
    assert load_workload({"gemm": [4, 8, 16], "a": {"normal": 25.0}}).sha256 == base.sha256
    others: list[dict[str, Any]] = [
        {"gemm": [4, 8, 17]},
        {"gemm": [4, 8, 16], "count": 2},
        {"gemm": [4, 8, 16], "a": "uniform"},
        {"gemm": [4, 8, 16], "b": "uniform"},
        {"gemm": [4, 8, 16], "bits": [8, 4]},
    ]
    assert len({base.sha256, *(load_workload(spec).sha256 for spec in others)}) == 6


def test_weights_encoded_swap_the_matrices() -> None:
    plain = load_workload("digits_mlp")
    swapped = load_workload({"observed": "digits_mlp", "encode": "weights"})
    assert swapped.macs == plain.macs
    for one, other in zip(plain.layers, swapped.layers, strict=True):
        assert (one.m, one.k, one.n) == (other.n, other.k, other.m)
        assert one.a == other.b
        assert one.b == other.a
    assert swapped.label == "digits_mlp(encode=weights)"


def test_operands_of_other_widths() -> None:
    narrow = load_workload({"network": "resnet18", "bits": [4, 16]})
    assert narrow.widths == (4, 16)
    assert narrow.layers[0].b.standard_deviation == pytest.approx(6400, rel=1e-3)


def test_signals_from_elsewhere() -> None:
    counts = np.zeros(256, dtype=int)
    counts[128 + 3] = 5
    spec = {"gemm": [1, 2, 3], "a": {"histogram": counts.tolist()}, "b": {"constant": -7}}
    (layer,) = load_workload(spec).layers
    assert (layer.a.mean, layer.b.mean) == (3.0, -7.0)
    pooled = load_workload({"network": "resnet50", "a": {"observed": "digits_cnn"}}).layers[0].a
    assert 0.3 < pooled.zero_share < 0.7


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("resnet-18", UnknownNameError, "resnet18"),
        ({"network": "resnet19"}, UnknownNameError, "resnet18"),
        ({"observed": "digits_cn"}, UnknownNameError, "digits_cnn"),
        ({"network": "resnet18", "bath": 2}, UnknownNameError, "batch"),
        ({"network": "resnet18", "batch": 0}, InvalidValueError, "batch=0"),
        ({"network": "resnet18", "encode": "weight"}, UnknownNameError, "weights"),
        ({"gemm": [1, 2]}, InvalidValueError, "three integers"),
        ({"gemm": [1, 0, 2]}, InvalidValueError, "gemm k=0"),
        ({"gemm": [1, 2, 3], "a": "normal"}, InvalidValueError, "a='normal'"),
        ({"gemm": [1, 2, 3], "a": {"normal": -1}}, InvalidValueError, "normal=-1"),
        ({"gemm": [1, 2, 3], "a": {"nomal": 1}}, UnknownNameError, "normal"),
        ({"gemm": [1, 2, 3], "b": {"histogram": [1, 2]}}, InvalidValueError, "256"),
        ({"gemm": [1, 2, 3], "bits": 17}, InvalidValueError, "bits=17"),
        ({"gemm": [1, 2, 3], "network": "resnet18"}, InvalidValueError, "exactly one"),
        ({}, InvalidValueError, "exactly one"),
        ({"gem": [1, 2, 3]}, UnknownNameError, "Did you mean 'gemm'"),
        ({"network": ["resnet18"]}, UnknownNameError, "resnet18"),
        ({"gemm": [10**9, 10**9, 10**9]}, InvalidValueError, "at most 2\\^53"),
        ({"network": "resnet18", "batch": 10**9}, InvalidValueError, "at most 2\\^53"),
        (7, InvalidValueError, "name or a mapping"),
    ],
)
def test_bad_workloads(spec: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_workload(spec)  # type: ignore[arg-type]


@pytest.mark.nightly
def test_the_recipe_makes_such_operands_again() -> None:
    from archgym.envs.tpe.workload.recipes import make

    shipped = workload_card("digits_mlp")
    again = make("digits_mlp")
    assert again["accuracy"]["8 bits"] > 0.85
    for one, other in zip(shipped["products"], again["products"], strict=True):
        assert [one[key] for key in "mkn"] == [other[key] for key in "mkn"]
        distance = np.abs(np.array(one["b"]) - np.array(other["b"])).sum() / sum(one["b"])
        assert distance < 0.5  # other versions of torch may round otherwise


def test_an_unknown_recipe() -> None:
    from archgym.envs.tpe.workload.recipes import make

    with pytest.raises(UnknownNameError, match="digits_cnn"):
        make("digits_cn")


def test_a_file_is_no_workload() -> None:
    with pytest.raises(InvalidValueError, match=r"no files are read.*gemm: \[m, k, n\]"):
        load_workload("sizes.json")
