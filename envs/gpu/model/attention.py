"""Attention forward with an online softmax: what bounds the time of a design.

A block computes some rows of one head. For each part of the keys it multiplies twice, takes an
exponential of each score and rescales what it has so far. Blocks run in waves, as in products.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from archgym.envs.gpu.model.compiled import Compiled
from archgym.envs.gpu.model.device import Device
from archgym.envs.gpu.model.gemm import uses_warpgroups
from archgym.envs.gpu.model.terms import Array, Bounds, Terms, fitting_blocks, shares

BOUNDS: Final[Bounds] = MappingProxyType(
    {
        "launch_us": (1.0, 2.5, 6.0),
        "latency": (100.0, 800.0, 4000.0),
        "block": (50.0, 2000.0, 20000.0),
        "warpgroup_rate": (0.2, 0.8, 1.0),
        "warp_rate": (0.1, 0.5, 1.0),
        "element": (0.01, 0.1, 1.0),
        "load": (1.0, 8.0, 80.0),
        "memory_rate": (0.3, 0.8, 1.0),
        "spill": (0.001, 0.2, 20.0),
        "overlap": (1.0, 2.0, 8.0),
        "tail": (0.01, 0.3, 1.0),
    }
)
"""The coefficients: least value, first guess and largest value.

``launch_us`` is a time; ``latency`` (of a step), ``block`` (start and end of a block), ``element``
(of the softmax of a score) and ``load`` (of 512 bytes) are cycles; ``*_rate`` shares of what the
data sheet promises; ``spill`` a factor on the work by the logarithm of the spilled words;
``overlap`` the exponent by which bounds add up; ``tail`` the share of a causal head's longest block
that nothing else hides.
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
        sizes: ``batch``, ``heads``, ``length``, ``head``, ``causal``, ``element`` (bytes) and
            ``flops`` (of a multiprocessor's matrix units in a cycle), shape (n,) each.
        device: the GPU.
        compiled: registers, spills and shared memory of each design.
        fitted: coefficients, as :data:`BOUNDS` describes them.
    """
    c = fitted
    bm, bn, warps, stages = (designs[name] for name in ("block_m", "block_n", "warps", "stages"))
    length, head, element = sizes["length"], sizes["head"], sizes["element"]
    heads = sizes["batch"] * sizes["heads"]
    tiles = np.ceil(length / bm)
    # A causal tile ends at its own rows: tile i of n takes i + 1 parts of n.
    steps = np.ceil(length / bn) * np.where(sizes["causal"] > 0, (tiles + 1) / (2 * tiles), 1.0)
    blocks = tiles * heads
    every, mhz = device.multiprocessors, device.clock_mhz
    occupancy = fitting_blocks(np.maximum(compiled.shared_bytes, 0.0), warps, device, compiled)
    each = np.ceil(blocks / every)
    resident = np.minimum(occupancy, each)
    rate = sizes["flops"] * np.where(
        uses_warpgroups(designs, device), c["warpgroup_rate"], c["warp_rate"]
    )
    spilled = 1.0 + c["spill"] * np.log1p(compiled.spills)
    multiply = 4 * bm * bn * head / rate * spilled
    softmax = bm * bn * c["element"] * spilled
    load = 2 * bn * head * element / 512 * c["load"]
    waiting = c["latency"] / np.maximum(1.0, stages - 1)
    p = c["overlap"]
    busy = resident * (multiply + softmax)
    step = (busy**p + (resident * load) ** p + (waiting + multiply + softmax) ** p) ** (1 / p)
    cycles = each / resident * (steps * step + c["block"])
    # Blocks start in the order of their rows, so that the longest causal ones are among the last.
    longest = np.ceil(length / bn) * (waiting + multiply + softmax)
    cycles += c["tail"] * np.where(sizes["causal"] > 0, longest, 0.0)
    memory = heads * length * head * element * 4
    spread = every * mhz
    found = {
        "compute_us": cycles / mhz,
        "multiply_us": blocks * steps * multiply / spread,
        "softmax_us": blocks * steps * softmax / spread,
        "load_us": blocks * steps * load / spread,
        "longest_us": longest / mhz,
        "waiting_us": each / resident * steps * waiting / mhz,
        "memory_us": memory / (device.memory_gb_per_s * 1e3 * c["memory_rate"]),
    }
    found["time_us"] = c["launch_us"] + np.maximum(found["compute_us"], found["memory_us"])
    found["occupancy"], found["resident"], found["each"] = occupancy, resident, each
    found["waves"], found["even"] = blocks / (every * occupancy), blocks / every / each
    found["steps"] = steps
    found["memory_bytes"] = found["footprint_bytes"] = memory
    found["l2_bytes"] = blocks * steps * 2 * bn * head * element
    found["flops"] = blocks * steps * 4 * bm * bn * head
    return found


def features(
    designs: Mapping[str, Array], sizes: Mapping[str, Array], found: Terms, compiled: Compiled
) -> Array:
    """What the correction looks at, shape (n, features)."""
    columns = [np.log2(designs[name]) for name in ("block_m", "block_n", "warps")]
    columns += [designs["stages"], compiled.registers, np.log1p(compiled.spills)]
    columns += [found["occupancy"], found["resident"], sizes["head"], sizes["causal"]]
    columns += shares(found, "multiply_us", "softmax_us", "load_us", "waiting_us", "memory_us")
    columns += shares(found, "longest_us")
    columns += [found["waves"] / np.ceil(found["waves"])]
    columns += [np.log2(found["waves"]), found["even"], np.log2(found["steps"])]
    columns += [np.log2(designs["block_m"] * designs["block_n"] / designs["warps"])]
    return np.stack(columns, axis=1)
