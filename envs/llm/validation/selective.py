"""Rows of "Reducing activation recomputation" (Korthikanti et al., MLSys 2023): A100."""

from __future__ import annotations

from typing import Any, Final

from archgym.envs.llm.validation.forms import Case, NotComparable
from archgym.problem.reference import TableRow

__all__ = ["read_selective"]

_MODELS: Final = {
    "megatron-22B": {"layers": 48, "hidden": 6144, "heads": 64},
    "gpt3-175B": {"layers": 96, "hidden": 12288, "heads": 96},
    "turing-530B": {"layers": 105, "hidden": 20480, "heads": 128},
    "megatron-1T": {"layers": 128, "hidden": 25600, "heads": 160},
}
_RECOMPUTE: Final = {
    "none": ("none", False),
    "full, no sequence parallelism": ("full", False),
    "selective + sequence parallelism": ("attention", True),
    "seqsel": ("attention", True),
}
"""What is recomputed, and whether sequences are parallel, by the table's words."""


def read_selective(row: TableRow) -> Case:
    """A row as a case: iteration times (table 5) and memory of activations (figure 1).

    Raises:
        NotComparable: if it is another figure, or without embedding.
        InvalidValueError: if a cell is not possible.
    """
    metrics = {"iteration_time": "iteration_s", "activation_memory": "activation_memory_gib"}
    if row.text("metric") not in metrics:
        raise NotComparable("another figure of the paper")
    base: dict[str, Any] = row.choice("model", _MODELS)
    recompute, parallel = row.choice("recompute", _RECOMPUTE)
    model = {**base, "feedforward": 4 * base["hidden"], "vocabulary": 51200, "sequence": 2048}
    chunks = row.whole("vp")
    value = row.number("value")
    if value is None:
        raise row.error("value", "It must be a number.")
    stages = row.whole("pp")
    return Case(
        "A100, recomputation",
        {
            "model": model,
            "cluster": "dgx_a100",
            "gpus": row.whole("gpus"),
            "batch": row.whole("gbs"),
            "stack": "megatron_2021",
        },
        {
            "tensor_parallel": row.whole("tp"),
            "pipeline_parallel": stages,
            "micro_batch": row.whole("mbs"),
            "schedule": "interleaved" if chunks > 1 else "1f1b",
            "virtual_stages": chunks,
            "recompute": recompute,
            "sequence_parallel": parallel,
            "gather_again": parallel,
            "scatter_gather": not parallel and stages > 1,
        },
        {metrics[row.text("metric")]: value},
    )
