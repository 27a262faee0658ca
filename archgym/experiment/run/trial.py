"""Runs one trial, in the process that it is called in."""

from __future__ import annotations

import contextlib
import json
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from archgym.environment.environment import Environment
from archgym.errors import ExperimentError
from archgym.evaluation.outcome import Outcomes
from archgym.experiment.folder.run_folder import RunFolder, stop_if_full
from archgym.experiment.run.progress import Counters
from archgym.experiment.folder.trial_states import TrialEnd
from archgym.experiment.simulate.executors import Simulators
from archgym.experiment.spec.checks import goal_directions
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.schema import Simulation
from archgym.registry import make, make_agent

__all__ = ["Environments", "run_trial"]

REPORT_EVERY_S = 0.5


class Environments:
    """The environments of trials, in one process.

    An environment is made once for trials that follow one another with the same arguments: each
    begins with nothing known and all counters at zero. One that overrides ``close`` frees
    something there and is made for each trial, and so is one in which a trial failed.

    Args:
        folder: of the run.
        simulators: how designs are simulated; by default in this process.
        baselines: metrics of the baseline design of each setting, where they are known.
    """

    def __init__(
        self,
        folder: RunFolder,
        simulators: Simulators | None = None,
        baselines: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self._folder, self._baselines = folder, baselines or {}
        self._simulators = simulators or Simulators(Simulation())
        self._key = ""
        self._held: Environment | None = None

    @contextlib.contextmanager
    def of(self, trial: Trial) -> Iterator[Environment]:
        """The environment of a trial, to run it in."""
        key = json.dumps([trial.dataset, trial.environment, trial.arguments], sort_keys=True)
        environment, self._held = self._held, None
        if environment is None or key != self._key:
            self._simulators.close()
            environment = make(
                trial.environment,
                **trial.arguments,
                record=self._folder.datasets / trial.dataset,
            )
            self._simulators.serve(environment, trial.environment, trial.arguments)
            if trial.setting in self._baselines:
                environment.baseline_metrics = self._baselines[trial.setting]
            self._simulators.simulate_baseline(environment)
        environment.on_evaluated = None
        self._key = key
        with contextlib.closing(environment):
            yield environment
        if type(environment).close is Environment.close:
            self._held = environment

    def close(self) -> None:
        """Ends what simulates."""
        self._held = None
        self._simulators.close()


def run_trial(
    trial: Trial,
    folder: RunFolder,
    environments: Environments | None = None,
    *,
    resume: bool = False,
    report: Callable[[Counters], None] | None = None,
) -> TrialEnd:
    """Runs a trial to its end and records it; an error ends this trial only.

    Args:
        trial: what to run.
        folder: where its dataset is, and where the traceback of an error goes.
        environments: of this process; by default one is made for this trial.
        resume: go on with what the dataset holds of the trial.
        report: called now and then, and at the end, with how far it is.

    Raises:
        NoRoomError: if it could not be recorded because the disk is full.
    """
    began, cpu = time.perf_counter(), time.process_time()
    watch = _Watch(report) if report is not None else None
    state, error = "finished", ""
    try:
        with (environments or Environments(folder)).of(trial) as environment:
            if watch is not None:
                watch.follow(environment)
            agent = make_agent(
                trial.agent,
                environment.design_space,
                goal_directions(environment),
                seed=trial.seed,
                **trial.hyperparameters,
            )
            agent.search(
                environment,
                trial.budget,
                initial=trial.initial_designs,
                trial_id=trial.trial_id,
                resume=resume,
            )
    except Exception as raised:
        stop_if_full(raised, folder.path)
        with contextlib.suppress(ExperimentError):
            folder.write(f"errors/{trial.trial_id}.txt", traceback.format_exc())
        message = str(raised).strip().partition("\n")[0]
        state, error = "failed", f"{type(raised).__name__}: {message}".removesuffix(": ")
    else:
        folder.error_file(trial.trial_id).unlink(missing_ok=True)
    if watch is not None:
        watch.last()
    seconds = time.perf_counter() - began, time.process_time() - cpu
    return TrialEnd(state, error, *(round(s, 6) for s in seconds))


class _Watch:
    """Follows a search for the display, at next to no cost."""

    def __init__(self, report: Callable[[Counters], None]) -> None:
        self._report = report
        self._environment: Environment | None = None
        self._best: tuple[float, ...] = ()
        self._next = 0.0

    def follow(self, environment: Environment) -> None:
        self._environment = environment
        environment.on_evaluated = self._evaluated

    def last(self) -> None:
        core = self._environment.evaluator if self._environment is not None else None
        if core is not None:
            self._report(Counters(core.simulations, core.proposals, self._best, core.spent))

    def _evaluated(self, outcomes: Outcomes) -> None:
        good = outcomes.feasible & (outcomes.fidelity == 1)
        values = outcomes.objectives if good.all() else outcomes.objectives[good]
        if len(values):
            new = values.min(axis=0)
            if not self._best:
                self._best = tuple(new.tolist())
            elif (new < self._best).any():
                self._best = tuple(np.minimum(new, self._best).tolist())
        now = time.perf_counter()
        if now >= self._next:
            self._next = now + REPORT_EVERY_S
            self.last()
