"""A frozen description of an environment, for records of its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from archgym.problem.fidelity import Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.space import DesignSpace


@dataclass(frozen=True)
class ProblemDescription:
    """What an environment searches and what simulates it; :class:`archgym.Environment` makes it.

    Datasets, tables and the shared cache of simulations take this record instead of the
    environment.

    Attributes:
        environment: registered name, or ``module:Class``.
        version: of the environment's own simulation.
        settings: constructor arguments and simulator options under which metrics hold.
        space: the design space as it is searched, with what is fixed.
        metrics: all metrics of the environment.
        objective: what is sought.
        workload: as the environment was given it.
        workload_name: the workload's label in tables and datasets.
        workload_sha256: hash of the workload's content; empty if the environment has none.
        simulator: ``name`` and ``version`` of the simulator.
        source_sha256: digest of the code that simulates; empty where its version says enough.
        metrics_given: names of the metrics that the simulator gives.
        fidelities: at which designs can be simulated.
        baseline_design: the design that others are compared with, canonical.
        episode_length: designs an episode.
    """

    environment: str
    version: str
    settings: Mapping[str, Any]
    space: DesignSpace
    metrics: tuple[Metric, ...]
    objective: Objective
    workload: Any
    workload_name: str
    workload_sha256: str
    simulator: Mapping[str, str]
    source_sha256: str
    metrics_given: tuple[str, ...]
    fidelities: tuple[Fidelity, ...]
    baseline_design: Mapping[str, Any]
    episode_length: int
