"""The files of a run beside its datasets: their checksums, and what they say of the trials.

``checksums.json`` lists files of the run, each with its SHA-256. What a run is prepared with is
listed before its first trial, and all results at its end. Datasets have checksums of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from archgym.errors import ArchgymError, ExperimentError
from archgym.experiment.folder.names import MANIFEST
from archgym.experiment.folder.run_folder import HISTORIES, RunFolder
from archgym.experiment.folder.trial_states import problems_of_log, read_ends
from archgym.reading.checked_json import read_checked_json
from archgym.reading.files import opened
from archgym.validation.repair import SET_ASIDE

__all__ = [
    "check_prepared",
    "is_of_run",
    "list_nothing",
    "list_prepared",
    "list_results",
    "problems_of_run",
]


_PREPARED = ("experiment.yaml", "trials.json", "initial_designs.json")
"""Files that the trials of a run follow from, besides what they learn from."""


@dataclass(frozen=True)
class _Manifest:
    """The form of the file.

    Attributes:
        files: SHA-256 of each file, by its path in the folder.
        checksum: SHA-256 of ``files`` as a JSON text.
    """

    files: dict[str, str]
    checksum: str


def list_nothing(folder: RunFolder) -> None:
    """Lists no file, while those that are listed are written anew.

    Raises:
        ExperimentError: if it cannot be written.
    """
    _write(folder, [])


def list_prepared(folder: RunFolder) -> None:
    """Lists what the trials of a run follow from.

    Raises:
        ExperimentError: if it cannot be written.
    """
    _write(folder, _prepared(folder))


def list_results(folder: RunFolder) -> None:
    """Lists the results of a run too, unless it is a shard, beside which others may write them.

    Raises:
        ExperimentError: if it cannot be written.
    """
    if not folder.shard:
        parts = (folder.tables.glob("*"), folder.logs.glob("*.jsonl"))
        made = [folder.results, folder.picture, *(path for part in parts for path in part)]
        _write(folder, [*_prepared(folder), *made])


def check_prepared(folder: RunFolder) -> None:
    """Makes sure that the trials of a run that goes on are those that it began with.

    Raises:
        ExperimentError: if a file was changed or is missing.
    """
    for problem in _problems(folder, only_prepared=True):
        raise ExperimentError(
            f"{folder.path} is damaged, so its run cannot go on: {problem}; put the file back, or "
            "run the experiment in another folder"
        )


def problems_of_run(folder: RunFolder) -> list[str]:
    """What is wrong with a run beside what is wrong in its datasets; reads all of its files."""
    found = list(_problems(folder))
    for path in sorted(folder.logs.glob("*.jsonl")):
        found += [f"log/{path.name}, {problem}" for problem in problems_of_log(path)]
    try:
        return found + _problems_of_trials(folder)
    except ArchgymError as error:
        return [*found, str(error)]


def is_of_run(trial_id: str, trials: Container[str]) -> bool:
    """Whether a trial of a dataset is one of those of a run, or of a process that one forked."""
    return trial_id in trials or trial_id.rpartition("-")[0] in trials


# -- inner workings ------------------------------------------------------------------------------


def _prepared(folder: RunFolder) -> list[Path]:
    # Without what another shard writes just now.
    histories = sorted(folder.histories.glob("[!.]*.parquet"))
    return [*(folder.path / name for name in _PREPARED), *histories]


def _write(folder: RunFolder, paths: Sequence[Path]) -> None:
    files = {
        path.relative_to(folder.path).as_posix(): _sha256(path) for path in paths if path.is_file()
    }
    data = {"files": files, "checksum": _checksum(files)}
    folder.write_json(folder.path / MANIFEST, data, durable=True)


def _problems(folder: RunFolder, *, only_prepared: bool = False) -> Iterator[str]:
    """What differs from the list: in all files, or in those that trials follow from."""
    path = folder.path / MANIFEST
    try:
        listed = read_checked_json(path, _Manifest)
    except FileNotFoundError:
        if not only_prepared and folder.begun():  # else it was killed while it was prepared
            yield f"{MANIFEST} is missing"
        return
    except (OSError, ValueError) as error:
        yield f"cannot read {path}: {error}"
        return
    if listed.checksum != _checksum(listed.files):
        yield f"{MANIFEST} was changed: its checksum is another one"
        return
    for name, digest in sorted(listed.files.items()):
        if only_prepared and not (name in _PREPARED or name.startswith(f"{HISTORIES}/")):
            continue
        leads_out = Path(name).is_absolute() or ".." in Path(name).parts
        if leads_out or not (folder.path / name).is_file():
            yield f"{name} is missing"
        elif _sha256(folder.path / name) != digest:
            yield f"{name} was changed: its checksum is another one"


def _problems_of_trials(folder: RunFolder) -> list[str]:
    """Trials of which the datasets hold other things than the list and the logs say."""
    trials = {trial.trial_id: trial for trial in folder.trials()}
    if not trials:
        return ["trials.json is missing, or lists no trials"]
    ends, found, held = read_ends(folder.logs), [], dict[str, str]()
    repaired = False
    for dataset in folder.existing_datasets():
        repaired |= (dataset.directory / SET_ASIDE).is_dir()  # so ends were lost
        table = dataset.trials().select(["trial_id", "state", "agent", "seed"])
        for row in table.to_pylist():
            name, trial = row["trial_id"], trials.get(row["trial_id"])
            held[name] = row["state"]
            if not is_of_run(name, trials):
                found.append(f"{dataset.directory.name} has trial {name}, which is none of the run")
            elif trial and (trial.agent != row["agent"] or trial.seed != row["seed"]):
                found.append(f"{dataset.directory.name}: trial {name} has another agent or seed")
    lost = [name for name in sorted(ends) if ends[name].state == "finished"]
    lost = [name for name in lost if not repaired and held.get(name) != "finished"]
    text = "the end of trial {} is missing: its log says that it has finished"
    return found + [text.format(name) for name in lost]


def _checksum(files: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    """The SHA-256 of a file; empty if it is none that can be read."""
    try:
        with opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
