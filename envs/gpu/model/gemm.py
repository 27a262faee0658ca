"""Matrix products: what bounds the time of a design, in cycles of a multiprocessor.

A product is cut into tiles, each the work of one block. A multiprocessor holds as many blocks as
its shared memory and registers allow, and blocks run in waves. In each step along K a block needs
the matrix units, loads into shared memory, and reads of it; the loads of later steps are under way
meanwhile, as far as the pipeline has stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.gpu.model.compiled import Compiled
from archgym.envs.gpu.model.device import Device
from archgym.envs.gpu.model.power import L2_BYTES_PER_CYCLE
from archgym.envs.gpu.model.terms import Array, Bounds, Terms, fitting_blocks, shares
from archgym.envs.gpu.parameters import RESTS

BOUNDS: Final[Bounds] = MappingProxyType(
    {
        "launch_us": (1.0, 2.5, 5.0),
        "latency": (200.0, 800.0, 3000.0),
        "block": (50.0, 1000.0, 8000.0),
        "warpgroup_rate": (0.4, 0.85, 1.0),
        "warp_rate": (0.2, 0.6, 1.0),
        "load": (1.0, 4.0, 40.0),
        "engine_load": (0.2, 2.0, 40.0),
        "engine_latency": (200.0, 800.0, 3000.0),
        "engine_block": (50.0, 1000.0, 8000.0),
        "reading": (0.3, 0.8, 4.0),
        "fragments": (0.1, 0.5, 3.0),
        "l2_rate": (0.2, 0.6, 1.0),
        "memory_rate": (0.4, 0.85, 1.0),
        "memory_latency": (500.0, 1500.0, 5000.0),
        "hidden": (0.01, 0.5, 1.0),
        "spill": (0.01, 0.3, 20.0),
        "overlap": (1.2, 3.0, 12.0),
        "inner": (1.2, 3.0, 8.0),
        "store": (0.1, 1.0, 20.0),
        "sum_us": (0.5, 2.5, 9.0),
        "sum_rate": (0.2, 0.6, 1.0),
    }
)
"""The coefficients: least value, first guess and largest value.

``launch_us`` and ``sum_us`` (the second kernel of a product with split K) are times; ``latency``
(of a load), ``block`` (start and end of a block), ``load`` (of 512 bytes into shared memory), the
same three of the copy engine, and ``memory_latency`` are cycles; ``*_rate`` shares of what the data
sheet promises; ``reading``, ``fragments`` and ``store`` factors on traffic; ``spill`` a factor on
the work by the logarithm of the spilled words; ``overlap`` and ``inner`` the exponents by which
bounds add up (large: the largest counts).
"""

_SHARED_BYTES_PER_CYCLE = 128.0
_STORED_BYTES = 2
_BARRIER_BYTES = 8
"""Of an element of the result, and of the barrier on which a stage of the copy engine waits."""
_ERROR_AT_4096 = 1.344e-3
_ERROR_POWER = 0.607
"""Relative error of products of eight-bit elements by warpgroups, which add up in few bits: at a
depth of 4096, and the power of the depth by which it grows; measured on the H200."""


def shared_bytes(designs: Mapping[str, Array], element: Array, device: Device) -> Array:
    """Shared memory of the pipeline's buffers of a block: a design needs at least that."""
    step = (designs["block_m"] + designs["block_n"]) * designs["block_k"] * element
    by_engine = designs["copy_engine"] > 0
    together = uses_warpgroups(designs, device) | by_engine
    buffers = np.where(together, designs["stages"], designs["stages"] - 1) * step
    # The engine stores what lies in shared memory, without the columns that are multiplied apart.
    wide = designs["block_n"] - sum(
        rest * (designs["block_n"] == columns) for columns, rest in RESTS.items()
    )
    stored = designs["block_m"] * wide * _STORED_BYTES
    barriers = _BARRIER_BYTES * designs["stages"]
    return np.asarray(np.where(by_engine, np.maximum(buffers + barriers, stored), buffers))


def uses_warpgroups(designs: Mapping[str, Array], device: Device) -> NDArray[np.bool_]:
    """Whether four warps multiply together, with both operands in shared memory."""
    together = (designs["block_m"] >= 64) & (designs["warps"] % 4 == 0)
    return np.asarray(device.warpgroups & together)


def relative_error(
    designs: Mapping[str, Array], sizes: Mapping[str, Array], device: Device
) -> Array:
    """Relative error of the result by its norm, shape (n,); 0 where it is far below any limit."""
    depth = sizes["k"] / designs["split_k"]
    low = (sizes["element"] == 1) & uses_warpgroups(designs, device)
    return np.asarray(np.where(low, _ERROR_AT_4096 * (depth / 4096) ** _ERROR_POWER, 0.0))


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
        sizes: ``m``, ``n``, ``k``, ``element`` (bytes) and ``flops`` (of a multiprocessor's matrix
            units in a cycle), shape (n,) each.
        device: the GPU.
        compiled: registers and spills of each design.
        fitted: coefficients, as :data:`BOUNDS` describes them.
    """
    c, element = fitted, sizes["element"]
    bm, bn, bk = designs["block_m"], designs["block_n"], designs["block_k"]
    split, warps, stages = designs["split_k"], designs["warps"], designs["stages"]
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    steps = np.ceil(np.ceil(k / bk) / split)
    blocks = np.ceil(m / bm) * np.ceil(n / bn) * split
    every, mhz = device.multiprocessors, device.clock_mhz
    occupancy = fitting_blocks(shared_bytes(designs, element, device), warps, device, compiled)
    each = np.ceil(blocks / every)
    resident = np.minimum(occupancy, each)

    # Cycles of a step of one block, alone on a multiprocessor.
    together = uses_warpgroups(designs, device)
    rate = sizes["flops"] * np.where(together, c["warpgroup_rate"], c["warp_rate"])
    spilled = 1.0 + c["spill"] * np.log1p(compiled.spills) / 4
    multiply = 2 * bm * bn * bk / rate * spilled
    step_bytes = (bm + bn) * bk * element
    engine = designs["copy_engine"] > 0
    latency, block, load = (
        np.where(engine, c[f"engine_{name}"], c[name]) for name in ("latency", "block", "load")
    )
    load = step_bytes / 512 * load
    reading = _shared_reads(designs, together, c) * bk * element / _SHARED_BYTES_PER_CYCLE
    hidden = np.where(together, c["hidden"], 0.0)
    waiting = (latency + step_bytes / L2_BYTES_PER_CYCLE) / np.maximum(1.0, stages - 1)

    def round_of(here: Array) -> Array:
        p = c["overlap"]
        alone = multiply + np.maximum(waiting - hidden * multiply, 0.0)
        bounds = (here * multiply, here * load, here * reading, alone)
        return np.asarray(sum(bound**p for bound in bounds) ** (1 / p))

    full, rest = np.floor(each / resident), each % resident
    stored = bm * bn * np.where(split > 1, 4, 2)
    per_block = latency + block + c["store"] * stored / L2_BYTES_PER_CYCLE
    cycles = full * (steps * round_of(resident) + per_block)
    cycles += np.where(rest > 0, steps * round_of(np.maximum(rest, 1)) + per_block, 0.0)

    memory = memory_bytes(designs, sizes, device, resident)
    flying = np.minimum(blocks, every) * resident * np.maximum(1, stages - 1) * step_bytes
    spread = every * mhz
    found = {
        "compute_us": cycles / mhz,
        "multiply_us": blocks * steps * multiply / spread,
        "l2_us": blocks * steps * step_bytes / (spread * L2_BYTES_PER_CYCLE * c["l2_rate"]),
        "memory_us": memory / (device.memory_gb_per_s * 1e3 * c["memory_rate"]),
        "flying_us": memory * c["memory_latency"] / mhz / flying,
        "load_us": blocks * steps * load / spread,
        "reading_us": blocks * steps * reading / spread,
        "waiting_us": each / resident * steps * waiting / mhz,
        "block_us": each / resident * per_block / mhz,
    }
    q = c["inner"]
    bounds = [found[name] for name in ("compute_us", "l2_us", "memory_us", "flying_us")]
    inner = sum(bound**q for bound in bounds) ** (1 / q)
    summed = m * n * (4 * split + 2) / (device.memory_gb_per_s * 1e3 * c["sum_rate"])
    found["summing_us"] = np.where(split > 1, c["sum_us"] + summed, 0.0)
    found["time_us"] = c["launch_us"] + inner + found["summing_us"]
    found["occupancy"], found["resident"], found["each"] = occupancy, resident, each
    found["waves"], found["even"] = blocks / (every * occupancy), blocks / every / each
    found["steps"] = steps
    found["footprint_bytes"] = (m + n) * k * element + m * n * (
        2.0 + 4 * np.where(split > 1, split, 0)
    )
    found["memory_bytes"], found["l2_bytes"] = memory, blocks * steps * step_bytes
    found["flops"] = blocks * steps * 2 * bm * bn * bk
    return found


def features(
    designs: Mapping[str, Array], sizes: Mapping[str, Array], found: Terms, compiled: Compiled
) -> Array:
    """What the correction looks at: the design, and terms relative to the time, (n, features)."""
    bm, bn, bk = designs["block_m"], designs["block_n"], designs["block_k"]
    names = ("block_m", "block_n", "block_k", "warps", "split_k", "group_m")
    columns = [designs["copy_engine"], *(np.log2(designs[name]) for name in names)]
    columns += [designs["stages"], compiled.registers, np.log1p(compiled.spills)]
    columns += [found["occupancy"], found["resident"], np.minimum(found["each"], 40)]
    columns += [np.log2(found["waves"]), found["even"], np.log2(found["steps"])]
    columns += shares(
        found,
        *("compute_us", "multiply_us", "l2_us", "memory_us", "flying_us", "load_us"),
        *("reading_us", "waiting_us", "block_us"),
    )
    columns += [found["summing_us"] / found["time_us"], np.log2(found["time_us"])]
    columns += [sizes["m"] / (np.ceil(sizes["m"] / bm) * bm)]
    columns += [sizes["n"] / (np.ceil(sizes["n"] / bn) * bn)]
    columns += [np.log2(bm * bn), np.log2(bm / bn), np.log2((bm + bn) * bk)]
    columns += [np.log2(bm * bn / designs["warps"]), sizes["element"]]
    return np.stack(columns, axis=1)


def _shared_reads(
    designs: Mapping[str, Array], together: NDArray[np.bool_], c: Mapping[str, float]
) -> Array:
    """Rows and columns of the operands that a block reads from shared memory in a step."""
    bm, bn, warps = designs["block_m"], designs["block_n"], designs["warps"]
    # A warpgroup has 64 rows; two of them side by side read the rows twice.
    high = np.maximum(1.0, bm / 64)
    side = np.maximum(1.0, np.maximum(1.0, warps / 4) / high)
    by_groups = (bm * side + bn * high) * c["reading"]
    # Without warpgroups each warp reads its fragments: a square of warps shares the tile.
    rows = np.minimum(warps, np.maximum(1.0, bm / 16))
    rows = np.minimum(rows, np.sqrt(warps * np.maximum(bm / bn, 1.0)))
    by_warps = (bm * warps / rows + bn * rows) * c["fragments"]
    return np.asarray(np.where(together, by_groups, by_warps))


def memory_bytes(
    designs: Mapping[str, Array], sizes: Mapping[str, Array], device: Device, resident: Array
) -> Array:
    """Traffic of the device memory: what a wave of tiles has in common is read once."""
    m, n, k, element = sizes["m"], sizes["n"], sizes["k"], sizes["element"]
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
