"""How the designs of a trial are simulated: in processes of their own, with limits, from a cache.

By default a trial simulates in its own process. With ``simulation.workers`` its batches spread
over processes, on this machine or through Ray; with ``simulation.time_limit_s`` a design that
takes too long ends its process and nothing else; what dies is tried again; and
``simulation.cache`` shares results between trials and runs.
"""

from __future__ import annotations

import json
import os
import queue
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, NotCoveredError, SimulationError
from archgym.experiment.spec.schema import Simulation as Settings
from archgym.problem.description import ProblemDescription
from archgym.problem.simulator import SimulationResult, Simulator
from archgym.simulators.shared_cache import SimulationCache, simulation_key
from archgym.space import Designs

__all__ = ["Lane", "LaneDiedError", "ProcessLane", "Simulators", "read_answer"]

_START_S = 600.0
"""To import, to make the environment, and to compile."""


class LaneDiedError(Exception):
    """The process of a lane is gone."""


class Lane(Protocol):
    """A process with an environment of its own, which simulates a design at a time."""

    def simulate(
        self, codes: Sequence[int], fidelity: float, limit_s: float | None
    ) -> tuple[SimulationResult, float]:
        """Result and seconds.

        Raises:
            TimeoutError: after the limit; the process is ended.
            LaneDiedError: if it is gone.
        """
        ...

    def close(self) -> None:
        """Ends the process."""
        ...


class ProcessLane:
    """A lane on this machine; its process starts with the first design.

    Args:
        environment: registered name, or ``module:Class``.
        arguments: of its constructor.
    """

    def __init__(self, environment: str, arguments: Mapping[str, Any]) -> None:
        self._job = {"environment": environment, "arguments": dict(arguments)}
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def simulate(
        self, codes: Sequence[int], fidelity: float, limit_s: float | None
    ) -> tuple[SimulationResult, float]:
        """See :class:`Lane`."""
        if self._process is None:
            self._start()
        answer = self._ask({"codes": list(codes), "fidelity": fidelity}, limit_s)
        return read_answer(answer)

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _start(self) -> None:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self._rest = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "archgym.experiment.simulate.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            bufsize=0,
        )
        answer = self._ask(self._job, _START_S)
        if "refused" in answer:
            self.close()
            raise ArchgymError(str(answer["refused"]))

    def _ask(self, question: Mapping[str, Any], limit_s: float | None) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write((json.dumps(question) + "\n").encode())
            line = self._line(process.stdout.fileno(), limit_s)
        except (BrokenPipeError, ConnectionResetError):
            line = b""
        except BaseException:  # too late, or Ctrl-C: its answer must not meet the next question
            self.close()
            raise
        if not line:
            self.close()
            raise LaneDiedError
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _line(self, pipe: int, limit_s: float | None) -> bytes:
        """The next line; empty at the end of the pipe."""
        end = None if limit_s is None else time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                left = None if end is None else end - time.monotonic()
                if (left is not None and left <= 0) or not selector.select(left):
                    raise TimeoutError
                chunk = os.read(pipe, 1 << 16)
                if not chunk:
                    return b""
                self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line


def read_answer(answer: Mapping[str, Any]) -> tuple[SimulationResult, float]:
    """Result and seconds in what a simulation process answered."""
    seconds = float(answer["seconds"])
    if "metrics" in answer:
        return answer["metrics"], seconds
    if "fatal" in answer:
        raise ArchgymError(answer["fatal"])
    reason = answer["reason"]
    if answer["error"] == "timeout":
        return TimeoutError(reason), seconds
    kind = NotCoveredError if answer["error"] == "not_covered" else SimulationError
    return kind(reason), seconds


class Simulators:
    """Puts into an environment what its experiment says of simulations.

    Args:
        settings: the experiment's ``simulation``.
        make_lane: makes a lane for an environment and its arguments.
        network: whether the cache is used by several machines.
    """

    def __init__(
        self,
        settings: Settings,
        make_lane: Callable[[str, Mapping[str, Any]], Lane] = ProcessLane,
        network: bool = False,
    ) -> None:
        self._settings, self._make_lane = settings, make_lane
        self._cache = SimulationCache(settings.cache, network=network) if settings.cache else None
        self._lanes: list[Lane] = []

    def serve(self, environment: Environment, name: str, arguments: Mapping[str, Any]) -> None:
        """Simulates for an environment from now on.

        Args:
            environment: whose simulator is replaced; one on a table keeps it.
            name: as which it was made.
            arguments: with which it was made.
        """
        if hasattr(environment.simulator, "optimum"):  # a table: nothing is faster
            return
        settings, simulator = self._settings, environment.simulator
        if settings.workers is not None or settings.time_limit_s is not None:
            lanes = [self._make_lane(name, arguments) for _ in range(settings.workers or 1)]
            self._lanes += lanes
            environment.simulator = simulator = _Spread(simulator, lanes, settings)
        if self._cache is not None:
            environment.simulator = _Cached(simulator, environment.description, self._cache)

    def simulate_baseline(self, environment: Environment) -> None:
        """Simulates the baseline as every design of an environment that it serves.

        Since nothing goes on without it, a time limit is tried again too.

        Raises:
            SimulationError: if it cannot be simulated.
        """
        environment.simulate_baseline(self._settings.retries)

    def close(self) -> None:
        """Ends the processes, and lets go of the cache until it is needed again."""
        while self._lanes:
            self._lanes.pop().close()
        if self._cache is not None:
            self._cache.close()


class _Around:
    """A simulator around another one, which it stands for."""

    def __init__(self, inner: Simulator) -> None:
        self._inner = inner
        self.name, self.version = inner.name, inner.version
        self.metric_names = inner.metric_names
        if hasattr(inner, "fidelities"):
            self.fidelities = inner.fidelities

    def simulate(self, designs: Designs) -> Sequence[tuple[SimulationResult, float]]:
        return self.simulate_at(designs, 1.0)

    def simulate_at(
        self, designs: Designs, fidelity: float
    ) -> Sequence[tuple[SimulationResult, float]]:
        raise NotImplementedError


class _Spread(_Around):
    """Simulates each design in one of several processes."""

    def __init__(self, inner: Simulator, lanes: Sequence[Lane], settings: Settings) -> None:
        super().__init__(inner)
        self._settings = settings
        self._free: queue.Queue[Lane] = queue.Queue()
        self._threads = len(lanes)
        for lane in lanes:
            self._free.put(lane)

    def simulate_at(
        self, designs: Designs, fidelity: float
    ) -> Sequence[tuple[SimulationResult, float]]:
        tasks = [(codes, fidelity) for codes in designs.codes.tolist()]
        if min(self._threads, len(tasks)) == 1:
            return [self._one(task) for task in tasks]
        with ThreadPoolExecutor(min(self._threads, len(tasks))) as pool:
            return list(pool.map(self._one, tasks))

    def _one(self, task: tuple[list[int], float]) -> tuple[SimulationResult, float]:
        lane, limit = self._free.get(), self._settings.time_limit_s
        began = time.perf_counter()
        died = 0
        try:
            for attempt in range(self._settings.retries + 1):
                try:
                    result, seconds = lane.simulate(*task, limit)
                except LaneDiedError:
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
            self._free.put(lane)


class _Cached(_Around):
    """Asks a cache first."""

    def __init__(
        self, inner: Simulator, problem: ProblemDescription, cache: SimulationCache
    ) -> None:
        super().__init__(inner)
        self._problem, self._cache = problem, cache

    def simulate_at(
        self, designs: Designs, fidelity: float
    ) -> Sequence[tuple[SimulationResult, float]]:
        began = time.perf_counter()
        keys = [simulation_key(self._problem, design, fidelity) for design in designs]
        held = self._cache.get(keys)
        each = (time.perf_counter() - began) / max(1, len(keys))
        left = [i for i, key in enumerate(keys) if key not in held]
        results: dict[int, tuple[SimulationResult, float]] = {}
        if left:
            part = designs[np.array(left)]
            new = (
                self._inner.simulate(part)
                if fidelity == 1
                else self._inner.simulate_at(part, fidelity)  # type: ignore[attr-defined]
            )
            results = dict(zip(left, new, strict=True))
            self._cache.put({keys[i]: result for i, (result, _) in results.items()})
        return [results.get(i) or (held[key], each) for i, key in enumerate(keys)]
