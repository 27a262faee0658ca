"""Exporting a dataset to one file, for other tools."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq

from archgym.data.dataset import Dataset
from archgym.errors import DatasetError, UnknownNameError

__all__ = ["FORMATS", "export"]

FORMATS = ("csv", "parquet")


def export(dataset: Dataset, path: str | Path, form: str = "") -> int:
    """Writes all evaluations, joined with agent, seed and workload, to one file.

    Args:
        dataset: what to export.
        path: the file; it must not exist.
        form: one of :data:`FORMATS`; by default from the file's ending.

    Returns:
        Number of rows written.

    Raises:
        UnknownNameError: for another form.
        DatasetError: if the file exists or cannot be written.
    """
    path = Path(path)
    form = form or path.suffix.removeprefix(".")
    if form not in FORMATS:
        raise UnknownNameError("export format", form, FORMATS)
    if path.exists():
        raise DatasetError(f"{path} exists already")
    table = dataset.evaluations()
    trials = {row["trial_id"]: row for row in dataset.trials().to_pylist()}
    ids = table["trial_id"].to_pylist()
    for position, name in enumerate(
        ("environment", "workload", "agent", "hyperparameters", "seed"), 1
    ):
        table = table.add_column(position, name, [[trials[i][name] for i in ids]])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if form == "csv":
            pyarrow.csv.write_csv(table, path)
        else:
            pq.write_table(table, path, compression="zstd")
    except OSError as error:
        raise DatasetError(f"cannot write {path}: {error}") from error
    return int(table.num_rows)
