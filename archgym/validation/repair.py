"""Repair of a damaged dataset: what its checksums prove is kept, the rest is set aside.

Of each trial the longest beginning is kept that is there without a gap: a resumed search is
answered from it and simulates what follows again. Steps are the order in which outcomes arrived, or
inside a batch that of its designs, so what a search saw before a step has lower steps. The
step after a gap may have followed from what is missing. Nothing is deleted: the files as they were
are moved into the folder ``damaged`` of the dataset.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from archgym.data import Dataset
from archgym.data.checks import validate
from archgym.data.dataset import begun_trial, parquet_trials
from archgym.data.files import write_dataset
from archgym.data.journal import Checksums, is_locked, read_journal
from archgym.data.parts import is_as_written, sealed_journals, sound_parts
from archgym.data.records import check_line, check_trial
from archgym.data.schema import Sidecar, evaluation_schema
from archgym.data.snapshot import Snapshot, journal_tables
from archgym.errors import DatasetError, check_received
from archgym.reading.files import lines_of, opened

__all__ = ["SET_ASIDE", "Repaired", "repair"]

_FOLDERS = ("evaluations", "trials", "attempts", "journal")
SET_ASIDE = "damaged"
"""The folder in a dataset that takes the files as they were."""
_NEW = "repaired"


@dataclass(frozen=True)
class Repaired:
    """The result of a repair.

    Attributes:
        kept: evaluations that are kept.
        trials: trials that are kept.
        set_aside: folder with the files as they were; ``None`` if nothing is damaged.
    """

    kept: int
    trials: int
    set_aside: Path | None


def repair(directory: str | Path, belongs: Callable[[str], bool] | None = None) -> Repaired:
    """Repairs a dataset in its place; a repair that was interrupted is finished.

    A dataset without damage stays as it is.

    Args:
        directory: folder of the dataset.
        belongs: whether a trial, by its id, is one of the dataset's; every one by default.

    Raises:
        DatasetError: if it has no readable sidecar, a process writes to it, it was repaired
            before, or nothing can be kept.
    """
    folder = Path(directory)
    check_received(folder)
    sidecar = Sidecar.load(folder)
    aside = folder / SET_ASIDE
    belongs = belongs or (lambda trial_id: True)
    if not (folder / _NEW).is_dir():
        if sound := _if_sound(folder, belongs):
            return sound
        if aside.exists():
            raise DatasetError(f"{aside} is left from an earlier repair: move it away first")
        _write(folder, sidecar, belongs)
    elif not aside.exists() and not (folder / _NEW / "evaluations").is_dir():
        raise DatasetError(f"{folder / _NEW} is not of an earlier repair: move it away first")
    try:
        aside.mkdir(exist_ok=True)
        for name in _FOLDERS:
            if (folder / name).exists() and not (aside / name).exists():
                os.rename(folder / name, aside / name)
        for name in ("evaluations", "trials"):
            if (folder / _NEW / name).exists():
                os.rename(folder / _NEW / name, folder / name)
        for path in (folder / _NEW).iterdir():
            path.unlink()
        (folder / _NEW).rmdir()
    except OSError as error:
        raise DatasetError(f"cannot write to {folder}: {error.strerror or error}") from error
    found = Dataset(folder)
    return Repaired(len(found.snapshot()), found.trials().num_rows, aside)


def _if_sound(folder: Path, belongs: Callable[[str], bool]) -> Repaired | None:
    """What a dataset holds, if nothing is wrong with it."""
    dataset = Dataset(folder)
    try:
        if not all(check.passed for check in validate(dataset)):
            return None
        trials = dataset.trials()["trial_id"].to_pylist()
    except DatasetError:
        return None
    if not all(map(belongs, trials)):
        return None
    return Repaired(len(dataset.snapshot()), len(trials), None)


def _write(folder: Path, sidecar: Sidecar, belongs: Callable[[str], bool]) -> None:
    """Writes what is kept as a dataset into the folder."""
    journals = [one for one in sorted((folder / "journal").glob("*.jsonl")) if one.is_file()]
    for path in journals:
        if is_locked(path):
            raise DatasetError(f"a process writes to {path}: end it first")
    found = _trials(folder, sidecar, journals)
    trials = {name: row for name, row in found.items() if belongs(name)}
    tables = list(_tables(folder, sidecar, journals, trials))
    schema = evaluation_schema(sidecar.space, sidecar.metrics)
    whole = pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries()
    keep = _beginnings(whole, list(trials))
    if not len(keep):
        raise DatasetError(f"nothing of {folder} can be kept: remove it")
    kept = whole.take(pa.array(keep))
    seen = set(kept["trial_id"].to_pylist())
    write_dataset(
        folder / _NEW,
        sidecar,
        [{**row, "state": "closed"} for name, row in trials.items() if name in seen],
        [kept],
        operations=[{"operation": "repair"}],
        whole_trials=True,
    )


def _beginnings(whole: pa.Table, trials: Sequence[str]) -> NDArray[np.int64]:
    """Rows of the longest beginning without a gap of each trial, in the order of the trials.

    Args:
        whole: rows of these trials in any order; of rows of one step the first one is taken.
        trials: their ids.
    """
    trial = pc.index_in(whole["trial_id"].cast(pa.string()), pa.array(trials, pa.string()))
    number, step = trial.to_numpy(), whole["step"].to_numpy().astype(np.int64)
    order = np.lexsort((step, number))  # stable: rows of one step stay in their order
    order = order[step[order] >= 0]
    number, step = number[order], step[order]
    first = np.append(True, (number[1:] != number[:-1]) | (step[1:] != step[:-1]))[: len(order)]
    order, number, step = order[first], number[first], step[first]
    place = np.arange(len(order)) - np.searchsorted(number, number)
    # Steps of a trial increase, so from its first gap on each differs from its place.
    kept: NDArray[np.int64] = order[step == place]
    return kept


def _trials(folder: Path, sidecar: Sidecar, journals: list[Path]) -> dict[str, dict[str, Any]]:
    """The trials that can be read, by id: from tables, and from journals line by line."""
    found: dict[str, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    for path in (p for name in ("attempts", "trials") for p in (folder / name).glob("*.parquet")):
        with contextlib.suppress(DatasetError):
            if is_as_written(path):
                rows += parquet_trials(path)
    for path in journals:
        for _, line in _sound_lines(path):
            if isinstance(line, dict) and "trial" in line:
                rows.append(begun_trial(line))
    for row in rows:
        if not check_trial(row, sidecar.space, sidecar.metrics):
            found[row["trial_id"]] = row
    return found


def _tables(
    folder: Path, sidecar: Sidecar, journals: list[Path], trials: dict[str, Any]
) -> Iterator[pa.Table]:
    """The rows that checksums prove, of trials that can be read."""
    sound = sound_parts(folder)
    known = pa.array(sorted(trials), pa.string())
    sealed: set[str] = set()
    for path in sound:
        sealed |= set(sealed_journals(path))
        for _, table in Snapshot(sidecar, [path], []).blocks():
            yield table.filter(pc.is_in(table["trial_id"].cast(pa.string()), known))
    for path in journals:
        if path.name not in sealed:
            lines = [text for text, _ in _sound_lines(path)]
            for table in journal_tables(sidecar, path, lines):
                yield table.filter(pc.is_in(table["trial_id"].cast(pa.string()), known))


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a journal, up to one that is too long or cannot be read."""
    with contextlib.suppress(OSError), opened(path) as file:
        yield from lines_of(file, path)


def _sound_lines(path: Path) -> Iterator[tuple[bytes, Any]]:
    """The lines of a journal up to the first wrong one of each trial."""
    checksums, begun, broken = Checksums(), set[Any](), set[Any]()
    for number, text in enumerate(_lines(path), 1):
        try:
            ((_, _, line),) = read_journal(path, [(number, text)])
            if not isinstance(line, list):
                check_line(path, number, line)
        except (DatasetError, ValueError):
            continue  # the next line of its trial will not fit
        row = isinstance(line, list)
        n = line[0] if row else line.get("n", line.get("end"))
        if not isinstance(n, int) or n in broken:
            continue
        begins = not row and "trial" in line
        if begins == (n in begun):
            continue  # a second beginning, or of a trial that has not begun: no line of it
        begun.add(n)
        if checksums.problem(text, line):
            broken.add(n)
        elif row or begins:
            yield text, line
