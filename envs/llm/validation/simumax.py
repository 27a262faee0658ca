"""Rows of SimuMax: measured iterations and memory of cut-down dense models on eight B200."""

from __future__ import annotations

import re
from typing import Any, Final

from archgym.envs.llm.validation.forms import Case, NotComparable
from archgym.problem.reference import TableRow

__all__ = ["read_simumax"]

_MODELS: Final = {"llama3_70b": {}, "llama3_405b": {"kv_heads": 16}}
"""Shapes as in SimuMax's ``configs/models``; its 405B has sixteen heads of keys and values."""
_SEQUENCE: Final = 4096
_METRICS: Final = {"iteration_time": "iteration_s", "peak_allocated_memory": "peak_memory_gib"}


def read_simumax(row: TableRow) -> Case:
    """A row as a case: bf16, sharded optimizer, no recomputation, nothing overlaps.

    Raises:
        NotComparable: if the model has latent attention.
        InvalidValueError: if a cell is not possible.
    """
    name = row.text("model")
    if name not in _MODELS:
        raise NotComparable("latent attention is not modelled")
    value = row.number("value")
    micro_batches = re.search(r"_mbc(\d{1,6})_", row.text("note"))
    if value is None:
        raise row.error("value", "It must be a number.")
    if micro_batches is None:
        raise row.error("note", "It must name the micro-batches, as in _mbc4_.")
    sequence = re.search(r"_seq(\d{1,7})_", row.text("note"))
    length = int(sequence[1]) if sequence else _SEQUENCE
    tensor, data, micro_batch = row.whole("tp"), row.whole("dp"), row.whole("mbs")
    model: dict[str, Any] = {"base": name, "layers": row.whole("layers"), "sequence": length}
    metric = _METRICS[row.text("metric")]
    return Case(
        "B200, cut down",
        {
            "model": {**model, **_MODELS[name]},
            "cluster": "dgx_b200",
            "gpus": row.whole("gpus"),
            "batch": int(micro_batches[1]) * micro_batch * data,
            "stack": "megatron_b200",
        },
        {
            "tensor_parallel": tensor,
            "pipeline_parallel": row.whole("pp"),
            "context_parallel": row.whole("cp"),
            "micro_batch": micro_batch,
            "schedule": "1f1b",
            "sequence_parallel": tensor > 1,
            "gather_again": tensor > 1,
            "sharding": "optimizer",
        },
        {metric: value / 1e3 if metric == "iteration_s" else value},
    )
