"""Accuracies of networks that were really trained, from the tables in ``datasets/nas``.

A table has a row for each architecture, seed and epoch; :mod:`archgym.envs.nas.accuracy.tabulate`
makes it. An architecture's accuracy is its mean over the seeds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.nas.accuracy.training_loop import Recipe
from archgym.envs.nas.families import Architecture, Task
from archgym.envs.nas.tasks import family_of
from archgym.errors import DatasetError, InvalidValueError, UnknownNameError

__all__ = ["AccuracyTable", "TabulatedAccuracy", "accuracy_table", "shipped_accuracy_tables"]

_COLUMNS = ("architecture", "seed", "epochs", "percent")


@dataclass(frozen=True, eq=False)
class AccuracyTable:
    """The measured accuracies of one task.

    Attributes:
        rows: row of each architecture in ``percent``, by the family's key.
        seeds: of weights and order of the images.
        epochs: after which the test set was looked at, ascending.
        percent: accuracy or intersection over union, shape (n_architectures, n_seeds, n_epochs).
        made: task, data digest, recipe and machines.
    """

    rows: Mapping[str, int]
    seeds: tuple[int, ...]
    epochs: tuple[int, ...]
    percent: NDArray[np.float64]
    made: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> AccuracyTable:
        """The table in a Parquet file.

        Raises:
            DatasetError: if it is no table of accuracies, or has gaps.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowException) as error:
            raise DatasetError(f"{path}: cannot be read as Parquet: {error}") from error
        metadata = table.schema.metadata or {}
        if b"archgym" not in metadata or not set(_COLUMNS) <= set(table.column_names):
            raise DatasetError(
                f"{path}: no table of accuracies; it has columns {', '.join(_COLUMNS)} and says "
                "what made it under 'archgym' in the metadata of its schema"
            )
        names = dict.fromkeys(table["architecture"].to_pylist())
        seeds, epochs = (
            tuple(sorted(set(table[column].to_pylist()))) for column in ("seed", "epochs")
        )
        shape = (len(names), len(seeds), len(epochs))
        rows = {name: row for row, name in enumerate(names)}
        percent = np.full(shape, np.nan)
        percent[
            [rows[name] for name in table["architecture"].to_pylist()],
            np.searchsorted(seeds, table["seed"].to_numpy()),
            np.searchsorted(epochs, table["epochs"].to_numpy()),
        ] = table["percent"].to_numpy()
        if table.num_rows != percent.size or np.isnan(percent).any():
            raise DatasetError(
                f"{path}: {table.num_rows} rows do not give each of {shape[0]} architectures one "
                f"accuracy for each of seeds {seeds} and epochs {epochs}"
            )
        percent.setflags(write=False)
        return cls(rows, seeds, epochs, percent, json.loads(metadata[b"archgym"]))

    def mean(self, epochs: int) -> NDArray[np.float64]:
        """Mean over the seeds after a number of epochs, percent, shape (n_architectures,).

        Raises:
            InvalidValueError: if the table does not have these epochs.
        """
        mean: NDArray[np.float64] = self.percent[:, :, self._column(epochs)].mean(axis=1)
        return mean

    def spread(self, epochs: int) -> NDArray[np.float64]:
        """Standard deviation over the seeds (n - 1), percentage points, (n_architectures,).

        Raises:
            InvalidValueError: if the table does not have these epochs.
        """
        spread: NDArray[np.float64] = self.percent[:, :, self._column(epochs)].std(axis=1, ddof=1)
        return spread

    def pooled_spread(self, epochs: int) -> float:
        """Standard deviation over the seeds of all architectures together, percentage points."""
        return float(np.sqrt(np.mean(self.spread(epochs) ** 2)))

    def _column(self, epochs: int) -> int:
        if epochs not in self.epochs:
            raise InvalidValueError(f"epochs is {epochs!r}; the table has {self.epochs}")
        return self.epochs.index(epochs)


class TabulatedAccuracy:
    """The tables, as a source of accuracies; an architecture that is in none gets NaN.

    >>> from archgym.envs.nas.tasks import TASKS, architecture_space
    >>> task = TASKS["digits"]
    >>> networks = architecture_space(task).sample(2, np.random.default_rng(0))
    >>> TabulatedAccuracy().accuracies(task, list(networks), 27).shape
    (2,)

    Args:
        folder: where the tables are, one ``TASK.parquet`` a task; by default those that ship.
    """

    name = "tabulated"
    synthetic = False

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._means: dict[tuple[str, int], dict[str, float]] = {}
        self.epochs: tuple[int, ...] = Recipe().epochs

    def accuracies(
        self, task: Task, architectures: Sequence[Architecture], epochs: int
    ) -> NDArray[np.float64]:
        """Mean accuracies over the seeds, percent, NaN where the table has none.

        Raises:
            UnknownNameError: if there is no table of the task.
            InvalidValueError: if the table does not have these epochs.
            DatasetError: if the table cannot be read.
        """
        means = self._means.get((task.name, epochs))
        if means is None:
            table = self.table(task)
            means = dict(zip(table.rows, table.mean(epochs).tolist(), strict=True))
            self._means[task.name, epochs] = means
        key = family_of(task).key
        return np.array([means.get(key(task, each), np.nan) for each in architectures])

    def table(self, task: Task) -> AccuracyTable:
        """The whole table of a task: seeds, learning curves, how it was made.

        Raises:
            UnknownNameError: if there is none.
            DatasetError: if it cannot be read, or is another task's.
        """
        table = accuracy_table(task.name, self._folder)
        if table.made["task"] != task.name:
            raise DatasetError(f"the table {task.name!r} is of task {table.made['task']!r}")
        return table


def accuracy_table(task: str, folder: Path | None = None) -> AccuracyTable:
    """The table of a task, in a folder or of those that ship.

    Raises:
        UnknownNameError: if there is none.
        DatasetError: if it cannot be read.
    """
    if folder is None:
        paths = shipped_accuracy_tables()
    else:
        paths = {path.stem: path for path in sorted(folder.glob("*.parquet"))}
    if task not in paths:
        raise UnknownNameError("table of accuracies", task, paths)
    path = paths[task].absolute()
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _read(path: Path, changed_ns: int) -> AccuracyTable:
    return AccuracyTable.read(path)


def shipped_accuracy_tables() -> dict[str, Path]:
    """The tables that come with archgym, by task."""
    folder = resources.files("archgym").joinpath("datasets", "nas")
    with resources.as_file(folder) as found:
        return {path.stem: path for path in sorted(found.glob("*.parquet"))}
