"""Rows of vTrain: measured iterations of GPT on A100."""

from __future__ import annotations

from typing import Any

from archgym.envs.llm.validation.forms import Case, NotComparable
from archgym.problem.reference import TableRow

__all__ = ["read_vtrain"]

_VOCABULARY = 51200


def read_vtrain(row: TableRow) -> Case:
    """A row as a case: fp16, full recomputation, 1F1B, ranks in the order tp-dp-pp.

    Megatron and DeepSpeed cut the messages between stages over the tensor-parallel group.

    Raises:
        NotComparable: if nothing was measured.
        InvalidValueError: if a cell is not possible.
    """
    milliseconds = row.number("iteration_ms")
    if milliseconds is None:
        raise NotComparable("no iteration time")
    hidden, gpus = row.whole("hidden"), row.whole("gpus")
    model: dict[str, Any] = {
        "layers": row.whole("layers"),
        "hidden": hidden,
        "feedforward": 4 * hidden,
        "heads": row.whole("heads"),
        "vocabulary": _VOCABULARY,
        "sequence": row.whole("seq_len"),
    }
    single = row.text("set") == "single"
    label = "one node" if single else f"clusters, {row.text('params_b', '?')}B"
    return Case(
        label,
        {
            "model": model,
            "cluster": "a100_four_cards",
            "gpus": gpus,
            "batch": row.whole("global_batch"),
            "stack": "deepspeed_2022",
        },
        {
            "tensor_parallel": row.whole("tp"),
            "pipeline_parallel": row.whole("pp"),
            "micro_batch": row.whole("micro_batch"),
            "schedule": "1f1b",
            "recompute": "full",
            "scatter_gather": True,
            "data_overlap": False,
        },
        {"iteration_s": milliseconds / 1e3},
    )
