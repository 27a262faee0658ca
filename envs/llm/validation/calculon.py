"""Rows of calculon: its system, execution and results."""

from __future__ import annotations

from typing import Any, Final

from archgym.envs.llm.data.as_records import GIB
from archgym.envs.llm.data.stack import load_stack
from archgym.envs.llm.validation.forms import Case, NotComparable
from archgym.problem.reference import TableRow

__all__ = ["read_calculon"]

_STACKS: Final = {
    "a100_80g": ("calculon_a100_80g", "a100"),
    "h100_80g_nvl8": ("calculon_h100_80g_nvl8", "h100"),
}
_BYTES: Final = {"float8": 1.0, "float16": 2.0, "bfloat16": 2.0}
_RECOMPUTE: Final = {"none": "none", "attn_only": "attention", "full": "full"}
_OVERLAP: Final = {"none": "none", "ring": "ring", "pipe": "pipelined"}
_FLAGS: Final = {"True": True, "False": False, "1": True, "0": False}


def read_calculon(row: TableRow) -> Case:
    """A row of calculon as a case.

    Raises:
        NotComparable: if it is inference or has multi-query attention.
        InvalidValueError: if a cell is not possible.
    """
    if not row.choice("training", _FLAGS, "True"):
        raise NotComparable("inference, not training")
    if row.text("attention_type", "multihead") != "multihead":
        raise NotComparable("multi-query attention")
    stages = row.whole("pipeline_par")
    virtual = row.whole("pipeline_interleaving", "1")
    kind = row.text("tensor_par_comm_type", "ar")
    design = {
        "tensor_parallel": row.whole("tensor_par"),
        "pipeline_parallel": stages,
        "micro_batch": row.whole("microbatch_size"),
        "schedule": "interleaved" if virtual > 1 else "1f1b",
        "virtual_stages": virtual,
        "recompute": row.choice("activation_recompute", _RECOMPUTE),
        "sequence_parallel": kind == "rs_ag",
        "scatter_gather": kind == "p2p_rs_ag",
        "gather_again": row.choice("seq_par_ag_redo", _FLAGS),
        "tensor_overlap": row.choice("tensor_par_overlap", _OVERLAP),
        "data_overlap": row.choice("data_par_overlap", _FLAGS),
        # calculon shards the gradients together with the optimizer
        "sharding": "gradients" if row.choice("optimizer_sharding", _FLAGS) else "none",
        "offload_weights": row.choice("weight_offload", _FLAGS),
        "offload_activations": row.choice("activations_offload", _FLAGS),
        "offload_optimizer": row.choice("optimizer_offload", _FLAGS),
        "tensor_tier": row.whole("tensor_par_net"),
        "data_tier": row.whole("data_par_net"),
        "pipeline_tier": row.whole("pipeline_par_net"),
    }
    memory = row.number("proc_mem_tier1_cap_req")
    seconds = row.number("total_time")
    if seconds is None or memory is None:
        raise NotComparable("no result")
    return Case(
        "calculon",
        _workload(row),
        design,
        {"iteration_s": seconds, "peak_memory_gib": memory / GIB},
    )


def _workload(row: TableRow) -> dict[str, Any]:
    stack_name, chip = row.choice("system", _STACKS)
    width = row.choice("datatype", _BYTES)
    links = [dict(link) for link in load_stack(stack_name).links]
    for tier, link in enumerate(links):
        link["latency_us"] = _number(row, f"net{tier}_latency_s") * 1e6
    return {
        "model": {
            "layers": row.whole("num_blocks"),
            "hidden": row.whole("hidden"),
            "feedforward": row.whole("feedforward"),
            "heads": row.whole("attn_heads"),
            "head_size": row.whole("attn_size"),
            "vocabulary": 0,  # calculon has no embedding
            "sequence": row.whole("seq_size"),
        },
        "cluster": {
            "chip": {
                "base": chip,
                "matrix_tflops": _number(row, "matrix_tflops"),
                "vector_tflops": _number(row, "vector_tflops"),
                "fp8_tflops": 0,  # its peak is that of one width of numbers
                "memory_gb_per_s": _number(row, "mem_gb_per_s"),
            },
            "node_gpus": 1,  # every group names its network
            "node_gb_per_s": _number(row, "net0_gb_per_s"),
            "network_gb_per_s": _number(row, "net1_gb_per_s"),
            "host_gb_per_s": _number(row, "mem2_gb_per_s"),
            "host_memory_gb_per_s": _number(row, "mem2_gb_per_s"),  # calculon has one rate
        },
        "gpus": row.whole("num_procs"),
        "batch": row.whole("batch_size"),
        "stack": {
            "base": stack_name,
            "roofline": row.text("processing_mode") == "roofline",
            "fused_activation": row.choice("fused_activation", _FLAGS),
            "element_bytes": width,
            "gradient_bytes": width,
            "links": links,
        },
    }


def _number(row: TableRow, column: str) -> float:
    found = row.number(column)
    if found is None:
        raise row.error(column, "It must be a number.")
    return found
