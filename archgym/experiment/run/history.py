"""What the searches of a run learn from: read once when the run begins, and kept in its folder."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from archgym.environment.environment import Environment
from archgym.errors import DatasetError, ExperimentError
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.run.proxy_history import check_proxy, is_proxy, predicted
from archgym.experiment.spec.checks import entry_position, first_of_each, located
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.schema import Experiment
from archgym.history.account import SourceAccount
from archgym.history.earlier import Earlier
from archgym.history.kept import write_kept
from archgym.history.reading import check_history, history_datasets, read_earlier

__all__ = ["check_histories", "history_lines", "keep_histories", "read_histories"]

Found = tuple[list[Earlier], tuple[SourceAccount, ...]]
_MAX_LINES = 12


def check_histories(
    experiment: Experiment,
    trials: Sequence[Trial],
    environments: Mapping[str, Environment],
    folder: RunFolder,
) -> None:
    """Refuses folders that cannot be history; reads no rows.

    What the run in the folder has read already is not looked at again.

    Args:
        experiment: where the trials come from.
        trials: all trials of the experiment.
        environments: the environment of each setting.
        folder: of the run.

    Raises:
        ArchgymError: for a folder or proxy that is damaged, holds no data or is of no use, or is
            the output folder itself, with its place.
    """
    refused: dict[str, DatasetError] = {}
    used: set[str] = set()
    for trial in _left(trials, folder):
        position = entry_position(experiment, trial)
        for path in trial.history:
            shared = path not in experiment.environments[position].history
            with located("history" if shared else f"environments[{position}].history"):
                try:
                    if is_proxy(path):
                        leased = experiment.simulation.leased
                        check_proxy(path, environments[trial.setting], leased=leased)
                    else:
                        _check_elsewhere(path, folder)
                        check_history(path, environments[trial.setting])
                    used.add(path)
                except DatasetError as why:
                    if not shared:
                        raise
                    refused.setdefault(path, why)
    for path in refused.keys() - used:
        with located("history"):
            raise refused[path]


def read_histories(
    experiment: Experiment,
    trials: Sequence[Trial],
    environments: Mapping[str, Environment],
    folder: RunFolder,
) -> dict[str, Found]:
    """What the searches of each setting learn from, unless the folder holds it already.

    Args:
        experiment: where the trials come from.
        trials: all trials of the experiment.
        environments: the environment of each setting; where the baseline design is simulated by
            the first trial, its metrics are not known yet.
        folder: of the run.

    Raises:
        ArchgymError: as :func:`check_histories`.
    """
    found = {}
    for trial in _left(trials, folder):
        position, environment = entry_position(experiment, trial), environments[trial.setting]
        own = experiment.environments[position].history
        shared = [path for path in trial.history if path not in own]
        now = None if experiment.simulation.leased else environment.baseline_metrics
        with located(f"environments[{position}].history" if own else "history"):
            folders = [[p for p in paths if not is_proxy(p)] for paths in (own, shared)]
            earlier, accounts = read_earlier(folders[0], environment, now, folders[1])
            proxies = [path for path in trial.history if is_proxy(path)]
            expected, of_proxies = predicted(proxies, environment)
            found[trial.setting] = [*expected, *earlier], (*of_proxies, *accounts)
    return found


def keep_histories(
    folder: RunFolder, found: Mapping[str, Found], environments: Mapping[str, Environment]
) -> None:
    """Writes what searches learn from into the folder of the run.

    Where another shard was first, all use what it has read.

    Raises:
        ExperimentError: if it cannot be written.
    """
    for setting, one in found.items():
        file = folder.history_file(setting)
        temporary = file.with_name(f".tmp-{socket.gethostname()}-{os.getpid()}-{file.name}")
        try:
            write_kept(temporary, one, environments[setting])
            if not file.exists():
                os.link(temporary, file)
        except FileExistsError:
            pass
        except (DatasetError, OSError) as error:
            raise ExperimentError(f"cannot write {file}: {error}") from error
        finally:
            temporary.unlink(missing_ok=True)


def history_lines(found: Mapping[str, Found]) -> Iterator[str]:
    """What is learned from, a line for each source."""
    lines = []
    for setting, (earlier, accounts) in found.items():
        designs = sum(len(one.codes) for one in earlier)
        sources = "1 source" if len(earlier) == 1 else f"{len(earlier):,} sources"
        lines.append(f"history of {setting}: {sources}, {designs:,} designs")
        lines += [f"  {account}" for account in accounts]
    yield from lines[:_MAX_LINES]
    if len(lines) > _MAX_LINES:
        yield f"... and {len(lines) - _MAX_LINES:,} more lines"


def _left(trials: Sequence[Trial], folder: RunFolder) -> list[Trial]:
    """A trial of each setting whose history is still to be read."""
    return [
        trial
        for trial in first_of_each(trials, "setting")
        if trial.history and not folder.history_file(trial.setting).exists()
    ]


def _check_elsewhere(path: str, folder: RunFolder) -> None:
    """Refuses the run's own folder."""
    out = Path(folder.path).resolve()
    for _, datasets in history_datasets(path):
        for dataset in datasets:
            if dataset.directory.resolve().is_relative_to(out):
                raise ExperimentError(
                    f"{path} is the output folder of this run, which cannot learn from itself: "
                    "choose another folder with --out, or leave it out"
                )
