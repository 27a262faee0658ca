"""Replaces an environment's simulator by one that follows the experiment's ``simulation`` settings.

By default a trial simulates in its own process. With ``simulation.workers`` an executor simulates
in several processes, on this machine or through Ray. With ``simulation.time_limit_s`` a design
that takes too long ends its simulating process and nothing else. A simulation whose process dies
is repeated. ``simulation.cache`` shares results between trials and runs. With ``simulation.clock:
simulated`` nothing takes time but on a clock that is simulated.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError
from archgym.experiment.folder.names import FINISHED
from archgym.experiment.simulate.durations import Durations
from archgym.experiment.simulate.finished import FinishedExecutor, executor_that_keeps
from archgym.experiment.simulate.known_baseline import BaselineExecutor, BaselineSimulator
from archgym.experiment.simulate.process_executor import ProcessExecutor
from archgym.experiment.simulate.simulated_clock import SimulatedExecutor
from archgym.experiment.spec.checks import check_stop_early
from archgym.experiment.spec.from_mapping import read_simulation
from archgym.experiment.spec.simulation import SimulationSettings
from archgym.problem.description import ProblemDescription
from archgym.problem.simulator import Simulator
from archgym.registry import make
from archgym.simulators.executor import Executor, Running
from archgym.simulators.queued import (
    InProcessExecutor,
    QueuedSimulator,
    TimedResult,
    designs_at_a_time,
    simulate_at,
)
from archgym.simulators.recall import CachedExecutor
from archgym.simulators.shared_cache import SimulationCache, simulation_key
from archgym.space import Designs

__all__ = ["MakeExecutor", "Simulators", "environment_with_workers", "process_executor"]

MakeExecutor = Callable[[str, Mapping[str, Any], SimulationSettings, ProblemDescription], Executor]
"""Makes an executor for the name of an environment, the arguments of its constructor, the
settings of the experiment, and what the environment is then like."""


def process_executor(
    name: str,
    arguments: Mapping[str, Any],
    settings: SimulationSettings,
    problem: ProblemDescription,
    kept: str = "",
) -> Executor:
    """An executor of processes on this machine."""
    return ProcessExecutor(name, arguments, settings.workers or 1, settings.attempts, kept)


@contextlib.contextmanager
def environment_with_workers(
    name: str,
    simulation: SimulationSettings | Mapping[str, Any],
    record: str | Path | None = None,
    **arguments: Any,
) -> Iterator[Environment]:
    """An environment that simulates as the ``simulation`` of an experiment says, for a block.

    >>> from archgym.registry import make_agent
    >>> settings = {"workers": 8, "clock": "simulated", "duration": 60}
    >>> with environment_with_workers("Conformance-v0", settings) as env:
    ...     result = make_agent("ga", env.design_space).search(env, 80)
    ...     print(result.simulations, "simulations in", env.evaluator.now, "seconds")
    80 simulations in 600.0 seconds

    Args:
        name: registered name, or ``module:Class``; workers import it.
        simulation: as in the experiment file.
        record: folder of the dataset that takes every evaluation. What processes finished while
            the agent computed lies in its folder ``finished`` until it is recorded: after a kill,
            the next block with the same folder takes it from there.
        **arguments: of the environment's constructor, plain values.

    Raises:
        UnknownNameError, InvalidValueError: for settings or arguments that are not possible.
    """
    if not isinstance(simulation, SimulationSettings):
        simulation = read_simulation(simulation)
    if simulation.leased:
        raise InvalidValueError(
            "executor cannot be 'workers' here: they work for the run in a folder; use archgym run"
        )
    recorded = {} if record is None else {"record": record}
    environment = make(name, **arguments, **recorded)
    keeping: list[FinishedExecutor] = []

    def executor(*what: Any) -> Executor:
        if record is None:
            return process_executor(*what)
        made = executor_that_keeps(process_executor, Path(record) / FINISHED, *what)
        keeping.append(made)
        return made

    with (
        contextlib.closing(Simulators(simulation, executor)) as simulators,
        contextlib.closing(environment),
    ):
        simulators.serve(environment, name, arguments)
        simulators.simulate_baseline(environment)
        yield environment
    for one in keeping:
        one.all_recorded()


class Simulators:
    """Makes environments simulate as their experiment asks for.

    Args:
        settings: the experiment's ``simulation``.
        make_executor: makes what simulates, where the experiment asks for processes.
        network: whether several machines use the cache.
    """

    def __init__(
        self,
        settings: SimulationSettings,
        make_executor: MakeExecutor = process_executor,
        network: bool = False,
    ) -> None:
        self._settings, self._make_executor = settings, make_executor
        self._cache = SimulationCache(settings.cache, network=network) if settings.cache else None
        self._executors: list[Executor] = []

    def serve(self, environment: Environment, name: str, arguments: Mapping[str, Any]) -> None:
        """Replaces the simulator of an environment, except one that reads a table.

        Args:
            environment: whose simulator is replaced.
            name: registered name of the environment, or ``module:Class``.
            arguments: of its constructor.
        """
        settings, simulator = self._settings, environment.simulator
        asynchronous = settings.asynchronous and settings.several
        stop_early = settings.stop_early
        if stop_early:
            check_stop_early(environment)
        executor: Executor
        if settings.simulated:
            if environment.durable == "auto":
                environment.durable = "second"  # nothing takes the time that is recorded
            executor = self._on_simulated_clock(environment)
        elif hasattr(simulator, "optimum"):  # a table: nothing is faster
            return
        elif settings.elsewhere:
            executor = self._make_executor(name, arguments, settings, environment.description)
            if self._cache is not None:
                executor = CachedExecutor(executor, environment.description, self._cache)
            executor = BaselineExecutor(executor, environment)
        else:
            if self._cache is not None:
                cache = self._cache
                simulator = _Cached(simulator, environment.description, cache)
            if designs_at_a_time(simulator):
                simulator = BaselineSimulator(simulator, environment)
            environment.simulator = simulator
            if not stop_early:
                return
            executor = InProcessExecutor(simulator, environment.design_space)
        self._executors.append(executor)
        environment.simulator = QueuedSimulator(
            simulator,
            executor,
            asynchronous=asynchronous,
            stop_early=stop_early,
            timeless=settings.several and not asynchronous,
        )

    def simulate_baseline(self, environment: Environment) -> None:
        """Simulates the baseline design of an environment, with the same simulator.

        No trial can begin without it, so a baseline that exceeded the time limit is repeated too.

        Raises:
            SimulationError: if it cannot be simulated.
        """
        environment.simulate_baseline(self._settings.retries)

    @property
    def slots(self) -> int:
        """How many designs can be simulated at a time; any thread may ask."""
        return sum(executor.slots for executor in [*self._executors]) if self._executors else 1

    def running(self) -> list[Running]:
        """The designs in flight that executors have; any thread may ask."""
        return [one for executor in [*self._executors] for one in executor.running()]

    def close(self) -> None:
        """Ends the processes, and closes the cache until it is needed again."""
        while self._executors:
            self._executors.pop().close()
        if self._cache is not None:
            self._cache.close()

    def _on_simulated_clock(self, environment: Environment) -> SimulatedExecutor:
        environment.simulate_baseline(self._settings.retries)
        baseline = environment.baseline_metrics.tolist()
        names = [metric.name for metric in environment.metrics]
        durations = Durations(
            self._settings.duration,
            environment.fidelities,
            dict(zip(names, baseline, strict=True)),
        )
        return SimulatedExecutor(
            environment.simulator,
            environment.design_space,
            self._settings.workers or 1,
            durations,
            self._settings.time_limit_s,
        )


class _Cached:
    """A simulator in this process that looks a design up in a cache before it simulates it."""

    def __init__(
        self, inner: Simulator, problem: ProblemDescription, cache: SimulationCache
    ) -> None:
        self._inner, self._problem, self._cache = inner, problem, cache
        self.name, self.version = inner.name, inner.version
        self.metric_names = inner.metric_names
        if hasattr(inner, "fidelities"):
            self.fidelities = inner.fidelities
        self.alone = designs_at_a_time(inner)

    def simulate(self, designs: Designs) -> Sequence[TimedResult]:
        return self.simulate_at(designs, 1.0)

    def simulate_at(self, designs: Designs, fidelity: float) -> Sequence[TimedResult]:
        began = time.perf_counter()
        keys = [simulation_key(self._problem, design, fidelity) for design in designs]
        held = self._cache.get(keys)
        each = (time.perf_counter() - began) / max(1, len(keys))
        left = [i for i, key in enumerate(keys) if key not in held]
        results: dict[int, TimedResult] = {}
        if left:
            new = simulate_at(self._inner, designs[np.array(left)], fidelity)
            results = dict(zip(left, new, strict=True))
            self._cache.put({keys[i]: result for i, (result, _) in results.items()})
        return [results.get(i) or (held[key], each) for i, key in enumerate(keys)]
