"""Runs a batch of trials one after the other, in the process that it is called in."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Protocol

from archgym.data.journal import journals_kept_open
from archgym.experiment.folder.trial_states import TrialEnd, TrialLog
from archgym.experiment.run.context import RunContext
from archgym.experiment.run.environments import Environments
from archgym.experiment.run.live import shown_live
from archgym.experiment.run.progress import Counters
from archgym.experiment.run.run_trial import run_trial
from archgym.experiment.run.trial_batches import TrialBatch
from archgym.experiment.simulate.finished import MakePool
from archgym.experiment.simulate.simulators import process_executor
from archgym.simulators.threads import one_numeric_thread

__all__ = ["Listener", "run_batch"]

_MAX_STARTS = 3
"""A trial in which the worker process died this often counts as failed, and the others go on."""


class Listener(Protocol):
    """Hears of the progress of a batch, as :class:`archgym.experiment.run.progress.Progress`."""

    def started(self, trial_id: str) -> None:
        """A trial begins."""
        ...

    def counted(self, trial_id: str, counters: Counters) -> None:
        """A trial has evaluated more designs."""
        ...

    def ended(self, trial_id: str, state: str) -> None:
        """A trial is ``finished`` or ``failed``."""
        ...


def run_batch(
    batch: TrialBatch,
    context: RunContext,
    listener: Listener,
    make_pool: MakePool = process_executor,
) -> dict[str, TrialEnd]:
    """Runs the trials of a batch in order, except those that have ended according to its log.

    Args:
        batch: what to run.
        context: of the run.
        listener: hears of the progress.
        make_pool: makes what simulates, where the experiment asks for processes.

    Returns:
        How each trial ended, by id.

    Raises:
        NoRoomError: if the disk is full.
        NoBaselineError: if the baseline design of an environment cannot be simulated.
        ExperimentError: if another process works on the batch, or its log cannot be written.
    """
    log = TrialLog(context.folder.log_file(context.run_id, batch.name))
    with (
        contextlib.closing(log),
        contextlib.closing(Environments(context, make_pool)) as environments,
        shown_live(context, batch.name, environments),
        journals_kept_open(),
        one_numeric_thread(),
    ):
        for trial in batch.trials:
            name, starts = trial.trial_id, log.starts[trial.trial_id]
            listener.started(name)
            if name not in log.ends:
                if starts >= _MAX_STARTS:
                    why = "(killed from outside, out of memory, or a crash)"
                    end = TrialEnd("failed", f"its worker process died {starts} times {why}")
                else:
                    log.begin(name)
                    end = run_trial(
                        trial,
                        environments,
                        resume=starts > 0 or name in context.started,
                        report=partial(listener.counted, name),
                    )
                log.end(name, end)
            listener.ended(name, log.ends[name].state)
        return log.ends
