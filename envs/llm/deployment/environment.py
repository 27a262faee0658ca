"""The environment of deployments: how a model is served on the GPUs of a fleet."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.data.cluster import cluster_names, cluster_sources
from archgym.envs.llm.data.model import load_model, model_names
from archgym.envs.llm.deployment.baseline import baseline_deployment
from archgym.envs.llm.deployment.fleet import FLEETS
from archgym.envs.llm.deployment.metrics import METRICS
from archgym.envs.llm.deployment.plan import READ, deployment_of, overfull_kind
from archgym.envs.llm.deployment.space import deployment_space
from archgym.envs.llm.deployment.workload import (
    DEFAULT_WORKLOAD,
    WORKLOADS,
    Workload,
    WorkloadSpec,
    load_workload,
)
from archgym.envs.llm.loaded import LoadedEnvironment
from archgym.envs.llm.requests.specification import GENERATORS, TRACES
from archgym.envs.llm.serving.engine import engine_names, load_engine
from archgym.envs.llm.serving.records import Deployment
from archgym.errors import (
    DesignError,
    InvalidValueError,
    NotCoveredError,
    UnknownNameError,
)
from archgym.problem.fidelity import Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult
from archgym.simulators.resolve import meant_workload
from archgym.space import Designs, DesignSpace

__all__ = ["LLMServing"]

_TRIES = 256
"""Designs of a user's space of which one shall be a deployment."""
_MEMORY_LIMIT = "memory_use_share <= 1"
_STEADY = 3.0
"""Times of a request during which requests must arrive to be a stream, and not a burst."""


class LLMServing(LoadedEnvironment):
    """Search the deployment of a served language model.

    A deployment says on which GPUs of the fleet how many replicas of the model are, how each is cut
    over its GPUs, whether replicas of their own prefill the prompts, how requests are batched,
    scheduled, routed and preempted, what memory the cache has, and in which precision. Unless
    another objective is given, requests by dollar are maximised at the highest rate at which nine
    in ten requests keep the limits on the time to the first token and on the time per output token.

    >>> import archgym
    >>> env = archgym.make("LLMServing-v0", workload="llama3_8b_a100_4_conv")
    >>> outcome = env.evaluate(env.baseline_design)
    >>> outcome.feasible, outcome.metrics["ttft_p50_ms"] < 1000
    (True, True)

    Args:
        workload: a name, or a mapping; see
            :func:`archgym.envs.llm.deployment.workload.load_workload`.
        **arguments: those of :class:`archgym.Environment`.

    Attributes:
        loaded: the workload: model, fleet, requests, engine, limits.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    default_objective: ClassVar[str | Mapping[str, Any]] = {
        "maximize": "goodput_requests_per_usd",
        "limits": [_MEMORY_LIMIT],
    }
    default_workload: ClassVar[Any] = DEFAULT_WORKLOAD
    read_parameters: ClassVar[frozenset[str]] = READ
    named_workloads: ClassVar = WORKLOADS
    loaded: Workload
    _highest_rate = 0.0
    _burst: tuple[float, float, float] | None = None
    version: ClassVar = "2"
    compiles: ClassVar = True
    simulates_alone: ClassVar = True
    spaces_of_workload: ClassVar[tuple[str, ...]] = ("default",)
    fidelities: tuple[Fidelity, ...] = (
        Fidelity(0.25, 0.25, "the first quarter of the requests"),
        Fidelity(1.0, 1.0, "all requests"),
    )

    modelled: ClassVar[tuple[str, ...]] = (
        "every request and every iteration of each replica: admission by free blocks of the cache, "
        "the budget of tokens, chunks of prompts, growth block by block, preemption of the last "
        "sequence, which is computed again or swapped",
        "the time of an iteration from its kernels (products, attention by context, element-wise "
        "ones), collectives, messages between stages, and the host",
        "replicas behind a router; pools that prefill and pools that decode, and the transfer of "
        "the cache between them over the network",
        "shared prefixes of prompts: which blocks are held, and which are evicted, to a tier if "
        "there is one",
        "tiers behind the memory of the GPU: weights that are read from them in every iteration, "
        "swapped sequences, evicted prefixes",
        "experts spread over GPUs, and attention with sequences of its own by group of GPUs",
        "draft models by a probability that a token is accepted, and their time",
        "nano-batches, whose products, attention and collectives overlap",
        "energy from the time in which GPUs compute, move data and wait; cost by list prices",
    )
    not_modelled: ClassVar[tuple[str, ...]] = (
        "what precision does to answers: deployments of different precision are compared as equals",
        "replicas on different kinds of GPUs that do the same: kinds differ by pool",
        "the time to load a model, to start and to stop replicas; failures",
        "requests that are cancelled, that time out or that are refused",
        "prompts by content: which tokens a draft model gets right, which experts are popular",
        "transfers from prefill to decode that share a link wait for no other one; swapped "
        "sequences always find room in their tier",
        "the price of hosts, networks and memory pools beside that of the GPUs",
        "traffic that changes over hours, and fleets that follow it",
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
        own = deployment_space(self.loaded)
        self.baseline = baseline_deployment(self.loaded, own)  # type: ignore[misc]
        if isinstance(space, DesignSpace):
            self.check_space(space)
            self.baseline = self._baseline_in(space)  # type: ignore[misc]
        super().__init__(workload=workload, space=space, **arguments)

    @property
    def workload_doc(self) -> str:
        """What was read of the model."""
        return self.loaded.model.summary

    @property
    def warnings(self) -> list[str]:
        """Says so if a sustainable rate is the highest that is tried, or that of a burst."""
        found = self._unlimited_memory(_MEMORY_LIMIT)
        if self._highest_rate:
            found.append(
                f"a deployment sustains {self._highest_rate:.4g} requests/s, the highest rate that "
                "is tried, 16 times the offered one; give a higher rate_per_s, and more requests, "
                "to tell such deployments apart"
            )
        if self._burst:
            rate, arrive_s, each_s = self._burst
            found.append(
                f"a deployment sustains {rate:.4g} requests/s, at which all requests arrive within "
                f"{arrive_s:.3g} s, and one takes {each_s:.3g} s: that is a burst, of which more "
                "can be served than of a steady stream; give a larger count"
            )
        return found

    def load_workload(self, spec: WorkloadSpec) -> None:
        """Loads model, fleet, requests and engine."""
        self.loaded = load_workload(spec)

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        """Metrics of many deployments at once.

        Args:
            designs: legal, canonical ones.
            fidelity: share of the requests that are served.
        """
        start = time.perf_counter()
        found: list[SimulationResult] = [{}] * len(designs)
        deployments, places = [], []
        for i in range(len(designs)):
            try:
                one = deployment_of(designs[i], self.loaded)
                if kind := overfull_kind(one, self.loaded):
                    raise InvalidValueError(f"it uses more {kind} than there are")
            except InvalidValueError as error:
                found[i] = NotCoveredError(str(error))
                continue
            deployments.append(one)
            places.append(i)
        if deployments:
            count = max(1, round(fidelity * len(self.loaded.traffic.drawn)))
            for i, result in zip(places, self._results(deployments, count), strict=True):
                found[i] = result
        each_s = (time.perf_counter() - start) / max(1, len(found))
        return [(result, each_s) for result in found]

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """What a workload of one's own may name."""
        return {
            "workload": "a name, or a mapping with model ("
            + ", ".join(model_names())
            + "; a mapping; or the path of a config.json), fleet ("
            + ", ".join(FLEETS)
            + "; or a mapping from clusters, "
            + ", ".join(cluster_names())
            + ", to numbers of GPUs), requests ("
            + ", ".join(TRACES)
            + "; the path of a CSV file; or a mapping with trace, file or generator, one of "
            + ", ".join(GENERATORS)
            + ", and settings such as rate_per_s and count), and perhaps engine ("
            + ", ".join(engine_names())
            + "; or a mapping), ttft_limit_ms (1000), tpot_limit_ms (50), attainment_goal (0.9: "
            "share of the requests within both limits at a sustainable rate), acceptance (0.7: "
            "probability that a token of a draft model is accepted) and draft_share (0.05: time "
            "of the draft model for a token, by that of the model)",
        }

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Sources of chips, clusters, models, engines and requests."""
        azure = "Azure LLM inference trace 2023 (CC BY 4.0): Patel et al., Splitwise, ISCA 2024"
        return {
            **{f"model {name}": load_model(name).source for name in model_names()},
            **cluster_sources(),
            **{f"engine {name}": load_engine(name).source for name in engine_names()},
            **{f"requests {name}": azure for name in TRACES},
        }

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Figures of another simulator, and of measured servers.

        :mod:`archgym.envs.llm.validation.serving.reference` describes the tables that can be read.

        Raises:
            InvalidValueError: if the table cannot be read, or ``workloads`` is given.
        """
        from archgym.envs.llm.validation.serving.reference import read_reference, shipped_references

        if workloads is not None:
            raise InvalidValueError("references of LLMServing-v0 have no workloads")
        return shipped_references() if table is None else read_reference(table, hardware)

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The deployments of the default workload."""
        return {"default": deployment_space(load_workload(DEFAULT_WORKLOAD))}

    def _results(self, deployments: Sequence[Deployment], count: int) -> list[SimulationResult]:
        """Metrics by deployment, or why the simulator refuses it."""
        from archgym.envs.llm.deployment.evaluate import evaluate_deployments
        from archgym.envs.llm.deployment.rate import SPAN

        try:
            columns = evaluate_deployments(deployments, self.loaded, count)
        except InvalidValueError as error:
            if len(deployments) == 1:
                return [NotCoveredError(str(error))]
            return [result for one in deployments for result in self._results([one], count)]
        offered = self.loaded.traffic.first(count).drawn.rate_per_s
        if self.loaded.attainment_goal > 0 and offered > 0:
            highest = SPAN * offered
            if (columns["sustainable_requests_per_s"] > highest * (1 - 1e-9)).any():
                self._highest_rate = highest
            if count >= len(self.loaded.traffic.drawn):
                self._note_burst(columns["sustainable_requests_per_s"], columns["e2e_mean_ms"])
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def _note_burst(self, rates: NDArray[np.float64], each_ms: NDArray[np.float64]) -> None:
        """Remembers the highest rate at which all requests arrive in few times of one."""
        arrive_s = np.divide(
            len(self.loaded.traffic.drawn), rates, out=np.full(len(rates), np.inf), where=rates > 0
        )
        short = arrive_s < _STEADY * each_ms / 1e3
        if short.any():
            i = int(np.argmax(np.where(short, rates, 0.0)))
            if self._burst is None or rates[i] > self._burst[0]:
                self._burst = (float(rates[i]), float(arrive_s[i]), float(each_ms[i] / 1e3))

    def _own_space(self) -> DesignSpace:
        return deployment_space(self.loaded)

    def _baseline_in(self, space: DesignSpace) -> Mapping[str, Any]:
        """The baseline, or, where a user's space does not have it, some deployment."""
        try:
            space.codes(self.baseline)
        except (UnknownNameError, DesignError):
            for design in space.sample(_TRIES, np.random.default_rng(0)):
                try:
                    if not overfull_kind(deployment_of(design, self.loaded), self.loaded):
                        return design
                except InvalidValueError:
                    continue
        return self.baseline
