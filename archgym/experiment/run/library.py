"""What runs that go on learned from when they began; libraries that runs learn from and join."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, DatasetError
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.spec.checks import located
from archgym.experiment.spec.load import load_experiment
from archgym.experiment.spec.schema import Experiment
from archgym.history.library import Library
from archgym.history.shipped import place_of

__all__ = ["add_to_library", "as_begun", "with_library"]


def as_begun(experiment: Experiment, folder: RunFolder) -> Experiment:
    """The experiment with the history that its run began with.

    A run that goes on learns from what it read then. So folders that are not named again are the
    same ones, and so are those that are written in another way; what a library holds by now does
    not matter.

    Args:
        experiment: as it was given.
        folder: of the run; nothing changes if none began there.
    """
    if not folder.begun():
        return experiment
    before = None
    with contextlib.suppress(ArchgymError):  # what is damaged is reported by the checks to come
        before = load_experiment(str(folder.path / "experiment.yaml"))
    if before is None:
        return experiment
    listed = [*before.history, *(path for one in before.environments for path in one.history)]
    written = {_place(path): path for path in listed}

    def as_written(paths: list[str]) -> list[str]:
        return [written.get(_place(path), path) for path in paths]

    history = as_written(experiment.history)
    if before.library or not history:
        history = list(dict.fromkeys([*history, *before.history]))
    entries = [
        entry.model_copy(update={"history": as_written(entry.history)})
        for entry in experiment.environments
    ]
    library = before.library if experiment.library is None else experiment.library
    changes = {"history": history, "environments": entries, "library": library}
    return experiment.model_copy(update=changes)


def with_library(
    experiment: Experiment, environments: Mapping[str, Environment], folder: RunFolder
) -> tuple[Experiment, str]:
    """The experiment with the folders of its library that its searches may learn from.

    Args:
        experiment: as :func:`as_begun` gave it; nothing changes if it has no library.
        environments: the environment of each setting.
        folder: of the run; nothing changes if it began already.

    Returns:
        The experiment, and a line that says how many folders these are; empty without a library.

    Raises:
        DatasetError: if there is no such library.
    """
    if not experiment.library or folder.begun():
        return experiment, ""
    with located("library"):
        library = Library(experiment.library)
    listed = {_place(path) for path in experiment.history}
    own = Path(folder.path)
    found: dict[Path, str] = {}
    for environment in environments.values():
        for path in library.find(environment, without=[own, *listed]):
            found[path.resolve()] = str(path)
    history = [*experiment.history, *found.values()]
    entries = library.entries
    lost = sum(bool(library.problem_of(entry)) for entry in entries)
    text = f"library {experiment.library}: searches learn from {len(found):,} of {len(entries):,}"
    text += f" entries, {lost:,} of which cannot be read" if lost else " entries"
    text += "; archgym history list says why" if lost else ""
    return experiment.model_copy(update={"history": history}), text


def _place(path: str) -> Path:
    return place_of(path).resolve()


def add_to_library(experiment: Experiment, folder: RunFolder, named: str | None) -> str:
    """Adds a run that has ended to its library; a line that says so.

    A folder that was received does not decide where something is written, so a library that only
    the folder names is not written to.

    Args:
        experiment: of the run.
        folder: of the run.
        named: the library that the experiment had as it was given.

    Returns:
        Empty if there is no library, or trials of other shards are left.
    """
    if not experiment.library:
        return ""
    ended = {
        row["trial_id"]
        for dataset in folder.existing_datasets()
        for row in dataset.trials().select(["trial_id", "state"]).to_pylist()
        if row["state"] != "running"
    }
    if any(trial.trial_id not in ended for trial in folder.trials()):
        return ""
    if not named:
        return (
            f"not added to the library {experiment.library!r}, which is named in the folder of the "
            "run only: archgym history add adds it"
        )
    try:
        Library(experiment.library).add(folder.path)
    except DatasetError as error:  # the run itself is sound
        return f"not added to the library {experiment.library}: {error}"
    return f"added to the library {experiment.library}"
