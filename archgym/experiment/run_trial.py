"""Runs one trial, in the process that it is called in."""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from archgym.environment import Environment
from archgym.experiment.expand import Trial
from archgym.experiment.folder import RunFolder
from archgym.experiment.progress import Counters
from archgym.experiment.validate import goal_directions
from archgym.outcome import Outcomes
from archgym.registry import make, make_agent

__all__ = ["TrialEnd", "one_numeric_thread", "run_trial"]

REPORT_EVERY_S = 0.5
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


@dataclass(frozen=True)
class TrialEnd:
    """How a trial ended.

    Attributes:
        state: ``finished`` or ``failed``.
        error: one line that says why it failed.
    """

    state: str
    error: str = ""


def run_trial(
    trial: Trial,
    folder: RunFolder,
    *,
    resume: bool = False,
    report: Callable[[Counters], None] | None = None,
) -> TrialEnd:
    """Runs a trial to its end and records it; an error ends this trial only.

    Args:
        trial: what to run.
        folder: where its dataset is, and where the traceback of an error goes.
        resume: go on with what the dataset holds of the trial.
        report: called now and then, and at the end, with how far it is.
    """
    watch = _Watch(report) if report is not None else None
    try:
        with one_numeric_thread(), contextlib.closing(_environment(trial, folder)) as environment:
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
    except Exception as error:
        folder.write(f"errors/{trial.trial_id}.txt", traceback.format_exc())
        message = str(error).strip().partition("\n")[0]
        return TrialEnd("failed", f"{type(error).__name__}: {message}".removesuffix(": "))
    if watch is not None:
        watch.last()
    folder.error_file(trial.trial_id).unlink(missing_ok=True)
    return TrialEnd("finished")


@contextlib.contextmanager
def one_numeric_thread() -> Iterator[None]:
    """Holds numeric libraries to one thread: results then do not depend on the machine's cores.

    Libraries that are loaded already are limited directly, later ones by their variables.
    """
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        with threadpool_limits(1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _environment(trial: Trial, folder: RunFolder) -> Environment:
    return make(trial.environment, **trial.arguments, record=folder.datasets / trial.dataset)


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
