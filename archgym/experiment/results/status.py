"""How a run is doing, from what is in its folder: for ``archgym status``."""

from __future__ import annotations

import fcntl
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.analysis.timeline import WithoutBreaks, busy_at, most_at_a_time
from archgym.analysis.trials import TrialSummary, read_trials
from archgym.data import Dataset, find_datasets
from archgym.errors import ExperimentError, check_received
from archgym.experiment.folder.live_files import InFlight, LiveState, live_states
from archgym.experiment.folder.run_folder import LOCK, RunFolder
from archgym.experiment.folder.trial_states import read_ends
from archgym.experiment.results.best_design import best_of
from archgym.experiment.results.texts import value_text
from archgym.experiment.spec.expand import Trial

__all__ = ["Best", "RunStatus", "read_status"]

_RECENT = 100
"""Simulations over which the present rate is taken, and the share of busy workers."""
_ON_SIMULATED_CLOCKS_S = 1e9
"""Earlier times are on a simulated clock, which begins at 0."""
_LEAST = 3
"""Simulations from which a rate is given."""


@dataclass(frozen=True)
class Best:
    """The best of one problem.

    Attributes:
        setting: name of the environment and workload.
        trial_id: that found it.
        agent: that found it.
        values: its goals, with names and units.
        feasible: whether it keeps all limits.
        from_history: whether history suggested to begin with it.
    """

    setting: str
    trial_id: str
    agent: str
    values: Sequence[str]
    feasible: bool
    from_history: bool = False


@dataclass(frozen=True)
class RunStatus:
    """How a run is doing.

    Attributes:
        name: of the run's folder.
        state: ``running``, ``finished``, ``interrupted`` or ``not begun``.
        trials: number of trials by state: ``finished``, ``failed``, ``running``, ``waiting``.
        simulations: designs simulated so far.
        proposals: designs proposed so far.
        spent: budget spent in all trials: simulations, a lower fidelity by its relative cost, or
            hours of simulation if only hours are limited.
        budget: of all trials, likewise.
        unit: ``designs`` or ``hours``.
        live: what each batch of trials does now.
        busy: mean number of designs that were simulated at a time, of a run that goes on lately;
            ``None`` if no executor ran any.
        workers: how many could be: slots now, or the most at a time before.
        per_hour: budget spent an hour lately; ``None`` if there is too little to say.
        best: of each problem.
        stopped: simulations that searches stopped early.
        saved_s: about how much simulation that saved, s.
        at: seconds since the epoch.
    """

    name: str
    state: str
    trials: Mapping[str, int]
    simulations: int
    proposals: int
    spent: float
    budget: float
    unit: str
    live: Sequence[LiveState]
    busy: float | None
    workers: int
    per_hour: float | None
    best: Sequence[Best]
    stopped: int = 0
    saved_s: float = 0.0
    at: float = field(default_factory=time.time)

    @property
    def in_flight(self) -> list[tuple[str, InFlight]]:
        """Trial and design in flight; those that run longest come first."""
        found = [(state.trial_id, one) for state in self.live for one in state.in_flight]
        return sorted(found, key=lambda pair: (not pair[1].worker, pair[1].started))

    @property
    def left_s(self) -> float | None:
        """Seconds until the budget of all trials is spent, at the present rate."""
        if self.state != "running" or not self.per_hour:
            return None
        return max(0.0, self.budget - self.spent) / self.per_hour * 3600.0

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        left = self.left_s
        return {
            "run": self.name,
            "state": self.state,
            "at": round(self.at, 3),
            "trials": dict(self.trials),
            "simulations": self.simulations,
            "proposals": self.proposals,
            "stopped": self.stopped,
            "saved_s": round(self.saved_s, 3),
            "spent": self.spent,
            "budget": self.budget,
            "unit": self.unit,
            "slots": sum(state.slots for state in self.live),
            "in_flight": [
                {
                    "trial_id": trial,
                    "worker": one.worker or None,
                    "seconds": round(max(0.0, self.at - one.started), 3),
                }
                for trial, one in self.in_flight
            ],
            "busy_workers": self.busy,
            "workers": self.workers,
            "utilisation": self.busy / self.workers if self.busy and self.workers else None,
            "spent_per_hour": self.per_hour,
            "expected_end": None if left is None else round(self.at + left, 3),
            "best": [vars(one) | {"values": list(one.values)} for one in self.best],
        }


def read_status(path: str | Path) -> RunStatus:
    """How the run in a folder is doing; changes nothing there.

    Args:
        path: the folder.

    Raises:
        ExperimentError: if it holds no run, or something in it leads elsewhere.
        DatasetError: if it is not there, or a dataset is damaged.
    """
    folder = RunFolder(path)
    if not folder.path.exists():
        find_datasets(path)  # refuses it, and names those that may have been meant
    if folder.path.exists() and not folder.path.is_dir():
        raise ExperimentError(f"{path} is a file; the status is that of the folder of a run")
    check_received(folder.path, ExperimentError)
    trials = folder.trials()
    if not trials:
        raise ExperimentError(f"{folder.path} holds no run: it has no trials.json")
    live = live_states(folder.path)
    summaries = [one for data in folder.existing_datasets() for one in read_trials(data)]
    by_id = {summary.trial_id: summary for summary in summaries}
    ends = {name: end.state for name, end in read_ends(folder.logs).items()}
    states = Counter[str]()
    running = {state.trial_id for state in live}
    for trial in trials:
        states[_state(trial, by_id.get(trial.trial_id), ends, running)] += 1
    spent, budget = _work(trials, by_id, ends, running)
    over = states["finished"] + states["failed"] == len(trials)
    times, now = _times(folder.existing_datasets()), time.time()
    busy, workers, per_hour = _lately(times, [state.began for state in live], now)
    simulations = sum(summary.simulations for summary in summaries)
    if per_hour is not None and simulations:
        per_hour *= spent / simulations  # of the budget
    return RunStatus(
        name=folder.path.name,
        state=(
            "running"
            if live or _is_locked(folder.path)
            else "finished"
            if over and folder.results.exists()
            else "interrupted"
            if folder.begun()
            else "not begun"
        ),
        trials={name: states[name] for name in ("finished", "failed", "running", "waiting")},
        simulations=simulations,
        proposals=sum(summary.proposals for summary in summaries),
        spent=spent,
        budget=budget,
        unit="hours" if all(trial.budget is None for trial in trials) else "designs",
        live=live,
        busy=busy,
        workers=sum(state.slots for state in live) or workers,
        per_hour=per_hour,
        best=_best(trials, by_id),
        stopped=sum(summary.stopped for summary in summaries),
        saved_s=sum(summary.saved_s for summary in summaries),
        at=now,
    )


def _work(
    trials: Sequence[Trial],
    by_id: Mapping[str, TrialSummary],
    ends: Mapping[str, str],
    running: set[str],
) -> tuple[float, float]:
    """Budget that was spent, and that of all trials; one that ended early leaves some of it."""
    spent = budget = 0.0
    for trial in trials:
        summary, share = by_id.get(trial.trial_id), 0.0
        if summary is not None and trial.budget is not None:
            share = summary.spent / trial.budget
        if summary is not None and trial.hours is not None:
            share = max(share, summary.simulation_s / 3600.0 / trial.hours)
        done = min(1.0, share) * trial.weight
        over = trial.trial_id in ends and trial.trial_id not in running
        spent += done
        budget += done if over else trial.weight
    return spent, budget


def _state(
    trial: Trial, summary: TrialSummary | None, ends: Mapping[str, str], running: set[str]
) -> str:
    if trial.trial_id in running:
        return "running"
    end = ends.get(trial.trial_id, "")
    if end == "finished" and summary is not None and summary.state != "finished":
        return "waiting"  # its budget was raised since
    return end or "waiting"


class _Times(NamedTuple):
    """Of all simulations, in the order of their ends, shape (n,) each.

    Attributes:
        began: when each began, s; NaN where no executor recorded it.
        ended: when it was recorded, s.
        busy_s: seconds in simulator and agent.
    """

    began: NDArray[np.float64]
    ended: NDArray[np.float64]
    busy_s: NDArray[np.float64]


def _times(datasets: Sequence[Dataset]) -> _Times:
    parts: list[NDArray[np.float64]] = [np.empty((3, 0))]
    columns = ["started", "timestamp", "simulation_s", "agent_s", "cached", "status"]
    for dataset in datasets:
        for _, table in dataset.snapshot().blocks(columns):
            started, ended = (
                table[name].cast(pa.int64()).to_numpy().astype(np.float64) * 1e-6
                for name in ("started", "timestamp")
            )
            busy_s = table["simulation_s"].to_numpy() + table["agent_s"].to_numpy()
            illegal = np.array(table["status"].cast(pa.string()).to_pylist()) == "illegal"
            new = ~table["cached"].to_numpy() & ~illegal
            parts.append(np.stack([started, ended, np.nan_to_num(busy_s)])[:, new])
    found = np.concatenate(parts, axis=1)
    return _Times(*found[:, np.argsort(found[1], kind="stable")])


def _lately(
    times: _Times, batches: Sequence[float], now: float
) -> tuple[float | None, int, float | None]:
    """Mean number of busy workers, the most at a time, and simulations an hour.

    Times in which the run was interrupted do not count.

    Args:
        times: of all simulations.
        batches: when the batches of trials began that run now, s; if there are any, the run goes
            on, and only the last simulations count.
        now: the time, s.
    """
    last_began, last_ended, busy_s = (some[-_RECENT:] if batches else some for some in times)
    if len(last_ended) < _LEAST:
        return None, 0, None
    low = np.where(np.isnan(last_began), last_ended - busy_s, last_began)
    alive = np.full(len(batches), max(now, float(last_ended[-1])))
    cut = WithoutBreaks(np.concatenate([low, batches]), np.concatenate([last_ended, alive]))
    real = last_ended[-1] > _ON_SIMULATED_CLOCKS_S
    until = float(cut(alive)[0]) if batches else float(cut(last_ended)[-1])
    last_began, last_ended = cut(last_began), cut(last_ended)
    window = until - float(last_ended[0])
    per_hour = (len(last_ended) - 1) / window * 3600.0 if window > 0 and real else None
    flown = np.isfinite(last_began)
    if not flown.any() or window <= 0:
        return None, 0, per_hour
    first, last = last_began[flown], last_ended[flown]
    grid = np.array([float(last_ended[0]), float(last_ended[-1])])
    if grid[1] <= grid[0]:
        return None, 0, per_hour
    busy = float(busy_at(first, last, grid)[0])
    return busy, most_at_a_time(first, last), per_hour


def _best(trials: Sequence[Trial], by_id: Mapping[str, TrialSummary]) -> list[Best]:
    found = []
    for setting in dict.fromkeys(trial.setting for trial in trials):
        mine = [by_id[t.trial_id] for t in trials if t.setting == setting and t.trial_id in by_id]
        one = best_of(mine)
        if one is not None and one.best is not None:
            several = len(one.objective.goals) > 1
            pairs = zip(one.objective.goals, one.best.objectives, strict=True)
            values = [
                f"{goal.name + ' ' if several else ''}{value_text(one, i, value)}"
                for i, (goal, value) in enumerate(pairs)
            ]
            found.append(
                Best(setting, one.trial_id, one.agent, values, one.best.feasible, one.from_history)
            )
    return found


def _is_locked(path: Path) -> bool:
    """Whether a process on this machine holds the lock of the run, or of a shard."""
    for lock in sorted(path.glob(f"{LOCK}*")):
        try:
            file = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(file)
    return False
