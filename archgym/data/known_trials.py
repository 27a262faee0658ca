"""Trials that a dataset holds already: a new one needs another id, a resumed one its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from archgym.data.dataset import Dataset
from archgym.errors import DatasetError

_SETTINGS = (
    *("settings", "workload_sha256", "fixed", "objective"),
    *("agent", "hyperparameters", "seed"),
)
"""Columns of the table of trials that decide what a search proposes, and what it gets for it."""
_JSON = frozenset({"settings", "fixed", "objective", "hyperparameters"})
_announced: dict[Path, set[str]] = {}
"""Ids of the trials that this process began, by the journal that they are in."""


def announce(journal: Path, trial_id: str) -> None:
    """Notes that a trial was begun in a journal of this process."""
    _announced.setdefault(journal.resolve(), set()).add(trial_id)


def check_new(directory: Path, trial_id: str) -> None:
    """Refuses a new trial under an id that the dataset holds already: its steps would be mixed.

    What another process writes at this time is not looked at.

    Args:
        directory: folder of the dataset.
        trial_id: as given.

    Raises:
        DatasetError: if there is such a trial.
    """
    folder = (directory / "journal").resolve()
    own = [path for path, ids in _announced.items() if path.parent == folder and trial_id in ids]
    known = any(path.exists() for path in own)
    for path in () if known else (directory / "trials").glob("*.parquet"):
        ids = pq.read_table(path, columns=["trial_id"])["trial_id"]
        known = known or bool(pc.any(pc.equal(ids, trial_id)).as_py())
    if known:
        raise DatasetError(
            f"{directory} holds a trial {trial_id!r} already: resume=True goes on with it, another "
            "trial_id begins a new one"
        )


def check_resumed(dataset: Dataset, description: Mapping[str, Any]) -> None:
    """Refuses to go on with a trial under other settings than those it was begun with.

    Its budget may be another one, and hyperparameters that it did not have yet may be there.

    Args:
        dataset: that holds the trial, or does not yet.
        description: of the trial as it is to go on, as journals announce it.

    Raises:
        DatasetError: with the first difference.
    """
    table = dataset.trials()
    for before in table.filter(pc.equal(table["trial_id"], description["trial_id"])).to_pylist():
        for name in _SETTINGS:
            difference = _difference(name, before[name], description[name])
            if difference:
                raise DatasetError(
                    f"trial {description['trial_id']!r} in {dataset.directory} cannot go on with "
                    f"other settings: {difference}; put that back, or begin another trial"
                )


def _difference(name: str, before: Any, now: Any) -> str:
    if before is None or before == now:
        return ""
    if name in _JSON:
        before, now = json.loads(before), json.loads(now)
    if name in ("settings", "hyperparameters"):
        for key, value in before.items():
            if key not in now:
                return f"{name}: {key} was {value!r:.80} there and is left out now"
            if now[key] != value:
                return f"{name}: {key} was {value!r:.80} there and is {now[key]!r:.80} now"
        return ""
    return f"{name} was {before!r:.200} there and is {now!r:.200} now" if before != now else ""
