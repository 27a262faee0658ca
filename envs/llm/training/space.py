"""The design space of training plans, for a workload."""

from __future__ import annotations

from archgym.envs.llm.data.cluster import without_fp8
from archgym.envs.llm.training.placement import PLACEMENTS
from archgym.envs.llm.training.plan import CHOICES, ORDERS
from archgym.envs.llm.training.workload import Workload
from archgym.space import Boolean, Categorical, DesignSpace, Ordinal, Parameter, Rule, param
from archgym.space.expression import Expression

__all__ = ["training_space"]

_MAX_TENSOR, _MAX_PIPELINE, _MAX_CONTEXT, _MAX_EXPERT, _MAX_MICRO_BATCH = 32, 64, 16, 64, 32
_LONG_SEQUENCE = 8192
"""From this length on, sequences may be split over context-parallel ranks."""


def training_space(workload: Workload) -> DesignSpace:
    """Parameters and rules of the plans of a workload.

    Context parallelism is in it for sequences of 8,192 tokens or more, expert parallelism for
    models with experts, fp8 for chips that have it, and the number of GPUs where a workload has
    several to choose from. Data parallelism follows: it is what the
    other degrees leave of the GPUs.
    """
    model = workload.model
    gpus: Expression | int = param("gpus") if workload.chooses_gpus else workload.gpus
    tensors = [n for n in _powers(_MAX_TENSOR) if _divides_tensor(workload, n)]
    pipelines = [
        n for n in range(1, _MAX_PIPELINE + 1) if _shares(workload, n) and n <= model.layers
    ]
    parameters: list[Parameter] = []
    if workload.chooses_gpus:
        parameters.append(Ordinal("gpus", workload.gpu_counts, doc="GPUs that the plan uses"))
    parameters += [
        Ordinal("tensor_parallel", tensors, doc="GPUs over which each layer is cut"),
        Ordinal("pipeline_parallel", pipelines, doc="stages of layers, one after the other"),
    ]
    tensor, stages = param("tensor_parallel"), param("pipeline_parallel")
    width: Expression = tensor * stages
    several = width < gpus  # context ranks add up gradients as data-parallel ones do
    if model.sequence >= _LONG_SEQUENCE:
        contexts = [n for n in _powers(_MAX_CONTEXT) if _shares(workload, n)]
        parameters.append(
            Ordinal("context_parallel", contexts, doc="GPUs over which each sequence is cut")
        )
        width = width * param("context_parallel")
    if model.experts:
        experts = [n for n in _powers(_MAX_EXPERT) if model.experts % n == 0]
        experts = [n for n in experts if _shares(workload, n)]
        doc = "GPUs over which the experts of a layer are spread"
        parameters.append(Ordinal("expert_parallel", experts, doc=doc))
    batches = [n for n in _powers(_MAX_MICRO_BATCH) if n <= workload.batch]
    parameters.append(Ordinal("micro_batch", batches, unit="sequences", doc="in one pass"))
    parameters += _schedule(model.layers)
    parameters += _switches(several, width < gpus, workload)
    return DesignSpace(parameters, _rules(width, gpus, workload), absent=_absent(workload))


def _absent(workload: Workload) -> dict[str, str]:
    """Why parameters that other workloads have are not in the space, if they are not."""
    model = workload.model
    return {
        "gpus": f"the workload has {workload.gpu_counts[0]} GPUs; plans choose from a list",
        "context_parallel": f"sequences of {model.sequence:,} tokens are not cut over GPUs; "
        f"those of {_LONG_SEQUENCE:,} or more are",
        "expert_parallel": "the model has no experts",
        "placement": "the workload has no links, which say how fast each pair of nodes is",
        "precision": without_fp8([workload.cluster.device.name]),
    }


def _powers(largest: int) -> list[int]:
    return [1 << i for i in range(largest.bit_length()) if 1 << i <= largest]


def _shares(workload: Workload, n: int) -> bool:
    """Whether so many divide some number of GPUs that a plan may have."""
    return any(gpus % n == 0 for gpus in workload.gpu_counts)


def _divides_tensor(workload: Workload, n: int) -> bool:
    model = workload.model
    heads = model.heads % n == 0 and (model.kv_heads % n == 0 or n % model.kv_heads == 0)
    inner = model.feedforward % n == 0 and (not model.experts or model.expert_feedforward % n == 0)
    return heads and inner and model.sequence % n == 0 and _shares(workload, n)


def _schedule(layers: int) -> list[Parameter]:
    stages = param("pipeline_parallel")
    chunks = [n for n in range(2, 13) if n <= layers // 2] or [2]
    found: list[Parameter] = [
        Categorical(
            "schedule",
            list(CHOICES["schedule"]),
            when=stages > 1,
            doc="order of forward and backward passes",
        ),
        Ordinal(
            "virtual_stages",
            chunks,
            when=param("schedule") == "interleaved",
            doc="chunks of layers of each stage",
        ),
        Categorical(
            "recompute",
            list(CHOICES["recompute"]),
            doc="what is computed again in the backward pass instead of kept",
        ),
        Ordinal(
            "recompute_layers_share",
            [0.25, 0.5, 0.75, 1.0],
            when=param("recompute") != "none",
            doc="share of the layers that recompute",
        ),
    ]
    return found


def _switches(several: Expression, parallel: Expression, workload: Workload) -> list[Parameter]:
    """Choices of the software.

    Args:
        several: whether several GPUs add up the gradients of a parameter.
        parallel: whether there is data parallelism.
        workload: what is trained on what.
    """
    split = param("tensor_parallel") > 1
    found: list[Parameter] = [
        Boolean("sequence_parallel", when=split, doc="norms and dropout are cut too"),
        Boolean(
            "gather_again",
            when=split & (param("sequence_parallel") == True) & (param("recompute") != "full"),  # noqa: E712
            doc="gather inputs again in the backward pass instead of keeping them",
        ),
        Boolean(
            "scatter_gather",
            when=split
            & (param("sequence_parallel") == False)  # noqa: E712
            & (param("pipeline_parallel") > 1),
            doc="messages between stages are cut over the tensor-parallel group",
        ),
        Categorical(
            "tensor_overlap",
            list(CHOICES["tensor_overlap"]),
            when=split,
            doc="how the collectives of tensor parallelism overlap with products",
        ),
        Boolean("data_overlap", when=several, doc="gradients are added up during backward passes"),
        Categorical(
            "sharding",
            list(CHOICES["sharding"]),
            when=several,
            doc="what is spread over data- and context-parallel ranks (ZeRO 0 to 3)",
        ),
        Boolean("offload_optimizer", doc="the optimizer's state is kept by the host"),
        Boolean("offload_activations", doc="activations are kept by the host"),
        Categorical(
            "rank_order",
            list(ORDERS),
            when=parallel & (param("pipeline_parallel") > 1),
            doc="neighbours first",
        ),
    ]
    if workload.links is not None:
        doc = "nodes in their order, or such that groups avoid slow links"
        found.append(Categorical("placement", list(PLACEMENTS), doc=doc))
    if workload.cluster.device.fp8_tflops > 0:
        doc = "of the products with weights"
        found.append(Categorical("precision", list(CHOICES["precision"]), doc=doc))
    return found


def _rules(width: Expression, gpus: Expression | int, workload: Workload) -> list[Rule]:
    batch = workload.batch
    named = "GPUs" if workload.chooses_gpus else f"{gpus} GPUs"
    rules = [
        Rule("gpus", gpus % width == 0, f"the degrees divide the {named}"),
        Rule(
            "batch",
            (batch * width) % (gpus * param("micro_batch")) == 0,
            f"data parallelism times micro-batch divides the batch of {batch}",
        ),
        Rule(
            "layers",
            param("pipeline_parallel") * param("virtual_stages") <= workload.model.layers,
            f"every chunk has one of the {workload.model.layers} layers",
        ),
        Rule(
            "micro_batches",
            (param("schedule") != "interleaved")
            | ((batch * width) % (gpus * param("micro_batch") * param("pipeline_parallel")) == 0),
            "interleaving takes micro-batches in groups of as many as there are stages",
        ),
    ]
    if workload.model.experts:
        together = param("tensor_parallel") * param("pipeline_parallel") * param("expert_parallel")
        rules.append(
            Rule("experts", gpus % together == 0, "experts spread over data and context ranks")
        )
    return rules
