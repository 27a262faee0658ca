"""Live export of searches to TensorBoard and MLflow, through their own libraries.

What is exported is a view of the dataset, so an export that fails gives a warning and never stops
a search. A thread writes, so a search does not wait for a server.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from archgym.environment.environment import Environment
from archgym.errors import MissingDependencyError
from archgym.evaluation.outcome import Outcomes
from archgym.experiment.spec.expand import Trial
from archgym.problem.goals import natural
from archgym.problem.status import Status

__all__ = ["check_logs", "live_logs"]

_PACKAGES = {"tensorboard": "tensorboardX", "mlflow": "mlflow"}
_FLUSH_S = 1.0
_LAST_S = 60.0
"""How long the end of a trial waits until everything is written."""


class _Log(Protocol):
    def scalars(self, step: int, at_s: float, values: Mapping[str, float]) -> None:
        """Takes values after some simulations."""

    def flush(self) -> None:
        """Writes what was taken."""

    def close(self, state: str) -> None:
        """Ends the export of the trial."""


def check_logs(names: Iterable[str]) -> None:
    """Refuses exports whose library is not installed.

    Args:
        names: ``tensorboard`` or ``mlflow``.

    Raises:
        MissingDependencyError: for the first such export.
    """
    for name in names:
        if importlib.util.find_spec(_PACKAGES[name]) is None:
            raise MissingDependencyError(
                f"log: {name} needs the package {_PACKAGES[name]}: install it by "
                f"pip install 'archgym[{name}]'"
            )


@contextlib.contextmanager
def live_logs(
    names: Sequence[str], folder: Path, trial: Trial, environment: Environment
) -> Iterator[Callable[[Outcomes], None]]:
    """In the block, gives a function that exports outcomes of a trial.

    Args:
        names: ``tensorboard`` or ``mlflow``.
        folder: of the run.
        trial: the trial.
        environment: in which it runs.
    """
    if not names:
        yield lambda outcomes: None
        return
    writer = _Writer([partial(_MAKERS[name], folder, trial) for name in names])
    goals, metrics = environment.objective.goals, environment.metrics
    best, simulations = np.full(len(goals), np.inf), 0

    def take(outcomes: Outcomes) -> None:
        nonlocal simulations
        now = time.time()
        columns = (outcomes.objectives, outcomes.status, outcomes.cached, outcomes.feasible)
        rows = zip(*columns, outcomes.fidelity, outcomes.simulation_s, strict=True)
        for objectives, status, cached, feasible, fidelity, seconds in rows:
            if cached or status == Status.ILLEGAL:
                continue
            simulations += 1
            values = {"simulations": float(simulations), "simulation_s": float(seconds)}
            if status == Status.OK and fidelity == 1:
                if feasible:
                    np.minimum(best, objectives, out=best)
                for i, goal in enumerate(goals):
                    for kind, found in (("value", objectives[i]), ("best", best[i])):
                        if np.isfinite(found):
                            shown = natural(goal, metrics, float(found))
                            values[f"{kind}/{goal.name}"] = float(shown)
            writer.put(simulations, now, values)

    state = "interrupted"
    try:
        yield take
        state = "finished"
    except Exception:
        state = "failed"
        raise
    finally:
        writer.close(state)


_MLFLOW_STATUS = {"finished": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}
"""How MLflow calls the states in which a trial ends; one that is resumed runs again."""


class _Writer:
    """Writes to several exports in a thread.

    Args:
        makers: make the exports.
    """

    def __init__(self, makers: Sequence[Callable[[], _Log]]) -> None:
        self._makers = makers
        self._entries: queue.SimpleQueue[tuple[int, float, dict[str, float]] | str]
        self._entries = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="archgym-log", daemon=True)
        self._thread.start()

    def put(self, step: int, at_s: float, values: dict[str, float]) -> None:
        self._entries.put((step, at_s, values))

    def close(self, state: str) -> None:
        self._entries.put(state)
        self._thread.join(_LAST_S)

    def _write(self) -> None:
        logs = [log for make in self._makers for log in self._tried(make)]
        next_flush, state = time.monotonic() + _FLUSH_S, ""
        while not state:
            with contextlib.suppress(queue.Empty):
                entry = self._entries.get(timeout=max(0.0, next_flush - time.monotonic()))
                if isinstance(entry, str):
                    state = entry
                else:
                    logs = [log for log in logs if self._works(log.scalars, *entry)]
            if time.monotonic() >= next_flush:
                logs = [log for log in logs if self._works(log.flush)]
                next_flush = time.monotonic() + _FLUSH_S
        for log in logs:
            self._works(log.close, state)

    def _tried(self, make: Callable[[], _Log]) -> list[_Log]:
        made: list[_Log] = []
        self._works(lambda: made.append(make()))
        return made

    @staticmethod
    def _works(call: Callable[..., None], *arguments: Any) -> bool:
        try:
            call(*arguments)
        except Exception as error:  # whatever a library or a server does
            warnings.warn(f"an export has ended: {type(error).__name__}: {error}", stacklevel=2)
            return False
        return True


class _TensorBoard:
    """Event files in ``DIR/tensorboard/TRIAL``; what an earlier process wrote there is hidden."""

    def __init__(self, folder: Path, trial: Trial) -> None:
        from tensorboardX import SummaryWriter

        path = folder / "tensorboard" / trial.trial_id
        self._writer = SummaryWriter(str(path), purge_step=0)
        self._writer.add_text("trial", f"```json\n{json.dumps(_about(trial), indent=1)}\n```", 0)

    def scalars(self, step: int, at_s: float, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step, walltime=at_s)

    def flush(self) -> None:
        self._writer.flush()

    def close(self, state: str) -> None:
        self._writer.close()


class _MLflow:
    """A run of MLflow; where ``MLFLOW_TRACKING_URI`` says, or in ``DIR/mlflow.db``."""

    def __init__(self, folder: Path, trial: Trial) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Metric

        own = f"sqlite:///{folder / 'mlflow.db'}"
        self._metric = Metric
        self._client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or own)
        self._held: list[Any] = []
        name = folder.name
        found = self._client.get_experiment_by_name(name)
        experiment = found.experiment_id if found else self._client.create_experiment(name)
        key = hashlib.sha256(json.dumps([str(folder), trial.trial_id]).encode()).hexdigest()[:32]
        tags = {"archgym.run": str(folder), "archgym.trial": trial.trial_id, "archgym.key": key}
        query = f"tags.`archgym.key` = '{key}'"
        runs = self._client.search_runs([experiment], query, max_results=1)
        self._first = 0
        if runs:  # a trial that is resumed
            self._id = runs[0].info.run_id
            self._first = int(runs[0].data.metrics.get("simulations", 0))
            self._client.update_run(self._id, status="RUNNING")
        else:
            self._id = self._client.create_run(
                experiment, run_name=trial.trial_id, tags=tags
            ).info.run_id
            for key, value in _about(trial).items():
                self._client.log_param(self._id, key, value)

    def scalars(self, step: int, at_s: float, values: Mapping[str, float]) -> None:
        if step > self._first:
            at_ms = int(at_s * 1000)
            self._held += [self._metric(k, v, at_ms, step) for k, v in values.items()]

    def flush(self) -> None:
        while self._held:
            part, self._held = self._held[:1000], self._held[1000:]
            self._client.log_batch(self._id, metrics=part)

    def close(self, state: str) -> None:
        self.flush()
        self._client.set_terminated(self._id, _MLFLOW_STATUS[state])


_MAKERS: dict[str, Callable[[Path, Trial], _Log]] = {
    "tensorboard": _TensorBoard,
    "mlflow": _MLflow,
}


def _about(trial: Trial) -> dict[str, Any]:
    """What tells a trial from others."""
    return {
        "agent": trial.agent,
        "setting": trial.setting,
        "seed": trial.seed,
        "budget": trial.budget,
        **{f"agent.{key}": value for key, value in trial.hyperparameters.items()},
    }
