"""Fits the predictors that ship: ``python -m archgym.envs.nas.backbone.fitting [OUT]``.

They are fitted to all networks of ``networks.parquet`` but the first
:data:`archgym.envs.nas.backbone.measured.JUDGES`, by which ``python -m
benchmarks.backbone_latency`` judges them.
"""

from __future__ import annotations

import argparse
from importlib import resources
from pathlib import Path

import numpy as np

from archgym.envs.nas.backbone.measured import (
    DEVICES,
    JUDGES,
    measured_networks,
    measured_us,
    part_times,
)
from archgym.envs.nas.backbone.predictor import FITTED_FILE, LatencyPredictor, fit, save


def fitted(device: str) -> LatencyPredictor:
    """The predictor of a device, fitted anew."""
    times = [(row, measured_us(row, device)) for row in measured_networks()[JUDGES:]]
    known = [(row, time) for row, time in times if time is not None]
    return fit(part_times(device), [row for row, _ in known], np.array([time for _, time in known]))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    shipped = Path(str(resources.files("archgym.envs.nas.backbone").joinpath(FITTED_FILE)))
    parser.add_argument("out", type=Path, nargs="?", default=shipped)
    out = parser.parse_args().out
    save({device: fitted(device) for device in DEVICES}, out)


if __name__ == "__main__":
    main()
