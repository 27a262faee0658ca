"""Matrix products: what bounds the time of a design, in cycles of a multiprocessor.

A product is cut into tiles, each the work of one block. A multiprocessor holds as many blocks as
its shared memory and registers allow, and blocks run in waves. In each step along K a block needs
the matrix units, the path from the L2 cache, and shared memory; the loads of later steps are under
way meanwhile, as far as the pipeline has stages.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from archgym.envs.gpu.model.device import Device
from archgym.envs.gpu.parameters import BYTES

Array = NDArray[np.float64]
Coefficients = Mapping[str, float]

REGISTERS = 65536
"""Of a multiprocessor, 32 bits each."""
MAX_WARPS = 64
L2_BYTES_PER_CYCLE = 64.0
"""That a multiprocessor can take from the L2 cache."""

BOUNDS: Mapping[str, tuple[float, float, float]] = {
    "launch_us": (1.0, 2.0, 5.0),
    "latency": (300.0, 900.0, 2500.0),
    "block": (200.0, 1200.0, 6000.0),
    "step": (5.0, 30.0, 300.0),
    "warpgroup_rate": (0.4, 0.75, 1.0),
    "warpgroup_half": (1.0, 20.0, 100.0),
    "warp_rate": (0.2, 0.45, 0.85),
    "warp_half": (1.0, 8.0, 60.0),
    "narrow": (0.01, 0.3, 1.0),
    "l2_rate": (0.4, 0.7, 1.0),
    "l2_shared": (0.4, 0.8, 1.0),
    "fragments": (0.2, 0.5, 3.0),
    "memory_rate": (0.5, 0.85, 1.0),
    "spill": (0.1, 2.0, 20.0),
    "overlap": (1.3, 4.0, 8.0),
    "store": (0.2, 1.0, 20.0),
    "sum_us": (1.0, 2.5, 9.0),
}
"""The coefficients of the model: least value, first guess and largest value.

``launch_us`` and ``sum_us`` (the second kernel of a product with split K) are times; ``latency``
(of a load), ``block`` (start and end of a block), ``step`` (barriers of a step) are cycles;
``*_rate`` shares of what the data sheet promises, half of which narrow tiles of ``*_half`` columns
reach; ``narrow`` the power by which tiles of few rows lose; ``fragments``, ``spill`` and ``store``
factors on traffic; ``overlap`` the exponent by which bounds add up (large: the largest counts).
"""


def shared_bytes(designs: Mapping[str, Array], element: float, *, warpgroups: bool) -> Array:
    """Shared memory of the pipeline's buffers of a block: a design needs at least that."""
    step = (designs["block_m"] + designs["block_n"]) * designs["block_k"] * element
    together = uses_warpgroups(designs, warpgroups=warpgroups)
    return np.asarray(np.where(together, designs["stages"], designs["stages"] - 1) * step)


def uses_warpgroups(designs: Mapping[str, Array], *, warpgroups: bool) -> NDArray[np.bool_]:
    """Whether four warps multiply together, with both operands in shared memory."""
    return np.asarray(warpgroups & (designs["block_m"] >= 64) & (designs["warps"] % 4 == 0))


def registers(designs: Mapping[str, Array]) -> Array:
    """Registers of a thread, about: its share of the tile, fragments and addresses."""
    tile = designs["block_m"] * designs["block_n"] / (32 * designs["warps"])
    return np.asarray(np.minimum(255.0, 40.0 + 1.25 * tile))


def parts(
    designs: Mapping[str, Array],
    sizes: Mapping[str, Array],
    dtype: str,
    device: Device,
    fitted: Coefficients,
) -> dict[str, Array]:
    """What bounds each design's time, us, shape (n,) each; ``time_us`` is the whole.

    Args:
        designs: values by parameter, shape (n,) each.
        sizes: ``m``, ``n``, ``k``, shape (n,) each.
        dtype: element type.
        device: the GPU.
        fitted: coefficients, as :data:`BOUNDS` describes them.
    """
    c, element = fitted, float(BYTES[dtype])
    bm, bn, bk = designs["block_m"], designs["block_n"], designs["block_k"]
    split, warps, stages = designs["split_k"], designs["warps"], designs["stages"]
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    tiles_m, tiles_n = np.ceil(m / bm), np.ceil(n / bn)
    steps = np.ceil(np.ceil(k / bk) / split)
    blocks = tiles_m * tiles_n * split

    shared = shared_bytes(designs, element, warpgroups=device.warpgroups)
    used = registers(designs)
    occupancy = np.minimum(
        device.shared_sm_bytes // (shared + 1024.0), REGISTERS // (used * 32 * warps)
    )
    occupancy = np.clip(np.minimum(occupancy, MAX_WARPS // warps), 1, 32)
    each = np.ceil(blocks / device.multiprocessors)
    resident = np.minimum(occupancy, each)

    # Cycles of a step of one block, alone on a multiprocessor.
    together = uses_warpgroups(designs, warpgroups=device.warpgroups)
    rate = device.flops_per_cycle[dtype] * np.where(
        together,
        c["warpgroup_rate"] * bn / (bn + c["warpgroup_half"]),
        c["warp_rate"] * bn / (bn + c["warp_half"]) * np.minimum(1.0, bm / 32) ** c["narrow"],
    )
    tile = bm * bn / (32 * warps)
    spilled = 1.0 + c["spill"] * np.maximum(0.0, (tile - 192) / 64)
    multiply = 2 * bm * bn * bk / rate * spilled
    load = (bm + bn) * bk * element / (L2_BYTES_PER_CYCLE * c["l2_rate"])
    # Without warpgroups each warp reads its fragments: a square of warps shares the tile.
    rows = np.minimum(warps, np.maximum(1.0, bm / 16))
    rows = np.minimum(rows, np.sqrt(warps * np.maximum(bm / bn, 1.0)))
    fragments = (bm * warps / rows + bn * rows) * bk * element / 128.0 * c["fragments"]
    fragments = np.where(together, 0.0, fragments)
    waiting = (c["latency"] + load) / np.maximum(1.0, stages - 1) + c["step"]

    def round_of(blocks_here: Array) -> Array:
        p = c["overlap"]
        busy, loading = blocks_here * multiply, blocks_here * load
        reading, alone = blocks_here * fragments, waiting + multiply
        total = busy**p + loading**p + reading**p + alone**p
        return np.asarray(total ** (1 / p))

    full, rest = np.floor(each / resident), each % resident
    per_block = c["latency"] + c["block"] + c["store"] * bm * bn * 2 / L2_BYTES_PER_CYCLE
    cycles = full * (steps * round_of(resident) + per_block)
    cycles += np.where(rest > 0, steps * round_of(np.maximum(rest, 1)) + per_block, 0.0)

    moved = blocks * steps * (bm + bn) * bk * element
    mhz = device.clock_mhz
    l2_us = moved / (device.multiprocessors * L2_BYTES_PER_CYCLE * c["l2_shared"] * mhz)
    memory = memory_bytes(designs, sizes, element, device, resident)
    memory_us = memory / (device.memory_gb_per_s * 1e3 * c["memory_rate"])
    compute_us = cycles / mhz
    p = c["overlap"]
    inner = (compute_us**p + l2_us**p + memory_us**p) ** (1 / p)
    summing = c["sum_us"] + m * n * (4 * split + 2) / (device.memory_gb_per_s * 1e3)
    total = c["launch_us"] + inner + np.where(split > 1, summing, 0.0)
    return {
        "time_us": total,
        "compute_us": compute_us,
        "multiply_us": blocks * steps * multiply / device.multiprocessors / mhz,
        "l2_us": l2_us,
        "memory_us": memory_us,
        "occupancy": occupancy,
        "waves": blocks / (device.multiprocessors * occupancy),
        "each": each,
        "even": blocks / device.multiprocessors / each,
        "steps": steps,
        "shared": shared,
        "registers": used,
    }


def memory_bytes(
    designs: Mapping[str, Array],
    sizes: Mapping[str, Array],
    element: float,
    device: Device,
    resident: Array,
) -> Array:
    """Traffic of the device memory: what a wave of tiles has in common is read once."""
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    bm, bn, split = designs["block_m"], designs["block_n"], designs["split_k"]
    tiles_m, tiles_n = np.ceil(m / bm), np.ceil(n / bn)
    wave = np.maximum(1.0, device.multiprocessors * resident / split)
    high = np.minimum(designs["group_m"], tiles_m)
    wide = np.minimum(tiles_n, np.maximum(1.0, wave / high))
    high = np.minimum(tiles_m, np.maximum(high, wave / wide))
    waves = np.maximum(1.0, tiles_m * tiles_n / (high * wide))
    once = (m + n) * k * element
    again = waves * (high * bm + wide * bn) * k * element
    # As long as both operands fit into the cache, they are read once.
    held = np.clip(device.l2_mb * 0.6e6 / once, 0.0, 1.0)
    return np.asarray(held * once + (1 - held) * np.maximum(once, again) + m * n * 2.0)
