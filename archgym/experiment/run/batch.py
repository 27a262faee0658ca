"""Runs the trials of a pack one after the other, in the process that it is called in."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from archgym.data.journal import journals_kept_open
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.run.progress import Counters
from archgym.experiment.run.trial import Environments, run_trial
from archgym.experiment.folder.trial_states import TrialEnd, TrialLog
from archgym.experiment.spec.expand import Trial
from archgym.simulators.threads import one_numeric_thread

__all__ = ["Listener", "run_pack"]

_MOST_BEGINNINGS = 3
"""A trial in which the worker process died that often is given up, and the others go on."""


class Listener(Protocol):
    """Is told how far a pack is; a :class:`archgym.experiment.run.progress.Progress` is one."""

    def started(self, trial_id: str) -> None:
        """A trial begins."""
        ...

    def counted(self, trial_id: str, counters: Counters) -> None:
        """A trial has come further."""
        ...

    def ended(self, trial_id: str, state: str) -> None:
        """A trial is ``finished`` or ``failed``."""
        ...


def run_pack(
    trials: Sequence[Trial],
    begun: frozenset[str],
    folder: RunFolder,
    log: Path,
    environments: Environments,
    listener: Listener,
) -> dict[str, TrialEnd]:
    """Runs trials in order, those left out that the log knows the end of; how each ended.

    Args:
        trials: what to run.
        begun: ids of the trials that the datasets held a part of when the run began.
        folder: of the run.
        log: file of the pack's log.
        environments: of this process.
        listener: is told how far it is.

    Raises:
        NoRoomError: if the disk is full.
        ExperimentError: if another process works on the pack, or the log cannot be written.
    """
    with (
        contextlib.closing(TrialLog(log)) as written,
        journals_kept_open(),
        one_numeric_thread(),
    ):
        for trial in trials:
            name, before = trial.trial_id, written.begun[trial.trial_id]
            listener.started(name)
            if name not in written.ends:
                if before >= _MOST_BEGINNINGS:
                    end = TrialEnd("failed", dead_worker(before))
                else:
                    written.begin(name)
                    end = run_trial(
                        trial,
                        folder,
                        environments,
                        resume=before > 0 or name in begun,
                        report=partial(listener.counted, name),
                    )
                written.end(name, end)
            listener.ended(name, written.ends[name].state)
        return written.ends


def dead_worker(times: int) -> str:
    """Why a trial failed that ended its process."""
    often = "" if times == 1 else f" {times} times"
    return f"its worker process died{often} (killed from outside, out of memory, or a crash)"
