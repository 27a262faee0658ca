"""The fused normalisation: what bounds the time of a design.

A block reads some rows of two tensors, writes their sum, and writes the sum normalised. A row that
is longer than the block's columns is read twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from archgym.envs.gpu.model.compiled import Compiled
from archgym.envs.gpu.model.device import Device
from archgym.envs.gpu.model.terms import Array, Bounds, Terms, fitting_blocks, shares

BOUNDS: Final[Bounds] = MappingProxyType(
    {
        "launch_us": (1.0, 2.5, 6.0),
        "latency": (200.0, 1200.0, 6000.0),
        "element": (0.001, 0.02, 1.0),
        "memory_rate": (0.4, 0.85, 1.0),
        "again": (0.01, 0.5, 1.0),
        "spill": (0.001, 0.2, 20.0),
        "overlap": (1.0, 3.0, 8.0),
    }
)
"""The coefficients: least value, first guess and largest value.

``launch_us`` is a time; ``latency`` (of a pass over a part of a row) and ``element`` (of a value
that a multiprocessor handles) are cycles; ``memory_rate`` the share of the data sheet's bandwidth;
``again`` the share of the second reading that the device memory sees; ``spill`` a factor on the
work by the logarithm of the spilled words; ``overlap`` the exponent by which bounds add up.
"""


def terms(
    designs: Mapping[str, Array],
    sizes: Mapping[str, Array],
    device: Device,
    compiled: Compiled,
    fitted: Mapping[str, float],
) -> Terms:
    """What bounds each design's time, us, shape (n,) each; ``time_us`` is the whole.

    Args:
        designs: values by parameter, shape (n,) each.
        sizes: ``rows``, ``columns`` and ``element`` (bytes), shape (n,) each.
        device: the GPU.
        compiled: registers, spills and shared memory of each design.
        fitted: coefficients, as :data:`BOUNDS` describes them.
    """
    c = fitted
    high, wide, warps = designs["block_rows"], designs["block_columns"], designs["warps"]
    rows, columns, element = sizes["rows"], sizes["columns"], sizes["element"]
    once = wide >= columns
    parts = np.ceil(columns / wide)
    blocks = np.ceil(rows / high)
    every, mhz = device.multiprocessors, device.clock_mhz
    occupancy = fitting_blocks(np.maximum(compiled.shared_bytes, 0.0), warps, device, compiled)
    each = np.ceil(blocks / every)
    resident = np.minimum(occupancy, each)
    spilled = 1.0 + c["spill"] * np.log1p(compiled.spills)
    passes = np.where(once, 1.0, 2.0)
    handled = blocks * parts * high * wide * passes
    ahead = np.where(once, 1.0, np.maximum(1.0, designs["stages"] - 1))
    moved = rows * columns * element * np.where(once, 4.0, 4.0 + 2.0 * c["again"])
    found = {
        "memory_us": moved / (device.memory_gb_per_s * 1e3 * c["memory_rate"]),
        "element_us": handled * c["element"] * spilled / (every * mhz),
        "waiting_us": each / resident * parts * passes * c["latency"] / ahead / mhz,
    }
    p = c["overlap"]
    total = sum(found[name] ** p for name in ("memory_us", "element_us", "waiting_us"))
    found["time_us"] = c["launch_us"] + np.asarray(total ** (1 / p))
    found["occupancy"], found["resident"], found["each"] = occupancy, resident, each
    found["waves"], found["even"] = blocks / (every * occupancy), blocks / every / each
    found["parts"], found["memory_bytes"], found["flops"] = parts, moved, 6.0 * rows * columns
    found["footprint_bytes"] = rows * columns * element * 4.0
    found["l2_bytes"] = rows * columns * element * np.where(once, 4.0, 6.0)
    return found


def features(
    designs: Mapping[str, Array], sizes: Mapping[str, Array], found: Terms, compiled: Compiled
) -> Array:
    """What the correction looks at, shape (n, features)."""
    high, wide, warps = designs["block_rows"], designs["block_columns"], designs["warps"]
    columns = [np.log2(high), np.log2(wide), np.log2(warps), designs["stages"]]
    columns += [compiled.registers, np.log1p(compiled.spills), found["occupancy"]]
    columns += [found["resident"], found["parts"], np.log2(found["waves"]), found["even"]]
    columns += shares(found, "memory_us", "element_us", "waiting_us")
    columns += [np.log2(high * wide / warps), np.log2(np.minimum(wide, sizes["columns"]) / wide)]
    columns += [np.log2(high * np.minimum(wide, sizes["columns"]) / warps)]
    return np.stack(columns, axis=1)
