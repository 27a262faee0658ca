"""Measures how much power the memory of this GPU takes more than usual, in ten seconds.

``python -m archgym.envs.gpu.measuring.memory_power`` runs PyTorch's normalisation of three large
shapes without pause, and prints W at the bandwidth of the data sheet, compared with the H200 that
the models were fitted to: the argument ``memory_extra_w`` of ``GPUKernel-v0``.
"""

from __future__ import annotations

import statistics
import sys

from archgym.envs.gpu.measuring.problem import Problem
from archgym.envs.gpu.measuring.timing import Meter
from archgym.envs.gpu.model.device import device_named
from archgym.envs.gpu.model.machines import extra_w, usual_powers
from archgym.envs.gpu.model.measured import measured_rows
from archgym.envs.gpu.workload import shape_of

_SHAPES = ("norm_4096", "norm_512", "norm_3072")
"""Shapes that models are fitted to."""
_GUESS_US = 100.0


def measured_extras(meter: Meter) -> list[float]:
    """What the memory takes more than usual by each of three shapes, W."""
    device = device_named("h200")
    usual = usual_powers(measured_rows(), device)
    found = []
    for name in _SHAPES:
        shape = shape_of(name)
        power_w, time_us, _ = meter.power(Problem(shape).torch_launch(), _GUESS_US)
        found.append(extra_w(shape, device, power_w, usual[name], time_us))
    return found


def main() -> None:
    """The command."""
    extras = measured_extras(Meter())
    by_shape = ", ".join(f"{one:.0f}" for one in extras)
    sys.stdout.write(f"memory_extra_w: {statistics.median(extras):.0f} (by shape {by_shape})\n")


if __name__ == "__main__":
    main()
