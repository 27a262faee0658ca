"""What a simulated circuit gave: outputs and cycles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archgym.envs.fpga.hardware.top import Built, Schedule
from archgym.envs.fpga.network.integer import Integers, QuantisedNetwork
from archgym.errors import SimulationError

__all__ = ["RESET", "Observed", "input_words", "last_cycle", "observed_of", "sent_at"]

RESET = 16
"""Cycles for which a circuit is reset: more than any of its pipelines has registers."""


@dataclass(frozen=True, eq=False)
class Observed:
    """What a circuit gave.

    Attributes:
        outputs: shape (samples, rows, columns, outputs).
        latency: cycles from the first position of a sample to its last output, both included,
            for each sample.
    """

    outputs: Integers
    latency: Integers


def sent_at(schedule: Schedule, samples: int) -> list[int]:
    """The cycle of each transfer: samples follow each other as closely as they may."""
    return [
        RESET + sample * schedule.sample_interval + position * schedule.position_interval
        for sample in range(samples)
        for position in range(schedule.positions)
    ]


def last_cycle(schedule: Schedule, samples: int) -> int:
    """A cycle in which all is given."""
    return RESET + (samples - 1) * schedule.sample_interval + schedule.latency + 2


def input_words(made: Built, inputs: Integers) -> tuple[list[int], int]:
    """The transfers of samples, and their bits; the first channel lowest."""
    width = made.pins - made.output_bits - 4
    transfers = inputs.reshape(len(inputs) * made.schedule.positions, -1)
    bits = width // transfers.shape[1]
    mask = (1 << bits) - 1
    words = [
        sum((int(value) & mask) << (place * bits) for place, value in enumerate(row))
        for row in transfers.tolist()
    ]
    return words, width


def observed_of(
    network: QuantisedNetwork, made: Built, given: list[tuple[int, int]], samples: int
) -> Observed:
    """Reads cycles and words of outputs.

    Raises:
        SimulationError: if there are not as many outputs as expected.
    """
    rows, columns = network.layers[-1].layer.positions
    wanted = samples * rows * columns * made.schedule.outputs
    if len(given) != wanted:
        raise SimulationError(f"the circuit gave {len(given)} outputs rather than {wanted}")
    sign = 1 << (made.output_bits - 1)
    values = np.array([word - 2 * (word & sign) for _, word in given], dtype=np.int64)
    ends = np.array([cycle for cycle, _ in given]).reshape(samples, -1)[:, -1]
    starts = RESET + np.arange(samples) * made.schedule.sample_interval
    return Observed(values.reshape(samples, rows, columns, -1), ends - starts + 1)
