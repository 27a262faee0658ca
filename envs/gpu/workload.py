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
_KEYS = ("gemm", "dtype")


def shape_of(spec: Any) -> Shape:
    """The shape that a workload names.

    >>> shape_of({"gemm": [64, 4096, 4096], "dtype": "bf16"}).name
    'gemm_64x4096x4096_bf16'

    Args:
        spec: a name, or a mapping of ``gemm`` (sizes m, n, k) and, if wanted, ``dtype``.

    Raises:
        UnknownNameError, InvalidValueError: if there is no such workload.
    """
    known = {shape.name: shape for shape in SHAPES}
    if isinstance(spec, str):
        if spec not in known:
            raise UnknownNameError("workload", spec, known)
        return known[spec]
    if not isinstance(spec, Mapping) or "gemm" not in spec:
        raise InvalidValueError(
            f"workload {spec!r:.80} must be a name, or a mapping with 'gemm': [m, n, k]"
        )
    for key in spec:
        if key not in _KEYS:
            raise UnknownNameError("key of the workload", str(key), _KEYS)
    sizes, dtype = spec["gemm"], spec.get("dtype", "fp16")
    if dtype not in DTYPES:
        raise UnknownNameError("dtype of the workload", str(dtype), DTYPES)
    good = isinstance(sizes, list | tuple) and len(sizes) == 3
    if not good or not all(type(size) is int and 1 <= size <= _MAX_SIZE for size in sizes):
        raise InvalidValueError(
            f"workload: gemm={sizes!r:.80} must be three integers from 1 to {_MAX_SIZE:,}: m, n, k"
        )
    m, n, k = sizes
    name = f"gemm_{m}x{n}x{k}_{dtype}"
    return Shape(name, "gemm", dtype, {"m": m, "n": n, "k": k}, "a product")


def shape_sha256(shape: Shape) -> str:
    """Hash of what is computed; the name does not matter."""
    content = [shape.kernel, shape.dtype, dict(sorted(shape.sizes.items()))]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
