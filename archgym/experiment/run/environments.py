"""The environments in which the trials of a process run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, ExperimentError
from archgym.experiment.run.context import RunContext
from archgym.experiment.run.trial_batches import environment_key
from archgym.experiment.simulate.finished import MakePool, executor_that_keeps
from archgym.experiment.simulate.simulators import MakeExecutor, Simulators
from archgym.experiment.spec.expand import Trial
from archgym.experiment.workers.lease_executor import lease_executor
from archgym.history import History
from archgym.history.earlier import scored
from archgym.history.kept import read_kept
from archgym.registry import make
from archgym.simulators.executor import Running

__all__ = ["Environments", "NoBaselineError"]


class NoBaselineError(ExperimentError):
    """A baseline design cannot be simulated: the run stops, since no trial of it can begin."""


class Environments:
    """Makes the environments of trials, one at a time, and shares them between trials.

    An environment is made once for consecutive trials with the same arguments: each trial begins
    with an empty cache and all counters at zero. An environment that overrides ``close`` is made
    anew for each trial, and so is one in which a trial failed.

    Args:
        context: of the run.
        make_pool: makes what simulates, where the experiment asks for processes.

    Attributes:
        folder: of the run.
        initial: designs that the searches of each setting evaluate first.
        trial_id: the trial that runs; empty between two.
        log: where else trials are shown while they run.
    """

    def __init__(self, context: RunContext, make_pool: MakePool) -> None:
        self.folder, self._baselines, self.log = context.folder, context.baselines, context.log
        self.initial, self._durable = context.initial, context.durable
        make_executor: MakeExecutor = partial(
            executor_that_keeps, make_pool, context.folder.finished
        )
        if context.simulation.leased:
            make_executor = partial(lease_executor, context.folder, context.run_id)
        self._simulators = Simulators(context.simulation, make_executor, context.network)
        self._key = self.trial_id = ""
        self._held: Environment | None = None
        self._history_of = ""
        self._history: History | None = None

    @contextlib.contextmanager
    def of(self, trial: Trial) -> Iterator[Environment]:
        """The environment that a trial runs in.

        Raises:
            NoBaselineError: if its baseline design cannot be simulated.
        """
        self.trial_id = trial.trial_id
        key = environment_key(trial)
        environment, self._held = self._held, None
        if environment is None or key != self._key:
            self._simulators.close()
            record = self.folder.datasets / trial.dataset
            environment = make(
                trial.environment, **trial.arguments, record=record, durable=self._durable
            )
            self._simulators.serve(environment, trial.environment, trial.arguments)
            if trial.setting in self._baselines:
                environment.baseline_metrics = self._baselines[trial.setting]
            self._simulate_baseline(environment, trial)
        environment.on_evaluated = environment.on_waiting = None
        self._key = key
        with contextlib.closing(environment):
            yield environment
        if type(environment).close is Environment.close:
            self._held = environment
        self.trial_id = ""

    def held_out(self, trial: Trial, workload: Any) -> Environment:
        """The environment of a trial on another workload; it records nothing.

        Raises:
            ArchgymError: if it cannot be made.
        """
        return make(trial.environment, **{**trial.arguments, "workload": workload})

    def history(self, trial: Trial, environment: Environment) -> History | None:
        """What a trial learns from, of what the run keeps; ``None`` if from nothing.

        Args:
            trial: of the run.
            environment: that it runs in.

        Raises:
            DatasetError: if it cannot be read.
        """
        if not trial.history:
            return None
        if self._history is None or self._history_of != trial.setting:
            found = read_kept(self.folder.history_file(trial.setting), environment)
            self._history, self._history_of = scored(found, environment), trial.setting
        return self._history

    @property
    def slots(self) -> int:
        """How many designs can be simulated at a time; any thread may ask."""
        return self._simulators.slots

    def running(self) -> list[Running]:
        """The designs in flight; any thread may ask."""
        return self._simulators.running()

    def _simulate_baseline(self, environment: Environment, trial: Trial) -> None:
        """Simulates the baseline design, unless that was done before the trials began."""
        try:
            self._simulators.simulate_baseline(environment)
        except ArchgymError as error:
            raise NoBaselineError(f"environment {trial.environment!r}: {error}") from error

    def close(self) -> None:
        """Ends the processes that simulate."""
        self._held = None
        self._simulators.close()
