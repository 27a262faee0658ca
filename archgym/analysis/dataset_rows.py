"""Rows of a dataset: its evaluations, a few numbers each, and what the table of trials says."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.analysis.timeline import NEVER_US
from archgym.data.snapshot import Snapshot
from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.scoring import Scorer
from archgym.problem.status import STATUS_OF, Status

_TYPES: dict[str, Any] = {
    "step": np.int32,
    "feasible": np.bool_,
    "cached": np.bool_,
    "fidelity": np.float64,
    "simulation_s": np.float64,
    "agent_s": np.float64,
}
PLAIN_COLUMNS = ("status", "timestamp", "started", *_TYPES)
"""Columns of a dataset that :func:`plain_columns` reads."""
_AMOUNT = re.compile(r" exceeded by [-+]?\d[\d.,]*(e[-+]?\d+)?%?(?=, |$)")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(\.\d+)?(e[-+]?\d+)?(?![\w.])")


@dataclass
class Rows:
    """The evaluations of one problem, ordered by trial and step.

    Attributes:
        trial: index of the trial, int32, shape (n,).
        step: step of the trial, shape (n,).
        row: index in the dataset's snapshot, shape (n,).
        values: value of each goal, minimised, ``inf`` unless ``ok``, shape (n, n_goals).
        costs: log ratio of each goal to the baseline, ``inf`` unless ``ok``, shape (n, n_goals).
        status: a :class:`~archgym.problem.status.Status`, shape (n,).
        feasible: within all limits, shape (n,).
        cached: known before, so not simulated, shape (n,).
        fidelity: share of the full simulation, shape (n,).
        simulation_s: seconds in the simulator, shape (n,).
        agent_s: seconds in the agent, shape (n,).
        time_us: when it was recorded, microseconds, shape (n,).
        started_us: when its simulation began, microseconds, shape (n,);
            :data:`~archgym.analysis.timeline.NEVER_US` where no executor simulated it.
        reasons: how often a trial met a reason, by (trial, reason).
    """

    trial: NDArray[np.int32]
    step: NDArray[np.int32]
    row: NDArray[np.int64]
    values: NDArray[np.float64]
    costs: NDArray[np.float64]
    status: NDArray[np.int8]
    feasible: NDArray[np.bool_]
    cached: NDArray[np.bool_]
    fidelity: NDArray[np.float64]
    simulation_s: NDArray[np.float64]
    agent_s: NDArray[np.float64]
    time_us: NDArray[np.int64]
    started_us: NDArray[np.int64]
    reasons: Counter[tuple[int, str]] = field(default_factory=Counter)

    @staticmethod
    def scored(
        scorer: Scorer,
        metrics: NDArray[np.float64],
        plain: Mapping[str, Any],
        trial: NDArray[np.int32],
        row: NDArray[np.int64],
    ) -> Rows:
        """Rows of one problem with the values and costs that their metrics have.

        Args:
            scorer: the problem's objective.
            metrics: values of the scorer's metrics, NaN for none, shape (n, n_metrics).
            plain: the other columns, as of :func:`plain_columns`.
            trial: index of each row's trial, shape (n,).
            row: index of each row in the snapshot, shape (n,).
        """
        with np.errstate(all="ignore"):
            found = scorer.values(metrics), scorer.costs(metrics)
        for array in found:
            array[(plain["status"] != Status.OK)[:, None] | np.isnan(array)] = np.inf
        return Rows(trial=trial, row=row, values=found[0], costs=found[1], **plain)

    @property
    def full(self) -> NDArray[np.bool_]:
        """Whether each row is of the full simulation."""
        return np.asarray(self.fidelity == 1)

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether each row was simulated, and so counts."""
        return np.asarray(~self.cached & (self.status != Status.ILLEGAL))

    def parts(self) -> list[tuple[int, slice]]:
        """The rows of each trial: its index, and where they are."""
        if not len(self.trial):
            return []
        starts = np.flatnonzero(np.diff(self.trial, prepend=-1)).tolist()
        stops = [*starts[1:], len(self.trial)]
        numbers = self.trial[starts].tolist()
        return [(n, slice(a, b)) for n, a, b in zip(numbers, starts, stops, strict=True)]


def plain_columns(table: pa.Table) -> dict[str, Any]:
    """The columns of a block that :class:`Rows` takes unchanged, by their names there."""
    codes, names = _codes(table["status"])
    status = np.array([STATUS_OF.get(name, -1) for name in names], dtype=np.int8)[codes]
    plain = {name: np.asarray(table[name].to_numpy(), kind) for name, kind in _TYPES.items()}
    started = table["started"].cast(pa.int64()).fill_null(NEVER_US).to_numpy()
    times = {"time_us": table["timestamp"].cast(pa.int64()).to_numpy(), "started_us": started}
    return {**plain, "status": status, **times}


def read_rows(
    snapshot: Snapshot,
    places: Mapping[str, tuple[int, int]],
    scorers: Mapping[int, Scorer],
    first_row: int = 0,
) -> dict[int, Rows]:
    """The evaluations of each problem of a dataset; designs are not read.

    Args:
        snapshot: of the dataset.
        places: for each of its trials the index of its problem, and its index in that.
        scorers: of each problem in the dataset, over the metrics that its objective names.
        first_row: added to the indices of rows.
    """
    metrics = sorted({name for scorer in scorers.values() for name in scorer.metric_names})
    columns = ["trial_id", "reason", *PLAIN_COLUMNS, *(f"metric.{name}" for name in metrics)]
    nothing = snapshot.schema.empty_table(), np.empty(0, np.int32), np.empty(0, np.int64)
    parts = {number: [_scored(scorer, *nothing)] for number, scorer in scorers.items()}
    for block in snapshot.blocks(columns):
        ids, names = _codes(block.table["trial_id"])
        found = np.array([places.get(name, (-1, -1)) for name in names], dtype=np.int32)
        problem, trial = found[ids].T
        for number in np.unique(problem[problem >= 0]).tolist():
            mine = np.flatnonzero(problem == number)
            table = block.table.take(mine) if len(mine) < len(problem) else block.table
            rows = block.rows[mine] + first_row
            parts[number].append(_scored(scorers[number], table, trial[mine], rows))
    return {number: join(some) for number, some in parts.items()}


def _scored(
    scorer: Scorer, table: pa.Table, trial: NDArray[np.int32], row: NDArray[np.int64]
) -> Rows:
    values = [table[f"metric.{name}"].to_numpy() for name in scorer.metric_names]
    metrics = np.column_stack(values).astype(np.float64)
    rows = Rows.scored(scorer, metrics, plain_columns(table), trial, row)
    rows.reasons = _reasons(table["reason"], trial)
    return rows


def join(parts: Sequence[Rows]) -> Rows:
    """Rows of one problem from several places, ordered by trial and step."""
    reasons: Counter[tuple[int, str]] = Counter()
    for part in parts:
        reasons.update(part.reasons)
    names = [name for name in vars(parts[0]) if name != "reasons"]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    order = np.lexsort((columns["step"], columns["trial"]))
    if (order[1:] < order[:-1]).any():
        columns = {name: column[order] for name, column in columns.items()}
    return Rows(**columns, reasons=reasons)


def _reasons(column: pa.ChunkedArray, trial: NDArray[np.int32]) -> Counter[tuple[int, str]]:
    codes, names = _codes(column)
    kinds = [_kind(name) for name in names]
    met = np.flatnonzero(np.array([bool(kind) for kind in kinds] or [False])[codes])
    pairs, counts = np.unique(np.stack([trial[met], codes[met]]), axis=1, return_counts=True)
    found: Counter[tuple[int, str]] = Counter()
    for number, code, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        found[number, kinds[code]] += count
    return found


def _kind(reason: str) -> str:
    """A reason without the amounts that make each one different."""
    return "; ".join(
        _NUMBER.sub("N", part) if not part.startswith("limit ") else _AMOUNT.sub(" exceeded", part)
        for part in reason.split("; ")
    )


def _codes(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str]]:
    """A column of texts as indices, and the text of each index; the last one is no text."""
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else None
    if whole is None:
        return np.empty(0, dtype=np.int64), []
    codes = whole.indices.fill_null(len(whole.dictionary)).to_numpy().astype(np.int64)
    return codes, [*("" if name is None else name for name in whole.dictionary.to_pylist()), ""]


@functools.lru_cache(maxsize=4096)
def parsed(text: str | None) -> Any:
    """The value of a JSON text, ``None`` without one; trials with the same text share it."""
    return None if text is None else json.loads(text)


@functools.lru_cache(maxsize=256)
def _objective(text: str) -> Objective:
    return Objective.parse(json.loads(text))


@functools.lru_cache(maxsize=256)
def _scorer(objective: str, baseline: str, metrics: tuple[Metric, ...]) -> Scorer:
    names = [metric.name for metric in metrics]
    return Scorer(_objective(objective), metrics, metric_vector(parsed(baseline), names))


def objective_of(row: Mapping[str, Any]) -> Objective:
    """The objective of a trial."""
    return _objective(row["objective"])


def scorer_of(row: Mapping[str, Any], metrics: Sequence[Metric]) -> Scorer:
    """The objective of a trial, bound to its baseline design.

    Args:
        row: of the table of trials.
        metrics: metrics to score, in the order of their columns.
    """
    return _scorer(row["objective"], row["baseline"], tuple(metrics))


def fidelities_of(row: Mapping[str, Any]) -> list[Fidelity]:
    """The fidelities of a trial; a dataset from before there were any records none."""
    return [Fidelity(**one) for one in parsed(row["fidelities"]) or ()] or [FULL]


def metric_vector(values: Mapping[str, float | None], names: Sequence[str]) -> NDArray[np.float64]:
    """Some metrics as an array, NaN for one without a value, shape (n_metrics,)."""
    return np.array([np.nan if (v := values.get(name)) is None else v for name in names])
