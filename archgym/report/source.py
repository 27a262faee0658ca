"""Where a report's figures come from: the folder of a run, or a dataset by itself."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from archgym.data import Dataset, find_datasets
from archgym.errors import ArchgymError, DatasetError
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.folder.trial_states import TrialEnd, read_ends
from archgym.experiment.results.files import TRIAL_SCHEMA
from archgym.experiment.results.reproduce import trials_in
from archgym.experiment.spec.checks import entry_position
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.from_mapping import read_experiment
from archgym.reading import plain_yaml as bounded_yaml
from archgym.reading.checked_json import read_checked_json

_RESULTS_LIMIT_BYTES = 1 << 28


@dataclass(frozen=True)
class _Ended:
    """How a trial ended, as ``results.json`` says."""

    trial_id: str
    state: str
    error: str | None = None


@dataclass(frozen=True)
class _Results:
    """What a report takes from ``results.json``."""

    experiment: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    runner: str = "run"
    wall_s: float | None = None
    resumed: bool = False
    trials: list[_Ended] = field(default_factory=list)


@dataclass(frozen=True)
class Source:
    """One folder that is reported on.

    Attributes:
        path: the folder.
        name: what to call it.
        datasets: the evaluations, with the rows of the trials in each.
        trials: every trial by id, in the order of the experiment; those that never began too.
        ends: how trials ended, by id, as far as the run says.
        named: settings that the experiment's file gives a name.
        facts: what else is known of the run: ``experiment``, ``versions``, ``runner``, ``wall_s``,
            ``resumed``.
    """

    path: Path
    name: str
    datasets: list[tuple[Dataset, list[dict[str, Any]]]]
    trials: dict[str, Trial]
    ends: dict[str, TrialEnd]
    named: frozenset[str]
    facts: Mapping[str, Any] = field(default_factory=dict)


def read_source(folder: str | Path, name: str = "") -> Source:
    """Reads what a folder says of its trials; their evaluations are read later.

    A run that is still going on, or was killed, is reported as far as it is.

    Args:
        folder: of a run, or of a dataset.
        name: what to call it; the folder's own name by default.

    Raises:
        ArchgymError: if it holds neither, or is damaged.
    """
    path = Path(folder)
    datasets = [(dataset, dataset.trials().to_pylist()) for dataset in find_datasets(path)]
    run = RunFolder(path)
    facts = _results(run)
    trials = trials_in(path, datasets)
    return Source(
        path=path,
        name=name or str(facts.get("experiment") or path.resolve().name),
        datasets=datasets,
        trials=trials,
        ends=_ends(run, facts),
        named=_named(run, trials),
        facts={key: value for key, value in facts.items() if key != "trials"},
    )


def _results(run: RunFolder) -> dict[str, Any]:
    """What the run wrote at its end; empty if it has not ended, or there was none."""
    try:
        return asdict(read_checked_json(run.results, _Results, _RESULTS_LIMIT_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DatasetError(f"cannot read {run.results}: {error}") from error


def _ends(run: RunFolder, facts: Mapping[str, Any]) -> dict[str, TrialEnd]:
    """How trials ended: from the run's results, and from its logs, which know of later ones.

    A run that is still going on, or was killed, has logs only.
    """
    path = run.tables / "trials.parquet"
    rows: Any = facts.get("trials", ())
    if path.is_file():
        import pyarrow as pa

        from archgym.reading.parquet import read_whole

        try:
            columns = ["trial_id", "state", "error", "wall_s"]
            table = read_whole(path, columns)
            rows = table.cast(pa.schema([TRIAL_SCHEMA.field(name) for name in columns])).to_pylist()
        except (pa.ArrowException, OSError, KeyError) as error:
            raise DatasetError(f"cannot read {path}: {error}") from error
    found = {
        str(row["trial_id"]): TrialEnd(
            row["state"], row.get("error") or "", row.get("wall_s") or 0.0
        )
        for row in rows
        if row["state"]
    }
    return found | read_ends(run.logs)


def _named(run: RunFolder, trials: Mapping[str, Trial]) -> frozenset[str]:
    """Settings that the experiment's file gives a name."""
    try:
        experiment = read_experiment(bounded_yaml.read(run.path / "experiment.yaml"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ArchgymError):
        return frozenset()
    found = set()
    for trial in {trial.setting: trial for trial in trials.values()}.values():
        with contextlib.suppress(StopIteration):
            if experiment.environments[entry_position(experiment, trial)].name:
                found.add(trial.setting)
    return frozenset(found)
