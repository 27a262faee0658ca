"""Evaluates designs for an assistant, within the budget, recorded."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.assistant.models import BudgetState, Evaluated, Evaluation, MetricValue
from archgym.assistant.workplace import EVALUATIONS, RUNS, Workplace
from archgym.data import Dataset
from archgym.environment.environment import Environment
from archgym.errors import BudgetExhausted, InvalidValueError
from archgym.evaluation.outcome import Outcome
from archgym.evaluation.trial_info import TrialInfo
from archgym.experiment.simulate.simulators import Simulators
from archgym.experiment.spec.checks import make_environment
from archgym.experiment.spec.from_mapping import read_simulation
from archgym.registry import environment_names
from archgym.serve.describe import metric_json
from archgym.simulators.external import available_cores
from archgym.space import Designs, DesignSpace

__all__ = ["Evaluations", "budget_state"]

AGENT: Final = "assistant"
_MAX_OPEN: Final = 8
_PART_S: Final = 0.5
"""Designs are evaluated in parts, each doubled that took less, s: the server may be told to end."""


def budget_state(workplace: Workplace) -> BudgetState:
    """The budget as tools give it."""
    total = workplace.limits.budget
    return BudgetState(total=total, spent=workplace.spent, left=workplace.left)


class Evaluations:
    """Keeps the environments that were used last, each with its trial.

    Args:
        workplace: where evaluations are recorded, and how many there may be.

    Attributes:
        stop: set when no further simulation is to begin.
    """

    def __init__(self, workplace: Workplace) -> None:
        self._workplace, self.stop = workplace, threading.Event()
        self._open: dict[str, tuple[Environment, str]] = {}
        self._opened = 0
        self._known: dict[str, set[int]] = {}  # designs of the open ones, by their keys
        self._processes: dict[str, Simulators] = {}

    def evaluate(
        self, spec: str, arguments: Mapping[str, Any], designs: Sequence[Mapping[str, Any]]
    ) -> Evaluation:
        """Evaluates designs; parameters that they lack are as in the baseline.

        Args:
            spec: of the environment.
            arguments: of its constructor.
            designs: mappings.

        Raises:
            BudgetExhausted: if nothing is left for any of them.
            ArchgymError: for a design or an argument that is not possible.
        """
        key = json.dumps([spec, dict(arguments)], sort_keys=True, default=repr)
        if self._workplace.left < 1 and key not in self._open:  # making it may start a program
            raise self._spent()
        environment, name = self._environment(key, spec, arguments)
        space = environment.design_space
        held = {k: v for k, v in environment.baseline.items() if k in space}
        whole = space.designs([{**held, **environment.baseline_design, **d} for d in designs])
        free = self._free(key, whole, space)
        outcomes: list[Outcome] = []
        core = environment.evaluator
        at_once = available_cores()
        while len(outcomes) < len(whole) and not self.stop.is_set():
            left = np.cumsum(~free[len(outcomes) :]) <= self._workplace.left
            part, began = whole[len(outcomes) :][: min(int(left.sum()), at_once)], time.monotonic()
            if not len(part):
                break
            new = int((~free[len(outcomes) :][: len(part)]).sum())
            with self._workplace.reserved(new) as used:
                before = core.simulations
                try:
                    outcomes += environment.evaluate_batch(part)
                finally:
                    used[0] = core.simulations - before
            if time.monotonic() - began < _PART_S:
                at_once *= 2
        if len(whole) and not outcomes:
            raise InvalidValueError("the server ends") if self.stop.is_set() else self._spent()
        self._known[key].update(whole[: len(outcomes)].keys())
        return Evaluation(
            outcomes=[_evaluated(environment, one) for one in outcomes],
            not_evaluated=len(whole) - len(outcomes),
            recorded_in=name,
            budget=budget_state(self._workplace),
        )

    def flush(self) -> None:
        """Ends all trials, so that what was evaluated can be read as a whole."""
        while self._open:
            self._end(next(iter(self._open)))

    def _free(self, key: str, designs: Designs, space: DesignSpace) -> NDArray[np.bool_]:
        """Which designs cost nothing: known here, proposed twice, or against a rule."""
        seen = set(self._known[key])
        free: NDArray[np.bool_] = ~space.legal(designs)
        for row, each in enumerate(designs.keys()):
            free[row] |= each in seen
            seen.add(each)
        return free

    def _spent(self) -> BudgetExhausted:
        total = self._workplace.limits.budget
        return BudgetExhausted(
            f"the budget of {total:,} simulated designs is spent; the person who started the "
            "server can raise it"
        )

    def _environment(
        self, key: str, spec: str, arguments: Mapping[str, Any]
    ) -> tuple[Environment, str]:
        if key in self._open:
            self._open[key] = self._open.pop(key)  # the last one used comes last
            return self._open[key]
        self._check_number_of_problems()
        self._workplace.check()
        own = {k: v for k, v in arguments.items() if k not in ("workload", "objective", "fixed")}
        digest = hashlib.sha256(json.dumps([spec, own], sort_keys=True).encode()).hexdigest()[:8]
        short = re.sub(r"[^A-Za-z0-9]+", "-", spec.rpartition("/")[2].rpartition(":")[2])
        name = f"{short.strip('-')}-{digest}"
        folder = self._workplace.folder / EVALUATIONS / name
        if (self._workplace.folder / RUNS / name).exists():
            raise InvalidValueError(f"the name {name!r} is taken by a run")
        if len(self._open) >= _MAX_OPEN:
            self._end(next(iter(self._open)))
        environment = make_environment(spec, {**arguments, "record": folder})
        self._open[key] = environment, name
        self._known[key] = set()
        self._opened += 1
        try:
            if spec not in environment_names() or self._workplace.limits.programs:
                self._limit_time(key, environment, spec, arguments)
            environment.start_trial(TrialInfo(agent=AGENT))
        except BaseException:
            self._end(key)
            raise
        return environment, name

    def _check_number_of_problems(self) -> None:
        """Each problem simulates its baseline, which is not counted: there are not endlessly many.

        Raises:
            BudgetExhausted: if there were as many as the budget has designs.
        """
        most = max(_MAX_OPEN, self._workplace.limits.budget)
        if self._opened >= most:
            raise BudgetExhausted(
                f"this session has evaluated {self._opened:,} problems, each with its baseline: at "
                f"most {most:,} are allowed, go on with those that were evaluated last"
            )

    def _limit_time(
        self, key: str, environment: Environment, spec: str, arguments: Mapping[str, Any]
    ) -> None:
        """A simulator that is not ours may never end: it runs in a process that can be ended."""
        limit_s = 60.0 * self._workplace.limits.run_minutes
        processes = Simulators(read_simulation({"time_limit_s": limit_s}))
        self._processes[key] = processes
        processes.serve(environment, spec, arguments)
        processes.simulate_baseline(environment)

    def _end(self, key: str) -> None:
        environment, _ = self._open.pop(key)
        del self._known[key]
        environment.close()
        if key in self._processes:
            self._processes.pop(key).close()
        if environment.record is not None:
            Dataset(environment.record).seal()


def metric_values(
    metrics: Sequence[Any],
    values: Mapping[str, float | None],
    baseline: Mapping[str, float | None],
) -> dict[str, MetricValue]:
    """Metrics of a design beside those of the baseline."""
    return {
        metric.name: MetricValue(
            value=values[metric.name],
            unit=metric.unit,
            better=metric_json(metric)["better"],
            baseline=baseline.get(metric.name),
        )
        for metric in metrics
        if metric.name in values
    }


def _evaluated(environment: Environment, outcome: Outcome) -> Evaluated:
    known = environment.baseline_metrics.tolist()
    names = [metric.name for metric in environment.metrics]
    baseline = {n: v if v == v else None for n, v in zip(names, known, strict=True)}
    return Evaluated(
        design=outcome.design,
        status=outcome.status,
        feasible=outcome.feasible,
        reward=outcome.reward,
        reason=outcome.reason,
        metrics=metric_values(environment.metrics, outcome.metrics, baseline),
        known=outcome.cached,
        caveats=environment.caveats_of(outcome.design),
    )
