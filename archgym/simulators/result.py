"""Reading what a simulator gave for a design: metrics are checked, errors become a status."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from archgym.errors import InvalidValueError, NotCoveredError, SimulationError, StoppedEarly
from archgym.problem import Metric, Status
from archgym.reading.texts import text_of

_OK = Status.OK  # looked up once, which is faster
_PAIRS = (tuple, list)
_NUMBERS = (float, int, np.integer, np.floating)


def check_results(results: Sequence[object], simulator: str, designs: int) -> None:
    """Checks that a simulator gave a pair of a result and its seconds for each design.

    Args:
        results: what it gave.
        simulator: its name, for the message.
        designs: number of designs that it was given.

    Raises:
        InvalidValueError: if it gave another number of results, or something else than pairs.
    """
    if not isinstance(results, Sequence) or isinstance(results, str):
        raise InvalidValueError(
            f"simulator {simulator!r} gave {text_of(results, code=True):.80}, where a batch gives "
            "a list of pairs of metrics and seconds"
        )
    if len(results) != designs:
        raise InvalidValueError(
            f"simulator {simulator!r} gave {len(results)} results for {designs} designs"
        )
    if not results or _is_pair(results[0]):  # what is wrong is wrong in all of them
        return
    if isinstance(results[0], Mapping):
        raise InvalidValueError(
            "the simulator gave metrics alone, where a batch gives pairs of metrics and seconds; "
            "archgym.problem.simulator.simulate_each makes them"
        )
    raise InvalidValueError(
        f"simulator {simulator!r} gave {text_of(results[0], code=True):.80} for a design, "
        "where a batch gives pairs of metrics and seconds"
    )


def _is_pair(result: object) -> bool:
    return isinstance(result, _PAIRS) and len(result) == 2 and isinstance(result[1], _NUMBERS)


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
        given, and everywhere unless the status is ``ok``; predicted ones if it is ``stopped``),
        and the reason of a failure.
    """
    if type(result) is dict or isinstance(result, Mapping):  # the first is the faster question
        try:
            values, reason = _read_metrics(result, metrics, given)
        except Exception as error:  # of a mapping or a number with methods of its own
            reason = f"the result cannot be read: {type(error).__name__}"
        if not reason:
            return _OK, values, ""
        return Status.FAILED, [math.nan] * len(metrics), reason
    nothing = [math.nan] * len(metrics)
    if isinstance(result, StoppedEarly):
        predicted = result.record["predicted"]
        return Status.STOPPED, [predicted.get(m.name, math.nan) for m in metrics], text_of(result)
    if isinstance(result, NotCoveredError):
        reason = text_of(result) or "the simulator does not cover this design"
        return Status.ILLEGAL, nothing, reason
    if isinstance(result, TimeoutError):
        return Status.TIMEOUT, nothing, text_of(result) or "the simulator took too long"
    if isinstance(result, SimulationError):
        return Status.FAILED, nothing, text_of(result) or "the simulator failed"
    shown = text_of(result, code=True)
    return Status.FAILED, nothing, f"the simulator gave {shown}, not a mapping of metrics"


def _read_metrics(
    result: Mapping[str, object], metrics: Sequence[Metric], given: Sequence[str]
) -> tuple[list[float], str]:
    """The value of each metric; or why the design failed."""
    values: list[float] = []
    for metric in metrics:
        value = result.get(metric.name)
        if type(value) is float and math.isfinite(value) and (value >= 0 or metric.signed):
            values.append(value)
            continue
        if value is None:
            if metric.name in given:
                others = [text_of(name) for name in result if name not in {m.name for m in metrics}]
                instead = f"; it gave {', '.join(sorted(others)[:8])}" if others else ""
                return values, f"the simulator gave no {metric.name}{instead}"
            values.append(math.nan)
            continue
        if not isinstance(value, float | int | np.integer | np.floating):
            return values, f"{metric.name} is {text_of(value, code=True)}, not a number"
        try:
            number = float(value)
        except OverflowError:  # an integer of hundreds of digits
            number = math.inf
        if not math.isfinite(number):
            return values, f"{metric.name} is {text_of(value):.80}, not a finite number"
        if number < 0 and not metric.signed:
            return values, f"{metric.name} is {number:g}, below zero"
        values.append(number)
    return values, ""
