"""The simulator ``latency_table``: the latency of a network from those of its parts.

It is their sum. Backbones on a measured device have a predictor that corrects the sum.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from archgym.envs.nas.backbone.measured import DEVICES
from archgym.envs.nas.families import Architecture, Task
from archgym.envs.nas.hardware.chip import Chip, clock_mhz
from archgym.envs.nas.hardware.latency_table import LatencyTable, make_table, part_keys
from archgym.envs.nas.hardware.layer_costs import LayerCosts
from archgym.envs.nas.hardware.measured_latency import ESTIMATES, MeasuredLatency
from archgym.envs.nas.network_side import NetworkSide
from archgym.errors import InvalidValueError, SimulationError, UnknownNameError
from archgym.problem.simulator import SimulationResult
from archgym.space import Designs

__all__ = ["LatencyTableSimulator"]

_NS_PER_MS: Final = 1e6
_OPTIONS: Final = ("table", "estimate")


class LatencyTableSimulator:
    """Gives accuracies, and latencies as the sum over a table's lines.

    It gives no energy and no area: limits on them are refused.

    Args:
        network_side: accuracies of the networks.
        architectures: gives the architectures of a design's networks.
        latencies: of each network: gives ms for its task and an architecture.
        clock_mhz: of the device, by which latencies become cycles, MHz; ``None`` if it was
            measured, and cycles are not known.

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
        latencies: Sequence[Callable[[Task, Architecture], float]],
        clock_mhz: float | None,
    ) -> None:
        self._network_side = network_side
        self._architectures = architectures
        self._latencies = latencies
        self._cycles_per_ms = None if clock_mhz is None else clock_mhz * 1e3
        names = [metric.name for metric in network_side.metrics]
        synthetic = [name for name in names if name == "accuracy_synthetic_share"]
        accuracies = names[: len(network_side.networks) + 1]
        cycles = () if clock_mhz is None else ("latency_cycles",)
        self.metric_names = (*accuracies, *synthetic, *cycles, "latency_ns")

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
            options: the environment's ``simulator_options``: ``table``, a file or a measured
                device; by default the table that our cost model gives for the device. For a
                measured device also ``estimate``.
            network_side: accuracies of the networks.
            architectures: gives the architectures of a design's networks.
            device: the chip that runs the networks.
            device_name: what the generated table is called.
            costs: the mode and technology of the cost model.

        Raises:
            UnknownNameError: for an unknown option or estimate.
            InvalidValueError: for an option that is not possible, or if the networks have no such
                table.
        """
        for option in options:
            if option not in _OPTIONS:
                raise UnknownNameError("option of simulator 'latency_table'", str(option), _OPTIONS)
        table = options.get("table")
        if table in DEVICES:
            measured = MeasuredLatency(table, options.get("estimate") or next(iter(ESTIMATES)))
            for player in network_side.networks:
                measured.check(player.task)
            found = [measured.latency_ms] * len(network_side.networks)
            return cls(network_side, architectures, found, None)
        if options.get("estimate") is not None:
            raise InvalidValueError(
                "simulator_options: estimate is for tables of measured devices: "
                f"{', '.join(DEVICES)}"
            )
        if table is None:
            tables = [
                make_table(
                    player.task, device, device_name, mode=costs.mode, technology=costs.technology
                )
                for player in network_side.networks
            ]
        else:
            tables = [LatencyTable.read(Path(table))] * len(network_side.networks)
        clock = clock_mhz(costs.mode, costs.technology)
        return cls(network_side, architectures, [_summed(each) for each in tables], clock)

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Accuracies, and the sum over the parts of all networks, one after another."""
        start = time.perf_counter()
        rows = [self._architectures(design) for design in designs]
        accuracies = self._network_side.accuracies(rows)
        results: list[SimulationResult] = []
        for row, found in zip(rows, accuracies.tolist(), strict=True):
            try:
                total = math.fsum(
                    latency(player.task, architecture)
                    for latency, player, architecture in zip(
                        self._latencies, self._network_side.networks, row, strict=True
                    )
                )
            except SimulationError as error:
                results.append(error)
                continue
            hardware = {"latency_ns": total * _NS_PER_MS}
            if self._cycles_per_ms is not None:
                hardware["latency_cycles"] = total * self._cycles_per_ms
            results.append(self._network_side.result(row, found, hardware))
        each = (time.perf_counter() - start) / max(1, len(results))
        return [(result, each) for result in results]


def _summed(table: LatencyTable) -> Callable[[Task, Architecture], float]:
    return lambda task, architecture: table.latency_ms(part_keys(task, architecture))
