"""The embedded simulator: the models of the kernels on designs of one shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.envs.gpu.model import gemm
from archgym.envs.gpu.model.compiled import REFUSED, Compiled, compiled_facts
from archgym.envs.gpu.model.device import Device
from archgym.envs.gpu.model.measured import sizes_of
from archgym.envs.gpu.model.prediction import Values, shipped_models
from archgym.envs.gpu.parameters import PARAMETERS, TOLERANCES, Shape, engine_can
from archgym.errors import NotCoveredError, SimulationError
from archgym.problem.simulator import SimulationResult
from archgym.space import Designs

METRICS = ("time_us", "power_w", "energy_mj")
"""What it gives."""


def simulated(shape: Shape, designs: Designs, device: Device) -> list[SimulationResult]:
    """Time, power and energy of designs, or why a design has none.

    Args:
        shape: what is computed.
        designs: of its kernel.
        device: the GPU.
    """
    if shape.dtype not in device.flops_per_cycle:
        why = f"the matrix units of {device.title} have no {shape.dtype}"
        return [NotCoveredError(why)] * len(designs)
    some = [dict(design) for design in designs]
    values = {n: np.array([d[n] for d in some], dtype=float) for n in PARAMETERS[shape.kernel]}
    sizes = sizes_of([shape] * len(some), device)
    compiled = compiled_facts(shape, values)
    found = shipped_models()[shape.kernel].predict(values, sizes, device, compiled)
    energy = found["power_w"] * found["busy_us"] * 1e-3
    columns = (found["time_us"], found["power_w"], energy)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    results: list[SimulationResult] = [dict(zip(METRICS, row, strict=True)) for row in rows]
    for index, reason in _failures(shape, values, sizes, compiled, device).items():
        results[index] = SimulationError(reason)
    return results


def _failures(
    shape: Shape, values: Values, sizes: Values, compiled: Compiled, device: Device
) -> dict[int, str]:
    """Why designs fail, by their place."""
    found: dict[int, str] = {}
    need = compiled.shared_bytes
    too_large = (need == REFUSED) | (need > device.shared_bytes)
    if shape.kernel == "gemm":
        need = gemm.shared_bytes(values, sizes["element"], device)
        too_large = need > device.shared_bytes
        error = gemm.relative_error(values, sizes, device)
        tolerance = TOLERANCES[shape.dtype]
        lacks = "" if device.warpgroups else f"{device.title} has none"
        if not engine_can(shape):
            lacks = "a row of an operand is no multiple of 16 bytes"
        if lacks:
            found = dict.fromkeys(_places(values["copy_engine"] > 0), f"copy engine: {lacks}")
        for i in _places(error > tolerance):
            found[i] = f"wrong result: relative error {error[i]:.2g}, allowed {tolerance:g}"
    for i in _places(too_large):
        needs = f"{need[i]:.0f} bytes" if need[i] > 0 else "more"
        found[i] = f"shared memory: it needs {needs}, a block has at most {device.shared_bytes}"
    return found


def _places(mask: NDArray[np.bool_]) -> list[int]:
    return [int(place) for place in np.flatnonzero(mask)]
