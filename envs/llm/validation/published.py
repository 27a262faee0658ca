"""Rows of published runs: Megatron-Bridge, recomputation on A100, SimuMax on B200."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from archgym.envs.llm.data.cluster import load_cluster
from archgym.envs.llm.data.model import load_model
from archgym.envs.llm.validation.forms import Case, NotComparable
from archgym.envs.llm.validation.selective import read_selective
from archgym.envs.llm.validation.simumax import read_simumax
from archgym.problem.reference import TableRow

__all__ = ["read_published"]

_MODELS: Final = {
    "LLAMA3_8B": "llama3_8b",
    "LLAMA3_70B": "llama3_70b",
    "LLAMA3.1_405B": "llama3_405b",
}
_CLUSTERS: Final[Mapping[str, Any]] = {
    "DGX-H100": "dgx_h100",
    "DGX-B200": "dgx_b200",
    "DGX-GB200": {"base": "gb200_nvl72", "node_gpus": 64},  # as many of a rack as are used
}
_PRECISIONS: Final = {
    "BF16": "bf16",
    "FP8": "fp8",
    "FP8-CS": "fp8",
    "FP8-CS (FP8-MX)": "fp8",
    "MXFP8": "fp8",
}
"""FP8-CS has a scale for each tensor, MXFP8 one for each block of it."""
_METRICS: Final = ("tokens_per_s_per_gpu", "model_tflops_per_gpu")


def read_published(row: TableRow) -> Case:
    """A row as a case, by what its source says.

    Raises:
        NotComparable: if it is none of those runs.
        InvalidValueError: if a cell is not possible.
    """
    source = row.text("source")
    if "2205.05198" in source:
        return read_selective(row)
    if "SimuMax" in source:
        return read_simumax(row)
    return _read_bridge(row)


def _read_bridge(row: TableRow) -> Case:
    """A row of Megatron-Bridge.

    Raises:
        NotComparable: if it is not pre-training of a dense Llama in bf16 or fp8.
        InvalidValueError: if a cell is not possible.
    """
    metric, value = row.text("metric"), row.text("value")
    if metric not in _METRICS or "Pre-Training" not in row.text("source"):
        raise NotComparable("another metric, or not pre-training")
    system = row.text("system")
    if row.text("model") not in _MODELS or system not in _CLUSTERS:
        raise NotComparable("another model or system")
    if row.text("precision") not in _PRECISIONS:
        raise NotComparable("another precision")
    base = load_model(_MODELS[row.text("model")])
    length = row.whole("seq_len")
    model: Any = {"base": base.name, "sequence": length}
    virtual = _degree(row, "vp")
    stages = _degree(row, "pp")
    sharded = _degree(row, "fsdp", 0) > 1
    tensor = _degree(row, "tp")
    rate = float(value)
    if metric == "model_tflops_per_gpu":
        metrics = {"mfu_share": rate / load_cluster(_CLUSTERS[system]).device.matrix_tflops}
    else:
        metrics = {"tokens_per_s_per_gpu": rate}
    return Case(
        f"{system.removeprefix('DGX-')}, dense",
        {
            "model": model,
            "cluster": _CLUSTERS[system],
            "gpus": row.whole("gpus"),
            "batch": row.whole("gbs"),
            "stack": "megatron",
        },
        {
            "tensor_parallel": tensor,
            "pipeline_parallel": stages,
            "context_parallel": _degree(row, "cp"),
            "micro_batch": row.whole("mbs"),
            "schedule": "interleaved" if virtual > 1 and stages > 1 else "1f1b",
            "virtual_stages": virtual if stages > 1 else 1,
            "sequence_parallel": tensor > 1,
            "gather_again": tensor > 1,
            "tensor_overlap": "ring" if tensor > 1 else "none",
            "data_overlap": True,
            "sharding": "parameters" if sharded else "optimizer",
            "precision": _PRECISIONS[row.text("precision")],
        },
        metrics,
    )


def _degree(row: TableRow, column: str, default: int = 1) -> int:
    """A degree of parallelism; ``n/a`` and nothing are the default."""
    if row.text(column, "n/a") == "n/a":
        return default
    return row.whole(column)
