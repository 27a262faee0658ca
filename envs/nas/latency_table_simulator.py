"""The simulator ``latency_table``: the latency of a network is the sum of its parts' latencies."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from archgym.envs.nas.families import Architecture
from archgym.envs.nas.hardware.chip import Chip, clock_mhz
from archgym.envs.nas.hardware.latency_table import LatencyTable, make_table, part_keys
from archgym.envs.nas.hardware.layer_costs import LayerCosts
from archgym.envs.nas.network_side import NetworkSide
from archgym.errors import InvalidValueError, SimulationError
from archgym.problem.simulator import SimulationResult
from archgym.space import Designs

__all__ = ["LatencyTableSimulator"]

_NS_PER_MS: Final = 1e6


class LatencyTableSimulator:
    """Gives accuracies, and latencies as the sum over a table's lines.

    It gives no energy and no area: limits on them are refused.

    Args:
        network_side: accuracies of the networks.
        architectures: gives the architectures of a design's networks.
        tables: a table for each network.
        clock_mhz: of the device, by which latencies become cycles, MHz.

    Attributes:
        name: ``latency_table``.
        version: changes with what the simulator computes.
        metric_names: accuracies and latencies.
    """

    name = "latency_table"
    version = "1"

    def __init__(
        self,
        network_side: NetworkSide,
        architectures: Callable[[Mapping[str, Any]], Sequence[Architecture]],
        tables: Sequence[LatencyTable],
        clock_mhz: float,
    ) -> None:
        self._network_side = network_side
        self._architectures = architectures
        self._tables = tables
        self._cycles_per_ms = clock_mhz * 1e3
        names = [metric.name for metric in network_side.metrics]
        synthetic = [name for name in names if name == "accuracy_synthetic_share"]
        accuracies = names[: len(network_side.networks) + 1]
        self.metric_names = (*accuracies, *synthetic, "latency_cycles", "latency_ns")

    @classmethod
    def with_options(
        cls,
        options: Mapping[str, Any],
        network_side: NetworkSide,
        architectures: Callable[[Mapping[str, Any]], Sequence[Architecture]],
        device: Chip,
        *,
        device_name: str,
        costs: LayerCosts,
    ) -> LatencyTableSimulator:
        """The simulator with options that a user gave.

        Args:
            options: the environment's ``simulator_options``: ``table``, a file; by default the
                table that our cost model gives for the device.
            network_side: accuracies of the networks.
            architectures: gives the architectures of a design's networks.
            device: the chip that runs the networks.
            device_name: what the generated table is called.
            costs: the mode and technology of the cost model.

        Raises:
            InvalidValueError: for an unknown option, or if the networks have no such table.
        """
        for option in options:
            if option != "table":
                raise InvalidValueError(
                    f"simulator_options: {option!r} is unknown; allowed is table"
                )
        if options.get("table") is None:
            tables = [
                make_table(
                    player.task, device, device_name, mode=costs.mode, technology=costs.technology
                )
                for player in network_side.networks
            ]
        else:
            tables = [LatencyTable.read(Path(options["table"]))] * len(network_side.networks)
        clock = clock_mhz(costs.mode, costs.technology)
        return cls(network_side, architectures, tables, clock)

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Accuracies, and the sum over the parts of all networks, one after another."""
        start = time.perf_counter()
        rows = [self._architectures(design) for design in designs]
        accuracies = self._network_side.accuracies(rows)
        results: list[SimulationResult] = []
        for row, found in zip(rows, accuracies.tolist(), strict=True):
            try:
                total = math.fsum(
                    table.latency_ms(part_keys(player.task, architecture))
                    for table, player, architecture in zip(
                        self._tables, self._network_side.networks, row, strict=True
                    )
                )
            except SimulationError as error:
                results.append(error)
                continue
            hardware = {
                "latency_cycles": total * self._cycles_per_ms,
                "latency_ns": total * _NS_PER_MS,
            }
            results.append(self._network_side.result(row, found, hardware))
        each = (time.perf_counter() - start) / max(1, len(results))
        return [(result, each) for result in results]
