"""Runs one trial, in the process that it is called in."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable

import numpy as np

from archgym.environment.environment import Environment
from archgym.errors import ExperimentError
from archgym.evaluation.outcome import Outcomes
from archgym.experiment.folder.full_disk import stop_if_full
from archgym.experiment.folder.trial_states import TrialEnd
from archgym.experiment.run.busy import Busy
from archgym.experiment.run.environments import Environments, NoBaselineError
from archgym.experiment.run.held_out import evaluated_held_out
from archgym.experiment.run.live_logs import live_logs
from archgym.experiment.run.progress import Counters
from archgym.experiment.spec.checks import goal_directions
from archgym.experiment.spec.expand import Trial
from archgym.reading.texts import text_of
from archgym.registry import make_agent

__all__ = ["run_trial"]

REPORT_EVERY_S = 0.5


def run_trial(
    trial: Trial,
    environments: Environments,
    *,
    resume: bool,
    report: Callable[[Counters], None],
) -> TrialEnd:
    """Runs a trial to its end and records it; an error ends this trial only.

    The traceback of an error goes into the folder of the run.

    Args:
        trial: what to run.
        environments: of this process.
        resume: whether to go on with the rows of the trial that the dataset holds.
        report: called with the counters of the trial now and then, and at its end.

    Raises:
        NoRoomError: if it could not be recorded because the disk is full.
        NoBaselineError: if the baseline design of its environment cannot be simulated.
    """
    began, cpu = time.perf_counter(), time.process_time()
    folder, watch = environments.folder, _Watch(report)
    state, error, held_out = "finished", "", None
    try:
        with (
            environments.of(trial) as environment,
            live_logs(environments.log, folder.path, trial, environment) as export,
        ):
            watch.follow(environment, export)
            agent = make_agent(
                trial.agent,
                environment.design_space,
                goal_directions(environment),
                seed=trial.seed,
                **trial.hyperparameters,
            )
            result = agent.search(
                environment,
                trial.budget,
                hours=trial.hours,
                initial=environments.initial.get(trial.setting, ()),
                history=environments.history(trial, environment),
                trial_id=trial.trial_id,
                resume=resume,
            )
            held_out = evaluated_held_out(trial, environment, result.best, environments)
    except NoBaselineError:
        raise  # no other trial in the environment could begin
    except Exception as raised:
        stop_if_full(raised, folder.path)
        with contextlib.suppress(ExperimentError):
            folder.write(folder.error_file(trial.trial_id), traceback.format_exc())
        message = text_of(raised).strip().partition("\n")[0]
        state, error = "failed", f"{type(raised).__name__}: {message}".removesuffix(": ")
    else:
        folder.error_file(trial.trial_id).unlink(missing_ok=True)
    watch.report()
    wall_s, cpu_s = (round(t, 6) for t in (time.perf_counter() - began, time.process_time() - cpu))
    return TrialEnd(state, error, wall_s, cpu_s, held_out)


class _Watch:
    """Counts what a search evaluates, for the display, at next to no cost."""

    def __init__(self, report: Callable[[Counters], None]) -> None:
        self._report = report
        self._environment: Environment | None = None
        self._best: tuple[float, ...] = ()
        self._next = 0.0

    def follow(self, environment: Environment, export: Callable[[Outcomes], None]) -> None:
        self._environment, self._export = environment, export
        environment.on_evaluated = self._evaluated
        environment.on_waiting = self._now_and_then

    def report(self) -> None:
        core = self._environment.evaluator if self._environment is not None else None
        if core is not None:
            best, share = self._best, core.spent_share
            self._report(Counters(core.simulations, core.proposals, best, share, Busy.of(core)))

    def _evaluated(self, outcomes: Outcomes) -> None:
        self._export(outcomes)
        good = outcomes.feasible & (outcomes.fidelity == 1)
        values = outcomes.objectives if good.all() else outcomes.objectives[good]
        if len(values):
            new = values.min(axis=0)
            if not self._best:
                self._best = tuple(new.tolist())
            elif (new < self._best).any():
                self._best = tuple(np.minimum(new, self._best).tolist())
        self._now_and_then()

    def _now_and_then(self) -> None:
        now = time.perf_counter()
        if now >= self._next:
            self._next = now + REPORT_EVERY_S
            self.report()
