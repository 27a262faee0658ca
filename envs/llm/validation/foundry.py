"""Rows of LLM Foundry: measured training of MPT models by PyTorch's sharded data parallelism."""

from __future__ import annotations

from typing import Any, Final

from archgym.envs.llm.validation.forms import Case
from archgym.problem.reference import TableRow

__all__ = ["read_foundry"]

_MODELS: Final = {
    "mpt_125m": (768, 12, 12),
    "mpt_350m": (1024, 16, 24),
    "mpt_760m": (1536, 12, 24),
    "mpt_1b": (2048, 16, 24),
    "mpt_3b": (2560, 20, 32),
    "mpt_7b": (4096, 32, 32),
    "mpt_13b": (5120, 40, 40),
    "mpt_30b": (7168, 56, 48),
    "mpt_70b": (8192, 64, 80),
}
"""Width, heads and layers, as in the files ``scripts/train/yamls/pretrain/mpt-*.yaml``."""
_CHIPS: Final = {"a100_80gb": "a100", "h100_80gb": "h100"}
_SHARDING: Final = {"FULL_SHARD": "parameters", "SHARD_GRAD_OP": "gradients"}
_PRECISIONS: Final = {"bf16": "bf16", "amp_bf16": "bf16", "amp_fp8": "fp8"}
_GRADIENTS: Final = {"PURE": 2, "DEFAULT": 4}
_FLAGS: Final = {"True": "full", "False": "none"}


def read_foundry(row: TableRow) -> Case:
    """A row as a case.

    Raises:
        InvalidValueError: if a cell is not possible.
    """
    hidden, heads, layers = row.choice("model", _MODELS)
    chip = row.choice("gpu", _CHIPS)
    gpus, micro_batch = row.whole("gpus"), row.whole("micro_batch")
    model: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "feedforward": 4 * hidden,
        "heads": heads,
        "vocabulary": 50368,
        "sequence": row.whole("seq_len"),
    }
    rate = row.number("tokens_per_s_per_gpu")
    if rate is None:
        raise row.error("tokens_per_s_per_gpu", "It must be a number.")
    precision = row.choice("precision", _PRECISIONS)
    return Case(
        f"{chip.upper()}, {precision}",
        {
            "model": model,
            "cluster": f"dgx_{chip}",
            "gpus": gpus,
            "batch": gpus * micro_batch * row.whole("grad_accum"),
            "stack": {
                "base": f"composer_{chip}",
                "gradient_bytes": row.choice("mp_mode", _GRADIENTS),
            },
        },
        {
            "tensor_parallel": 1,
            "pipeline_parallel": 1,
            "micro_batch": micro_batch,
            "recompute": row.choice("checkpointing", _FLAGS),
            "data_overlap": True,
            "sharding": row.choice("sharding", _SHARDING),
            "precision": precision,
        },
        {"tokens_per_s_per_gpu": rate},
    )
