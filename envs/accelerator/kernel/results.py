"""How the mapper compares two mappings and keeps the better one, compiled."""

from __future__ import annotations

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.loopnest import DRAM_ORDER, REGISTER, SPATIAL, TILE

__all__ = ["better", "keep", "products", "score"]


@compiled
def score(objective: int, cycles: float, energy: float) -> tuple[float, float]:
    """What is minimised, and what breaks ties."""
    if objective == 0:
        return cycles, energy
    if objective == 1:
        return energy, cycles
    return cycles * energy, cycles


@compiled
def better(a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Whether pair ``a`` is smaller than pair ``b``."""
    return a[0] < b[0] or (a[0] == b[0] and a[1] < b[1])


@compiled
def keep(
    trial: Floats,
    spatial: Ints,
    register: Ints,
    inside: int,
    tile: Ints,
    outside: int,
    found: Floats,
) -> None:
    """Writes a result and its mapping into ``found``."""
    for i in range(SPATIAL):
        found[i] = trial[i]
    for i in range(6):
        found[SPATIAL + i] = spatial[i]
    for i in range(4):
        found[REGISTER + i] = register[i]
        found[TILE + i] = tile[i]
    found[TILE - 1] = inside
    found[DRAM_ORDER] = outside


@compiled
def products(layer: Ints) -> float:
    """Multiply-accumulates of a layer whose rows are those of the whole batch."""
    macs = float(layer[7]) * layer[0] * layer[1] * layer[2] * layer[3] * layer[4] * layer[5]
    return float(macs)
