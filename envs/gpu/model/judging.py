"""How good the models are on what they have not seen, fitted to the measurements of an H200.

``python -m archgym.envs.gpu.model.judging`` prints it as JSON. A quarter of the designs is left out
at random and the models are fitted anew; the shapes are those of ``held_out.parquet``, which the
shipped models were not fitted to.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import numpy as np

from archgym.envs.gpu.model.device import Device, device_named
from archgym.envs.gpu.model.fitting import fit
from archgym.envs.gpu.model.measured import OTHER_MACHINE, Rows, measured, torch_time_us
from archgym.envs.gpu.model.prediction import KernelModel, shipped_models
from archgym.envs.gpu.model.terms import Array
from archgym.envs.gpu.parameters import KERNELS
from archgym.envs.gpu.workload import shape_of

_LEFT_OUT: Final = 0.25
_FIRST: Final = (1, 5)
"""Of how many designs with the shortest predicted times the best one is taken."""
_POWER: Final = ("busy_us", "power_w")


def agreement(predicted: Array, wanted: Array) -> dict[str, float]:
    """R2 of the values and of their logarithms, and the median relative error."""

    def r2(found: Array, true: Array) -> float:
        return float(1 - ((found - true) ** 2).sum() / ((true - true.mean()) ** 2).sum())

    return {
        "r2": round(r2(predicted, wanted), 4),
        "r2_log": round(r2(np.log(predicted), np.log(wanted)), 4),
        "median_error": round(float(np.median(np.abs(predicted / wanted - 1))), 4),
    }


def regrets(predicted: Array, times: Array) -> list[float]:
    """By how much the best of the designs that are predicted first is slower than the best one."""
    order = np.argsort(predicted, kind="stable")
    return [round(float(times[order[:count]].min() / times.min() - 1), 4) for count in _FIRST]


def judged(kernel: str, device: Device) -> dict[str, Any]:
    """Agreement of a kernel's model on unseen designs, and of the shipped one on unseen shapes."""
    rows = measured(kernel, device)
    unseen = np.random.default_rng(1).random(len(rows.names)) < _LEFT_OUT
    by_design = _predicted(fit(rows[~unseen], kernel, device), rows[unseen], device)
    others = measured(kernel, device, held_out=True)
    by_shape = _predicted(shipped_models()[kernel], others, device)
    return {
        "unseen_designs": _agreements(by_design, rows[unseen]),
        "unseen_shapes": _agreements(by_shape, others),
        "shapes": {
            name: _of_shape(by_shape["time_us"][others.names == name], others, name)
            for name in dict.fromkeys(others.names.tolist())
        },
    }


def _of_shape(found: Array, rows: Rows, name: str) -> dict[str, Any]:
    here = rows[rows.names == name]
    times = here.time_us
    torch_us = torch_time_us(shape_of(name))
    result = {
        "median_error": agreement(found, times)["median_error"],
        "regret_of_first_and_of_five": regrets(found, times),
        "median_spread": round(float(np.median(here.times.std(axis=1) / times)), 4),
    }
    if torch_us is not None:
        first = float(times[np.argmin(found)])
        result["first_and_best_to_torch"] = [
            round(time_us / torch_us, 3) for time_us in (first, float(times.min()))
        ]
    return result


def _predicted(model: KernelModel, rows: Rows, device: Device) -> dict[str, Array]:
    return model.predict(rows.designs, rows.sizes, device, rows.compiled)


def _agreements(found: dict[str, Array], rows: Rows) -> dict[str, dict[str, float]]:
    wanted = {"time_us": rows.time_us, "busy_us": rows.busy_us, "power_w": rows.power}
    result = {}
    for name, values in found.items():
        known = np.isfinite(values) & np.isfinite(wanted[name])
        if name in _POWER:
            known &= rows.power_weight >= OTHER_MACHINE
        result[name] = agreement(values[known], wanted[name][known])
    return result


def main() -> None:
    """The command."""
    device = device_named("h200")
    json.dump({kernel: judged(kernel, device) for kernel in KERNELS}, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
