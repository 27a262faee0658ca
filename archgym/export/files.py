"""Exporting a dataset to files of other tools."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from archgym.data.dataset import Dataset
from archgym.data.parts import write_parquet
from archgym.data.rows import OF_THE_TRIAL
from archgym.data.selection import Selection
from archgym.errors import DatasetError, InvalidValueError, check_choice
from archgym.export.card import write_card
from archgym.export.formulas import without_formulas
from archgym.export.huggingface import export_huggingface
from archgym.export.minari import export_minari
from archgym.export.optuna import export_optuna
from archgym.export.t4 import export_t4

__all__ = ["FORMATS", "export", "form_of"]

_ENDINGS = {
    "md": "card",
    "json": "t4",
    **dict.fromkeys(("db", "sqlite", "sqlite3", "log"), "optuna"),
}


def export(data: Dataset | Selection, path: str | Path, form: str = "", **options: Any) -> int:
    """Writes evaluations, joined with agent, seed and workload, in another form.

    ============  ================================================================================
    form          what it writes
    ============  ================================================================================
    ``parquet``   one file, every column
    ``csv``       the same as text; a ``'`` stands before a text that a spreadsheet would
                  calculate (:mod:`archgym.export.formulas`), unless ``formulas=True``
    ``minari``    a folder of Minari datasets: :func:`archgym.export.minari.export_minari`
    ``optuna``    a storage of Optuna studies: :func:`archgym.export.optuna.export_optuna`
    ``t4``        T4 results of autotuners, one problem: :func:`archgym.export.t4.export_t4`
    ``card``      a README.md with metadata: :func:`archgym.export.card.write_card`
    ``hf``        a folder for the Hugging Face hub, the dataset with its card:
                  :func:`archgym.export.huggingface.export_huggingface`
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
    write = _WRITERS[form]
    allowed = list(write.__kwdefaults__ or ())
    for name in options:
        check_choice(f"option of export format {form}", name, allowed)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if form == "minari":  # it makes folders itself, whole or not at all
            return write(selection, path, **options)
        rows = write(selection, unfinished, **options)
        os.replace(unfinished, path)
        return rows
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"cannot write {path}: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


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
    check_choice("export format", form, FORMATS)
    return form


def _write_parquet(selection: Selection, path: Path) -> int:
    names, schema = _columns(selection)
    return write_parquet(path, schema, selection.blocks(names))


def _write_csv(selection: Selection, path: Path, *, formulas: bool = False) -> int:
    """A CSV file, with ``formulas`` also with cells that spreadsheets would calculate."""
    names, schema = _columns(selection)
    fields = [
        pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in schema
    ]
    with pyarrow.csv.CSVWriter(path, pa.schema(fields)) as writer:
        for table in selection.blocks(names):
            plain = table.cast(pa.schema(fields))
            writer.write_table(plain if formulas else without_formulas(plain))
    return len(selection)


def _columns(selection: Selection) -> tuple[list[str], pa.Schema]:
    """Names of the columns that are written, and their types."""
    own = [name for name in selection.columns if name not in (*OF_THE_TRIAL, "trial_id")]
    names = ["trial_id", *OF_THE_TRIAL, *own]
    return names, selection.where("step < 0").arrow(names).schema


_WRITERS: dict[str, Callable[..., int]] = {
    "card": write_card,
    "csv": _write_csv,
    "hf": export_huggingface,
    "minari": export_minari,
    "optuna": export_optuna,
    "parquet": _write_parquet,
    "t4": export_t4,
}
FORMATS = tuple(_WRITERS)
