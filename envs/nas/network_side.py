"""The network side of a co-design: architectures in; accuracies, layers and metrics out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.accelerator.workload.layer import Network
from archgym.envs.nas.accuracy.source import AccuracySource
from archgym.envs.nas.metrics import accuracy_metrics, hardware_metrics, spec_metrics
from archgym.envs.nas.reward import Specs, nasaic_reward, spec_penalty, weighted_accuracy
from archgym.envs.nas.space import Player, name_networks
from archgym.envs.nas.tasks import family_of
from archgym.envs.nas.workloads import Workload
from archgym.errors import NotCoveredError, SimulationError
from archgym.problem.fidelity import Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.simulator import SimulationResult

__all__ = ["NetworkSide", "training_fidelities"]


def training_fidelities(epochs: Sequence[int]) -> tuple[Fidelity, ...]:
    """One fidelity for each length of training; its cost is its share of the longest one.

    Args:
        epochs: lengths of training, ascending.
    """
    last = epochs[-1]
    return tuple(Fidelity(round(n / last, 3), n / last, f"{n} of {last} epochs") for n in epochs)


class NetworkSide:
    """Gives accuracies and layers of the networks of a workload, and the metrics of a design.

    Each distinct network is looked up, or trained, once; so are its layers.

    Args:
        workload: tasks, weights and specifications.
        source: where accuracies come from.

    Attributes:
        workload: the workload.
        source: where accuracies come from.
        networks: name and task of each network.
        fidelities: one for each length of training that the source knows.
        metrics: the metrics of a design; first the accuracy of each network, then the weighted one.
    """

    def __init__(self, workload: Workload, source: AccuracySource) -> None:
        self.workload = workload
        self.source = source
        self.networks = name_networks(workload.tasks)
        self.fidelities = training_fidelities(source.epochs)
        limited = workload.specs is not None
        self.metrics: tuple[Metric, ...] = (
            *accuracy_metrics(self.networks, source.name),
            *hardware_metrics(),
            *(spec_metrics(reward=source.name != "proxy") if limited else ()),
        )
        self._epochs = {
            fidelity.value: epochs
            for fidelity, epochs in zip(self.fidelities, source.epochs, strict=True)
        }
        self._accuracies: dict[tuple[str, str, int], float] = {}
        self._layers: dict[tuple[str, str], Network] = {}

    @property
    def weighted_metric(self) -> str:
        """Name of the metric that sums up the accuracies."""
        return self.metrics[len(self.networks)].name

    def accuracies(
        self, architectures: Sequence[Sequence[Mapping[str, Any]]], fidelity: float = 1.0
    ) -> NDArray[np.float64]:
        """Accuracy of each network of each design, percent, NaN if it is not known.

        Shape (n_designs, n_networks).

        Args:
            architectures: of each design, in the order of :attr:`networks`.
            fidelity: share of the epochs.
        """
        epochs = self._epochs[fidelity]
        found = np.empty((len(architectures), len(self.networks)))
        for column, player in enumerate(self.networks):
            task, key_of = player.task, family_of(player.task).key
            keys = [(task.name, key_of(task, row[column]), epochs) for row in architectures]
            unknown = {
                key: row[column]
                for key, row in zip(keys, architectures, strict=True)
                if key not in self._accuracies
            }
            if unknown:
                values = self.source.accuracies(task, list(unknown.values()), epochs)
                self._accuracies.update(zip(unknown, values.tolist(), strict=True))
            found[:, column] = [self._accuracies[key] for key in keys]
        return found

    def layers(self, architectures: Sequence[Mapping[str, Any]]) -> tuple[Network, ...]:
        """The layers of each network of a design."""
        found = []
        for player, architecture in zip(self.networks, architectures, strict=True):
            family = family_of(player.task)
            key = (player.task.name, family.key(player.task, architecture))
            if key not in self._layers:
                self._layers[key] = family.layers(player.task, architecture)
            found.append(self._layers[key])
        return tuple(found)

    def result(
        self,
        architectures: Sequence[Mapping[str, Any]],
        accuracies: Sequence[float],
        hardware: Mapping[str, float],
    ) -> SimulationResult:
        """The metrics of one design, or why it has none.

        Args:
            architectures: of its networks.
            accuracies: of its networks, percent or score.
            hardware: the metrics that the simulator gives.
        """
        for player, architecture, accuracy in zip(
            self.networks, architectures, accuracies, strict=True
        ):
            if math.isnan(accuracy):
                return self._without_accuracy(player, architecture)
        names = [metric.name for metric in self.metrics[: len(self.networks) + 1]]
        weighted = weighted_accuracy(accuracies, self.workload.weights)
        found = {**dict(zip(names, [*accuracies, weighted], strict=True)), **hardware}
        if "accuracy_percent" in found:
            found["accuracy_synthetic_share"] = float(self.source.synthetic)
        specs, bounds = self.workload.specs, self.workload.bounds
        if specs is not None and bounds is not None and "area_um2" in hardware:
            here = Specs(*(hardware[name] for name in vars(specs)))
            found["spec_penalty_rate"] = spec_penalty(here, specs, bounds)
            if "accuracy_percent" in found:
                found["nasaic_reward_rate"] = nasaic_reward(weighted, found["spec_penalty_rate"])
        return found

    def _without_accuracy(
        self, player: Player, architecture: Mapping[str, Any]
    ) -> SimulationResult:
        """Why a network has no accuracy: training failed, which the budget counts, or unknown."""
        failures: Mapping[tuple[str, str, int], str] = getattr(self.source, "failures", {})
        sought = (player.task.name, family_of(player.task).key(player.task, architecture))
        for (task, key, seed), why in failures.items():
            if (task, key) == sought:
                return SimulationError(f"training of {player.name} (seed {seed}): {why}")
        return NotCoveredError(f"{self.source.name}: no accuracy of this {player.name}")
