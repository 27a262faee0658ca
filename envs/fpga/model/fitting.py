"""Fitting the model to measured designs.

``python -m archgym.envs.fpga.model.fitting`` reads ``datasets/fpga/measured.parquet``, writes
``fitted.json`` and prints errors: of designs of the networks that it was fitted to, in five parts
of which each is left out once, and of the networks that it was never fitted to. With ``--before
N`` it fits to designs with smaller numbers only and judges the later ones, and writes nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.fpga.hardware.device import DEVICES, Device
from archgym.envs.fpga.hardware.top import Built
from archgym.envs.fpga.measured import measured_rows
from archgym.envs.fpga.model.prediction import (
    DELAY_PARTS,
    LUT_PARTS,
    Coefficients,
    Prediction,
    lut_parts,
    path_parts,
    predicted,
    speed_grade,
)
from archgym.envs.fpga.tabulate import HELD_OUT_WORKLOADS, circuit_of

__all__ = ["Example", "errors", "examples", "fitted", "later_errors"]

Floats = NDArray[np.float64]

_ICE40_HX: Final = (0.7, 0.08, 1.6, 1.3, 1.5, 0.155, 5.0, 0.15, 1.0, 1.9, 1.3)
_PRIOR_NS: Final = {
    "ice40_hx8k": _ICE40_HX,
    "ice40_up5k": (
        *(2.3 * delay for delay in _ICE40_HX[:6]),
        1.0,
        *(2.3 * d for d in _ICE40_HX[7:]),
    ),
    "ecp5": (0.7, 0.08, 5.2, 1.15, 1.8, 0.035, 4.9, 0.15, 0.25, 1.2, 0.0),
}
"""Delays to begin with: cells as nextpnr's reports of critical paths show them (a LUT 0.4 ns of
an HX8K and 0.24 ns of an ECP5, a product 3.9 ns), each with a wire of 0.9 ns;
the DSPs of a UP5K begin a path, with a longer wire and without the delay of a register."""
_PRIOR_LUTS: Final = {
    "ice40": {"rom_selects": 0.5, "odd_chains": 0.0, "wide_luts": 0.0},
    "ecp5": {"rom_selects": 0.5, "inverted_bits": 0.0, "chosen_luts": 0.0},
}
"""LUTs of a part to begin with where it is not one, by yosys' maps of the families: an ECP5 has
multiplexers behind its LUTs, and carry chains of pairs of bits that invert by themselves; an iCE40
has neither."""
_PRIOR_WEIGHT: Final = {"luts": 0.3, "delays": 20.0}
"""Weight of the first guess, relative to that of the mean of all rows."""
_BOUNDS: Final = (0.6, 1.7)
"""How far a coefficient may lie from its first guess, as a factor."""
_SMALL: Final = 0.05
"""Relative error of a period from which on it counts by its size rather than by its square."""
_ROUNDS: Final = 12
_PARTS: Final = 5


@dataclass(frozen=True, eq=False)
class Example:
    """A measured design.

    Attributes:
        workload: its network.
        device: its FPGA.
        made: its circuit.
        row: what was measured.
        clocks_mhz: over placement seeds; empty if it could not be placed.
    """

    workload: str
    device: Device
    made: Built
    row: dict[str, Any]
    clocks_mhz: tuple[float, ...]


def examples() -> list[Example]:
    """The measured designs of the shipped table."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in measured_rows():
        if row["lut_count"] is not None:
            key = json.dumps([row["workload"], row["design"]], sort_keys=True)
            found.setdefault(key, []).append(row)
    made = []
    circuits: dict[str, Built] = {}  # the devices of a family share them
    for rows in found.values():
        first = rows[0]
        clocks = tuple(row["clock_mhz"] for row in rows if row["clock_mhz"] is not None)
        same = first["verilog_sha256"]
        if same not in circuits:
            circuits[same] = circuit_of(first["workload"], first["design"])
        device = DEVICES[first["design"]["device"]]
        made.append(Example(first["workload"], device, circuits[same], first, clocks))
    return made


def fitted(some: Sequence[Example]) -> Coefficients:
    """The coefficients that fit examples best, near the first guess."""
    families = {name: [e for e in some if e.device.family == name] for name in ("ice40", "ecp5")}
    luts = {name: _fit_luts(name, chosen) for name, chosen in families.items()}
    delays, spreads = {}, {}
    for grade, prior in _PRIOR_NS.items():
        chosen = [e for e in some if speed_grade(e.device) == grade and e.clocks_mhz]
        delays[grade] = _fit_delays(chosen, np.array(prior), luts)
        shares = [
            float(np.std(e.clocks_mhz, ddof=1) / np.median(e.clocks_mhz))
            for e in chosen
            if len(e.clocks_mhz) > 2
        ]
        spreads[grade] = float(np.sqrt(np.mean(np.square(shares)))) if shares else 0.05
    return Coefficients(luts, delays, spreads)


def _fit_luts(family: str, some: Sequence[Example]) -> Floats:
    counts = np.array([e.row["lut_count"] for e in some], dtype=float)
    parts = np.array([lut_parts(e.made) for e in some])
    prior = np.array([_PRIOR_LUTS[family].get(name, 1.0) for name in LUT_PARTS])
    return _near(parts / counts[:, None], np.ones(len(counts)), prior, "luts")


def _fit_delays(some: Sequence[Example], prior: Floats, luts: dict[str, Floats]) -> Floats:
    """The delays under which the longest path of each example has the measured period."""
    if not some:
        return prior
    period = np.array([1e3 / float(np.median(e.clocks_mhz)) for e in some])
    paths = [path_parts(e.made, float(lut_parts(e.made) @ luts[e.device.family])) for e in some]
    delays = prior
    for _ in range(_ROUNDS):
        longest = np.array([one[np.argmax(one @ delays)] for one in paths])
        rest = np.abs(longest @ delays / period - 1)
        weight = 1 / np.sqrt(np.maximum(rest, _SMALL))
        rows = longest / period[:, None] * weight[:, None]
        new = _near(rows, weight, prior, "delays")
        delays = (delays + new) / 2
    return delays


def _near(rows: Floats, wanted: Floats, prior: Floats, kind: str) -> Floats:
    """Least squares towards a first guess, each coefficient within bounds."""
    weight = np.sqrt(_PRIOR_WEIGHT[kind] * len(wanted) / 100.0)
    scaled = np.vstack([rows * prior, weight * np.eye(len(prior))])
    target = np.concatenate([wanted, np.full(len(prior), weight)])
    from scipy.optimize import lsq_linear

    return np.asarray(lsq_linear(scaled, target, bounds=_BOUNDS).x) * prior


def errors(some: Sequence[Example], coefficients: Coefficients) -> dict[str, float]:
    """Median relative errors, and the share of the variance of the LUTs that is explained.

    Flip-flops, DSPs and block RAMs also give the share of designs with the exact count.
    """
    return _errors(some, [predicted(e.made, e.device, coefficients) for e in some])


def _errors(some: Sequence[Example], found: Sequence[Prediction]) -> dict[str, float]:
    result: dict[str, float] = {"designs": len(some)}
    columns = {
        "lut_count": [p.luts for p in found],
        "ff_count": [p.ffs for p in found],
        "dsp_count": [p.dsps for p in found],
        "bram_count": [p.block_rams for p in found],
    }
    for name, values in columns.items():
        measured = np.array([e.row[name] for e in some], dtype=float)
        predictions = np.array(values, dtype=float)
        share = np.abs(predictions - measured) / np.maximum(measured, 1.0)
        result[f"{name}_median_error"] = float(np.median(share))
        if name != "lut_count":
            result[f"{name}_exact"] = float(np.mean(predictions == measured))
        else:
            rest = np.square(predictions - measured).sum()
            varied = np.square(measured - measured.mean()).sum()
            result["lut_count_r2"] = float(1 - rest / varied) if varied else float("nan")
    placed = [(p, e) for p, e in zip(found, some, strict=True) if e.clocks_mhz]
    shares = [abs(p.clock_mhz / float(np.median(e.clocks_mhz)) - 1) for p, e in placed]
    result["clock_mhz_median_error"] = float(np.median(shares)) if shares else float("nan")
    return result


def later_errors(every: Sequence[Example], before: int) -> dict[str, dict[str, float]]:
    """Errors on later designs of a fit to those before a number, by kind of network and device."""
    earlier = [e for e in every if e.row["number"] < before]
    found = fitted([e for e in earlier if e.workload not in HELD_OUT_WORKLOADS])
    later = [e for e in every if e.row["number"] >= before]
    kinds = {
        "all": later,
        "known_networks": [e for e in later if e.workload not in HELD_OUT_WORKLOADS],
        "networks_left_out": [e for e in later if e.workload in HELD_OUT_WORKLOADS],
        **{name: [e for e in later if e.device.name == name] for name in DEVICES},
    }
    return {name: errors(some, found) for name, some in kinds.items() if some}


def _crossed(some: Sequence[Example]) -> dict[str, float]:
    """Errors where each example was left out of the fit, in parts; a circuit is in one part."""
    circuits = list(dict.fromkeys(e.row["verilog_sha256"] for e in some))
    parts = {name: place % _PARTS for place, name in enumerate(circuits)}
    part = [parts[e.row["verilog_sha256"]] for e in some]
    fits = [
        fitted([e for e, its in zip(some, part, strict=True) if its != n]) for n in range(_PARTS)
    ]
    found = [predicted(e.made, e.device, fits[its]) for e, its in zip(some, part, strict=True)]
    return _errors(some, found)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=int, help="number of the first design that is judged")
    arguments = parser.parse_args()
    every = examples()
    if arguments.before is not None:
        judged = later_errors(every, arguments.before)
        print(json.dumps({name: _round_all(found) for name, found in judged.items()}, indent=1))
        return
    known = [e for e in every if e.workload not in HELD_OUT_WORKLOADS]
    unseen = [e for e in every if e.workload in HELD_OUT_WORKLOADS]
    found = fitted(known)
    text = {
        "rows": len(known),
        "luts": {k: dict(zip(LUT_PARTS, _rounded(v), strict=True)) for k, v in found.luts.items()},
        "delays_ns": {
            k: dict(zip(DELAY_PARTS, _rounded(v), strict=True)) for k, v in found.delays.items()
        },
        "spreads": {k: round(v, 4) for k, v in found.spreads.items()},
        "errors": {
            "designs_left_out": _round_all(_crossed(known)),
            "networks_left_out": _round_all(errors(unseen, found)),
        },
    }
    folder = Path(str(resources.files("archgym.envs.fpga.model").joinpath("")))
    (folder / "fitted.json").write_text(json.dumps(text, indent=1) + "\n", "utf-8")
    print(json.dumps(text["errors"], indent=1))


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), 4) for value in values]


def _round_all(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


if __name__ == "__main__":
    main()
