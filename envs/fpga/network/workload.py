"""Workloads: networks by name, as a mapping, or in a JSON file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from archgym.envs.fpga.network.named import WORKLOADS, made_network, named_network
from archgym.envs.fpga.network.spec import Network
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.reading.files import meant_file, read_json

__all__ = ["network_of", "network_sha256"]

_MAX_LAYERS: Final = 12
_MAX_SIZE: Final = 1024
_MAX_PRODUCTS: Final = 1 << 22
_FILE_LIMIT_BYTES: Final = 1 << 24
_LAYER_KEYS: Final = ("dense", "conv", "channels", "weights", "bias")


def network_of(spec: Any) -> Network:
    """The network that a workload names.

    >>> network_of({"input": [6, 6, 1], "layers": [{"conv": [3, 3], "channels": 2}]}).products
    288

    Args:
        spec: a name; path of a JSON file with a mapping; or a mapping of ``input``, ``[elements]``
            or ``[rows, columns, channels]``, and ``layers``, each ``{"dense": outputs}`` or
            ``{"conv": [rows, columns], "channels": outputs}``. A layer may have ``weights`` (for
            each output its inputs, by row, column and channel of the window) and ``bias``, which
            is zero beside weights alone; otherwise they are random. Convolutions come before
            dense layers.

    Raises:
        UnknownNameError, InvalidValueError: if there is no such network.
    """
    if isinstance(spec, str) and not spec.endswith(".json"):
        if spec not in WORKLOADS:
            raise UnknownNameError("workload", spec, WORKLOADS)
        return named_network(spec)
    if not isinstance(spec, str | Path):
        return _described(spec, "network")
    path = Path(spec)
    try:
        data = read_json(path, _FILE_LIMIT_BYTES)
    except FileNotFoundError:
        hint = meant_file(path)
        raise InvalidValueError(f"workload: there is no file {path}{hint}") from None
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"workload {path}: {error}") from None
    try:
        return _described(data, path.stem)
    except (UnknownNameError, InvalidValueError) as error:
        error.args = (f"{path}: {error}",)
        raise


def _described(spec: Any, name: str) -> Network:
    """The network that a mapping describes, called ``name`` unless it says otherwise."""
    if not isinstance(spec, Mapping):
        raise InvalidValueError(
            f"workload {spec!r:.80} must be a name, a path that ends in .json, or a mapping with "
            "'input' and 'layers'"
        )
    for key in spec:
        if key not in ("input", "layers", "name"):
            raise UnknownNameError("key of the workload", str(key), ("input", "layers", "name"))
    shape = _sizes("input", spec.get("input"), (1, 3))
    layers = _layers(spec.get("layers"))
    _check_shapes(shape, layers)
    return made_network(str(spec.get("name", name)), "a network", shape, layers)


def _sizes(field: str, given: Any, lengths: tuple[int, ...]) -> list[int]:
    good = isinstance(given, list | tuple) and len(given) in lengths
    if not good or not all(type(size) is int and 1 <= size <= _MAX_SIZE for size in given):
        counts = " or ".join(str(length) for length in lengths)
        raise InvalidValueError(
            f"workload: {field}={given!r:.80} must be a list of {counts} integers from 1 to "
            f"{_MAX_SIZE}"
        )
    return list(given)


def _layers(given: Any) -> list[Mapping[str, Any]]:
    if not isinstance(given, list | tuple) or not 1 <= len(given) <= _MAX_LAYERS:
        raise InvalidValueError(
            f"workload: layers={given!r:.80} must be a list of 1 to {_MAX_LAYERS} layers"
        )
    made: list[Mapping[str, Any]] = []
    for place, layer in enumerate(given):
        field = f"layers[{place}]"
        if not isinstance(layer, Mapping) or ("dense" in layer) == ("conv" in layer):
            raise InvalidValueError(
                f"workload: {field}={layer!r:.80} must be a mapping with 'dense' or with 'conv' "
                "and 'channels'"
            )
        for key in layer:
            if key not in _LAYER_KEYS:
                raise UnknownNameError("key", str(key), _LAYER_KEYS, f"workload: {field}")
        checked = dict(layer)
        if "conv" in layer:
            checked["conv"] = _sizes(f"{field}.conv", layer["conv"], (2,))
            _sizes(f"{field}.channels", [layer.get("channels")], (1,))
        else:
            _sizes(f"{field}.dense", [layer["dense"]], (1,))
        made.append(checked)
    return made


def _check_shapes(shape: list[int], layers: list[Mapping[str, Any]]) -> None:
    """Refuses layers that do not fit to each other."""
    height, width, channels = shape if len(shape) == 3 else (1, 1, shape[0])
    products, dense = 0, False
    for place, layer in enumerate(layers):
        field = f"workload: layers[{place}]"
        if "conv" in layer:
            rows, columns = layer["conv"]
            if dense or rows > height or columns > width:
                here = "a dense layer" if dense else f"{height} x {width} positions"
                raise InvalidValueError(f"{field}.conv={layer['conv']} cannot follow {here}")
            reads, outputs = rows * columns * channels, layer["channels"]
            height, width, channels = height - rows + 1, width - columns + 1, outputs
            products += reads * outputs * height * width
        else:
            reads, outputs, dense = height * width * channels, layer["dense"], True
            height, width, channels = 1, 1, outputs
            products += reads * outputs
        for key, wanted in (("weights", (outputs, reads)), ("bias", (outputs,))):
            if key in layer:
                _check_numbers(f"{field}.{key}", layer[key], wanted)
    if products > _MAX_PRODUCTS:
        raise InvalidValueError(
            f"workload: the network has {products} products, at most {_MAX_PRODUCTS} are allowed"
        )


def _check_numbers(field: str, given: Any, shape: tuple[int, ...]) -> None:
    try:
        numbers = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array(np.nan)
    if numbers.shape != shape or not np.isfinite(numbers).all() or np.abs(numbers).max() > 1e9:
        sizes = " x ".join(str(size) for size in shape)
        raise InvalidValueError(f"{field} must be {sizes} finite numbers, none above 1e9")


def network_sha256(network: Network) -> str:
    """Hash of what is computed; the name does not matter."""
    digest = hashlib.sha256()
    digest.update(np.ascontiguousarray(network.inputs).tobytes())
    for layer in network.layers:
        sizes = (layer.height, layer.width, layer.channels, layer.kernel_height, layer.kernel_width)
        digest.update(f"{layer.kind} {sizes} {layer.outputs} ".encode())
        digest.update(np.ascontiguousarray(layer.weights).tobytes())
        digest.update(np.ascontiguousarray(layer.bias).tobytes())
    return digest.hexdigest()
