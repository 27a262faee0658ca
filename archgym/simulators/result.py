"""Reading what a simulator gave for a design: metrics are checked, errors become a status."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from archgym.errors import InvalidValueError, NotCoveredError, SimulationError
from archgym.problem import Metric, Status

_OK = Status.OK  # looked up once, which is faster


def check_results(results: Sequence[object], simulator: str, designs: int) -> None:
    """Checks that a simulator gave a pair of a result and its seconds for each design.

    Args:
        results: what it gave.
        simulator: its name, for the message.
        designs: number of designs that it was given.

    Raises:
        InvalidValueError: if it gave another number of results, or the metrics of each alone.
    """
    if len(results) != designs:
        raise InvalidValueError(
            f"simulator {simulator!r} gave {len(results)} results for {designs} designs"
        )
    if results and isinstance(results[0], Mapping):
        raise InvalidValueError(
            "the simulator gave metrics alone, where a batch gives pairs of metrics and seconds; "
            "archgym.problem.simulator.simulate_each makes them"
        )


def read_result(
    result: object, metrics: Sequence[Metric], given: Sequence[str]
) -> tuple[Status, list[float], str]:
    """The status and the metrics of a design, from the result of its simulation.

    Args:
        result: from a simulator.
        metrics: all metrics of the environment.
        given: names of those that the simulator gives.

    Returns:
        The status, the value of each of ``metrics`` (NaN for one that is not
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
                if metric.name in given:
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
        return Status.FAILED, [math.nan] * len(metrics), reason
    nothing = [math.nan] * len(metrics)
    if isinstance(result, NotCoveredError):
        return Status.ILLEGAL, nothing, str(result) or "the simulator does not cover this design"
    if isinstance(result, TimeoutError):
        return Status.TIMEOUT, nothing, str(result) or "the simulator took too long"
    if isinstance(result, SimulationError):
        return Status.FAILED, nothing, str(result) or "the simulator failed"
    return Status.FAILED, nothing, f"the simulator gave {result!r}, not a mapping of metrics"


def _is_number(value: object) -> bool:
    return isinstance(value, float | int | np.integer | np.floating)
