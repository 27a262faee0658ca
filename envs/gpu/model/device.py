"""GPUs by their data sheets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from archgym.errors import UnknownNameError


@dataclass(frozen=True)
class Device:
    """What a data sheet says of a GPU.

    Attributes:
        name: short name.
        title: full name.
        multiprocessors: number of them.
        clock_mhz: highest clock of the multiprocessors.
        flops_per_cycle: of one multiprocessor's matrix units, dense, by element type.
        memory_gb_per_s: bandwidth of the device memory.
        l2_mb: size of the L2 cache.
        shared_bytes: shared memory that one block can have.
        shared_sm_bytes: shared memory of a multiprocessor.
        power_w: power limit.
        idle_w: power without work.
        warpgroups: whether four warps multiply together, with operands in shared memory.
        source: where the figures stand.
        memory_extra_w: power that the memory of this one GPU takes more than that of the GPU that
            the models were fitted to, at the data sheet's bandwidth, W.
    """

    name: str
    title: str
    multiprocessors: int
    clock_mhz: float
    flops_per_cycle: Mapping[str, float]
    memory_gb_per_s: float
    l2_mb: float
    shared_bytes: int
    shared_sm_bytes: int
    power_w: float
    idle_w: float
    warpgroups: bool
    source: str
    memory_extra_w: float = 0.0


@lru_cache(maxsize=1)
def devices() -> dict[str, Device]:
    """The GPUs that are known, by name."""
    file = resources.files("archgym.envs.gpu.model").joinpath("devices.json")
    data = json.loads(file.read_text("utf-8"))
    return {name: Device(name=name, **values) for name, values in data.items()}


def device_named(name: str) -> Device:
    """A GPU by name.

    Raises:
        UnknownNameError: if it is not known.
    """
    known = devices()
    if name not in known:
        raise UnknownNameError("device", name, known)
    return known[name]
