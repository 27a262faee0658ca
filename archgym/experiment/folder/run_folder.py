"""The output folder of a run: where its files are, and how they are written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from archgym.data import Dataset
from archgym.errors import ExperimentError
from archgym.experiment.folder.names import FINISHED
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.load import experiment_yaml
from archgym.experiment.spec.schema import Experiment
from archgym.reading.checked_json import read_checked_json

__all__ = ["HISTORIES", "LOCK", "TRIALS_LIMIT_BYTES", "WORKERS", "RunFolder"]

HISTORIES = "history"
"""Name of the folder of what searches learn from."""
LOCK, WORKERS = ".lock", ".workers"
"""Names of the lock files of a run; those of a shard end in its name."""
TRIALS_LIMIT_BYTES = 1 << 30
"""Largest list of trials that is read: some million."""


class RunFolder:
    """The folder of one run.

    It holds::

        experiment.yaml     the experiment, as it was run
        trials.json         the list of its trials
        initial_designs.json
                            the designs that the searches of each setting begin with
        checksums.json      checksums of these three, and at its end of the results
        datasets/NAME/      the evaluations
        errors/TRIAL.txt    why a trial failed
        results.json        the result of every trial
        results/            the same as tables, with curves and comparisons
        best_so_far.png     the picture
        log/                how trials ended, one file per batch of trials
        ray/                Ray Tune's own files
        history/            what the searches of each setting learned from, if anything
        live/               what the run does now, for archgym status
        finished/           results of simulations that are not recorded yet
        queues/             what workers simulate, see archgym/experiment/workers

    Args:
        path: the folder; it need not exist.
        shard: name of the part of the trials that is run, such as ``3-of-16``; several shards can
            run in one folder at the same time, each with its own lock. Empty for all trials.

    Attributes:
        datasets: folder of the datasets.
        results: JSON file with the result of every trial.
        tables: folder of the tables of results.
        initial_designs: JSON file with the designs that the searches of each setting began with.
        histories: folder of what the searches of each setting learn from.
        random_draws: JSON file with the random draws that reach the optimum of each setting.
        picture: file of the plot.
        logs: folder of the logs that say how trials ended.
        finished: folder of results that are not recorded yet.
        ray: folder of Ray Tune.
        lock_file: the run, or the shard, holds a lock on it; it contains the id of the run.
        workers_file: each worker process of the run, or of the shard, holds a lock on it.
    """

    def __init__(self, path: str | Path, shard: str = "") -> None:
        self.path = Path(path).absolute()
        self.shard = shard
        self.datasets = self.path / "datasets"
        self.results = self.path / "results.json"
        self.tables = self.path / "results"
        self.random_draws = self.tables / "random_draws.json"
        self.initial_designs = self.path / "initial_designs.json"
        self.histories = self.path / HISTORIES
        self.picture = self.path / "best_so_far.png"
        self.logs = self.path / "log"
        self.finished = self.path / FINISHED
        self.ray = self.path / "ray" / shard
        ending = f"-{shard}" if shard else ""
        self.lock_file = self.path / f"{LOCK}{ending}"
        self.workers_file = self.path / f"{WORKERS}{ending}"

    def log_file(self, run_id: str, batch: str) -> Path:
        """Log of one batch of trials of a run."""
        return self.logs / f"{run_id[:8]}-{batch}.jsonl"

    def history_file(self, setting: str) -> Path:
        """File of what the searches of a setting learn from."""
        return self.histories / f"{setting}.parquet"

    def error_file(self, trial_id: str) -> Path:
        """File that says why a trial failed."""
        return self.path / "errors" / f"{trial_id}.txt"

    def trials(self) -> list[Trial]:
        """The trials of the run in this folder; none if there is no run.

        Raises:
            ExperimentError: if the list is damaged.
        """
        path = self.path / "trials.json"
        try:
            return read_checked_json(path, list[Trial], TRIALS_LIMIT_BYTES)
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise ExperimentError(f"cannot read {path}: {error}") from error

    def existing_datasets(self) -> list[Dataset]:
        """The datasets that the run has begun, ordered by name."""
        return [Dataset(path.parent) for path in sorted(self.datasets.glob("*/dataset.json"))]

    def remove_finished(self) -> None:
        """Removes what is left in :attr:`finished`, unless other shards may use it."""
        if not self.shard:
            shutil.rmtree(self.finished, ignore_errors=True)

    def begun(self) -> bool:
        """Whether any trial of its run has begun."""
        logs, rows = self.logs.glob("*.jsonl"), self.datasets.glob("*/*")
        return self.results.exists() or any(logs) or any(rows)

    def prepare(
        self,
        experiment: Experiment,
        trials: Sequence[Trial],
        initial: Mapping[str, Sequence[dict[str, Any]]],
    ) -> None:
        """Writes the experiment, its list of trials, and designs that their searches begin with.

        Raises:
            ExperimentError: if they cannot be written.
        """
        self.write(self.path / "experiment.yaml", experiment_yaml(experiment), durable=True)
        self.write_json(
            self.path / "trials.json", [trial.to_json() for trial in trials], durable=True
        )
        self.write_json(self.initial_designs, initial, durable=True)

    def write_json(self, path: Path, data: Any, *, durable: bool = False) -> None:
        """Writes a JSON file of the folder, see :meth:`write`."""
        self.write(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n", durable=durable)

    def write(self, path: Path, text: str, *, durable: bool = False) -> None:
        """Writes a text file of the folder under a temporary name, then renames it.

        Args:
            path: of the file.
            text: its content.
            durable: whether to wait until the content is on disk.

        Raises:
            ExperimentError: if it cannot be written.
        """
        temporary = path.with_name(f".tmp-{os.getpid()}-{path.name}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            raise ExperimentError(f"cannot write {path}: {error.strerror}") from error
