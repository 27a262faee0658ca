"""Workloads: networks by name, and those of a file or a mapping."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from archgym.envs.fpga.network.spec import Layer, Network

__all__ = ["DEFAULT_WORKLOAD", "WORKLOADS", "made_network", "named_network"]

DEFAULT_WORKLOAD: Final = "jet_tagging"
_SAMPLES: Final = 128

WORKLOADS: Final[Mapping[str, tuple[str, list[int], list[Mapping[str, Any]]]]] = MappingProxyType(
    {
        "jet_tagging": (
            "16 features, three hidden layers, 5 kinds of jets",
            [16],
            [{"dense": 64}, {"dense": 32}, {"dense": 32}, {"dense": 5}],
        ),
        "jet_small": ("16 features, 5 kinds of jets", [16], [{"dense": 16}, {"dense": 5}]),
        "digits": ("8 x 8 pixels, 10 digits", [64], [{"dense": 16}, {"dense": 10}]),
        "autoencoder": (
            "8 sensors, squeezed to 3 numbers and restored",
            [8],
            [{"dense": 6}, {"dense": 3}, {"dense": 6}, {"dense": 8}],
        ),
        "dense_8x8": ("one layer", [8], [{"dense": 8}]),
        "dense_16x8": ("one layer", [16], [{"dense": 8}]),
        "dense_12x12": ("one layer", [12], [{"dense": 12}]),
        "dense_32x4": ("one layer", [32], [{"dense": 4}]),
        "dense_32x16": ("one layer", [32], [{"dense": 16}]),
        "dense_4x24": ("one layer", [4], [{"dense": 24}]),
        "control": (
            "4 states, two hidden layers, 2 actions",
            [4],
            [{"dense": 16}, {"dense": 8}, {"dense": 2}],
        ),
        "image_8x8": (
            "8 x 8 pixels, a 3 x 3 convolution to 4 channels, 10 classes",
            [8, 8, 1],
            [{"conv": [3, 3], "channels": 4}, {"dense": 10}],
        ),
        "image_6x6": (
            "6 x 6 pixels, two 3 x 3 convolutions, 4 classes",
            [6, 6, 1],
            [
                {"conv": [3, 3], "channels": 2},
                {"conv": [3, 3], "channels": 4},
                {"dense": 4},
            ],
        ),
        "keywords": (
            "24 steps of 2 features, two convolutions along time, 4 words",
            [1, 24, 2],
            [
                {"conv": [1, 4], "channels": 4},
                {"conv": [1, 4], "channels": 3},
                {"dense": 4},
            ],
        ),
        "filter_bank": (
            "one convolution along 32 samples, 6 filters of 8 taps",
            [1, 32, 1],
            [{"conv": [1, 8], "channels": 6}],
        ),
    }
)
"""By name: a line, the shape of the input, and the layers."""


def made_network(name: str, doc: str, shape: list[int], layers: list[Mapping[str, Any]]) -> Network:
    """A network; layers without weights have random ones, and biases, that depend on sizes alone.

    A layer with weights and without ``bias`` has none.

    Args:
        name: of the network.
        doc: a line on it.
        shape: of the input: ``[elements]`` or ``[rows, columns, channels]``.
        layers: each ``{"dense": outputs}`` or ``{"conv": [rows, columns], "channels": outputs}``,
            and if wanted ``weights`` and ``bias``.
    """
    height, width, channels = shape if len(shape) == 3 else (1, 1, shape[0])
    sizes = json.dumps([shape, [{k: v for k, v in one.items() if k in _SIZES} for one in layers]])
    seed = int.from_bytes(hashlib.sha256(sizes.encode()).digest()[:8], "little")
    random = np.random.default_rng(seed)
    inputs = np.clip(random.standard_normal((_SAMPLES, height, width, channels)), -3.0, 3.0)
    made = []
    for one in layers:
        if "conv" in one:
            rows, columns = one["conv"]
            kind, outputs, reads = "conv", int(one["channels"]), rows * columns * channels
        else:
            kind, outputs, reads = "dense", int(one["dense"]), height * width * channels
            height, width, channels, rows, columns = 1, 1, reads, 1, 1
        drawn = random.standard_normal((outputs, reads)) * np.sqrt(2.0 / reads)
        drawn_bias = random.standard_normal(outputs) * 0.1
        weights = np.asarray(one.get("weights", drawn), dtype=float).reshape(outputs, reads)
        other = np.zeros(outputs) if "weights" in one else drawn_bias
        bias = np.asarray(one.get("bias", other), dtype=float)
        layer = Layer(kind, height, width, channels, rows, columns, weights, bias)
        made.append(layer)
        (height, width), channels = layer.positions, outputs
    return Network(name, doc, tuple(made), inputs)


_SIZES: Final = ("dense", "conv", "channels")


@lru_cache(maxsize=64)
def named_network(name: str) -> Network:
    """A network of :data:`WORKLOADS`."""
    doc, shape, layers = WORKLOADS[name]
    return made_network(name, doc, shape, layers)
