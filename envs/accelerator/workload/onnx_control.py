"""Control flow in ONNX models: which parts of ``If``, ``Loop`` and ``Scan`` run, and how often.

What the model itself says is taken: a condition or a number of passes that is a constant, the
length of what a scan goes along, and branches that do the same. The rest the workload says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from archgym.envs.accelerator.workload.layer import Layer
from archgym.envs.accelerator.workload.onnx_operators import UnsupportedNodeError

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

__all__ = ["CONTROL", "Runs", "constants_of", "layers_of_control"]

CONTROL = ("If", "Loop", "Scan")
"""Operators that run graphs of their own."""
Runs: TypeAlias = Mapping[str, str | int]
"""What a workload says of such operators, by name: ``then`` or ``else``, or a number of passes."""
Layers: TypeAlias = list[tuple[Layer, int]]
_MAX_PASSES = 1_000_000_000
_BRANCHES = {"then": "then_branch", "else": "else_branch"}


def constants_of(graph: GraphProto) -> dict[str, int]:
    """The constants of a graph that are one whole number or truth value, by name."""
    from onnx import numpy_helper

    tensors: dict[str, TensorProto] = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    tensors[node.output[0]] = attribute.t
    found = {}
    for name, tensor in tensors.items():
        if tensor.external_data or any(size != 1 for size in tensor.dims):
            continue
        value = numpy_helper.to_array(tensor)
        if value.size == 1 and value.dtype.kind in "biu":
            found[name] = int(value.reshape(-1)[0])
    return found


def layers_of_control(
    node: NodeProto,
    name: str,
    collect: Callable[[GraphProto, str], Layers],
    constants: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    runs: Runs,
) -> Layers:
    """The layers that an ``If``, a ``Loop`` or a ``Scan`` runs.

    Args:
        node: the operator.
        name: what messages call it.
        collect: the layers of a graph inside of it, whose names begin with a text.
        constants: values that are known.
        shapes: of values outside of it.
        runs: what the workload says.

    Raises:
        UnsupportedNodeError: if it runs layers, and what runs is not known.
    """
    graphs = {a.name: a.g for a in node.attribute if a.HasField("g")}
    said = runs.get(name)
    if node.op_type == "If":
        return _of_if(node, name, graphs, collect, constants, said)
    layers = collect(graphs["body"], f"{name}/")
    if not layers:
        return []
    times = _times(node, constants, shapes) if said is None else said
    if isinstance(times, str):
        raise UnsupportedNodeError(f"runs: {times!r} is for If; a number of passes is needed")
    if times is None:
        raise UnsupportedNodeError(
            f"it runs {_some(layers)}, and how often is known only when it runs; say it in the "
            f"workload, as in 'runs': {{{name!r}: 10}}"
        )
    if times > _MAX_PASSES:
        raise UnsupportedNodeError(f"it passes {times:,} times; at most {_MAX_PASSES:,} are read")
    return [(layer, count * times) for layer, count in layers] if times > 0 else []


def _of_if(
    node: NodeProto,
    name: str,
    graphs: Mapping[str, GraphProto],
    collect: Callable[[GraphProto, str], Layers],
    constants: Mapping[str, int],
    said: str | int | None,
) -> Layers:
    if said is None and node.input[0] in constants:
        said = "then" if constants[node.input[0]] else "else"
    if said is not None:
        if said not in _BRANCHES:
            raise UnsupportedNodeError(f"runs: {said!r} is no branch: allowed are then, else")
        return collect(graphs[_BRANCHES[str(said)]], f"{name}/")
    # The other branch may be one that never runs, such as a check of shapes.
    then, other = (collect(graphs[key], f"{name}/") for key in _BRANCHES.values())
    if _alike(then) == _alike(other):
        return then
    raise UnsupportedNodeError(
        f"its branches run different layers ({_some(then)}, or {_some(other)}), and which is known "
        f"only when it runs; say it in the workload, as in 'runs': {{{name!r}: 'then'}}"
    )


def _times(
    node: NodeProto, constants: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> int | None:
    """How often a loop or a scan passes; ``None`` if the model does not say."""
    if node.op_type == "Loop":
        goes_on = node.input[1] if len(node.input) > 1 else ""
        if goes_on and not constants.get(goes_on):
            return None
        return constants.get(node.input[0]) if _never_ends_early(node) else None
    scanned = _integer(node, "num_scan_inputs")
    values = list(node.input)[len(node.input) - scanned :] if scanned else []
    axes = next((list(a.ints) for a in node.attribute if a.name == "scan_input_axes"), [])
    if values and values[0] in shapes:
        shape = shapes[values[0]]
        axis = axes[0] if axes else 0
        return shape[axis] if -len(shape) <= axis < len(shape) else None
    return None


def _never_ends_early(node: NodeProto) -> bool:
    """Whether the body of a loop passes its condition on as it is, or as a constant truth."""
    body = next(a.g for a in node.attribute if a.name == "body")
    if not body.output or len(body.input) < 2:
        return False
    condition, given = body.output[0].name, body.input[1].name
    for inner in body.node:
        if condition in inner.output:
            if inner.op_type == "Identity":
                return inner.input[0] == given or bool(constants_of(body).get(inner.input[0]))
            return bool(constants_of(body).get(condition))
    return condition == given or bool(constants_of(body).get(condition))


def _integer(node: NodeProto, name: str) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), 0)


def _alike(layers: Layers) -> dict[tuple[Any, ...], int]:
    """Layers by what they are, whatever their names and order."""
    found: dict[tuple[Any, ...], int] = {}
    for layer, count in layers:
        key = layer.key
        found[key] = found.get(key, 0) + count
    return found


def _some(layers: Sequence[tuple[Layer, int]]) -> str:
    if not layers:
        return "no layers"
    first = layers[0][0].name
    return f"layer {first!r}" if len(layers) == 1 else f"{len(layers)} layers, first {first!r}"
