"""Exporting a dataset to files of other tools."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from archgym.data.dataset import Dataset
from archgym.data.rows import OF_THE_TRIAL
from archgym.data.selection import Selection
from archgym.errors import DatasetError, InvalidValueError, UnknownNameError

__all__ = ["FORMATS", "export", "form_of"]

FORMATS = ("card", "csv", "minari", "optuna", "parquet")
_ENDINGS = {
    "md": "card",
    "db": "optuna",
    "sqlite": "optuna",
    "sqlite3": "optuna",
    "log": "optuna",
}


def export(data: Dataset | Selection, path: str | Path, form: str = "", **options: Any) -> int:
    """Writes evaluations, joined with agent, seed and workload, in another form.

    ============  ================================================================================
    form          what it writes
    ============  ================================================================================
    ``parquet``   one file, every column
    ``csv``       the same as text
    ``minari``    a folder of Minari datasets: :func:`archgym.export.minari.export_minari`
    ``optuna``    a storage of Optuna studies: :func:`archgym.export.optuna.export_optuna`
    ``card``      a README.md with metadata: :func:`archgym.export.card.write_card`
    ============  ================================================================================

    Args:
        data: what to export.
        path: the file, or folder; it must not exist.
        form: one of :data:`FORMATS`; by default from the file's ending.
        options: keyword arguments of the function that writes this form.

    Returns:
        Number of rows written, or described by a card.

    Raises:
        UnknownNameError: for another form, or an option that it does not have.
        DatasetError: if there are no rows, or the file exists or cannot be written.
        MissingDependencyError: if Minari or Optuna is needed and not installed.
    """
    path, selection = Path(path), data if isinstance(data, Selection) else Selection(data)
    form = form_of(path, form)
    if path.exists():
        raise DatasetError(f"{path} exists already")
    if not len(selection):
        raise DatasetError(f"no row is left of {selection.dataset.directory}: nothing to export")
    if form == "minari":
        from archgym.export.minari import export_minari

        return _call(form, export_minari, selection, path, options)
    if form == "optuna":
        from archgym.export.optuna import export_optuna

        return _call(form, export_optuna, selection, path, options)
    if form == "card":
        from archgym.export.card import write_card

        return _call(form, write_card, selection, path, options)
    return _call(form, _write_csv if form == "csv" else _write_parquet, selection, path, options)


def form_of(path: Path, form: str = "") -> str:
    """The form that is asked for, or that the ending of a file stands for.

    Raises:
        UnknownNameError: if there is no such form.
        InvalidValueError: if a file without an ending leaves it open.
    """
    ending = path.suffix.removeprefix(".")
    if not form and not ending:
        raise InvalidValueError(f"{path} has no ending: say --format {', '.join(FORMATS)}")
    form = form or _ENDINGS.get(ending, ending)
    if form not in FORMATS:
        raise UnknownNameError("export format", form, FORMATS)
    return form


def _call(
    form: str, write: Callable[..., int], selection: Selection, path: Path, options: dict[str, Any]
) -> int:
    allowed = list(write.__kwdefaults__ or ())
    for name in options:
        if name not in allowed:
            raise UnknownNameError(f"option of export format {form}", name, allowed)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if form == "minari":  # it makes folders of its own, whole or not at all
            return write(selection, path, **options)
        rows = write(selection, unfinished, **options)
        os.replace(unfinished, path)
        return rows
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"cannot write {path}: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _columns(selection: Selection) -> list[str]:
    own = [name for name in selection.columns if name not in (*OF_THE_TRIAL, "trial_id")]
    return ["trial_id", *OF_THE_TRIAL, *own]


def _schema(selection: Selection) -> pa.Schema:
    return selection.where("step < 0").arrow(_columns(selection)).schema


def _write_parquet(selection: Selection, path: Path) -> int:
    schema = _schema(selection)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in selection.blocks(_columns(selection)):
            writer.write_table(table.cast(schema))
    return len(selection)


def _write_csv(selection: Selection, path: Path) -> int:
    schema = pa.schema(
        [
            pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
            for f in _schema(selection)
        ]
    )
    with pyarrow.csv.CSVWriter(path, schema) as writer:
        for table in selection.blocks(_columns(selection)):
            writer.write_table(table.cast(schema))
    return len(selection)
