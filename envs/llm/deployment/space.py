"""The design space of deployments, for a workload."""

from __future__ import annotations

from typing import Final

from archgym.envs.llm.data.cluster import without_fp8
from archgym.envs.llm.data.model import Model
from archgym.envs.llm.deployment.workload import Workload
from archgym.envs.llm.serving.records import (
    OFFLOADS,
    PREEMPTIONS,
    PRIORITIES,
    ROUTINGS,
    SCHEDULERS,
)
from archgym.space import Boolean, Categorical, DesignSpace, Ordinal, Parameter, Rule, param
from archgym.space.expression import Expression

__all__ = ["deployment_space"]

_MAX_TENSOR: Final = 16
_MAX_PIPELINE: Final = 8
_MAX_DATA: Final = 16
_SINGLE_REPLICAS: Final = 16
"""Up to so many replicas, every number of them can be chosen; above it multiples of eight."""
_SEQUENCES: Final = (8, 16, 32, 64, 128, 256, 512, 1024)
_TOKENS: Final = (256, 512, 1024, 2048, 4096, 8192, 16384)
_SHARES: Final = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
_BLOCKS: Final = (8, 16, 32, 64, 128)
_SPECULATIVE: Final = (0, 1, 2, 3, 4, 6, 8)
_NANO: Final = (1, 2, 4)
_OFFLOADED: Final = (0.0, 0.1, 0.25, 0.5, 0.75)


def deployment_space(workload: Workload) -> DesignSpace:
    """Parameters and rules of the deployments of a workload.

    Kinds of GPUs are in it for fleets that have several, expert and attention-data parallelism for
    models with experts, products in 8 bits for chips that have them, the prefix cache where prompts
    share prefixes, and the pool where the fleet has one. Weights of 4 bits are left out unless
    ``include: [weight_bits]`` asks for them, as what they do to answers is not modelled.
    """
    fleet = workload.fleet
    parameters = _layout(workload, "")
    split = param("split") == True  # noqa: E712
    if sum(group.gpus for group in fleet.groups) > 1:
        doc = "prompts are prefilled by replicas of their own; the others only decode"
        parameters.append(Boolean("split", doc=doc))
        parameters += _layout(workload, "prefill_", split)
    parameters += _scheduling(workload, "split" in {one.name for one in parameters})
    parameters += _memory(workload)
    parameters += [
        Ordinal(
            "speculative_tokens", _SPECULATIVE, doc="proposed by a draft model in an iteration"
        ),
        Ordinal("nano_batches", _NANO, doc="parts of a batch that overlap (NanoFlow)"),
    ]
    rules = _rules(workload, [one.name for one in parameters])
    absent = {
        "compute_bits": without_fp8(g.cluster.device.name for g in fleet.groups),
        "prefix_cache": "the requests share no prefixes",
    }
    space = DesignSpace(parameters, rules, absent=absent)
    return space.exclude({"weight_bits": [4], "cache_bits": [4]})


def _powers(largest: int) -> list[int]:
    return [1 << i for i in range(largest.bit_length()) if 1 << i <= largest]


def _divides(model: Model, n: int) -> bool:
    heads = model.heads % n == 0 and (model.kv_heads % n == 0 or n % model.kv_heads == 0)
    dense = not model.experts or model.dense_layers > 0
    return heads and (not dense or model.feedforward % n == 0)


def _layout(workload: Workload, pool: str, when: Expression | None = None) -> list[Parameter]:
    """Where the replicas of a pool are."""
    model, fleet = workload.model, workload.fleet
    tensors = [n for n in _powers(min(_MAX_TENSOR, fleet.gpus)) if _divides(model, n)]
    stages = _powers(min(_MAX_PIPELINE, fleet.gpus, model.layers))
    replicas = [n for n in range(1, fleet.gpus + 1) if n <= _SINGLE_REPLICAS or n % 8 == 0]
    whose = "that prefill" if pool else "that serve, or only decode where prefill is split off"
    found: list[Parameter] = []
    if len(fleet.groups) > 1:
        doc = f"kind of the GPUs {whose}"
        found.append(Categorical(f"{pool}gpu_type", fleet.labels, when=when, doc=doc))
    doc = f"GPUs over which each layer is cut, in replicas {whose}"
    found.append(Ordinal(f"{pool}tensor_parallel", tensors, when=when, doc=doc))
    if len(stages) > 1:
        doc = "stages of layers, one after the other"
        found.append(Ordinal(f"{pool}pipeline_parallel", stages, when=when, doc=doc))
    if model.experts:
        doc = "tensor-parallel groups with sequences of their own, which share the experts"
        groups = _powers(min(_MAX_DATA, fleet.gpus))
        found.append(Ordinal(f"{pool}attention_data_parallel", groups, when=when, doc=doc))
        experts = [n for n in _powers(fleet.gpus) if model.experts % n == 0]
        doc = "GPUs over which whole experts are spread"
        found.append(Ordinal(f"{pool}expert_parallel", experts, when=when, doc=doc))
    doc = f"copies of the model {whose}"
    found.append(Ordinal(f"{pool}replicas", replicas, when=when, doc=doc))
    return found


def _scheduling(workload: Workload, splits: bool) -> list[Parameter]:
    shared = workload.traffic.shares_prefixes
    routings = [one for one in ROUTINGS if shared or one != "prefix_affinity"]
    several = param("replicas") > 1
    if splits:
        several = several | (param("split") == True)  # noqa: E712
    joint = (param("split") == False) if splits else None  # noqa: E712
    return [
        Categorical("routing", routings, when=several, doc="to which replica a request goes"),
        Ordinal("max_num_seqs", _SEQUENCES, unit="sequences", doc="that a replica runs at a time"),
        Ordinal("max_num_batched_tokens", _TOKENS, unit="tokens", doc="new ones in an iteration"),
        Boolean("chunked_prefill", doc="a prompt may be cut over iterations"),
        Categorical("scheduler", list(SCHEDULERS), doc="which waiting request is next"),
        Categorical(
            "priority",
            list(PRIORITIES),
            when=joint,
            doc="running sequences first, or waiting prompts in iterations of their own",
        ),
    ]


def _memory(workload: Workload) -> list[Parameter]:
    offloads = [one for one in OFFLOADS if one != "pool" or workload.fleet.pool_gib > 0]
    chips = [group.cluster.device for group in workload.fleet.groups]
    tiered = param("offload") != "none"
    found: list[Parameter] = [
        Ordinal("memory_share", _SHARES, doc="of the memory, for weights and cache"),
        Ordinal("block_size", _BLOCKS, unit="tokens", doc="of a block of the cache"),
        Ordinal("weight_bits", [4, 8, 16], unit="bits", doc="precision of the weights"),
        Ordinal("cache_bits", [4, 8, 16], unit="bits", doc="precision of keys and values"),
    ]
    if any(chip.fp8_tflops > 0 for chip in chips):
        doc = "precision of products with weights of 8 bits"
        when = param("weight_bits") == 8
        found.append(Ordinal("compute_bits", [8, 16], unit="bits", when=when, doc=doc))
    if workload.traffic.shares_prefixes:
        doc = "blocks of ended sequences serve later prompts that begin alike"
        found.append(Boolean("prefix_cache", doc=doc))
    found += [
        Categorical("offload", offloads, doc="tier behind the memory of the GPU"),
        Categorical(
            "preemption",
            list(PREEMPTIONS),
            when=tiered,
            doc="a sequence that makes room is computed again, or swapped to the tier",
        ),
        Ordinal(
            "offload_weights",
            _OFFLOADED,
            when=tiered,
            doc="share of the weights that is read from the tier in every iteration",
        ),
    ]
    return found


def _rules(workload: Workload, names: list[str]) -> list[Rule]:
    longest = int(workload.traffic.drawn.prompt_tokens.max())
    chunked = param("chunked_prefill") == True  # noqa: E712
    rules = [
        Rule(
            "budget",
            param("max_num_batched_tokens") >= param("max_num_seqs"),
            "an iteration has room for a token of every sequence",
        ),
        Rule(
            "whole_prompts",
            chunked | (param("max_num_batched_tokens") >= longest),
            f"without chunks an iteration holds the longest prompt, {longest:,} tokens",
        ),
    ]
    used = (param("preemption") == "swap") | (param("offload_weights") > 0)
    if "prefix_cache" in names:
        used = used | (param("prefix_cache") == True)  # noqa: E712
        size = workload.traffic.prefix_block_tokens
        whole = (param("prefix_cache") == False) | (size % param("block_size") == 0)  # noqa: E712
        says = f"with the prefix cache blocks divide those that prompts share, {size} tokens"
        rules.append(Rule("prefix_blocks", whole, says))
    rules.append(Rule("tier", used, "the tier holds weights, swapped sequences or prefixes"))
    rules += _gpu_rules(workload, names)
    slow = [g.label for g in workload.fleet.groups if g.cluster.device.fp8_tflops <= 0]
    for pool in ("", "prefill_"):
        if workload.model.experts and f"{pool}replicas" in names:
            group = param(f"{pool}tensor_parallel") * param(f"{pool}attention_data_parallel")
            says = "experts are spread over the GPUs of a stage"
            fits = group % param(f"{pool}expert_parallel") == 0
            rules.append(Rule(f"{pool}experts", fits, says))
        if slow and "compute_bits" in names and f"{pool}gpu_type" in names:
            has = (param("compute_bits") == 16) | ~param(f"{pool}gpu_type").isin(slow)
            says = f"{', '.join(slow)} have no products in 8 bits"
            rules.append(Rule(f"{pool}chip", has, says))
    return rules


def _gpu_rules(workload: Workload, names: list[str]) -> list[Rule]:
    """Pools have no more GPUs than there are of each kind."""
    groups = workload.fleet.groups
    joint, prefill = _pool_gpus("", names), _pool_gpus("prefill_", names)
    rules = []
    for group in groups:
        says = f"at most {group.gpus} {group.label} are there"
        chosen: Expression | int = 1
        others: Expression | int = 1
        if len(groups) > 1:
            chosen = param("gpu_type") == group.label
            if "split" in names:
                others = param("prefill_gpu_type") == group.label
        rules.append(Rule(f"gpus_{group.label}", joint * chosen <= group.gpus, says))
        if "split" in names:
            both = joint * chosen + prefill * others
            rules.append(Rule(f"pools_{group.label}", both <= group.gpus, says))
    return rules


def _pool_gpus(pool: str, names: list[str]) -> Expression:
    used: Expression = param(f"{pool}tensor_parallel") * param(f"{pool}replicas")
    for name in ("pipeline_parallel", "attention_data_parallel"):
        if f"{pool}{name}" in names:
            used = used * param(f"{pool}{name}")
    return used
