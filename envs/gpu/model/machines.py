"""How much power the memory of each measured GPU takes: GPUs of one kind differ.

PyTorch's own normalisation, whose data are far larger than the L2 cache, is the same kernel on
every machine and waits for the memory only. What it takes more or less than on the machine that
the models were fitted to, by the share of the bandwidth that it uses, is the memory's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from archgym.envs.gpu.model.device import Device
from archgym.envs.gpu.parameters import BYTES, SHAPES, Shape

ACCESSES: Final = 5
"""Of each element by PyTorch's two kernels: the addition reads two and writes one, the
normalisation reads one and writes one."""
USUAL_RUN: Final = 9
"""The run on the machine that counts as usual; it measured every normalisation."""
_LARGE: Final = 2.5
"""Data of so many times the size of the L2 cache are not found in it."""


def is_large(shape: Shape, device: Device) -> bool:
    """Whether a normalisation is so large that the L2 cache holds none of it between launches."""
    return 4 * _elements(shape) * BYTES[shape.dtype] > _LARGE * device.l2_mb * 1e6


def extra_w(shape: Shape, device: Device, found_w: float, usual_w: float, time_us: float) -> float:
    """What a machine's memory takes more than the usual one at the data sheet's bandwidth, W.

    Args:
        shape: a large normalisation that PyTorch computed.
        device: the GPU.
        found_w: power that it took on this machine, W.
        usual_w: power that it took on the usual machine, W.
        time_us: of a launch, us.
    """
    moved = ACCESSES * _elements(shape) * BYTES[shape.dtype]
    share = moved / (time_us * device.memory_gb_per_s * 1e3)
    return (found_w - usual_w) / share


def usual_powers(rows: Iterable[Mapping[str, Any]], device: Device) -> dict[str, float]:
    """Power of PyTorch's large normalisations on the usual machine, W, by shape."""
    return {row["shape"]: row["power_w"] for row in _large(rows, device, USUAL_RUN)}


def extras_of_runs(rows: Iterable[Mapping[str, Any]], device: Device) -> dict[int, float]:
    """:func:`extra_w` of the machine of each run that measured PyTorch's normalisations, medians.

    Args:
        rows: what was measured, as ``datasets/gpu/README.md`` describes it.
        device: on which.
    """
    known = list(rows)
    usual = usual_powers(known, device)
    shapes = {shape.name: shape for shape in SHAPES}
    found: dict[int, list[float]] = {}
    for row in _large(known, device):
        if (power_w := usual.get(row["shape"])) is not None:
            shape = shapes[row["shape"]]
            extra = extra_w(shape, device, row["power_w"], power_w, row["busy_time_us"])
            found.setdefault(row["run"], []).append(extra)
    return {run: float(np.median(extras)) for run, extras in found.items()}


def _large(
    rows: Iterable[Mapping[str, Any]], device: Device, run: int | None = None
) -> list[Mapping[str, Any]]:
    """The rows of PyTorch's large normalisations with a power."""
    names = {s.name for s in SHAPES if s.kernel == "norm" and is_large(s, device)}
    own = (row for row in rows if row["warps"] is None and row["power_w"] is not None)
    return [row for row in own if row["shape"] in names and run in (None, row["run"])]


def _elements(shape: Shape) -> int:
    return shape.sizes["rows"] * shape.sizes["columns"]
