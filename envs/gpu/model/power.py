"""Power while a kernel runs again and again: what each part of the GPU takes, up to the limit.

The power is that of the idle GPU, and of each part in the share of the time that it is busy:
matrix units, other work of the multiprocessors, the L2 cache, the device memory, and the
multiprocessors that have blocks at all. The memory of one GPU takes more than that of another of
the same kind. Repeated launches find in the L2 cache what fits into it.
As the power nears the limit, clocks fall.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from archgym.envs.gpu.model.device import Device
from archgym.envs.gpu.model.terms import Array, Bounds, Terms

L2_BYTES_PER_CYCLE: Final = 64.0
"""That a multiprocessor can take from the L2 cache."""
BOUNDS: Final[Bounds] = MappingProxyType(
    {
        "multiply": (0.1, 150.0, 2000.0),
        "work": (0.1, 150.0, 3000.0),
        "l2": (0.1, 150.0, 2000.0),
        "memory": (0.1, 150.0, 2000.0),
        "active": (0.1, 150.0, 2000.0),
        "limit": (690.0, 740.0, 790.0),
    }
)
"""The coefficients: least value, first guess and largest value, W.

Each is the power of a part that is busy all the time, but ``limit``: what is not exceeded, which is
not exactly that of the data sheet, since the limit acts later than the time of a measurement.
"""
_HELD: Final = 0.8
_SHARPNESS: Final = 4.0
"""Half of what a kernel reads is found in the L2 cache if all its data is 0.8 of the cache's size;
and the exponent by which this falls off."""
_BEND: Final = 8.0
"""Exponent by which power approaches the limit."""
_WORK: Final = ("reading_us", "softmax_us", "element_us")
"""What multiprocessors do beside multiplying, by kernel: reads of shared memory, or arithmetic."""


def missed(found: Terms, device: Device) -> Array:
    """Share of the traffic of the device memory that is left when launches repeat, shape (n,)."""
    held = _HELD * device.l2_mb * 1e6 / found["footprint_bytes"]
    return np.asarray(1 / (1 + held**_SHARPNESS))


def rates(
    found: Terms, sizes: Mapping[str, Array], busy_us: Array, device: Device
) -> dict[str, Array]:
    """Share of the time that each part is busy, shape (n,) each; names as in :data:`BOUNDS`.

    Args:
        found: terms of the kernel.
        sizes: with ``flops``, of a multiprocessor's matrix units in a cycle.
        busy_us: time of a launch without pause, us.
        device: the GPU.
    """
    cycles = busy_us * device.clock_mhz * device.multiprocessors
    work = next(found[name] for name in _WORK if name in found)
    memory = missed(found, device) * found["memory_bytes"]
    return {
        "multiply": found["flops"] / (cycles * sizes["flops"]),
        "work": work / busy_us,
        "l2": found["l2_bytes"] / (cycles * L2_BYTES_PER_CYCLE),
        "memory": memory / (busy_us * device.memory_gb_per_s * 1e3),
        "active": found["even"] * np.minimum(1.0, found["each"]),
    }


def power_w(
    busy: Mapping[str, Array],
    sizes: Mapping[str, Array],
    device: Device,
    fitted: Mapping[str, float],
) -> Array:
    """Power, W, shape (n,).

    Args:
        busy: what :func:`rates` gives.
        sizes: with ``memory_extra_w``, what the memory of each row's GPU takes more than usual when
            it is busy all the time, W.
        device: the GPU, whose idle power and limit count; coefficients are of an H200, and those of
            a GPU with another limit are taken to be in proportion to it.
        fitted: coefficients, as :data:`BOUNDS` describes them.
    """
    scale = device.power_w / _FITTED_LIMIT_W
    parts = scale * np.asarray(sum(fitted[name] * rate for name, rate in busy.items()))
    wanted = device.idle_w + parts + sizes["memory_extra_w"] * busy["memory"]
    # How far the limit may be exceeded was measured, and learned, where warpgroups multiply.
    over = fitted["limit"] / _FITTED_LIMIT_W if device.warpgroups else 1.0
    limit = device.power_w * over
    return np.asarray((wanted**-_BEND + limit**-_BEND) ** (-1 / _BEND))


_FITTED_LIMIT_W: Final = 700.0
"""Of the H200, W."""
