"""What the models of the kernels share: terms of a time, and how many blocks fit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from archgym.envs.gpu.model.compiled import Compiled
from archgym.envs.gpu.model.device import Device

Array = NDArray[np.float64]
Terms = dict[str, Array]
"""By name, shape (n,) each; those in ``_us`` are times."""
Bounds = Mapping[str, tuple[float, float, float]]
"""Of coefficients: least value, first guess and largest value."""

_REGISTERS = 65536
"""Of a multiprocessor, 32 bits each; handed out in units of 256 a warp."""
_UNIT = 256
_MAX_WARPS = 64
_MAX_BLOCKS = 32
_RESERVED_BYTES = 1024
"""Shared memory of each block that the system takes."""


def fitting_blocks(shared: Array, warps: Array, device: Device, compiled: Compiled) -> Array:
    """Blocks that a multiprocessor holds at a time.

    Args:
        shared: shared memory of a block, bytes, shape (n,).
        warps: of a block, shape (n,).
        device: the GPU.
        compiled: registers of each design.
    """
    of_warp = np.ceil(np.maximum(compiled.registers, 16.0) * 32 / _UNIT) * _UNIT
    by_memory = device.shared_sm_bytes // (shared + _RESERVED_BYTES)
    by_registers = _REGISTERS // (of_warp * warps)
    found = np.minimum(np.minimum(by_memory, by_registers), _MAX_WARPS // warps)
    return np.asarray(np.clip(found, 1, _MAX_BLOCKS))


def shares(found: Terms, *names: str) -> list[Array]:
    """Logarithms of terms relative to the time."""
    return [np.log2(np.maximum(found[name], 1e-3) / found["time_us"]) for name in names]
