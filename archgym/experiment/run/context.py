"""What each process of a run needs to know of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from archgym.evaluation.recorder_protocol import Durability
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.simulation import SimulationSettings

__all__ = ["RunContext"]


@dataclass(frozen=True)
class RunContext:
    """What each process of a run needs to know of the run; it round-trips through JSON.

    Attributes:
        folder: of the run.
        run_id: id of the run, which is the content of its lock file.
        simulation: how designs are simulated.
        baselines: metrics of the baseline design of each setting that was simulated already.
        initial: designs that the searches of each setting evaluate first.
        started: ids of the trials of which the datasets hold a part; they are resumed.
        network: whether several machines take part, and share the simulation cache.
        log: where else trials are shown while they run.
        durable: when rows are on disk.
    """

    folder: RunFolder
    run_id: str
    simulation: SimulationSettings = field(default_factory=SimulationSettings)
    baselines: Mapping[str, Sequence[float]] = field(default_factory=dict)
    initial: Mapping[str, Sequence[dict[str, Any]]] = field(default_factory=dict)
    started: frozenset[str] = frozenset()
    network: bool = False
    log: Sequence[str] = ()
    durable: Durability = "auto"

    def of(self, trials: Sequence[Trial]) -> RunContext:
        """The same context with what these trials need of it."""
        settings = {trial.setting for trial in trials}
        return replace(
            self,
            baselines={name: self.baselines[name] for name in self.baselines.keys() & settings},
            initial={name: self.initial[name] for name in self.initial.keys() & settings},
            started=self.started & {trial.trial_id for trial in trials},
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON object with everything."""
        return {
            "folder": str(self.folder.path),
            "shard": self.folder.shard,
            "run_id": self.run_id,
            "simulation": self.simulation.model_dump(mode="json"),
            "baselines": {name: list(metrics) for name, metrics in self.baselines.items()},
            "initial": {name: list(designs) for name, designs in self.initial.items()},
            "started": sorted(self.started),
            "network": self.network,
            "log": list(self.log),
            "durable": self.durable,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> RunContext:
        """The inverse of :meth:`to_json`."""
        return RunContext(
            RunFolder(data["folder"], data["shard"]),
            data["run_id"],
            SimulationSettings.model_validate(data["simulation"]),
            data["baselines"],
            data["initial"],
            frozenset(data["started"]),
            data["network"],
            tuple(data["log"]),
            data["durable"],
        )
