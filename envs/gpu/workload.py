"""Workloads: the shapes that were measured by name, and any other matrix product."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from archgym.envs.gpu.parameters import DTYPES, SHAPES, Shape
from archgym.errors import InvalidValueError, UnknownNameError

DEFAULT_WORKLOAD = "square_2048"
_MAX_SIZE = 1 << 20
_KERNELS = {
    "gemm": ("m", "n", "k"),
    "attention": ("batch", "heads", "length", "head"),
    "norm": ("rows", "columns"),
}
_DTYPES = {"gemm": DTYPES, "attention": ("fp16",), "norm": ("fp16",)}
_HEADS = (64, 128)
_DOCS = {"gemm": "a product", "attention": "attention", "norm": "a normalisation"}


def shape_of(spec: Any) -> Shape:
    """The shape that a workload names.

    >>> shape_of({"gemm": [64, 4096, 4096], "dtype": "bf16"}).name
    'gemm_64x4096x4096_bf16'
    >>> shape_of({"attention": [1, 16, 2048, 64], "causal": True}).name
    'attention_1x16x2048x64_causal'

    Args:
        spec: a name, or a mapping of ``gemm`` (m, n, k) and, if wanted, ``dtype``; of
            ``attention`` (batch, heads, length, size of a head) and, if wanted, ``causal``; or of
            ``norm`` (rows, columns).

    Raises:
        UnknownNameError, InvalidValueError: if there is no such workload.
    """
    known = {shape.name: shape for shape in SHAPES}
    if isinstance(spec, str):
        if spec not in known:
            raise UnknownNameError("workload", spec, known)
        return known[spec]
    kernels = [name for name in _KERNELS if isinstance(spec, Mapping) and name in spec]
    if len(kernels) != 1:
        raise InvalidValueError(
            f"workload {spec!r:.80} must be a name, or a mapping with one of 'gemm': [m, n, k], "
            "'attention': [batch, heads, length, head] and 'norm': [rows, columns]"
        )
    kernel = kernels[0]
    allowed = (kernel, "causal") if kernel == "attention" else (kernel, "dtype")
    for key in spec:
        if key not in allowed:
            raise UnknownNameError("key of the workload", str(key), allowed)
    sizes = _sizes(kernel, spec[kernel])
    if kernel == "attention":
        causal = spec.get("causal", False)
        if not isinstance(causal, bool):
            raise InvalidValueError(f"workload: causal={causal!r:.80} must be true or false")
        sizes["causal"] = int(causal)
    dtype = spec.get("dtype", "fp16")
    if dtype not in _DTYPES[kernel]:
        raise UnknownNameError("dtype of the workload", str(dtype), _DTYPES[kernel])
    numbers = "x".join(str(sizes[name]) for name in _KERNELS[kernel])
    ending = {"gemm": f"_{dtype}", "attention": "_causal" if sizes.get("causal") else "_full"}
    name = f"{kernel}_{numbers}{ending.get(kernel, '')}"
    return Shape(name, kernel, dtype, sizes, _DOCS[kernel])


def _sizes(kernel: str, given: Any) -> dict[str, int]:
    names = _KERNELS[kernel]
    good = isinstance(given, list | tuple) and len(given) == len(names)
    if not good or not all(type(size) is int and 1 <= size <= _MAX_SIZE for size in given):
        count = {2: "two", 3: "three", 4: "four"}[len(names)]
        raise InvalidValueError(
            f"workload: {kernel}={given!r:.80} must be {count} integers from 1 to {_MAX_SIZE:,}: "
            f"{', '.join(names)}"
        )
    sizes = dict(zip(names, given, strict=True))
    if kernel == "attention" and sizes["head"] not in _HEADS:
        raise InvalidValueError(
            f"workload: attention={given!r:.80} has a head of {sizes['head']}; allowed are "
            f"{', '.join(map(str, _HEADS))}"
        )
    return sizes


def shape_sha256(shape: Shape) -> str:
    """Hash of what is computed; the name does not matter."""
    content = [shape.kernel, shape.dtype, dict(sorted(shape.sizes.items()))]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
