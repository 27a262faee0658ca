"""The baseline design, with which others are compared: its place in a space, and its metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import (
    DesignError,
    InvalidValueError,
    SimulationError,
    UnknownNameError,
    place_of,
)
from archgym.problem import Metric, Status
from archgym.problem.simulator import MultiFidelitySimulator, Simulator
from archgym.simulators.result import check_results, read_result
from archgym.space import Designs, DesignSpace
from archgym.space.nearest import nearest_legal


def baseline_codes(
    space: DesignSpace, baseline: Mapping[str, Any], offered: Iterable[DesignSpace]
) -> tuple[int, ...]:
    """Codes of the baseline, with the fixed parameters at their values.

    Parameters that only other spaces have are left out; one that a fixed value, or the place of an
    excluded one, makes active takes its first level. An excluded value becomes the nearest one that
    is left (of an unordered parameter the first). Where all that makes the baseline illegal, the
    nearest legal design takes its place.

    Args:
        space: as it is searched.
        baseline: as the environment declares it.
        offered: every space of the environment.

    Raises:
        UnknownNameError, DesignError: if it is not a design of this space.
        InvalidValueError: if it is not legal, and no legal design is near.
    """
    elsewhere = {name for other in offered for name in other.names}
    known = {
        name: value for name, value in baseline.items() if name in space or name not in elsewhere
    }
    free = space.without_fixed()
    try:
        left = {name: _nearest_left(space, name, value) for name, value in known.items()}
        if left != known:  # another value may make others active
            left = {name: space[name].value(0) for name in space.names} | left
        known = left
        codes = [max(code, 0) for code in free.codes({**space.fixed, **known})]
    except (UnknownNameError, DesignError) as error:
        error.args = (f"the baseline design: {error}",)
        raise
    for name, value in space.fixed.items():
        codes[space.index(name)] = space[name].code(value)
    canonical = space.canonical_codes(codes)
    if (space.fixed or space.excluded) and space.illegal_reason(canonical):
        canonical = nearest_legal(space, np.array(codes, dtype=np.int64)) or canonical
    broken = space.illegal_reason(canonical)
    if broken:
        raise InvalidValueError(f"the baseline design is illegal: {broken}")
    return canonical


def _nearest_left(space: DesignSpace, name: str, value: Any) -> Any:
    """A value of the baseline; of an excluded one the nearest that is left, or the first."""
    if value not in space.excluded.get(name, ()):
        return value
    declared, left = space.declared[space.index(name)], space[name]
    if not declared.ordered:
        return left.value(0)
    wanted = declared.code(value)
    codes = [declared.code(left.value(code)) for code in range(left.size)]
    return declared.value(min(codes, key=lambda code: (abs(code - wanted), code)))


def simulated_metrics(
    baseline: Designs,
    simulator: Simulator,
    metrics: Sequence[Metric],
    retries: int = 0,
    fidelity: float = 1.0,
) -> NDArray[np.float64]:
    """Metrics of the baseline design, a batch of one, shape (n_metrics,).

    Args:
        baseline: the design.
        simulator: that simulates it.
        metrics: of the environment.
        retries: how often it is tried again where it fails or takes too long.
        fidelity: at which it is simulated, one of the simulator's; by default fully.

    Raises:
        SimulationError: if it cannot be simulated.
    """
    for _ in range(retries + 1):
        if fidelity == 1:
            results = simulator.simulate(baseline)
        else:
            assert isinstance(simulator, MultiFidelitySimulator)
            results = simulator.simulate_at(baseline, fidelity)
        check_results(results, simulator.name, 1)
        result, _ = results[0]
        status, values, reason = read_result(result, metrics, simulator.metric_names)
        if status == Status.OK:
            return np.array(values)
        if status == Status.ILLEGAL:  # it will not be covered the next time either
            break
    cause = result.__cause__ if isinstance(result, Exception) else None
    place = "" if cause is None else place_of(cause)
    raise SimulationError(f"the baseline design cannot be simulated: {reason}{place}")
