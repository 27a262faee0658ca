"""Designs that searches begin with: the baseline, and those that the experiment gives."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from archgym.analysis.trials import read_trials
from archgym.data import find_datasets
from archgym.environment.environment import Environment
from archgym.errors import DesignError, ExperimentError
from archgym.experiment.spec.checks import entry_position, located
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.load import parse_value
from archgym.experiment.spec.schema import Experiment
from archgym.reading.suggestions import did_you_mean

__all__ = ["initial_designs", "read_initial"]

Design = dict[str, Any]
_FROM_FOLDER = 10
"""Maximum number of designs that are taken from a folder of earlier results, or predicted."""
PREDICTED = "predicted"
"""In place of a file: what the environment's embedded simulator likes best."""


def initial_designs(
    experiment: Experiment, trials: Sequence[Trial], environments: Mapping[str, Environment]
) -> dict[str, list[Design]]:
    """The designs that the searches of each setting evaluate first.

    Args:
        experiment: where the trials come from.
        trials: all trials of the experiment.
        environments: the environment of each setting.

    Raises:
        ArchgymError: for a design, a file or a folder that cannot be used, with its place.
    """
    found: dict[str, list[Design]] = {}
    for trial in trials:
        if trial.setting in found:
            continue
        environment = environments[trial.setting]
        space = environment.design_space
        first = [environment.baseline_design] if trial.baseline_first else []
        with located(f"environments[{entry_position(experiment, trial)}].initial"):
            designs = space.designs([*first, *read_initial(trial.initial, environment)])
            legal = designs[space.legal(designs)]
        found[trial.setting] = list(dict(zip(legal.keys(), legal, strict=True)).values())
    return found


def read_initial(source: str | Sequence[Design], environment: Environment) -> list[Design]:
    """Designs from a list, from a CSV file, the best ones of a folder, or those predicted best.

    A CSV file has a column for each parameter, ``NAME`` or ``param.NAME``; other columns are
    ignored, and an empty cell stands for an inactive parameter. Of a folder of runs or datasets
    the best designs that its trials found are taken, as far as the space has them.

    Raises:
        ExperimentError: if there is no such file or folder, or nothing in it can be used.
        DesignError: for a value in a CSV file that is not allowed.
        InvalidValueError: if no designs can be predicted.
    """
    if not isinstance(source, str):
        return [dict(design) for design in source]
    if source == PREDICTED:
        return environment.predicted_designs(_FROM_FOLDER)
    path = Path(source).expanduser()
    if path.is_dir():
        return _best_of(path, environment)
    if not path.is_file():
        raise ExperimentError(f"there is no file or folder {source}")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _from_csv(csv.DictReader(file, strict=True), environment)
    except (OSError, UnicodeError, csv.Error) as error:
        raise ExperimentError(f"cannot read {source} as CSV: {error}") from error


def _from_csv(rows: csv.DictReader[str], environment: Environment) -> list[Design]:
    space = environment.design_space
    columns = {name: _column(name, rows.fieldnames or ()) for name in space.names}
    given = [name for name, column in columns.items() if column]
    if not given:
        hint = did_you_mean(str((rows.fieldnames or [""])[0]), space.names)
        raise ExperimentError(f"no column is a parameter. {hint}")
    designs = []
    for row in rows:
        cells = {name: row[columns[name]] for name in given}
        with located(f"line {rows.line_num}"):
            design = {n: _value(environment, n, cell) for n, cell in cells.items() if cell}
            space.codes(design)
        designs.append(design)
    return designs


def _column(name: str, header: Sequence[str]) -> str:
    return next((column for column in (name, f"param.{name}") if column in header), "")


def _value(environment: Environment, name: str, cell: str) -> Any:
    """A cell as a value of its parameter: the text itself, or what it means as YAML."""
    parameter = environment.design_space[name]
    try:
        return parameter.value(parameter.code(cell))
    except DesignError:
        return parse_value(cell, name)


def _best_of(folder: Path, environment: Environment) -> list[Design]:
    space, found = environment.design_space, []
    for dataset in find_datasets(folder):
        for trial in read_trials(dataset):
            if trial.environment == environment.name:
                found += [one for one in (trial.best, *trial.front) if one is not None]
    found.sort(key=lambda outcome: -outcome.reward)
    designs: dict[int, Design] = {}
    for outcome in found:
        try:
            design = {k: v for k, v in outcome.design.items() if k in space.names}
            designs.setdefault(space.key(space.codes(design)), design)
        except DesignError:  # of a space with other values
            continue
    if not designs:
        raise ExperimentError(
            f"{folder} holds no design of {environment.name} that this design space has"
        )
    return list(designs.values())[:_FROM_FOLDER]
