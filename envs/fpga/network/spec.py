"""A network of dense and convolutional layers, as numbers in floating point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Layer", "Network", "float_outputs", "windows"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer: a matrix product at every position, then, but for the last layer, a ReLU.

    Attributes:
        kind: ``dense`` or ``conv``.
        height: rows of what it reads; 1 if it is dense.
        width: columns of what it reads; 1 if it is dense.
        channels: elements of a position that it reads; of a dense layer all that it reads.
        kernel_height: rows of the window; 1 if it is dense.
        kernel_width: columns of the window; 1 if it is dense.
        weights: shape (outputs, inputs of a window); inputs by row, column, channel.
        bias: shape (outputs,).
    """

    kind: str
    height: int
    width: int
    channels: int
    kernel_height: int
    kernel_width: int
    weights: Floats
    bias: Floats

    @property
    def inputs(self) -> int:
        """Elements of a window."""
        return self.kernel_height * self.kernel_width * self.channels

    @property
    def outputs(self) -> int:
        """Elements that it gives at a position."""
        return int(self.weights.shape[0])

    @property
    def positions(self) -> tuple[int, int]:
        """Rows and columns of positions that it gives; no padding, step 1."""
        return self.height - self.kernel_height + 1, self.width - self.kernel_width + 1


@dataclass(frozen=True, eq=False)
class Network:
    """Layers, and where they come from.

    Attributes:
        name: as a workload.
        doc: a line on it.
        layers: in their order; convolutions before dense ones.
        inputs: samples that judge the quantised network, shape (samples, rows, columns, channels).
    """

    name: str
    doc: str
    layers: tuple[Layer, ...]
    inputs: Floats

    @property
    def products(self) -> int:
        """Multiplications of a sample."""
        return sum(
            layer.inputs * layer.outputs * layer.positions[0] * layer.positions[1]
            for layer in self.layers
        )


def windows(values: NDArray[Any], layer: Layer) -> NDArray[Any]:
    """What a layer reads at each position.

    Args:
        values: shape (samples, height, width, channels); for a dense layer any shape.
        layer: the layer.

    Returns:
        Shape (samples, rows, columns, inputs of a window).
    """
    samples = len(values)
    if layer.kind == "dense":
        return values.reshape(samples, 1, 1, -1)
    kernel = (layer.kernel_height, layer.kernel_width)
    seen: NDArray[Any] = np.lib.stride_tricks.sliding_window_view(values, kernel, axis=(1, 2))  # type: ignore[call-overload]
    rows, columns = layer.positions
    return np.moveaxis(seen, 3, -1).reshape(samples, rows, columns, -1)


def float_outputs(network: Network, inputs: Floats) -> Floats:
    """Outputs of the network in floating point, shape (samples, rows, columns, outputs)."""
    values = inputs
    for layer in network.layers:
        values = np.einsum("srci,oi->srco", windows(values, layer), layer.weights) + layer.bias
        if layer is not network.layers[-1]:
            values = np.maximum(values, 0.0)
    return values
