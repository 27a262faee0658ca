"""Merging datasets of one design space, with the same metrics, simulator and workloads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.data.dataset import TIMING_COLUMNS, Dataset
from archgym.data.designs import column_fingerprints, looked_up
from archgym.data.files import provenance, write_dataset
from archgym.data.schema import Sidecar
from archgym.errors import DatasetError

_NOT_IDENTITY = ("trial_id", "state", "ended")
"""Columns in which two records of one trial may differ: one may be from before its end."""
_PROSE = ("doc", "group")
"""Fields of a parameter, rule or metric that do not change what it means."""


@dataclass(frozen=True)
class Difference:
    """Something in which two datasets differ.

    Attributes:
        what: what it is about, such as ``parameter 'ways'``.
        left: how it is in the first.
        right: how it is in the second.
        apart: whether it prevents merging; else it is only reported.
    """

    what: str
    left: str
    right: str
    apart: bool = True

    def __str__(self) -> str:
        return f"{self.what}: {self.left} | {self.right}"


@dataclass(frozen=True)
class Merged:
    """The result of merging.

    Attributes:
        evaluations: rows written.
        trials: trials written.
        repeated: rows that were in several of the datasets, and are written once.
        renamed: trials that shared a name with another one: where from, old and new name.
        notes: differences that did not matter.
    """

    evaluations: int
    trials: int
    repeated: int
    renamed: tuple[tuple[str, str, str], ...]
    notes: tuple[Difference, ...]


def differences(left: Dataset, right: Dataset) -> list[Difference]:
    """Everything in which two datasets differ that matters for their rows to share a table."""
    mine, theirs = left.sidecar, right.sidecar
    found: list[Difference] = []
    for kind in ("parameter", "rule", "metric"):
        found += _of_named(kind, _named(kind, mine), _named(kind, theirs))
    for field in sorted({*mine.simulator, *theirs.simulator}):
        found += _of("simulator's " + field, mine.simulator.get(field), theirs.simulator.get(field))
    if mine.source_changed(theirs):
        found += _of(
            "source of the simulator (SHA-256)", mine.source_sha256[:16], theirs.source_sha256[:16]
        )
    ours, others = left.trials().to_pylist(), right.trials().to_pylist()
    hashes = {row["workload"]: row["workload_sha256"] for row in ours}
    for workload, digest in sorted({(row["workload"], row["workload_sha256"]) for row in others}):
        known = hashes.get(workload, digest)
        name = f"content of workload {workload!r} (SHA-256)"
        found += _of(name, known[:16] or "no hash", digest[:16] or "no hash")
    for column in ("environment", "objective", "settings", "fixed", "versions", "commit"):
        one, two = (sorted({str(row[column]) for row in rows}) for rows in (ours, others))
        found += _of(_NOTES.get(column, column), ", ".join(one), ", ".join(two), apart=False)
    return found


def merge(datasets: Sequence[Dataset], folder: str | Path) -> Merged:
    """Writes one dataset with the rows of several.

    A trial that is in several of them (the same id, start, agent and so on) is one trial, and
    each of its steps is written once. Another trial of the same id gets a number behind it.

    Args:
        datasets: two or more.
        folder: the new dataset's; it must not be there, or be empty.

    Raises:
        DatasetError: if the datasets differ in space, metrics, simulator or workloads (the
            message names each difference), a step that two of them share is not equal, or the
            folder cannot be written.
    """
    if len(datasets) < 2:
        raise DatasetError("merging needs two datasets or more")
    first, notes = datasets[0], []
    for other in datasets[1:]:
        found = differences(first, other)
        apart = [difference for difference in found if difference.apart]
        if apart:
            lines = "".join(f"\n  {difference}" for difference in apart)
            raise DatasetError(
                f"{first.directory} and {other.directory} cannot be merged, they differ in:{lines}"
            )
        notes += found
    plan = _Plan(datasets)
    made = [provenance(dataset) for dataset in datasets]
    sources = [
        {"dataset": str(dataset.directory), "operations": operations["operations"]}
        for dataset, operations in zip(datasets, made, strict=True)
    ]
    rows = write_dataset(
        folder,
        first.sidecar,
        list(plan.trials.values()),
        plan.tables(),
        operations=[{"operation": "merge", "sources": sources}],
        whole_trials=all(operations["whole_trials"] for operations in made),
    )
    return Merged(rows, len(plan.trials), plan.repeated, tuple(plan.renamed), tuple(notes))


_NOTES = {
    "environment": "environments",
    "objective": "objectives (rewards and feasibility follow them)",
    "settings": "settings of the environment",
    "fixed": "fixed parameters",
    "versions": "versions",
    "commit": "commits of archgym",
}


class _Plan:
    """The trials of the merged dataset, and the new name of each trial of each dataset."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self._datasets = datasets
        self.trials: dict[str, dict[str, Any]] = {}
        self.renamed: list[tuple[str, str, str]] = []
        self.repeated = 0
        self._names: list[dict[str, str]] = []
        self._shared: set[str] = set()
        for dataset in datasets:
            names: dict[str, str] = {}
            for row in dataset.trials().to_pylist():
                name, number = row["trial_id"], 1
                own = {key: value for key, value in row.items() if key not in _NOT_IDENTITY}
                while name in self.trials and not own.items() <= self.trials[name].items():
                    number += 1
                    name = f"{row['trial_id']}~{number}"
                names[row["trial_id"]] = name
                if name in self.trials:
                    self._shared.add(name)
                    row = max((self.trials[name], row), key=lambda r: r["state"] == "finished")
                elif number > 1:
                    self.renamed.append((str(dataset.directory), row["trial_id"], name))
                self.trials[name] = {**row, "trial_id": name}
            self._names.append(names)

    def tables(self) -> Iterator[pa.Table]:
        """All rows, each step of a trial once."""
        written = np.empty((2, 0), dtype=np.uint64)
        for dataset, names in zip(self._datasets, self._names, strict=True):
            before = written[:, np.argsort(written[0], kind="stable")]
            added = [written]
            for _, table in dataset.snapshot().blocks():
                table = _renamed(table, names, dataset)
                if self._shared:
                    table, steps = self._unseen(table, before, dataset)
                    added.append(steps)
                yield table
            written = np.concatenate(added, axis=1)

    def _unseen(
        self, table: pa.Table, before: NDArray[np.uint64], dataset: Dataset
    ) -> tuple[pa.Table, NDArray[np.uint64]]:
        """The rows that no earlier dataset has, and the steps among them of shared trials.

        Steps are fingerprints of trial and step, and of all columns, shape (2, n_steps).

        Args:
            table: rows of a dataset.
            before: steps in the earlier datasets, ordered.
            dataset: where the rows are from.

        Raises:
            DatasetError: if an earlier dataset has a step with other values.
        """
        mine = np.flatnonzero(looked_up(table["trial_id"], self._shared.__contains__, np.bool_))
        part = table.take(mine)
        plain = [name for name in part.column_names if name not in TIMING_COLUMNS]
        steps = np.stack(
            [column_fingerprints(part.select(names)) for names in (["trial_id", "step"], plain)]
        )
        place = np.searchsorted(before[0], steps[0])
        inside = np.flatnonzero(place < before.shape[1])
        keys, contents = before[:, place[inside]]
        seen = inside[keys == steps[0, inside]]
        wrong = seen[contents[keys == steps[0, inside]] != steps[1, seen]]
        if len(wrong):
            row = part.slice(int(wrong[0]), 1).to_pylist()[0]
            raise DatasetError(
                f"step {row['step']} of trial {row['trial_id']!r} in {dataset.directory} is not "
                "what an earlier dataset has: one of them was changed"
            )
        self.repeated += len(seen)
        others = np.delete(np.arange(table.num_rows), mine[seen])
        return table.take(others), np.delete(steps, seen, axis=1)


def _renamed(table: pa.Table, names: Mapping[str, str], dataset: Dataset) -> pa.Table:
    column = table["trial_id"].combine_chunks()
    found = column.dictionary.to_pylist()
    for name in column.unique().to_pylist():  # the dictionary may list others: rows were left out
        if name not in names:
            raise DatasetError(f"{dataset.directory}: trial {name!r} is not in its table of trials")
    renamed = [names.get(name, name) for name in found]
    if renamed == found:
        return table
    new = pa.DictionaryArray.from_arrays(column.indices, pa.array(renamed))
    return table.set_column(table.column_names.index("trial_id"), "trial_id", new)


def _of(what: str, left: Any, right: Any, *, apart: bool = True) -> list[Difference]:
    return [] if left == right else [Difference(what, _text(left), _text(right), apart)]


def _named(kind: str, sidecar: Sidecar) -> dict[str, dict[str, Any]]:
    described = sidecar.space.to_json() | {"metrics": [m.to_json() for m in sidecar.metrics]}
    return {entry["name"]: entry for entry in described[f"{kind}s"]}


def _of_named(
    kind: str, left: Mapping[str, Mapping[str, Any]], right: Mapping[str, Mapping[str, Any]]
) -> list[Difference]:
    found = []
    for name in [*left, *(name for name in right if name not in left)]:
        mine, theirs = left.get(name), right.get(name)
        if mine is None or theirs is None:
            there = ("missing" if one is None else "there" for one in (mine, theirs))
            found += _of(f"{kind} {name!r}", *there)
            continue
        for field in sorted({*mine, *theirs} - {"name"}):
            what = f"{field} of {kind} {name!r}"
            found += _of(what, mine.get(field), theirs.get(field), apart=field not in _PROSE)
    return found or _of(f"order of the {kind}s", ", ".join(left), ", ".join(right))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
