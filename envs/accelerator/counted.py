"""The accelerator environment with accesses of the global buffer among its metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from archgym.envs.accelerator.environment import AcceleratorEnvironment
from archgym.errors import InvalidValueError
from archgym.problem.metrics import Metric
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult
from archgym.space import Designs

__all__ = ["COUNTS", "CountedAccelerator"]

COUNTS = {
    "buffer_input_reads_count": "buffer_input_words",
    "buffer_weight_reads_count": "buffer_weight_words",
    "buffer_output_writes_count": "buffer_output_words",
}
"""Metrics of accesses, and the column of the cost model that each is."""


class CountedAccelerator(AcceleratorEnvironment):
    """Also counts the words that the array reads from the global buffer and writes to it.

    ``archgym validate archgym.envs.accelerator.counted:CountedAccelerator`` compares the counts
    with SCALE-Sim's. Not for space ``per_layer``.

    Args:
        **arguments: those of :class:`AcceleratorEnvironment`.

    Raises:
        InvalidValueError: for space ``per_layer``.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (
        *AcceleratorEnvironment.metrics,
        Metric("buffer_input_reads_count", "", "minimize", "inputs read from the buffer, words"),
        Metric("buffer_weight_reads_count", "", "minimize", "weights read from the buffer, words"),
        Metric("buffer_output_writes_count", "", "minimize", "words that the array writes to it"),
    )

    def __init__(self, **arguments: Any) -> None:
        if arguments.get("space") == "per_layer":
            raise InvalidValueError("space 'per_layer' has a buffer for every layer: no counts")
        super().__init__(**arguments)

    def simulate_batch(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Runs the network on the designs, and counts."""
        results = super().simulate_batch(designs)
        costs = self._costs(list(designs))
        columns = {name: costs.total(column) for name, column in COUNTS.items()}
        return [
            (
                {**found, **{name: float(column[i]) for name, column in columns.items()}}
                if isinstance(found, dict)
                else found,
                seconds,
            )
            for i, (found, seconds) in enumerate(results)
        ]

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """As those of the environment, with the counts."""
        from archgym.envs.accelerator.validation.reference import read_reference, shipped_references

        if table is None:
            return shipped_references(counts=True)
        return read_reference(table, counts=True)
