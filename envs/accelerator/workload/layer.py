"""Layers and networks as the accelerator models read them: loop bounds, and nothing else.

Every layer is one nest of loops over the batch ``B``, output channels ``K``, input channels ``C``,
output rows ``P``, output columns ``Q``, filter rows ``R`` and filter columns ``S`` (the names of
Timeloop, Parashar et al., ISPASS 2019). A matrix product is the nest with ``R = S = 1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from archgym.errors import InvalidValueError

__all__ = [
    "COLUMNS",
    "SIZES",
    "Gemm",
    "Kind",
    "Layer",
    "LayerTable",
    "Network",
    "window_extent",
]

Kind = Literal["conv", "depthwise", "gemm"]

SIZES: Final = ("K", "C", "R", "S", "P", "Q", "stride", "groups", "batch")
PAST: Final = ("past_rows", "past_columns")
COLUMNS: Final = (*SIZES, *PAST)
"""Columns of `LayerTable.bounds`, in this order; ``K`` and ``C`` count **one group's** channels."""


MAX_MACS: Final = 2**53
"""Largest layer; beyond it the kernel's integers and floats do not count exactly."""


class Gemm(NamedTuple):
    """One group of a layer as a matrix product ``M x K`` times ``K x N`` (SCALE-Sim's view)."""

    M: int
    """Output pixels: batch x output rows x output columns."""
    N: int
    """Filters (of one group)."""
    K: int
    """Length of the sum: filter window x input channels (of one group)."""


def window_extent(outputs: int, filter_size: int, stride: int) -> int:
    """Return how many distinct inputs along one axis feed ``outputs`` outputs (padding included).

    Neighbouring windows overlap when the stride is below the filter; with a larger stride the
    inputs between two windows are never read and do not count.
    """
    return (outputs - 1) * min(stride, filter_size) + filter_size


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a network.

    ``K`` and ``C`` are the layer's whole output and input channels; with ``groups`` G the layer is
    G independent layers of ``K/G`` filters over ``C/G`` channels (a depthwise convolution has
    ``groups == C``; the products of H attention heads are one GEMM layer with ``groups == H``).

    Examples:
        >>> conv = Layer("conv1", "conv", K=64, C=3, R=7, S=7, P=112, Q=112, stride=2)
        >>> conv.macs
        118013952
        >>> conv.gemm
        Gemm(M=12544, N=64, K=147)
        >>> Layer.from_gemm("fc", M=1, N=1000, K=2048).weight_footprint
        2048000
    """

    name: str
    kind: Kind
    K: int
    """Output channels (filters; columns ``N`` of a matrix product)."""
    C: int
    """Input channels (length of the sum of a matrix product)."""
    R: int = 1
    """Filter rows."""
    S: int = 1
    """Filter columns."""
    P: int = 1
    """Output rows (rows ``M`` of a matrix product)."""
    Q: int = 1
    """Output columns."""
    stride: int = 1
    """Distance of neighbouring windows, the same along rows and columns."""
    groups: int = 1
    """Independent parts of the channels."""
    batch: int = 1
    """Inputs that share the weights."""
    past_rows: int = 0
    """Rows of the last windows that lie past the input, where nothing is (SCALE-Sim rounds the
    number of outputs up). Models other than SCALE-Sim's read them as padding."""
    past_columns: int = 0
    """The same of columns."""

    def __post_init__(self) -> None:
        if self.kind not in ("conv", "depthwise", "gemm"):
            raise InvalidValueError(
                f"layer {self.name!r}: kind is {self.kind!r}; it must be conv, depthwise or gemm"
            )
        for field in SIZES:
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidValueError(
                    f"layer {self.name!r}: {field} is {value!r}; it must be a whole number of "
                    "at least 1"
                )
        for field in PAST:
            value = getattr(self, field)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not (whole and 0 <= value < self.stride):
                raise InvalidValueError(
                    f"layer {self.name!r}: {field} is {value!r}; it must be a whole number from 0 "
                    f"to {self.stride - 1}, less than the stride"
                )
        if self.K % self.groups or self.C % self.groups:
            raise InvalidValueError(
                f"layer {self.name!r}: groups is {self.groups}; it divides K ({self.K}) and "
                f"C ({self.C})"
            )
        largest = max(self.macs, self.input_footprint, self.weight_footprint, self.output_footprint)
        if largest > MAX_MACS:
            raise InvalidValueError(
                f"layer {self.name!r}: {largest:.3g} multiply-accumulates or words; the model "
                f"counts to {MAX_MACS:.3g}"
            )
        if self.kind == "depthwise" and self.groups != self.C:
            raise InvalidValueError(
                f"layer {self.name!r}: groups is {self.groups}; a depthwise layer has one group "
                f"for each of its {self.C} input channels"
            )
        if self.kind == "gemm" and (self.R, self.S, self.Q, self.stride) != (1, 1, 1, 1):
            raise InvalidValueError(
                f"layer {self.name!r}: R, S, Q and stride of a gemm are 1; its rows are P"
            )

    @classmethod
    def from_gemm(
        cls, name: str, M: int, N: int, K: int, *, groups: int = 1, batch: int = 1
    ) -> Layer:
        """Return ``groups`` independent products of ``M x K`` with ``K x N`` as one layer."""
        return cls(name, "gemm", K=N * groups, C=K * groups, P=M, groups=groups, batch=batch)

    @classmethod
    def depthwise(
        cls, name: str, C: int, R: int, S: int, P: int, Q: int, *, stride: int = 1, batch: int = 1
    ) -> Layer:
        """Return a depthwise convolution: one ``R x S`` filter for each of ``C`` channels."""
        return cls(
            name, "depthwise", K=C, C=C, R=R, S=S, P=P, Q=Q, stride=stride, groups=C, batch=batch
        )

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.batch * self.K * (self.C // self.groups) * self.R * self.S * self.P * self.Q

    @property
    def input_rows(self) -> int:
        """Distinct input rows read, padding included."""
        return window_extent(self.P, self.R, self.stride)

    @property
    def input_columns(self) -> int:
        """Distinct input columns read, padding included."""
        return window_extent(self.Q, self.S, self.stride)

    @property
    def input_footprint(self) -> int:
        """Distinct input words, padding included."""
        return self.batch * self.C * self.input_rows * self.input_columns

    @property
    def weight_footprint(self) -> int:
        """Distinct weight words."""
        return self.K * (self.C // self.groups) * self.R * self.S

    @property
    def output_footprint(self) -> int:
        """Output words."""
        return self.batch * self.K * self.P * self.Q

    @property
    def gemm(self) -> Gemm:
        """One group as a matrix product; the layer is ``groups`` of them."""
        return Gemm(
            M=self.batch * self.P * self.Q,
            N=self.K // self.groups,
            K=self.R * self.S * (self.C // self.groups),
        )

    @property
    def row(self) -> tuple[int, ...]:
        """The layer as one row of `LayerTable.bounds`."""
        return (
            self.K // self.groups,
            self.C // self.groups,
            self.R,
            self.S,
            self.P,
            self.Q,
            self.stride,
            self.groups,
            self.batch,
            self.past_rows,
            self.past_columns,
        )

    @property
    def key(self) -> tuple[object, ...]:
        """What the layer is, whatever its name: its kind and sizes."""
        past = self.row[len(SIZES) :]
        return (self.kind, *self.row[: len(SIZES)], *(past if any(past) else ()))


@dataclass(frozen=True)
class LayerTable:
    """Layers as arrays, for vectorised and compiled models."""

    names: tuple[str, ...]
    bounds: npt.NDArray[np.int64]
    """Shape (n_layers, 11), columns as in `COLUMNS`; ``K`` and ``C`` are one group's."""
    counts: npt.NDArray[np.int64]
    """How often each layer occurs, shape (n_layers,)."""

    @classmethod
    def of(cls, layers: Iterable[tuple[Layer, int]]) -> LayerTable:
        """Return the table of (layer, count) pairs."""
        pairs = list(layers)
        if any(count >= 1 << 53 for _, count in pairs):
            raise InvalidValueError("a layer occurs 2^53 times or more, beyond what is counted")
        return cls(
            names=tuple(layer.name for layer, _ in pairs),
            bounds=np.array([layer.row for layer, _ in pairs], dtype=np.int64).reshape(
                -1, len(COLUMNS)
            ),
            counts=np.array([count for _, count in pairs], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Network:
    """Layers that a design runs one after another, equal ones written once with their count.

    Examples:
        >>> block = Layer("3x3", "conv", K=64, C=64, R=3, S=3, P=56, Q=56)
        >>> Network("two blocks", (block,), (4,)).macs == 4 * block.macs
        True
    """

    name: str
    layers: tuple[Layer, ...]
    counts: tuple[int, ...]
    """How often each layer occurs; the same order as ``layers``."""

    def __post_init__(self) -> None:
        if not self.layers or len(self.layers) != len(self.counts):
            raise InvalidValueError(
                f"network {self.name!r}: {len(self.layers)} layers and {len(self.counts)} counts; "
                "there is at least one layer, and one count for each"
            )
        for layer, count in zip(self.layers, self.counts, strict=True):
            if count < 1:
                raise InvalidValueError(
                    f"network {self.name!r}: layer {layer.name!r} has count {count}; at least 1"
                )

    @classmethod
    def from_layers(cls, name: str, layers: Sequence[Layer]) -> Network:
        """Return the network of ``layers`` in execution order; equal shapes are merged.

        A merged layer keeps the name of its first occurrence.
        """
        first: dict[tuple[object, ...], Layer] = {}
        counts: dict[tuple[object, ...], int] = {}
        for layer in layers:
            key = layer.key
            first.setdefault(key, layer)
            counts[key] = counts.get(key, 0) + 1
        return cls(name, tuple(first.values()), tuple(counts.values()))

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the whole network."""
        return sum(
            layer.macs * count for layer, count in zip(self.layers, self.counts, strict=True)
        )

    @property
    def weight_footprint(self) -> int:
        """Weight words of the whole network; for GEMMs of two activations, their second operand."""
        return sum(
            layer.weight_footprint * count
            for layer, count in zip(self.layers, self.counts, strict=True)
        )

    @property
    def table(self) -> LayerTable:
        """The layers as arrays."""
        return LayerTable.of(zip(self.layers, self.counts, strict=True))
