"""The evaluations of a dataset, a block at a time, into a few numbers a row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.data.snapshot import Snapshot
from archgym.problem.scorer import Scorer
from archgym.problem.status import STATUS_OF, Status

__all__ = ["Rows", "join", "read_rows"]

_AMOUNT = re.compile(r" exceeded by [-+]?\d[\d.,]*(e[-+]?\d+)?%?(?=, |$)")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(\.\d+)?(e[-+]?\d+)?(?![\w.])")


@dataclass
class Rows:
    """The evaluations of one problem, ordered by trial and step.

    Attributes:
        trial: number of the trial, int32, shape (n,).
        step: of the trial, shape (n,).
        row: number in the dataset's snapshot, shape (n,).
        values: value of each goal, minimised, ``inf`` unless ``ok``, shape (n, n_goals).
        costs: log ratio of each goal to the baseline, shape (n, n_goals).
        status: a :class:`~archgym.problem.status.Status`, shape (n,).
        feasible: shape (n,).
        cached: known before, shape (n,).
        fidelity: shape (n,).
        simulation_s: seconds in the simulator, shape (n,).
        agent_s: seconds in the agent, shape (n,).
        time_us: when it was recorded, microseconds, shape (n,).
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
    fidelity: NDArray[np.float32]
    simulation_s: NDArray[np.float32]
    agent_s: NDArray[np.float32]
    time_us: NDArray[np.int64]
    reasons: Counter[tuple[int, str]] = field(default_factory=Counter)

    @property
    def full(self) -> NDArray[np.bool_]:
        """Whether it was a full simulation."""
        return np.asarray(self.fidelity == 1)

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether it was simulated, and so counts."""
        return np.asarray(~self.cached & (self.status != Status.ILLEGAL))

    def parts(self) -> list[tuple[int, slice]]:
        """The rows of each trial: its number, and where they are."""
        if not len(self.trial):
            return []
        starts = np.flatnonzero(np.diff(self.trial, prepend=-1)).tolist()
        stops = [*starts[1:], len(self.trial)]
        numbers = self.trial[starts].tolist()
        return [(n, slice(a, b)) for n, a, b in zip(numbers, starts, stops, strict=True)]


def read_rows(
    snapshot: Snapshot,
    numbers: Mapping[str, int],
    problem_of: NDArray[np.int64],
    scorers: Mapping[int, Scorer],
    first_row: int = 0,
) -> dict[int, Rows]:
    """The evaluations of each problem of a dataset; designs are not read.

    Args:
        snapshot: of the dataset.
        numbers: number of each of its trials.
        problem_of: number of each trial's problem, shape (n_trials,).
        scorers: of each problem in the dataset, over the metrics that its objective names.
        first_row: added to the numbers of rows.
    """
    metrics = sorted({name for scorer in scorers.values() for name in scorer.metric_names})
    columns = ["trial_id", "step", *(f"metric.{name}" for name in metrics), "status", "reason"]
    columns += ["feasible", "cached", "fidelity", "simulation_s", "agent_s", "timestamp"]
    parts: dict[int, list[Rows]] = {number: [] for number in scorers}
    for block in snapshot.blocks(columns):
        table = block.table
        ids, names = _codes(table["trial_id"])
        trial = np.array([numbers.get(name, -1) for name in names], dtype=np.int32)[ids]
        problem = np.where(trial >= 0, problem_of[trial], -1)
        for number in np.unique(problem[problem >= 0]).tolist():
            mine = np.flatnonzero(problem == number)
            some = table if len(mine) == len(table) else table.take(mine)
            rows = block.rows[mine] + first_row
            parts[number].append(_read(some, trial[mine], rows, scorers[number]))
    return {
        number: join(some, len(scorers[number].objective.goals)) for number, some in parts.items()
    }


def join(parts: Sequence[Rows], n_goals: int) -> Rows:
    """Rows of one problem from several places, ordered by trial and step."""
    if not parts:
        return Rows(
            trial=np.empty(0, dtype=np.int32),
            step=np.empty(0, dtype=np.int32),
            row=np.empty(0, dtype=np.int64),
            values=np.empty((0, n_goals)),
            costs=np.empty((0, n_goals)),
            status=np.empty(0, dtype=np.int8),
            feasible=np.empty(0, dtype=np.bool_),
            cached=np.empty(0, dtype=np.bool_),
            fidelity=np.empty(0, dtype=np.float32),
            simulation_s=np.empty(0, dtype=np.float32),
            agent_s=np.empty(0, dtype=np.float32),
            time_us=np.empty(0, dtype=np.int64),
        )
    reasons: Counter[tuple[int, str]] = Counter()
    for part in parts:
        reasons.update(part.reasons)
    names = [name for name in vars(parts[0]) if name != "reasons"]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    order = np.lexsort((columns["step"], columns["trial"]))
    if (order[1:] < order[:-1]).any():
        columns = {name: column[order] for name, column in columns.items()}
    return Rows(**columns, reasons=reasons)


def _read(
    table: pa.Table, trial: NDArray[np.int32], row: NDArray[np.int64], scorer: Scorer
) -> Rows:
    codes, names = _codes(table["status"])
    status = np.array([STATUS_OF.get(name, -1) for name in names], dtype=np.int8)[codes]
    metrics = np.column_stack(
        [table[f"metric.{name}"].to_numpy().astype(np.float64) for name in scorer.metric_names]
    )
    with np.errstate(all="ignore"):
        values, costs = scorer.values(metrics), scorer.costs(metrics)
    values[status != 0] = costs[status != 0] = np.inf
    return Rows(
        trial=trial,
        step=table["step"].to_numpy().astype(np.int32),
        row=row,
        values=np.where(np.isnan(values), np.inf, values),
        costs=np.where(np.isnan(costs), np.inf, costs),
        status=status,
        feasible=np.asarray(table["feasible"].to_numpy(), dtype=np.bool_),
        cached=np.asarray(table["cached"].to_numpy(), dtype=np.bool_),
        fidelity=table["fidelity"].to_numpy().astype(np.float32),
        simulation_s=table["simulation_s"].to_numpy().astype(np.float32),
        agent_s=table["agent_s"].to_numpy().astype(np.float32),
        time_us=table["timestamp"].cast(pa.int64()).to_numpy(),
        reasons=_reasons(table["reason"], trial),
    )


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
    """A column of texts as numbers, and what they stand for."""
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else None
    if whole is None:
        return np.empty(0, dtype=np.int64), []
    codes = whole.indices.fill_null(len(whole.dictionary)).to_numpy().astype(np.int64)
    return codes, [*("" if name is None else name for name in whole.dictionary.to_pylist()), ""]
