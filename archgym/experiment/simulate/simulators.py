"""Replaces an environment's simulator by one that follows the experiment's ``simulation`` settings.

By default a trial simulates in its own process. With ``simulation.workers`` its batches are
spread over processes, on this machine or through Ray. With ``simulation.time_limit_s`` a design
that takes too long ends its simulating process and nothing else. A simulation whose process dies
is repeated. ``simulation.cache`` shares results between trials and runs.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from archgym.environment.environment import Environment
from archgym.errors import SimulationError
from archgym.experiment.simulate.process_executor import (
    Executor,
    ExecutorDiedError,
    MakeExecutor,
    ProcessExecutor,
    TimedResult,
)
from archgym.experiment.simulate.worker_process import simulate_at
from archgym.experiment.spec.schema import SimulationSettings
from archgym.problem.description import ProblemDescription
from archgym.problem.simulator import Simulator
from archgym.simulators.shared_cache import SimulationCache, simulation_key
from archgym.space import Designs

__all__ = ["Simulators"]


class Simulators:
    """Makes environments simulate as their experiment asks for.

    Args:
        settings: the experiment's ``simulation``.
        make_executor: makes an executor for an environment and its arguments.
        network: whether several machines use the cache.
    """

    def __init__(
        self,
        settings: SimulationSettings,
        make_executor: MakeExecutor = ProcessExecutor,
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
        if hasattr(environment.simulator, "optimum"):  # a table: nothing is faster
            return
        settings, simulator = self._settings, environment.simulator
        if settings.workers is not None or settings.time_limit_s is not None:
            executors = [self._make_executor(name, arguments) for _ in range(settings.workers or 1)]
            self._executors += executors
            environment.simulator = simulator = _Spread(simulator, executors, settings)
        if self._cache is not None:
            environment.simulator = _Cached(simulator, environment.description, self._cache)

    def simulate_baseline(self, environment: Environment) -> None:
        """Simulates the baseline design of an environment, with the same simulator.

        No trial can begin without it, so a baseline that exceeded the time limit is repeated too.

        Raises:
            SimulationError: if it cannot be simulated.
        """
        environment.simulate_baseline(self._settings.retries)

    def close(self) -> None:
        """Ends the processes, and closes the cache until it is needed again."""
        while self._executors:
            self._executors.pop().close()
        if self._cache is not None:
            self._cache.close()


class _Around:
    """A simulator that wraps another one and has its name, version and metrics."""

    def __init__(self, inner: Simulator) -> None:
        self._inner = inner
        self.name, self.version = inner.name, inner.version
        self.metric_names = inner.metric_names
        if hasattr(inner, "fidelities"):
            self.fidelities = inner.fidelities

    def simulate(self, designs: Designs) -> Sequence[TimedResult]:
        return self.simulate_at(designs, 1.0)

    def simulate_at(self, designs: Designs, fidelity: float) -> Sequence[TimedResult]:
        raise NotImplementedError


class _Spread(_Around):
    """Simulates each design in one of several processes."""

    def __init__(
        self, inner: Simulator, executors: Sequence[Executor], settings: SimulationSettings
    ) -> None:
        super().__init__(inner)
        self._settings = settings
        self._free: queue.Queue[Executor] = queue.Queue()
        self._threads = len(executors)
        for executor in executors:
            self._free.put(executor)

    def simulate_at(self, designs: Designs, fidelity: float) -> Sequence[TimedResult]:
        tasks = [(codes, fidelity) for codes in designs.codes.tolist()]
        threads = min(self._threads, len(tasks))
        if threads == 1:
            return [self._one(task) for task in tasks]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(self._one, tasks))

    def _one(self, task: tuple[list[int], float]) -> TimedResult:
        executor, limit = self._free.get(), self._settings.time_limit_s
        began = time.perf_counter()
        died = 0
        try:
            for attempt in range(self._settings.retries + 1):
                try:
                    result, seconds = executor.simulate(*task, limit)
                except ExecutorDiedError:
                    died += 1
                    result = SimulationError(f"the simulating process died, {died} times in all")
                    seconds = time.perf_counter() - began
                except TimeoutError:
                    seconds = time.perf_counter() - began
                    return TimeoutError(f"the simulation did not end within {limit:g} s"), seconds
                if attempt == self._settings.retries or not isinstance(result, SimulationError):
                    break
            return result, seconds
        finally:
            self._free.put(executor)


class _Cached(_Around):
    """Looks a design up in a cache before it simulates it."""

    def __init__(
        self, inner: Simulator, problem: ProblemDescription, cache: SimulationCache
    ) -> None:
        super().__init__(inner)
        self._problem, self._cache = problem, cache

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
