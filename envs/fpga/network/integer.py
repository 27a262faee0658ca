"""The quantised network: integer weights, and the integers that its circuit has to give.

Weights are symmetric integers of one scale a layer. The input is signed; after a ReLU activations
are unsigned. A result is the accumulator, shifted right and saturated; the last layer gives its
accumulators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.envs.fpga.network.spec import Floats, Layer, Network, float_outputs, windows

__all__ = ["Integers", "QuantisedLayer", "QuantisedNetwork", "integer_outputs", "quantised"]

Integers = NDArray[np.int64]

_FRACTIONS = np.linspace(0.3, 1.0, 15)
"""Shares of the largest weight that the largest integer may stand for; the best one is taken."""
_COVERED = 0.998
"""Share of the positive accumulators of the samples that a layer's shift keeps unsaturated."""


@dataclass(frozen=True, eq=False)
class QuantisedLayer:
    """A layer in integers.

    Attributes:
        layer: in floating point.
        weights: shape (outputs, inputs).
        bias: shape (outputs,), at the accumulator's scale; holds the half that rounds.
        shift: bits by which the accumulator is shifted right; 0 in the last layer.
        low, high: the smallest and the largest value that it reads.
        last: whether it gives its accumulators.
        activation_bits: of what it gives.
        weight_limit: largest magnitude of a weight of these bits.
    """

    layer: Layer
    weights: Integers
    bias: Integers
    shift: int
    low: int
    high: int
    last: bool
    activation_bits: int
    weight_limit: int


@dataclass(frozen=True, eq=False)
class QuantisedNetwork:
    """A network in integers.

    Attributes:
        network: in floating point.
        layers: in integers.
        inputs: its samples in integers, shape (samples, rows, columns, channels).
        sqnr_db: ratio of the power of the outputs in floating point to that of the error, dB.
    """

    network: Network
    layers: tuple[QuantisedLayer, ...]
    inputs: Integers
    sqnr_db: float


def quantised(network: Network, weight_bits: int, activation_bits: int) -> QuantisedNetwork:
    """The network in integers.

    Args:
        network: in floating point.
        weight_bits: of each weight, with its sign, at least 2.
        activation_bits: of each input, with its sign, and of each activation.
    """
    limit = 2 ** (weight_bits - 1) - 1
    low, high = -(2 ** (activation_bits - 1)), 2 ** (activation_bits - 1) - 1
    scale = float(np.abs(network.inputs).max()) / max(high, 1)
    inputs = np.clip(np.rint(network.inputs / scale), low, high).astype(np.int64)
    values, layers = inputs, []
    for layer in network.layers:
        last = layer is network.layers[-1]
        weights, weight_scale = _rounded(layer.weights, limit)
        scale *= weight_scale
        reach = layer.inputs * limit * max(-low, high)
        bias = np.clip(np.rint(layer.bias / scale), -reach, reach).astype(np.int64)
        sums = np.einsum("srci,oi->srco", windows(values, layer), weights) + bias
        shift = 0 if last else _shift(sums, activation_bits)
        if shift:
            bias = bias + (1 << (shift - 1))
            scale *= 2.0**shift
        made = QuantisedLayer(layer, weights, bias, shift, low, high, last, activation_bits, limit)
        values = _result(made, values)
        layers.append(made)
        low, high = 0, 2**activation_bits - 1
    wanted = float_outputs(network, network.inputs)
    error = float(np.square(values * scale - wanted).sum())
    power = float(np.square(wanted).sum())
    sqnr = 10.0 * np.log10(power / error) if error > 0 and power > 0 else 200.0
    return QuantisedNetwork(network, tuple(layers), inputs, float(sqnr))


def integer_outputs(network: QuantisedNetwork, inputs: Integers) -> Integers:
    """What the circuit gives, shape (samples, rows, columns, outputs).

    Args:
        network: in integers.
        inputs: shape (samples, rows, columns, channels).
    """
    values = inputs
    for layer in network.layers:
        values = _result(layer, values)
    return values


def _result(layer: QuantisedLayer, values: Integers) -> Integers:
    seen = windows(values, layer.layer)
    sums: Integers = np.einsum("srci,oi->srco", seen, layer.weights) + layer.bias
    if layer.last:
        return sums
    return np.clip(sums >> layer.shift, 0, 2**layer.activation_bits - 1)


def _rounded(weights: Floats, limit: int) -> tuple[Integers, float]:
    """Integer weights and their scale, with the least squared error of a few scales."""
    largest = float(np.abs(weights).max()) or 1.0
    best: tuple[float, Integers, float] | None = None
    for fraction in _FRACTIONS:
        scale = largest * float(fraction) / limit
        rounded = np.clip(np.rint(weights / scale), -limit, limit).astype(np.int64)
        error = float(np.square(rounded * scale - weights).sum())
        if best is None or error < best[0] * (1 - 1e-9):
            best = error, rounded, scale
    assert best is not None
    return best[1], best[2]


def _shift(sums: Integers, activation_bits: int) -> int:
    positive = np.sort(sums[sums > 0])
    if not len(positive):
        return 0
    large = int(positive[min(len(positive) - 1, int(_COVERED * len(positive)))])
    return max(0, large.bit_length() - activation_bits)
