"""How each ONNX operator that multiplies and accumulates becomes layers.

What a :class:`~archgym.envs.accelerator.workload.layer.Layer` cannot say (convolutions in three
dimensions or with a different stride along each axis, transposed ones) becomes the matrix product
of its unrolled windows, which has the same multiply-accumulates. Dilation changes which inputs a
window reads, not how many; the layer has the window of the same size without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from archgym.envs.accelerator.workload.layer import Layer

__all__ = ["CONVERTERS", "NodeView", "UnsupportedNodeError"]

Layers = list[tuple[Layer, int]]
"""Layers and how often each runs."""
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


class UnsupportedNodeError(Exception):
    """Why an operator cannot be turned into layers."""


class NodeView:
    """One operator: its attributes, and the shapes of what it reads and writes."""

    def __init__(self, name: str, node: Any, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.name = name
        self.op_type: str = node.op_type
        self._node = node
        self._shapes = shapes

    def input(self, index: int) -> tuple[int, ...]:
        """Shape of an input.

        Raises:
            UnsupportedNodeError: if it is not known.
        """
        return self._shape(self._node.input[index])

    def output(self) -> tuple[int, ...]:
        """Shape of the first output.

        Raises:
            UnsupportedNodeError: if it is not known.
        """
        return self._shape(self._node.output[0])

    def has_input(self, index: int) -> bool:
        """Whether there is such an input (it may be left out by an empty name)."""
        return index < len(self._node.input) and bool(self._node.input[index])

    def check_fits(self, fits: bool, index: int) -> None:
        """Refuse an input whose shape does not fit that of the first one.

        Raises:
            UnsupportedNodeError: naming both inputs with their shapes, unless ``fits``.
        """
        if not fits:
            first, other = self._node.input[0], self._node.input[index]
            raise UnsupportedNodeError(
                f"{other!r} of shape {self.input(index)} does not fit {first!r} of shape "
                f"{self.input(0)}"
            )

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return len(self._node.input)

    def integer(self, name: str, default: int) -> int:
        """An attribute that is one integer."""
        return next((int(a.i) for a in self._node.attribute if a.name == name), default)

    def integers(self, name: str, default: Sequence[int]) -> list[int]:
        """An attribute that is a list of integers."""
        found = next((list(a.ints) for a in self._node.attribute if a.name == name), None)
        return list(default) if found is None else found

    def text(self, name: str) -> str:
        """An attribute that is a string."""
        return next((a.s.decode() for a in self._node.attribute if a.name == name), "")

    def _shape(self, value: str) -> tuple[int, ...]:
        if value not in self._shapes:
            raise UnsupportedNodeError(f"the shape of {value!r} is not known")
        return self._shapes[value]


def _conv(node: NodeView, weights: int) -> Layers:
    batch, channels, *_ = node.input(0)
    filters, in_group, *window = node.input(weights)
    extents = node.output()[2:]
    groups = node.integer("group", 1)
    node.check_fits(len(window) == len(extents) and channels == in_group * groups, weights)
    strides = node.integers("strides", [1] * len(window))
    if len(window) == 1:
        window, extents, strides = [*window, 1], (*extents, 1), [*strides, strides[0]]
    # The stride along an axis with one output is never taken.
    taken = {s for s, extent in zip(strides, extents, strict=True) if extent > 1} or {1}
    if len(window) > 2 or len(taken) > 1:
        rows = batch * math.prod(extents)
        product = Layer.from_gemm(
            node.name, rows, filters // groups, in_group * math.prod(window), groups=groups
        )
        return [(product, 1)]
    depthwise = groups > 1 and groups == channels
    layer = Layer(
        node.name,
        "depthwise" if depthwise else "conv",
        K=filters,
        C=channels,
        R=window[0],
        S=window[1],
        P=extents[0],
        Q=extents[1],
        stride=taken.pop(),
        groups=groups,
        batch=batch,
    )
    return [(layer, 1)]


def _conv_transpose(node: NodeView) -> Layers:
    batch, channels, *extents = node.input(0)
    filters, in_group, *window = node.input(1)
    groups = node.integer("group", 1)
    node.check_fits(len(window) == len(extents) and channels == filters, 1)
    # Every input pixel gives a window of outputs for each filter; overlapping ones are added.
    width = in_group * math.prod(window)
    rows = batch * math.prod(extents)
    return [(Layer.from_gemm(node.name, rows, width, channels // groups, groups=groups), 1)]


def _gemm(node: NodeView) -> Layers:
    a, b = node.input(0), node.input(1)
    node.check_fits(len(a) == len(b) == 2, 1)
    inner, rows = a if node.integer("transA", 0) else a[::-1]
    columns, depth = b if node.integer("transB", 0) else b[::-1]
    node.check_fits(inner == depth, 1)
    return [(Layer.from_gemm(node.name, rows, columns, inner), 1)]


def _matmul(node: NodeView, second: int) -> Layers:
    a, b = node.input(0), node.input(second)
    a = (1, *a) if len(a) == 1 else a
    b = (*b, 1) if len(b) == 1 else b
    (rows, inner), (depth, columns) = a[-2:], b[-2:]
    node.check_fits(inner == depth, second)
    of_a, of_b = math.prod(a[:-2]), math.prod(b[:-2])
    if of_b == 1:  # all share the second operand: more rows of one product
        return [(Layer.from_gemm(node.name, of_a * rows, columns, inner), 1)]
    if of_a == 1:  # the same the other way round, transposed
        return [(Layer.from_gemm(node.name, of_b * columns, rows, inner), 1)]
    each = math.prod(node.output()[: max(len(a), len(b)) - 2])
    return [(Layer.from_gemm(node.name, rows, columns, inner, groups=each), 1)]


def _einsum(node: NodeView) -> Layers:
    equation = node.text("equation").replace(" ", "")
    left, arrow, out = equation.partition("->")
    terms = left.split(",")
    if node.inputs == 1:
        return []
    plain = arrow and all(len(set(term)) == len(term) for term in (*terms, out))
    if node.inputs != 2 or len(terms) != 2 or not plain or "." in equation:
        raise UnsupportedNodeError(
            f"equation {equation!r}: only two operands, an explicit result, no ellipsis and no "
            "repeated index can be converted"
        )
    sizes: dict[str, int] = {}
    for index, term in enumerate(terms):
        node.check_fits(len(term) == len(node.input(index)), 1)
        for label, size in zip(term, node.input(index), strict=True):
            known = sizes.get(label, 1)
            node.check_fits(size == known or 1 in (size, known), 1)
            sizes[label] = max(size, known)  # what is 1 is repeated
    first, second = set(terms[0]), set(terms[1])

    def product(labels: set[str]) -> int:
        return math.prod(sizes[label] for label in labels)

    inner = (first & second) - set(out)
    if not inner:
        return []  # multiplies, and accumulates nothing
    rows, columns = product((first - second) & set(out)), product((second - first) & set(out))
    each = product(first & second & set(out))
    return [(Layer.from_gemm(node.name, rows, columns, product(inner), groups=each), 1)]


def _recurrent(node: NodeView) -> Layers:
    sequence, batch, width = node.input(0)
    if node.integer("layout", 0):
        sequence, batch = batch, sequence
    directions, rows, columns = node.input(1)
    node.check_fits(columns == width, 1)
    hidden = rows // _GATES[node.op_type]
    return [
        (Layer.from_gemm(f"{node.name}.input", sequence * batch, rows, width), directions),
        (Layer.from_gemm(f"{node.name}.hidden", batch, rows, hidden), directions * sequence),
    ]


def _attention(node: NodeView) -> Layers:
    query, key, value = (_by_heads(node, i) for i in range(3))
    batch, heads, tokens, size = query
    shared, context = key[1], key[2]
    node.check_fits(key[0] == batch and key[3] == size and heads % shared == 0, 1)
    node.check_fits(value[:3] == key[:3], 2)
    if node.has_input(4):  # keys and values of earlier tokens
        context += node.input(4)[2]
    rows, each = tokens * heads // shared, batch * shared
    return [
        (Layer.from_gemm(f"{node.name}.scores", rows, context, size, groups=each), 1),
        (Layer.from_gemm(f"{node.name}.values", rows, value[3], context, groups=each), 1),
    ]


def _by_heads(node: NodeView, index: int) -> tuple[int, int, int, int]:
    """Shape of a query, key or value as (batch, heads, tokens, channels of a head)."""
    shape = node.input(index)
    if len(shape) == 4:
        return shape[0], shape[1], shape[2], shape[3]
    heads = node.integer("kv_num_heads" if index else "q_num_heads", 0)
    if len(shape) != 3 or heads < 1 or shape[2] % heads:
        raise UnsupportedNodeError(f"an input of shape {shape} with {heads} heads")
    return shape[0], heads, shape[1], shape[2] // heads


CONVERTERS: Mapping[str, Callable[[NodeView], Layers]] = MappingProxyType(
    {
        "Attention": _attention,
        "Conv": lambda node: _conv(node, 1),
        "ConvInteger": lambda node: _conv(node, 1),
        "ConvTranspose": _conv_transpose,
        "Einsum": _einsum,
        "GRU": _recurrent,
        "Gemm": _gemm,
        "LSTM": _recurrent,
        "MatMul": lambda node: _matmul(node, 1),
        "MatMulInteger": lambda node: _matmul(node, 1),
        "QLinearConv": lambda node: _conv(node, 3),
        "QLinearMatMul": lambda node: _matmul(node, 3),
        "RNN": _recurrent,
    }
)
"""Operators of the standard domain, and what makes layers of them."""
