"""Numbers that describe a network: what a model goes by that is to know one it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from archgym.envs.accelerator.workload.layer import SIZES, Layer, Network

__all__ = ["FEATURES", "network_features"]

Array = NDArray[np.float64]

_LARGE = (16, 64)
"""Numbers of channels or pixels that fill the sides of small and of large arrays."""
_LOW_INTENSITY = 16
"""Multiply-accumulates a word below which a layer waits for memory, roughly."""

FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "macs_count": "multiply-accumulates",
        "layers_count": "layers",
        "weight_words": "distinct weights, and inputs of a product that stand for weights, words",
        "activation_words": "inputs and outputs of all layers, words",
        "largest_weight_words": "weights of the layer with most, words",
        "largest_activation_words": "inputs and outputs of the layer with most, words",
        "intensity_macs_per_word": "multiply-accumulates by words of weights and activations",
        "low_intensity_share": f"share of words in layers with under {_LOW_INTENSITY} MACs a word",
        "window_share": "share of MACs in convolutions with windows",
        "pointwise_share": "share of MACs in 1x1 convolutions",
        "depthwise_share": "share of MACs in depthwise convolutions",
        "product_share": "share of MACs in matrix products, fully connected layers among them",
        "depthwise_words_share": "share of words in depthwise convolutions",
        "product_words_share": "share of words in matrix products",
        "strided_share": "share of MACs in layers with a stride above 1",
        "grouped_share": "share of MACs in layers of several groups that are not depthwise",
        "mean_filters": "output channels of a group, geometric mean by MACs",
        "mean_channels": "input channels of a group, geometric mean by MACs",
        "mean_pixels": "output rows times columns, geometric mean by MACs",
        "mean_window": "filter rows times columns, geometric mean by MACs",
        "batch": "inputs processed together, geometric mean by MACs",
        **{
            f"{what}_fill_{large}_share": f"{meaning} by {large}, at most 1, mean by MACs"
            for what, meaning in {
                "filters": "output channels of a group",
                "channels": "input channels of a group",
                "pixels": "output rows times columns times batch",
                "rows": "output rows",
            }.items()
            for large in _LARGE
        },
    }
)
"""What each feature means."""


def network_features(network: Network) -> dict[str, float]:
    """Values of :data:`FEATURES`."""
    layers, counts = network.layers, np.array(network.counts, dtype=np.float64)
    macs = counts * _of(layers, "macs")
    weights = counts * _of(layers, "weight_footprint")
    inputs, outputs = _of(layers, "input_footprint"), _of(layers, "output_footprint")
    activations = counts * (inputs + outputs)
    words = weights + activations
    total, all_words = macs.sum(), words.sum()
    sizes = np.array([layer.row[: len(SIZES)] for layer in layers], dtype=np.float64)
    filters, channels, r, s, p, q, stride, groups, batch = sizes.T
    kind = np.array([layer.kind for layer in layers])
    window, pixels = r * s, p * q

    def share(of: NDArray[np.bool_], amounts: Array = macs) -> float:
        return float(amounts[of].sum() / amounts.sum())

    def mean(values: Array) -> float:
        return float(np.exp((np.log(values) * macs).sum() / total))

    found = {
        "macs_count": float(total),
        "layers_count": float(counts.sum()),
        "weight_words": float(weights.sum()),
        "activation_words": float(activations.sum()),
        "largest_weight_words": float((weights / counts).max()),
        "largest_activation_words": float((activations / counts).max()),
        "intensity_macs_per_word": float(total / all_words),
        "low_intensity_share": share(macs / words < _LOW_INTENSITY, words),
        "window_share": share((kind == "conv") & (window > 1)),
        "pointwise_share": share((kind == "conv") & (window == 1)),
        "depthwise_share": share(kind == "depthwise"),
        "product_share": share(kind == "gemm"),
        "depthwise_words_share": share(kind == "depthwise", words),
        "product_words_share": share(kind == "gemm", words),
        "strided_share": share(stride > 1),
        "grouped_share": share((groups > 1) & (kind != "depthwise")),
        "mean_filters": mean(filters),
        "mean_channels": mean(channels),
        "mean_pixels": mean(pixels),
        "mean_window": mean(window),
        "batch": mean(batch),
    }
    sides = {"filters": filters, "channels": channels, "pixels": pixels * batch, "rows": p}
    for what, values in sides.items():
        for large in _LARGE:
            filled = (np.minimum(values / large, 1.0) * macs).sum() / total
            found[f"{what}_fill_{large}_share"] = float(filled)
    return found


def _of(layers: tuple[Layer, ...], name: str) -> Array:
    return np.array([getattr(layer, name) for layer in layers], dtype=np.float64)
