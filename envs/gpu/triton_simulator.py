"""The simulator ``triton``: measures each design on the GPU of this machine.

A design is compiled, run on poisoned output and checked, and timed in passes over the whole
batch, so that the repeats of a design are at different moments. Several processes may search at a
time: they compile side by side and measure one at a time. No setting of the GPU is changed.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from archgym.envs.gpu.parameters import Shape
from archgym.errors import (
    InvalidValueError,
    MissingDependencyError,
    SimulationError,
    UnknownNameError,
)
from archgym.problem.simulator import SimulationResult
from archgym.space import Designs

if TYPE_CHECKING:
    from archgym.envs.gpu.measuring.problem import Launch, Problem
    from archgym.envs.gpu.measuring.timing import Meter

_OPTIONS = ("passes", "power")


class TritonSimulator:
    """Measures designs of one shape.

    Args:
        shape: what is computed.
        passes: times that each design is measured.
        power: whether power is measured too, which takes 0.4 s a design.

    Attributes:
        name: ``triton``.
        version: of the GPU, its driver, torch and triton.
        metric_names: time and spread; power and energy with ``power``.

    Raises:
        InvalidValueError: if an option is not possible.
        MissingDependencyError: if torch, triton or pynvml is missing, or there is no GPU.
    """

    name = "triton"

    def __init__(self, shape: Shape, *, passes: int = 3, power: bool = False) -> None:
        if type(passes) is not int or not 1 <= passes <= 100:
            raise InvalidValueError(f"simulator_options: passes={passes!r} must be from 1 to 100")
        if not isinstance(power, bool):
            raise InvalidValueError(f"simulator_options: power={power!r} must be true or false")
        self._passes, self._power = passes, power
        self.version = _versions()
        energies = ("power_w", "energy_mj") if power else ()
        self.metric_names: tuple[str, ...] = ("time_us", "time_us_spread_share", *energies)
        self._shape = shape
        self._made: tuple[Problem, Meter] | None = None

    @classmethod
    def with_options(cls, options: Mapping[str, Any], shape: Shape) -> TritonSimulator:
        """The simulator with options that a user gave.

        Raises:
            UnknownNameError: for an option that does not exist.
            InvalidValueError, MissingDependencyError: as the class.
        """
        for option in options:
            if option not in _OPTIONS:
                raise UnknownNameError("option", option, _OPTIONS, "simulator_options")
        return cls(shape, **options)

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Metrics of each design, or why there are none."""
        began = time.perf_counter()
        results: dict[int, SimulationResult] = {}
        compiled: dict[int, Mapping[str, int]] = {}
        with self._turn():
            problem, _ = self._ready()
        for index, design in enumerate(designs):
            try:
                with _reasons():
                    problem.warm(design)
                compiled[index] = design
            except SimulationError as error:
                results[index] = error
        with self._turn():
            results |= self._measured(compiled)
        each = (time.perf_counter() - began) / max(1, len(results))
        return [(results[index], each) for index in range(len(results))]

    def _measured(self, designs: Mapping[int, Mapping[str, int]]) -> dict[int, SimulationResult]:
        problem, meter = self._ready()
        results: dict[int, SimulationResult] = {}
        running: dict[int, tuple[Launch, list[float]]] = {}
        for index, design in designs.items():
            try:
                running[index] = (self._checked(problem, design), [])
            except SimulationError as error:
                results[index] = error
        for _ in range(self._passes):
            for launch, times in running.values():
                guess = times[-1] if times else None
                times.append(meter.timed(launch, guess).time_us)
        for index, (launch, times) in running.items():
            results[index] = self._metrics(meter, launch, times)
        return results

    def _turn(self) -> contextlib.AbstractContextManager[None]:
        import torch

        from archgym.envs.gpu.measuring.turn import turn

        return turn(str(torch.cuda.get_device_properties(0).uuid))

    def _ready(self) -> tuple[Problem, Meter]:
        if self._made is None:
            from archgym.envs.gpu.measuring.problem import Problem
            from archgym.envs.gpu.measuring.timing import Meter

            self._made = Problem(self._shape), Meter(sensors=self._power)
        return self._made

    @staticmethod
    def _checked(problem: Problem, design: Mapping[str, int]) -> Launch:
        launch = problem.launch(design)
        problem.poison()
        with _reasons():
            launch()
            error = problem.error()
        if not error <= problem.tolerance:
            raise SimulationError(
                f"wrong result: relative error {error:.2g}, allowed {problem.tolerance:g}"
            )
        return launch

    def _metrics(self, meter: Meter, launch: Launch, times: list[float]) -> dict[str, float]:
        middle = statistics.median(times)
        spread = statistics.pstdev(times) / middle
        found = {"time_us": middle, "time_us_spread_share": spread}
        if self._power:
            power, busy_us, _ = meter.power(launch, middle)
            found |= {"power_w": power, "energy_mj": power * busy_us / 1e3}
        return found


@contextlib.contextmanager
def _reasons() -> Iterator[None]:
    """Makes a failed design of what the compiler and the driver raise, which is of many kinds."""
    try:
        yield
    except Exception as failure:
        text = f"{type(failure).__name__}: {str(failure).strip()[:200]}"
        reason = "shared memory: " if "OutOfResources" in text and "shared" in text else ""
        raise SimulationError(reason + text) from failure


def _versions() -> str:
    try:
        import pynvml  # noqa: F401
        import torch
        import triton
    except ImportError as error:
        raise MissingDependencyError(
            f"simulator 'triton' needs {error.name}: pip install torch triton nvidia-ml-py, on a "
            "machine with an NVIDIA GPU; simulator='tabular:PATH' needs none of them"
        ) from None
    if not torch.cuda.is_available():
        raise MissingDependencyError(
            "simulator 'triton' needs a GPU that torch can use, and there is none: "
            "torch.cuda.is_available() is False"
        )
    gpu = torch.cuda.get_device_name(0)
    return f"{gpu}, torch {torch.__version__}, triton {triton.__version__}"
