"""Layers and networks: shapes, counts, and what is refused."""

from __future__ import annotations

import pytest

from archgym.envs.accelerator.workload.layer import COLUMNS, Gemm, Layer, Network, window_extent
from archgym.envs.accelerator.workload.user_layers import read_layer
from archgym.errors import InvalidValueError

CONV1 = Layer("conv1", "conv", K=96, C=3, R=11, S=11, P=55, Q=55, stride=4)


def test_first_layer_of_alexnet() -> None:
    assert CONV1.macs == 105_415_200
    assert CONV1.gemm == Gemm(M=3025, N=96, K=363)
    assert (CONV1.input_rows, CONV1.input_columns) == (227, 227)
    assert CONV1.input_footprint == 3 * 227 * 227
    assert CONV1.weight_footprint == 34_848
    assert CONV1.output_footprint == 290_400


def test_inputs_between_windows_are_not_counted() -> None:
    assert window_extent(5, 1, 3) == 5
    assert window_extent(5, 3, 2) == 11
    assert Layer("down", "conv", K=8, C=4, P=7, Q=7, stride=2).input_footprint == 4 * 7 * 7


def test_depthwise_has_one_filter_a_channel() -> None:
    layer = Layer.depthwise("dw", 32, 3, 3, 112, 112)
    assert layer.macs == 32 * 9 * 112 * 112
    assert layer.weight_footprint == 32 * 9
    assert layer.gemm == Gemm(M=12544, N=1, K=9)
    assert layer.row == (1, 1, 3, 3, 112, 112, 1, 32, 1, 0, 0)


def test_attention_heads_are_groups_of_one_product() -> None:
    scores = Layer.from_gemm("scores", M=128, N=128, K=64, groups=12)
    assert scores.macs == 12 * 128 * 128 * 64
    assert scores.gemm == Gemm(M=128, N=128, K=64)
    assert scores.input_footprint == 12 * 128 * 64


def test_batch_shares_the_weights() -> None:
    one = Layer("fc", "gemm", K=10, C=20)
    many = Layer("fc", "gemm", K=10, C=20, batch=8)
    assert many.macs == 8 * one.macs
    assert many.weight_footprint == one.weight_footprint
    assert many.input_footprint == 8 * one.input_footprint


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "pool"}, "kind is 'pool'"),
        ({"K": 0}, "K is 0"),
        ({"P": 2.0}, r"P is 2\.0"),
        ({"groups": 5}, "groups is 5"),
        ({"kind": "depthwise"}, "groups is 1"),
        ({"kind": "gemm", "R": 3}, "of a gemm"),
    ],
)
def test_impossible_layers_are_refused(fields: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"name": "x", "kind": "conv", "K": 8, "C": 8}
    with pytest.raises(InvalidValueError, match=message):
        Layer(**{**good, **fields})  # type: ignore[arg-type]


def test_layers_that_cannot_be_counted_exactly_are_refused() -> None:
    assert Layer.from_gemm("most", M=2**18, N=2**17, K=2**18).macs == 2**53
    with pytest.raises(InvalidValueError, match="counts to"):
        Layer.from_gemm("more", M=2**18, N=2**17, K=2**19)


def test_equal_layers_are_merged_and_counted() -> None:
    block = Layer("a", "conv", K=64, C=64, R=3, S=3, P=56, Q=56)
    equal = Layer("b", "conv", K=64, C=64, R=3, S=3, P=56, Q=56)
    network = Network.from_layers("n", [block, CONV1, equal])
    assert network.layers == (block, CONV1)
    assert network.counts == (2, 1)
    assert network.macs == 2 * block.macs + CONV1.macs
    assert network.weight_footprint == 2 * block.weight_footprint + CONV1.weight_footprint
    table = network.table
    assert table.bounds.shape == (2, len(COLUMNS))
    assert table.bounds[1].tolist() == list(CONV1.row)
    assert table.counts.tolist() == [2, 1]


def test_a_network_has_layers_and_positive_counts() -> None:
    with pytest.raises(InvalidValueError, match="0 layers"):
        Network("n", (), ())
    with pytest.raises(InvalidValueError, match="count 0"):
        Network("n", (CONV1,), (0,))


def test_windows_past_the_input_make_another_layer() -> None:
    sizes = {"K": 4, "C": 3, "R": 3, "S": 3, "P": 8, "Q": 8, "stride": 2}
    layer, _ = read_layer({**sizes, "past_rows": 1, "past_columns": 0})
    plain, _ = read_layer(sizes)
    assert layer.row[-2:] == (1, 0)
    assert layer.key != plain.key == ("conv", *plain.row[:9])
    with pytest.raises(InvalidValueError, match=r"past_rows is 2; .* from 0 to 1"):
        read_layer({**sizes, "past_rows": 2})
    with pytest.raises(InvalidValueError, match="past_columns is -1"):
        read_layer({**sizes, "past_columns": -1})
