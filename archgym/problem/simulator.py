"""The protocol of a simulator, which turns designs into metrics."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from archgym.errors import (
    ArchgymError,
    InvalidValueError,
    NotCoveredError,
    SimulationError,
    StoppedEarly,
)
from archgym.problem.fidelity import Fidelity
from archgym.reading.texts import text_of
from archgym.space import Designs

SimulationResult = (
    Mapping[str, float] | SimulationError | NotCoveredError | TimeoutError | StoppedEarly
)
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

    def simulate(self, designs: Designs) -> Sequence[tuple[SimulationResult, float]]:
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

    def simulate_at(
        self, designs: Designs, fidelity: float
    ) -> Sequence[tuple[SimulationResult, float]]:
        """As :meth:`simulate`, at one of :attr:`fidelities`."""
        ...


def identity(simulator: Simulator) -> dict[str, str]:
    """Name and version of a simulator, under which its results are recorded.

    Raises:
        InvalidValueError: if one of them is no text.
    """
    found: dict[str, str] = {}
    for field in ("name", "version"):
        value = getattr(simulator, field, None)
        if not isinstance(value, str):
            raise InvalidValueError(
                f"the {field} of simulator {type(simulator).__name__} is recorded with its "
                f"results and must be a text, such as '1', not {value!r:.80}"
            )
        found[field] = value
    return found


class _OneByOne(Protocol):
    def simulate(self, design: dict[str, object]) -> Mapping[str, float]: ...


def simulate_each(simulator: _OneByOne, designs: Designs) -> list[tuple[SimulationResult, float]]:
    """Calls ``simulator.simulate(design)`` for each design, and times it.

    An error of the simulator, whatever its kind, fails that design and no other; only an
    :class:`~archgym.errors.ArchgymError`, such as a missing program, and Ctrl-C go through.
    """
    results: list[tuple[SimulationResult, float]] = []
    for design in designs:
        start = time.perf_counter()
        result: SimulationResult
        try:
            result = simulator.simulate(design)
        except (SimulationError, NotCoveredError, TimeoutError, StoppedEarly) as error:
            result = error
        except ArchgymError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # such as SystemExit, when a library ends the program
            result = SimulationError(f"{type(error).__name__}: {text_of(error)}")
            result.__cause__ = error
        results.append((result, time.perf_counter() - start))
    return results
