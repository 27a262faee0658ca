"""The environment of training plans: how a model is cut over the GPUs of a cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from archgym.envs.llm.data.cluster import cluster_names, cluster_sources
from archgym.envs.llm.data.model import load_model, model_names
from archgym.envs.llm.data.stack import load_stack, stack_names
from archgym.envs.llm.loaded import LoadedEnvironment
from archgym.envs.llm.training.baseline import baseline_plan
from archgym.envs.llm.training.metrics import METRICS, metric_columns
from archgym.envs.llm.training.placement import LinkRates
from archgym.envs.llm.training.plan import NEEDED, READ, divides, gpus_of, plan_records
from archgym.envs.llm.training.space import training_space
from archgym.envs.llm.training.workload import (
    DEFAULT_WORKLOAD,
    WORKLOADS,
    Workload,
    WorkloadSpec,
    load_workload,
)
from archgym.errors import DesignError, InvalidValueError, NotCoveredError, UnknownNameError
from archgym.problem.fidelity import Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult
from archgym.simulators.resolve import meant_workload
from archgym.space import Designs, DesignSpace

__all__ = ["LLMTraining"]

_CLOSED = 0.1
"""Fidelity at which the bubble is a formula."""


def _objective(workload: Workload) -> dict[str, Any]:
    """The fastest plan that fits into the memory."""
    return {"maximize": "tokens_per_s_per_gpu", "limits": [_memory_limit(workload)]}


def _memory_limit(workload: Workload) -> str:
    return f"peak_memory_gib <= {workload.cluster.device.memory_gib:g}"


_TRIES = 256
"""Designs of a user's space of which one shall be a plan."""


def _baseline_in(
    space: DesignSpace, baseline: Mapping[str, Any], workload: Workload
) -> Mapping[str, Any]:
    """The baseline, or, where a user's space does not have it, some plan of the workload."""
    try:
        space.codes(baseline)
    except (UnknownNameError, DesignError):
        drawn = space.sample(_TRIES, np.random.default_rng(0))
        gpus = gpus_of(drawn, workload.gpus)
        plans = plan_records(drawn, gpus, workload.batch)
        good = np.flatnonzero(divides(plans, gpus, workload.batch))
        return drawn[int(good[0])] if len(good) else baseline
    return baseline


class LLMTraining(LoadedEnvironment):
    """Search the parallel plan of a training run.

    A plan says how many GPUs cut each layer, how many stages of layers there are, the micro-batch,
    the schedule, what is recomputed, sharded, offloaded and overlapped, and where neighbours of a
    group are. Unless another objective is given, trained tokens by GPU and second are maximised
    within the memory of the chip, which about half of random plans exceed.

    >>> import archgym
    >>> env = archgym.make("LLMTraining-v0", workload="gpt_7.5b_a100_64")
    >>> outcome = env.evaluate(env.baseline_design)
    >>> outcome.feasible, 0.2 < outcome.metrics["mfu_share"] < 0.6
    (True, True)

    Args:
        workload: a name, or a mapping; see
            :func:`archgym.envs.llm.training.workload.load_workload`.
        **arguments: those of :class:`archgym.Environment`.

    Attributes:
        loaded: the workload: model, cluster, software stack, GPUs, batch, tokens.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    default_objective: ClassVar[str | Mapping[str, Any]] = _objective(
        load_workload(DEFAULT_WORKLOAD)
    )
    baseline: ClassVar[Mapping[str, Any]] = baseline_plan(
        load_workload(DEFAULT_WORKLOAD), training_space(load_workload(DEFAULT_WORKLOAD))
    )
    default_workload: ClassVar[Any] = DEFAULT_WORKLOAD
    read_parameters: ClassVar[frozenset[str]] = READ
    needed_parameters: ClassVar[tuple[str, ...]] = NEEDED
    named_workloads: ClassVar = WORKLOADS
    loaded: Workload
    version: ClassVar = "6"
    compiles: ClassVar = True
    spaces_of_workload: ClassVar[tuple[str, ...]] = ("default",)
    fidelities: tuple[Fidelity, ...] = (
        Fidelity(_CLOSED, _CLOSED, "the bubble of the pipeline by a formula"),
        Fidelity(1.0, 1.0, "the pipeline as an event graph"),
    )
    modelled: ClassVar[tuple[str, ...]] = (
        "every kernel of a layer by a roofline: products by tiles and waves, the rest by bytes, "
        "each with a shortest time, and the time of the host that launches them",
        "collectives as rings and trees over the links of node, island and cluster",
        "the pipeline as an event graph with the order of passes of each schedule, the embedding "
        "on the first and the output layer on the last stage",
        "memory of each stage: parameters, gradients, optimizer, activations in flight, the layer "
        "at work, logits",
        "sharding (ZeRO 0 to 3), recomputation, offload, overlap of communication",
        "what overlap costs: kernels are slower beside collectives, products are cut into pieces, "
        "the first and the last piece are exposed; copies to the host share a link with the cards, "
        "and an offloaded optimizer runs at the bandwidth of the host's memory",
        "the slowest of many equal GPUs, which sets the pace of all",
        "links between nodes one by one, where they were measured, and the placement of ranks",
    )
    not_modelled: ClassVar[tuple[str, ...]] = (
        "fragmentation of memory, and the slowdown of an allocator near its limit",
        "uneven load of experts, latent attention (LLMServing-v0 has it)",
        "congestion between groups that share a switch; failures; the size of the host's memory, "
        "to which host_memory_gib can be limited",
        "loss: plans that train the same way are compared, and fp8 counts as the same way",
        "compute and input of data loading, checkpoints, evaluation",
    )

    def __init__(
        self,
        *,
        workload: WorkloadSpec | None = None,
        space: str | DesignSpace | None = None,
        **arguments: Any,
    ) -> None:
        workload = meant_workload(workload, arguments.get("simulator"))
        self.loaded = load_workload(DEFAULT_WORKLOAD if workload is None else workload)
        own = training_space(self.loaded)
        self.baseline = baseline_plan(self.loaded, own)  # type: ignore[misc]
        if isinstance(space, DesignSpace):
            self.check_space(space)
            self.baseline = _baseline_in(space, self.baseline, self.loaded)  # type: ignore[misc]
        self.default_objective = _objective(self.loaded)  # type: ignore[misc]
        super().__init__(workload=workload, space=space, **arguments)

    @property
    def workload_doc(self) -> str:
        """What was read of the model."""
        return self.loaded.model.summary

    @property
    def warnings(self) -> list[str]:
        """Says so if plans that do not fit count as feasible."""
        return self._unlimited_memory(_memory_limit(self.loaded), "free_memory_gib")

    def load_workload(self, spec: WorkloadSpec) -> None:
        """Loads model, cluster and stack, and their records."""
        from archgym.envs.llm.data.as_records import model_record, system_record

        self.loaded = load_workload(spec)
        self._model = model_record(self.loaded.model)
        cluster, gpus = self.loaded.cluster, self.loaded.gpus
        self._systems = {
            count: system_record(cluster, self.loaded.stack, count)
            for count in self.loaded.gpu_counts
        }
        self._links = None
        if (links := self.loaded.links) is not None:
            nominal = cluster.network_gb_per_s
            self._links = LinkRates(
                links,
                nominal,
                gpus,
                min(gpus, cluster.node_gpus),
                self.loaded.model,
                self.loaded.tokens,
            )

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        """Metrics of many plans at once.

        Args:
            designs: legal, canonical ones.
            fidelity: below 1 the bubble is a formula.
        """
        from archgym.envs.llm.cost.evaluate import evaluate_plans  # compiles

        start = time.perf_counter()
        gpus = gpus_of(designs, self.loaded.gpus)
        plans = plan_records(designs, gpus, self.loaded.batch, self._links)
        fits = divides(plans, gpus, self.loaded.batch)
        plans["data"] = np.maximum(1, plans["data"])
        plans["micro_batches"] = np.maximum(1, plans["micro_batches"])
        found: list[SimulationResult] = [{}] * len(designs)
        for count, system in self._systems.items():
            here = np.flatnonzero(gpus == count)
            results = evaluate_plans(self._model, plans[here], system, closed=fidelity < 1)
            columns = metric_columns(results, self.loaded.on(count))
            rows = zip(*(column.tolist() for column in columns.values()), strict=True)
            for i, row in zip(here, rows, strict=True):
                found[i] = dict(zip(columns, row, strict=True))
        for i in np.flatnonzero(~fits | ~np.isin(gpus, self.loaded.gpu_counts)):
            found[i] = NotCoveredError(
                f"its degrees and micro-batch do not divide {gpus[i]} GPUs and a batch of "
                f"{self.loaded.batch}, or the workload has not so many GPUs"
            )
        each_s = (time.perf_counter() - start) / max(1, len(found))
        return [(result, each_s) for result in found]

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """What a workload of one's own may name."""
        return {
            "workload": "a name, or a mapping with model ("
            + ", ".join(model_names())
            + "; a mapping; or the path of a config.json), cluster ("
            + ", ".join(cluster_names())
            + "; or a mapping), gpus (a number, or a list of numbers among which plans choose), "
            "batch, and perhaps stack ("
            + ", ".join(stack_names())
            + "; or a mapping), links (the path of a CSV file of bandwidths between nodes; or a "
            "mapping with seed and least_share, for synthetic ones) and "
            "training_gtokens (1e9 tokens of the whole training; 20 by parameter unless given)",
        }

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Sources of chips, clusters, models and constants."""
        return {
            **{f"model {name}": load_model(name).source for name in model_names()},
            **cluster_sources(),
            **{f"stack {name}": load_stack(name).source for name in stack_names()},
        }

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Figures of measured clusters and of calculon.

        :mod:`archgym.envs.llm.validation.reference` describes the tables that can be read.

        Raises:
            InvalidValueError: if the table cannot be read, or ``workloads`` is given.
        """
        from archgym.envs.llm.validation.reference import read_reference, shipped_references

        if workloads is not None:
            raise InvalidValueError("references of LLMTraining-v0 have no workloads")
        return shipped_references() if table is None else read_reference(table, hardware)

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The plans of the default workload."""
        return {"default": training_space(load_workload(DEFAULT_WORKLOAD))}

    def _own_space(self) -> DesignSpace:
        return training_space(self.loaded)
