"""Workloads of the accelerator environment: networks by name, by file, or layer by layer.

>>> load_workload({"network": "resnet18", "batch": 4}).macs == 4 * load_workload("resnet18").macs
True
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.accelerator.workload.networks import NETWORKS, build
from archgym.envs.accelerator.workload.user_layers import network_of
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.workload import kind_of
from archgym.reading.files import read_json

__all__ = [
    "WorkloadSpec",
    "canonical_workload",
    "load_workload",
    "network_sha256",
    "workload_card",
    "workload_label",
    "workload_names",
]

WorkloadSpec: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A workload: the name of a network, the path of a JSON or an ONNX file, or a mapping.

A mapping has exactly one of these keys, and the settings that go with it:

- ``network``: a name, with the network's own settings (``batch``, ``image_size``, ...);
- ``file``: a path; of an ONNX model with ``dimensions`` (sizes of its symbolic dimensions, by
  name, or ``INPUT:AXIS`` where they have none), ``ignore`` (types of operators to leave out) and
  ``runs`` (by the name of an operator: the branch ``then`` or ``else`` of an ``If``, the number of
  passes of a ``Loop`` or a ``Scan``);
- ``layers``: a list of layers as :func:`archgym.envs.accelerator.workload.user_layers.read_layer`
  reads
  them, with a ``name``;
- ``networks``: a list of workloads that a design runs one after another.

Each may have ``only``, a list of layer names, to run no others, and ``count``, how often it runs.
"""

_KINDS = ("network", "file", "layers", "networks")
_COMMON = ("only", "count")
_FILE_LIMIT_BYTES = 16 * 2**20
"""Size of a JSON file with layers; thousands of layers take less than a megabyte."""


def load_workload(spec: WorkloadSpec) -> Network:
    """The network of a workload; recently used ones are kept.

    Raises:
        UnknownNameError: for a network, a layer or a key that does not exist, with suggestions.
        InvalidValueError: for a setting out of range or a file that cannot be read.
        MissingDependencyError: for an ONNX file without the package ``onnx``.
    """
    chosen = canonical_workload(spec)
    stamps = []
    for path in _files(chosen):
        if os.path.exists(path):
            status = os.stat(path)
            stamps.append((status.st_mtime_ns, status.st_size))
    return _load(json.dumps(chosen, sort_keys=True), tuple(stamps))


def canonical_workload(spec: WorkloadSpec) -> dict[str, Any]:
    """The workload as a mapping that JSON can hold, with every default of a network filled in.

    Two specs of the same workload have the same canonical form; it is itself a valid spec.

    Raises:
        UnknownNameError: for an unknown network or key, with suggestions.
        InvalidValueError: for a setting of the wrong type or out of range.
    """
    if isinstance(spec, os.PathLike):
        return {"file": os.fspath(spec)}
    if isinstance(spec, str):
        return _canonical_name(spec)
    kind = kind_of(spec, _KINDS)
    rest = {key: value for key, value in spec.items() if key not in (kind, *_COMMON)}
    chosen = {
        "network": _canonical_network,
        "file": _canonical_file,
        "layers": _canonical_layers,
        "networks": _canonical_networks,
    }[kind](spec[kind], rest)
    return chosen | _common(spec)


def workload_label(spec: WorkloadSpec) -> str:
    """A short stable name for tables: ``"resnet50(batch=4)"``, the stem of a file.

    Settings that equal their defaults do not show.
    """
    chosen = canonical_workload(spec)
    if "networks" in chosen:
        label = "+".join(workload_label(part) for part in chosen["networks"])
    elif "network" in chosen:
        label = chosen["network"]
        set_apart = {
            setting.name: chosen[setting.name]
            for setting in NETWORKS[label].settings
            if chosen[setting.name] != setting.default
        }
        if set_apart:
            label += f"({', '.join(f'{k}={v}' for k, v in set_apart.items())})"
    else:
        label = Path(chosen["file"]).stem if "file" in chosen else chosen["name"]
    if "only" in chosen:
        label += f"[{', '.join(chosen['only'])}]"
    if "count" not in chosen:
        return label
    return f"{chosen['count']}x({label})" if "networks" in chosen else f"{chosen['count']}x{label}"


def workload_names() -> dict[str, str]:
    """Every named network with one line of description."""
    return {name: definition.doc for name, definition in NETWORKS.items()}


def workload_card(name: str) -> dict[str, Any]:
    """What is known about a named network, at its default settings.

    Returns:
        Description, settings, layers, multiply-accumulates, trained values, hash.

    Raises:
        UnknownNameError: if there is no network of that name.
    """
    if name not in NETWORKS:
        raise UnknownNameError("network", name, NETWORKS)
    network, parameters = build(name)
    return {
        "name": name,
        "title": NETWORKS[name].doc,
        "settings": [vars(setting) for setting in NETWORKS[name].settings],
        "layers": sum(network.counts),
        "distinct_layers": len(network.layers),
        "macs": network.macs,
        "parameters": parameters,
        "sha256": network_sha256(network),
    }


def network_sha256(network: Network) -> str:
    """Hash of the layers, their order and counts, whatever their names."""
    rows = [
        [*layer.key, count] for layer, count in zip(network.layers, network.counts, strict=True)
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _canonical_name(spec: str) -> dict[str, Any]:
    if spec in NETWORKS:
        return _canonical_network(spec, {})
    if "/" in spec or os.sep in spec or spec.lower().endswith((".json", ".onnx")):
        return {"file": spec}
    raise UnknownNameError("workload", spec, NETWORKS)


def _canonical_network(name: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(name, str) or name not in NETWORKS:
        raise UnknownNameError("network", f"{name!s:.80}", NETWORKS, "workload")
    return {"network": name} | NETWORKS[name].checked(settings)


def _canonical_file(path: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(path, str | os.PathLike):
        raise InvalidValueError(f"workload: file={path!r} must be a path")
    chosen: dict[str, Any] = {"file": os.fspath(path)}
    known = ("dimensions", "ignore", "runs") if _is_onnx(chosen["file"]) else ()
    for key in settings:
        if key not in known:
            raise UnknownNameError("workload key", key, ("file", *known, *_COMMON))
    dimensions = settings.get("dimensions", {})
    if not isinstance(dimensions, Mapping) or not all(map(_positive, dimensions.values())):
        raise InvalidValueError(
            f"workload: dimensions={dimensions!r:.80} must map names of dimensions to whole numbers"
        )
    if dimensions:
        chosen["dimensions"] = {str(name): size for name, size in dimensions.items()}
    if "ignore" in settings:
        chosen["ignore"] = _names(settings["ignore"], "ignore")
    runs = settings.get("runs", {})
    if not isinstance(runs, Mapping) or not all(
        _positive(one) or one == 0 or one in ("then", "else") for one in runs.values()
    ):
        raise InvalidValueError(
            f"workload: runs={runs!r:.80} must map names of operators to 'then', 'else' or a "
            "number of passes"
        )
    if runs:
        chosen["runs"] = {str(name): one for name, one in runs.items()}
    return chosen


def _canonical_layers(rows: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    for key in settings:
        if key != "name":
            raise UnknownNameError("workload key", key, ("layers", "name", *_COMMON))
    name = str(settings.get("name", "layers"))
    network_of(name, rows, "workload: layers")  # refuses what cannot be read
    return {"layers": [dict(row) for row in rows], "name": name}


def _canonical_networks(parts: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    for key in settings:
        raise UnknownNameError("workload key", key, ("networks", *_COMMON))
    if not isinstance(parts, Sequence) or isinstance(parts, str) or not parts:
        raise InvalidValueError(
            f"workload: networks={parts!r:.80} must be a list of at least one workload"
        )
    return {"networks": [canonical_workload(part) for part in parts]}


def _common(spec: Mapping[str, Any]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    if "only" in spec:
        chosen["only"] = _names(spec["only"], "only")
    count = spec.get("count", 1)
    if not _positive(count):
        raise InvalidValueError(f"workload: count={count!r} must be a whole number of at least 1")
    return chosen | ({"count": count} if count != 1 else {})


def _names(value: Any, key: str) -> list[str]:
    good = isinstance(value, Sequence) and not isinstance(value, str) and value
    if not good or not all(isinstance(name, str) for name in value):
        raise InvalidValueError(f"workload: {key}={value!r:.80} must be a list of names")
    return list(value)


def _positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_onnx(path: str) -> bool:
    return path.lower().endswith(".onnx")


def _files(chosen: Mapping[str, Any]) -> list[str]:
    if "networks" in chosen:
        return [path for part in chosen["networks"] for path in _files(part)]
    return [chosen["file"]] if "file" in chosen else []


@lru_cache(maxsize=64)
def _load(canonical: str, stamps: tuple[tuple[int, int], ...]) -> Network:
    """The network of a canonical spec; ``stamps`` make changed files others."""
    del stamps
    chosen = json.loads(canonical)
    if "networks" in chosen:
        network = _joined([load_workload(part) for part in chosen["networks"]])
    elif "network" in chosen:
        names = [setting.name for setting in NETWORKS[chosen["network"]].settings]
        network = build(chosen["network"], **{name: chosen[name] for name in names}).network
    elif "layers" in chosen:
        network = network_of(chosen["name"], chosen["layers"], "workload: layers")
    else:
        network = _read_file(chosen)
    if "only" in chosen:
        network = _only(network, chosen["only"])
    times = chosen.get("count", 1)
    return Network(workload_label(chosen), network.layers, tuple(times * n for n in network.counts))


def _joined(networks: Sequence[Network]) -> Network:
    """All layers one network after another, equal ones merged, named after their network."""
    merged: dict[tuple[object, ...], tuple[Layer, int]] = {}
    for network in networks:
        for layer, count in zip(network.layers, network.counts, strict=True):
            key = layer.key
            sizes = {name: getattr(layer, name) for name in layer.__dataclass_fields__}
            named = Layer(**{**sizes, "name": f"{network.name}/{layer.name}"})
            first, so_far = merged.get(key, (named, 0))
            merged[key] = (first, so_far + count)
    layers, counts = zip(*merged.values(), strict=True)
    return Network("joined", layers, counts)


def _only(network: Network, names: Sequence[str]) -> Network:
    by_name = dict(zip((layer.name for layer in network.layers), network.layers, strict=True))
    for name in names:
        if name not in by_name:
            raise UnknownNameError("layer", name, by_name, f"workload {network.name}: only")
    kept = [
        (layer, count)
        for layer, count in zip(network.layers, network.counts, strict=True)
        if layer.name in names
    ]
    layers, counts = zip(*kept, strict=True)
    return Network(network.name, layers, counts)


def _read_file(chosen: Mapping[str, Any]) -> Network:
    path = Path(chosen["file"])
    if _is_onnx(chosen["file"]):
        from archgym.envs.accelerator.workload.onnx_reader import read_onnx  # heavy

        return read_onnx(
            path,
            dimensions=chosen.get("dimensions", {}),
            ignore=chosen.get("ignore", ()),
            runs=chosen.get("runs", {}),
        )
    try:
        data = read_json(path, _FILE_LIMIT_BYTES)
    except OSError as error:
        raise InvalidValueError(f"{path}: cannot read the workload: {error.strerror}") from None
    except ValueError as error:
        raise InvalidValueError(f"{path}: the workload is no JSON: {error}") from None
    if isinstance(data, Mapping):
        if "layers" not in data:
            raise InvalidValueError(
                f"{path}: layers is missing; the file has {', '.join(data) or 'nothing'}"
            )
        data = data["layers"]
    return network_of(path.stem, data, f"{path}: layers")
