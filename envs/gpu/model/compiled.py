"""What the compiler says of a design: registers, spilled words and shared memory.

They depend on the code only, which the sizes of a problem hardly change. ``compiled.npz`` has them
for every design, as triton 3.6.0 compiles it for compute capability 9.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.gpu.parameters import PARAMETERS, Shape
from archgym.reading.files import read_arrays

_LIMIT_BYTES = 1 << 24
CODE_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "gemm": ("block_m", "block_n", "block_k", "warps", "stages", "copy_engine"),
    "attention": ("block_m", "block_n", "warps", "stages"),
    "norm": ("block_rows", "block_columns", "warps", "stages"),
}
"""The parameters that change the code, by kernel."""
HEADS = (64, 128)
"""Sizes of an attention head that were compiled."""
VARIANTS = {"gemm": 4, "attention": 4, "norm": 2}
"""How many codes there are of one design, by kernel; :func:`variants` says which."""
REFUSED = -1
"""Shared memory of what a block of the GPU cannot have."""


@dataclass(frozen=True)
class Compiled:
    """What the compiler says of designs.

    Attributes:
        registers: of a thread, shape (n,).
        spills: words of a thread that do not fit, shape (n,).
        shared_bytes: of a block, shape (n,); :data:`REFUSED` if it is more than an H200 has.
    """

    registers: NDArray[np.float64]
    spills: NDArray[np.float64]
    shared_bytes: NDArray[np.float64]


def variants(shape: Shape, designs: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Which code of a design a shape needs, shape (n,).

    Products: eight-bit elements or not, split K or not. Attention: by the size of the head,
    causal or not. Normalisation: whether a row is read at once.
    """
    if shape.kernel == "gemm":
        return np.asarray(2 * (shape.dtype == "fp8") + (designs["split_k"] > 1), dtype=np.int64)
    count = len(designs["warps"])
    if shape.kernel == "attention":
        return np.full(count, 2 * HEADS.index(shape.sizes["head"]) + shape.sizes["causal"])
    return np.asarray(designs["block_columns"] >= shape.sizes["columns"], dtype=np.int64)


def compiled_facts(shape: Shape, designs: Mapping[str, NDArray[Any]]) -> Compiled:
    """Registers, spills and shared memory of designs.

    Args:
        shape: what is computed.
        designs: values by parameter, shape (n,) each; other values than those of
            :data:`~archgym.envs.gpu.parameters.PARAMETERS` take those of the nearest.
    """
    place: list[Any] = [variants(shape, designs)]
    for name in CODE_PARAMETERS[shape.kernel]:
        # One more, since one parameter can be 0.
        values = np.log2(1 + np.array(PARAMETERS[shape.kernel][name], dtype=float))
        wanted = np.log2(1 + np.asarray(designs[name], dtype=float))
        place.append(np.abs(wanted[:, None] - values[None, :]).argmin(axis=1))
    found = _tables()[shape.kernel][tuple(place)].astype(float)
    return Compiled(found[:, 0], found[:, 1], found[:, 2])


@lru_cache(maxsize=1)
def _tables() -> dict[str, NDArray[Any]]:
    file = resources.files("archgym.envs.gpu.model").joinpath("compiled.npz")
    with resources.as_file(file) as path:
        return read_arrays(path, _LIMIT_BYTES)
