"""Reads the file of an ONNX model, and writes the functions in it out where they are called.

Functions may call each other, so that a file of kilobytes can stand for any number of operators:
these are counted before anything is written out.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from archgym.errors import InvalidValueError, MissingDependencyError
from archgym.reading.files import read_bytes

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto

__all__ = ["FILE_LIMIT_BYTES", "NODE_LIMIT", "load_model"]

FILE_LIMIT_BYTES: Final = 2**31 - 1
"""Size of a model: what one protocol buffer can hold."""
NODE_LIMIT: Final = 1_000_000
"""Operators of a model, those inside of others too, once functions are written out."""
_Key: TypeAlias = tuple[str, str, str]


def load_model(path: Path) -> ModelProto:
    """The model in a file, without functions of its own; files beside it are not opened.

    Raises:
        MissingDependencyError: without the package ``onnx``.
        InvalidValueError: if the file cannot be read, is too large or no model, has too many
            operators, or a function that calls itself.
    """
    try:
        import onnx
        import onnx.inliner
    except ImportError:
        raise MissingDependencyError(
            f"{path}: reading an ONNX model needs the package onnx: pip install 'archgym[onnx]'"
        ) from None
    from google.protobuf.message import DecodeError

    try:
        content = read_bytes(path, FILE_LIMIT_BYTES)
        model = onnx.load_model_from_string(content, format="protobuf")
    except OSError as error:
        hint = "; export it with external data (its weights are not needed)"
        advice = hint if error.errno == errno.EFBIG else ""
        raise InvalidValueError(
            f"{path}: cannot read the model: {error.strerror}{advice}"
        ) from None
    except DecodeError as error:
        raise InvalidValueError(f"{path}: this is no ONNX model: {error}") from None
    if not model.graph.node:
        raise InvalidValueError(f"{path}: this is no ONNX model: it has no operators")
    try:
        count = _Expansion(model.functions).count(model.graph.node)
    except RecursionError:
        raise InvalidValueError(f"{path}: its functions are nested too deeply") from None
    except InvalidValueError as error:
        raise InvalidValueError(f"{path}: {error}") from None
    if count > NODE_LIMIT:
        raise InvalidValueError(
            f"{path}: the model has {count:.7g} operators, at most {NODE_LIMIT} are read"
        )
    if not model.functions:
        return model
    try:
        return onnx.inliner.inline_local_functions(model)
    except (RuntimeError, ValueError, onnx.checker.ValidationError) as error:
        raise InvalidValueError(
            f"{path}: its functions cannot be written out: {error!s:.300}"
        ) from None


class _Expansion:
    """Counts operators as they will be once functions are written out.

    Args:
        functions: of the model.
    """

    def __init__(self, functions: Iterable[FunctionProto]) -> None:
        self._functions: dict[_Key, FunctionProto] = {
            (one.domain, one.name, one.overload): one for one in functions
        }
        self._counts: dict[_Key, int] = {}
        self._open: set[_Key] = set()

    def count(self, nodes: Iterable[NodeProto]) -> int:
        """The number of operators, those inside of others too.

        Raises:
            InvalidValueError: if a function calls itself.
        """
        return sum(self._of(node) + sum(map(self.count, _inside(node))) for node in nodes)

    def _of(self, node: NodeProto) -> int:
        """The number of operators that stand for one, without those inside of it."""
        key = (node.domain, node.op_type, node.overload)
        if key not in self._functions:
            return 1
        if key in self._open:
            raise InvalidValueError(f"the function {node.op_type!r:.80} calls itself")
        if key not in self._counts:
            self._open.add(key)
            # An upper bound keeps the numbers short, however deep functions call each other.
            total = self.count(self._functions[key].node)
            self._counts[key] = min(total, NODE_LIMIT + 1)
            self._open.discard(key)
        return self._counts[key]


def _inside(node: NodeProto) -> Iterator[Iterable[NodeProto]]:
    """The operators of each graph that an operator runs."""
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield graph.node
