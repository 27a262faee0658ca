"""Training data: designs as codes, their metrics, their workloads, where they come from."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.data.designs import design_codes, design_columns, design_fingerprints, uniform
from archgym.data.features import target_names
from archgym.data.selection import Selection
from archgym.errors import InvalidValueError
from archgym.problem.metrics import Metric
from archgym.proxy.provenance import Origin, workload_of_trial
from archgym.space import DesignSpace

Features = Callable[[Mapping[str, Any]], Mapping[str, float]]
"""Numbers that describe the workload of a trial (a row of the table of trials)."""
_OF_ROWS = ("codes", "workload", "targets", "groups", "simulation_s", "drawn")


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Each design once on each workload, at full fidelity, with status ``ok``.

    Attributes:
        space: the design space, with nothing fixed.
        metrics: the targets.
        origin: what was simulated.
        codes: of the designs, shape (n, n_parameters).
        workload: index into the workloads of the origin, shape (n,).
        targets: NaN where there is no value, shape (n, n_metrics).
        groups: equal exactly for equal designs, whatever the workload, shape (n,).
        simulation_s: seconds that each took, as recorded, shape (n,).
        drawn: whether agent ``random`` drew it, so that nothing favoured it, shape (n,).
    """

    space: DesignSpace
    metrics: tuple[Metric, ...]
    origin: Origin
    codes: NDArray[np.int64]
    workload: NDArray[np.int64]
    targets: NDArray[np.float64]
    groups: NDArray[np.uint64]
    simulation_s: NDArray[np.float64]
    drawn: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def baseline(self) -> NDArray[np.float64]:
        """Metrics of the baseline design on each row's workload, NaN if not known, (n, n)."""
        names = [metric.name for metric in self.metrics]
        table = [[one.baseline.get(n, np.nan) for n in names] for one in self.origin.workloads]
        return np.array(table)[self.workload]

    def take(self, rows: NDArray[Any]) -> TrainingData:
        """Some rows."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _OF_ROWS})

    @staticmethod
    def join(parts: Sequence[TrainingData]) -> TrainingData:
        """The rows of several, one after the other.

        Raises:
            InvalidValueError: if they are of other spaces, metrics, environments or workloads.
        """

        def described(data: TrainingData) -> tuple[object, ...]:
            names = [one.name for one in data.origin.workloads]
            return data.space, data.metrics, names, data.origin.settings

        if any(described(part) != described(parts[0]) for part in parts):
            raise InvalidValueError(
                "the data differ in design space, metrics, workloads or settings"
            )
        joined = {name: np.concatenate([getattr(p, name) for p in parts]) for name in _OF_ROWS}
        return replace(parts[0], **joined)

    def folds(self, n: int, seed: int) -> NDArray[np.int64]:
        """A fold in 0 to ``n`` - 1 for each row; all rows of a design share it, shape (n,)."""
        return np.asarray((uniform(self.groups, seed) * n).astype(np.int64))

    def sample(self, n: int, seed: int) -> TrainingData:
        """Rows drawn at random; a larger sample with the same seed contains a smaller one."""
        order = np.random.default_rng(seed).permutation(len(self))
        return self.take(np.sort(order[:n]))


def read_training_data(
    selection: Selection,
    targets: Sequence[str] | None = None,
    *,
    features: Features | None = None,
) -> TrainingData:
    """The rows of a dataset that a proxy can learn from.

    Args:
        selection: the rows; those that failed, of lower fidelity or repeated are passed over.
        targets: names of metrics; by default those that have a value in some row.
        features: gives numbers for a workload; none by default.

    Raises:
        UnknownNameError: if there is no such metric.
        InvalidValueError: if no row is left, or the rows come from several environments, or from
            one with several settings.
    """
    chosen = selection.where(["status == ok", "fidelity == 1"]).distinct()
    if not len(chosen):
        raise InvalidValueError(f"{selection.dataset.directory}: no row with status ok is left")
    sidecar = chosen.dataset.sidecar
    names = target_names(chosen, targets)
    columns = [f"metric.{name}" for name in names]
    table = chosen.arrow([*design_columns(sidecar.space), *columns, "trial_id", "simulation_s"])
    values = np.column_stack([table[column].to_numpy() for column in columns]).astype(np.float64)
    for name, column in zip(names, values.T, strict=True):
        if n := int(np.isinf(column).sum()):
            raise InvalidValueError(
                f"{selection.dataset.directory}: metric {name} is infinite in {n} rows; a model "
                "needs finite numbers: leave these rows out (--where)"
            )
    trials = {row["trial_id"]: row for row in chosen.trials}
    ids = table["trial_id"].to_pylist()
    used = [trials[trial_id] for trial_id in sorted(set(ids))]
    first = used[0]
    for trial, field in itertools.product(used, ("environment", "settings")):
        if trial[field] != first[field]:
            raise InvalidValueError(
                f"the rows come from several {field}: {first[field]} and {trial[field]}; "
                "choose those of one (--where)"
            )
    trial_of = {_workload_key(trial): trial for trial in reversed(used)}  # the first of each
    numbers = {key: number for number, key in enumerate(sorted(trial_of))}
    workloads = [
        workload_of_trial(trial, features(trial) if features else {})
        for trial in (trial_of[key] for key in numbers)
    ]
    of_trial = {trial["trial_id"]: numbers[_workload_key(trial)] for trial in used}
    kept = np.flatnonzero(~np.isnan(values).all(axis=0)) if not targets else range(len(names))
    by_name = {metric.name: metric for metric in sidecar.metrics}
    return TrainingData(
        space=sidecar.space,
        metrics=tuple(by_name[names[column]] for column in kept),
        origin=Origin(
            environment=str(first["environment"]),
            settings=json.loads(first["settings"]),
            simulator=dict(sidecar.simulator),
            workloads=tuple(workloads),
            fixed=_fixed_in_all(used),
        ),
        codes=design_codes(sidecar.space, table),
        workload=np.array([of_trial[trial_id] for trial_id in ids], dtype=np.int64),
        targets=values[:, list(kept)],
        groups=design_fingerprints(sidecar.space, table),
        simulation_s=table["simulation_s"].to_numpy().astype(np.float64),
        drawn=np.array([trials[trial_id]["agent"] == "random" for trial_id in ids], dtype=bool),
    )


def _fixed_in_all(trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Parameters that all trials held at the same value."""
    first, *others = (json.loads(trial["fixed"] or "{}") for trial in trials)
    return {k: v for k, v in first.items() if all(k in o and o[k] == v for o in others)}


def _workload_key(trial: Mapping[str, Any]) -> tuple[str, str]:
    return str(trial["workload"] or ""), str(trial["workload_sha256"] or "")
