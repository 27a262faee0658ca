"""Folders of datasets: finding them, their provenance, and writing them whole or not at all."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from archgym.data.dataset import Dataset
from archgym.data.journal import ends_oddly, is_locked, is_of_this_machine
from archgym.data.parts import TRIALS_FILE, part_of, with_parts, write_parquet
from archgym.data.schema import TRIAL_SCHEMA, Sidecar, evaluation_schema
from archgym.errors import DatasetError, check_received
from archgym.reading.checked_json import read_checked_json
from archgym.reading.versions import version_of

PROVENANCE = "provenance.json"
"""What a dataset was made from; one that was recorded has no such file."""
_MAX_NAMED = 12
_MAX_LOOKED_IN = 100


@dataclass(frozen=True)
class _Provenance:
    """The form of the file :data:`PROVENANCE`."""

    operations: list[dict[str, Any]]
    whole_trials: bool


def find_datasets(folder: str | Path, *, seal: bool = True) -> list[Dataset]:
    """The dataset in a folder, or those of the run in it.

    Args:
        folder: of a dataset or a run.
        seal: whether journals that processes of this machine left are turned into Parquet first,
            where nobody writes to the dataset: see :func:`seal_if_idle`.

    Raises:
        DatasetError: if it is not there or holds neither; names those that may have been meant.
    """
    folder = Path(folder)
    if any(os.path.lexists(folder / name) for name in ("dataset.json", "trials.json", "datasets")):
        check_received(folder)
    if (folder / "dataset.json").is_file():
        return _opened([folder], seal)
    found = sorted(path.parent for path in folder.glob("datasets/*/dataset.json"))
    if not found:
        if folder.exists():
            inside = _meant(folder.name, [folder, *_folders_in(folder)]) or _around(folder)
            end = f" itself. {inside}" if inside else ""
            raise DatasetError(f"{folder} holds neither a run nor a dataset{end}")
        near = _meant(folder.name, [folder.parent, Path(), Path("runs")])
        raise DatasetError(
            f"{folder} is not there. {near or 'No run or dataset is beside it, here or in runs/.'}"
        )
    return _opened(found, seal)


def _opened(folders: Sequence[Path], seal: bool) -> list[Dataset]:
    for folder in folders if seal else ():
        with contextlib.suppress(DatasetError, OSError):  # the rows are read from the journals
            seal_if_idle(folder, wait=False)
    return [Dataset(folder) for folder in folders]


def _folders_in(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [one for one in sorted(folder.iterdir())[:_MAX_LOOKED_IN] if one.is_dir()]
    return []


def _around(folder: Path) -> str:
    """Which run or dataset a folder lies in; or nothing."""
    for parent in folder.absolute().parents:
        if any((parent / file).is_file() for file in ("dataset.json", "trials.json")):
            return f"It lies inside {parent}: give that."
    return ""


def _meant(name: str, places: Iterable[Path]) -> str:
    """Which runs and datasets are in some folders, and the one of the nearest name; or nothing."""
    there: list[Path] = []
    for place in dict.fromkeys(places):
        with contextlib.suppress(OSError):
            there += [
                folder
                for folder in sorted(place.iterdir())
                if any((folder / file).is_file() for file in ("dataset.json", "trials.json"))
            ]
    if not there:
        return ""
    near = difflib.get_close_matches(name, [found.name for found in there], n=1, cutoff=0.5)
    meant = next((f"Did you mean {str(f)!r}? " for f in there if f.name in near), "")
    more = ", ..." if len(there) > _MAX_NAMED else ""
    return f"{meant}There are: {', '.join(map(str, there[:_MAX_NAMED]))}{more}."


def find_dataset(folder: str | Path, *, seal: bool = True) -> Dataset:
    """The one dataset in a folder, or of the run in it.

    Args:
        folder: of a dataset or a run.
        seal: as :func:`find_datasets`.

    Raises:
        DatasetError: if it holds none, or several.
    """
    found = find_datasets(folder, seal=seal)
    if len(found) > 1:
        names = ", ".join(str(dataset.directory) for dataset in found)
        raise DatasetError(f"{folder} holds several datasets, name one of them: {names}")
    return found[0]


def seal_if_idle(folder: Path, *, wait: bool = True) -> bool:
    """Turns journals into Parquet if no process writes to a dataset; else the last one does it.

    Journals are left as they are if one of them comes from another machine, whose locks may not
    be seen here, or belongs to another user, or ends with something that was not recorded.

    Args:
        folder: of the dataset.
        wait: whether to wait for a process that seals the dataset now.

    Returns:
        Whether all rows are in Parquet now.

    Raises:
        DatasetError: if a journal is damaged, or the folder cannot be written.
    """
    if not any((folder / "journal").glob("*.jsonl")):
        return True
    dataset = Dataset(folder)
    for path in dataset.unsealed_journals():
        if not is_of_this_machine(path) or path.stat().st_uid != os.geteuid():
            return False
        if is_locked(path) or ends_oddly(path):
            return False
    if not all(os.access(place, os.W_OK) for place in (folder, folder / "journal")):
        return False
    dataset.seal_ended(wait=wait)
    return not dataset.unsealed_journals()


@dataclass(frozen=True)
class Sealed:
    """What sealing a dataset did.

    Attributes:
        directory: of the dataset.
        sealed: number of journals that are in Parquet now and were not before.
        open: number of journals that processes still write to.
    """

    directory: str
    sealed: int
    open: int


def seal_by_command(dataset: Dataset) -> Sealed:
    """Turns all journals into Parquet that no process holds open, those of other machines too.

    Raises:
        DatasetError: if a journal is damaged, or the folder cannot be written.
    """
    before = dataset.unsealed_journals()
    for path in before:
        if ends_oddly(path):
            raise DatasetError(
                f"{path} is damaged: what follows its last line was not recorded; archgym dataset "
                "validate shows it, archgym dataset repair keeps what is provable"
            )
    dataset.seal_ended()
    left = dataset.unsealed_journals()
    sealed = len(set(before) - set(left))
    return Sealed(str(dataset.directory), sealed, sum(map(is_locked, left)))


def provenance(dataset: Dataset) -> dict[str, Any]:
    """How a dataset was made: ``operations``, the oldest first, and whether trials are whole.

    Raises:
        DatasetError: if the file with that record is damaged.
    """
    path = dataset.directory / PROVENANCE
    try:
        made = read_checked_json(path, _Provenance)
        for step in made.operations:
            _check_operation(step)
        return vars(made)
    except FileNotFoundError:
        return {"operations": [], "whole_trials": True}
    except (OSError, ValueError) as error:
        raise DatasetError(f"cannot read {path}: {error}") from error


def _check_operation(step: dict[str, Any]) -> None:
    """Refuses a step in which a dataset was made that lacks what is shown of it."""
    sources = step.get("sources", [])
    named = isinstance(sources, list) and all(
        isinstance(one, dict) and isinstance(one.get("dataset"), str) for one in sources
    )
    if not named or not isinstance(step.get("operation"), str):
        raise ValueError(f"an operation is {step!r:.80}")


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder beside it that takes its name at the end, and goes away if an error comes first.

    Raises:
        DatasetError: if it exists already and is not empty, or cannot be written.
    """
    folder = Path(folder)
    check_received(folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise DatasetError(f"{folder} exists already")
    unfinished = folder.parent / f".{folder.name}.{os.getpid()}.unfinished"
    try:
        unfinished.mkdir(parents=True)
        yield unfinished
        os.replace(unfinished, folder)
    except OSError as error:
        raise DatasetError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def write_dataset(
    folder: str | Path,
    sidecar: Sidecar,
    trials: Sequence[dict[str, Any]],
    tables: Iterable[pa.Table],
    *,
    operations: Sequence[dict[str, Any]],
    whole_trials: bool,
) -> int:
    """Writes a dataset; the tables of evaluations are taken one after the other.

    Args:
        folder: the new dataset's; it must not be there, or be empty.
        sidecar: what all rows share.
        trials: rows of the table of trials.
        tables: the evaluations.
        operations: how it was made.
        whole_trials: whether no row of these trials was left out.

    Returns:
        Number of evaluations.

    Raises:
        DatasetError: if the folder exists already, or cannot be written.
    """
    hashes = {row["workload"]: row["workload_sha256"] for row in trials}
    with new_folder(Path(folder)) as made:
        schema = evaluation_schema(sidecar.space, sidecar.metrics)
        part = made / "evaluations" / "part-0.parquet"
        written = write_parquet(part, schema, tables)
        ordered = sorted(trials, key=lambda row: str(row["trial_id"]))
        table = pa.Table.from_pylist(ordered, schema=TRIAL_SCHEMA)
        listed = with_parts(table.schema, {part.name: part_of(part, [])})
        write_parquet(made / "trials" / TRIALS_FILE, listed, [table], digest=True)
        data = {
            "archgym": version_of("archgym"),
            "whole_trials": whole_trials,
            "operations": list(operations),
        }
        text = json.dumps(data, indent=1, ensure_ascii=False)
        (made / PROVENANCE).write_text(text, "utf-8")
        replace(sidecar, workloads=hashes).save(made)
    return written
