"""Runs that learn from a library of earlier runs, and join it at their end."""

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

__all__ = ["add_to_library", "as_begun", "with_library"]


def as_begun(experiment: Experiment, folder: RunFolder) -> Experiment:
    """The experiment with what its run found in a library when it began.

    A run that goes on learns from the same folders, whatever the library holds by now.

    Args:
        experiment: as it was given.
        folder: of the run; nothing changes if none began there, or it had no library.
    """
    if not folder.begun():
        return experiment
    before = None
    with contextlib.suppress(ArchgymError):  # what is damaged is reported by the checks to come
        before = load_experiment(str(folder.path / "experiment.yaml"))
    if before is None or not before.library:
        return experiment
    history = list(dict.fromkeys([*experiment.history, *before.history]))
    library = before.library if experiment.library is None else experiment.library
    return experiment.model_copy(update={"history": history, "library": library})


def with_library(
    experiment: Experiment, environments: Mapping[str, Environment], folder: RunFolder
) -> Experiment:
    """The experiment with the folders of its library that its searches may learn from.

    Args:
        experiment: as :func:`as_begun` gave it; nothing changes if it has no library.
        environments: the environment of each setting.
        folder: of the run; nothing changes if it began already.

    Raises:
        DatasetError: if there is no such library.
    """
    if not experiment.library:
        return experiment
    with located("library"):
        library = Library(experiment.library)
    if folder.begun():
        return experiment
    listed = {Path(path).expanduser().resolve() for path in experiment.history}
    own = Path(folder.path)
    found: dict[Path, str] = {}
    for environment in environments.values():
        for path in library.find(environment, without=[own, *listed]):
            found[path.resolve()] = str(path)
    history = [*experiment.history, *found.values()]
    return experiment.model_copy(update={"history": history})


def add_to_library(experiment: Experiment, folder: RunFolder) -> str:
    """Adds a run that has ended to its library; a line that says so.

    Args:
        experiment: of the run.
        folder: of the run.

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
    try:
        Library(experiment.library).add(folder.path)
    except DatasetError as error:  # the run itself is sound
        return f"not added to the library {experiment.library}: {error}"
    return f"added to the library {experiment.library}"
