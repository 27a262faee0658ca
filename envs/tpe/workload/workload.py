"""Workloads of the TPE environment: matrix products and the operands that flow through them.

>>> load_workload("digits_cnn").macs
235520
>>> load_workload({"gemm": [64, 256, 64], "a": {"normal": 25}, "b": "uniform"}).label
'gemm(64x256x64, b=uniform)'
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

from archgym.envs.tpe.workload.networks import NETWORKS, Product, network_products
from archgym.envs.tpe.workload.operands import WIDEST_OPERAND, OperandDistribution
from archgym.envs.tpe.workload.signals import (
    DEFAULT_SIGMA,
    DEFAULT_SIGNAL,
    canonical_signal,
    observed_card,
    observed_names,
    read_signal,
    signal_of_counts,
)
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.workload import kind_of

__all__ = [
    "DEFAULT_WORKLOAD",
    "Layer",
    "Workload",
    "WorkloadSpec",
    "canonical_workload",
    "load_workload",
    "workload_card",
    "workload_label",
    "workload_names",
]

WorkloadSpec: TypeAlias = str | Mapping[str, Any]
"""A workload: the name of a network, or a mapping with one of the keys ``gemm``, ``network``,
``observed`` and the settings that go with it."""

DEFAULT_WORKLOAD = "resnet18"

#: Most multiplications of a workload: counts beyond are no longer exact in floating point, and
#: numbers of tiles could overflow.
_MAX_MACS = 2**53

_KINDS = ("gemm", "network", "observed")
_ENDINGS = (".json", ".onnx", ".yaml", ".yml", ".csv", ".txt")
"""Of files that someone may take for a workload."""
_KEYS = {
    "gemm": ("gemm", "a", "b", "count", "bits"),
    "network": ("network", "a", "b", "batch", "bits", "encode"),
    "observed": ("observed", "bits", "encode"),
}
_ENCODED = ("activations", "weights")
_DEFAULTS: Mapping[str, Any] = {
    "count": 1,
    "batch": 1,
    "a": DEFAULT_SIGNAL,
    "b": DEFAULT_SIGNAL,
    "bits": [8, 8],
    "encode": _ENCODED[0],
}


@dataclass(frozen=True)
class Layer:
    """Matrix products (m, k) by (k, n) of one shape with their operands.

    Attributes:
        name: of the layer.
        m: rows of A.
        k: length of a dot product.
        n: columns of B.
        count: how many there are.
        a: operand A, the encoded one.
        b: operand B.
    """

    name: str
    m: int
    k: int
    n: int
    count: int
    a: OperandDistribution
    b: OperandDistribution

    @property
    def macs(self) -> int:
        """Multiplications of all of them."""
        return self.m * self.k * self.n * self.count


@dataclass(frozen=True)
class Workload:
    """What an array runs, layer after layer.

    Attributes:
        label: short stable name.
        layers: in order; equal ones are one.
    """

    label: str
    layers: tuple[Layer, ...] = field(repr=False)

    @property
    def macs(self) -> int:
        """Multiplications of all layers."""
        return sum(layer.macs for layer in self.layers)

    @property
    def widths(self) -> tuple[int, int]:
        """Bits of operands A and B."""
        return self.layers[0].a.width, self.layers[0].b.width

    @cached_property
    def sha256(self) -> str:
        """Hash of shapes and operands; equal hashes mean equal workloads."""
        digest = hashlib.sha256()
        for layer in self.layers:
            shape = (layer.m, layer.k, layer.n, layer.count)
            digest.update(repr(shape).encode())
            digest.update(f"{layer.a.key};{layer.b.key}".encode())
        return digest.hexdigest()


def load_workload(spec: WorkloadSpec) -> Workload:
    """The layers of a workload.

    Args:
        spec: a name (``"resnet18"``, ``"digits_cnn"``) or a mapping:

            - ``{"gemm": [m, k, n], "a": ..., "b": ..., "count": 1}``,
            - ``{"network": "resnet50", "batch": 8, "a": ..., "b": ..., "encode": "weights"}``,
            - ``{"observed": "digits_cnn", "encode": "weights"}``,

            each also with ``bits``, of the operands, 8 by default, or ``[bits of a, bits of b]``.

            A signal (``a``: activations, the encoded operand; ``b``: weights) is ``"uniform"``,
            ``{"normal": sigma}`` in units of the last place of 8 bits, ``{"constant": value}``,
            ``{"histogram": [256 counts of the codes -128 to 127]}`` or
            ``{"observed": "digits_cnn"}``, what that network's same operand carries, all layers
            together; ``{"normal": 25}`` by default. ``encode: weights`` swaps the two matrices
            (C' = B' A'), so that digits of the weights are counted.

    Raises:
        UnknownNameError: for an unknown workload or key, with suggestions.
        InvalidValueError: for a setting of the wrong type or out of range.
    """
    return _load(json.dumps(canonical_workload(spec), sort_keys=True))


def canonical_workload(spec: WorkloadSpec) -> dict[str, Any]:
    """The workload as a mapping that JSON can hold, with every default filled in.

    Raises:
        UnknownNameError: for an unknown workload or key, with suggestions.
        InvalidValueError: for a setting of the wrong type or out of range.
    """
    kind, spec = _kind_of(spec)
    chosen: dict[str, Any] = {kind: _shape(spec[kind]) if kind == "gemm" else spec[kind]}
    known = {"observed": observed_names(), "network": NETWORKS}.get(kind)
    if known is not None and (not isinstance(spec[kind], str) or spec[kind] not in known):
        what = "observed workload" if kind == "observed" else kind
        raise UnknownNameError(what, spec[kind], known, "workload")
    readers: dict[str, Callable[[Any], Any]] = {
        "count": lambda value: _positive(value, "count"),
        "batch": lambda value: _positive(value, "batch"),
        "a": lambda value: canonical_signal(value, "a"),
        "b": lambda value: canonical_signal(value, "b"),
        "bits": _bits,
        "encode": _encoded,
    }
    for key in _KEYS[kind][1:]:
        chosen[key] = readers[key](spec.get(key, _DEFAULTS[key]))
    return chosen


def _kind_of(spec: WorkloadSpec) -> tuple[str, Mapping[str, Any]]:
    """The kind of a workload, and its spec as a mapping with known keys only."""
    if isinstance(spec, str):
        if spec not in workload_names():
            if "/" in spec or spec.lower().endswith(_ENDINGS):
                raise InvalidValueError(
                    f"workload {spec!r:.80}: no files are read; give a name, or sizes of a product "
                    "as a mapping: {gemm: [m, k, n]}"
                )
            raise UnknownNameError("workload", spec, workload_names())
        spec = {"network" if spec in NETWORKS else "observed": spec}
    settings = {key for keys in _KEYS.values() for key in keys}.difference(_KINDS)
    kind = kind_of(spec, _KINDS, settings=settings, forms="a name")
    for key in spec:
        if key not in _KEYS[kind]:
            raise UnknownNameError("workload key", key, _KEYS[kind])
    return kind, spec


def workload_label(spec: WorkloadSpec) -> str:
    """A short stable name for tables; settings that equal their defaults do not show."""
    chosen = canonical_workload(spec)
    settings = [
        f"{key}={_text(key, value)}"
        for key, value in chosen.items()
        if key in _DEFAULTS and value != _DEFAULTS[key]
    ]
    if "gemm" in chosen:
        shape = "x".join(map(str, chosen["gemm"]))
        return f"gemm({', '.join([shape, *settings])})"
    name = str(chosen.get("network") or chosen.get("observed"))
    return f"{name}({', '.join(settings)})" if settings else name


def _text(key: str, value: Any) -> str:
    if key in ("a", "b"):
        return read_signal(value, key).name
    return "x".join(map(str, value)) if key == "bits" else str(value)


def workload_names() -> dict[str, str]:
    """Every named workload with one line of description."""
    return {
        **{
            name: f"{title}, operands normal({DEFAULT_SIGMA:g})" for name, title in NETWORKS.items()
        },
        **{name: str(workload_card(name)["title"]) for name in observed_names()},
    }


def workload_card(name: str) -> dict[str, Any]:
    """What is known about a named workload: where it comes from, its shapes, its operands.

    Raises:
        UnknownNameError: if there is no workload of that name.
    """
    if name in NETWORKS:
        products = [vars(product) for product in network_products(name)]
        return {"title": NETWORKS[name], "kind": "network", "products": products}
    if name not in observed_names():
        raise UnknownNameError("workload", name, [*NETWORKS, *observed_names()])
    return {"kind": "observed", **observed_card(name)}


@lru_cache(maxsize=128)
def _load(canonical: str) -> Workload:
    spec = json.loads(canonical)
    label = workload_label(spec)
    if "observed" in spec:
        products = [
            (
                Product(p["name"], p["m"], p["k"], p["n"], p["count"], p["weighted"]),
                signal_of_counts(f"{spec['observed']}.{p['name']}.a", p["a"]),
                signal_of_counts(f"{spec['observed']}.{p['name']}.b", p["b"]),
            )
            for p in observed_card(spec["observed"])["products"]
        ]
    else:
        a, b = read_signal(spec["a"], "a"), read_signal(spec["b"], "b")
        if "gemm" in spec:
            m, k, n = spec["gemm"]
            found: tuple[Product, ...] = (Product("gemm", m, k, n, spec["count"]),)
        else:
            found = network_products(spec["network"], spec["batch"])
        products = [(product, a, b if product.weighted else a) for product in found]
    bits_a, bits_b = spec["bits"]
    layers = [_layer(product, a.at(bits_a), b.at(bits_b)) for product, a, b in products]
    if spec.get("encode") == "weights":
        layers = [Layer(x.name, x.n, x.k, x.m, x.count, a=x.b, b=x.a) for x in layers]
    workload = Workload(label, tuple(layers))
    if workload.macs > _MAX_MACS:
        raise InvalidValueError(
            f"workload {label}: {workload.macs:.3g} multiplications, allowed are at most 2^53 "
            f"({_MAX_MACS:.3g}); lower the sizes, count or batch"
        )
    return workload


def _layer(product: Product, a: OperandDistribution, b: OperandDistribution) -> Layer:
    return Layer(product.name, product.m, product.k, product.n, product.count, a, b)


def _shape(value: Any) -> list[int]:
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise InvalidValueError(f"workload: gemm={value!r} must be three integers: m, k, n")
    return [_positive(size, f"gemm {name}") for name, size in zip("mkn", value, strict=True)]


def _bits(value: Any) -> list[int]:
    both = [value, value] if not isinstance(value, (list, tuple)) else list(value)
    allowed = range(2, WIDEST_OPERAND + 1)
    if len(both) != 2 or any(isinstance(b, bool) or b not in allowed for b in both):
        raise InvalidValueError(
            f"workload: bits={value!r} must be an integer from 2 to {WIDEST_OPERAND}, or one for "
            "each operand"
        )
    return both


def _encoded(value: Any) -> str:
    if value not in _ENCODED:
        raise UnknownNameError("operand", value, _ENCODED, "workload: encode")
    return str(value)


def _positive(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidValueError(f"workload: {name}={value!r} must be an integer of at least 1")
    return value
