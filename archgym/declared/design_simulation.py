"""One design of a declared environment: on each workload, several times where results vary."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from archgym.declared.checkpoints import Checkpoints
from archgym.declared.load import Source
from archgym.declared.names import Names
from archgym.declared.plan import Plan
from archgym.declared.readings.partial import Look
from archgym.declared.run import Runner
from archgym.errors import ArchgymError, SimulationError, StoppedEarly
from archgym.problem.metrics import Metric
from archgym.problem.spread import SPREAD
from archgym.simulators.early_stopping import current_watch

__all__ = ["DesignSimulation"]


class DesignSimulation:
    """Simulates designs on the workloads that were chosen.

    Args:
        source: the declaration.
        plan: what is run.
        names: the values that commands may name.
        metrics: of the environment, with their spreads.
        runner: runs the program once.
        workloads: names of those that were chosen; none if the declaration has none.
        identity: what results depend on beside the design: the version, and the content of the
            workloads.
    """

    def __init__(
        self,
        source: Source,
        plan: Plan,
        names: Names,
        metrics: Sequence[Metric],
        runner: Runner,
        workloads: tuple[str, ...],
        identity: tuple[str, str],
    ) -> None:
        self._source, self._plan, self._names, self._metrics = source, plan, names, metrics
        self._runner, self._chosen, self._identity = runner, workloads, identity

    def simulate(self, design: Mapping[str, Any], fidelity: float) -> dict[str, float]:
        """The metrics of a design.

        Raises:
            ArchgymError, TimeoutError: as a run of the program ended.
        """
        declaration, watch = self._source.declaration, current_watch()
        part = next((one.values for one in declaration.fidelities if one.value == fidelity), {})
        if not self._chosen:
            look = watch.look if watch else None
            return self._repeated(design, {**part, "workload": ""}, look, fidelity)
        results: list[dict[str, float]] = []

        def look_at(share: float, metrics: Mapping[str, float]) -> None:
            assert watch is not None
            so_far = self._over_workloads([*results, metrics])
            watch.look((len(results) + share) / len(self._chosen), so_far)

        for name in self._chosen:
            entry = declaration.workloads[name]
            files = {key: str(self._source.folder / path) for key, path in entry.files.items()}
            others = {**part, **entry.values, **files, "workload": name}
            try:
                seen = look_at if watch else None
                results.append(self._repeated(design, others, seen, fidelity))
            except StoppedEarly:
                raise
            except (ArchgymError, TimeoutError) as error:
                if len(self._chosen) > 1:
                    error.args = (f"workload {name}: {error}",)
                raise
            if watch is not None and len(results) < len(self._chosen):
                watch.look(len(results) / len(self._chosen), self._over_workloads(results))
        return self._over_workloads(results)

    def _repeated(
        self,
        design: Mapping[str, Any],
        others: Mapping[str, Any],
        look: Look | None,
        fidelity: float,
    ) -> dict[str, float]:
        """Metrics of a design on one workload: medians, where it is run several times."""
        noise = self._source.declaration.noise
        values = self._names.values(design, others)
        if noise is None:
            kept = self._checkpoints(design, others["workload"], 0, fidelity)
            return self._runner.run({**values, "repeat": 0}, look, kept)
        runs: list[Mapping[str, float]] = []

        def look_at(share: float, metrics: Mapping[str, float]) -> None:
            assert look is not None
            look((len(runs) + share) / noise.repeats, self._medians([*runs, metrics]))

        for number in range(noise.repeats):
            kept = self._checkpoints(design, others["workload"], number, fidelity)
            own = {**values, "repeat": number}
            run = self._runner.run(own, None if look is None else look_at, kept)
            runs.append(run)
            if look is not None and len(runs) < noise.repeats:
                look(len(runs) / noise.repeats, self._medians(runs))
        return self._medians(runs)

    def _checkpoints(
        self, design: Mapping[str, Any], workload: str, repeat: int, fidelity: float
    ) -> Checkpoints | None:
        """What shorter runs of a design left, where the declaration has a checkpoint."""
        if self._plan.checkpoint is None:
            return None
        values = [one.value for one in self._source.declaration.fidelities]
        parts = [*self._identity, sorted(design.items()), workload, repeat]
        return Checkpoints(self._runner.folders(), parts, values, fidelity)

    def _medians(self, runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Metrics of several runs; those that a run lacks are left out."""
        found: dict[str, float] = {}
        for metric in self._metrics:
            name = metric.name.removesuffix(SPREAD)
            numbers = [run[name] for run in runs if name in run]
            if len(numbers) < len(runs):
                continue
            median = statistics.median(numbers)
            if name == metric.name:
                found[name] = median
            elif len(numbers) > 1:
                found[metric.name] = statistics.stdev(numbers) / abs(median) if median else 0.0
        return found

    def _over_workloads(self, results: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Metrics over the first workloads, all of them at the end."""
        names = self._chosen[: len(results)]
        weights = [self._source.declaration.workloads[name].weight for name in names]
        return {
            metric.name: self._across(metric, [one[metric.name] for one in results], weights)
            for metric in self._metrics
            if all(metric.name in one for one in results)
        }

    def _across(self, metric: Metric, numbers: Sequence[float], weights: Sequence[float]) -> float:
        if metric.name.endswith(SPREAD):
            return max(numbers)
        how = self._source.declaration.metrics[metric.name].over_workloads
        if how == "worst":
            return max(numbers) if metric.direction == "minimize" else min(numbers)
        pairs = list(zip(numbers, weights, strict=True))
        if how == "sum":
            return math.fsum(number * weight for number, weight in pairs)
        if how == "mean":
            return math.fsum(n * w for n, w in pairs) / math.fsum(weights)
        if min(numbers) <= 0:
            raise SimulationError(f"{metric.name} has no geometric mean: {min(numbers):g} is in it")
        logs = math.fsum(math.log(number) * weight for number, weight in pairs)
        return math.exp(logs / math.fsum(weights))
