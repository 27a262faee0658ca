"""Runs trials one after the other in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from archgym.experiment.expand import Trial
from archgym.experiment.folder import RunFolder
from archgym.experiment.progress import Progress
from archgym.experiment.run_trial import TrialEnd, run_trial

__all__ = ["run_locally"]


def run_locally(
    trials: Sequence[Trial], begun: frozenset[str], folder: RunFolder, progress: Progress
) -> dict[str, TrialEnd]:
    """Runs trials in order; how each of them ended.

    Args:
        trials: what to run.
        begun: ids of the trials that the datasets hold a part of.
        folder: of the run.
        progress: is told how far it is.
    """
    ends: dict[str, TrialEnd] = {}
    for trial in trials:
        progress.started(trial.trial_id)
        ends[trial.trial_id] = run_trial(
            trial,
            folder,
            resume=trial.trial_id in begun,
            report=partial(progress.counted, trial.trial_id),
        )
        progress.ended(trial.trial_id, ends[trial.trial_id].state)
    return ends
