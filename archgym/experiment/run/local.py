"""Runs trials one after the other in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from archgym.experiment.run.batch import run_pack
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.run.progress import Progress
from archgym.experiment.run.trial import Environments
from archgym.experiment.folder.trial_states import TrialEnd
from archgym.experiment.simulate.executors import Simulators
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.schema import Simulation

__all__ = ["run_locally"]


def run_locally(
    trials: Sequence[Trial],
    begun: frozenset[str],
    folder: RunFolder,
    progress: Progress,
    *,
    run_id: str,
    simulation: Simulation,
    baselines: Mapping[str, Sequence[float]] | None = None,
) -> dict[str, TrialEnd]:
    """Runs trials in order; how each of them ended.

    Args:
        trials: what to run.
        begun: ids of the trials that the datasets hold a part of.
        folder: of the run.
        progress: is told how far it is.
        run_id: of the lock on the folder.
        simulation: how designs are simulated.
        baselines: metrics of the baseline design of each setting, where they are known.

    Raises:
        NoRoomError: if the disk is full.
    """
    log = folder.log_file(run_id, "local")
    simulators = Simulators(simulation)
    with contextlib.closing(Environments(folder, simulators, baselines)) as environments:
        return run_pack(trials, begun, folder, log, environments, progress)
