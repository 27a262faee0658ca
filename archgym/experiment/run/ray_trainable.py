"""A batch of trials as Ray Tune sees it, in the process of a worker."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ray import tune

from archgym.experiment.folder.full_disk import NoRoomError
from archgym.experiment.folder.lock import working
from archgym.experiment.run.context import RunContext
from archgym.experiment.run.environments import NoBaselineError
from archgym.experiment.run.progress import Counters
from archgym.experiment.run.run_batch import run_batch
from archgym.experiment.run.trial_batches import TrialBatch
from archgym.experiment.simulate.ray_executor import ray_executor
from archgym.experiment.simulate.simulators import process_executor
from archgym.experiment.spec.expand import Trial

__all__ = ["TuneBatch", "write_batches"]

_STEP_S = 1.0  # how often a batch reports its progress


def write_batches(batches: Sequence[TrialBatch], context: RunContext) -> Path:
    """Writes a file for each batch, from which a worker reads it; gives their folder.

    The folder is named by the run, so that no worker of an earlier run reads there.
    """
    files = context.folder.ray / f"batches-{context.run_id[:8]}"
    for batch in batches:
        data = {
            "trials": [trial.to_json() for trial in batch.trials],
            "context": context.of(batch.trials).to_json(),
        }
        context.folder.write(files / f"{batch.name}.json", json.dumps(data))
    return files


class TuneBatch(tune.Trainable):
    """A trial of Ray Tune that is a batch of trials of archgym; each step takes a second.

    The searches run in a thread and never wait for Tune. They begin with the first step, because
    Tune may set up a batch in two processes and then use only one of them.

    Its configuration has the keys ``batch`` (name of the batch), ``files`` (from
    :func:`write_batches`) and ``working_directory`` (where the user started the run).
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Takes a batch."""
        self._task = config
        self._mailbox = _Mailbox()
        self._problem: Exception | None = None
        self._thread: threading.Thread | None = None

    def step(self) -> dict[str, Any]:
        """Waits a second; reports what happened since the last step."""
        if self._thread is None:
            # Tune has put this process into a folder of its own, but relative paths in the
            # experiment start where the user is. A node without that folder runs the rest.
            with contextlib.suppress(OSError):
                os.chdir(self._task["working_directory"])
            self._thread = threading.Thread(target=self._search, daemon=True)
            self._thread.start()
        self._thread.join(_STEP_S)
        over = not self._thread.is_alive()
        problem = self._problem
        return {
            "news": self._mailbox.news(),
            "no_room": isinstance(problem, NoRoomError),
            "no_baseline": str(problem) if isinstance(problem, NoBaselineError) else "",
            "error": "" if problem is None else f"{type(problem).__name__}: {problem}",
            "done": over,
        }

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Goes on with another batch in the same process."""
        if self._thread is not None and self._thread.is_alive():
            return False
        self.setup(new_config)
        return True

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Saves nothing: the dataset is the checkpoint."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Loads nothing."""

    def _search(self) -> None:
        try:
            name = self._task["batch"]
            data = json.loads((Path(self._task["files"]) / f"{name}.json").read_text("utf-8"))
            batch = TrialBatch(name, tuple(map(Trial.from_json, data["trials"])))
            context = RunContext.from_json(data["context"])
            make_pool = ray_executor if context.simulation.processes else process_executor
            with working(context.folder, context.run_id):
                run_batch(batch, context, self._mailbox, make_pool)
        except Exception as error:  # such as a folder that was removed: the driver reports it
            self._problem = error


class _Mailbox:
    """Keeps the progress of a batch until the next step of Tune."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()

    def started(self, trial_id: str) -> None:
        self._events.put(("started", trial_id))

    def counted(self, trial_id: str, counters: Counters) -> None:
        self._events.put(("counted", trial_id, asdict(counters)))

    def ended(self, trial_id: str, state: str) -> None:
        self._events.put(("ended", trial_id, state))

    def news(self) -> str:
        """Gives all events as JSON, and removes them."""
        return json.dumps([self._events.get() for _ in range(self._events.qsize())])
