from __future__ import annotations

import pytest

import archgym
from archgym.envs.accelerator.workload.features import FEATURES, network_features
from archgym.envs.accelerator.workload.layer import Layer, Network


def test_one_convolution_by_hand() -> None:
    conv = Layer("conv", "conv", K=32, C=8, R=3, S=3, P=10, Q=10)
    found = network_features(Network.from_layers("one", [conv]))
    macs, weights, activations = 32 * 8 * 9 * 100, 32 * 8 * 9, 8 * 12 * 12 + 32 * 100
    assert found["macs_count"] == macs
    assert found["weight_words"] == found["largest_weight_words"] == weights
    assert found["activation_words"] == activations
    assert found["intensity_macs_per_word"] == pytest.approx(macs / (weights + activations))
    assert found["window_share"] == 1.0
    assert found["pointwise_share"] == found["depthwise_share"] == found["product_share"] == 0.0
    assert found["mean_filters"] == pytest.approx(32)
    assert found["mean_channels"] == pytest.approx(8)
    assert found["mean_window"] == pytest.approx(9)
    assert found["filters_fill_16_share"] == 1.0
    assert found["filters_fill_64_share"] == pytest.approx(0.5)
    assert found["channels_fill_16_share"] == pytest.approx(0.5)
    assert set(found) == set(FEATURES)


def test_shares_go_by_multiply_accumulates() -> None:
    layers = [
        Layer("point", "conv", K=16, C=16, P=4, Q=4),  # 4096
        Layer.depthwise("deep", 16, 4, 4, 4, 4),  # 4096
        Layer.from_gemm("full", 8, 64, 16),  # 8192
    ]
    found = network_features(Network.from_layers("three", layers))
    assert found["pointwise_share"] == pytest.approx(0.25)
    assert found["depthwise_share"] == pytest.approx(0.25)
    assert found["product_share"] == pytest.approx(0.5)
    assert found["layers_count"] == 3


def test_a_repeated_layer_counts_as_often_as_it_runs() -> None:
    layer = Layer.from_gemm("full", 8, 64, 16)
    once = network_features(Network("once", (layer,), (1,)))
    twice = network_features(Network("twice", (layer,), (2,)))
    assert twice["macs_count"] == 2 * once["macs_count"]
    assert twice["largest_weight_words"] == once["largest_weight_words"]
    assert twice["intensity_macs_per_word"] == pytest.approx(once["intensity_macs_per_word"])


def test_the_environment_gives_them() -> None:
    env = archgym.make("Accelerator-v0", workload="mobilenet_v2")
    assert 0 < env.workload_features["depthwise_share"] < 0.2
    assert set(env.workload_features) == set(env.workload_feature_docs())
