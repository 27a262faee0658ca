"""Builds a network layer by layer from its definition, and keeps track of the shapes between."""

from __future__ import annotations

from typing import NamedTuple

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.errors import InvalidValueError

__all__ = ["Builder", "Built", "Shape"]


class Shape(NamedTuple):
    """Shape of the activations between two layers."""

    channels: int
    rows: int
    columns: int


class Built(NamedTuple):
    """A network, with the figures that its layers' loop bounds do not hold.

    Attributes:
        network: its layers, those with multiply-accumulates only.
        parameters: all trained values: weights, biases, normalisations, embeddings.
    """

    network: Network
    parameters: int


class Builder:
    """Adds layers one after another; each takes the shape that the one before it left.

    >>> net = Builder("two layers", Shape(3, 224, 224))
    >>> net.conv("stem", 64, 7, stride=2, padding=3)
    >>> net.pool(3, 2, padding=1)
    >>> net.shape
    Shape(channels=64, rows=56, columns=56)

    Args:
        name: of the network.
        shape: of one input.
        batch: inputs that are processed together.

    Attributes:
        shape: of the activations at this point.
        parameters: trained values so far.
    """

    def __init__(self, name: str, shape: Shape, *, batch: int = 1) -> None:
        self.name = name
        self.shape = shape
        self.batch = batch
        self.parameters = 0
        self._layers: list[Layer] = []

    def conv(
        self,
        name: str,
        filters: int,
        size: int,
        *,
        stride: int = 1,
        padding: int | None = None,
        groups: int = 1,
        bias: bool = False,
        norm: bool = True,
    ) -> None:
        """A square convolution.

        Args:
            name: of the layer.
            filters: output channels.
            size: rows and columns of a filter.
            stride: distance of neighbouring windows.
            padding: zeros on each side; default ``size // 2``, which with stride 1 keeps rows
                and columns and otherwise divides them by the stride, rounded up.
            groups: independent parts of the channels; as many as there are input channels make
                it depthwise.
            bias: whether it has one.
            norm: whether a batch normalisation follows (a scale and a shift for each channel).
        """
        channels, rows, columns = self.shape
        p = self._windows(name, rows, size, stride, padding)
        q = self._windows(name, columns, size, stride, padding)
        depthwise = groups > 1 and groups == channels
        layer = Layer(
            name,
            "depthwise" if depthwise else "conv",
            K=filters,
            C=channels,
            R=size,
            S=size,
            P=p,
            Q=q,
            stride=stride,
            groups=groups,
            batch=self.batch,
        )
        self._layers.append(layer)
        self.parameters += layer.weight_footprint + filters * (bias + 2 * norm)
        self.shape = Shape(filters, p, q)

    def depthwise(self, name: str, size: int, *, stride: int = 1) -> None:
        """A depthwise convolution with batch normalisation."""
        self.conv(name, self.shape.channels, size, stride=stride, groups=self.shape.channels)

    def pool(self, size: int, stride: int, *, padding: int = 0) -> None:
        """A pooling window: no multiply-accumulates, but the shape shrinks."""
        channels, rows, columns = self.shape
        self.shape = Shape(
            channels,
            self._windows("pooling", rows, size, stride, padding),
            self._windows("pooling", columns, size, stride, padding),
        )

    def global_pool(self) -> None:
        """Averages rows and columns away."""
        self.shape = Shape(self.shape.channels, 1, 1)

    def flatten(self) -> None:
        """All activations of an input become channels of one pixel."""
        channels, rows, columns = self.shape
        self.shape = Shape(channels * rows * columns, 1, 1)

    def linear(self, name: str, width: int, *, bias: bool = True) -> None:
        """A fully connected layer on every pixel of an input (its rows and columns)."""
        channels, rows, columns = self.shape
        self.gemm(name, rows * columns, width, channels, bias=bias)
        self.shape = Shape(width, rows, columns)

    def gemm(self, name: str, M: int, N: int, K: int, *, bias: bool = True) -> None:
        """A product with trained weights that leaves the shape alone: M x K times K x N."""
        self._layers.append(Layer.from_gemm(name, M, N, K, batch=self.batch))
        self.parameters += N * (K + bias)

    def matmul(self, name: str, M: int, N: int, K: int, *, each: int = 1) -> None:
        """Products of two activations, ``each`` of them for every input."""
        self._layers.append(Layer.from_gemm(name, M, N, K, groups=each * self.batch))

    def join(self, shape: Shape) -> None:
        """Checks that a branch ends with the shape that it is added to.

        Raises:
            InvalidValueError: if it does not.
        """
        if self.shape != shape:
            raise InvalidValueError(
                f"network {self.name!r}: {self.shape} cannot be added to {shape}"
            )

    def built(self) -> Built:
        """The network."""
        return Built(Network.from_layers(self.name, self._layers), self.parameters)

    def _windows(self, name: str, extent: int, size: int, stride: int, padding: int | None) -> int:
        padded = extent + 2 * (size // 2 if padding is None else padding)
        if padded < size:
            raise InvalidValueError(
                f"network {self.name!r}, {name}: a window of {size} does not fit into {padded} "
                "rows or columns; the input image is too small"
            )
        return (padded - size) // stride + 1
