"""The environment of devices for language models: transformer and memory system together."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from archgym.envs.llm.device.columns import READ, REQUIRED, columns_of
from archgym.envs.llm.device.data.records import load_memory, memory_names
from archgym.envs.llm.device.loss import MAX_GTOKENS, SOURCES
from archgym.envs.llm.device.metrics import METRICS, metric_columns
from archgym.envs.llm.device.space import BASELINE, device_space
from archgym.envs.llm.device.workload import (
    DEFAULT_WORKLOAD,
    WORKLOADS,
    Workload,
    WorkloadSpec,
    describe_workloads,
    load_workload,
)
from archgym.envs.llm.loaded import LoadedEnvironment
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.metrics import Metric
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult
from archgym.simulators.resolve import meant_workload
from archgym.space import Designs, DesignSpace, param

__all__ = ["LLMDevice"]


def _objective(workload: Workload) -> dict[str, Any]:
    """The lowest loss within the budgets."""
    return {"minimize": "loss_predicted_nats_per_token", "limits": workload.limits}


class LLMDevice(LoadedEnvironment):
    """Search a transformer and the device that runs it, together.

    A design says depth, width, heads, feed-forward, vocabulary and bits of a transformer, and
    multipliers, clock, SRAM, memory channels, a second memory, flash and where products run.
    Unless another objective is given, the loss that scaling laws predict is minimised within the
    budgets of the workload: latency of a token and of a prompt, energy, area.

    >>> import archgym
    >>> env = archgym.make("LLMDevice-v0", workload="phone")
    >>> outcome = env.evaluate(env.baseline_design)
    >>> outcome.feasible, 10 < outcome.metrics["tokens_per_s"] < 1000
    (True, True)

    Args:
        workload: a name, or a mapping; see
            :func:`archgym.envs.llm.device.workload.load_workload`.
        **arguments: those of :class:`archgym.Environment`.

    Attributes:
        loaded: the workload: requests, budgets, software, prices.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    default_objective: ClassVar[str | Mapping[str, Any]] = _objective(
        load_workload(DEFAULT_WORKLOAD)
    )
    baseline: ClassVar[Mapping[str, Any]] = BASELINE
    default_workload: ClassVar[Any] = DEFAULT_WORKLOAD
    read_parameters: ClassVar[frozenset[str]] = READ
    needed_parameters: ClassVar[tuple[str, ...]] = REQUIRED
    named_workloads: ClassVar = WORKLOADS
    loaded: Workload
    version: ClassVar = "1"
    modelled: ClassVar[tuple[str, ...]] = (
        "every product of a layer and the logits by a roofline over multipliers, near memory, far "
        "memory and flash, which overlap within an operator; attention, vector operations and the "
        "time between operators",
        "stream bandwidth and energy of the memories from the timings and currents of DRAM-v0's "
        "devices, with refresh, activates and the command bus",
        "inputs that do not fit into the SRAM: weights, keys and values are read again",
        "units at DRAM banks by activates, columns and precharges of all banks, with the window of "
        "four activates, vectors that are broadcast and partial results that are read",
        "tables in SRAM: building, lookups bit by bit, one build for a batch",
        "placement of weights and caches over SRAM, near memory, far memory and flash",
        "scales of groups of quantised weights; area, price and leakage",
    )
    not_modelled: ClassVar[tuple[str, ...]] = (
        "heat, and power limits of memories whose banks all work at once",
        "sparsity, mixtures of experts, speculative decoding",
        "other traffic on the memory, and conflicts between caches and weights in it",
        "software beyond a share of each rate and a time for each operator",
        "accuracy on tasks: loss of pre-training is predicted, by laws with the ranges that "
        "loss_outside_count checks",
    )
    caveats: ClassVar = {
        "weight_bits=2: the law of quantisation was fitted at 3 bits and more; "
        "exclude: {weight_bits: [2]} searches without it": param("weight_bits") == 2,
        "vocabulary above 98,304: the law of vocabularies was fitted up to there": (
            param("vocabulary") > 98304
        ),
    }

    def __init__(
        self,
        *,
        workload: WorkloadSpec | None = None,
        space: str | DesignSpace | None = None,
        **arguments: Any,
    ) -> None:
        workload = meant_workload(workload, arguments.get("simulator"))
        self.loaded = load_workload(DEFAULT_WORKLOAD if workload is None else workload)
        if isinstance(space, DesignSpace):
            self.check_space(space)
            self.baseline = _baseline_in(space)  # type: ignore[misc]
        self.default_objective = _objective(self.loaded)  # type: ignore[misc]
        super().__init__(workload=workload, space=space, **arguments)

    def load_workload(self, spec: WorkloadSpec) -> None:
        """Loads requests, software and prices."""
        self.loaded = load_workload(spec)

    def simulate_batch(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Metrics of many designs at once.

        Args:
            designs: legal, canonical ones.
        """
        start = time.perf_counter()
        found = metric_columns(columns_of(designs), self.loaded)
        rows = zip(*(column.tolist() for column in found.values()), strict=True)
        names = tuple(found)
        results = [dict(zip(names, row, strict=True)) for row in rows]
        each_s = (time.perf_counter() - start) / max(1, len(results))
        return [(result, each_s) for result in results]

    @property
    def warnings(self) -> list[str]:
        """Training beyond what the laws were fitted on."""
        if self.loaded.training_gtokens <= MAX_GTOKENS:
            return []
        return [
            f"workload: training_gtokens is {self.loaded.training_gtokens:g}; the scaling law of "
            f"shapes was fitted on at most {MAX_GTOKENS:g}e9 tokens, so losses are extrapolated"
        ]

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """What a workload of one's own may name."""
        return {"workload": describe_workloads()}

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Sources of memories, prices, software and scaling laws."""
        from archgym.envs.llm.device.data.records import (
            load_software,
            load_technology,
            software_names,
        )

        return {
            **SOURCES,
            **{f"memory {name}": load_memory(name).source for name in memory_names()},
            "technology and prices": load_technology().source,
            **{f"software {name}": load_software(name).source for name in software_names()},
        }

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Measured boards, published ratios and trained models.

        :mod:`archgym.envs.llm.device.validation.reference` describes the tables that can be read.

        Raises:
            InvalidValueError: if the table cannot be read, or another argument is given.
        """
        from archgym.envs.llm.device.validation.reference import read_reference, shipped_references

        if workloads is not None or hardware is not None:
            raise InvalidValueError(
                "references of LLMDevice-v0 have neither workloads nor hardware"
            )
        return shipped_references() if table is None else [read_reference(table)]

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The one space."""
        return {"default": device_space()}

    def _own_space(self) -> DesignSpace:
        return device_space()


def _baseline_in(space: DesignSpace) -> Mapping[str, Any]:
    """The baseline, or the first design of a user's space that lacks it."""
    import numpy as np

    from archgym.errors import DesignError

    try:
        space.codes(BASELINE)
    except (UnknownNameError, DesignError):
        drawn = space.sample(1, np.random.default_rng(0))
        return drawn[0]
    return BASELINE
