"""What turns designs into metrics."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from archgym.errors import ArchgymError, InvalidValueError, NotCoveredError, SimulationError
from archgym.evaluation.outcome import STATUSES
from archgym.problem.fidelity import Fidelity
from archgym.problem.metrics import Metric
from archgym.space import Designs

__all__ = [
    "MultiFidelitySimulator",
    "Simulation",
    "Simulator",
    "expect_pairs",
    "read_result",
    "simulate_each",
]

Simulation = Mapping[str, float] | SimulationError | NotCoveredError | TimeoutError
"""Metrics of one design, or why there are none."""


@runtime_checkable
class Simulator(Protocol):
    """Designs in, metrics out.

    Attributes:
        name: short name, for example ``embedded``.
        version: changes whenever the same design may give other metrics.
        metric_names: the metrics that it gives; others are null in the dataset.
    """

    name: str
    version: str
    metric_names: tuple[str, ...]

    def simulate(self, designs: Designs) -> Sequence[tuple[Simulation, float]]:
        """One result a design, with the seconds that it took.

        A design that fails, is not covered or takes too long gives a
        :class:`~archgym.errors.SimulationError`, a :class:`~archgym.errors.NotCoveredError` or
        a :class:`TimeoutError` in its place; the others are not touched by it.
        """
        ...


@runtime_checkable
class MultiFidelitySimulator(Simulator, Protocol):
    """A simulator that can also run a part of the full simulation, for a part of its cost.

    Attributes:
        fidelities: ascending, the last one is the full simulation.
    """

    fidelities: tuple[Fidelity, ...]

    def simulate_at(self, designs: Designs, fidelity: float) -> Sequence[tuple[Simulation, float]]:
        """As :meth:`simulate`, at one of :attr:`fidelities`."""
        ...


class _OneByOne(Protocol):
    def simulate(self, design: dict[str, object]) -> Mapping[str, float]: ...


def simulate_each(simulator: _OneByOne, designs: Designs) -> list[tuple[Simulation, float]]:
    """Calls ``simulator.simulate(design)`` for each design, and times it.

    An error of the simulator, whatever its kind, fails that design and no other; only an
    :class:`~archgym.errors.ArchgymError`, such as a missing program, goes through.
    """
    results: list[tuple[Simulation, float]] = []
    for design in designs:
        start = time.perf_counter()
        result: Simulation
        try:
            result = simulator.simulate(design)
        except (SimulationError, NotCoveredError, TimeoutError) as error:
            result = error
        except ArchgymError:
            raise
        except Exception as error:
            result = SimulationError(f"{type(error).__name__}: {error}")
            result.__cause__ = error
        results.append((result, time.perf_counter() - start))
    return results


_OK, _ILLEGAL, _FAILED, _TIMEOUT = range(len(STATUSES))


def expect_pairs(results: Sequence[object]) -> None:
    """What a batch gives is results with their seconds.

    Raises:
        InvalidValueError: if it is the metrics of each design alone.
    """
    if results and isinstance(results[0], Mapping):
        raise InvalidValueError(
            "the simulator gave metrics alone, where a batch gives pairs of metrics and seconds; "
            "archgym.problem.simulator.simulate_each makes them"
        )


def read_result(
    result: object, metrics: Sequence[Metric], given: Sequence[Metric]
) -> tuple[int, list[float], str]:
    """What a simulation came to.

    Args:
        result: from a simulator.
        metrics: all metrics of the environment.
        given: those that the simulator gives.

    Returns:
        Index into ``STATUSES``, the value of each of ``metrics`` (NaN for one that is not
        given, and everywhere unless the status is ``ok``), and the reason of a failure.
    """
    if isinstance(result, Mapping):
        reason = ""
        values: list[float] = []
        for metric in metrics:
            value = result.get(metric.name)
            if type(value) is float and math.isfinite(value) and (value >= 0 or metric.signed):
                values.append(value)
                continue
            if value is None:
                if metric in given:
                    others = [str(name) for name in result if name not in {m.name for m in metrics}]
                    instead = f"; it gave {', '.join(sorted(others)[:8])}" if others else ""
                    reason = f"the simulator gave no {metric.name}{instead}"
                    break
                value = math.nan
            elif not _is_number(value):
                reason = f"{metric.name} is {value!r}, not a number"
                break
            elif not math.isfinite(value):
                reason = f"{metric.name} is {value}, not a finite number"
                break
            elif value < 0 and not metric.signed:
                reason = f"{metric.name} is {value:g}, below zero"
                break
            values.append(float(value))
        else:
            return _OK, values, ""
        return _FAILED, [math.nan] * len(metrics), reason
    nothing = [math.nan] * len(metrics)
    if isinstance(result, NotCoveredError):
        return _ILLEGAL, nothing, str(result) or "the simulator does not cover this design"
    if isinstance(result, TimeoutError):
        return _TIMEOUT, nothing, str(result) or "the simulator took too long"
    if isinstance(result, SimulationError):
        return _FAILED, nothing, str(result) or "the simulator failed"
    return _FAILED, nothing, f"the simulator gave {result!r}, not a mapping of metrics"


def _is_number(value: object) -> bool:
    return isinstance(value, float | int | np.integer | np.floating)
