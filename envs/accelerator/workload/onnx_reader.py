"""Reads an ONNX model's layers: the shapes of its convolutions and matrix products.

Needs the package ``onnx`` (the extra of that name). Only the graph is read: weights are not kept,
files beside the model are never opened, and nothing in the model is executed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.accelerator.workload.onnx_control import (
    CONTROL,
    Runs,
    constants_of,
    layers_of_control,
)
from archgym.envs.accelerator.workload.onnx_file import load_model
from archgym.envs.accelerator.workload.onnx_operators import (
    CONVERTERS,
    NodeView,
    UnsupportedNodeError,
)
from archgym.errors import InvalidValueError, UnknownNameError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

__all__ = ["read_onnx"]

_KEPT_VALUES = 1024
"""Values of a constant up to which it is kept: shapes that operators take as an input are small."""
_STANDARD_DOMAINS = ("", "ai.onnx")
_ARITHMETIC = frozenset(
    {
        "SequenceMap",  # how often its body runs is known only when it runs
        *("FlexAttention", "LinearAttention", "CausalConvWithState", "DeformConv"),
        *("DFT", "STFT", "Det", "Gradient", "MelWeightMatrix"),
    }
)
"""Standard operators that may multiply and accumulate, and that we do not convert."""
_Shapes: TypeAlias = dict[str, tuple[int, ...]]


def read_onnx(
    path: Path,
    *,
    dimensions: Mapping[str, int] | None = None,
    ignore: Sequence[str] = (),
    runs: Runs | None = None,
) -> Network:
    """The layers of a model, in the order of its graph, equal ones merged.

    Operators without multiply-accumulates (activations, normalisations, pooling,
    movement of data) are left out, as they are in the named networks.

    Args:
        path: the model.
        dimensions: sizes of symbolic dimensions of its inputs, by name; of one without a name
            ``"INPUT:AXIS"``.
        ignore: types of operators to leave out that would otherwise be refused.
        runs: of each ``If`` whose branch the model leaves open ``"then"`` or ``"else"``, and of
            each ``Loop`` or ``Scan`` the number of passes, by the name of the operator.

    Raises:
        MissingDependencyError: without the package ``onnx``.
        InvalidValueError: if the file is too large, is no model, has an operator that cannot be
            converted or a shape that cannot be known; the message names the operator.
        UnknownNameError: for a dimension or an operator that the model does not have.
    """
    model = _prepared(path, dict(dimensions or {}))
    reader = _Reader(path, ignore, runs or {})
    layers: dict[tuple[object, ...], tuple[Layer, int]] = {}
    for layer, count in reader.layers(model.graph):
        key = layer.key
        first, so_far = layers.get(key, (layer, 0))
        layers[key] = (first, so_far + count)
    for name in runs or ():
        if name not in reader.control:
            raise UnknownNameError(
                "If, Loop or Scan of the model", name, reader.control, f"{path}: runs"
            )
    if reader.problems:
        raise _unsupported(path, reader.problems)
    if not layers:
        raise InvalidValueError(f"{path}: the model has no convolution and no matrix product")
    found, counts = zip(*layers.values(), strict=True)
    return Network(path.stem, found, counts)


class _Reader:
    """Goes through the operators of a model, also those inside of others.

    Attributes:
        problems: names of the operators that cannot be converted, by their type.
        control: names of the operators that run graphs of their own.
    """

    def __init__(self, path: Path, ignore: Sequence[str], runs: Runs) -> None:
        self._path, self._ignore, self._runs = path, ignore, runs
        self.problems: dict[str, list[str]] = {}
        self.control: list[str] = []

    def layers(
        self,
        graph: GraphProto,
        prefix: str = "",
        outer: _Shapes | None = None,
        known: Mapping[str, int] | None = None,
    ) -> list[tuple[Layer, int]]:
        """The layers of a graph and how often each runs.

        Args:
            graph: of the model, or of an operator in it.
            prefix: put before the names of its operators.
            outer: shapes of values outside of it.
            known: constants outside of it.
        """
        shapes = {**(outer or {}), **_shapes(graph)}
        constants = {**(known or {}), **constants_of(graph)}
        found: list[tuple[Layer, int]] = []
        for number, node in enumerate(graph.node):
            name = f"{prefix}{node.name or f'{node.op_type}_{number}'}"
            standard = node.domain in _STANDARD_DOMAINS
            convert = CONVERTERS.get(node.op_type) if standard else None
            if node.op_type in self._ignore:
                continue
            if standard and node.op_type in CONTROL:
                self.control.append(name)

                def inner(body: GraphProto, prefix: str) -> list[tuple[Layer, int]]:
                    return self.layers(body, prefix, shapes, constants)

                with _named(self._path, node.op_type, name):
                    found += layers_of_control(node, name, inner, constants, shapes, self._runs)
            elif convert is not None:
                with _named(self._path, node.op_type, name):
                    found += convert(NodeView(name, node, shapes))
            elif not _without_arithmetic(node):
                kind = f"{node.domain}:{node.op_type}".removeprefix(":")
                self.problems.setdefault(kind, []).append(name)
        return found


@contextlib.contextmanager
def _named(path: Path, kind: str, name: str) -> Iterator[None]:
    """Puts an operator before the message of an error with it; one inside of it is named alone."""
    try:
        yield
    except _ReadError:
        raise
    except (UnsupportedNodeError, InvalidValueError) as error:
        raise _ReadError(f"{path}: {kind} {name!r}: {error}") from None


class _ReadError(InvalidValueError):
    """An error that names its operator."""


def _unsupported(path: Path, problems: Mapping[str, Sequence[str]]) -> InvalidValueError:
    shown = "; ".join(
        f"{kind} ({len(names)}, first {names[0]!r})" for kind, names in list(problems.items())[:8]
    )
    types = sorted({kind.rpartition(":")[2] for kind in problems})
    return InvalidValueError(
        f"{path}: operators that cannot be turned into layers: {shown}. If they do no "
        f"multiply-accumulates that count, leave them out with ignore={types}."
    )


def _without_arithmetic(node: NodeProto) -> bool:
    """Whether a standard operator has no multiply-accumulates that an array would do."""
    import onnx

    known = node.domain in _STANDARD_DOMAINS and onnx.defs.has(node.op_type)
    return known and node.op_type not in _ARITHMETIC


def _prepared(path: Path, dimensions: dict[str, int]) -> ModelProto:
    """The model without its weights, functions expanded, shapes inferred."""
    model = load_model(path)
    import onnx.shape_inference

    try:
        _forget_weights(model.graph)
        _set_dimensions(path, model.graph, dimensions)
        _forget_unknown(model.graph)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except InvalidValueError:
        raise
    except (RuntimeError, ValueError) as error:
        raise InvalidValueError(f"{path}: shapes cannot be inferred: {error!s:.300}") from None


def _forget_weights(graph: GraphProto) -> None:
    """Turns large constants into inputs of the same shape: their values are not needed."""
    from onnx import helper

    there = {value.name for value in graph.input}
    kept = []
    for tensor in graph.initializer:
        if math.prod(tensor.dims) <= _KEPT_VALUES and not tensor.external_data:
            kept.append(tensor)
        elif tensor.name not in there:
            graph.input.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            )
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _set_dimensions(path: Path, graph: GraphProto, sizes: Mapping[str, int]) -> None:
    """Gives the symbolic dimensions of the inputs their sizes."""
    constants = {tensor.name for tensor in graph.initializer}
    symbolic: dict[str, str] = {}
    for value in graph.input:
        if value.name in constants:
            continue
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if dimension.dim_value > 0:
                continue
            name = dimension.dim_param or f"{value.name}:{axis}"
            symbolic[name] = f"{name!r} (input {value.name!r}, axis {axis})"
            if name in sizes:
                dimension.dim_value = sizes[name]
    for name in sizes:
        if name not in symbolic:
            raise UnknownNameError("symbolic dimension", name, symbolic, f"{path}: dimensions")
    missing = [text for name, text in symbolic.items() if name not in sizes]
    if missing:
        example = {name: 1 for name in symbolic if name not in sizes}
        raise InvalidValueError(
            f"{path}: the size of {', '.join(missing)} is not known; say it in the workload, as "
            f"in {{'file': {str(path)!r}, 'dimensions': {example}}}"
        )


def _forget_unknown(graph: GraphProto) -> None:
    """Drops sizes of 0 and less, which exporters write for sizes that they do not know."""
    for value in (*graph.value_info, *graph.output):
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.HasField("dim_value") and dimension.dim_value <= 0:
                dimension.ClearField("dim_value")


def _shapes(graph: GraphProto) -> _Shapes:
    """Shapes of all values that are known in full."""
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        shape = _shape(value)
        if shape is not None:
            shapes[value.name] = shape
    return shapes


def _shape(value: ValueInfoProto) -> tuple[int, ...] | None:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    if not all(dimension.dim_value > 0 for dimension in kind.shape.dim):
        return None
    return tuple(dimension.dim_value for dimension in kind.shape.dim)
