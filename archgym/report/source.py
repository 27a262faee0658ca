"""Where a report's figures come from: the folder of a run, or a dataset by itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archgym.data import Dataset, find_datasets
from archgym.errors import DatasetError
from archgym.experiment.expand import Trial
from archgym.experiment.folder import RunFolder

__all__ = ["Source", "read_source"]


@dataclass(frozen=True)
class Source:
    """One folder that is reported on.

    Attributes:
        path: the folder.
        name: what to call it.
        datasets: the evaluations, with the rows of the trials in each.
        trials: every trial by id, in the order of the experiment; those that never began too.
        failures: why trials failed, by id.
        facts: what else is known of the run: ``experiment``, ``versions``, ``runner``, ``wall_s``.
    """

    path: Path
    name: str
    datasets: list[tuple[Dataset, list[dict[str, Any]]]]
    trials: dict[str, Trial]
    failures: dict[str, str]
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
    trials = {trial.trial_id: trial for trial in run.trials()}
    for dataset, rows in datasets:
        for row in rows:
            if row["trial_id"] not in trials:
                trials[row["trial_id"]] = _trial_of(dataset, row)
    failures = {
        str(row.get("trial_id")): str(row.get("error") or "failed")
        for row in _ends(run, facts)
        if isinstance(row, dict) and row.get("state") == "failed"
    }
    return Source(
        path=path,
        name=name or str(facts.get("experiment") or path.resolve().name),
        datasets=datasets,
        trials=trials,
        failures=failures,
        facts={key: value for key, value in facts.items() if key != "trials"},
    )


def _results(run: RunFolder) -> dict[str, Any]:
    """What the run wrote at its end; empty if it has not ended, or there was none."""
    try:
        data = json.loads(run.results.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DatasetError(f"cannot read {run.results}: {error}") from error
    return data if isinstance(data, dict) else {}


def _ends(run: RunFolder, facts: Mapping[str, Any]) -> list[Any]:
    """How trials ended: from the run's table of results, or else from what it wrote at its end."""
    path = run.path / "results" / "trials.parquet"
    if not path.is_file():
        found = facts.get("trials", ())
        return list(found) if isinstance(found, list) else []
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: list[Any] = pq.read_table(path, columns=["trial_id", "state", "error"]).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise DatasetError(f"cannot read {path}: {error}") from error
    return rows


def _trial_of(dataset: Dataset, row: Mapping[str, Any]) -> Trial:
    """The trial that a dataset's row describes, as far as it says."""
    hyperparameters = json.loads(row["hyperparameters"])
    digest = hashlib.sha256(str(row["hyperparameters"]).encode()).hexdigest()[:4]
    spec = row["workload_spec"]
    arguments: dict[str, Any] = {
        "workload": json.loads(spec) if spec is not None else (row["workload"] or None),
        "objective": json.loads(row["objective"]),
        "fixed": json.loads(row["fixed"]),
    }
    if dataset.sidecar.simulator["name"] not in ("embedded", "tabular", "proxy"):
        arguments["simulator"] = dataset.sidecar.simulator["name"]
    arguments |= {
        key: value
        for key, value in json.loads(row["settings"]).items()
        if not key.endswith("_sha256") and value not in ({}, [], None, "")
    }
    return Trial(
        trial_id=row["trial_id"],
        setting=" ".join(filter(None, (row["environment"], row["workload"]))),
        dataset=dataset.directory.name,
        environment=row["environment"],
        agent=row["agent"],
        agent_label=f"{row['agent']}-{digest}" if hyperparameters else row["agent"],
        seed=-1 if row["seed"] is None else row["seed"],
        budget=row["budget"] or 0,
        arguments={key: value for key, value in arguments.items() if value not in (None, {})},
        hyperparameters=hyperparameters,
    )
